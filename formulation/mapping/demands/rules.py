"""What a demand means for an operator on an engine: one class per kind, all with one protocol.

A rule says which rows of tile sizes it allows, which limits it adds to a cost model's statement, and whether
a mapping breaks it.  No rule bars a loop order for all tile sizes alike, so demands on orders are limits too.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from tilewright.formulation.expression import Expr, as_expr, choose, is_one, product
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.cost import Limit, Statement
from tilewright.formulation.mapping.evaluator import Evaluation, nest_of
from tilewright.formulation.mapping.mapping import Mapping as LoopNest
from tilewright.formulation.mapping.nests.blocks import Block
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import OrderClass, ended_by, in_sequence
from tilewright.formulation.mapping.tiles.axis_groups import RowFilter
from tilewright.foundation.arrays import Bools, Int64s
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Tensor

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": op.le,
    ">=": op.ge,
    "==": op.eq,
    "=": op.eq,
    "!=": op.ne,
}
_ROUNDING = Fraction(1, 10**12)
"""By which a utilization, a float, may lie below its limit."""


@dataclass(frozen=True)
class Evaluated:
    """A mapping and what the evaluator says of it, for rules to look at."""

    operator: Operator
    engine: Engine
    mapping: LoopNest
    evaluation: Evaluation

    @cached_property
    def nest(self) -> Nest:
        """The loop nest of the mapping."""
        return nest_of(self.operator, self.engine, self.mapping)

    def tiles(self, dim: str) -> list[Int64s]:
        """Tile sizes of a dimension at every boundary, as one row."""
        return [np.array([evaluate(edge[dim], {})]) for edge in self.nest.boundaries]


class Rule(Protocol):
    """A demand, stated for an operator and an engine."""

    @property
    def text(self) -> str:
        """The canonical text: by it problems are hashed, limits named and violations told."""

    def row_filter(self, blocks: Sequence[Block], engine: Engine) -> RowFilter | None:
        """A predicate over the tile sizes of dimensions at every boundary; ``None`` where any will do."""

    def limits(self, statement: Statement, nest: Nest) -> Iterator[Limit]:
        """What a cost model's statement must satisfy, beyond what the row filter ensures."""

    def broken_by(self, seen: Evaluated) -> bool:
        """Whether a mapping, from inside the space or outside, is against the rule."""


@dataclass(frozen=True, slots=True)
class MetricCap:
    """``metric <= limit``, or a lower limit on utilization.

    Parameters
    ----------
    metric : ``energy`` (pJ), ``cycles``, ``edp`` or ``utilization``
    """

    text: str
    metric: str
    limit: Fraction

    def row_filter(self, blocks: Sequence[Block], engine: Engine) -> None:
        return None

    def limits(self, statement: Statement, nest: Nest) -> Iterator[Limit]:
        match self.metric:
            case "energy":
                yield Limit(self.text, statement.energy, int(self.limit * statement.energy_scale))
            case "cycles":
                yield Limit(self.text, statement.cycles, int(self.limit))
            case "edp":
                edp = product([statement.energy, statement.cycles])
                yield Limit(self.text, edp, int(self.limit * statement.energy_scale))
            case _:
                most = Fraction(nest.operator.iterations) / (self.limit * nest.engine.instances)
                yield Limit(self.text, statement.cycles, int(most))

    def broken_by(self, seen: Evaluated) -> bool:
        evaluation = seen.evaluation
        match self.metric:
            case "energy":
                return evaluation.energy > self.limit
            case "cycles":
                return evaluation.cycles > self.limit
            case "edp":
                return evaluation.energy * evaluation.cycles > self.limit
        # Utilization is a float; the limit in the search is exact in cycles.
        return Fraction(evaluation.utilization) < self.limit - _ROUNDING


@dataclass(frozen=True, slots=True)
class TileRule:
    """A comparison on the tile sizes of one dimension.

    Parameters
    ----------
    what : ``tile``, ``trips`` or ``spatial``
    site : the level or array axis
    hosts : per memory level, the level that its temporal loops count as (`loop_hosts`)
    """

    text: str
    what: str
    dim: str
    site: str | None
    compare: str
    number: int
    hosts: tuple[int, ...]

    def holds(self, tiles: Sequence[Int64s], blocks: Sequence[Block], engine: Engine) -> Bools:
        """Row by row, for the tile sizes of the dimension at every boundary."""
        names = [level.name for level in engine.levels]
        value = np.ones_like(tiles[0])
        # Loops of a level that can store nothing count as the next outer one's that can.
        levels = [self.hosts[block.level] if block.is_temporal else block.level for block in blocks]
        if self.what == "tile":  # what the first loops inside the level's stores walk through
            level = names.index(str(self.site))
            value = tiles[next((i for i, at in enumerate(levels) if at >= level), len(blocks))]
        for index, block in enumerate(blocks):
            trips = -(-tiles[index] // tiles[index + 1])
            if block.axis is None:
                counted = self.what == "trips" and names[levels[index]] == self.site
            else:
                counted = self.what == "spatial" and self.site in (None, block.axis.name)
            if counted:
                value = value * trips
        if self.compare == "%":  # a multiple, or the whole dimension
            return np.asarray((value % self.number == 0) | (value == tiles[0]), dtype=np.bool_)
        return np.asarray(_COMPARE[self.compare](value, self.number), dtype=np.bool_)

    def row_filter(self, blocks: Sequence[Block], engine: Engine) -> RowFilter:
        def keep(tiles: Mapping[str, Sequence[Int64s]]) -> Bools:
            if self.dim in tiles:
                return self.holds(tiles[self.dim], blocks, engine)
            # Another axis group's rows; the rule says nothing of them.
            return np.ones(len(next(iter(tiles.values()))[0]), dtype=np.bool_)

        return keep

    def limits(self, statement: Statement, nest: Nest) -> Iterator[Limit]:
        """One that nothing meets, where a dimension of one iteration breaks the rule whatever is decided."""
        # A dimension of one iteration has no rows to filter, yet may break a rule such as ``tile K@L1>=2``.
        ones = [np.ones(1, dtype=np.int64)] * len(nest.boundaries)
        if nest.operator.bounds[self.dim] == 1 and not self.holds(ones, nest.blocks, nest.engine)[0]:
            yield Limit(self.text, as_expr(1), 0)

    def broken_by(self, seen: Evaluated) -> bool:
        return not self.holds(seen.tiles(self.dim), seen.nest.blocks, seen.engine)[0]


@dataclass(frozen=True, slots=True)
class SpreadRule:
    """Some dimensions may not be spread over the array.

    Parameters
    ----------
    barred : a rule for each of them
    """

    text: str
    barred: tuple[TileRule, ...]

    def row_filter(self, blocks: Sequence[Block], engine: Engine) -> RowFilter:
        filters = [rule.row_filter(blocks, engine) for rule in self.barred]

        def keep(tiles: Mapping[str, Sequence[Int64s]]) -> Bools:
            mask = np.ones(len(next(iter(tiles.values()))[0]), dtype=np.bool_)
            for row_filter in filters:
                mask &= row_filter(tiles)
            return mask

        return keep

    def limits(self, statement: Statement, nest: Nest) -> Iterator[Limit]:
        for rule in self.barred:
            yield from rule.limits(statement, nest)

    def broken_by(self, seen: Evaluated) -> bool:
        return any(rule.broken_by(seen) for rule in self.barred)


@dataclass(frozen=True, slots=True)
class OrderRule:
    """A level's loops keep one tensor in place."""

    text: str
    level: str
    tensor: str

    def row_filter(self, blocks: Sequence[Block], engine: Engine) -> None:
        return None

    def limits(self, statement: Statement, nest: Nest) -> Iterator[Limit]:
        """Where loops that could keep the tensor in place run at the level, an order that does is chosen."""
        level = _index(nest.engine, self.level)
        tensor = nest.operator.tensor(self.tensor)
        others = [dim for dim in nest.operator.bounds if dim not in tensor.dims]
        for index, block in enumerate(nest.blocks):
            if block.is_temporal and block.level == level and block.orders:
                # Where no loop runs that could reuse the tensor, any order will do.
                idle = is_one(product(nest.trips([index], others)))
                kept = [product(nest.trips([index], sorted(o.reused[self.tensor]))) for o in block.orders]
                wrong: list[Expr] = [is_one(run) - idle for run in kept]
                yield Limit(self.text, choose(block.selector, wrong), 0)

    def broken_by(self, seen: Evaluated) -> bool:
        level = _index(seen.engine, self.level)
        own = seen.operator.tensor(self.tensor).dims
        chosen = [block.orders[0] for block in seen.nest.blocks if block.level == level and block.orders]
        return any(set(loops.permutation) - own and not loops.reused[self.tensor] for loops in chosen)


@dataclass(frozen=True, slots=True)
class InnermostRule:
    """The innermost loop of a level is a dimension's, where the level has any loop.

    Which orders there are to choose from is another matter (`Constraints.orders`).

    Parameters
    ----------
    tensors : the operator's
    """

    text: str
    level: str
    dim: str
    tensors: tuple[Tensor, ...]

    def index(self, engine: Engine) -> int:
        """Of the level."""
        return _index(engine, self.level)

    def orders(self, effects: Iterable[OrderClass], every: bool) -> tuple[OrderClass, ...]:
        """Of a level's effects, dominated ones included, those with this innermost loop."""
        # What is left may be dominated by what it excludes only, so that all of them are looked through.
        return ended_by(effects, self.dim, {t.name: t.dims for t in self.tensors}, every)

    def row_filter(self, blocks: Sequence[Block], engine: Engine) -> None:
        return None

    def limits(self, statement: Statement, nest: Nest) -> Iterator[Limit]:
        """Where any loop runs at the level, so does that of the dimension."""
        for index, block in enumerate(nest.blocks):
            if block.is_temporal and block.level == self.index(nest.engine):
                idle = is_one(product(nest.trips([index], [*nest.operator.bounds])))
                yield Limit(self.text, is_one(product(nest.trips([index], [self.dim]))) - idle, 0)

    def broken_by(self, seen: Evaluated) -> bool:
        level = self.index(seen.engine)
        chosen = [block.orders[0] for block in seen.nest.blocks if block.level == level and block.orders]
        return any(loops.permutation and loops.permutation[-1] != self.dim for loops in chosen)


@dataclass(frozen=True, slots=True)
class SequenceRule:
    """The loops of a level stand in a given order.

    Parameters
    ----------
    dims : all dimensions, outermost first
    tensors : the operator's
    """

    text: str
    level: str
    dims: tuple[str, ...]
    tensors: tuple[Tensor, ...]

    def index(self, engine: Engine) -> int:
        """Of the level."""
        return _index(engine, self.level)

    def orders(self, effects: Iterable[OrderClass], every: bool) -> tuple[OrderClass, ...]:
        """Of a level's effects, dominated ones included, all that the order has when loops do not run."""
        return in_sequence(effects, self.dims, {t.name: t.dims for t in self.tensors})

    def row_filter(self, blocks: Sequence[Block], engine: Engine) -> None:
        return None

    def limits(self, statement: Statement, nest: Nest) -> Iterator[Limit]:
        """The effect that is chosen is that of the order, given which of the level's loops run.

        A loop that runs keeps a tensor in place, or slides its window, where none of the tensor's own loops
        runs inside it, and nowhere else.
        """
        for index, block in enumerate(nest.blocks):
            if not (block.is_temporal and block.level == self.index(nest.engine) and block.orders):
                continue
            for tensor in self.tensors:
                for place, dim in enumerate(self.dims):
                    if dim in tensor.dims:
                        claims = [order.slides[tensor.name] == dim for order in block.orders]
                        if not any(claims):
                            continue
                    else:
                        claims = [dim in order.reused[tensor.name] for order in block.orders]
                    still = is_one(product(nest.trips([index], [dim])))
                    inside = [inner for inner in self.dims[place + 1 :] if inner in tensor.dims]
                    unmoved = is_one(product(nest.trips([index], inside))) if inside else as_expr(1)
                    wrong = [1 - still - unmoved if claim else unmoved - still for claim in claims]
                    yield Limit(self.text, choose(block.selector, wrong), 0)

    def broken_by(self, seen: Evaluated) -> bool:
        level = self.index(seen.engine)
        chosen = [block.orders[0] for block in seen.nest.blocks if block.level == level and block.orders]
        return any(
            list(loops.permutation) != [dim for dim in self.dims if dim in loops.permutation]
            for loops in chosen
        )


PINNING = (InnermostRule, SequenceRule)
"""Rules on which orders there are to choose from at a level."""


@dataclass(frozen=True, slots=True)
class StoreRule:
    """A tensor is stored at a level, or bypasses it."""

    text: str
    tensor: str
    level: str
    stored: bool

    def row_filter(self, blocks: Sequence[Block], engine: Engine) -> None:
        return None

    def limits(self, statement: Statement, nest: Nest) -> Iterator[Limit]:
        """The choice of the levels that store the tensor."""
        level, residency = _index(nest.engine, self.level), nest.residency[self.tensor]
        wrong = [as_expr(int((level in held) != self.stored)) for held in residency.alternatives]
        yield Limit(self.text, choose(residency.selector, wrong), 0)

    def broken_by(self, seen: Evaluated) -> bool:
        residency = seen.nest.residency[self.tensor]
        [held] = residency.alternatives
        return (_index(seen.engine, self.level) in held) != self.stored


def _index(engine: Engine, level: str) -> int:
    return [memory.name for memory in engine.levels].index(level)
