"""Whether a document of an exploration tells the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.display import Displayed
from tilewright.api.mapping.checking import SCHEMA, MappingCheck, Told, check_mappings
from tilewright.formulation.limits import Limits
from tilewright.report.checks.mapping.explore import explore_faults
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.report.text.mapping.explore import fields_text


@dataclass(frozen=True, repr=False)
class ExploreCheck(Displayed):
    """What a check of an exploration found.

    Parameters
    ----------
    own : what contradicts itself
    best : the check of the best design's mappings; ``None`` where there is no best design
    """

    record: ExploreDocument
    own: tuple[str, ...]
    best: MappingCheck | None

    @property
    def holds(self) -> bool:
        """Whether every claim that can be computed anew holds."""
        return not self.own and (self.best is None or self.best.holds)

    @property
    def undecided(self) -> bool:
        """Whether a second opinion came to no verdict."""
        return self.best is not None and self.best.undecided

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong, each in one line."""
        return (*self.own, *(() if self.best is None else self.best.faults))

    def __bool__(self) -> bool:
        return self.holds

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer of the best design."""
        return [] if self.best is None else self.best.rows()

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        found: dict[str, Any] = {
            "schema": SCHEMA,
            "command": "check",
            "arch": self.record.machine,
            "holds": self.holds,
            "complete": self.record.complete,
            "faults": list(self.own),
        }
        return {**found, "best": None if self.best is None else self.best.to_dict()}

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
        return f"ExploreCheck({'holds' if self.holds else 'fails'}, {len(self.record.designs)} designs)"


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
    return ExploreCheck(record, own, best)
