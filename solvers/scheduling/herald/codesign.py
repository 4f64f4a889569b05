"""One co-design call: costs of layers, the problem, the search over partitions, limits and result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.herald.codesign import (
    CodesignGoal,
    CodesignResult,
    CodesignSearch,
    Design,
    codesign_result,
)
from tilewright.formulation.scheduling.herald.evaluator import ScheduleEvaluation
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.search import UnsoundBoundError
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass, make_system
from tilewright.hardware.scheduling.herald.system import System
from tilewright.solvers.running import SearchRun
from tilewright.solvers.scheduling.herald.build import METRIC_OF, problem_from_table, workload_operators
from tilewright.solvers.scheduling.herald.costs import cost_table
from tilewright.solvers.scheduling.herald.costs_progress import CostsProgress
from tilewright.solvers.scheduling.herald.partition import partitions_of
from tilewright.solvers.scheduling.herald.partition_search import LeastBoundFirst
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
    engines: Mapping[str, Engine] | None = None,
) -> CodesignRun:
    """A search for the best partition with its schedule.

    Parameters
    ----------
    flows : the dataflow of every sub-accelerator
    strategy : ``exhaustive``, ``binary`` or ``random``: which partitions of the grid are looked at
    metric : by which mappings are chosen; by default the objective's own
    folder : of the cost tables
    reported, note : called with every better design and bound, and of what begins
    engines : machines from files among the flows; each stays as it is

    Raises
    ------
    InputError : for an unknown strategy, or a grid without partitions
    """
    points = partitions_of(resources, flows, strategy, limits.seed, engines)
    if not points:
        raise InputError("--dataflows", None, "more dataflows than the grid has steps")
    systems = {
        parts: make_system(f"{resources.name}-{i + 1}", resources, flows, parts, engines=engines)
        for i, parts in enumerate(points)
    }
    by = metric or METRIC_OF[objective]
    operators = workload_operators(workload)
    costs = CostsProgress(note)

    def begin(notify: Callable[[TracePoint], None]) -> CodesignSearch:
        table = cost_table(
            operators, [*systems.values()], limits, folder, costs.reported, chosen=(by,), note=note
        )
        note(f"costs known after {limits.elapsed:.1f} s")

        def state(system: System) -> SchedulingProblem:
            return problem_from_table(workload, system, by, table)

        return CodesignSearch(CodesignGoal(workload, systems, by, objective, state), limits, notify)

    def recount(system: System, limits: Limits) -> SchedulingProblem:
        table = cost_table(operators, [system], limits, folder, metric=by, chosen=(by,), continued=False)
        return problem_from_table(workload, system, by, table)

    method = LeastBoundFirst(recount, None if folder is None else str(folder), note)
    return CodesignRun(
        begin, method, method.name, limits, reported, grace=GRACE, unstated=lambda: costs.stopped
    )
