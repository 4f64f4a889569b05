"""Proven trees as methods on tiled machines.

The proof holds for the closed form over a space of trees.  The plan of the best tree is evaluated like any
other, and no claim is made about plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node
from tilewright.heuristics.scheduling.tiled.set.methods import TreeMethod, beside
from tilewright.heuristics.scheduling.tiled.set.tree_search import Clock, TreeSearch
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds
from tilewright.solvers.scheduling.tiled.set.exact import best_tree

BEGUN, SHAKES = 0.25, 1000
"""Part of the time for the tree that a proof begins with, and random changes of it at most."""

SPACES = {"ls": "ls trees", "lp": "lp trees", "all": "all trees with two children or more a cut"}
"""What is proven over which space; cuts of one child, which others may have, are in none."""


@dataclass(frozen=True)
class ChainedTrees(TreeMethod):
    """The best tree of a space by the closed form, over all topological orders."""

    space = ""

    def solve(self, search: TiledSearch) -> Outcome:
        """Prove the best tree and offer its plan; the message says what is proven of the closed form."""
        form = self.form(search)
        self.offer_first(search, form)
        known = self._begun(search, form) if self.space == "all" else None
        proven = best_tree(form, self.space, lambda: search.done, known)
        if proven.tree is None:
            return Outcome(message=f"no {self.space} tree {'fits' if proven.proven else 'was found in time'}")
        self.offer_tree(search, form, proven.tree)
        least = tree_bounds(form).value
        word = "proven least" if proven.proven else "not proven"
        gap = (proven.value - least) / proven.value
        proof = f"closed form {proven.value:.6g}, {word} of {SPACES[self.space]}, gap to all trees {gap:.1%}"
        return Outcome(message="; ".join(remark for remark in (proof, beside(search)) if remark))

    def _begun(self, search: TiledSearch, form: ClosedForm) -> Node | None:
        """A tree of the search for trees, in a quarter of the time."""
        limits = search.limits
        total = limits.remaining

        def used() -> float:
            left = limits.remaining
            return 0.0 if total is None or left is None else 1 - left / max(total, 1e-9)

        clock = Clock(lambda: search.done or used() > BEGUN, lambda: used() / BEGUN)
        numbers = Random(limits.seed)
        return TreeSearch(form, clock, numbers, lambda tree, value: None, shakes=SHAKES).run()


@dataclass(frozen=True)
class LayerSequentialTrees(ChainedTrees):
    """LS (section 3.4): segments of layers in turn under a root T cut."""

    name = "set-ls"
    space = "ls"


@dataclass(frozen=True)
class LayerPipelineTrees(ChainedTrees):
    """LP (section 3.4): segments of layers side by side under a root T cut."""

    name = "set-lp"
    space = "lp"


@dataclass(frozen=True)
class AllTrees(ChainedTrees):
    """Every tree whose cuts have at least two children; for networks of up to ten layers or so."""

    name = "set-all"
    space = "all"
