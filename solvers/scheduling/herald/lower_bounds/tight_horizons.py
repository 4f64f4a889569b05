"""Bounds by contradiction: no schedule ends within a horizon that is little longer than what is proven.

Where few runs are most of the work, some of them can hardly wait, and a tight horizon leaves each of their
tasks few cycles to begin in and few options.  What contradicts it is then found after some hundred conflicts,
while a search for the least makespan, below the incumbent's, has nothing to hold on to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

from ortools.sat.python import cp_model

from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.cpsat_run import CpSatRun, Values
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front, raise_cost
from tilewright.solvers.scheduling.herald.statement import symmetric_pairs
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_MOST = 1000  # tasks, beyond which models are too large
_STEP, _LEAST = Fraction(1, 1000), Fraction(1, 8000)  # above what is proven; at first, and at least
_FIRST = 1 / 3  # of the patience, until one is contradicted: elsewhere the first horizon takes all of it
_EACH = 1 / 2  # of the patience, for each later one
_SLOWER = 4  # steps are divided by it where one takes too long, and doubled where not
_ORDERED = 24  # longest tasks, of which any two of different runs have an order
_GRAIN = 10**4  # in which weights of engines are counted
_LARGEST = 2**60 // _GRAIN  # cycles of all tasks, of which rows are added up
_SOURCE = "tight horizons"


@dataclass(frozen=True)
class Within:
    """A model without an objective.

    Parameters
    ----------
    starts, choices : per task, its start; its options, each with its literal
    """

    model: cp_model.CpModel
    starts: list[cp_model.IntVar]
    choices: list[list[tuple[Option, cp_model.IntVar]]]


def state_within(
    problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], prices: Prices, most: int
) -> Within:
    """The model of all schedules that cost at most so much, beside fetches, memory and context changes.

    For whole weights ``w`` of engines, ``W`` together, a schedule of makespan ``T`` has ``W T >= sum over
    tasks of w_engine cycles``.  What tasks cost by ``w`` beyond their cheapest options is therefore at most
    what all at their cheapest ones leave of ``W most``: a row that tells which options are too dear together.

    Parameters
    ----------
    options : of every task
    prices : of which that of energy counts; those of engines are the weights of the row
    most : cycles of makespan, plus energy at its price, rounded down for every option
    """
    model = cp_model.CpModel()
    price = Fraction(prices.energy)
    makespan: cp_model.LinearExpr | int = model.new_int_var(0, most, "") if price else most
    running: list[list[cp_model.IntervalVar]] = [[] for _ in problem.engines]
    loads: list[list[cp_model.LinearExpr]] = [[] for _ in problem.engines]
    weights = [round(_GRAIN * share) for share in prices.engines]
    total = sum(weights)
    left, dearer = total * most, list[tuple[int, cp_model.IntVar]]()
    starts: list[cp_model.IntVar] = []
    choices: list[list[tuple[Option, cp_model.IntVar]]] = []
    spent: list[cp_model.LinearExpr] = []
    durations: list[cp_model.LinearExpr | int] = []
    for own in options:
        start = model.new_int_var(0, most, "")
        literals = [model.new_bool_var("") for _ in own]
        model.add_exactly_one(literals)
        costs = []
        for option, literal in zip(own, literals, strict=True):
            cycles, energy = option.cycles, int(price * option.energy)
            run = model.new_optional_fixed_size_interval_var(start, cycles, literal, "")
            running[option.engine].append(run)
            loads[option.engine].append(cycles * literal)
            spent.append(energy * literal)
            costs.append(weights[option.engine] * cycles + total * energy)
        left -= min(costs)
        dearer += [(cost - min(costs), literal) for cost, literal in zip(costs, literals, strict=True)]
        duration = sum(option.cycles * literal for option, literal in zip(own, literals, strict=True))
        model.add(start + duration <= makespan)
        starts.append(start)
        durations.append(duration)
        choices.append([*zip(own, literals, strict=True)])
    for first, second in problem.edges:
        model.add(starts[second] >= starts[first] + durations[first])
        least = min(option.cycles for option in options[first])
        model.add(starts[second] >= starts[first] + least)  # a row of its own is what orders tasks
    for first, second in symmetric_pairs(problem):
        model.add(starts[first] <= starts[second])
    for line, load in zip(running, loads, strict=True):
        model.add_no_overlap(line)
        model.add(sum(load) <= makespan)
    order_longest(problem, Within(model, starts, choices))
    if price:
        model.add(makespan + sum(spent) <= most)
    for cost, literal in dearer:
        if cost > left:
            model.add(literal == 0)
    affordable = [cost * literal for cost, literal in dearer if 0 < cost <= left]
    if affordable:
        model.add(sum(affordable) <= left)
    return Within(model, starts, choices)


def order_longest(problem: SchedulingProblem, statement: Within) -> None:
    """Give any two of the longest tasks a literal that says which of them an engine takes first.

    Every schedule has such an order, so that none is lost.  What two giants cannot do is then learned of
    their order; without the literal it is learned of bounds of their starts, once for every other bound.

    Parameters
    ----------
    problem : tasks of one run have their order already
    statement : the model with all tasks, which grows
    """
    model, starts, choices = statement.model, statement.starts, statement.choices
    fastest = [min(option.cycles for option, _ in own) for own in choices]
    longest = sorted(range(len(choices)), key=lambda task: -fastest[task])[:_ORDERED]
    for first, second in combinations(longest, 2):
        if problem.tasks[first].instance == problem.tasks[second].instance:
            continue
        turn = model.new_bool_var("")
        for before, after, literal in ((first, second, turn), (second, first, ~turn)):
            for (option, taken), (other, also) in product(choices[before], choices[after]):
                if option.engine == other.engine:
                    row = model.add(starts[after] >= starts[before] + option.cycles)
                    row.only_enforce_if(literal, taken, also)


class TightHorizons:
    """One horizon after the other, each further above what is proven until one takes too long.

    Parameters
    ----------
    search : of a makespan or a product
    options : of every task
    prices : what engines and energy are worth
    front : what is known of energy and makespan; raised
    annealing : what makes schedules of solutions

    Attributes
    ----------
    solved : whether it can raise no bound any more
    gained : whether it has raised one
    """

    def __init__(
        self,
        search: ScheduleSearch,
        options: Sequence[tuple[Option, ...]],
        prices: Prices,
        front: Front,
        annealing: ScheduleAnnealing,
    ) -> None:
        self._search, self._options, self._prices = search, options, prices
        self._front, self._annealing = front, annealing
        self._price = Fraction(prices.energy)
        self._step = _STEP
        self.gained = False
        self._feasible = 0  # a cost that solutions of the model have, 0 where none is known
        self.solved = len(options) > _MOST or sum(max(o.cycles for o in own) for own in options) >= _LARGEST

    def run(self, patience: float) -> None:
        """Raise bounds until none has risen for ``patience`` seconds."""
        search, failed = self._search, 0
        while not self.solved and not search.done:
            assert search.evaluation is not None
            known = search.evaluation.makespan + self._price * search.evaluation.energy
            proven = self._front.least_cost(self._price)
            limit = min(math.ceil(proven * (1 + self._step)), math.ceil(known) - 1)
            if self._feasible:
                limit = min(limit, int(proven + self._feasible) // 2, self._feasible - 1)
            if limit < proven:
                self.solved = True
                return
            status = self._look(limit, patience * (_EACH if self.gained else _FIRST))
            if status == cp_model.INFEASIBLE:
                self._step, self.gained, failed = 2 * self._step, True, 0
                raise_cost(search, self._front, self._price, Fraction(limit + 1), _SOURCE)
            elif status == cp_model.UNKNOWN:
                self._step = max(_LEAST, self._step / _SLOWER)
                failed += 1
                if not self.gained or failed * _EACH >= 1:
                    return
            else:
                self._feasible = limit

    def _look(self, limit: int, seconds: float) -> cp_model.CpSolverStatus:
        """Whether a schedule may cost no more than a limit; what the model says."""
        search, problem = self._search, self._search.problem.instance
        statement = state_within(problem, self._options, self._prices, limit)
        run = CpSatRun(
            statement.model,
            search.limits,
            lambda: search.done,
            lambda values: self._offer(statement, values),
            workers=1,
            seconds=seconds,
            brief=True,
        )
        run.solve()
        search.doubt(run.doubt)
        return run.status

    def _offer(self, statement: Within, values: Values) -> None:
        """Make a schedule of a solution, with its options and in its order."""
        choice, priority = [], []
        for start, own in zip(statement.starts, statement.choices, strict=True):
            choice.append([values.boolean_value(literal) for _, literal in own].index(True))
            priority.append(-float(values.value(start)))
        schedule = self._annealing.decode(choice, priority)
        self._search.confirm(schedule, _SOURCE, origin=Origin.HEURISTIC)
