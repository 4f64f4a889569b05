"""The question for the best plan of a network on a tiled machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.api.arguments import Budget, SearchRequest, interruptible, named_arguments
from tilewright.api.scheduling.tiled_machine import TiledMachine, tiled_machine
from tilewright.api.scheduling.tiled_plan import TiledPlan
from tilewright.formulation.scheduling.tiled.dag import PartialSums
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.report.records.files import read_data
from tilewright.report.records.scheduling.settings import SearchSettingsRecord
from tilewright.report.records.scheduling.tiled.document import plan_document
from tilewright.report.records.scheduling.tiled.warm import warm_plan
from tilewright.solvers.observer import Unobserved
from tilewright.solvers.scheduling.tiled.running import claimed_space, plan_run
from tilewright.workloads.errors import InputError, unknown_name

if TYPE_CHECKING:
    from tilewright.api.scheduling.problem import Workload

DEFAULT = "atomic"


class NetworkOnTiles:
    """The question for the best plan of a network on a tiled machine; `solve` gives a `TiledPlan`.

    Parameters
    ----------
    workload : of one network; its number of runs is the number of samples where ``batch`` is not given
    machine : where it runs
    objective : ``makespan``, ``energy`` or ``edp``
    batch : samples
    fuse : whether element-wise layers ride on the layer that they follow
    partial_sums : ``chain`` or ``reduction``, see ``docs/tiled.md``

    Raises
    ------
    InputError : for several networks, or an unknown name
    """

    def __init__(
        self,
        workload: Workload,
        machine: TiledMachine | str | Path,
        objective: str = "makespan",
        *,
        batch: int | None = None,
        fuse: bool = True,
        partial_sums: PartialSums = "chain",
    ) -> None:
        parts = workload.networks.parts
        if len(parts) != 1:
            raise InputError("workload", None, f"expected one network on a tiled machine, got {len(parts)}")
        goal = tiled_objective(objective, "objective")
        if partial_sums not in ("chain", "reduction"):
            raise InputError("partial_sums", None, unknown_name(partial_sums, ("chain", "reduction")))
        self.workload = workload
        self.machine = machine if isinstance(machine, TiledMachine) else tiled_machine(machine)
        self.objective = objective
        self.problem = TiledProblem(
            parts[0].network,
            self.machine.hardware,
            goal,
            batch=parts[0].batches if batch is None else batch,
            fuse=fuse,
            partial_sums=partial_sums,
        )

    def answer(self, request: SearchRequest) -> TiledPlan:
        """What `solve` calls; deterministic searches are for layers only."""
        if request.deterministic:
            raise InputError("deterministic", None, "expected False: it is for layers")
        name, told, problem = request.method or DEFAULT, request.observer or Unobserved(), self.problem
        budget, warm_starts = request.budget, request.warm_starts
        given = [*warm_starts] if isinstance(warm_starts, list | tuple) else [warm_starts]
        if len(given) > 1:
            raise InputError("warm_starts", None, f"expected one plan, got {len(given)}")
        with named_arguments(), interruptible() as stop:
            warm = [warm_plan(*_plan_data(one), problem) for one in given]
            run = plan_run(
                lambda: problem,
                name,
                budget.limits(stop),
                told.point,
                told.phase,
                (lambda stated: warm[0]) if warm else None,
            )
            result = run.run()
        settings = search_settings(name, budget)
        space = claimed_space(run)
        return TiledPlan(plan_document(problem, self.objective, result, settings, space=space))

    def __repr__(self) -> str:
        return f"NetworkOnTiles({self.workload.name!r} on {self.machine.name!r}, {self.objective})"


def search_settings(method: str, budget: Budget) -> SearchSettingsRecord:
    """What a document says of the search."""
    return SearchSettingsRecord(
        method=method, time_limit_s=budget.seconds, gap=budget.gap, threads=budget.threads, seed=budget.seed
    )


def _plan_data(given: Any) -> tuple[Any, str]:
    """The data of a plan that was given as one, as a path, or as data, and how errors call it."""
    if isinstance(given, TiledPlan):
        return given.to_dict(), "warm_starts"
    if isinstance(given, str | os.PathLike):
        return read_data(Path(given)), str(given)
    return given, "warm_starts"
