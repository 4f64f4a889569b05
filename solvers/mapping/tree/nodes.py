"""Partial decisions in bulk, and complete ones with their mappings."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
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
    """Complete decisions under the same choices, with their energy (scaled), cycles and objective keys.

    Parameters
    ----------
    problem : whose decisions they are
    groups : its axis groups
    rows : of each group, shape (groups, decisions)
    chosen : the options of choices
    energy, cycles, keys : shape (decisions,)
    """

    def __init__(
        self,
        problem: LayerProblem,
        groups: Sequence[AxisGroup],
        rows: Indices,
        chosen: MappingABC[Variable, int],
        energy: Floats,
        cycles: Floats,
        keys: Floats,
    ) -> None:
        self._problem, self._groups, self._rows = problem, groups, rows
        self.chosen = chosen
        self.energy, self.cycles, self.keys = energy, cycles, keys

    @classmethod
    def of(cls, layout: Layout, nodes: Nodes) -> Leaves:
        """Nodes of the last stage of a layout."""
        staged = layout.staged
        rows = np.empty(nodes.cells.shape, dtype=np.intp)
        for own, table, cells in zip(rows, staged, nodes.cells, strict=True):
            own[:] = table.starts[-1].take(cells)
        groups = [table.table.group for table in staged]
        return cls(layout.problem, groups, rows, nodes.chosen, nodes.energy, nodes.cycles, nodes.keys)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def problem(self) -> LayerProblem:
        """Whose decisions they are."""
        return self._problem

    def take(self, index: Indices | Bools) -> Leaves:
        """Some of them."""
        places = np.flatnonzero(index) if index.dtype == bool else index
        return Leaves(
            self._problem,
            self._groups,
            self._rows.take(places, axis=1),
            self.chosen,
            self.energy.take(places),
            self.cycles.take(places),
            self.keys.take(places),
        )

    def rows(self) -> list[tuple[AxisGroup, Indices]]:
        """Every axis group with the index of its row in each decision."""
        return [*zip(self._groups, self._rows, strict=True)]

    def mapping(self, index: int) -> Mapping:
        """The mapping of one of them."""
        return self._problem.decode({**self.chosen, **self.tiles(index)})

    def tiles(self, index: int) -> dict[Variable, int]:
        """The tile sizes of one of them."""
        sizes: dict[Variable, int] = {}
        for group, row in zip(self._groups, self._rows[:, index].tolist(), strict=True):
            sizes |= zip(group.variables, group.rows[row].tolist(), strict=True)
        return sizes
