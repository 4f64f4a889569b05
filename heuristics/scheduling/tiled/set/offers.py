"""Trees on their way to a search: the better ones are expanded into plans, and time is kept for the best."""

from __future__ import annotations

from fractions import Fraction
from math import inf

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, PlanTree, TiledSearch
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.expansion import expand
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node
from tilewright.formulation.scheduling.tiled.set.trees.tree_text import format_tree
from tilewright.foundation.errors import InputError
from tilewright.heuristics.scheduling.tiled.baselines import LayerSequential
from tilewright.heuristics.scheduling.tiled.set.annealing import first_tree

FIRST = 0.25
"""Part of the time that is left in which the first tree may be expanded."""

WORTH = 0.01
"""A tree is expanded while others are sought where its closed form is better by that part."""

AGAIN = 1.3
"""Times as long as the longest expansion so far that is kept back: the next plan is judged, too, and trees
differ.
"""


class TreeOffers:
    """The plans of trees that a method finds in one search.

    Parameters
    ----------
    search : what judges plans, and says how much time is left
    form : the closed form that trees are compared by
    method : what the trace calls the method
    program_figures, program_rules : as of `PlanTree`
    """

    def __init__(
        self, search: TiledSearch, form: ClosedForm, method: str, program_figures: bool, program_rules: bool
    ) -> None:
        self.search, self.form, self.method = search, form, method
        self._program = program_figures, program_rules
        self._expanded = inf
        self._last: Node | None = None
        self._offered: set[Node] = set()
        self._kept = 0.0

    def __call__(self, tree: Node, value: float) -> None:
        """Expand a tree where its value is better by `WORTH` than that of any expanded so far."""
        self._last = tree
        if value < self._expanded * (1 - WORTH):
            self._expanded = value
            self.offer(tree)
            self._last = None

    def over(self) -> bool:
        """Whether no more trees may be sought: what is left of the time is for the plan of the best one."""
        left = self.search.limits.remaining
        return self.search.done or (left is not None and left < self._kept)

    def end(self) -> None:
        """Expand the last tree."""
        if self._last is not None:
            self.offer(self._last)

    def first(self) -> None:
        """Offer all layers in turn, a chain of every space, so that a plan is there whenever time is up.

        Where no such tree fits, or its plan does not or takes too long, the first plan is one of atoms.
        """
        first = first_tree(self.form)
        if first is not None:
            self.offer(first[0], self.search.limits.share(FIRST))
        if self.search.answer is None:
            self.atoms()

    def atoms(self) -> None:
        """Offer a plan of atoms, layer by layer, which is there soon."""
        LayerSequential().offer(self.search, f"{self.method}, atoms layer by layer")

    def offer(self, tree: Node, limits: Limits | None = None) -> None:
        """Expand a tree, unless it has been, and offer its plan, with what the closed form says of it.

        Parameters
        ----------
        tree : whose leaves get atoms
        limits : within which it is expanded; by default those of the search
        """
        if tree in self._offered:
            return
        search, form, clock = self.search, self.form, self.search.limits.clock
        begun = clock()
        cost = form.evaluate(tree)
        try:
            dag, plan = expand(
                search.problem.problem, cost, form.dataflow, form.engine.grid, limits or search.limits
            )
        except (InputError, IllegalPlanError, LimitReachedError):
            # no division of its shares fits, as the closed form cuts no finer; or time is up
            return
        finally:
            self._kept = max(self._kept, AGAIN * (clock() - begun))
        self._offered.add(tree)
        closed = Fraction(form.value(cost.energy, cost.cycles))
        source = f"{self.method}, closed form {float(closed):.4g}"
        origin = PlanTree(format_tree(tree, form.network), *self._program)
        search.confirm(AtomicPlan(dag, plan, closed, origin), source, Origin.HEURISTIC)
