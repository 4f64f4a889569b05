"""Bounds by CP-SAT: relaxations in which only the longest tasks take turns, solved one after the other.

All tasks choose an option, keep to their chains and load their engines.  What is minimised is the makespan
or, for the product, also a weighted sum of energy and makespan, whose least value is a half-plane that holds
every schedule of least product.  Solutions are turned into schedules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from fractions import Fraction

from ortools.sat.python import cp_model

from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.cpsat_run import Values
from tilewright.solvers.scheduling.herald.improving import Improver
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front, raise_key
from tilewright.solvers.scheduling.herald.lower_bounds.heavy_chains import sequence_heavy_chains
from tilewright.solvers.scheduling.herald.lower_bounds.heavy_runs import sequence_heavy_runs
from tilewright.solvers.scheduling.herald.lower_bounds.long_tasks import LongTasks
from tilewright.solvers.scheduling.herald.lower_bounds.tight_horizons import TightHorizons
from tilewright.solvers.scheduling.herald.running import run_model
from tilewright.solvers.scheduling.herald.statement import state
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing, tails
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_CORES = (0, 24, 48, 96, 192)  # tasks sequenced, one relaxation after the other
_PATIENCE = 3.0  # seconds without a better bound, at first
_PATIENT = 0.1  # of the time that is left, if that is less
_NOTABLE = Fraction(1, 10**4)  # a bound that grows by less is reported when the model is done with
_WEIGHTS = (0.5, 1.0, 2.0)
_PLANES = 3  # half-planes from one relaxation
_LARGEST = 2**50  # of an objective: exact as a float


def raise_bounds(
    search: ScheduleSearch,
    options: Sequence[tuple[Option, ...]],
    front: Front,
    improver: Improver,
    prices: Sequence[Prices],
) -> None:
    """Bounds from heavy chains, long tasks, tight horizons, heavy runs, then with ever more sequenced.

    After each that hardly raises the bound, half of the time that is left goes into schedules.  All of them
    have their turn again, with twice the patience, but for horizons that gained nothing.

    Parameters
    ----------
    search : whose bound rises
    options : of every task
    front : what is known of energy and makespan; raised
    improver : what makes schedules in between
    prices : what engines and energy are worth
    """
    left = search.limits.remaining
    patience = _PATIENCE if left is None else min(_PATIENCE, _PATIENT * left)
    sequence_heavy_chains(search, options, front, improver.annealing)
    divisions = [LongTasks(search, options, own, front) for own in prices]
    for division in divisions:
        division.run(patience)
    horizons = [TightHorizons(search, options, own, front, improver.annealing) for own in prices]
    for horizon in horizons:
        horizon.run(patience)
    for own in prices:
        sequence_heavy_runs(search, options, own, front, improver.annealing)
    longest = sorted(range(len(options)), key=lambda t: -min(o.cycles for o in options[t]))
    sizes = [size for size in _CORES if size == 0 or size < 2 * len(longest)]
    relaxations: list[LongTasks | TightHorizons | Relaxation] = [
        *(horizon for horizon in horizons if horizon.gained),
        *(Relaxation(search, options, front, improver.annealing, longest[:size]) for size in sizes),
        *divisions,
    ]
    while not search.done:
        relaxations = [relaxation for relaxation in relaxations if not relaxation.solved]
        for relaxation in relaxations:
            begun, bound = search.limits.elapsed, search.bound or 0
            relaxation.run(patience)
            now = search.limits.elapsed
            if (search.bound or 0) <= bound * (1 + _NOTABLE):
                left = search.limits.remaining or 0.0
                improver.run(search, now + max(1.0, now - begun, left / 2))
        if not relaxations:
            improver.run(search)
        patience *= 2


class Relaxation:
    """One relaxation of a problem.

    Parameters
    ----------
    search : whose bound it raises
    options : of every task
    front : what is known of energy and makespan; raised
    annealing : what makes schedules near its solutions
    core : the tasks that are sequenced

    Attributes
    ----------
    solved : whether it can raise no bound any more
    """

    def __init__(
        self,
        search: ScheduleSearch,
        options: Sequence[tuple[Option, ...]],
        front: Front,
        annealing: ScheduleAnnealing,
        core: Sequence[int],
    ) -> None:
        self._search, self._options, self._front = search, options, front
        self._annealing, self._core = annealing, core
        self._source = f"relaxation, {len(core)} sequenced" if core else "assignment"
        self._shortest = False  # whether its least makespan is known
        self.solved = False

    def run(self, patience: float) -> None:
        """Raise bounds until none has risen for ``patience`` seconds."""
        if not self._shortest:
            self._shortest = self._minimize(Fraction(0), patience)
        if self._search.problem.objective is ScheduleObjective.MAKESPAN:
            self.solved = self._shortest
            return
        for _ in range(_PLANES):
            if self._search.done:
                return
            product, corner = self._front.least_product()
            complete = self._minimize(product / corner / corner, patience)
            if self._front.least_product()[0] <= product * (1 + _NOTABLE):
                self.solved = complete and self._shortest
                return

    def _minimize(self, slope: Fraction, patience: float) -> bool:
        """Least makespan, or least energy plus ``slope`` pJ per cycle; returns whether it is proven."""
        search, front = self._search, self._front
        assert search.evaluation is not None
        assert search.answer is not None
        horizon = search.evaluation.makespan if not slope else self._horizon()
        statement = state(search.problem.instance, self._options, horizon, sequenced=self._core)
        statement.hint(search.answer)
        least = -(-front.makespan.numerator // front.makespan.denominator)
        statement.model.add(statement.makespan >= least)
        unit = Fraction(1)
        if slope:
            most = sum(max(option.energy for option in own) for own in self._options) + slope * horizon
            unit = Fraction(1, search.problem.instance.energy_scale)  # pJ
            while most / unit > _LARGEST:
                unit *= 2  # energies are rounded down, so that it stays a bound
            statement.model.minimize(
                sum(
                    int(option.energy / unit) * literal
                    for own, literals in zip(self._options, statement.choices, strict=True)
                    for option, literal in zip(own, literals, strict=True)
                )
                + int(slope / unit) * statement.makespan
            )
        else:
            statement.model.minimize(statement.makespan)
        risen = [search.limits.elapsed]
        best = [0]

        def on_bound(bound: int) -> None:
            if bound > best[0] * (1 + _NOTABLE):
                risen[0], best[0] = search.limits.elapsed, bound
                self._raise(bound, slope, unit)

        def on_solution(values: Values) -> None:
            """Tasks that overlap in the relaxation are put one behind the other."""
            if search.done:
                return
            starts, chosen = statement.placed(values)
            for schedule in untangled(
                search.problem.instance, self._options, starts, chosen, self._core, self._annealing
            ):
                search.confirm(schedule, self._source, origin=Origin.HEURISTIC)

        run = run_model(
            statement,
            search,
            1,
            on_bound=on_bound,
            on_solution=on_solution,
            enough=lambda: search.limits.elapsed > risen[0] + patience,
        )
        if run.has_solution:
            self._raise(run.bound, slope, unit)
        return run.status == cp_model.OPTIMAL

    def _raise(self, bound: int, slope: Fraction, unit: Fraction) -> None:
        """Report what a bound on the model's objective means."""
        search, front = self._search, self._front
        if slope:
            front.add(1 / unit, Fraction(int(slope / unit)), Fraction(bound))
        elif bound > front.makespan:
            front.makespan = Fraction(bound)
        raise_key(search, front, self._source)

    def _horizon(self) -> int:
        """A makespan within which every schedule of least product ends, by the least energy of any."""
        search = self._search
        assert search.key is not None
        assert search.evaluation is not None
        if not self._front.energy:
            lags = search.problem.instance.context_cycles * len(search.problem.instance.edges)
            return lags + sum(max(o.cycles + o.fetch for o in own) for own in self._options)
        longest = search.key / self._front.energy
        return max(search.evaluation.makespan, int(longest) + 1)


def untangled(
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    starts: MappingABC[int, int],
    chosen: MappingABC[int, Option],
    core: Collection[int],
    annealing: ScheduleAnnealing,
) -> Iterator[Schedule]:
    """Legal schedules near a relaxed one: the sequenced tasks in its order, the others by their urgency.

    A task's urgency is what remains of its chain; how that compares with places in the order is tried out.

    Parameters
    ----------
    problem : to be scheduled
    options : of every task
    starts : of the relaxed schedule, cycles per task
    chosen : its option of every task
    core : the tasks that it sequences
    annealing : what makes schedules of options and priorities
    """
    ordered = [chosen[task] for task in range(len(options))]
    choice = [options[task].index(option) for task, option in enumerate(ordered)]
    urgency = tails(problem, ordered)
    span = max(starts[task] + option.cycles for task, option in chosen.items())
    fixed = frozenset(core)
    for weight in _WEIGHTS:
        priority = [
            float(span - starts[task]) if task in fixed else weight * urgency[task]
            for task in range(len(options))
        ]
        yield annealing.decode(choice, priority)
    yield annealing.decode(choice, urgency)
