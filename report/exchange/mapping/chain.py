"""Memory levels one after the other, with the arrays between them: what machines of other programs become."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.operator import Role

_AMPLE = 2**24
"""Elements of an outermost memory that no layer is expected to exceed, where none is known."""


@dataclass(slots=True)
class Chain:
    """The levels of a machine file, outermost first, while they are found.

    Parameters
    ----------
    levels : fields of each
    axes : of arrays for which no level inside has been found yet
    """

    bundle: Bundle
    levels: list[dict[str, Any]] = field(default_factory=list)
    axes: list[dict[str, Any]] = field(default_factory=list)
    _networks: list[tuple[Field, bool, bool]] = field(default_factory=list)

    def array(
        self, axes: list[dict[str, Any]], where: Field, *, multicast: bool = True, reduction: bool = True
    ) -> None:
        """Add the axes of an array below the last level.

        Parameters
        ----------
        axes : fields of each axis, as a machine file has them
        where : the array in its file, for errors
        multicast : whether one read serves several instances
        reduction : whether partial sums of several instances are added on the way
        """
        self.axes += axes
        self._networks.append((where, multicast, reduction))

    def level(self, fields: dict[str, Any], keeps: set[Role], free: set[Role]) -> None:
        """Add a level inside all that was added.

        Parameters
        ----------
        keeps : roles that may be stored there
        free : those of them that need not
        """
        if self.axes:
            self.levels[-1]["fanout"] = {"axes": self.axes} | self._network()
            self.axes, self._networks = [], []
        if keeps != set(Role):
            fields["keeps"] = [role.value for role in Role if role in keeps]
        if free and self.levels:
            fields["may_bypass"] = [role.value for role in Role if role in free & keeps]
        self.levels.append(fields)

    def close(self, where: Field) -> list[dict[str, Any]]:
        """All levels; raises ``InputError`` where they make no machine."""
        if self.axes:
            raise self._networks[-1][0].error(
                "an array below the innermost memory cannot be stated, expected a memory inside it"
            )
        if len(self.levels) < 2:
            raise where.error(f"expected at least 2 memories, got {len(self.levels)}")
        return self.levels

    def _network(self) -> dict[str, bool]:
        """What the arrays between two memories can do together."""
        abilities: dict[str, bool] = {}
        for index, ability in ((1, "multicast"), (2, "reduction")):
            able = [network[index] for network in self._networks]
            if not all(able):
                abilities[ability] = False
            if len(set(able)) > 1:
                message = f"all arrays between two memories have {ability}, or none: here none has"
                self._networks[-1][0].lose(self.bundle.ledger, Effect.COST, message)
        return abilities


def reported_limit(elements: Fraction | int, where: Field, bundle: Bundle) -> None:
    """Note that the outermost memory has no limit here; it matters only where a layer would exceed it."""
    needed = [
        sum(tensor.footprint(operator.bounds) for tensor in operator.tensors) for _, operator in bundle.layers
    ]
    ample = elements >= max(needed, default=_AMPLE)
    message = f"the outermost memory has no limit here, there {int(elements):,} elements"
    where.lose(bundle.ledger, Effect.NONE if ample else Effect.SPACE, message)
