"""The split of a chip's resources together with its schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.api.arguments import SearchRequest, named_arguments
from tilewright.api.live import LiveDocument
from tilewright.api.mapping.exploration import Vary
from tilewright.api.scheduling.herald_question import chosen_metric, schedule_objective
from tilewright.api.scheduling.plan import Codesign
from tilewright.api.scheduling.question import SearchedQuestion
from tilewright.api.scheduling.settings import schedule_settings
from tilewright.api.scheduling.workload import Workload, workload
from tilewright.api.solving import solve
from tilewright.formulation.scheduling.herald.codesign import CodesignResult
from tilewright.formulation.stopping import Stop
from tilewright.hardware.mapping.variations import Variation, variation
from tilewright.hardware.scheduling.herald.classes import accelerator_class, with_steps
from tilewright.hardware.scheduling.herald.variants import named_flows
from tilewright.report.records.scheduling.herald.codesign import codesign_document
from tilewright.solvers.observer import Observer
from tilewright.solvers.scheduling.herald.partitions.codesign import CodesignRun, codesign_run


class WorkloadOnClass(SearchedQuestion[Codesign]):
    """The question for the best split of a class's resources.

    Parameters
    ----------
    work, resources, dataflows, vary, objective, metric, search : as for `codesign`
    pe_step, bandwidth_step, keep_activations : as for `codesign`
    """

    method = "cpsat"

    def __init__(
        self,
        work: Workload | str | Path,
        resources: str,
        *,
        dataflows: Sequence[str] = ("nvdla", "shidiannao"),
        vary: Sequence[Variation] = (),
        objective: str = "edp",
        metric: str | None = None,
        search: str = "exhaustive",
        pe_step: int | None = None,
        bandwidth_step: int | None = None,
        keep_activations: bool = False,
    ) -> None:
        self.objective = schedule_objective(objective)
        self.metric = chosen_metric(metric, self.objective)
        self.search = search
        with named_arguments():
            divided = with_steps(accelerator_class(resources), pe_step, bandwidth_step)
            self.resources = replace(divided, keep_activations=keep_activations)
            self.dataflows, self.engines = named_flows(dataflows, vary)
            self.workload = work if isinstance(work, Workload) else workload(work)
        name = self.workload.name
        head = f"{name}, class {self.resources.name}, {' + '.join(self.dataflows)}"
        super().__init__(head, name, self.objective.value)

    def _begin(
        self, method: str, request: SearchRequest, live: LiveDocument[Codesign], starts: Any
    ) -> CodesignRun:
        return codesign_run(
            self.workload.networks,
            self.resources,
            self.dataflows,
            self.objective,
            request.limits(),
            self.search,
            self.metric,
            reported=live.improved,
            note=live.phase,
            engines=self.engines,
        )

    def _document(
        self, run: CodesignRun, result: CodesignResult, method: str, request: SearchRequest, *, complete: bool
    ) -> Codesign:
        return Codesign(
            codesign_document(
                self.workload.networks,
                self.resources,
                self.dataflows,
                self.search,
                self.objective,
                result,
                schedule_settings(method, self.metric, request.budget),
                complete=complete,
                engines=self.engines,
            )
        )


def codesign(
    work: Workload | str | Path,
    resources: str,
    *,
    dataflows: Sequence[str] = ("nvdla", "shidiannao"),
    vary: Vary | None = None,
    objective: str = "edp",
    metric: str | None = None,
    search: str = "exhaustive",
    pe_step: int | None = None,
    bandwidth_step: int | None = None,
    keep_activations: bool = False,
    stop: Stop | None = None,
    threads: int | None = None,
    seed: int = 0,
    observer: Observer | None = None,
) -> Codesign:
    """Find the best split of PEs and bandwidth over sub-accelerators, with a bound over the grid of splits.

    Parameters
    ----------
    work : a workload, or what `workload` takes
    resources : the class of the chip: ``edge``, ``mobile`` or ``cloud``
    dataflows : one per sub-accelerator: a dataflow style, or a machine's preset or file
    vary : fields of machine files and their values as for `explore`, each behind the name of its machine:
        ``{"strip.levels.BUF.capacity": "8kB,16kB"}``; without it such a machine stays as it is
    objective, metric : as for `WorkloadOnSystem`
    search : ``exhaustive``, ``binary`` or ``random``: which splits are looked at
    pe_step, bandwidth_step : by which splits differ (PEs, GB/s); by default the class's own
    keep_activations : whether results may stay in the global memory for the layers that read them
    stop, threads, seed, observer : as for `solve`

    Raises
    ------
    InputError : for an unknown name, or steps that leave no split
    """
    with named_arguments():
        axes = [variation(field, values) for field, values in (vary or {}).items()]
    question = WorkloadOnClass(
        work,
        resources,
        dataflows=dataflows,
        vary=axes,
        objective=objective,
        metric=metric,
        search=search,
        pe_step=pe_step,
        bandwidth_step=bandwidth_step,
        keep_activations=keep_activations,
    )
    return solve(question, stop=stop, threads=threads, seed=seed, observer=observer)
