"""The method ``windows``: a plan of Atomic Dataflow whose rounds are placed together, some at a time."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.planning import Heuristic
from tilewright.solvers.mapping.mip.child import ChildError
from tilewright.solvers.scheduling.tiled.linear import SOLVERS, missing_solver
from tilewright.solvers.scheduling.tiled.placing.windows import Window, place_windows

SHARE = 0.5
"""Part of the time in which the plan to begin with is sought."""

OFFERS = 16
"""Windows between two plans that are completed and offered."""


@dataclass(frozen=True)
class PlacedWindows(Heuristic):
    """Engines of several consecutive rounds together, window by window, each with a bound."""

    solver: str = option("cpsat", "solver of a window", choices=SOLVERS)
    rounds: int = option(2, "of a window", low=1, high=64)

    name = "windows"

    def solve(self, search: TiledSearch) -> Outcome:
        """Begin with Atomic Dataflow's plan, then go through its rounds; the message has the bounds."""
        missing = missing_solver(self.solver)
        if missing:
            return Outcome(message=missing, error=True)
        AtomicDataflow().solve(search.within(search.limits.share(SHARE)))
        begun = search.answer
        if begun is None or search.done:
            return Outcome()
        machine, dag, step = search.problem.problem.machine, begun.dag, begun.plan.first
        windows: list[Window] = []
        engine = begun.plan.engine
        try:
            for placed, window in place_windows(
                dag, machine, step, engine, solver=self.solver, width=self.rounds, limits=search.limits
            ):
                engine = placed
                windows.append(window)
                if len(windows) % OFFERS == 0:
                    self._offer(search, AtomicPlan(dag, complete(dag, machine, engine, step)))
        except ChildError as failure:
            return Outcome(message=f"solver {self.solver}: {failure}", error=True)
        if windows:
            self._offer(search, AtomicPlan(dag, complete(dag, machine, engine, step)))
        return Outcome(message=summary(windows))

    def _offer(self, search: TiledSearch, answer: AtomicPlan) -> None:
        search.confirm(answer, f"{self.name} {self.solver}", Origin.HEURISTIC)


def summary(windows: list[Window]) -> str:
    """How many windows were proven, and what they gained in bytes times hops."""
    proven = sum(window.proven for window in windows)
    before, cost, bound = (
        sum(getattr(window, name) for window in windows) for name in ("before", "cost", "bound")
    )
    return (
        f"{proven} of {len(windows)} windows proven; bytes times hops of all windows {before:,} before, "
        f"{cost:,} after, at least {bound:,}"
    )
