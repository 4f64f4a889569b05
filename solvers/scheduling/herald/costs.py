"""Cost tables: what every distinct layer costs on every sub-accelerator, in bulk and cached on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.foundation.database import DamagedError, LockedError, set_aside
from tilewright.foundation.errors import InputError, one_line
from tilewright.foundation.pool import Call, computed
from tilewright.hardware.mapping.styles import DataflowStyle
from tilewright.hardware.scheduling.herald.system import SubAccelerator, System
from tilewright.solvers.mapping.machine_sizes import METRICS, BestMapping, MachineSize, best_by_size
from tilewright.solvers.scheduling.herald.evidence import Cost, counted_cost
from tilewright.solvers.scheduling.herald.store import Costs, CostStore, costs_digest
from tilewright.workloads.mapping.operator import Operator

_FEW = 4  # layers whose costs are not worth a second process
_PATIENCE = 2.0  # seconds for a lock; whoever only writes a row is gone long before


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

    def cost(
        self, operator: Operator, flow: DataflowStyle, sub: SubAccelerator, system: System, metric: str
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
    anew: bool = False,
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
    anew : compute everything, whatever the file holds
    note : called with a line about rejected rows, or a locked file

    Raises
    ------
    LimitReachedError : where a limit struck
    """
    wanted: dict[tuple[str, int], tuple[DataflowStyle, set[MachineSize]]] = {}
    for system in systems:
        for sub in system.subs:
            for flow in sub.dataflows:
                _, points = wanted.setdefault((flow.name, tile_memory(sub, system)), (flow, set()))
                points.add(MachineSize(flow.array(sub.pes), sub.bandwidth))
    known: dict[tuple[Operator, str, int], Costs] = {}
    jobs: list[_Job] = []
    with _Shelf(folder, limits, note or (lambda line: None), anew=anew) as shelf:
        for operator in dict.fromkeys(operators):
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
    return CostTable(known)


class _Shelf:
    """The file of costs, for as long as it can be used: a lock that lasts is not waited for."""

    def __init__(
        self, folder: Path | None, limits: Limits, note: Callable[[str], None], *, anew: bool
    ) -> None:
        self._limits, self._note = limits, note
        self._patience = _PATIENCE if limits.remaining is None else min(_PATIENCE, limits.remaining / 8)
        self._store: CostStore | None = None
        self._false = 0
        self._folder = folder
        if not anew:
            self._open()

    def __enter__(self) -> _Shelf:
        return self

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()

    def _open(self, *, again: bool = False) -> None:
        try:
            self._store = CostStore(self._folder, lambda: self._patience, self._limits.stop)
        except DamagedError as error:
            self._replace(error, again=again)
        except InputError as error:
            self._leave(error)

    def _kept(self, work: Callable[[CostStore], Costs | None]) -> Costs:
        """What the file answers; nothing where it cannot be used, or is of no more use."""
        if self._store is None:
            return {}
        try:
            return work(self._store) or {}
        except DamagedError as error:
            self._replace(error)
        except InputError as error:
            self._leave(error)
        return {}

    def read(self, job: _Job, metric: str | None) -> Costs:
        """What is known of a layer; nothing where the file cannot be read.

        Parameters
        ----------
        metric : by which every cost of the job's points is counted again; where one does not hold, nothing is
            known of the layer
        """
        digest = costs_digest(job.operator, job.flow, job.memory)
        costs = self._kept(lambda store: store.read(digest))
        if metric is None:
            return costs
        for point in job.points:
            cost = costs.get((point, metric))
            if cost is not None and not self._limits.expired and not _holds(job, point, cost):
                self._false += 1
                self._kept(lambda store: store.forget(digest))
                return {}
        return costs

    def write(self, job: _Job, best: dict[tuple[MachineSize, str], BestMapping]) -> None:
        """Keep a job's answers where that is possible."""
        asked = [(point, metric) for point in job.points for metric in METRICS]
        digest = costs_digest(job.operator, job.flow, job.memory)
        self._kept(lambda store: store.write(digest, asked, best))

    def tell(self) -> None:
        """Report how many rows were rejected."""
        if self._store is not None and (count := self._false + self._store.refused):
            entries = "1 entry is" if count == 1 else f"{count} entries are"
            self._note(f"{self._store.path}: {entries} with a wrong hash, computed again")

    def _leave(self, error: InputError) -> None:
        self._close()
        why = "locked by another program" if isinstance(error, LockedError) else error.message
        self._note(f"{error.where}: {why}, costs are computed and not cached")

    def _replace(self, error: DamagedError, *, again: bool = False) -> None:
        """Set a damaged file aside and go on with a new one."""
        self._close()
        try:
            if again:
                raise OSError("a new one is damaged too")
            aside = set_aside(Path(error.where))
        except OSError as failure:
            self._note(
                f"{error.where}: {error.message} ({one_line(failure)}), costs are computed and not cached"
            )
            return
        self._note(f"{error.where}: {error.message}, set aside as {aside.name}; costs are computed again")
        self._open(again=True)

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None


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
