"""The question for the best plan of a network on a tiled machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tilewright.api.arguments import SearchRequest, named_arguments
from tilewright.api.live import LiveDocument
from tilewright.api.scheduling.question import SearchedQuestion
from tilewright.api.scheduling.settings import search_settings
from tilewright.api.scheduling.tiled_machine import TiledMachine, tiled_machine
from tilewright.api.scheduling.tiled_plan import TiledPlan
from tilewright.api.scheduling.workload import Workload
from tilewright.formulation.scheduling.tiled.dag import PartialSums
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledResult
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.report.records.files import read_data
from tilewright.report.records.scheduling.tiled.document import plan_document
from tilewright.report.records.scheduling.tiled.warm import warm_plan
from tilewright.solvers.scheduling.tiled.running import TiledRun, claimed_space, plan_run


class NetworkOnTiles(SearchedQuestion[TiledPlan]):
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

    method = "auto"

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
        with named_arguments():
            goal = tiled_objective(objective)
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
        problem = self.problem
        samples = "" if problem.batch == 1 else f", batch {problem.batch}"
        name = problem.network.name
        head = f"{name} on {problem.machine.name}{samples}, {len(problem.units)} layers"
        super().__init__(head, name, objective)

    def _detail(self, method: str) -> str:
        return method

    def _starts(self, given: Any) -> AtomicPlan | None:
        return self.start(given)

    def start(self, given: Any) -> AtomicPlan | None:
        """The plan to begin with.

        Parameters
        ----------
        given : a plan, its data, the path of its document, or a list of one of these; an empty list for none

        Raises
        ------
        InputError : for several, and for what is no legal plan of this question
        """
        listed = [*given] if isinstance(given, list | tuple) else [given]
        if len(listed) > 1:
            raise InputError("warm_starts", None, f"expected one plan, got {len(listed)}")
        if not listed or isinstance(listed[0], AtomicPlan):
            return listed[0] if listed else None
        return warm_plan(*_plan_data(listed[0]), self.problem)

    def _begin(
        self, method: str, request: SearchRequest, live: LiveDocument[TiledPlan], starts: AtomicPlan | None
    ) -> TiledRun:
        return plan_run(lambda: self.problem, method, request.limits(), live.improved, live.phase, starts)

    def _document(
        self, run: TiledRun, result: TiledResult, method: str, request: SearchRequest, *, complete: bool
    ) -> TiledPlan:
        settings, space = search_settings(method, request.budget), claimed_space(run)
        document = plan_document(
            self.problem, self.objective, result, settings, space=space, complete=complete
        )
        return TiledPlan(document, None if result.answer is None else result.answer.tree)

    def __repr__(self) -> str:
        return f"NetworkOnTiles({self.workload.name!r} on {self.machine.name!r}, {self.objective})"


def _plan_data(given: Any) -> tuple[Any, str]:
    """The data of a plan that was given as one, as a path, or as data, and how errors call it."""
    if isinstance(given, TiledPlan):
        return given.to_dict(), "warm_starts"
    if isinstance(given, str | os.PathLike):
        return read_data(Path(given)), str(given)
    return given, "warm_starts"
