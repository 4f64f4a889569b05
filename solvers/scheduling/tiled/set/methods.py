"""Proven trees as methods on tiled machines.

The proof holds for the closed form over a space of trees.  The plan of the best tree is evaluated like any
other, and no claim is made about plans.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from random import Random

from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node
from tilewright.heuristics.scheduling.tiled.set.methods import TreeMethod, beside
from tilewright.heuristics.scheduling.tiled.set.offers import TreeOffers
from tilewright.heuristics.scheduling.tiled.set.tree_search import Clock, TreeSearch
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds
from tilewright.solvers.scheduling.tiled.set.exact import best_tree
from tilewright.solvers.scheduling.tiled.set.leaf.layer_bounds import LayerBounds

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
        offers, layers = self.offers(search, form), LayerBounds(form, lambda: search.done)
        offers.first()
        known = self._begun(offers) if self.space == "all" else None
        proven = best_tree(form, self.space, offers.over, known, layers)
        if proven.tree is None:
            return Outcome(message=f"no {self.space} tree {'fits' if proven.proven else 'was found in time'}")
        offers.offer(proven.tree)
        word = "proven least" if proven.proven else "not proven"
        proof = f"closed form {proven.value:.6g}, {word} of {SPACES[self.space]}"
        if proven.bound and not proven.proven:
            proof += f", of which the least has at most {1 - proven.bound / proven.value:.1%} less"
        with suppress(LimitReachedError):
            proof += f", gap to all trees {1 - tree_bounds(form, layers).value / proven.value:.1%}"
        return Outcome(message="; ".join(remark for remark in (proof, beside(search)) if remark))

    def _begun(self, offers: TreeOffers) -> Node | None:
        """A tree of the search for trees, in a quarter of the time; better ones are offered on the way."""
        limits = offers.search.limits
        total = limits.remaining

        def used() -> float:
            left = limits.remaining
            return 0.0 if total is None or left is None else 1 - left / max(total, 1e-9)

        clock = Clock(lambda: offers.over() or used() > BEGUN, lambda: used() / BEGUN)
        return TreeSearch(offers.form, clock, Random(limits.seed), offers, shakes=SHAKES).run()


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
