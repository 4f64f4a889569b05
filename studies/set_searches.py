"""Searches for trees by name, as the studies of trees compare them; all begin with SET's first tree.

That tree (all layers one after the other) is made before the clock starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain
from tilewright.formulation.scheduling.tiled.kapla.segments import SPATIAL, TEMPORAL, Kind
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing, tangram_chain
from tilewright.heuristics.scheduling.tiled.set.annealing import FOREVER, Cooling, anneal, first_tree
from tilewright.heuristics.scheduling.tiled.set.tree_search import Clock, TreeSearch
from tilewright.solvers.scheduling.tiled.set.exact import best_tree

SMALL = 10
"""Networks of fewer layers are searched with 100 shakes rather than for all the time."""


class Best:
    """The best tree of a search, and when it came.

    Parameters
    ----------
    seconds : CPU seconds that the search may take

    Attributes
    ----------
    bound : that no tree of the search's space undercuts; 0 where it is none that proves
    """

    def __init__(self, form: ClosedForm, seconds: float) -> None:
        self.form, self.limit = form, seconds
        self.tree: Node | None = None
        self.value, self.when, self.bound = float("inf"), 0.0, 0.0
        begun = first_tree(form)
        self.start = time.process_time()
        self._again, self._late = 0.0, False
        if begun is not None:
            self.offer(*begun)

    @property
    def spent(self) -> float:
        """CPU seconds since the clock started."""
        return time.process_time() - self.start

    def late(self) -> bool:
        """Whether the time is up; the processor's clock takes long to read and is read once a millisecond."""
        now = time.monotonic()
        if now >= self._again:
            self._again, self._late = now + 1e-3, self.spent > self.limit
        return self._late

    def offer(self, tree: Node, value: float) -> None:
        """Keep a tree that is better than all before."""
        if value < self.value:
            self.tree, self.value, self.when = tree, value, self.spent

    def chain(self, chain: Chain) -> None:
        """The same for a chain of segments."""
        self.offer(chain.tree, self.form.value(chain.energy, chain.cycles))


def _annealed(best: Best, seed: int) -> str:
    """The paper's parameters."""
    if best.tree is not None:
        anneal(best.form, (best.tree, best.value), Cooling(), Random(seed), best.late, best.offer)
    return "found"


def _annealed_long(best: Best, seed: int) -> str:
    """As many steps as the time allows."""
    if best.tree is not None:
        begun, used = (best.tree, best.value), lambda: best.spent / best.limit
        anneal(best.form, begun, Cooling(steps=FOREVER), Random(seed), best.late, best.offer, used)
    return "found"


def _grown(best: Best, seed: int) -> str:
    small = len(best.form.network) < SMALL
    clock = Clock(best.late, (lambda: 0.0) if small else (lambda: best.spent / best.limit))
    TreeSearch(best.form, clock, Random(seed), best.offer, shakes=100 if small else 10**7).run()
    return "found"


def _sliced(kinds: tuple[Kind, ...]) -> Callable[[Best, int], str]:
    def search(best: Best, seed: int) -> str:
        slicing = Slicing(kinds, 16, 24)
        KaplaSolver(best.form, slicing, 4, stop=best.late, notify=best.chain).solve()
        return "out of time" if best.late() else "found"

    return search


def _kapla(best: Best, seed: int) -> str:
    KaplaSolver(best.form, Slicing(), 4, stop=best.late, notify=best.chain).solve()
    return "out of time" if best.late() else "found"


def _tangram(best: Best, seed: int) -> str:
    tangram_chain(best.form, stop=best.late, notify=best.chain)
    return "out of time" if best.late() else "found"


def _proven(space: str) -> Callable[[Best, int], str]:
    def search(best: Best, seed: int) -> str:
        if space == "all":
            clock = Clock(best.late, lambda: 4 * best.spent / best.limit)
            TreeSearch(best.form, clock, Random(seed), best.offer, shakes=1000).run()
        proof = best_tree(best.form, space, best.late, best.tree if space == "all" else None)
        best.bound = proof.bound
        if proof.tree is not None:
            best.tree, best.value, best.when = proof.tree, proof.value, best.spent
        return "proven" if proof.proven else "out of time"

    return search


METHODS: dict[str, Callable[[Best, int], str]] = {
    "ls": _proven("ls"),
    "lp": _proven("lp"),
    "all": _proven("all"),
    "ls-chains": _sliced(TEMPORAL),
    "lp-chains": _sliced(SPATIAL),
    "tangram": _tangram,
    "kapla": _kapla,
    "sa": _annealed,
    "sa-long": _annealed_long,
    "set": _grown,
}
"""Searches by name: proven LS, LP and trees; chains of temporal and of spatial segments, Tangram and KAPLA;
SET's annealing with the paper's steps, and with as many as the time allows; the search for trees.
"""
