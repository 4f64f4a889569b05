"""Cost tables: what every distinct layer costs on every sub-accelerator, in bulk and kept on disk."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tilewright.formulation.search import Limits
from tilewright.hardware.mapping.styles import Dataflow
from tilewright.hardware.scheduling.herald.system import SubAccelerator, System
from tilewright.solvers.mapping.machine_sizes import METRICS, Point, Surveyed, survey
from tilewright.solvers.processes import leave_with_parent
from tilewright.solvers.scheduling.herald.store import Cost, Costs, CostStore, survey_hash
from tilewright.workloads.mapping.operator import Operator

_FEW = 4  # surveys that are not worth a second process
_STEP = 0.1


class OutOfTimeError(RuntimeError):
    """The time limit struck before all costs were known."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One survey that is to be made."""

    name: str
    operator: Operator
    flow: Dataflow
    memory: int
    points: tuple[Point, ...]


class CostTable:
    """Costs by layer, dataflow, memory and point; built by `cost_table`."""

    def __init__(self, costs: dict[tuple[Operator, str, int], Costs]) -> None:
        self._costs = costs

    def cost(
        self, operator: Operator, flow: Dataflow, sub: SubAccelerator, system: System, metric: str
    ) -> Cost | None:
        """The cost of a layer under one dataflow of a sub-accelerator; ``None`` where it does not fit."""
        point = Point(flow.array(sub.pes), sub.bandwidth)
        return self._costs[operator, flow.name, tile_memory(sub, system)][point, metric]


def tile_memory(sub: SubAccelerator, system: System) -> int:
    """Bytes for the tiles of one layer: half of the share, the other half receives the next ones."""
    return int(system.memory_bytes * sub.share) // 2


def cost_table(
    operators: Iterable[Operator],
    systems: Sequence[System],
    limits: Limits,
    folder: Path | None = None,
    told: Callable[[int, int], None] | None = None,
) -> CostTable:
    """Costs of all operators on all sub-accelerators of some systems, by every metric.

    Parameters
    ----------
    limits : time, threads (as processes) and the event that stops the work
    folder : where the tables are kept; by default the user's cache directory
    told : called with the number of surveys done, and of all

    Raises
    ------
    OutOfTimeError : where a limit struck
    """
    wanted: dict[tuple[str, int], tuple[Dataflow, set[Point]]] = {}
    for system in systems:
        for sub in system.subs:
            for flow in sub.dataflows:
                _, points = wanted.setdefault((flow.name, tile_memory(sub, system)), (flow, set()))
                points.add(Point(flow.array(sub.pes), sub.bandwidth))
    known: dict[tuple[Operator, str, int], Costs] = {}
    jobs: list[_Job] = []
    with CostStore(folder) as store:
        for operator in dict.fromkeys(operators):
            for (name, memory), (flow, points) in wanted.items():
                survey_name = survey_hash(operator, flow, memory)
                costs = known[operator, name, memory] = store.read(survey_name)
                missing = [p for p in points if any((p, metric) not in costs for metric in METRICS)]
                if missing:
                    ordered = sorted(missing, key=lambda p: (p.array, p.bandwidth))
                    jobs.append(_Job(survey_name, operator, flow, memory, tuple(ordered)))
        if told is not None and jobs:
            told(0, len(jobs))
        for done, (job, found) in enumerate(_surveys(jobs, limits)):
            asked = [(point, metric) for point in job.points for metric in METRICS]
            store.write(job.name, asked, found)
            known[job.operator, job.flow.name, job.memory] = store.read(job.name)
            if told is not None:
                told(done + 1, len(jobs))
    return CostTable(known)


def _surveys(
    jobs: Sequence[_Job], limits: Limits
) -> Iterator[tuple[_Job, dict[tuple[Point, str], Surveyed]]]:
    """Make the surveys, in processes of their own where that pays."""
    workers = min(limits.threads, len(jobs))
    if workers < 2 or len(jobs) <= _FEW:
        for job in jobs:
            if limits.expired:
                raise OutOfTimeError
            yield job, _survey(job)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=leave_with_parent) as pool:
        running: dict[Future[dict[tuple[Point, str], Surveyed]], _Job] = {}
        rest = iter(jobs)
        try:
            while True:
                while len(running) < 2 * workers and (new := next(rest, None)) is not None:
                    running[pool.submit(_survey, new)] = new
                if not running:
                    return
                finished, _ = wait(running, _STEP, FIRST_COMPLETED)
                for future in finished:
                    yield running.pop(future), future.result()
                if limits.expired:
                    raise OutOfTimeError
        except BaseException:
            for process in [*pool._processes.values()]:  # a survey may take seconds
                process.terminate()
            raise


def _survey(job: _Job) -> dict[tuple[Point, str], Surveyed]:
    return survey(job.operator, job.flow, job.memory, job.points)


def fetch_cycles(weights: int, sub: SubAccelerator, system: System) -> int:
    """Cycles to bring a layer's first weights from DRAM over the sub-accelerator's part of the wires."""
    rate: Fraction = system.dram_bandwidth * sub.bandwidth / system.bandwidth
    return -(-weights * rate.denominator // rate.numerator)
