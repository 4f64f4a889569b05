"""Growing segments: from every down-set leaf by leaf, in a beam search over trees.

The next leaf is any layer that is ready.  It becomes the last child of a cut on the tree's right edge, or
shares a new cut with a node there.  Trees of one set of layers are rated by ``ratio * energy + cycles``
against the best chain of the segments known; the best of them continue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node, leaves
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.heuristics.scheduling.tiled.set.chains import Segment, Segments
from tilewright.heuristics.scheduling.tiled.set.operators import KINDS, divisors, fitted


@dataclass(frozen=True, slots=True)
class Growth:
    """How far segments grow.

    Parameters
    ----------
    beam : trees per number of layers
    longest : layers of a segment
    patience : layers by which a segment grows on without any tree better than the chain of what is known
    deepest : cuts above a leaf
    in_order : whether the next leaf is the first layer that is not done, rather than any that is ready
    single : whether segments of several layers pass on single samples, see `by_samples`
    """

    beam: int = 3
    longest: int = 24
    patience: int = 4
    deepest: int = 4
    in_order: bool = False
    single: bool = False


def extensions(tree: Node, layer: int, deepest: int) -> Iterator[Node]:
    """Every tree with one more leaf at its right end."""

    def grow(node: Node, depth: int) -> Iterator[Node]:
        batch = node.batch
        if depth < deepest:
            for kind in KINDS:
                for groups in range(1, batch + 1):
                    if batch % groups == 0:
                        inner = batch // groups
                        yield Cut(kind, batch, groups, (fitted(node, inner), Leaf(layer, inner)))
        if isinstance(node, Cut):
            leaf = Leaf(layer, batch // node.groups)
            yield Cut(node.kind, batch, node.groups, (*node.children, leaf))
            for last in grow(node.children[-1], depth + 1):
                yield Cut(node.kind, batch, node.groups, (*node.children[:-1], last))

    return grow(tree, 0)


def singles(layer: int, batch: int) -> Iterator[Node]:
    """A layer of its own; in subbatches too, as the data of all samples together may fill the buffers."""
    yield Leaf(layer, batch)
    for groups in divisors(batch)[1:]:
        yield Cut("T", batch, groups, (Leaf(layer, batch // groups),))


def by_samples(tree: Node) -> bool:
    """Whether a segment is a layer that runs on the whole batch, or runs all of its layers on single samples.

    Leaves of one sample are evaluated much faster than those of many samples, which have more partitions.
    """
    return isinstance(tree, Leaf) or all(leaf.batch == 1 for leaf in leaves(tree))


def grow_from(
    form: ClosedForm,
    segments: Segments,
    start: int,
    batch: int,
    ratio: float,
    growth: Growth,
    stop: Callable[[], bool],
    loads: int,
) -> None:
    """Grow segments that begin after a down-set, and collect all good ones.

    Parameters
    ----------
    batch : samples of a segment
    ratio : cycles that a pJ is worth
    loads : samples for which weights are loaded once
    """
    network = form.network
    next_layers = 1 if growth.in_order else None
    alone: dict[int, float] = {}

    def rate(tree: Node, done: int) -> float | None:
        if growth.single and not by_samples(tree):
            return None
        cost = form.segment(tree, loads)
        if isinstance(cost, Unfit):
            return None
        segments.add(Segment(start, done, cost.energy, cost.cycles, tree))
        return ratio * cost.energy + cost.cycles

    beam: list[tuple[float, Node, int]] = []
    for layer in islice(network.ready(start), next_layers):
        end = start | 1 << layer
        rates = [rate(tree, end) for tree in singles(layer, batch)]
        fitting = [known_cost for known_cost in rates if known_cost is not None]
        if fitting:
            alone[layer] = min(fitting)
            beam.append((alone[layer], Leaf(layer, batch), end))
    known = {start: 0.0}
    waiting = 0
    for _ in range(growth.longest - 1):
        if stop() or not beam or waiting > growth.patience:
            return
        grown: list[tuple[float, float, Node, int]] = []
        seen: set[Node] = set()
        better = False
        for score, _, done in beam:
            known[done] = min(known.get(done, score), score)
        for _, tree, done in beam:
            for layer in islice(network.ready(done), next_layers):
                if layer not in alone:
                    costs = [form.segment(tree, loads) for tree in singles(layer, batch)]
                    fitting = [
                        ratio * known_cost.energy + known_cost.cycles
                        for known_cost in costs
                        if not isinstance(known_cost, Unfit)
                    ]
                    if not fitting:
                        continue
                    alone[layer] = min(fitting)
                end = done | 1 << layer
                for made in extensions(tree, layer, growth.deepest):
                    if made in seen:
                        continue
                    seen.add(made)
                    rated = rate(made, end)
                    if rated is not None:
                        apart = known[done] + alone[layer]
                        better = better or rated < apart
                        grown.append((rated - apart, rated, made, end))
        grown.sort(key=lambda known_cost: known_cost[0])
        waiting = 0 if better else waiting + 1
        beam = []
        per_set: dict[int, int] = {}
        for _, rated, made, end in grown:
            if per_set.setdefault(end, 0) < growth.beam and len(beam) < 2 * growth.beam:
                per_set[end] += 1
                beam.append((rated, made, end))
