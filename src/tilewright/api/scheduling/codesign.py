"""The split of a chip's resources together with its schedule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.api.arguments import interruptible, named_arguments, read_budget
from tilewright.api.scheduling.plan import Codesign
from tilewright.api.scheduling.settings import schedule_settings
from tilewright.api.scheduling.workload import EXACT, Workload, schedule_objective, workload
from tilewright.formulation.stopping import Stop
from tilewright.hardware.mapping.styles import dataflow
from tilewright.hardware.scheduling.herald.classes import accelerator_class, with_steps
from tilewright.report.records.scheduling.herald.codesign import codesign_document
from tilewright.solvers.observer import Observer, Unobserved
from tilewright.solvers.scheduling.herald.build import METRIC_OF
from tilewright.solvers.scheduling.herald.codesign import codesign_run


def codesign(
    work: Workload | str | Path,
    resources: str,
    *,
    dataflows: Sequence[str] = ("nvdla", "shidiannao"),
    objective: str = "edp",
    metric: str | None = None,
    search: str = "exhaustive",
    pe_step: int | None = None,
    bandwidth_step: int | None = None,
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
    dataflows : one per sub-accelerator
    objective, metric : as for `WorkloadOnSystem`
    search : ``exhaustive``, ``binary`` or ``random``: which splits are looked at
    pe_step, bandwidth_step : by which splits differ (PEs, GB/s); by default the class's own
    stop, threads, seed, observer : as for `solve`

    Raises
    ------
    InputError : for an unknown name, or steps that leave no split
    """
    budget, reported = read_budget(stop, threads, seed), observer or Unobserved()
    goal = schedule_objective(objective)
    with named_arguments(), interruptible() as event:
        chip = with_steps(accelerator_class(resources), pe_step, bandwidth_step)
        flows = [dataflow(name).name for name in dataflows]
        networks = (work if isinstance(work, Workload) else workload(work)).networks
        limits = budget.limits(event)
        run = codesign_run(
            networks, chip, flows, goal, limits, search, metric, reported=reported.point, note=reported.phase
        )
        result = run.run()
    settings = schedule_settings(EXACT, metric or METRIC_OF[goal], budget)
    return Codesign(codesign_document(networks, chip, flows, search, goal, result, settings))
