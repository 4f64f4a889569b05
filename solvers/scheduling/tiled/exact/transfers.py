"""The method ``transfers``: order and places of a plan stand, what moves when and what stays is decided.

SoMa (the successor of SET) anneals the order of transfers and how long each block stays, for a given order of
computation.  Here both are decided by CP-SAT, with the bound of compute, links and DRAM: the statement of
round plans (`statement`) with every atom on its engine and in its step.  It begins with what such annealing
finds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version

from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.arrays import Int32s
from tilewright.foundation.options import option
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.exact.annealing import annealed
from tilewright.solvers.scheduling.tiled.exact.incumbent import chosen_atoms, unstated_plan
from tilewright.solvers.scheduling.tiled.exact.method import out_of_space, unstated
from tilewright.solvers.scheduling.tiled.exact.proof import RoundProof
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace, as_round_plan, idle_steps
from tilewright.solvers.scheduling.tiled.exact.variables import Given

STATED = (0, 1)
"""Powers of energy and cycles that are stated."""

ANNEALED = 0.5
"""Part of the time in which annealing may look for a plan to begin with."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenOrder(RoundSpace):
    """The best round plan whose atoms run where and when those of a plan do.

    Parameters
    ----------
    engine, first : per atom
    """

    engine: Int32s
    first: Int32s

    @classmethod
    def of(cls, space: RoundSpace, plan: Plan) -> GivenOrder:
        """That of a plan's order and places."""
        return cls(
            problem=space.problem, dag=space.dag, idle=idle_steps(plan), engine=plan.engine, first=plan.first
        )

    @cached_property
    def content_hash(self) -> str:
        """That of the round plans, with order and places."""
        order = (super().content_hash, self.engine.tolist(), self.first.tolist())
        return hashlib.sha256(repr(order).encode()).hexdigest()

    @property
    def space(self) -> str:
        """What a claim is about, in words."""
        return f"{super().space}, each atom on the engine and in the step that it has here"

    def outside(self, answer: AtomicPlan) -> str | None:
        """Why a legal plan is none of these; ``None`` where it is one."""
        why = super().outside(answer)
        if why is None and (answer.plan.first != self.first).any():
            return "an atom runs in another step"
        if why is None and (answer.plan.engine != self.engine).any():
            return "an atom runs on another engine"
        return why


class TransferProof(RoundProof):
    """Proves the best movements and residencies of given order and places."""

    def __init__(self, search: TiledSearch, space: GivenOrder) -> None:
        super().__init__(search, space)
        self.given = Given(space.first.tolist(), space.engine.tolist())
        self._rounds = int(space.first.max()) + 2

    @property
    def count(self) -> int:
        """Rounds of the plan, with one for the last write-backs."""
        return self._rounds

    def pursued(self) -> Outcome:
        """The bound of these atoms, then the statement."""
        self.raise_bound(dag_bounds(self.instance.dag, self.instance.machine).cycles, "these atoms")
        if not self.search.done:
            self.whole(self.search.limits)
        return self.outcome()


@dataclass(frozen=True)
class Transfers:
    """What moves when, and what stays in a buffer, for the order and places of a plan to begin with."""

    atoms: int = option(128, "atoms whose movements are stated, at most", low=1, high=4096)

    name = "transfers"
    exact = True

    @property
    def version(self) -> str:
        return f"ortools {version('ortools')}"

    def solve(self, search: TiledSearch) -> Outcome:
        """The same from the best round plan of the heuristics that `exact` begins with."""
        problem = search.problem.problem
        if problem.objective.key_powers != STATED:
            return unstated(search, unstated_plan(search), "transfers states the makespan alone")
        begun = chosen_atoms(problem, search, self.atoms, "auto")
        if begun.dag.tasks > self.atoms:
            return unstated(search, begun, f"transfers states {self._most(begun.dag.tasks)}")
        if not begun.plans:
            return unstated(search, begun, "transfers states round plans, of which heuristics found none")
        fastest = min(begun.plans, key=lambda plan: problem.evaluate(begun.dag, plan).cycles)
        return self.solve_from(search, AtomicPlan(begun.dag, fastest))

    def _most(self, tasks: int) -> str:
        """What is stated, where atoms are too many."""
        return f"up to {self.atoms} atoms (option atoms), here {tasks}"

    def solve_from(self, search: TiledSearch, given: AtomicPlan) -> Outcome:
        """Decide movements and residencies of a plan's order and places.

        Parameters
        ----------
        search : whose problem the plan is of
        given : a legal plan
        """
        problem, dag, plan = search.problem.problem, given.dag, given.plan
        why = ""
        if problem.objective.key_powers != STATED:
            why = "transfers states the makespan alone"
        elif (plan.first != plan.last).any():
            why = "an atom of the plan to begin with runs over several steps"
        elif dag.tasks > self.atoms:
            why = f"transfers states {self._most(dag.tasks)}"
        if why:
            search.confirm(given, "warm start", Origin.HEURISTIC)
            return Outcome(message=f"{why}: the plan is the one given, the bound that over all sizes")
        space = GivenOrder.of(RoundSpace(problem, dag), plan)
        search.problem = space
        search.offer(given, "warm start", Origin.HEURISTIC)
        quick = as_round_plan(dag, plan, problem.machine.engines)
        search.offer(AtomicPlan(dag, quick), "heuristics", Origin.HEURISTIC)
        annealed(search, given, ANNEALED)
        outcome = TransferProof(search, space).run()
        return replace(outcome, message=outcome.message + out_of_space(search))
