"""Partial decisions in bulk, and complete ones with their mappings."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.mapping.chains import AxisGroup
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.arrays import Bools, Floats, Indices, Int64s
from tilewright.solvers.mapping.layout import Layout


@dataclass(frozen=True, slots=True)
class Nodes:
    """Partial decisions of one stage under the same choices.

    Parameters
    ----------
    cells : the cell of every node in every group, shape (groups, nodes)
    at : per group, the stage that its cells belong to; -1 where nothing is decided yet
    energy, cycles, keys : lower bounds of energy (scaled), cycles and objective key, as floats
    """

    cells: Int64s
    at: tuple[int, ...]
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
            self.at,
            self.chosen,
            self.energy.take(places),
            self.cycles.take(places),
            self.keys.take(places),
        )

    def refined(self, index: Indices, group: int, cells: Int64s, stage: int) -> Nodes:
        """Children of the nodes at some places: one group's cells, now of a stage.

        Parameters
        ----------
        index : the node that each child comes from, shape (children,)
        group : number of the axis group that is decided further
        cells : of each child in that group, shape (children,)
        stage : that these cells belong to
        """
        at = (*self.at[:group], stage, *self.at[group + 1 :])
        made = self.take(index)
        made.cells[group] = cells
        return Nodes(made.cells, at, made.chosen, made.energy, made.cycles, made.keys)

    def cheapest_first(self, most: int | None = None) -> Nodes:
        """The nodes in the order of their keys, of equal ones in their own; so many at most."""
        return self.take(np.argsort(self.keys, kind="stable")[:most])

    def bounded(self, energy: Floats, cycles: Floats, keys: Floats) -> Nodes:
        """The same nodes with other bounds."""
        return Nodes(self.cells, self.at, self.chosen, energy, cycles, keys)

    def between(self, start: int, stop: int | None) -> Nodes:
        piece = slice(start, stop)
        return Nodes(
            self.cells[:, piece],
            self.at,
            self.chosen,
            self.energy[piece],
            self.cycles[piece],
            self.keys[piece],
        )


def joined(parts: Sequence[Nodes]) -> Nodes:
    """Nodes of the same stage and choices in one."""
    if len(parts) == 1:
        return parts[0]
    return replace(
        parts[0],
        cells=np.concatenate([part.cells for part in parts], axis=1),
        energy=np.concatenate([part.energy for part in parts]),
        cycles=np.concatenate([part.cycles for part in parts]),
        keys=np.concatenate([part.keys for part in parts]),
    )


class Leaves:
    """Complete decisions, with their energy (scaled), cycles and objective keys."""

    def __init__(self, layout: Layout, nodes: Nodes) -> None:
        self._layout = layout
        self._nodes = nodes
        self.energy, self.cycles, self.keys = nodes.energy, nodes.cycles, nodes.keys

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self) -> list[tuple[AxisGroup, Indices]]:
        """Every axis group with the index of its row in each decision."""
        return [
            (staged.table.group, staged.starts[-1][cells])
            for staged, cells in zip(self._layout.staged, self._nodes.cells, strict=True)
        ]

    def mapping(self, index: int) -> Mapping:
        """The mapping of one of them."""
        assignment = dict(self._nodes.chosen)
        for staged, cell in zip(self._layout.staged, self._nodes.cells[:, index], strict=True):
            row = int(staged.starts[-1][cell])
            for column, variable in enumerate(staged.table.group.variables):
                assignment[variable] = int(staged.table.group.rows[row, column])
        return self._layout.problem.decode(assignment)
