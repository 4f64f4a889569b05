"""Large-neighbourhood search: some tasks of the best schedule are freed, the others keep engine and order.

CP-SAT solves what is left free, a second or so at a time.  Which tasks are freed is drawn again each time:
everything that runs within a window of time, a stretch of one engine, tasks that an engine's price says
are in the wrong place, or runs of layers on the way to the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from ortools.sat.python import cp_model

from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Placement, Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.formulation.scheduling.herald.timeline import in_start_order
from tilewright.solvers.scheduling.herald.running import run_model
from tilewright.solvers.scheduling.herald.statement import ScheduleStatement, fixed_order, state
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_SIZE = (8, 80)  # tasks freed: as many as a slice can solve
_SLICE = 2.0  # seconds for one neighbourhood
_ROUND = 4.0  # seconds of neighbourhoods in one turn
_ROOM = 0.02  # of the makespan that a walk may lose while it gains on prices
_GRAIN = 10**6  # steps into which a price is rounded

Freeing = Callable[[Schedule, int], set[int]]


class WindowSearch:
    """One walk of large-neighbourhood search over a problem.

    Parameters
    ----------
    options : per task, the options to choose from
    prices : what engines and energy are worth
    """

    def __init__(
        self, problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], seed: int, prices: Prices
    ) -> None:
        self._problem = problem
        self._options = options
        self._prices = prices
        self._walk: Schedule | None = None
        self._known: Fraction | None = None
        self._random = random.Random(seed)
        self._ways: tuple[Freeing, ...] = (self.window, self.stretch, self.misplaced, self.critical)
        self._sizes = dict.fromkeys(range(len(self._ways)), 24.0)
        self._gains = dict.fromkeys(range(len(self._ways)), 1.0)

    def run(self, search: ScheduleSearch) -> None:
        """Free one neighbourhood after the other until the search is done."""
        while not search.done and search.answer is not None:
            self.step(search)

    def round(self, search: ScheduleSearch) -> None:
        """Neighbourhoods for a few seconds."""
        begun = search.limits.elapsed
        while not search.done and search.limits.elapsed < begun + _ROUND:
            self.step(search)

    def step(self, search: ScheduleSearch, source: str = "windows") -> None:
        """Free one neighbourhood of the best schedule, and offer what comes out."""
        if self._walk is None or search.key != self._known:
            self._walk, self._known = search.answer, search.key
        schedule = self._walk
        assert schedule is not None
        ways = [*self._gains]
        way = self._random.choices(ways, [self._gains[way_known] for way_known in ways])[0]
        size = min(len(self._problem.tasks), round(self._sizes[way]))
        free = self._ways[way](schedule, size)
        before = search.key
        status, improved = self.solve(search, schedule, free)
        if improved is not None:
            search.confirm(improved, source, origin=Origin.HEURISTIC)
            self._walk, self._known = improved, search.key
        low, high = _SIZE
        proven = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
        self._sizes[way] = min(high, max(low, self._sizes[way] * (1.15 if proven else 0.85)))
        self._gains[way] = max(0.1, 0.9 * self._gains[way] + (search.key != before))

    def solve(
        self, search: ScheduleSearch, schedule: Schedule, free: set[int]
    ) -> tuple[cp_model.CpSolverStatus, Schedule | None]:
        """The best schedule that differs from a given one in free tasks only."""
        statement = self.state(schedule, free)
        self._minimize(statement, search, schedule, free)
        run = run_model(statement, search, 1, _SLICE, brief=True)
        if not run.has_solution:
            return run.status, None
        return run.status, in_start_order(self._problem, *statement.placed(run.solver))

    def state(self, schedule: Schedule, free: set[int]) -> ScheduleStatement:
        """The model in which all but the free tasks keep engine, option and order."""
        placed = {placement.task: placement for placement in schedule.placements}
        options = [own if task in free else (placed[task].option,) for task, own in enumerate(self._options)]
        horizon = int(schedule.makespan * (1 + _ROOM)) + 1
        statement = state(self._problem, options, horizon, symmetric=False)
        first = min((placed[task].fetch_start for task in free), default=0)
        for order in fixed_order(schedule).values():
            held = [task for task in order if task not in free]
            for task, other in pairwise(held):
                gap = max(placed[task].option.cycles, placed[other].option.fetch)
                statement.model.add(statement.starts[other] >= statement.starts[task] + gap)
            for task in held:
                if placed[task].end <= first:
                    statement.model.add(statement.starts[task] == placed[task].start)
        statement.hint(schedule, symmetric=False)
        return statement

    def _minimize(
        self, statement: ScheduleStatement, search: ScheduleSearch, schedule: Schedule, free: set[int]
    ) -> None:
        """Makespan and, as much again, the engines' ends at their prices; for the product, its tangent plane.

        Where ``T' / T + E' / E < 2``, the product ``T' · E'`` is below ``T · E``: the geometric mean of both
        ratios is at most their mean.
        """
        model = statement.model
        horizon = int(schedule.makespan * (1 + _ROOM)) + 1
        ends = []
        order = fixed_order(schedule)
        for engine in range(len(self._problem.engines)):
            end = model.new_int_var(0, horizon, "")
            held = [task for task in order.get(engine, []) if task not in free]
            for task in {*held[-1:], *free}:
                for literal, option in zip(statement.choices[task], statement.options[task], strict=True):
                    if option.engine == engine:
                        model.add(end >= statement.starts[task] + option.cycles).only_enforce_if(literal)
            model.add(end <= statement.makespan)
            ends.append(end)
        grain = min(_GRAIN, 2**58 // (4 * horizon * (1 + len(ends))))
        terms: list[cp_model.LinearExprT] = [grain * statement.makespan]
        terms += [
            max(1, round(grain * price)) * end for price, end in zip(self._prices.engines, ends, strict=True)
        ]
        if search.problem.objective is not ScheduleObjective.MAKESPAN:
            energy = float(sum(placement.option.energy for placement in schedule.placements))
            weight = 0.0 if not energy else grain * schedule.makespan / energy
            terms += [
                round(2 * weight * float(option.energy)) * literal
                for task in free
                for literal, option in zip(statement.choices[task], statement.options[task], strict=True)
            ]
        model.minimize(sum(terms))

    def window(self, schedule: Schedule, size: int) -> set[int]:
        """What begins within a window of time, on all engines."""
        line = [placement.task for placement in schedule.placements]
        at = self._random.randrange(max(1, len(line) - size + 1))
        return set(line[at : at + size])

    def stretch(self, schedule: Schedule, size: int) -> set[int]:
        """Tasks that follow each other on one engine."""
        lines = [line for line in fixed_order(schedule).values() if line]
        line = self._random.choice(lines)
        at = self._random.randrange(max(1, len(line) - size + 1))
        return set(line[at : at + size])

    def misplaced(self, schedule: Schedule, size: int) -> set[int]:
        """Tasks that would be cheaper elsewhere by the engines' prices, and others at random."""
        chosen = set()
        tasks = [*schedule.placements]
        weights = [self._loss(placement) for placement in tasks]
        if sum(weights) > 0:
            chosen = {p.task for p in self._random.choices(tasks, weights, k=size // 2)}
        lengths = [float(p.option.cycles) ** 0.5 for p in tasks]
        return chosen | {p.task for p in self._random.choices(tasks, lengths, k=size - size // 2)}

    def critical(self, schedule: Schedule, size: int) -> set[int]:
        """Tasks back from the end, each pressed against the one before it, and others at random."""
        placed = {placement.task: placement for placement in schedule.placements}
        previous: dict[int, int] = {}
        for line in fixed_order(schedule).values():
            previous.update(zip(line[1:], line, strict=False))
        path = [max(placed, key=lambda task: placed[task].end)]
        while True:
            task = path[-1]
            before = [*self._problem.before[task], *([previous[task]] if task in previous else [])]
            if not before:
                break
            path.append(
                self._random.choice(
                    [b for b in before if placed[b].end == max(placed[x].end for x in before)]
                )
            )
        at = self._random.randrange(max(1, len(path) - size // 2 + 1))
        chosen = set(path[at : at + size // 2])
        return chosen | self.window(schedule, max(1, size - len(chosen)))

    def _loss(self, placement: Placement) -> float:
        """What a task costs beyond its cheapest option, in priced cycles."""
        costs = [self._prices.of(option) for option in self._options[placement.task]]
        return self._prices.of(placement.option) - min(costs)
