"""CP-SAT for schedules: bounds from relaxations on one thread, better schedules on another, until both meet.

Small problems are one CP-SAT model, solved to optimality.  For large ones that model finds neither good
schedules nor good bounds in a minute; there one thread raises the bound on relaxations (assignment first,
then with ever more of the long tasks sequenced) and another improves schedules by annealing and large
neighbourhoods.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version

from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    feasible_options,
)
from tilewright.formulation.scheduling.herald.schedule import make_schedule
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.heuristics.scheduling.herald.scheduler import (
    HeraldSettings,
    Ordering,
    greedy,
    herald,
    metric_of,
)
from tilewright.solvers.background import Background
from tilewright.solvers.cpsat_run import Values
from tilewright.solvers.scheduling.herald.improving import Improver
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds, lp_prices
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front
from tilewright.solvers.scheduling.herald.lower_bounds.relaxations import raise_bounds
from tilewright.solvers.scheduling.herald.running import run_model
from tilewright.solvers.scheduling.herald.statement import state
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing, tails

_WHOLE = 60  # tasks up to which the whole model is the first choice
_LARGEST = 2**62
_LOOK = 0.05  # seconds between looks at limits
_GRACE = 0.6  # seconds that threads have to come to an end


class CpSatScheduler:
    """Exact: CP-SAT with optional intervals, relaxations for bounds, annealing for large problems."""

    name = "cpsat"
    exact = True

    @property
    def version(self) -> str:
        return f"ortools {version('ortools')}"

    def solve(self, search: ScheduleSearch) -> Outcome:
        """Search until done; without a schedule where some task fits nowhere."""
        obstacle = search.problem.instance.obstacle
        if obstacle is not None:
            return Outcome(True, obstacle)
        options = feasible_options(search.problem.instance)
        front = basic_bounds(search, options)
        warm_start(search)
        if search.problem.objective is ScheduleObjective.ENERGY:
            _solve_energy(search, options)
            if search.problem.instance.keeps_results and len(options) <= _WHOLE and not search.done:
                _solve_whole(search, options)
        elif not search.done:
            if len(search.problem.instance.tasks) <= _WHOLE:
                _solve_whole(search, options)
            if not search.done:
                _solve_large(search, options, front)
        return Outcome()


def warm_start(search: ScheduleSearch) -> None:
    """Schedules by Herald's heuristics; the quickest one even where no time is left."""
    problem = search.problem.instance
    metric = metric_of(search.problem.objective)
    search.confirm(greedy(problem, metric), "greedy", origin=Origin.HEURISTIC)
    for ordering in Ordering:
        for balance in (metric, "cycles"):
            if search.limits.expired:
                return
            settings = HeraldSettings(balance, ordering, patience=0)
            schedule = herald(problem, settings, lambda: search.limits.expired)
            search.confirm(schedule, "herald", origin=Origin.HEURISTIC)


def _solve_energy(search: ScheduleSearch, options: Sequence[tuple[Option, ...]]) -> None:
    """The cheapest options; with context changes, the cheapest choice of them."""
    problem = search.problem.instance
    if not problem.context_energy:
        cheapest = [min(own, key=lambda o: (o.energy, o.cycles)) for own in options]
        annealing = ScheduleAnnealing(problem, [(option,) for option in cheapest], search.limits.seed)
        search.confirm(annealing.decode([0] * len(options), tails(problem, cheapest)), "cheapest options")
        return
    statement = state(problem, options, _horizon(problem, options), sequenced=())
    statement.model.minimize(statement.energy)

    def on_bound(bound: int) -> None:
        search.raise_bound(Fraction(bound, problem.energy_scale), "cpsat")

    run = run_model(statement, search, search.limits.threads, on_bound=on_bound)
    if run.has_solution:
        _, chosen = statement.placed(run.solver)
        ordered = [chosen[task] for task in range(len(options))]
        annealing = ScheduleAnnealing(problem, [(option,) for option in ordered], search.limits.seed)
        search.confirm(annealing.decode([0] * len(options), tails(problem, ordered)), "cpsat")


def _solve_whole(search: ScheduleSearch, options: Sequence[tuple[Option, ...]]) -> None:
    """The whole problem as one model."""
    problem = search.problem.instance
    assert search.answer is not None
    keeping = problem.keeps_results and search.problem.objective is not ScheduleObjective.MAKESPAN
    statement = state(problem, options, _horizon(problem, options), keeping=keeping)
    scale = 1
    if search.problem.objective is ScheduleObjective.MAKESPAN:
        statement.model.minimize(statement.makespan)
    else:
        scale = problem.energy_scale
        most = int(
            sum(max(o.energy + o.input_spill + o.output_spill for o in own) for own in options) * scale
        ) + int(len(problem.edges) * problem.context_energy * scale)
        horizon = _horizon(problem, options)
        if search.problem.objective is ScheduleObjective.ENERGY:
            horizon = 1  # of what is minimised, energy alone
        if most * horizon >= _LARGEST:
            return
        energy = statement.model.new_int_var(0, most, "energy")
        statement.model.add(energy == statement.energy)
        if search.problem.objective is ScheduleObjective.ENERGY:
            statement.model.minimize(energy)
        else:
            product = statement.model.new_int_var(0, most * horizon, "edp")
            statement.model.add_multiplication_equality(product, [energy, statement.makespan])
            statement.model.minimize(product)
    statement.hint(search.answer)

    def on_solution(values: Values) -> None:
        kept = {edge for edge, literal in statement.kept.items() if values.boolean_value(literal)}
        search.confirm(make_schedule(problem, *statement.placed(values), kept), "cpsat")

    def on_bound(bound: int) -> None:
        search.raise_bound(Fraction(bound, scale), "cpsat")

    run_model(statement, search, search.limits.threads, on_bound=on_bound, on_solution=on_solution)


def _solve_large(search: ScheduleSearch, options: Sequence[tuple[Option, ...]], front: Front) -> None:
    """Relaxations on one thread, better schedules on the other; where bounds no longer rise, on both.

    Whoever called gets control back soon after the search is done, even if a thread is still within
    CP-SAT's presolve or compiling for the first time.
    """
    prices = lp_prices(search.problem.instance, options, search.problem.objective, front, search.limits)
    first, second = (
        Improver(search.problem.instance, options, 2 * search.limits.seed + side, prices, walks=side == 1)
        for side in range(2)
    )

    sides = (
        Background(lambda: raise_bounds(search, options, front, second, prices), "bounds"),
        Background(lambda: first.run(search), "schedules"),
    )
    for side in sides:
        side.start()
    while not search.done and any(side.is_alive for side in sides):
        if any(side.failure is not None for side in sides):
            break
        sides[1].join(_LOOK)
        if not sides[1].is_alive:
            sides[0].join(_LOOK)
    until = time.monotonic() + _GRACE
    for side in sides:
        side.join(max(0.0, until - time.monotonic()))
    for side in sides:
        side.raise_failure()


def _horizon(problem: SchedulingProblem, options: Sequence[tuple[Option, ...]]) -> int:
    """Cycles within which some best schedule ends: everything one after the other, slowest first."""
    lags = problem.context_cycles * len(problem.edges)
    return lags + sum(max(o.cycles + o.fetch for o in own) for own in options)
