"""CP-SAT with company: bounds from relaxations on one side, better schedules on the other, until they meet.

Small problems are one CP-SAT model, solved to optimality.  For large ones that model finds neither good
schedules nor good bounds in a minute; there one thread raises the bound on relaxations (assignment first,
then with ever more of the long tasks sequenced) and another improves schedules by annealing, from the
best of several heuristics.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib.metadata import version

from ortools.sat.python import cp_model

from tilewright.formulation.scheduling.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.schedule import Schedule, make_schedule
from tilewright.formulation.scheduling.search import ScheduleSearch
from tilewright.heuristics.herald import HeraldSettings, Ordering, greedy, herald, metric_of
from tilewright.solvers.scheduling.annealing import Annealing, tails
from tilewright.solvers.scheduling.bounds import basic_bounds
from tilewright.solvers.scheduling.front import Front
from tilewright.solvers.scheduling.statement import ScheduleStatement, state

_WHOLE = 60  # tasks up to which the whole model is the first choice
_LARGEST = 2**62
_EXACT, _COARSE = 2**53, 2**-50
_CORES = (0, 24, 48, 96, 192)  # tasks sequenced in the relaxations, one after the other
_JOIN = 0.05
_WEIGHTS = (0.5, 1.0, 2.0)
_NOTABLE = Fraction(1, 10**4)  # a bound that grows by less is told when the model is done with


class CpSatScheduler:
    """Exact: CP-SAT with optional intervals, relaxations for bounds, annealing for large problems."""

    name = "cpsat"
    exact = True

    @property
    def version(self) -> str:
        return f"ortools {version('ortools')}"

    def solve(self, search: ScheduleSearch) -> str:
        """Search until done; returns why there is no schedule, or an empty text."""
        obstacle = search.problem.obstacle
        if obstacle is not None:
            return obstacle
        options = feasible_options(search.problem)
        warm_start(search)
        front = basic_bounds(search, options)
        if search.objective is ScheduleObjective.ENERGY:
            _solve_energy(search, options)
        elif not search.done:
            if len(search.problem.tasks) <= _WHOLE:
                _solve_whole(search, options)
            if not search.done:
                _solve_large(search, options, front)
        return ""


def warm_start(search: ScheduleSearch) -> None:
    """Schedules by Herald's heuristics; the first one even where no time is left."""
    problem = search.problem
    metric = metric_of(search.objective)
    for ordering in Ordering:
        for balance in (metric, "cycles"):
            if search.limits.expired and search.schedule is not None:
                return
            search.offer(
                herald(problem, HeraldSettings(balance, ordering, patience=0)), "herald", heuristic=True
            )
    search.offer(greedy(problem, metric), "greedy", heuristic=True)


class _Told(cp_model.CpSolverSolutionCallback):
    """Passes solutions on."""

    def __init__(self, use: Callable[[cp_model.CpSolverSolutionCallback], None]) -> None:
        super().__init__()
        self._use = use

    def on_solution_callback(self) -> None:
        self._use(self)


def run_model(
    statement: ScheduleStatement,
    search: ScheduleSearch,
    workers: int,
    seconds: float | None = None,
    on_bound: Callable[[int], None] | None = None,
    on_solution: Callable[[cp_model.CpSolverSolutionCallback], None] | None = None,
) -> tuple[cp_model.CpSolverStatus, cp_model.CpSolver]:
    """Solve a model until a limit strikes or the search is done; returns status and solver."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = search.limits.seed
    solver.parameters.catch_sigint_signal = False
    solver.parameters.relative_gap_limit = 0.0
    left = search.limits.remaining
    if left is not None or seconds is not None:
        solver.parameters.max_time_in_seconds = max(0.01, min(x for x in (left, seconds) if x is not None))
    if on_bound is not None:
        solver.best_bound_callback = lambda bound: on_bound(_integer(bound))
    outcome: list[cp_model.CpSolverStatus] = []
    told = None if on_solution is None else _Told(on_solution)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(solver.solve(statement.model, told))
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_JOIN)
        if search.done:
            solver.stop_search()
    if failures:
        raise failures[0]
    if on_bound is not None and outcome[0] in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        on_bound(_integer(solver.best_objective_bound))
    return outcome[0], solver


def _read(
    statement: ScheduleStatement, callback: cp_model.CpSolverSolutionCallback
) -> tuple[dict[int, int], dict[int, Option]]:
    """Starts and options of a solution that has just been found."""
    starts = {task: callback.value(start) for task, start in enumerate(statement.starts)}
    chosen = {
        task: statement.options[task][[callback.boolean_value(x) for x in literals].index(True)]
        for task, literals in enumerate(statement.choices)
    }
    return starts, chosen


def _integer(bound: float) -> int:
    """The bound on an integer objective that CP-SAT gives as a float; lowered where floats are coarser."""
    return round(bound) if abs(bound) < _EXACT else int(bound * (1 - _COARSE))


def _solve_energy(search: ScheduleSearch, options: Sequence[tuple[Option, ...]]) -> None:
    """The cheapest options; with context changes, the cheapest choice of them."""
    problem = search.problem
    if not problem.context_energy:
        cheapest = [min(own, key=lambda o: (o.energy, o.cycles)) for own in options]
        annealing = Annealing(problem, [(option,) for option in cheapest], search.limits.seed)
        search.offer(annealing.decode([0] * len(options), tails(problem, cheapest)), "cheapest options")
        return
    statement = state(problem, options, _horizon(problem, options), sequenced=())
    statement.model.minimize(statement.energy)

    def on_bound(bound: int) -> None:
        search.raise_bound(Fraction(bound, problem.energy_scale), "cpsat")

    status, solver = run_model(statement, search, search.limits.threads, on_bound=on_bound)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        _, chosen = statement.placed(solver)
        ordered = [chosen[task] for task in range(len(options))]
        annealing = Annealing(problem, [(option,) for option in ordered], search.limits.seed)
        search.offer(annealing.decode([0] * len(options), tails(problem, ordered)), "cpsat")


def _solve_whole(search: ScheduleSearch, options: Sequence[tuple[Option, ...]]) -> None:
    """The whole problem as one model."""
    problem = search.problem
    assert search.schedule is not None
    statement = state(problem, options, _horizon(problem, options))
    scale = 1
    if search.objective is ScheduleObjective.MAKESPAN:
        statement.model.minimize(statement.makespan)
    else:
        scale = problem.energy_scale
        most = int(sum(max(o.energy for o in own) for own in options) * scale) + int(
            len(problem.edges) * problem.context_energy * scale
        )
        horizon = _horizon(problem, options)
        if most * horizon >= _LARGEST:
            return
        energy = statement.model.new_int_var(0, most, "energy")
        statement.model.add(energy == statement.energy)
        product = statement.model.new_int_var(0, most * horizon, "edp")
        statement.model.add_multiplication_equality(product, [energy, statement.makespan])
        statement.model.minimize(product)
    statement.hint(search.schedule)

    def on_solution(callback: cp_model.CpSolverSolutionCallback) -> None:
        search.offer(make_schedule(problem, *_read(statement, callback)), "cpsat")

    def on_bound(bound: int) -> None:
        search.raise_bound(Fraction(bound, scale), "cpsat")

    status, solver = run_model(
        statement, search, search.limits.threads, on_bound=on_bound, on_solution=on_solution
    )
    if status == cp_model.OPTIMAL:  # exact, where the bound above is a float
        spent = Fraction(int(solver.value(statement.energy)), problem.energy_scale)
        search.raise_bound(search.objective.of(int(solver.value(statement.makespan)), spent), "cpsat")


def _solve_large(search: ScheduleSearch, options: Sequence[tuple[Option, ...]], front: Front) -> None:
    """Relaxations and annealing side by side."""
    failures: list[BaseException] = []

    def bound_side() -> None:
        try:
            _raise_bounds(search, options, front, annealing)
        except BaseException as failure:
            failures.append(failure)

    annealing = Annealing(search.problem, options, search.limits.seed)
    thread = threading.Thread(target=bound_side, daemon=True)
    thread.start()
    metric = metric_of(search.objective)
    for ordering in Ordering:
        if not search.done:
            schedule = herald(search.problem, HeraldSettings(metric, ordering), lambda: search.done)
            search.offer(schedule, "herald", heuristic=True)
    annealing.run(search)
    thread.join()
    if failures:
        raise failures[0]


def _raise_bounds(
    search: ScheduleSearch,
    options: Sequence[tuple[Option, ...]],
    front: Front,
    annealing: Annealing,
) -> None:
    """Relaxations with more and more tasks sequenced, the long ones first."""
    longest = sorted(range(len(options)), key=lambda t: -min(o.cycles for o in options[t]))
    for size in _CORES:
        if search.done or (size and size > 2 * len(longest)):
            return
        _raise_makespan(search, options, front, annealing, longest[:size])


def _raise_makespan(
    search: ScheduleSearch,
    options: Sequence[tuple[Option, ...]],
    front: Front,
    annealing: Annealing,
    core: Sequence[int],
) -> None:
    problem = search.problem
    assert search.evaluation is not None
    assert search.schedule is not None
    statement = state(problem, options, search.evaluation.makespan, sequenced=core)
    statement.hint(search.schedule)
    statement.model.minimize(statement.makespan)
    statement.model.add(statement.makespan >= -(-front.makespan.numerator // front.makespan.denominator))

    def raise_to(bound: int) -> None:
        if bound > front.makespan:
            front.makespan = Fraction(bound)
            by_makespan = search.objective is ScheduleObjective.MAKESPAN
            search.raise_bound(bound if by_makespan else front.least_product()[0], source_name)

    def on_bound(bound: int) -> None:
        if bound > front.makespan * (1 + _NOTABLE):
            raise_to(bound)

    def on_solution(callback: cp_model.CpSolverSolutionCallback) -> None:
        """Tasks that overlap in the relaxation are put one behind the other."""
        starts, chosen = _read(statement, callback)
        found = [*untangled(problem, options, starts, chosen, core, annealing)]
        values = [search.offer(schedule, source_name, heuristic=True) for schedule in found]
        latest[:] = [found[values.index(min(values))]]

    latest: list[Schedule] = []
    source_name = f"relaxation, {len(core)} sequenced" if core else "assignment"
    left = search.limits.remaining
    status, solver = run_model(
        statement, search, 1, None if left is None else left / 2, on_bound=on_bound, on_solution=on_solution
    )
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise_to(_integer(solver.best_objective_bound))
    for schedule in latest:
        annealing.suggest(schedule)


def untangled(
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    starts: Mapping[int, int],
    chosen: Mapping[int, Option],
    core: Collection[int],
    annealing: Annealing,
) -> Iterator[Schedule]:
    """Legal schedules near a relaxed one: the sequenced tasks in its order, the others by their urgency.

    A task's urgency is what remains of its chain; how that compares with places in the order is tried out.
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


def _horizon(problem: SchedulingProblem, options: Sequence[tuple[Option, ...]]) -> int:
    """Cycles within which some best schedule ends: everything one after the other, slowest first."""
    lags = problem.context_cycles * len(problem.edges)
    return lags + sum(max(o.cycles + o.fetch for o in own) for own in options)
