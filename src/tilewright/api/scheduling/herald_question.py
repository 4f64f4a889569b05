"""The question for the best schedule of a workload on a system of sub-accelerators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.api.arguments import SearchRequest, named_arguments
from tilewright.api.live import LiveDocument
from tilewright.api.scheduling.plan import Plan
from tilewright.api.scheduling.question import SearchedQuestion
from tilewright.api.scheduling.settings import schedule_settings
from tilewright.api.scheduling.system import System, system_of
from tilewright.api.scheduling.workload import Workload
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.formulation.scheduling.herald.search import ScheduleResult
from tilewright.foundation.errors import InputError, unknown_name
from tilewright.report.records.scheduling.herald.document import schedule_document
from tilewright.solvers.mapping.machine_sizes import METRICS
from tilewright.solvers.scheduling.herald.cost_tables.build import METRIC_OF
from tilewright.solvers.scheduling.herald.schedule import ScheduleRun, schedule_run


class WorkloadOnSystem(SearchedQuestion[Plan]):
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

    method = "cpsat"

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
        self.metric = chosen_metric(metric, self.objective)
        networks = workload.networks
        head = f"{networks.name} on {self.system.name}, {networks.layer_count()} layers"
        super().__init__(head, networks.name, self.objective.value)

    def _begin(
        self, method: str, request: SearchRequest, live: LiveDocument[Plan], starts: Any
    ) -> ScheduleRun:
        return schedule_run(
            self.workload.networks,
            self.system.hardware,
            self.objective,
            self.metric,
            method,
            request.limits(),
            live.improved,
            live.phase,
        )

    def _document(
        self, run: ScheduleRun, result: ScheduleResult, method: str, request: SearchRequest, *, complete: bool
    ) -> Plan:
        problem = None if run.search is None else run.search.problem.instance
        networks, hardware = self.workload.networks, self.system.hardware
        settings = schedule_settings(method, self.metric, request.budget)
        document = schedule_document(
            networks, hardware, problem, self.objective, result, settings, complete=complete
        )
        return Plan(document)

    def __repr__(self) -> str:
        return f"WorkloadOnSystem({self.workload.name!r} on {self.system.name!r}, {self.objective.value})"


def schedule_objective(name: str) -> ScheduleObjective:
    """The objective of that name; raises ``InputError`` with the nearest one."""
    known = [objective.value for objective in ScheduleObjective]
    if name not in known:
        with named_arguments():
            raise InputError("--objective", None, unknown_name(name, known))
    return ScheduleObjective(name)


def chosen_metric(name: str | None, objective: ScheduleObjective) -> str:
    """By which mappings of layers are chosen: as named, or as the objective; raises ``InputError``."""
    if name is not None and name not in METRICS:
        with named_arguments():
            raise InputError("--metric", None, unknown_name(name, METRICS))
    return name or METRIC_OF[objective]
