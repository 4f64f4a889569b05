"""SET as methods on tiled machines: the closed form selects a tree, and its plan is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import ClassVar

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, PlanTree, TiledSearch
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import (
    ClosedForm,
    engine_form,
    program_form,
)
from tilewright.formulation.scheduling.tiled.set.trees.expansion import expand
from tilewright.formulation.scheduling.tiled.set.trees.rules import PUBLISHED, Rules
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node, chain
from tilewright.formulation.scheduling.tiled.set.trees.tree_text import format_tree
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.foundation.errors import InputError
from tilewright.foundation.options import option
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.baselines import LayerSequential
from tilewright.heuristics.scheduling.tiled.planning import Heuristic
from tilewright.heuristics.scheduling.tiled.set.annealing import Cooling, anneal, first_tree
from tilewright.heuristics.scheduling.tiled.set.growing import Growth
from tilewright.heuristics.scheduling.tiled.set.tree_search import Clock, TreeSearch

RULES = ("paper", "program")
FIGURES = ("engine", "program")

FIRST = 0.25
"""Part of the time that is left in which the first tree may be expanded."""

WORTH = 0.01
"""A tree is expanded while others are sought where its closed form is better by that part."""


def beside(search: TiledSearch) -> str:
    """The closed form of the best plan's tree and the evaluator's figures of the plan; empty without one."""
    answer, key = search.answer, search.key
    if answer is None or key is None or not answer.closed_form:
        return ""
    closed, value = float(answer.closed_form), float(search.problem.problem.objective.value(key))
    return f"closed form {closed:.6g}, as a plan {value:.6g} ({value / closed - 1:+.1%})"


@dataclass(frozen=True)
class TreeMethod(Heuristic):
    """What all methods on trees share.

    Expanding a tree takes time, so only trees that are better by `WORTH` are expanded on the way, and the
    best one at the end.
    """

    figures: str = option(
        "engine", "costs of shares: the machine's engine, or the program's tile", choices=FIGURES
    )
    rules: str = option("paper", "closed form: the paper's, or with the program's defects", choices=RULES)

    on_trees: ClassVar = True
    """Whether the machine code of trees is needed in addition to that of plans."""

    def form(self, search: TiledSearch) -> ClosedForm:
        """The closed form of what is searched."""
        return self.form_of(search.problem.problem, search.limits.seed)

    def form_of(self, problem: TiledProblem, seed: int) -> ClosedForm:
        """The closed form of a problem; the seed is for methods that choose partitions at random."""
        network = set_network(problem.units, problem.network.name)
        make = engine_form if self.figures == "engine" else program_form
        rules = self.rules_on(problem.machine)
        objective = problem.objective
        energy, delay = float(objective.energy_power), float(objective.delay_power)
        return make(network, problem.machine, problem.batch, rules, energy=energy, delay=delay)

    def rules_on(self, machine: TiledMachine) -> Rules:
        """The rules of the closed form on a machine."""
        return Rules() if self.rules == "paper" else PUBLISHED

    def without_tree(self, search: TiledSearch) -> str:
        """Why there is no plan of a tree; empty where the reason is not known from all layers in turn."""
        form = self.form(search)
        cost = form.attempt(chain(tuple(range(len(form.network))), form.batch, form.batch))
        reason = f"all layers in turn do not fit: {cost.reason}" if isinstance(cost, Unfit) else ""
        plan = "" if search.answer is None else "the plan is of atoms, layer by layer"
        return "; ".join(part for part in (plan, reason) if part)

    def offer_first(self, search: TiledSearch, form: ClosedForm) -> None:
        """Offer all layers in turn, a chain of every space, so that a plan is there whenever time is up.

        Where no such tree fits, or its plan does not or takes too long, the first plan is one of atoms.
        """
        first = first_tree(form)
        if first is not None:
            self.offer_tree(search, form, first[0], search.limits.share(FIRST))
        if search.answer is None:
            self.offer_atoms(search)

    def offer_atoms(self, search: TiledSearch) -> None:
        """Offer a plan of atoms, layer by layer, which is there soon."""
        LayerSequential().offer(search, f"{self.name}, atoms layer by layer")

    def offer_tree(
        self, search: TiledSearch, form: ClosedForm, tree: Node, limits: Limits | None = None
    ) -> None:
        """Expand a tree and offer its plan, with what the closed form says of it.

        Parameters
        ----------
        search : what judges the plan
        form, tree : the closed form, and what it is of
        limits : within which it is expanded; by default however long that takes
        """
        cost = form.evaluate(tree)
        try:
            dag, plan = expand(search.problem.problem, cost, form.dataflow, form.engine.grid, limits)
        except (InputError, IllegalPlanError, LimitReachedError):
            # no division of its shares fits, as the closed form cuts no finer; or time is up
            return
        closed = Fraction(form.value(cost.energy, cost.cycles))
        source = f"{self.name}, closed form {float(closed):.4g}"
        text = format_tree(tree, form.network)
        origin = PlanTree(text, self.figures == "program", self.rules == "program")
        search.confirm(AtomicPlan(dag, plan, closed, origin), source, Origin.HEURISTIC)


class TreeHeuristic(TreeMethod):
    """A method that searches all trees by the closed form."""

    def solve(self, search: TiledSearch) -> Outcome:
        """Offer plans; the message has the closed form of the best tree next to the cost of its plan."""
        self.offer(search)
        return Outcome(message=beside(search) or self.without_tree(search))

    def offer(self, search: TiledSearch) -> None:
        """Find trees."""
        raise NotImplementedError


class _Offers:
    """Trees on their way to the search."""

    def __init__(self, method: TreeMethod, search: TiledSearch, form: ClosedForm) -> None:
        self.method, self.search, self.form = method, search, form
        self.offered = float("inf")
        self.last: Node | None = None

    def __call__(self, tree: Node, value: float) -> None:
        self.last = tree
        if value < self.offered * (1 - WORTH):
            self.offered = value
            self.method.offer_tree(self.search, self.form, tree)
            self.last = None

    def end(self) -> None:
        """Offer what has not been."""
        if self.last is not None:
            self.method.offer_tree(self.search, self.form, self.last)


@dataclass(frozen=True)
class GrownTrees(TreeHeuristic):
    """Resource allocation trees: segments grow, are chained over down-sets, merged, polished and shaken."""

    beam: int = option(3, "trees per set of layers that grow on", low=1, high=64)
    longest: int = option(24, "layers of a grown segment", low=1, high=1000)
    shakes: int = option(2000, "random changes at most", low=0, high=10**7)

    name = "set"
    stochastic = True

    def offer(self, search: TiledSearch) -> None:
        """Search by the closed form; offer the plans of the best trees."""
        form = self.form(search)
        self.offer_first(search, form)
        offers = _Offers(self, search, form)
        limits = search.limits
        total = limits.remaining
        clock = Clock(
            lambda: search.done,
            lambda: (
                0.0 if total is None or limits.remaining is None else 1 - limits.remaining / max(total, 1e-9)
            ),
        )
        growth = replace(Growth(), beam=self.beam, longest=self.longest)
        TreeSearch(form, clock, Random(limits.seed), offers, growth=growth, shakes=self.shakes).run()
        offers.end()


@dataclass(frozen=True)
class AnnealedTrees(TreeHeuristic):
    """Resource allocation trees by SET's annealing, with cached costs of leaves and segments."""

    steps: int = option(100, "steps per layer (beta)", low=1, high=10**7)
    heat: float = option(0.07, "temperature at first", low=0.0, high=10.0)
    cooling: float = option(8.0, "speed of cooling (alpha)", low=0.0, high=1000.0)

    name = "set-sa"
    stochastic = True

    def offer(self, search: TiledSearch) -> None:
        """Section 4.2 from the tree of all leaves under one T cut."""
        form = self.form(search)
        self.offer_first(search, form)
        begun = first_tree(form)
        if begun is None:
            return
        offers = _Offers(self, search, form)
        schedule = Cooling(self.heat, self.cooling, self.steps)
        anneal(form, begun, schedule, Random(search.limits.seed), lambda: search.done, offers)
        offers.end()
