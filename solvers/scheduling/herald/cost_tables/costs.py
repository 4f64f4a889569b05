"""Cost tables: what every distinct layer costs on every sub-accelerator, in bulk and cached on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.foundation.errors import InputError
from tilewright.foundation.pool import Call, computed
from tilewright.hardware.mapping.styles import DataflowStyle
from tilewright.hardware.scheduling.herald.system import SubAccelerator, System
from tilewright.hardware.scheduling.own_engine import Flow, OwnEngine
from tilewright.solvers.mapping.machine_sizes import METRICS, BestMapping, MachineSize, best_by_size
from tilewright.solvers.scheduling.herald.cost_tables.evidence import Cost, counted_cost
from tilewright.solvers.scheduling.herald.cost_tables.store import Costs, CostStore, costs_digest
from tilewright.solvers.scheduling.own_costs import MappingQuestion, best_mappings
from tilewright.solvers.scheduling.shelf import Shelf
from tilewright.workloads.mapping.operator import Operator

_FEW = 4  # layers whose costs are not worth a second process


@dataclass(frozen=True, slots=True)
class _Job:
    """One layer's costs under one dataflow, to be computed at many machine sizes."""

    operator: Operator
    flow: DataflowStyle
    memory: int
    points: tuple[MachineSize, ...]


class CostTable:
    """Costs by layer, dataflow, memory and point; built by `cost_table`."""

    def __init__(self, costs: dict[tuple[Operator, str, int], Costs]) -> None:
        self._costs = costs

    def updated(self, other: CostTable) -> CostTable:
        """This table with another's costs of the layers and dataflows that are in both."""
        return CostTable(self._costs | other._costs)

    def cost(
        self, operator: Operator, flow: Flow, sub: SubAccelerator, system: System, metric: str
    ) -> Cost | None:
        """The cost of a layer under one dataflow of a sub-accelerator; ``None`` where it does not fit.

        Parameters
        ----------
        operator : of the layer
        flow : the dataflow
        sub, system : where it runs
        metric : by which its mapping was chosen
        """
        point = MachineSize(flow.array(sub.pes), sub.bandwidth)
        return self._costs[operator, flow.name, tile_memory(sub, system)][point, metric]


def tile_memory(sub: SubAccelerator, system: System) -> int:
    """Bytes for the tiles of one layer: half of the share, the other half receives the next ones."""
    return int(system.memory_bytes * sub.share) // 2


def cost_table(
    operators: Iterable[Operator],
    systems: Sequence[System],
    limits: Limits,
    folder: Path | None = None,
    reported: Callable[[int, int], None] | None = None,
    *,
    metric: str | None = None,
    chosen: Sequence[str] = METRICS,
    anew: bool = False,
    continued: bool = True,
    note: Callable[[str], None] | None = None,
) -> CostTable:
    """Costs of all operators on all sub-accelerators of some systems, by every metric.

    Parameters
    ----------
    limits : time, threads (as processes) and the event that stops the work
    folder : where the tables are cached; by default the user's cache directory
    reported : called with the number of layers done, and of all
    metric : whatever the file says by this metric is questioned: its mapping is evaluated, a layer that it
        lets fit nowhere is computed again.  Without it costs are held against their seals alone
    chosen : metrics by which mappings on engines from machine files are searched; each is a search of its own
    anew : compute everything, whatever the file holds
    continued : whether searches on engines from machine files that ended without a proof are taken up again
    note : called with a line about rejected rows, or a locked file

    Raises
    ------
    LimitReachedError : where a limit struck
    """
    wanted: dict[tuple[str, int], tuple[DataflowStyle, set[MachineSize]]] = {}
    for system in systems:
        for sub in system.subs:
            for flow in sub.dataflows:
                if isinstance(flow, OwnEngine):
                    continue
                _, points = wanted.setdefault((flow.name, tile_memory(sub, system)), (flow, set()))
                points.add(MachineSize(flow.array(sub.pes), sub.bandwidth))
    distinct = list(dict.fromkeys(operators))
    known: dict[tuple[Operator, str, int], Costs] = {}
    jobs: list[_Job] = []
    with _Shelf(folder, limits, note or (lambda line: None), anew=anew) as shelf:
        for operator in distinct:
            stored = {
                (name, memory): shelf.read(_Job(operator, flow, memory, tuple(points)), metric)
                for (name, memory), (flow, points) in wanted.items()
            }
            if metric is not None and not any(
                costs.get((point, metric)) for place, costs in stored.items() for point in wanted[place][1]
            ):
                stored = {place: {} for place in stored}  # that it fits nowhere is not believed either
            for (name, memory), (flow, points) in wanted.items():
                costs = known[operator, name, memory] = stored[name, memory]
                missing = [p for p in points if any((p, asked) not in costs for asked in METRICS)]
                if missing:
                    ordered = sorted(missing, key=lambda p: (p.array, p.bandwidth))
                    jobs.append(_Job(operator, flow, memory, tuple(ordered)))
        shelf.tell()
        if reported is not None and jobs:
            reported(0, len(jobs))
        for done, (job, answers) in enumerate(_computed(jobs, limits)):
            shelf.write(job, answers)
            known[job.operator, job.flow.name, job.memory] |= _answers(job, answers)
            if reported is not None:
                reported(done + 1, len(jobs))
    _add_own_engines(known, distinct, systems, chosen, limits, folder, reported, note, anew, continued)
    return CostTable(known)


def _add_own_engines(
    known: dict[tuple[Operator, str, int], Costs],
    operators: Sequence[Operator],
    systems: Sequence[System],
    metrics: Sequence[str],
    limits: Limits,
    folder: Path | None,
    reported: Callable[[int, int], None] | None,
    note: Callable[[str], None] | None,
    anew: bool,
    continued: bool,
) -> None:
    """Costs on engines from machine files, each counted from its mapping.

    Parameters
    ----------
    known : to which they are added
    metrics : by which mappings are searched
    """
    places = {
        (flow.name, tile_memory(sub, system), sub.bandwidth): (
            flow,
            MachineSize(flow.array(sub.pes), sub.bandwidth),
        )
        for system in systems
        for sub in system.subs
        for flow in sub.dataflows
        if isinstance(flow, OwnEngine)
    }
    questions = {
        (operator, *place, metric): MappingQuestion(
            operator, flow.inside(place[2], place[1]), metric, flow.fixes(operator)
        )
        for operator in operators
        for place, (flow, _) in places.items()
        for metric in metrics
    }
    if not questions:
        return
    answers = best_mappings(
        questions.values(),
        limits,
        folder,
        reported or (lambda *_: None),
        note or (lambda line: None),
        anew=anew,
        continued=continued,
    )
    for (operator, name, memory, bandwidth, metric), question in questions.items():
        flow, point = places[name, memory, bandwidth]
        answer = answers[question]
        cost = None
        if answer.mapping is not None:
            cost = counted_cost(operator, flow, point, memory, answer.mapping)
            cost = replace(cost, proven=answer.proven)
        known.setdefault((operator, name, memory), {})[point, metric] = cost


class _Shelf(Shelf[CostStore]):
    """The file of cost tables, by jobs."""

    def __init__(
        self, folder: Path | None, limits: Limits, note: Callable[[str], None], *, anew: bool
    ) -> None:
        self._limits = limits
        super().__init__(lambda patience: CostStore(folder, patience, limits.stop), limits, note, anew=anew)

    def __enter__(self) -> _Shelf:
        return self

    def read(self, job: _Job, metric: str | None) -> Costs:
        """What is known of a layer; nothing where the file cannot be read.

        Parameters
        ----------
        metric : by which every cost of the job's points is counted again; where one does not hold, nothing is
            known of the layer
        """
        digest = costs_digest(job.operator, job.flow, job.memory)
        costs: Costs = self.ask(lambda store: store.read(digest), {})
        if metric is None:
            return costs
        for point in job.points:
            cost = costs.get((point, metric))
            if cost is not None and not self._limits.expired and not _holds(job, point, cost):
                self.rejected += 1
                self.ask(lambda store: store.forget(digest), None)
                return {}
        return costs

    def write(self, job: _Job, best: dict[tuple[MachineSize, str], BestMapping]) -> None:
        """Keep a job's answers where that is possible."""
        asked = [(point, metric) for point in job.points for metric in METRICS]
        digest = costs_digest(job.operator, job.flow, job.memory)
        self.ask(lambda store: store.write(digest, asked, best), None)


def _holds(job: _Job, point: MachineSize, cost: Cost) -> bool:
    """Whether the evaluator finds this cost for its mapping."""
    try:
        return counted_cost(job.operator, job.flow, point, job.memory, cost.mapping) == cost
    except InputError:
        return False


def _answers(job: _Job, best_mappings: dict[tuple[MachineSize, str], BestMapping]) -> Costs:
    """A job's answers as costs; ``None`` where nothing fits."""
    answers: Costs = {}
    for point in job.points:
        for metric in METRICS:
            best = best_mappings.get((point, metric))
            answers[point, metric] = (
                None
                if best is None
                else Cost(best.energy, best.cycles, best.memory, best.weights, best.mapping)
            )
    return answers


def _computed(
    jobs: Sequence[_Job], limits: Limits
) -> Iterator[tuple[_Job, dict[tuple[MachineSize, str], BestMapping]]]:
    """Compute the costs of all jobs, in processes of their own where that pays."""
    workers = min(limits.threads, len(jobs))
    if workers < 2 or len(jobs) <= _FEW:
        for job in jobs:
            if limits.expired:
                raise LimitReachedError
            yield job, _compute(job)
        return
    rest = iter(jobs)

    def call() -> Call[_Job] | None:
        job = next(rest, None)
        return None if job is None else Call(job, (job,))

    left = len(jobs)
    with closing(computed(_compute, call, workers, lambda: limits.expired)) as answers:
        for job, future in answers:
            yield job, future.result()
            left -= 1
    if left:
        raise LimitReachedError


def _compute(job: _Job) -> dict[tuple[MachineSize, str], BestMapping]:
    return best_by_size(job.operator, job.flow, job.memory, job.points)


def fetch_cycles(weights: int, sub: SubAccelerator, system: System) -> int:
    """Cycles to bring a layer's first weights from DRAM over the sub-accelerator's part of the wires."""
    rate: Fraction = system.dram_bandwidth * sub.bandwidth / system.bandwidth
    return -(-weights * rate.denominator // rate.numerator)
