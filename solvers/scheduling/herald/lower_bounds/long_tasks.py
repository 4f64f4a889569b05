"""Bounds from where the longest tasks lie in time: branch and bound over LPs of windows.

A task that lasts for a good part of the schedule divides time into what is before, during and after it.  In
between, its engine does nothing else, what it reads is done before, and whatever reads it waits; neither the
loads nor the chains of the assignment LP tell.  Branches choose the options of tasks and put the longest ones
in order of their begins and ends; all other tasks run in parts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import NamedTuple

from ortools.linear_solver import pywraplp

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import SAFETY, critical_path
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front, raise_cost
from tilewright.solvers.scheduling.herald.lower_bounds.heavy_chains import heaviest_chains
from tilewright.solvers.scheduling.herald.statement import equal_runs
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_LONG = 0.1  # of the least makespan, that a task on its fastest engine lasts
_SPANS = 4  # tasks that divide time, at most
_FRACTION = 1e-6  # less of a task is none
_NOTABLE = 1e-4  # by which a bound must rise
_SOURCE = "long tasks"


class Span(NamedTuple):
    """Where a long task lies.

    Parameters
    ----------
    task : the task
    first, last : windows of time, from 0 on, in all of which it runs
    """

    task: int
    first: int
    last: int


class Relaxed(NamedTuple):
    """An optimum of the LP.

    Parameters
    ----------
    cost : cycles of makespan, plus energy at its price
    divided : the task of which most runs in parts on several engines, if any does
    """

    cost: float
    divided: int | None


class WindowRelaxation:
    """The LP over parts of tasks in windows of time, which the begins and ends of some tasks divide.

    In every window engines' loads and the heaviest path of every run fit.  Of a task no larger part is done
    by the end of a window than of what it reads.  Runs that are alike are one with a weight, unless an
    option of theirs is chosen: averaging a solution over them keeps it feasible.

    Parameters
    ----------
    problem : to be relaxed
    options : of every task
    prices : of which that of energy counts; they also say which paths are heavy
    """

    def __init__(
        self, problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], prices: Prices
    ) -> None:
        self._problem, self._options = problem, options
        self._unit = float(critical_path(problem, options)) or 1.0  # cycles
        self._energy = [
            [prices.energy * float(option.energy) / self._unit for option in own] for own in options
        ]
        self._chains = heaviest_chains(problem, options, prices)
        self._before = [0] * len(options)  # bits of all tasks that end before one begins
        for task in problem.order:
            for other in problem.before[task]:
                self._before[task] |= self._before[other] | 1 << other
        self._edges = [
            (first, second)
            for first, second in problem.edges
            if not any(self._before[other] >> first & 1 for other in problem.before[second])
        ]
        self._equal = equal_runs(problem)

    def solve(
        self, chosen: Mapping[int, int], spans: Sequence[Span], seconds: float | None
    ) -> Relaxed | None:
        """The least cost; nothing where the spans contradict each other.

        Parameters
        ----------
        chosen : the index of the option of some tasks, those of the spans among them
        spans : that divide time into one window more than they have begins and ends
        seconds : at most, for the LP

        Raises
        ------
        TimeoutError : where the LP is not solved
        """
        weight = self._weights(chosen)
        windows = self._windows(weight, spans)
        taken = {
            (self._options[span.task][chosen[span.task]].engine, window)
            for span in spans
            for window in range(span.first, span.last + 1)
        }
        if windows is None or len(taken) < sum(span.last - span.first + 1 for span in spans):
            return None
        solver = pywraplp.Solver.CreateSolver("GLOP")
        if seconds is not None:
            solver.SetTimeLimit(max(1, int(1000 * seconds)))
        cost = solver.Objective()
        cost.SetMinimization()
        lengths = [solver.NumVar(0.0, solver.infinity(), "") for _ in range(2 * len(spans) + 1)]
        for length in lengths:
            cost.SetCoefficient(length, 1.0)
        spanned = {span.task for span in spans}
        for span in spans:
            index = chosen[span.task]
            lasts = solver.Constraint(self._cycles(span.task, index), solver.infinity())
            for window in range(span.first, span.last + 1):
                lasts.SetCoefficient(lengths[window], 1.0)
            cost.SetOffset(cost.Offset() + self._energy[span.task][index])
        parts: dict[int, dict[int, list[tuple[int, pywraplp.Variable]]]] = {}  # by task and window
        loads: dict[tuple[int, int], pywraplp.Constraint] = {}
        for task, (first, last) in windows.items():
            if task in spanned:
                continue
            parts[task] = {window: [] for window in range(first, last + 1)}
            whole = solver.Constraint(1.0, 1.0)
            for window, own in parts[task].items():
                for index, option in enumerate(self._options[task]):
                    if chosen.get(task, index) != index or (option.engine, window) in taken:
                        continue
                    part = solver.NumVar(0.0, 1.0, "")
                    own.append((index, part))
                    whole.SetCoefficient(part, 1.0)
                    if (option.engine, window) not in loads:
                        loads[option.engine, window] = self._at_most(solver, lengths[window])
                    load = loads[option.engine, window]
                    load.SetCoefficient(part, weight[task] * self._cycles(task, index))
                    cost.SetCoefficient(part, weight[task] * self._energy[task][index])
            if not any(parts[task].values()):
                return None
        self._keep_paths(solver, lengths, parts, spans)
        self._keep_order(solver, parts)
        match solver.Solve():
            case pywraplp.Solver.INFEASIBLE:  # windows may be of any length: the order alone decides
                return None
            case status if status != pywraplp.Solver.OPTIMAL:
                raise TimeoutError
        return Relaxed(cost.Value() * self._unit, self._divided(parts, weight, chosen))

    def _cycles(self, task: int, index: int) -> float:
        return self._options[task][index].cycles / self._unit

    def _weights(self, chosen: Mapping[int, int]) -> dict[int, int]:
        """The tasks that are in the LP, and of how many equal runs each is the average."""
        weight = dict.fromkeys(range(len(self._options)), 1)
        for runs in self._equal:
            free = [run for run in runs if not any(task in chosen for task in run)]
            for run in free[1:]:
                for task in run:
                    del weight[task]
            for task in free[0] if free else ():
                weight[task] = len(free)
        return weight

    def _windows(self, tasks: Mapping[int, int], spans: Sequence[Span]) -> dict[int, tuple[int, int]] | None:
        """The first and last window of every task; nothing where one has none."""
        windows = {task: (0, 2 * len(spans)) for task in tasks}
        for span in spans:
            for task, (first, last) in windows.items():
                if task == span.task:
                    first, last = max(first, span.first), min(last, span.last)
                elif self._before[span.task] >> task & 1:
                    last = min(last, span.first - 1)
                elif self._before[task] >> span.task & 1:
                    first = max(first, span.last + 1)
                if first > last or (task == span.task and (first, last) != span[1:]):
                    return None
                windows[task] = first, last
        return windows

    @staticmethod
    def _at_most(solver: pywraplp.Solver, length: pywraplp.Variable) -> pywraplp.Constraint:
        """An empty row of cycles that fit into a window."""
        row = solver.Constraint(-solver.infinity(), 0.0)
        row.SetCoefficient(length, -1.0)
        return row

    def _keep_paths(
        self,
        solver: pywraplp.Solver,
        lengths: Sequence[pywraplp.Variable],
        parts: Mapping[int, Mapping[int, Sequence[tuple[int, pywraplp.Variable]]]],
        spans: Sequence[Span],
    ) -> None:
        """What is done of the heaviest path of a run in a window takes no longer than that."""
        for chain in self._chains:
            own = frozenset(chain)
            for window, length in enumerate(lengths):
                if any(span.task in own and span.first <= window <= span.last for span in spans):
                    continue  # all others of the path are before or behind it
                within = [(t, *entry) for t in chain if t in parts for entry in parts[t].get(window, ())]
                if within:
                    row = self._at_most(solver, length)
                    for task, index, part in within:
                        row.SetCoefficient(part, self._cycles(task, index))

    def _keep_order(
        self,
        solver: pywraplp.Solver,
        parts: Mapping[int, Mapping[int, Sequence[tuple[int, pywraplp.Variable]]]],
    ) -> None:
        """By the end of a window no larger part of a task is done than of what it reads."""
        for first, second in self._edges:
            if first not in parts or second not in parts:
                continue
            for end in range(min(parts[second]), max(parts[first])):
                row = solver.Constraint(-solver.infinity(), 0.0)
                for task, sign in ((first, -1.0), (second, 1.0)):
                    for window, own in parts[task].items():
                        for _, part in own if window <= end else ():
                            row.SetCoefficient(part, sign)

    def _divided(
        self,
        parts: Mapping[int, Mapping[int, Sequence[tuple[int, pywraplp.Variable]]]],
        weight: Mapping[int, int],
        chosen: Mapping[int, int],
    ) -> int | None:
        """The task whose choice of an option the solution leaves most open, in cycles."""
        most, divided = _FRACTION, None
        for task, windows in parts.items():
            if task in chosen or weight[task] > 1:
                continue
            shares = [0.0] * len(self._options[task])
            for own in windows.values():
                for index, part in own:
                    shares[index] += part.solution_value()
            open_ = sum(share * (1 - share) * self._cycles(task, i) for i, share in enumerate(shares))
            if open_ > most:
                most, divided = open_, task
        return divided


class _Node(NamedTuple):
    """A part of all schedules.

    Parameters
    ----------
    cost : that all of them have at least
    number : of the node, in the order in which they came
    chosen : indices of the options of some tasks
    spans : of long tasks
    divided : the task whose option is chosen next, once all long tasks have their spans
    """

    cost: float
    number: int
    chosen: dict[int, int]
    spans: tuple[Span, ...]
    divided: int | None


class LongTasks:
    """Branch and bound, the node of least cost first.

    Parameters
    ----------
    search : whose bound it raises
    options : of every task
    prices : what engines and energy are worth
    front : what is known of energy and makespan; raised

    Attributes
    ----------
    solved : whether it can raise no bound any more
    """

    def __init__(
        self, search: ScheduleSearch, options: Sequence[tuple[Option, ...]], prices: Prices, front: Front
    ) -> None:
        self._search, self._options, self._front = search, options, front
        self._prices, self._price = prices, Fraction(prices.energy)
        fastest = [min(option.cycles for option in own) for own in options]
        longest = sorted(range(len(options)), key=lambda task: -fastest[task])[:_SPANS]
        self._long = [task for task in longest if fastest[task] >= _LONG * front.makespan]
        self.solved = not self._long
        self._number = count()
        self._open = [_Node(0.0, next(self._number), {}, (), None)]

    @cached_property
    def _relaxation(self) -> WindowRelaxation:
        return WindowRelaxation(self._search.problem.instance, self._options, self._prices)

    def run(self, patience: float) -> None:
        """Raise the bound until it has not risen for ``patience`` seconds."""
        limits = self._search.limits
        risen, reported = limits.elapsed, 0.0
        while not self.solved and not self._search.done and limits.elapsed < risen + patience:
            node = self._open[0]
            if node.cost > reported * (1 + _NOTABLE):
                risen, reported = limits.elapsed, node.cost
                self._raise(node.cost)
            try:
                children = [*self._children(node)]
            except TimeoutError:
                break
            if not children:
                self.solved = True  # by it alone the bound is what it is
            else:
                heapq.heapreplace(self._open, children[0])
                for child in children[1:]:
                    heapq.heappush(self._open, child)
        self._raise(self._open[0].cost)

    def _children(self, node: _Node) -> Iterator[_Node]:
        """All parts of a node that hold a schedule."""
        spanned = {span.task for span in node.spans}
        task = next((task for task in self._long if task not in spanned), node.divided)
        if task is None:
            return
        ways: Iterator[tuple[dict[int, int], tuple[Span, ...]]]
        if task in node.chosen:
            ways = ((node.chosen, spans) for spans in spans_with(node.spans, task))
        else:
            ways = (({**node.chosen, task: index}, node.spans) for index in range(len(self._options[task])))
        for chosen, spans in ways:
            left = self._search.limits.remaining
            if self._search.done or (left is not None and left <= 0):
                raise TimeoutError
            relaxed = self._relaxation.solve(chosen, spans, left)
            if relaxed is not None:
                cost = max(node.cost, relaxed.cost)
                yield _Node(cost, next(self._number), chosen, spans, relaxed.divided)

    def _raise(self, cost: float) -> None:
        """Report a bound on the makespan plus energy at its price."""
        raise_cost(self._search, self._front, self._price, Fraction(cost) * (1 - SAFETY), _SOURCE)


def spans_with(spans: Sequence[Span], task: int) -> Iterator[tuple[Span, ...]]:
    """Every order of begins and ends with one more task in it.

    Parameters
    ----------
    spans : in their order
    task : whose begin divides one of their windows, and whose end the same or a later one
    """
    for begin in range(2 * len(spans) + 1):
        for end in range(begin, 2 * len(spans) + 1):
            moved = [
                Span(
                    span.task,
                    span.first + (span.first > begin) + (span.first > end),
                    span.last + (span.last >= begin) + (span.last >= end),
                )
                for span in spans
            ]
            yield (*moved, Span(task, begin + 1, end + 1))
