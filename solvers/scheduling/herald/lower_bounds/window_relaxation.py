"""The LP over parts of tasks in windows of time, which the begins and ends of some tasks divide."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ortools.linear_solver import pywraplp

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import critical_path
from tilewright.solvers.scheduling.herald.lower_bounds.heavy_chains import heaviest_chains
from tilewright.solvers.scheduling.herald.statement import equal_runs
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_PROGRAMS = 40  # LPs that are kept
_WARM = "use_preprocessing: false use_dual_simplex: true"  # what lets an LP begin at its latest optimum
_FRACTION = 1e-6  # less of a task is none


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


_Parts: TypeAlias = dict[int, dict[int, list[tuple[int, pywraplp.Variable]]]]
"""By task and window, indices of options and how much of the task runs there so."""


class _Program:
    """An LP whose options are chosen by bounds of its variables, so that each search begins where one ended.

    Parameters
    ----------
    solver : that holds it
    parts : of tasks that choose among options
    """

    def __init__(self, solver: pywraplp.Solver, parts: _Parts) -> None:
        self._solver, self.parts = solver, parts
        self._chosen: dict[int, int] = {}

    def least(self, chosen: Mapping[int, int], seconds: float | None) -> float | None:
        """The least cost; nothing where no solution has these options.

        Parameters
        ----------
        chosen : the index of the option of some tasks
        seconds : at most

        Raises
        ------
        TimeoutError : where the LP is not solved
        """
        for task in {*self._chosen, *chosen} & self.parts.keys():
            index = chosen.get(task)
            if index != self._chosen.get(task):
                for own in self.parts[task].values():
                    for other, part in own:
                        part.SetUb(1.0 if index is None or other == index else 0.0)
        self._chosen = dict(chosen)
        if any(not self._has_room(task, chosen.get(task)) for task in self.parts):
            return None
        if seconds is not None:
            self._solver.SetTimeLimit(max(1, int(1000 * seconds)))
        match self._solver.Solve():
            case pywraplp.Solver.INFEASIBLE:  # windows may be of any length: order and options alone decide
                return None
            case status if status != pywraplp.Solver.OPTIMAL:
                raise TimeoutError
        cost: float = self._solver.Objective().Value()
        return cost

    def _has_room(self, task: int, chosen: int | None) -> bool:
        """Whether some window has a part of a task, by the option that is chosen."""
        parts = (index for own in self.parts[task].values() for index, _ in own)
        return any(chosen in (None, index) for index in parts)


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
        self._programs: dict[Hashable, _Program] = {}  # the latest one is the last; none that failed

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
        key = (*((span, chosen[span.task]) for span in spans), frozenset(weight.items()))
        program = self._programs.pop(key, None) or self._program(chosen, spans, weight)
        if program is None:
            return None
        cost = program.least(chosen, seconds)
        if len(self._programs) == _PROGRAMS:
            del self._programs[next(iter(self._programs))]  # the one that was asked longest ago
        self._programs[key] = program
        if cost is None:
            return None
        return Relaxed(cost * self._unit, self._divided(program.parts, weight, chosen))

    def _program(
        self, chosen: Mapping[int, int], spans: Sequence[Span], weight: Mapping[int, int]
    ) -> _Program | None:
        """The LP of all options of tasks without spans; nothing where the spans contradict each other."""
        windows = self._windows(weight, spans)
        taken = {
            (self._options[span.task][chosen[span.task]].engine, window)
            for span in spans
            for window in range(span.first, span.last + 1)
        }
        if windows is None or len(taken) < sum(span.last - span.first + 1 for span in spans):
            return None
        solver = pywraplp.Solver.CreateSolver("GLOP")
        solver.SetSolverSpecificParametersAsString(_WARM)
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
        parts: _Parts = {}
        loads: dict[tuple[int, int], pywraplp.Constraint] = {}
        for task, (first, last) in windows.items():
            if task in spanned:
                continue
            parts[task] = {window: [] for window in range(first, last + 1)}
            whole = solver.Constraint(1.0, 1.0)
            for window, own in parts[task].items():
                for index, option in enumerate(self._options[task]):
                    if (option.engine, window) in taken:
                        continue
                    part = solver.NumVar(0.0, 1.0, "")
                    own.append((index, part))
                    whole.SetCoefficient(part, 1.0)
                    if (option.engine, window) not in loads:
                        loads[option.engine, window] = self._at_most(solver, lengths[window])
                    load = loads[option.engine, window]
                    load.SetCoefficient(part, weight[task] * self._cycles(task, index))
                    cost.SetCoefficient(part, weight[task] * self._energy[task][index])
        self._keep_paths(solver, lengths, parts, spans)
        self._keep_order(solver, parts)
        return _Program(solver, parts)

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
        parts: _Parts,
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

    def _keep_order(self, solver: pywraplp.Solver, parts: _Parts) -> None:
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

    def _divided(self, parts: _Parts, weight: Mapping[int, int], chosen: Mapping[int, int]) -> int | None:
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
