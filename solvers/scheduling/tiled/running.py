"""One network planned on one tiled machine: problem, bounds over all sizes, method, limits and result."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Origin, TracePoint
from tilewright.formulation.scheduling.tiled.evaluator import Evaluation
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledSearch
from tilewright.foundation.errors import InputError
from tilewright.solvers.compiling import PHASE, Kernels, compiled_in_turn
from tilewright.solvers.running import SearchRun
from tilewright.solvers.scheduling.tiled.bounds import Bounds
from tilewright.solvers.scheduling.tiled.plan_kernels import ATOMS, PLANS
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.solvers.scheduling.tiled.task_prices import priced

GRACE = 0.8
"""Seconds that a search has to come back; all that it has found is in its state, so that none is lost."""

ROUNDING = Fraction(1, 10**9)
"""Part of a bound on energy that is given away for the rounding of sums of floats."""

WARM_START = "warm start"
"""What a trace names as the source of a plan that was given."""

_MEANWHILE = "ls"
"""The method that plans while others wait for their machine code."""

NEEDS_KINDS = (
    "has closed forms for tiles of kc, yx and pairs, not for a machine file, expected auto, atomic, ls, "
    "cnn-p, il-pipe, rammer, sizes, lns, windows or exact"
)

TiledRun = SearchRun[TiledGoal, AtomicPlan, Evaluation | None]


def bound_key(goal: TiledGoal, bounds: Bounds) -> Fraction:
    """The key that bounds on cycles and energy imply."""
    energy = Fraction(bounds.energy) * (1 - ROUNDING)
    return goal.problem.objective.key(energy, bounds.cycles)


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

    The bound of the search holds over all sizes of atoms, whatever the method chooses.  Machine code that has
    to be compiled first is compiled within the limits; a method that needs less of it gives a plan meanwhile.

    Parameters
    ----------
    state : states the problem; part of the call that the limits cover
    reported, phase : called with every better plan and bound, and of what begins
    warm : a plan of the problem to begin with

    Raises
    ------
    InputError : for an unknown method or option; from the run for a plan to begin with that is not legal
    """
    planner = METHODS.make(method)
    needed = _kernels_of(planner)

    def begin(notify: Callable[[TracePoint], None]) -> TiledSearch:
        problem = state()
        if problem.machine.engine.own is not None and getattr(planner, "needs_tile_kinds", False):
            raise InputError("--method", None, f"{planner.name} {NEEDS_KINDS}")
        goal = TiledGoal(priced(problem, limits))
        phase(f"{planner.name} on {len(goal.problem.units)} layers")
        return TiledSearch(goal, limits, notify, exact=planner.exact)

    def before(search: TiledSearch) -> None:
        if not all(kernels.are_compiled for kernels in needed):
            phase(PHASE)
        for kernels in compiled_in_turn(needed, lambda: search.done):
            if kernels is PLANS:
                offer(search)
                if not (limits.deterministic or all(other.are_compiled for other in needed)):
                    METHODS.make(_MEANWHILE).solve(search)

    def offer(search: TiledSearch) -> None:
        search.raise_bound(bound_key(search.problem, size_bounds(search.problem.problem)), "all sizes")
        if warm is not None:
            search.confirm(warm, WARM_START, Origin.HEURISTIC)

    return SearchRun(begin, planner, method, limits, reported, before, grace=GRACE)
