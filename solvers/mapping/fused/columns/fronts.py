"""All mappings of one turn, counted by the evaluator's expressions: which take least for the room they need.

The decisions are those of an ordinary layer whose tensors start in the outermost level.  Tensors that start
on chip have their outermost store moved there in the nest that is counted, so that its expressions are the
ones which the evaluator reads for a leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.formulation.expression import Expr
from tilewright.formulation.expression.batch import EXACT_LIMIT, BatchReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.fused.occupancy import bits_of_tile
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.formulation.mapping.nests.blocks import Residency
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem, state_problem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.solvers.mapping.fused.columns.space import MOST_IN_ALL, MOST_MAPPINGS, Listed, TooLargeError
from tilewright.workloads.mapping.operator import Operator, Role, Tensor

CHUNK = 1 << 15
Starts = tuple[tuple[Role, int], ...]
"""Per role whose tensors start on chip, the level."""


@dataclass(frozen=True)
class Front:
    """Mappings of turns of one size of which none takes less, in energy and in room, than another.

    Parameters
    ----------
    energies : of the first turn of some sums and of one that continues them, in units of ``1 / scale`` pJ,
        shape (mappings, 2)
    bits : per place, shape (mappings, places)
    picks : what each mapping is decoded from
    """

    energies: Int64s
    bits: Int64s
    picks: tuple[_Pick, ...]


@dataclass(frozen=True)
class _Pick:
    """A point of a part of the space: a row per axis group, and a value per selector."""

    part: LayerProblem
    tables: Tables
    rows: tuple[int, ...]
    selectors: tuple[int, ...]
    starts: Starts

    def mapping(self) -> Mapping:
        """The mapping of a leaf, without the stores in which tensors start on chip."""
        chosen = dict(zip(self.part.space.selectors, self.selectors, strict=True))
        mapping = self.part.decode({**self.tables.assignment(self.rows), **chosen})
        outermost = self.part.engine.levels[0].name
        homed = {t.name for t in self.part.operator.tensors if t.role in dict(self.starts)}
        return Mapping(
            tuple(
                node
                for node in mapping.nodes
                if not (isinstance(node, Storage) and node.level == outermost and node.tensor in homed)
            )
        )


@dataclass
class Fronts:
    """Fronts of turns on one machine, each made once."""

    listed: Listed
    limits: Limits
    mappings: int = 0
    _known: dict[object, Front] = field(default_factory=dict)

    def of(self, operator: Operator, starts: Starts, continues: bool) -> Front:
        """The front of some turns; raises ``TooLargeError``, or ``LimitReachedError`` where a limit strikes.

        Parameters
        ----------
        operator : what one turn computes
        starts : where its tensors start
        continues : whether turns that continue sums matter; otherwise they count as the first one
        """
        key = operator, starts, continues
        if key not in self._known:
            self._known[key] = self._listed(operator, starts, continues)
        return self._known[key]

    def _listed(self, operator: Operator, starts: Starts, continues: bool) -> Front:
        listed = self.listed
        problem = state_problem(
            operator,
            self._bare(starts),
            parse_objective("energy"),
            listed.model,
            (),
            listed.factors,
            listed.storage,
        )
        best = Front(np.zeros((0, 2), np.int64), np.zeros((0, len(listed.places)), np.int64), ())
        size = 0
        for part in problem.parts(self.limits.check):
            size += part.space.size
            if size > MOST_MAPPINGS:
                raise TooLargeError(f"a turn has more than {MOST_MAPPINGS:,} mappings, which are not listed")
            self.mappings += part.space.size
            if self.mappings > MOST_IN_ALL:
                raise TooLargeError(f"turns have more than {MOST_IN_ALL:,} mappings, which are not listed")
            for front in self._of_part(part, starts, continues):
                best = _merged(best, front)
        return best

    def _bare(self, starts: Starts) -> Engine:
        """The machine without room limits that turns share, and without levels outside the starts."""
        listed, start = self.listed, dict(starts)
        levels = list(listed.engine.levels)
        for index in listed.shared:
            gone = frozenset(role for role, home in start.items() if index <= home)
            keeps = levels[index].keeps - gone
            bypass = levels[index].may_bypass - gone
            levels[index] = replace(
                levels[index], keeps=keeps, may_bypass=bypass, capacity=None, bank=None, partitions={}
            )
        return replace(listed.engine, levels=tuple(levels))

    def _of_part(self, part: LayerProblem, starts: Starts, continues: bool) -> Iterator[Front]:
        """Fronts of chunks of one part of the space."""
        engine = fitted(self.listed.engine, part.operator)
        runs = (False, True) if continues else (False,)
        nests = [self._started(part, engine, starts, continued) for continued in runs]
        energies = [self.listed.model.statement(nest).energy for nest in nests]
        held = {
            (tensor, level): nests[0].kept(tensor, level)
            for tensor in part.operator.tensors
            for level in part.space.nest.residency[tensor.name].positions
            if level in self.listed.shared
        }
        roots = [*energies, *held.values(), *(limit.expr for limit in part.limits)]
        tables = Tables(part.space.groups, roots, self.limits)
        sizes = tables.sizes
        for first in range(0, prod(sizes), CHUNK):
            flat = np.arange(first, min(first + CHUNK, prod(sizes)))
            rows = [np.asarray(index) for index in np.unravel_index(flat, sizes)] if sizes else []
            for selectors in product(*(selector.domain for selector in part.space.selectors)):
                self.limits.check()
                yield self._chunk(part, tables, (rows, selectors), (energies, held), starts)

    def _started(self, part: LayerProblem, engine: Engine, starts: Starts, continued: bool) -> Nest:
        """The part's nest with the machine's own levels, in which tensors start where they do."""
        nest, start = part.space.nest, dict(starts)
        residency: dict[str, Residency] = {}
        for tensor in part.operator.tensors:
            own, home = nest.residency[tensor.name], start.get(tensor.role, 0)
            residency[tensor.name] = replace(
                own,
                positions={level or home: place for level, place in own.positions.items()},
                alternatives=tuple(tuple(level or home for level in levels) for levels in own.alternatives),
            )
        operator = replace(part.operator, continued=continued)
        return Nest(operator, engine, nest.boundaries, nest.blocks, residency, nest.perfect)

    def _chunk(
        self,
        part: LayerProblem,
        tables: Tables,
        points: tuple[Sequence[NDArray[Any]], Sequence[int]],
        exprs: tuple[Sequence[Expr], dict[tuple[Tensor, int], Expr]],
        starts: Starts,
    ) -> Front:
        """The front of some points of a part.

        Parameters
        ----------
        part, tables : whose points they are
        points : rows per axis group, and a value per selector
        exprs : energies, and what tensors hold in shared levels
        starts : where tensors start
        """
        (rows, selectors), (energies, held) = points, exprs
        count = len(rows[0]) if rows else 1
        chosen = dict(zip(part.space.selectors, selectors, strict=True))
        reader = BatchReader(chosen, tables.known(rows))
        legal = np.ones(count, np.bool_)
        for limit in part.limits:
            legal &= reader.read(limit.expr) <= limit.bound
        kept = np.flatnonzero(legal)

        def whole(expr: Expr) -> Int64s:
            values: Floats = np.broadcast_to(reader.read(expr), (count,))[kept]
            if values.max(initial=0) >= EXACT_LIMIT:
                raise TooLargeError("counts beyond 2**53 are not listed")
            return values.astype(np.int64)

        costs = np.stack([whole(energies[0]), whole(energies[-1])], axis=1)
        bits = np.zeros((len(kept), len(self.listed.places)), np.int64)
        for (tensor, level), expr in held.items():
            residency = part.space.nest.residency[tensor.name]
            option = residency.selector if isinstance(residency.selector, int) else chosen[residency.selector]
            if level in residency.alternatives[option]:
                bits[:, self.listed.place(level, tensor.role)] += self._bits(tensor, level, whole(expr))
        front = undominated(np.concatenate([costs, bits], axis=1))
        picks = tuple(
            _Pick(part, tables, tuple(int(index[kept[at]]) for index in rows), tuple(selectors), starts)
            for at in front
        )
        return Front(costs[front], bits[front], picks)

    def _bits(self, tensor: Tensor, level: int, elements: Int64s) -> Int64s:
        """Bits that tiles take in a level."""
        engine = self.listed.engine
        sizes, places = np.unique(elements, return_inverse=True)
        each = [bits_of_tile(engine, engine.levels[level], tensor.role, int(size)) for size in sizes]
        return np.array(each, np.int64)[places]


def _merged(front: Front, other: Front) -> Front:
    """The front of both together."""
    energies = np.concatenate([front.energies, other.energies])
    bits = np.concatenate([front.bits, other.bits])
    picks = (*front.picks, *other.picks)
    kept = undominated(np.concatenate([energies, bits], axis=1))
    return Front(energies[kept], bits[kept], tuple(picks[at] for at in kept))


def undominated(rows: Int64s) -> list[int]:
    """Of rows of numbers to be small, those that no other row is at most in all, equal ones once."""
    left = np.lexsort(rows.T[::-1])  # no row comes after one that it is at least in all
    kept: list[int] = []
    while len(left):
        first = left[0]
        kept.append(int(first))
        left = left[(rows[left] < rows[first]).any(axis=1)]
    return kept
