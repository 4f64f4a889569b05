"""One co-design call: costs of layers, the problem, the search over partitions, limits and result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.herald.codesign import (
    CodesignGoal,
    CodesignResult,
    CodesignSearch,
    Design,
    Division,
    codesign_result,
)
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.search import UnsoundBoundError
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass, make_system
from tilewright.hardware.scheduling.herald.variants import NO_ENGINES, OwnEngines
from tilewright.solvers.running import SearchRun
from tilewright.solvers.scheduling.herald.cost_tables.build import METRIC_OF
from tilewright.solvers.scheduling.herald.cost_tables.costs_progress import CostsProgress
from tilewright.solvers.scheduling.herald.cost_tables.division_costs import DivisionCosts
from tilewright.solvers.scheduling.herald.partitions.partition import divisions_of, most_even
from tilewright.solvers.scheduling.herald.partitions.partition_search import LeastBoundFirst
from tilewright.solvers.scheduling.herald.schedule import GRACE
from tilewright.workloads.scheduling.workload import Workload


class CodesignRun(SearchRun[CodesignGoal, Design, ScheduleEvaluation]):
    """A search for a design in a thread of its own, which signals and limits end."""

    def run(self) -> CodesignResult:
        """Search, and return at the latest shortly after a limit or a signal.

        Raises
        ------
        InputError : where the problem cannot be stated, or its costs were wrong in their file
        UnsoundBoundError : where a bound was claimed that a schedule contradicts
        """
        result = super().run()
        if isinstance(self.failure, UnsoundBoundError):
            raise self.failure
        return codesign_result(result)

    def so_far(self, message: str = "", *, error: bool = False) -> CodesignResult:
        """The best design, the bound and the partitions that are known."""
        return codesign_result(super().so_far(message, error=error))


def codesign_run(
    workload: Workload,
    resources: AcceleratorClass,
    flows: Sequence[str],
    objective: ScheduleObjective,
    limits: Limits,
    strategy: str = "exhaustive",
    metric: str | None = None,
    folder: Path | None = None,
    reported: Callable[[TracePoint], None] = lambda point: None,
    note: Callable[[str], None] = lambda text: None,
    engines: OwnEngines = NO_ENGINES,
) -> CodesignRun:
    """A search for the best division with its schedule.

    Parameters
    ----------
    flows : the dataflow of every sub-accelerator
    strategy : ``exhaustive``, ``binary`` or ``random``: which partitions of the grid are looked at
    metric : by which mappings are chosen; by default the objective's own
    folder : of the cost tables
    reported, note : called with every better design and bound, and of what begins
    engines : machine files among the flows, with what of them varies

    Raises
    ------
    InputError : for an unknown strategy, or a grid without partitions
    """
    divisions = divisions_of(resources, flows, strategy, limits.seed, engines)
    systems = {
        division: make_system(
            f"{resources.name}-{i + 1}", resources, flows, division.parts, engines=engines.at(division.place)
        )
        for i, division in enumerate(divisions)
    }
    by = metric or METRIC_OF[objective]
    progress = CostsProgress(note)
    stated: list[DivisionCosts] = []

    def begin(notify: Callable[[TracePoint], None]) -> CodesignSearch:
        first = most_even(divisions)  # a division is there long before all costs
        costs = DivisionCosts(workload, systems, first, by, limits, folder, progress.reported, note)
        stated.append(costs)
        return CodesignSearch(CodesignGoal(workload, systems, by, objective, costs.problem), limits, notify)

    def recount(division: Division, limits: Limits) -> SchedulingProblem:
        return stated[0].counted_again(division, limits)

    method = LeastBoundFirst(recount, None if folder is None else str(folder), note)
    return CodesignRun(
        begin, method, method.name, limits, reported, grace=GRACE, unstated=lambda: progress.stopped
    )
