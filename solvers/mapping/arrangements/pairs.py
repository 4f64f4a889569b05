"""What the two parts of a machine leave of single arrangements of storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.arrangements.survivors import Survivors

if TYPE_CHECKING:
    from tilewright.solvers.mapping.arrangements.segment_bounds import SegmentBounds


@dataclass(frozen=True, slots=True)
class Pair:
    """What the two parts of a machine leave of one arrangement.

    Parameters
    ----------
    key : lower bound of the objective key (scaled)
    bounds : of the machine
    near, inner : what is left outside and inside
    """

    key: float
    bounds: SegmentBounds
    near: Survivors
    inner: Survivors

    def stated(self) -> LayerProblem | None:
        """Its problem over the tiles that are left; ``None`` where the goal wants none of them now."""
        return self.bounds.stated(self.near, self.inner)


class ManyTilesError(Exception):
    """Too much may beat the incumbent to be listed before more is known of the parts."""
