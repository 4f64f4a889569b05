"""Branch and bound over the memory hierarchy, vectorised.

The search refines all axis groups stage by stage (:mod:`tilewright.solvers.stages`): the outermost tile
first, then what happens inside it.  A partial decision is bounded by reading the objective with
intervals: what lies outside the tile is exact, what lies inside is at least compulsory traffic and a full
array.  Partial decisions are opened in the order of their bounds; what cannot beat the incumbent is
closed.  ``docs/proofs.md`` shows why the bounds are valid.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from itertools import product as cartesian

import numpy as np
from numpy.typing import NDArray

from tilewright import __version__
from tilewright.formulation.expression import Expr, Variable
from tilewright.formulation.expression.batch import EXACT_LIMIT, Array
from tilewright.formulation.expression.interval import IntervalReader
from tilewright.formulation.search import Search
from tilewright.solvers.base import Outcome
from tilewright.solvers.floors import ArrayFloors
from tilewright.solvers.stages import StagedTable, stages_of
from tilewright.solvers.tables import Indices, Tables

BATCH = 1 << 16
_BAND = 1e-12  # relative; products of two exact floats agree with the exact product well within it


class Branch:
    """Best-first branch and bound on interval bounds."""

    name = "branch"
    exact = True

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: Search) -> Outcome:
        """Offer every improvement, raise the bound as the cheapest open part grows dearer."""
        return _Tree(search).run()


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Partial decisions of one stage under the same choices.

    Parameters
    ----------
    cells : per group, the cell of every node
    at : per group, the stage that its cells belong to; -1 where nothing is decided yet
    bounds : lower bound of the objective key, as a float
    """

    cells: tuple[Indices, ...]
    at: tuple[int, ...]
    chosen: Mapping[Variable, int]
    bounds: Array

    def __len__(self) -> int:
        return len(self.bounds)

    def take(self, index: Indices | NDArray[np.bool_] | slice) -> _Nodes:
        return _Nodes(tuple(c[index] for c in self.cells), self.at, self.chosen, self.bounds[index])


class _CellReader(IntervalReader):
    """Reads expressions for nodes, with the tables of their cells."""

    def __init__(self, tree: _Tree, nodes: _Nodes) -> None:
        super().__init__(nodes.chosen)
        self._tree = tree
        self._nodes = nodes

    def known_low(self, expr: Expr) -> Array | None:
        floor = self._tree.floors.get(expr)
        if floor is not None:
            return np.maximum(self._read_low(expr), floor)
        return self._look_up(expr, low=True)

    def known_high(self, expr: Expr) -> Array | None:
        return self._look_up(expr, low=False)

    def _look_up(self, expr: Expr, low: bool) -> Array | None:
        if expr.group is None:
            return None
        position = self._tree.position[expr.group]
        stage = self._nodes.at[position]
        if stage < 0:
            return (self._tree.whole_low if low else self._tree.whole_high)[position].get(expr)
        staged = self._tree.staged[position]
        table = (staged.low if low else staged.high)[stage]
        values = table.get(expr)
        return None if values is None else values[self._nodes.cells[position]]


class _Tree:
    """One search."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.problem = search.problem
        space, statement = self.problem.space, self.problem.statement
        self.powers = self.problem.objective.key_powers
        limits = [limit.expr for limit in self.problem.limits]
        tables = Tables(space.groups, [statement.energy, statement.cycles, *limits])
        self.stages = stages_of(space)
        roots = [statement.energy, statement.cycles]
        self.floors = ArrayFloors(space.nest, tables).floors(roots)
        self.staged = [StagedTable(table, space.nest, self.stages) for table in tables.tables]
        self.position = {staged.table.group.name: i for i, staged in enumerate(self.staged)}
        self.whole_low = [_whole(staged, np.min) for staged in self.staged]
        self.whole_high = [_whole(staged, np.max) for staged in self.staged]
        self.tick = count()

    def run(self) -> Outcome:
        """Search until nothing open can beat the incumbent."""
        if any(not len(staged.table) for staged in self.staged):
            return Outcome(True, "no tile sizes satisfy the constraints on one dimension")
        root = _Nodes(
            tuple(np.zeros(1, dtype=np.intp) for _ in self.staged),
            tuple(-1 for _ in self.staged),
            {},
            np.zeros(1),
        )
        fringe: list[tuple[float, int, _Nodes]] = []
        for nodes in self._refine(root, 0):
            self._push(fringe, nodes)
        size = 1
        while fringe:
            least, _, nodes = heapq.heappop(fringe)
            self._raise_bound(least)
            if self.search.done:
                return Outcome(self._proven())
            nodes = self._open(nodes)
            if len(nodes):
                head, rest = nodes.take(slice(0, size)), nodes.take(slice(size, None))
                if len(rest):
                    self._push(fringe, rest)
                self._explore(head, 1)
                size = min(4 * size, 1024)
        return self._finish()

    def _push(self, fringe: list[tuple[float, int, _Nodes]], nodes: _Nodes) -> None:
        heapq.heappush(fringe, (float(nodes.bounds[0]), next(self.tick), nodes))

    def _proven(self) -> bool:
        return self.search.value is not None and self.search.value == self.search.bound

    def _finish(self) -> Outcome:
        if self.search.limits.expired:
            return Outcome(self._proven())
        if self.search.value is None:
            return Outcome(True, "no mapping satisfies all constraints")
        slack = 1 - Fraction(self.search.limits.gap)
        self.search.raise_bound(self.search.value * slack, self.name)
        return Outcome(True)

    name = Branch.name

    def _raise_bound(self, bound: float) -> None:
        """Everything still open costs at least ``bound``."""
        if bound > 0:
            safe = Fraction(int(bound * (1 - _BAND))) / self.problem.key_scale
            value = self.search.value
            self.search.raise_bound(safe if value is None else min(safe, value), self.name)

    def _explore(self, nodes: _Nodes, stage: int) -> None:
        """Depth first, cheapest first, in growing pieces."""
        size = 1 if self.search.value is None else 256
        while len(nodes):
            if self.search.limits.expired:
                return
            nodes = self._open(nodes)
            head, nodes = nodes.take(slice(0, size)), nodes.take(slice(size, None))
            if len(head):
                inner = sorted(self._refine(head, stage), key=lambda part: float(part.bounds[0]))
                for part in inner:
                    if stage + 1 == len(self.stages):
                        self._leaves(part)
                    else:
                        self._explore(part, stage + 1)
            size = min(4 * size, 4096)

    def _refine(self, nodes: _Nodes, stage: int) -> Iterator[_Nodes]:
        """All children of some nodes that may beat the incumbent, cheapest first, by choice."""
        names = self.stages[stage].selectors
        for values in cartesian(*(selector.domain for selector in names)):
            chosen = {**nodes.chosen, **dict(zip(names, values, strict=True))}
            start = _Nodes(nodes.cells, nodes.at, chosen, nodes.bounds)
            parts = list(self._split(start, self._group_order(nodes, stage), stage))
            if not parts:
                continue
            cells = tuple(np.concatenate(c) for c in zip(*(p.cells for p in parts), strict=True))
            bounds = np.concatenate([part.bounds for part in parts])
            merged = _Nodes(cells, parts[0].at, chosen, bounds)
            yield merged.take(np.argsort(bounds, kind="stable"))

    def _group_order(self, nodes: _Nodes, stage: int) -> list[int]:
        """Groups with few children first, so that early pruning is cheap."""
        sizes = [len(staged.starts[stage]) for staged in self.staged]
        return sorted(range(len(sizes)), key=lambda position: sizes[position])

    def _split(self, nodes: _Nodes, order: Sequence[int], stage: int) -> Iterator[_Nodes]:
        if not order:
            nodes = self._prune(nodes)
            if len(nodes):
                yield nodes
            return
        position, rest = order[0], order[1:]
        first, counts = self._children(nodes, position, stage)
        ends = np.cumsum(counts)
        piece = 0
        while piece < len(nodes):
            base = ends[piece - 1] if piece else 0
            stop = max(piece + 1, int(np.searchsorted(ends, base + BATCH, side="right")))
            index = np.repeat(np.arange(piece, stop), counts[piece:stop])
            offset = np.arange(len(index)) - np.repeat(
                ends[piece:stop] - counts[piece:stop] - base, counts[piece:stop]
            )
            grown = nodes.take(index)
            cells = list(grown.cells)
            cells[position] = first[index] + offset
            at = tuple(stage if i == position else s for i, s in enumerate(nodes.at))
            part = _Nodes(tuple(cells), at, nodes.chosen, grown.bounds)
            if rest and len(part) > 256:
                part = self._prune(part)
            if len(part):
                yield from self._split(part, rest, stage)
            piece = stop

    def _children(self, nodes: _Nodes, position: int, stage: int) -> tuple[Indices, Indices]:
        """First child cell and number of children of every node in one group."""
        staged = self.staged[position]
        if stage == 0:
            begin, end = staged.root_children()
            size = len(nodes)
            return np.full(size, begin), np.full(size, end - begin)
        edges = staged.children[stage - 1]
        cells = nodes.cells[position]
        return edges[cells], edges[cells + 1] - edges[cells]

    def _prune(self, nodes: _Nodes) -> _Nodes:
        """Keep nodes that may be legal and may beat the incumbent; raise their bounds."""
        reader = _CellReader(self, nodes)
        keep = np.ones(len(nodes), dtype=bool)
        for limit in self.problem.limits:
            keep &= reader.low(limit.expr) <= limit.bound
        if not keep.all():
            nodes = nodes.take(keep)
            if not len(nodes):
                return nodes
            reader = _CellReader(self, nodes)
        size = (len(nodes),)
        energy = np.broadcast_to(reader.low(self.problem.statement.energy), size)
        cycles = np.broadcast_to(reader.low(self.problem.statement.cycles), size)
        if max(energy.max(), cycles.max()) >= EXACT_LIMIT:
            raise OverflowError("counts beyond 2**53: the layer is too large for exact bounds")
        bounds = np.maximum(nodes.bounds, energy ** self.powers[0] * cycles ** self.powers[1])
        bounded = _Nodes(nodes.cells, nodes.at, nodes.chosen, bounds)
        return self._open(bounded, energy, cycles)

    def _open(self, nodes: _Nodes, energy: Array | None = None, cycles: Array | None = None) -> _Nodes:
        """Nodes whose bound is below what the incumbent leaves to gain."""
        value = self.search.value
        if value is None:
            return nodes
        goal = value * self.problem.key_scale * (1 - Fraction(self.search.limits.gap))
        target = float(goal)
        keep = nodes.bounds < target * (1 + _BAND)
        if sum(self.powers) == 1:
            keep &= nodes.bounds < target
        elif energy is not None and cycles is not None:
            a, b = self.powers
            for index in np.flatnonzero(keep & (nodes.bounds > target * (1 - _BAND))):
                keep[index] = int(energy[index]) ** a * int(cycles[index]) ** b < goal
        return nodes if keep.all() else nodes.take(keep)

    def _leaves(self, nodes: _Nodes) -> None:
        """Complete decisions: offer the best."""
        best = int(np.argmin(nodes.bounds))
        assignment = dict(nodes.chosen)
        for staged, cells in zip(self.staged, nodes.cells, strict=True):
            row = int(staged.starts[-1][cells[best]])
            for column, variable in enumerate(staged.table.group.variables):
                assignment[variable] = int(staged.table.group.rows[row, column])
        self.search.offer(self.problem.decode(assignment), self.name)


def _whole(staged: StagedTable, end: np.ufunc | object) -> dict[Expr, Array]:
    return {node: np.asarray(end(values)) for node, values in staged.table.values.items() if len(values)}  # type: ignore[operator]
