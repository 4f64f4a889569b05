"""Searching for a plan: what is sought, and the search core's types, filled in."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tilewright.formulation.method import Method
from tilewright.formulation.result import Result
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import Evaluation, IllegalPlanError
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.search import Judgement, Search


@dataclass(frozen=True, slots=True)
class PlanTree:
    """The resource allocation tree that a plan was made from (SET), as text.

    Parameters
    ----------
    program_figures, program_rules : whether shares cost what the released program's tile takes, and whether
        its defects were counted
    """

    text: str
    program_figures: bool
    program_rules: bool


@dataclass(frozen=True, eq=False, slots=True)
class AtomicPlan:
    """A plan with the atoms that it runs; different answers of one search may cut the network differently.

    Parameters
    ----------
    closed_form : what the method's own formula says of the key, where it has one; the evaluator judges
    tree : what it was made from, of methods on trees
    """

    dag: AtomicDag
    plan: Plan
    closed_form: Fraction | None = None
    tree: PlanTree | None = None


@dataclass(frozen=True)
class TiledGoal:
    """The best plan of a problem, over all sizes of atoms, orders, places and movements.

    Keys are cycles, pJ, or pJ times cycles; the evaluator's energies are floats and are taken as they are.
    """

    problem: TiledProblem

    @property
    def space(self) -> str:
        """What a claim of optimality is about where that is less than all plans; empty otherwise."""
        return ""

    @cached_property
    def content_hash(self) -> str:
        """Of network, batch, machine and the rules for atoms; the objective stands beside it in documents."""
        problem = self.problem
        network = problem.network
        content: tuple[object, ...] = (
            [(layer.name, layer.operator, layer.stored_weights) for layer in network.layers],
            network.links,
            sorted(network.outputs),
            problem.machine.content_hash,
            (problem.batch, problem.fuse, problem.partial_sums),
        )
        if network.stated_widths:  # no part of an operator's text, so that other hashes stay
            content = (*content, network.stated_widths)
        return hashlib.sha256(repr(content).encode()).hexdigest()

    def key(self, energy: float, cycles: int) -> Fraction:
        """The objective's key of an energy in pJ and a number of cycles."""
        return self.problem.objective.key(Fraction(energy), cycles)

    def judge(self, answer: AtomicPlan) -> Judgement[AtomicPlan, Evaluation | None]:
        """What a plan costs, or which dependency, buffer or link it violates."""
        try:
            evaluation = self.problem.evaluate(answer.dag, answer.plan)
        except IllegalPlanError as fault:
            return Judgement(answer, None, Fraction(0), (str(fault),))
        return Judgement(answer, evaluation, self.key(evaluation.energy.total, evaluation.cycles))


TiledSearch = Search[TiledGoal, AtomicPlan, Evaluation | None]
TiledResult = Result[AtomicPlan, Evaluation | None]
TiledMethod = Method[TiledSearch]
