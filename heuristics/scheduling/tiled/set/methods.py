"""SET as methods on tiled machines: the closed form selects a tree, and its plan is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar

from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import (
    ClosedForm,
    engine_form,
    program_form,
)
from tilewright.formulation.scheduling.tiled.set.trees.rules import PUBLISHED, Rules
from tilewright.formulation.scheduling.tiled.set.trees.tree import chain
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.foundation.options import option
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.planning import Heuristic
from tilewright.heuristics.scheduling.tiled.set.annealing import Cooling, anneal, first_tree
from tilewright.heuristics.scheduling.tiled.set.growing import Growth
from tilewright.heuristics.scheduling.tiled.set.offers import TreeOffers
from tilewright.heuristics.scheduling.tiled.set.tree_search import Clock, TreeSearch

RULES = ("paper", "program")
FIGURES = ("engine", "program")


def beside(search: TiledSearch) -> str:
    """The closed form of the best plan's tree and the evaluator's figures of the plan; empty without one."""
    answer, key = search.answer, search.key
    if answer is None or key is None or not answer.closed_form:
        return ""
    closed, value = float(answer.closed_form), float(search.problem.problem.objective.value(key))
    return f"closed form {closed:.6g}, as a plan {value:.6g} ({value / closed - 1:+.1%})"


@dataclass(frozen=True)
class TreeMethod(Heuristic):
    """What all methods on trees share."""

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

    def told_of(self, offers: TreeOffers) -> str:
        """The best plan beside its tree, or why it is of none as far as all layers in turn tell."""
        search, form = offers.search, offers.form
        told = beside(search)
        if told:
            return told
        cost = form.attempt(chain(tuple(range(len(form.network))), form.batch, form.batch))
        reason = f"all layers in turn do not fit: {cost.reason}" if isinstance(cost, Unfit) else ""
        plan = "" if search.answer is None else "the plan is of atoms, layer by layer"
        return "; ".join(part for part in (plan, reason) if part)

    def offers(self, search: TiledSearch, form: ClosedForm) -> TreeOffers:
        """What expands trees of the closed form into plans of a search."""
        program = self.figures == "program", self.rules == "program"
        return TreeOffers(search, form, self.name, *program)


class TreeHeuristic(TreeMethod):
    """A method that searches all trees by the closed form."""

    def solve(self, search: TiledSearch) -> Outcome:
        """Offer plans; the message has the closed form of the best tree next to the cost of its plan."""
        offers = self.offers(search, self.form(search))
        offers.first()
        self.seek(offers)
        offers.end()
        return Outcome(message=self.told_of(offers))

    def seek(self, offers: TreeOffers) -> None:
        """Find trees, and offer them."""
        raise NotImplementedError


@dataclass(frozen=True)
class GrownTrees(TreeHeuristic):
    """Resource allocation trees: segments grow, are chained over down-sets, merged, polished and shaken."""

    beam: int = option(3, "trees per set of layers that grow on", low=1, high=64)
    longest: int = option(24, "layers of a grown segment", low=1, high=1000)
    shakes: int = option(2000, "random changes at most", low=0, high=10**7)

    name = "set"
    stochastic = True

    def seek(self, offers: TreeOffers) -> None:
        """Search by the closed form; offer the plans of the best trees."""
        form, limits = offers.form, offers.search.limits
        total = limits.remaining
        clock = Clock(
            offers.over,
            lambda: (
                0.0 if total is None or limits.remaining is None else 1 - limits.remaining / max(total, 1e-9)
            ),
        )
        growth = replace(Growth(), beam=self.beam, longest=self.longest)
        TreeSearch(form, clock, Random(limits.seed), offers, growth=growth, shakes=self.shakes).run()


@dataclass(frozen=True)
class AnnealedTrees(TreeHeuristic):
    """Resource allocation trees by SET's annealing, with cached costs of leaves and segments."""

    steps: int = option(100, "steps per layer (beta)", low=1, high=10**7)
    heat: float = option(0.07, "temperature at first", low=0.0, high=10.0)
    cooling: float = option(8.0, "speed of cooling (alpha)", low=0.0, high=1000.0)

    name = "set-sa"
    stochastic = True

    def seek(self, offers: TreeOffers) -> None:
        """Section 4.2 from the tree of all leaves under one T cut."""
        begun = first_tree(offers.form)
        if begun is None:
            return
        schedule = Cooling(self.heat, self.cooling, self.steps)
        anneal(offers.form, begun, schedule, Random(offers.search.limits.seed), offers.over, offers)
