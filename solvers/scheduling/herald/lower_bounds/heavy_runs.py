"""A relaxation that sequences the heaviest runs and takes all others for work that is done at any time.

Where a few runs are most of the work, what limits a schedule is which of their tasks an engine takes and
when.  A model of them alone is small.  What the others cost the engines is bounded by weights: for any
weights of engines, every task costs at least its cheapest option.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ortools.sat.python import cp_model

from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.cpsat_run import CpSatRun, Values
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front, raise_cost
from tilewright.solvers.scheduling.herald.statement import symmetric_pairs
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing, tails
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_TASKS = 64  # of the heaviest runs, at most, but for the first one
_HEAVY = 0.25  # of the work, that they must be
_GRAIN = 10**4  # in which weights of engines are counted
_FACTORS = (1.001, 1.003, 1.01, 1.03, 1.1, 1.3, 2.0, 5.0)  # by which an engine's weight changes
_PART = 0.05  # of the time that is left, for the model and for the walk from its schedule
_SHIFTS = 0.5, 1.0, 2.0  # weights of urgency of the tasks that are not sequenced
_LARGEST = 2**62  # of a row of the model
_SOURCE = "heavy runs"


@dataclass(frozen=True)
class HeavyRuns:
    """The model.

    Parameters
    ----------
    model : minimises cycles of makespan, plus energy at its price, rounded down for every option
    starts, choices : per task of the heavy runs, its start; its options, each with its literal
    weights : of engines, by which work of the other tasks is bounded, as whole numbers
    """

    model: cp_model.CpModel
    starts: dict[int, cp_model.IntVar]
    choices: dict[int, list[tuple[Option, cp_model.IntVar]]]
    weights: tuple[tuple[int, ...], ...]


def heavy_tasks(
    problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], prices: Prices
) -> tuple[int, ...]:
    """The tasks of the heaviest runs; none where even those are little of all work.

    Parameters
    ----------
    problem : whose runs are weighed
    options : of every task
    prices : what engines and energy are worth
    """
    work = {
        run: sum(min(map(prices.of, options[task])) for task in tasks)
        for run, tasks in problem.instances.items()
    }
    heavy: list[int] = []
    weight = 0.0
    for run in sorted(work, key=lambda run: -work[run]):
        if heavy and len(heavy) + len(problem.instances[run]) > _TASKS:
            break
        heavy += problem.instances[run]
        weight += work[run]
    return tuple(heavy) if weight >= _HEAVY * sum(work.values()) else ()


def state_heavy(
    problem: SchedulingProblem,
    options: Sequence[tuple[Option, ...]],
    prices: Prices,
    heavy: Sequence[int],
    most: int,
) -> HeavyRuns:
    """The model of what costs at most ``most``.

    Parameters
    ----------
    options : of every task
    prices : of which that of energy counts; all of them say which weights are tried
    heavy : tasks that are sequenced
    most : cycles of makespan plus energy at its price
    """
    model = cp_model.CpModel()
    makespan = model.new_int_var(0, most, "makespan")
    engines = range(len(problem.engines))
    inside = frozenset(heavy)
    starts = {task: model.new_int_var(0, most, f"start{task}") for task in heavy}
    choices: dict[int, list[tuple[Option, cp_model.IntVar]]] = {}
    durations: dict[int, cp_model.LinearExpr | int] = {}
    running: list[list[cp_model.IntervalVar]] = [[] for _ in engines]
    loads: list[list[cp_model.LinearExpr | int]] = [[] for _ in engines]
    spent: list[cp_model.LinearExpr | int] = []
    for task in heavy:
        choices[task] = [(option, model.new_bool_var("")) for option in options[task]]
        model.add_exactly_one(literal for _, literal in choices[task])
        for option, literal in choices[task]:
            run = model.new_optional_fixed_size_interval_var(starts[task], option.cycles, literal, "")
            running[option.engine].append(run)
            loads[option.engine].append(option.cycles * literal)
            spent.append(_energy(option, prices) * literal)
        durations[task] = sum(option.cycles * literal for option, literal in choices[task])
        model.add(starts[task] + durations[task] <= makespan)
    for first, second in problem.edges:
        if first in inside and second in inside:
            model.add(starts[second] >= starts[first] + durations[first])
    for first, second in symmetric_pairs(problem):
        if first in inside and second in inside:
            model.add(starts[first] <= starts[second])
    others = [own for task, own in enumerate(options) if task not in inside]
    work = [model.new_int_var(0, most, "") for _ in engines]
    energy = model.new_int_var(0, most, "")
    for engine in engines:
        model.add_no_overlap(running[engine])
        model.add(sum(loads[engine]) + work[engine] <= makespan)
    weights = engine_weights(prices)
    for row in weights:
        least = sum(
            min(row[o.engine] * o.cycles + _GRAIN * _energy(o, prices) for o in own) for own in others
        )
        model.add(sum(weight * own for weight, own in zip(row, work, strict=True)) + _GRAIN * energy >= least)
    cost = makespan + sum(spent) + energy
    model.add(cost <= most)
    model.minimize(cost)
    return HeavyRuns(model, starts, choices, weights)


def _energy(option: Option, prices: Prices) -> int:
    """Cycles that an option's energy is worth, rounded down."""
    return int(Fraction(prices.energy) * option.energy)


def engine_weights(prices: Prices) -> tuple[tuple[int, ...], ...]:
    """Whole weights of engines around their prices."""
    base = [max(1, round(_GRAIN * price)) for price in prices.engines]
    rows = {tuple(base): None}
    for engine, weight in enumerate(base):
        for factor in _FACTORS:
            for changed in (weight * factor, weight / factor):
                rows[*base[:engine], max(1, round(changed)), *base[engine + 1 :]] = None
    return tuple(rows)


def sequence_heavy_runs(
    search: ScheduleSearch,
    options: Sequence[tuple[Option, ...]],
    prices: Prices,
    front: Front,
    annealing: ScheduleAnnealing,
) -> None:
    """Raise the bound by the relaxation, and make a schedule of its solution.

    Parameters
    ----------
    search : of a makespan or a product
    options : of every task
    prices : what engines and energy are worth
    front : what is known of energy and makespan; raised
    annealing : what makes schedules, and improves them
    """
    problem = search.problem.instance
    heavy = heavy_tasks(problem, options, prices)
    left = search.limits.remaining
    if not heavy or left is None or search.evaluation is None or search.done:
        return
    price = Fraction(prices.energy)
    most = math.ceil(search.evaluation.makespan + price * search.evaluation.energy)
    if _GRAIN * math.ceil(_FACTORS[-1]) * most * (len(problem.engines) + 1) >= _LARGEST:
        return
    statement = state_heavy(problem, options, prices, heavy, most)
    solutions: list[tuple[dict[int, int], dict[int, Option]]] = []

    def on_solution(values: Values) -> None:
        chosen = {
            task: next(option for option, literal in own if values.boolean_value(literal))
            for task, own in statement.choices.items()
        }
        solutions[:] = [({task: values.value(start) for task, start in statement.starts.items()}, chosen)]

    def on_bound(bound: int) -> None:
        raise_cost(search, front, price, Fraction(min(bound, most)), _SOURCE)

    run = CpSatRun(
        statement.model,
        search.limits,
        lambda: search.done,
        on_solution,
        on_bound,
        workers=1,
        seconds=_PART * left,
    )
    run.solve()
    search.doubt(run.doubt)
    if not run.has_solution:
        return
    on_bound(run.bound)
    starts, chosen = solutions[0]
    chosen |= _others(options, prices, statement, chosen)
    ordered = [chosen[task] for task in range(len(options))]
    urgency, span = tails(problem, ordered), float(most)
    choice = [own.index(option) for own, option in zip(options, ordered, strict=True)]
    schedules = [
        annealing.decode(
            choice,
            [
                2 * span - starts[task] if task in starts else shift * urgency[task]
                for task in range(len(options))
            ],
        )
        for shift in _SHIFTS
    ]
    best = min(schedules, key=lambda schedule: schedule.makespan)
    search.confirm(best, _SOURCE, origin=Origin.HEURISTIC)
    end = search.limits.elapsed + _PART * (search.limits.remaining or 0.0)
    annealing.polish(search, annealing.lines_of(best), _SOURCE, end)


def _others(
    options: Sequence[tuple[Option, ...]], prices: Prices, statement: HeavyRuns, chosen: dict[int, Option]
) -> dict[int, Option]:
    """Options of all other tasks: the cheapest by those weights that leave the fullest engine least work."""
    loads = [0] * len(prices.engines)
    for option in chosen.values():
        loads[option.engine] += option.cycles
    least: tuple[int, dict[int, Option]] | None = None
    for row in statement.weights:
        total, own = loads.copy(), dict[int, Option]()
        energy = 0
        for task, choice in enumerate(options):
            if task not in chosen:
                own[task] = min(choice, key=lambda o: row[o.engine] * o.cycles + _GRAIN * _energy(o, prices))
                total[own[task].engine] += own[task].cycles
                energy += _energy(own[task], prices)
        if least is None or max(total) + energy < least[0]:
            least = max(total) + energy, own
    assert least is not None
    return least[1]
