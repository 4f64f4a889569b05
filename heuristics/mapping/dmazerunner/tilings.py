"""Valid tilings, listed in large batches from the innermost tile outwards.

Every stage fixes the tile sizes at one boundary of the nest, group by group.  Intervals of capacities, array
sizes and utilisations over all completions of a partial tiling tell whether it can still become valid.  They
are exact where nothing falls as tiles grow (everywhere but where buffers share), so only valid tilings are
ever completed, never sifted out of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingABC

import numpy as np

from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.parts.relaxation import GroupIntervalReader, GroupIntervals
from tilewright.formulation.mapping.tiles.tables import GroupTable, Tables, local_nodes
from tilewright.foundation.arrays import Bools, Floats, Indices
from tilewright.heuristics.mapping.dmazerunner.prunings import Condition

BATCH = 1 << 16


class Staged:
    """One group's rows, sorted so that rows with the same inner tiles stand together.

    Attributes
    ----------
    starts : per stage, the first row of every cell: rows that agree on what the stage and those before fix
    children : per stage, the first cell of the next stage in every cell, with an end marker
    low, high : per stage and node, the least and the largest value in every cell
    """

    def __init__(self, table: GroupTable, stages: Sequence[Sequence[Expr]], nodes: Sequence[Expr]) -> None:
        columns = {variable: table.group.rows[:, i] for i, variable in enumerate(table.group.variables)}
        keys = [[columns[v] for v in stage if isinstance(v, Variable) and v in columns] for stage in stages]
        flat = [column for stage in keys for column in stage]
        self.order: Indices = np.lexsort(flat[::-1]) if flat else np.arange(len(table))
        changed = np.zeros(len(table), dtype=bool)
        changed[:1] = True
        self.starts: list[Indices] = []
        for stage in keys:
            for column in stage:
                changed[1:] |= np.diff(column[self.order]) != 0
            self.starts.append(np.flatnonzero(changed))
        self.children = [
            np.append(np.searchsorted(inner, here), len(inner))
            for here, inner in zip(self.starts, self.starts[1:], strict=False)
        ]
        values = {node: table.values[node][self.order] for node in nodes}
        self.low = [{n: np.minimum.reduceat(v, starts) for n, v in values.items()} for starts in self.starts]
        self.high = [{n: np.maximum.reduceat(v, starts) for n, v in values.items()} for starts in self.starts]
        self.whole_low = {node: v.min(keepdims=True) for node, v in values.items()}
        self.whole_high = {node: v.max(keepdims=True) for node, v in values.items()}


class Tilings:
    """All tilings of some tables that satisfy all conditions.

    Parameters
    ----------
    tables : the groups' rows, none of them empty
    conditions : what a tiling must satisfy; their expressions are among the tables' roots
    chosen : the choices that the conditions depend on
    stop : asked now and then whether to end early
    """

    def __init__(
        self,
        nest: Nest,
        tables: Tables,
        conditions: Sequence[Condition],
        chosen: MappingABC[Variable, int],
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._conditions = conditions
        self._chosen = chosen
        self._stop = stop
        inwards = [[*edge.values()] for edge in nest.boundaries[1:-1]]
        self._stages = [stage for stage in reversed(inwards) if any(isinstance(v, Variable) for v in stage)]
        nodes = local_nodes([condition.expr for condition in conditions])
        self._staged = [
            Staged(table, self._stages, nodes.get(table.group.name, [])) for table in tables.tables
        ]

    def batches(self) -> Iterator[Indices]:
        """Rows of every group, of shape (groups, tilings)."""
        start = np.zeros((len(self._staged), 1), dtype=np.intp)
        if not self._staged or not self._stages:  # one tiling, which may be no good
            if self._may_hold(start, [-1] * len(self._staged)).all():
                yield start
            return
        for cells in self._deepen(start, 0):
            yield np.stack([s.order[s.starts[-1][own]] for s, own in zip(self._staged, cells, strict=True)])

    def _deepen(self, cells: Indices, stage: int) -> Iterator[Indices]:
        """All completions of some partial tilings, depth first in lots."""
        if stage == len(self._stages):
            yield cells
            return
        sizes = [len(staged.starts[stage]) for staged in self._staged]
        groups = sorted(range(len(sizes)), key=lambda group: sizes[group])
        for part in self._split(cells, groups, stage, [stage - 1] * len(groups)):
            yield from self._deepen(part, stage + 1)

    def _split(
        self, cells: Indices, groups: Sequence[int], stage: int, at: Sequence[int]
    ) -> Iterator[Indices]:
        if not groups:
            yield cells
            return
        group, rest = groups[0], groups[1:]
        first, counts = self._children(cells[group], group, stage)
        ends = np.cumsum(counts)
        now = [stage if i == group else s for i, s in enumerate(at)]
        piece = 0
        while piece < len(counts) and not self._stop():
            base = ends[piece - 1] if piece else 0
            until = max(piece + 1, int(np.searchsorted(ends, base + BATCH, side="right")))
            index = np.repeat(np.arange(piece, until), counts[piece:until])
            offset = np.arange(len(index)) - np.repeat(
                ends[piece:until] - counts[piece:until] - base, counts[piece:until]
            )
            grown = cells[:, index]
            grown[group] = first[index] + offset
            grown = grown[:, self._may_hold(grown, now)]
            if grown.shape[1]:
                yield from self._split(grown, rest, stage, now)
            piece = until

    def _children(self, cells: Indices, group: int, stage: int) -> tuple[Indices, Indices]:
        staged = self._staged[group]
        if stage == 0:
            return np.zeros_like(cells), np.full_like(cells, len(staged.starts[0]))
        edges = staged.children[stage - 1]
        return edges[cells], edges[cells + 1] - edges[cells]

    def _may_hold(self, cells: Indices, at: Sequence[int]) -> Bools:
        """Partial tilings of which no condition excludes every completion."""
        reader = GroupIntervalReader([self._intervals(cells, at)], self._chosen)
        keep = np.ones(cells.shape[1], dtype=bool)
        for condition in self._conditions:
            if np.isfinite(condition.most):
                keep &= reader.low(condition.expr) <= condition.most
            if condition.least > 0:
                keep &= reader.high(condition.expr) >= condition.least
        return keep

    def _intervals(self, cells: Indices, at: Sequence[int]) -> GroupIntervals:
        intervals: dict[Expr, tuple[Floats, Floats]] = {}
        for staged, own, stage in zip(self._staged, cells, at, strict=True):
            if stage < 0:
                intervals |= {node: (low, staged.whole_high[node]) for node, low in staged.whole_low.items()}
            else:
                low, high = staged.low[stage], staged.high[stage]
                intervals |= {node: (values.take(own), high[node].take(own)) for node, values in low.items()}
        return intervals
