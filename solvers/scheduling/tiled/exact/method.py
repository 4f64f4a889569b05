"""The method ``exact``: round plans of given atoms, proven.

Heuristics choose the atoms and give a first plan; what follows is the proof (`proof`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version

from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.options import option
from tilewright.solvers.scheduling.tiled.exact.incumbent import SIZES, Beginning, chosen_atoms, first_plans
from tilewright.solvers.scheduling.tiled.exact.priced_proof import STATED, proof_of
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace, idle_steps


@dataclass(frozen=True)
class Exact:
    """Order, placement, residency and movements of given atoms together, proven over round plans."""

    atoms: int = option(48, "atoms that are stated, at most; sizes are coarsened to as many", low=1, high=512)
    sizes: str = option(
        "auto", "of the heuristics' best plan, coarse, or coarse if those are too many", choices=SIZES
    )
    idle: int = option(0, "steps without an atom that a plan may have", low=0, high=8)

    name = "exact"
    exact = True

    @property
    def version(self) -> str:
        return f"ortools {version('ortools')}"

    def solve(self, search: TiledSearch) -> Outcome:
        """Choose atoms, narrow the question to their round plans, and prove."""
        problem = search.problem.problem
        given = search.answer
        if given is None:
            begun = chosen_atoms(problem, search, self.atoms, self.sizes)
        else:
            begun = Beginning(given.dag, [*first_plans(problem, given.dag, search.limits)], None)
            outside = RoundSpace(problem, given.dag, given.plan.steps).outside(given)
            if outside is not None:
                return Outcome(
                    message=f"the plan to begin with is no round plan, so none is proven: {outside}"
                )
        if problem.objective.key_powers not in STATED:
            return unstated(search, begun, "exact states makespan, energy and EDP alone")
        if begun.dag.tasks > self.atoms:
            most = f"exact states up to {self.atoms} atoms (option atoms), here {begun.dag.tasks}"
            return unstated(search, begun, most)
        needed = begun.plans if given is None else [given.plan]
        fewest = min((idle_steps(plan) for plan in needed), default=0)
        space = RoundSpace(problem, begun.dag, max(self.idle, fewest))
        search.problem = space
        for plan in begun.plans:
            search.offer(AtomicPlan(begun.dag, plan), "heuristics", Origin.HEURISTIC)
        if begun.free is not None:
            search.offer(begun.free, "heuristics", Origin.HEURISTIC)
        outcome = proof_of(search, space).run()
        return replace(outcome, message=outcome.message + out_of_space(search))


def unstated(search: TiledSearch, begun: Beginning, why: str) -> Outcome:
    """What is beyond the statement: the heuristics' plan under the bound over all sizes, and why."""
    plans = [AtomicPlan(begun.dag, plan) for plan in begun.plans]
    for answer in plans if begun.free is None else [begun.free]:
        search.offer(answer, "heuristics", Origin.HEURISTIC)
    return Outcome(message=f"{why}: the plan is the heuristics', the bound that over all sizes")


def out_of_space(search: TiledSearch) -> str:
    """What is known of faster plans outside the space."""
    outside = search.out_of_space
    if outside is None or (search.key is not None and outside.key >= search.key):
        return ""
    return f"; outside the space ({outside.reason}) {outside.source} found {worth(search, outside.key)}"


def worth(search: TiledSearch, key: Fraction) -> str:
    """A key in words, such as ``5,412 cycles``."""
    objective = search.problem.problem.objective
    unit = {(0, 1): "cycles", (1, 0): "pJ", (1, 1): "pJ·cycles"}.get(objective.key_powers, objective.name)
    return f"{int(key):,} {unit}"
