"""What a level's transfers cost beside bandwidth: whether they hide, and cycles to set something up."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from tilewright.foundation.units import exact


@dataclass(frozen=True, slots=True)
class Timing:
    """How a level's transfers take time (``docs/cost-models.md``, set-up cycles).

    Parameters
    ----------
    overlap : whether what the level hands inwards hides behind other work; ``None`` for as the store that it
        goes to is double-buffered
    tile : cycles for every iteration of the level's loops and those outside
    transfer : cycles for every tile that its port moves
    row : cycles for every row of such a tile: a run along the tensor's last axis of at most ``row_bits``
    instruction : cycles of compute for every iteration of the loops outside the level
    row_bits : bits of a row at most; ``None`` where a run of any length is one row
    refetch : whether the level's tiles are fetched anew at every iteration of the loops outside it, also
        where they stay the same
    drained : whether results that leave the level are read there once more
    """

    overlap: bool | None = None
    tile: Fraction = Fraction(0)
    transfer: Fraction = Fraction(0)
    row: Fraction = Fraction(0)
    instruction: Fraction = Fraction(0)
    row_bits: int | None = None
    refetch: bool = False
    drained: bool = False

    @property
    def plain(self) -> bool:
        """Whether bandwidths and double buffering say it all."""
        return self == PLAIN

    @property
    def set_up(self) -> bool:
        """Whether cycles depend on more than the elements that move: iterations, tiles and rows."""
        return self.refetch or any((self.tile, self.transfer, self.row, self.instruction))

    def stated(self) -> dict[str, Any]:
        """What differs from a plain level, as JSON-ready data with exact fractions."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: exact(value) if isinstance(value, Fraction) else value
            for name, value in values.items()
            if value != getattr(PLAIN, name)
        }

    @classmethod
    def read(cls, stated: dict[str, Any]) -> Timing:
        """What :meth:`stated` wrote."""
        amounts = ("tile", "transfer", "row", "instruction")
        values: dict[str, Any] = {
            name: Fraction(value) if name in amounts else value for name, value in stated.items()
        }
        return cls(**values)


PLAIN = Timing()
