"""Proven trees: the best chain of all segments of a space, over all topological orders.

Spaces are LS and LP (section 3.4), and all trees whose cuts have at least two children; but for LP, a root T
cut may have a single child, a segment for the whole network without DRAM inside.  Children of a root T cut
know nothing of each other, so the best tree is a chain of segments, found by Pareto labels over down-sets.
That looks at every segment once where enumeration looks at every row of them, and a tree that is known keeps
most segments from being looked at at all (`outlook.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.tree import Node, rooted
from tilewright.heuristics.scheduling.tiled.set.chains import Segments, best_chain, down_sets
from tilewright.solvers.scheduling.tiled.set.floors import Floors
from tilewright.solvers.scheduling.tiled.set.segments import SegmentMaker


@dataclass(frozen=True, slots=True)
class ProvenTree:
    """The best tree found.

    Parameters
    ----------
    tree : ``None`` where none fits
    value : of the objective, by the closed form
    proven : whether no tree of the space is better
    """

    tree: Node | None
    value: float
    proven: bool


def best_tree(
    form: ClosedForm, space: str, stop: Callable[[], bool] = lambda: False, known: Node | None = None
) -> ProvenTree:
    """The best tree of a space.

    Parameters
    ----------
    space : ``ls``, ``lp`` or ``all``
    stop : whether the time is up
    known : a tree of the space to begin with, so that what cannot be better is left out
    """
    sets, whole = down_sets(form.network)
    best: Node | None = None
    least, proven = float("inf"), whole
    floors = None
    if known is not None:
        cost = form.evaluate(known)
        best, least, floors = known, form.value(cost.energy, cost.cycles), Floors(form)
    batch = form.batch
    for groups in range(1, batch + 1):
        if batch % groups:
            continue
        samples = batch // groups
        loads = batch if form.rules.split_root_weights_once else samples
        segments = Segments()
        proven &= SegmentMaker(form, samples, loads, stop, least, floors).fill(segments, sets, space)
        row, exact = best_chain(segments, sets, form.value)
        proven &= exact
        if row:
            energy, cycles = sum(one.energy for one in row), sum(one.cycles for one in row)
            value = form.value(energy * groups, cycles * groups)
            if value < least:
                best, least = rooted([one.tree for one in row], batch, groups), value
    return ProvenTree(best, least, proven)
