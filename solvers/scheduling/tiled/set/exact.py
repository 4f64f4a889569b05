"""Proven trees: the best chain of all segments of a space, over all topological orders.

Spaces are LS and LP (section 3.4), and all trees whose cuts have at least two children.  Except in LP, a root
T cut may have a single child: a segment for the whole network without DRAM inside.  Children of a root T cut
are independent, so the best tree is a chain of segments; Pareto labels over down-sets find it.  Every segment
is then evaluated once, where enumeration would evaluate every sequence of them.  Of all trees only those are
evaluated that may be below a value (`open_trees.py`), which rises until there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node, rooted
from tilewright.heuristics.scheduling.tiled.set.chains import Segments, best_chain, down_sets
from tilewright.solvers.scheduling.tiled.set.leaf.layer_bounds import LayerBounds
from tilewright.solvers.scheduling.tiled.set.segments import SegmentMaker
from tilewright.solvers.scheduling.tiled.set.trees.open_trees import OpenTrees

STEP, GROWTH = 0.02, 1.6
"""Part by which the first value exceeds the lower bound of all layers, and the factor of every next step."""

CLOSE = 1.03
"""How many times a value a tree known may have for its own value to be next."""

FAR = 50.0
"""Times the least of all layers beyond which every tree is looked at."""


@dataclass(frozen=True, slots=True)
class ProvenTree:
    """The best tree found.

    Parameters
    ----------
    tree : ``None`` where none fits
    value : of the objective, by the closed form
    proven : whether no tree of the space is better
    bound : of the objective, that no tree of the space is below; 0 where none is known
    """

    tree: Node | None
    value: float
    proven: bool
    bound: float


def best_tree(
    form: ClosedForm,
    space: str,
    stop: Callable[[], bool] = lambda: False,
    known: Node | None = None,
    lower_bounds: LayerBounds | None = None,
) -> ProvenTree:
    """The best tree of a space.

    Parameters
    ----------
    space : ``ls``, ``lp`` or ``all``
    stop : whether the time is up
    known : a tree of the space to begin with; what cannot be better is pruned
    lower_bounds : of the layers, where they are known
    """
    if space == "all":
        return _best_of_all(form, stop, known, lower_bounds or LayerBounds(form, stop))
    sets, whole = down_sets(form.network)
    best = _Found(form, None)
    for groups, maker in _makers(form, stop):
        segments = Segments()
        whole &= maker.fill(segments, sets, space)
        whole &= best.chained(segments, sets, groups, stop)
    return ProvenTree(best.tree, best.value, whole, best.value if whole else 0.0)


class _Found:
    """The best tree found."""

    def __init__(self, form: ClosedForm, known: Node | None) -> None:
        self.form, self.tree, self.value = form, known, float("inf")
        if known is not None:
            cost = form.evaluate(known)
            self.value = form.value(cost.energy, cost.cycles)

    def chained(self, segments: Segments, sets: list[int], groups: int, stop: Callable[[], bool]) -> bool:
        """Keep the best chain of segments known when the time is up; returns whether no other is better."""
        row, exact = best_chain(segments, sets, self.form.value, stop=stop)
        if row:
            energy, cycles = sum(segment.energy for segment in row), sum(segment.cycles for segment in row)
            value = self.form.value(energy * groups, cycles * groups)
            if value < self.value:
                self.tree, self.value = (
                    rooted([segment.tree for segment in row], self.form.batch, groups),
                    value,
                )
        return exact


def _makers(form: ClosedForm, stop: Callable[[], bool]) -> list[tuple[int, SegmentMaker]]:
    """By number of subbatches of the root, what makes its segments."""
    batch, makers = form.batch, []
    for groups in range(1, batch + 1):
        if batch % groups == 0:
            samples = batch // groups
            loads = batch if form.rules.split_root_weights_once else samples
            makers.append((groups, SegmentMaker(form, samples, loads, stop)))
    return makers


def _best_of_all(
    form: ClosedForm, stop: Callable[[], bool], known: Node | None, lower_bounds: LayerBounds
) -> ProvenTree:
    """The best of all trees: all of those below a value that rises until there is one.

    Where the time ends before, no tree is below the last value at which all have been looked at.
    """
    best, makers, bound = _Found(form, known), _makers(form, stop), 0.0
    try:
        lower_bounds.work  # noqa: B018 - the longest part, before any tree
    except LimitReachedError:
        return ProvenTree(best.tree, best.value, False, bound)
    sets, whole = down_sets(form.network)
    open_trees = [OpenTrees(form, lower_bounds, maker.loads, stop) for _, maker in makers]
    every = [Segments() for _ in makers]
    least = min(_least(candidate) for candidate in open_trees)
    step, above = STEP, 1 + STEP
    while True:
        value = least * above if least > 0 and above < FAR else inf
        if best.value <= value * CLOSE:
            value = best.value
        for trees, segments, (groups, maker) in zip(open_trees, every, makers, strict=True):
            if not maker.fill_below(segments, sets, trees, value):
                best.chained(segments, sets, groups, stop)
                return ProvenTree(best.tree, best.value, False, bound)
            whole &= best.chained(segments, sets, groups, stop)
        bound = min(best.value, value) if whole else bound
        if best.value <= value or value == inf:
            return ProvenTree(best.tree, best.value, whole, bound)
        step *= GROWTH
        above += step


def _least(trees: OpenTrees) -> float:
    """A lower bound of all trees, layer by layer."""
    energy, cycles = trees.classes.others(0)
    return trees.form.value(energy, cycles)
