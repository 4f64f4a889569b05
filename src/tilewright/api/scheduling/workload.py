"""Workloads, and the questions for their best schedule on a system or plan on a tiled machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

from rich.console import RenderableType

from tilewright.api.arguments import SearchRequest, interruptible, named_arguments
from tilewright.api.display import Displayed
from tilewright.api.scheduling.plan import Plan
from tilewright.api.scheduling.settings import schedule_settings
from tilewright.api.scheduling.system import System, system_of
from tilewright.api.scheduling.tiled_machine import TiledMachine, tiled_machine
from tilewright.api.scheduling.tiled_plan import TiledPlan
from tilewright.api.scheduling.tiled_search import search_plan
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.formulation.scheduling.tiled.dag import PartialSums
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.report.records.scheduling.herald.document import schedule_document
from tilewright.report.records.scheduling.workload import workload_data
from tilewright.report.text.scheduling.workload import workload_views
from tilewright.solvers.mapping.machine_sizes import METRICS
from tilewright.solvers.observer import Unobserved
from tilewright.solvers.scheduling.herald.build import METRIC_OF
from tilewright.solvers.scheduling.herald.schedule import schedule_run
from tilewright.workloads.scheduling.workload import Workload as Networks
from tilewright.workloads.scheduling.workload_file import list_workloads as workload_names
from tilewright.workloads.scheduling.workload_file import resolve_workload

EXACT = "cpsat"


class Workload(Displayed):
    """Several networks, each to be run a number of times.  Made by `workload`.

    Parameters
    ----------
    networks : with their numbers of runs
    """

    def __init__(self, networks: Networks) -> None:
        self.networks = networks

    @property
    def name(self) -> str:
        """As tables show it."""
        return self.networks.name

    @overload
    def on(
        self, system: System | str | Path, objective: str = "makespan", *, metric: str | None = None
    ) -> WorkloadOnSystem: ...

    @overload
    def on(
        self, system: TiledMachine, objective: str = "makespan", *, batch: int | None = None
    ) -> NetworkOnTiles: ...

    def on(
        self,
        system: System | TiledMachine | str | Path,
        objective: str = "makespan",
        *,
        metric: str | None = None,
        batch: int | None = None,
    ) -> WorkloadOnSystem | NetworkOnTiles:
        """The question for the best schedule on a system, which `solve` answers with a `Plan`; on a tiled
        machine for the best plan, a `TiledPlan`.

        Parameters
        ----------
        system : or a preset's name, or a system file; or a tiled machine
        objective, metric : as for `WorkloadOnSystem`
        batch : samples on a tiled machine, by default the number of runs

        Raises
        ------
        InputError : for an unknown name, or an argument that the system does not take
        """
        if isinstance(system, TiledMachine):
            if metric is not None:
                raise InputError("metric", None, "is not for tiled machines")
            return NetworkOnTiles(self, system, objective, batch=batch)
        if batch is not None:
            raise InputError("batch", None, "is for tiled machines; a workload states its own")
        return WorkloadOnSystem(self, system, objective, metric=metric)

    def to_dict(self) -> dict[str, Any]:
        """The networks and their totals as plain data."""
        return workload_data(self.networks)

    def rows(self) -> list[dict[str, Any]]:
        """One row per network."""
        rows: list[dict[str, Any]] = self.to_dict()["networks"]
        return rows

    def views(self) -> Sequence[RenderableType]:
        """A table of the networks."""
        return workload_views(self.networks)

    def __repr__(self) -> str:
        count = len(self.networks.parts)
        return f"Workload({self.name!r}, {count} networks, {self.networks.layer_count()} layers)"


class WorkloadOnSystem:
    """The question for the best schedule of a workload on a system; `solve` gives a `Plan`.

    Parameters
    ----------
    workload, system : what runs, and where
    objective : ``makespan``, ``energy`` or ``edp``
    metric : by which the mapping of a layer on a sub-accelerator is chosen: ``cycles``, ``energy`` or
        ``edp``; by default as the objective

    Raises
    ------
    InputError : for an unknown name
    """

    def __init__(
        self,
        workload: Workload,
        system: System | str | Path,
        objective: str = "makespan",
        *,
        metric: str | None = None,
    ) -> None:
        self.workload = workload
        self.system = system_of(system)
        self.objective = schedule_objective(objective)
        if metric is not None and metric not in METRICS:
            raise InputError("metric", None, unknown_name(metric, METRICS))
        self.metric = metric or METRIC_OF[self.objective]

    def answer(self, request: SearchRequest) -> Plan:
        """What `solve` calls; warm starts and deterministic searches are for layers only."""
        if request.warm_starts != () and request.warm_starts != []:
            raise InputError("warm_starts", None, "expected none: they are for layers")
        if request.deterministic:
            raise InputError("deterministic", None, "expected False: it is for layers")
        name, reported, budget = request.method or EXACT, request.observer or Unobserved(), request.budget
        networks, hardware = self.workload.networks, self.system.hardware
        with named_arguments(), interruptible() as stop:
            limits = budget.limits(stop)
            run = schedule_run(
                networks, hardware, self.objective, self.metric, name, limits, reported.point, reported.phase
            )
            result = run.run()
        problem = None if run.search is None else run.search.problem.instance
        settings = schedule_settings(name, self.metric, budget)
        return Plan(schedule_document(networks, hardware, problem, self.objective, result, settings))

    def __repr__(self) -> str:
        return f"WorkloadOnSystem({self.workload.name!r} on {self.system.name!r}, {self.objective.value})"


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
        return search_plan(self.problem, self.objective, request)

    def __repr__(self) -> str:
        return f"NetworkOnTiles({self.workload.name!r} on {self.machine.name!r}, {self.objective})"


def workload(text: str | Path) -> Workload:
    """A workload by its name or from a YAML file; a model or layer is one of its own.

    Raises
    ------
    InputError : for an unknown name with the nearest one, or any fault of the file
    """
    return Workload(resolve_workload(str(text)))


def list_workloads() -> list[str]:
    """Names of the workloads that come with the package."""
    return [*workload_names()]


def schedule_objective(name: str) -> ScheduleObjective:
    """The objective of that name; raises ``InputError`` with the nearest one."""
    known = [objective.value for objective in ScheduleObjective]
    if name not in known:
        raise InputError("objective", None, unknown_name(name, known))
    return ScheduleObjective(name)
