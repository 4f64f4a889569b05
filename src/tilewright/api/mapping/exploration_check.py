"""Whether a document of an exploration tells the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.checked import Check
from tilewright.api.mapping.checking import MappingCheck, Told, check_mappings
from tilewright.formulation.limits import Limits
from tilewright.report.checks.mapping.explore import explore_faults
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.text.mapping.explore import fields_text


@dataclass(frozen=True, repr=False)
class ExploreCheck(Check):
    """What a check of an exploration found, in the best design's layers too.

    Parameters
    ----------
    own : what contradicts itself
    best : the check of the best design's mappings; ``None`` where there is no best design
    """

    record: ExploreDocument
    own: tuple[str, ...]
    best: MappingCheck | None

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer of the best design."""
        return [] if self.best is None else self.best.rows()

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        told = self._told({"arch": self.record.machine}, complete=self.record.complete)
        best = None if self.best is None else self.best.to_dict()
        return {**told, "faults": list(self.own), "best": best}

    def views(self) -> Sequence[RenderableType]:
        """The best design's layers, every fault, and what was not asked."""
        views: list[RenderableType] = []
        if self.best is not None and self.record.best is not None:
            views += [Text(f"best design: {fields_text(self.record.best.fields)}"), *self.best.views()]
        views += [Text(f"✗ {fault}") for fault in self.own]
        discarded = self.record.totals.statuses.get("discarded", 0)
        agree = "do not agree with each other" if self.own else "agree with each other"
        views.append(
            Text(
                f"{len(self.record.designs)} designs {agree}; "
                f"the bounds of {discarded} discarded ones are proofs that a document cannot repeat"
            )
        )
        return views

    def __repr__(self) -> str:
        return self._named(f"{len(self.record.designs)} designs")


def check_exploration(
    record: ExploreDocument, where: str, limits: Limits | None, told: Told | None
) -> ExploreCheck:
    """Check a document of an exploration, the best design's mappings included.

    Parameters
    ----------
    limits : of all second opinions together; ``None`` to ask for none
    told : told of every second opinion

    Raises
    ------
    InputError : for a machine or an objective that is none
    """
    own = tuple(explore_faults(record, where))
    best = None if record.best is None else check_mappings(record.best.result, where, limits, told)
    if best is None:
        return ExploreCheck(own, (), record, own, None)
    return ExploreCheck((*own, *best.faults), best.proofs, record, own, best)
