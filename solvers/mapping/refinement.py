"""Partial decisions refined stage by stage, many at a time, and pruned by their bounds.

What lies outside a tile that is decided is exact, what lies inside is at least compulsory traffic and a full
array (``docs/proofs.md`` shows why the bounds are valid).  Groups are refined one after the other, and
nodes that are many are bounded in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import replace
from itertools import product as cartesian

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.foundation.arrays import Int64s
from tilewright.solvers.mapping.goals import Goal
from tilewright.solvers.mapping.layout import Layout
from tilewright.solvers.mapping.nodes import Nodes, joined

BATCH = 1 << 16
_MANY = 256  # nodes that are bounded in the middle of a stage


class Refinement:
    """The children of partial decisions, as far as a goal wants them.

    Parameters
    ----------
    is_spent : asked between batches whether to leave the rest out

    Attributes
    ----------
    bounded : nodes that have been bounded
    stopped : whether something has been left out
    """

    def __init__(self, layout: Layout, goal: Goal, is_spent: Callable[[], bool]) -> None:
        self.bounded, self.stopped = 0, False
        self._goal, self._is_spent = goal, is_spent
        self.read(layout)

    def read(self, layout: Layout) -> None:
        """Bound nodes by a layout from now on; raises ``LimitReachedError`` where a limit strikes before."""
        self._bound_program = layout.bound_program
        self._layout = layout

    def root(self, chosen: MappingABC[Variable, int]) -> Nodes:
        """The whole space under some choices as one node."""
        zero, groups = np.zeros(1), len(self._layout.staged)
        # Stage -1 is the whole group: one cell that holds all rows.
        root = Nodes(np.zeros((groups, 1), dtype=np.int64), (-1,) * groups, chosen, zero, zero, zero)
        bounded = self.pruned(root)
        # A goal that wants nothing of the whole still gets a node, so that bounds can be read from it.
        return bounded if len(bounded) else root

    def children(self, nodes: Nodes, stage: int, beam: int | None = None) -> Iterator[Nodes]:
        """All children of some nodes that may be wanted, cheapest first, by choice.

        Parameters
        ----------
        stage : the one to be decided
        beam : the best of them only, so many after every group
        """
        names = [
            selector for selector in self._layout.stages[stage].selectors if selector not in nodes.chosen
        ]
        for values in cartesian(*(selector.domain for selector in names)):
            chosen = {**nodes.chosen, **dict(zip(names, values, strict=True))}
            # Choices before cells: once orders are fixed, the bounds of tiles are much tighter.
            start = replace(nodes, chosen=chosen)
            parts = list(self._split(start, self._group_order(stage), stage, beam))
            if parts:
                yield joined(parts).cheapest_first()

    def _group_order(self, stage: int) -> list[int]:
        """Groups with few children first, so that early pruning is cheap."""
        sizes = [len(staged.starts[stage]) for staged in self._layout.staged]
        return sorted(range(len(sizes)), key=lambda position: sizes[position])

    def _split(self, nodes: Nodes, order: Sequence[int], stage: int, beam: int | None) -> Iterator[Nodes]:
        if not order:
            nodes = self._narrowed(nodes, beam)
            if len(nodes):
                yield nodes
            return
        position, rest = order[0], order[1:]
        first, counts = self._cells(nodes, position, stage)
        # Children are made in batches, because one node may have millions of them in a group.
        ends = np.cumsum(counts)
        piece = 0
        while piece < len(nodes):
            if self._is_spent():
                self.stopped = True
                return
            base = ends[piece - 1] if piece else 0
            stop = max(piece + 1, int(np.searchsorted(ends, base + BATCH, side="right")))
            # Parent of every child, and the child's place among its siblings, which are consecutive cells.
            index = np.repeat(np.arange(piece, stop), counts[piece:stop])
            offset = np.arange(len(index)) - np.repeat(
                ends[piece:stop] - counts[piece:stop] - base, counts[piece:stop]
            )
            part = nodes.refined(index, position, first[index] + offset, stage)
            # A few nodes are cheaper to multiply by the next group than to bound twice.
            if rest and len(part) > (beam or _MANY):
                part = self._narrowed(part, beam)
            if len(part):
                yield from self._split(part, rest, stage, beam)
            piece = stop

    def _cells(self, nodes: Nodes, position: int, stage: int) -> tuple[Int64s, Int64s]:
        """First child cell and number of children of every node in one group."""
        staged = self._layout.staged[position]
        if stage == 0:
            begin, end = staged.root_children()
            size = len(nodes)
            return np.full(size, begin), np.full(size, end - begin)
        edges = staged.children[stage - 1]
        cells = nodes.cells[position]
        first = edges[cells].astype(np.int64)
        return first, edges[cells + 1] - first

    def _narrowed(self, nodes: Nodes, beam: int | None) -> Nodes:
        """Nodes that may be legal and wanted; with a beam only the best of them."""
        nodes = self.pruned(nodes)
        return nodes if beam is None else nodes.cheapest_first(beam)

    def pruned(self, nodes: Nodes) -> Nodes:
        """Nodes that may be legal and wanted, with their bounds raised."""
        self.bounded += len(nodes)
        self._layout.tally.nodes += len(nodes)
        # The compiled program drops what breaks a limit; objectives are read for the others alone.
        kept, read = self._bound_program.bounds(nodes.cells, nodes.at, nodes.chosen)
        if len(kept) < len(nodes):
            nodes = nodes.take(kept)
            if not len(nodes):
                return nodes
        rows = iter(read)
        energy, cycles = (
            # A parent's bound holds for its children, and may be the tighter one.
            old if root is None else np.maximum(old, next(rows))
            for old, root in ((nodes.energy, self._layout.energy), (nodes.cycles, self._layout.cycles))
        )
        if cycles.max() >= EXACT_LIMIT:  # a larger energy is a sum of exact counts, right within goals.BAND
            raise OverflowError("counts beyond 2**53: the layer is too large for exact bounds")
        a, b = self._layout.powers
        return self.wanted(nodes.bounded(energy, cycles, energy**a * cycles**b))

    def wanted(self, nodes: Nodes) -> Nodes:
        """Nodes that the goal wants."""
        keep = self._goal.wanted(nodes.energy, nodes.cycles, nodes.keys)
        return nodes if keep.all() else nodes.take(keep)
