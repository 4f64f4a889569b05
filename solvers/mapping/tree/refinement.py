"""Partial decisions refined stage by stage, many at a time, and pruned by their bounds.

What lies outside a tile that is decided is exact, what lies inside is at least compulsory traffic and a full
array (``docs/proofs.md`` shows why the bounds are valid).
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT
from tilewright.formulation.limits import Limits
from tilewright.solvers.mapping.tree.descent import WIDE, Descent
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.layout import Layout
from tilewright.solvers.mapping.tree.nodes import Nodes
from tilewright.solvers.mapping.tree.team import Team


class Refinement:
    """The children of partial decisions, as far as a goal wants them.

    Parameters
    ----------
    limits : checked between blocks of nodes; where one strikes, the rest is left out

    Attributes
    ----------
    most : nodes that may be bounded, if there is such a number
    below : what is searched depth first
    stopped : whether something has been left out
    """

    def __init__(self, layout: Layout, goal: Goal, limits: Limits) -> None:
        self.most: float | None = None
        self.stopped = False
        self._bounded = 0  # by layouts before, and one by one
        self._goal, self._limits = goal, limits
        self._read(layout)

    def read(self, layout: Layout) -> None:
        """Bound nodes by a layout from now on; raises ``LimitReachedError`` where a limit strikes before."""
        bounded = self.bounded
        self._read(layout)
        self._bounded = bounded

    def _read(self, layout: Layout) -> None:
        self._layout, self._bound_program = layout, layout.bound_program
        once = self._goal.once
        self.below, self._children = Team(layout, once), Descent(layout, WIDE, once=once)

    @property
    def bounded(self) -> int:
        """Nodes that have been bounded."""
        return self._bounded + self.below.bounded + self._children.bounded

    def is_spent(self) -> bool:
        """Whether no more nodes may be bounded."""
        return (self.most is not None and self.bounded > self.most) or self._limits.expired

    def root(self, chosen: MappingABC[Variable, int]) -> Nodes:
        """The whole space under some choices as one node."""
        zero, groups = np.zeros(1), len(self._layout.staged)
        # Stage -1 is the whole group: one cell that holds all rows.
        root = Nodes(np.zeros((groups, 1), dtype=np.int64), -1, chosen, zero, zero, zero)
        bounded = self.pruned(root)
        # A goal that wants nothing of the whole still gets a node, so that bounds can be read from it.
        return bounded if len(bounded) else root

    def children(self, nodes: Nodes, beam: int = 0) -> list[Nodes]:
        """All children of some nodes that may be wanted, cheapest first, by choice; none if cut short.

        Parameters
        ----------
        beam : the best of them only, so many after every group; 0 for all
        """
        children = self._children.expanded(nodes, self._goal, self.is_spent, beam)
        if children is None:
            self.stopped = True
        return children or []

    def pruned(self, nodes: Nodes) -> Nodes:
        """Nodes that may be legal and wanted, with their bounds raised."""
        self._bounded += len(nodes)
        self._layout.tally.nodes += len(nodes)
        # The compiled program drops what breaks a limit; objectives are read for the others alone.
        at = (nodes.stage,) * len(self._layout.staged)
        kept, read = self._bound_program.bounds(nodes.cells, at, nodes.chosen)
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
        if cycles.max() >= EXACT_LIMIT:  # a larger energy is a sum of exact counts, right within BAND
            raise OverflowError("counts beyond 2**53: the layer is too large for exact bounds")
        a, b = self._layout.powers
        return self.wanted(nodes.bounded(energy, cycles, energy**a * cycles**b))

    def wanted(self, nodes: Nodes) -> Nodes:
        """Nodes that the goal wants."""
        keep = self._goal.wanted(nodes.energy, nodes.cycles, nodes.keys)
        return nodes if keep.all() else nodes.take(keep)
