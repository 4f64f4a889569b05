"""Plans on tiled machines, and what the evaluator says of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.display import Displayed
from tilewright.api.scheduling.answer import SchedulingAnswer
from tilewright.formulation.scheduling.tiled.evaluator import Evaluation
from tilewright.foundation.errors import InputError
from tilewright.report.records.claims import number
from tilewright.report.records.files import read_data
from tilewright.report.records.scheduling.tiled.document import PlanDocument, PlanMetricsRecord, plan_metrics
from tilewright.report.records.scheduling.tiled.evaluation import (
    JudgedPlan,
    evaluation_data,
    judged,
    judged_document,
    layer_rows,
)
from tilewright.report.records.scheduling.tiled.files import edited_plan, is_plan

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tilewright.formulation.scheduling.tiled.search import PlanTree


class TiledPlan(SchedulingAnswer):
    """The plan of a network on a tiled machine, and what is proven of it.

    Parameters
    ----------
    tree : that the plan was made from, where a search on trees has just found it
    """

    def __init__(self, record: PlanDocument, tree: PlanTree | None = None) -> None:
        self.record: PlanDocument = record
        self.tree = tree

    @property
    def metrics(self) -> PlanMetricsRecord | None:
        """Cycles, energy by component, utilization, traffic, reuse and buffers, as the evaluator has them."""
        return self.record.metrics

    @property
    def space(self) -> str:
        """The plans over which status, bound and gap are claimed."""
        return self.record.space

    def evaluate(self) -> PlanEvaluation:
        """Judge the plan again.

        Raises
        ------
        InputError : where there is no plan
        """
        judged_plan = judged_document(self.record)
        if judged_plan is None:
            raise InputError("document", "plan", "missing, there is nothing to evaluate")
        return PlanEvaluation(judged_plan)

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer: its atoms, when it runs, on how many engines."""
        return [] if self.record.plan is None else self.evaluate().rows()

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained page of tables and plots (the extra ``plots``); raises ``InputError``."""
        from tilewright.report.html.page import check_report
        from tilewright.report.html.scheduling.tiled.plan import write_plan_report

        check_report(Path(path))
        write_plan_report(Path(path), self.record)

    def views(self, seconds: float | None = None) -> Sequence[RenderableType]:
        """Status, figures, energy and the layers with the most atoms.

        Parameters
        ----------
        seconds : that the call took; by default those of the search
        """
        from tilewright.report.text.scheduling.tiled.tables import plan_views

        return plan_views(self.record, self.record.wall_s if seconds is None else seconds)

    def __repr__(self) -> str:
        place = f"{self.record.workload!r} on {self.record.system!r}"
        return f"TiledPlan({place}, {self._claim_text()})"


class PlanEvaluation(Displayed):
    """What the evaluator says of a plan: legal or not, and if so what it costs.

    Parameters
    ----------
    plan : what was judged, and the verdict
    """

    def __init__(self, plan: JudgedPlan) -> None:
        self.plan = plan

    @property
    def legal(self) -> bool:
        """Whether it breaks no dependency, buffer or link."""
        return self.plan.violation is None

    @property
    def violations(self) -> tuple[str, ...]:
        """What it breaks; evaluation ends at the first."""
        return () if self.plan.violation is None else (self.plan.violation,)

    @property
    def key(self) -> Fraction | None:
        """The exact figure that solvers compare; ``None`` for an illegal plan."""
        return self.plan.key

    @property
    def value(self) -> float | int | None:
        """The objective's value."""
        return None if self.plan.key is None else number(self.plan.key)

    @property
    def metrics(self) -> PlanMetricsRecord | None:
        """Everything in figures; ``None`` for an illegal plan."""
        if self.plan.answer is None or self.plan.evaluation is None:
            return None
        return plan_metrics(self.plan.problem, self.plan.answer, self.plan.evaluation)

    @property
    def details(self) -> Evaluation | None:
        """The evaluator's arrays: starts of steps, loads of links, peaks of buffers."""
        return self.plan.evaluation

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright evaluate --format json`` prints."""
        return evaluation_data(self.plan)

    def rows(self) -> list[dict[str, Any]]:
        """One row per layer."""
        return layer_rows(self.plan)

    def views(self) -> Sequence[RenderableType]:
        """The verdict, then figures, links and layers."""
        from tilewright.report.text.scheduling.tiled.listing import evaluation_views

        return evaluation_views(self.plan)

    def __repr__(self) -> str:
        problem = self.plan.problem
        reported = "legal" if self.legal else "illegal"
        return f"PlanEvaluation({problem.network.name!r} on {problem.machine.name!r}, {reported})"


def evaluate_plan(
    plan: TiledPlan | dict[str, Any] | str | os.PathLike[str], objective: str | None = None
) -> PlanEvaluation:
    """Judge a plan on a tiled machine, whoever made it; the same as ``tilewright evaluate``.

    Parameters
    ----------
    plan : or the data of a document, or the path of one; what may be left out of it, and that columns may be
        lists, is described in ``docs/tiled.md``
    objective : ``makespan``, ``energy`` or ``edp`` instead of the document's

    Raises
    ------
    InputError : for what is no plan, or fits no layer, naming the field
    """
    where = str(plan) if isinstance(plan, str | os.PathLike) else "document"
    data = plan.to_dict() if isinstance(plan, TiledPlan) else plan
    if isinstance(data, str | os.PathLike):
        data = read_data(Path(data))
    if not is_plan(data):
        raise InputError(where, "schema", "expected a plan on a tiled machine, of tilewright.plan/1")
    assert isinstance(data, dict)
    return PlanEvaluation(judged(edited_plan(data, where, objective)))
