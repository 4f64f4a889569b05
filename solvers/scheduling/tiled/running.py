"""One network planned on one tiled machine: problem, bounds over all sizes, method, limits and result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Protocol, runtime_checkable

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin, TracePoint
from tilewright.formulation.scheduling.tiled.evaluator import Evaluation
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledMethod, TiledSearch
from tilewright.formulation.search import DisagreementError
from tilewright.foundation.errors import InputError
from tilewright.heuristics.scheduling.tiled.coarsening import crowded
from tilewright.solvers.compiling import PHASE, Kernels, compiled_in_turn
from tilewright.solvers.running import SearchRun
from tilewright.solvers.scheduling.tiled.bounds import bound_key
from tilewright.solvers.scheduling.tiled.joint_bounds import least_keys
from tilewright.solvers.scheduling.tiled.plan_kernels import ATOMS, PLANS
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.size_bounds import quick_bounds
from tilewright.solvers.scheduling.tiled.task_prices import priced

GRACE = 0.8
"""Seconds that a search has to come back; all that it has found is in its state, so that none is lost."""

CLOSER = 8
"""Where less time is left than so many times that of a quick bound, the closer one waits for the plans."""

PER_LAYER = 0.015
"""Where fewer seconds than these are left for every layer, or atoms are as many as one plan allows, a quick
plan comes before those of the method."""

ALL_SIZES = "all sizes"
"""What a trace names as the source of bounds over all sizes of atoms."""

WARM_START = "warm start"
"""What a trace names as the source of a plan that was given."""

_QUICK = "ls"
"""The method that plans where another one may be late: it waits for its machine code, or time is short."""

TiledRun = SearchRun[TiledGoal, AtomicPlan, Evaluation | None]


def claimed_space(run: TiledRun) -> str:
    """What a run's claim is about where that is less than all plans; empty otherwise."""
    return "" if run.search is None else run.search.problem.space


def _kernels_of(planner: object) -> tuple[Kernels, ...]:
    """The machine code that a method needs."""
    if not getattr(planner, "on_trees", False):
        return (PLANS, ATOMS)
    from tilewright.solvers.scheduling.tiled.tree_kernels import TREES  # late: other methods start without

    return (PLANS, ATOMS, TREES)


def prepare(method: str) -> None:
    """Compile what a method needs, before a clock starts."""
    for _ in compiled_in_turn(_kernels_of(METHODS.make(method)), lambda: False):
        pass


def plan_run(
    state: Callable[[], TiledProblem],
    method: str,
    limits: Limits,
    reported: Callable[[TracePoint], None] = lambda point: None,
    phase: Callable[[str], None] = lambda text: None,
    warm: AtomicPlan | None = None,
) -> TiledRun:
    """A search for a plan in a thread of its own, which signals and limits end.

    The bound of the search holds over all sizes of atoms, whatever the method chooses, and follows the first
    plan.  Machine code that has to be compiled first is compiled within the limits; a method that needs less
    of it gives a plan meanwhile.

    Parameters
    ----------
    state : states the problem; part of the call that the limits cover
    reported, phase : called with every better plan and bound, and of what begins
    warm : a plan of the problem to begin with

    Raises
    ------
    InputError : for an unknown method or option; from the run for a plan to begin with that is not legal
    """
    planner = METHODS.ready(method)
    needed = _kernels_of(planner)

    def begin(notify: Callable[[TracePoint], None]) -> TiledSearch:
        problem = state()
        goal = TiledGoal(priced(problem, limits))
        phase(f"{planner.name} on {len(goal.problem.units)} layers")
        return bounded.after_first_plan(TiledSearch(goal, limits, notify, exact=planner.exact))

    def before(search: TiledSearch) -> None:
        if not all(kernels.are_compiled for kernels in needed):
            phase(PHASE)
        for kernels in compiled_in_turn(needed, lambda: search.done):
            if kernels is PLANS:
                with _bounded_at_least(search):
                    offer(search)

    def offer(search: TiledSearch) -> None:
        if warm is not None and not isinstance(planner, FromPlan):
            search.confirm(warm, WARM_START, Origin.HEURISTIC)
        left, problem = limits.remaining, search.problem.problem
        scarce = left is not None and (left < PER_LAYER * len(problem.units) or crowded(problem, left))
        if not limits.deterministic and (scarce or not all(kernels.are_compiled for kernels in needed)):
            METHODS.make(_QUICK).solve(search)

    bounded = _Bounded(planner, warm)
    return SearchRun(begin, bounded, method, limits, reported, before, grace=GRACE)


@contextmanager
def _bounded_at_least(search: TiledSearch) -> Iterator[None]:
    """A limit that strikes before the first plan leaves a bound, the quickest one."""
    try:
        yield
    except LimitReachedError:
        if search.bound is None:
            search.raise_bound(bound_key(search.problem, quick_bounds(search.problem.problem)), ALL_SIZES)
        raise


@runtime_checkable
class FromPlan(Protocol):
    """A method whose question is about the plan to begin with, not only answered better than by it."""

    def solve_from(self, search: TiledSearch, given: AtomicPlan) -> Outcome:
        """Search from a legal plan."""


class _Bounded:
    """A method, from its plan where it takes it, and the bounds over all sizes of atoms.

    Parameters
    ----------
    planner : the method
    given : the plan to begin with, if there is one
    """

    def __init__(self, planner: TiledMethod, given: AtomicPlan | None) -> None:
        self.planner, self.given = planner, given
        self.name, self.version, self.exact = planner.name, planner.version, planner.exact
        self._keys: Iterator[Fraction] = iter(())
        self._planned_once = threading.Lock()  # taken at the first plan, for good

    def after_first_plan(self, search: TiledSearch) -> TiledSearch:
        """A view of the search whose first plan is followed by bounds, each unless it would take much of the
        time; where this is scarce, by the quick one first.
        """
        self._keys = least_keys(search.problem.problem, search.limits)

        def bound(_key: Fraction, _answer: AtomicPlan) -> None:
            if search.limits.stop.is_set() or not self._planned_once.acquire(blocking=False):
                return
            limits, problem = search.limits, search.problem.problem
            begun = limits.clock()
            if limits.remaining is not None and limits.remaining < PER_LAYER * len(problem.units):
                search.raise_bound(bound_key(search.problem, quick_bounds(problem)), ALL_SIZES)
            while limits.remaining is None or limits.remaining >= CLOSER * (limits.clock() - begun):
                begun, key = limits.clock(), next(self._keys, None)
                if key is None:
                    break
                search.raise_bound(key, ALL_SIZES)

        return search.telling(bound)

    def solve(self, search: TiledSearch) -> Outcome:
        """Search, and raise the bounds that had to wait in what is left of the time."""
        with _bounded_at_least(search):
            outcome = self._planned(search)
        while not search.done and (key := next(self._keys, None)) is not None:
            search.raise_bound(key, ALL_SIZES)
        return outcome

    def _planned(self, search: TiledSearch) -> Outcome:
        """The method's plan, or one of atoms where the method is not for the network or too slow."""
        if not isinstance(self.planner, FromPlan) or self.given is None:
            try:
                return self.planner.solve(search)
            except (InputError, LimitReachedError) as fault:
                if search.done or search.answer is not None:
                    raise
                METHODS.make(_QUICK).solve(search)
                if search.answer is None:
                    raise
                return Outcome(message=f"the plan is of atoms, layer by layer; {fault}")
        judged = search.problem.judge(self.given)
        if judged.violations:
            raise DisagreementError(judged.violations[0])
        return self.planner.solve_from(search, self.given)
