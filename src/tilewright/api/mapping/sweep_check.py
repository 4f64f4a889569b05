"""Whether the claims of a sweep hold: those of each of its points, and the grid around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.checked import Check
from tilewright.api.mapping.checking import Reported
from tilewright.api.mapping.exploration_check import ExploreCheck, check_exploration
from tilewright.formulation.limits import Limits
from tilewright.report.checks.mapping.sweep import sweep_faults
from tilewright.report.records.mapping.sweep import SweepDocument
from tilewright.report.text.mapping.sweep import fields_text


@dataclass(frozen=True, repr=False)
class SweepCheck(Check):
    """What a check of a sweep found.

    Parameters
    ----------
    own : what contradicts itself around the points
    points : the check of every point
    """

    record: SweepDocument
    own: tuple[str, ...]
    points: tuple[ExploreCheck, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer of the best machine of every point."""
        pairs = zip(self.record.points, self.points, strict=True)
        return [{**point.fields, **row} for point, check in pairs for row in check.rows()]

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        reported = self._reported({"model": self.record.model}, complete=self.record.complete)
        return {**reported, "faults": list(self.own), "points": [check.to_dict() for check in self.points]}

    def views(self) -> Sequence[RenderableType]:
        """A line per point, and every fault."""
        views: list[RenderableType] = []
        for point, check in zip(self.record.points, self.points, strict=True):
            reported = "holds" if check.holds else "does not hold"
            views.append(Text(f"{fields_text(point.fields)}: {reported}"))
            views += [Text(f"✗ {fault}") for fault in check.faults]
        return [*views, *(Text(f"✗ {fault}") for fault in self.own), Text(f"{len(self.points)} points")]

    def __repr__(self) -> str:
        return self._named(f"{len(self.points)} points")


def check_sweep(
    record: SweepDocument, where: str, limits: Limits | None, reported: Reported | None
) -> SweepCheck:
    """Check a document of a sweep, every point with the mappings of its best machine.

    Parameters
    ----------
    limits : of all second opinions together; ``None`` to ask for none
    reported : called with every second opinion

    Raises
    ------
    InputError : for a machine or an objective that is none
    """
    own = tuple(sweep_faults(record))
    checks = []
    for index, point in enumerate(record.points):
        left = len(record.points) - index
        share = None if limits is None else limits.share(1 / left)
        checks.append(check_exploration(point.exploration, f"{where}: points[{index}]", share, reported))
    faults = (f"points[{index}]: {fault}" for index, check in enumerate(checks) for fault in check.faults)
    proofs = tuple(proof for check in checks for proof in check.proofs)
    return SweepCheck((*own, *faults), proofs, record, own, tuple(checks))
