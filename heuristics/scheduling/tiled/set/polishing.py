"""Polishing: neighbouring segments merge, and every segment descends to a tree that no operator improves.

Segments are independent of each other, so a change of one or two is judged by these alone: with energy ``E``
and cycles ``T`` of all others, by the value of ``E + e`` and ``T + t``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Node
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.heuristics.scheduling.tiled.set.operators import KINDS, fitted, neighbours, random_step

Row = list[Node]
"""Children of the root."""

Allowed = Callable[[Node], bool]
"""Whether a segment is looked at."""


def every_segment(_: Node) -> bool:
    """Where all segments are looked at."""
    return True


class Polisher:
    """Improves sequences of segments.

    Parameters
    ----------
    loads : samples for which weights are loaded once
    stop : whether the time is up
    notify : called with every better sequence
    allowed : whether a segment is looked at
    """

    def __init__(
        self,
        form: ClosedForm,
        loads: int,
        stop: Callable[[], bool],
        notify: Callable[[Row], None],
        allowed: Allowed = every_segment,
    ) -> None:
        self.form, self.loads, self.stop, self.notify, self.allowed = form, loads, stop, notify, allowed

    def cost(self, row: Sequence[Node]) -> tuple[float, int] | None:
        """Energy and cycles of some segments; ``None`` where one of them does not fit or is not
        looked at.
        """
        energy, cycles = 0.0, 0
        for tree in row:
            if not self.allowed(tree):
                return None
            cost = self.form.segment(tree, self.loads)
            if isinstance(cost, Unfit):
                return None
            energy, cycles = energy + cost.energy, cycles + cost.cycles
        return energy, cycles

    def value(self, row: Sequence[Node]) -> float:
        """The objective of a row that fits."""
        cost = self.cost(row)
        assert cost is not None
        return self.form.value(*cost)

    def polish(self, row: Row) -> Row:
        """Merge and descend by turns until neither helps."""
        best = self.value(row)
        while not self.stop():
            row = self.descend(self.merge(row))
            now = self.value(row)
            if now >= best * (1 - 1e-12):
                return row
            best = now
        return row

    def merge(self, row: Row) -> Row:
        """Make one segment of two neighbours, the most helpful first, as long as that helps.

        A sweep merges every segment once at most.
        """
        while True:
            gains = self._gains(row)
            energy, cycles = self._total(row)
            least = self.form.value(energy, cycles)
            merged: dict[int, Node] = {}
            for _, at, tree, (e, t) in sorted(gains, key=lambda gain: gain[:2]):
                value = self.form.value(energy + e, cycles + t)
                if value < least * (1 - 1e-12) and not merged.keys() & {at - 1, at, at + 1}:
                    energy, cycles, least = energy + e, cycles + t, value
                    merged[at] = tree
            if not merged:
                return row
            row = [merged.get(at, tree) for at, tree in enumerate(row) if at - 1 not in merged]
            self.notify(row)

    def _gains(self, row: Row) -> list[tuple[float, int, Node, tuple[float, int]]]:
        """For every two neighbours that had better be one segment: the value, their place, that segment, and
        the energy and cycles that it adds.
        """
        energy, cycles = self._total(row)
        gains = []
        for at in range(len(row) - 1):
            if self.stop():
                break
            pair = self.cost(row[at : at + 2])
            assert pair is not None
            least = self.form.value(energy, cycles) * (1 - 1e-12)
            best = None
            for made in merged(row[at], row[at + 1]):
                cost = self.cost([made])
                if cost is None:
                    continue
                more = cost[0] - pair[0], cost[1] - pair[1]
                value = self.form.value(energy + more[0], cycles + more[1])
                if value < least:
                    best, least = (value, at, made, more), value
            if best is not None:
                gains.append(best)
        return gains

    def descend(self, row: Row) -> Row:
        """Take the best neighbour of each segment, and of each pair of segments, until none is better."""
        at = 0
        quiet = 0
        while quiet < max(1, len(row)) and not self.stop():
            at %= len(row)
            width = 2 if at + 1 < len(row) else 1
            better = self._better(row, at, width)
            if better is None:
                quiet += 1
                at += 1
                continue
            row, quiet = better, 0
            self.notify(row)
        return row

    def _better(self, row: Row, at: int, width: int) -> Row | None:
        """The best change of the segments from ``at`` on."""
        energy, cycles = self._total(row)
        window = row[at : at + width]
        now = self.cost(window)
        assert now is not None
        best, least = None, self.form.value(energy, cycles)
        for made in self._changes(window):
            if self.stop():
                break
            cost = self.cost(made)
            if cost is None:
                continue
            value = self.form.value(energy - now[0] + cost[0], cycles - now[1] + cost[1])
            if value < least * (1 - 1e-12):
                best, least = made, value
        return None if best is None else [*row[:at], *best, *row[at + width :]]

    def _changes(self, window: Row) -> Iterator[Row]:
        network = self.form.network
        for _, tree in neighbours(window[0], network):
            yield [tree, *window[1:]]
        first = window[0]
        if isinstance(first, Cut) and first.kind == "T" and first.groups == 1:
            yield [*first.children, *window[1:]]
            for cut in range(1, len(first.children)):
                yield [_row(first.children[:cut]), _row(first.children[cut:]), *window[1:]]
        if len(window) > 1:
            both = Cut("T", window[0].batch, 1, tuple(window))
            for _, tree in neighbours(both, network):
                if isinstance(tree, Cut) and tree.kind == "T" and tree.groups == 1 and len(tree.children) > 1:
                    yield list(tree.children)

    def shake(self, row: Row, random: Random) -> Row:
        """Some random steps within one to three neighbouring segments, then a descent of these."""
        width = min(len(row), random.choice((1, 1, 2, 2, 3)))
        at = random.randrange(len(row) - width + 1)
        window: Node = row[at] if width == 1 else Cut("T", row[at].batch, 1, tuple(row[at : at + width]))
        for _ in range(random.randrange(1, 5)):
            made = random_step(window, self.form.network, random)
            if made is None:
                continue
            parts = _parts(made, width)
            if self.cost(parts) is not None:
                window = made
        inside = _parts(window, width)
        if self.cost(inside) is None:
            return row
        changed = [*row[:at], *inside, *row[at + width :]]
        for place in range(at, min(len(changed), at + len(inside))):
            better = self._better(changed, place, 1)
            while better is not None and not self.stop():
                changed = better
                place = min(place, len(changed) - 1)
                better = self._better(changed, place, 1)
        return changed

    def _total(self, row: Row) -> tuple[float, int]:
        cost = self.cost(row)
        assert cost is not None
        return cost


def _row(nodes: Sequence[Node]) -> Node:
    """One segment of several nodes in turn."""
    return nodes[0] if len(nodes) == 1 else Cut("T", nodes[0].batch, 1, tuple(nodes))


def _parts(tree: Node, width: int) -> Row:
    """Segments of a window: the children of its T cut, if several went into it."""
    if width > 1 and isinstance(tree, Cut) and tree.kind == "T" and tree.groups == 1:
        return list(tree.children)
    return [tree]


def merged(first: Node, second: Node) -> Iterator[Node]:
    """Ways to make one segment of two: side by side under a new cut, or their children under one."""
    batch = first.batch
    for kind in KINDS:
        for groups in range(1, batch + 1):
            if batch % groups:
                continue
            inner = batch // groups
            a, b = fitted(first, inner), fitted(second, inner)
            left = a.children if isinstance(a, Cut) and a.kind == kind and a.groups == 1 else (a,)
            right = b.children if isinstance(b, Cut) and b.kind == kind and b.groups == 1 else (b,)
            for children in {(a, b), (*left, b), (a, *right), (*left, *right)}:
                yield Cut(kind, batch, groups, children)
