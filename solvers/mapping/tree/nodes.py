"""Partial decisions in bulk, and complete ones with their mappings."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.foundation.arrays import Bools, Floats, Indices, Int64s
from tilewright.solvers.mapping.tree.layout import Layout


@dataclass(frozen=True, slots=True)
class Nodes:
    """Partial decisions of one stage under the same choices.

    Parameters
    ----------
    cells : the cell of every node in every group, shape (groups, nodes)
    stage : to which the cells belong; -1 where nothing is decided yet
    energy, cycles, keys : lower bounds of energy (scaled), cycles and objective key, as floats
    """

    cells: Int64s
    stage: int
    chosen: MappingABC[Variable, int]
    energy: Floats
    cycles: Floats
    keys: Floats

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, index: Indices | Bools) -> Nodes:
        places = np.flatnonzero(index) if index.dtype == bool else index
        return Nodes(
            self.cells.take(places, axis=1),  # several times faster than indexing
            self.stage,
            self.chosen,
            self.energy.take(places),
            self.cycles.take(places),
            self.keys.take(places),
        )

    def cheapest_first(self) -> Nodes:
        """The nodes in the order of their keys, of equal ones in their own."""
        return self.take(np.argsort(self.keys, kind="stable"))

    def bounded(self, energy: Floats, cycles: Floats, keys: Floats) -> Nodes:
        """The same nodes with other bounds."""
        return Nodes(self.cells, self.stage, self.chosen, energy, cycles, keys)

    def between(self, start: int, stop: int | None) -> Nodes:
        piece = slice(start, stop)
        return Nodes(
            self.cells[:, piece],
            self.stage,
            self.chosen,
            self.energy[piece],
            self.cycles[piece],
            self.keys[piece],
        )


class Leaves:
    """Complete decisions, with their energy (scaled), cycles and objective keys."""

    def __init__(self, layout: Layout, nodes: Nodes) -> None:
        self._layout = layout
        self._nodes = nodes
        self.energy, self.cycles, self.keys = nodes.energy, nodes.cycles, nodes.keys

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def chosen(self) -> MappingABC[Variable, int]:
        """The options of choices, which all of them have in common."""
        return self._nodes.chosen

    @property
    def problem(self) -> LayerProblem:
        """Whose decisions they are."""
        return self._layout.problem

    def take(self, index: Indices | Bools) -> Leaves:
        """Some of them."""
        return Leaves(self._layout, self._nodes.take(index))

    def rows(self) -> list[tuple[AxisGroup, Indices]]:
        """Every axis group with the index of its row in each decision."""
        return [
            (staged.table.group, staged.starts[-1][cells])
            for staged, cells in zip(self._layout.staged, self._nodes.cells, strict=True)
        ]

    def mapping(self, index: int) -> Mapping:
        """The mapping of one of them."""
        return self._layout.problem.decode({**self._nodes.chosen, **self.tiles(index)})

    def tiles(self, index: int) -> dict[Variable, int]:
        """The tile sizes of one of them."""
        sizes: dict[Variable, int] = {}
        for staged, cell in zip(self._layout.staged, self._nodes.cells[:, index], strict=True):
            row = staged.table.group.rows[int(staged.starts[-1][cell])]
            sizes |= zip(staged.table.group.variables, row.tolist(), strict=True)
        return sizes
