"""Bounds from where the longest tasks lie in time: branch and bound over LPs of windows.

A task that lasts for a good part of the schedule divides time into what is before, during and after it.  In
between, its engine does nothing else, what it reads is done before, and whatever reads it waits; neither the
loads nor the chains of the assignment LP tell.  Branches choose the options of tasks and put the longest ones
in order of their begins and ends; all other tasks run in parts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import NamedTuple

from tilewright.formulation.scheduling.herald.problem import Option
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import SAFETY
from tilewright.solvers.scheduling.herald.lower_bounds.front import Front, raise_cost
from tilewright.solvers.scheduling.herald.lower_bounds.window_relaxation import Span, WindowRelaxation
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_LONG = 0.1  # of the least makespan, that a task on its fastest engine lasts
_SPANS = 4  # tasks that divide time, at most
_NOTABLE = 1e-4  # by which a bound must rise
_SOURCE = "long tasks"


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
