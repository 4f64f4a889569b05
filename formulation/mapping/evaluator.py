"""The one evaluator: what a mapping costs, by the expressions that every solver reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from tilewright.formulation.expression import Constant, Expr, as_expr
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.cost.base import CostModel, Limit, Statement
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.formulation.mapping.nests.blocks import Block, Residency, whole
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import order_effect, sliding_dims
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True, slots=True)
class Access:
    """Accesses of one tensor at one level over the whole run and all instances, in elements.

    ``tile`` is what one instance holds, ``hops`` what instances that share the tensor pass on to each other.
    """

    level: str
    tensor: str
    reads: int
    fills: int
    updates: int
    tile: int
    hops: int = 0


@dataclass(frozen=True)
class Evaluation:
    """What a mapping costs.

    Parameters
    ----------
    energy : pJ, exact
    cycles : engine cycles
    macs : multiply-accumulates
    utilization : iterations per cycle over the number of PEs
    components : pJ by component
    accesses : per level and tensor
    details : further figures of the cost model
    violations : constraints that the mapping breaks, empty for a legal one
    """

    energy: Fraction
    cycles: int
    macs: int
    utilization: float
    components: MappingABC[str, Fraction]
    accesses: tuple[Access, ...]
    details: MappingABC[str, int]
    violations: tuple[str, ...]


def evaluate_mapping(
    operator: Operator, engine: Engine, model: CostModel, mapping: Mapping, where: str = "mapping"
) -> Evaluation:
    """Evaluate a mapping, legal or not, even or uneven.

    Parameters
    ----------
    operator, engine : the layer and the machine
    model : the cost model that counts
    mapping : tiles need not fit their buffers; what is broken is listed in ``violations``
    where : what errors call the mapping

    Raises
    ------
    InputError : where the mapping does not fit the operator and the engine, or the model does not apply
    """
    engine = fitted(engine, operator)
    model.check(operator, engine)
    mapping.validate(operator, engine, where)
    statement = model.statement(_known_nest(operator, engine, mapping, where))
    broken = [*exceeded(statement.limits), *misplaced(operator, engine, mapping)]
    return evaluation_of(statement, operator, engine, broken)


def exceeded(limits: Iterable[Limit]) -> list[str]:
    """The limits of a nest without open decisions that it exceeds, in words."""
    numbers = [(limit, evaluate(limit.expr, {})) for limit in limits]
    return [f"{limit.name}: {number} over {limit.bound}" for limit, number in numbers if number > limit.bound]


def evaluation_of(
    statement: Statement, operator: Operator, engine: Engine, violations: Sequence[str]
) -> Evaluation:
    """The numbers of a statement that has no open decisions.

    Parameters
    ----------
    statement : of the mapping's nest
    operator, engine : the layer and the machine
    violations : constraints that the mapping breaks
    """

    def number(expr: Expr) -> int:
        return evaluate(expr, {})

    cycles = number(statement.cycles)
    return Evaluation(
        energy=Fraction(number(statement.energy), statement.energy_scale),
        cycles=cycles,
        macs=operator.macs,
        utilization=operator.turns * operator.iterations / (cycles * engine.instances),
        components={
            name: Fraction(number(part), statement.component_scale)
            for name, part in statement.components.items()
        },
        accesses=tuple(
            Access(
                row.level,
                row.tensor,
                number(row.reads),
                number(row.fills),
                number(row.updates),
                number(row.tile),
                number(row.hops),
            )
            for row in statement.traffic
        ),
        details={name: number(part) for name, part in statement.details.items()},
        violations=tuple(violations),
    )


def misplaced(operator: Operator, engine: Engine, mapping: Mapping) -> list[str]:
    """Stores that break the machine's rules: outermost ones inside loops, and levels that are skipped."""
    stored = {(node.tensor, node.level) for node in mapping.nodes if isinstance(node, Storage)}
    outermost = engine.levels[0].name
    tile = dict(operator.bounds)
    broken: list[str] = []
    for node in mapping.nodes:
        if not isinstance(node, Storage):
            tile[node.dim] = node.tile
        elif node.level == outermost and tile != operator.bounds:
            broken.append(
                f"{node.tensor} begins to live in {outermost} inside a loop; all of it must be there"
            )
    return broken + [
        f"{tensor.name} skips {level.name}, which it may not bypass"
        for level in engine.levels
        for tensor in operator.tensors
        if tensor.role in level.keeps - level.may_bypass and (tensor.name, level.name) not in stored
    ]


def _known_nest(operator: Operator, engine: Engine, mapping: Mapping, where: str) -> Nest:
    """The nest of a mapping; what was counted of its loops on machines of other prices need not be again."""
    axes = tuple((level.name, level.fanout.axes if level.fanout else ()) for level in engine.levels)
    made = _made_nest(operator, axes, mapping)
    if not made:
        made.append(nest_of(operator, engine, mapping, where))
    return made[0].storing(engine, made[0].residency)


@lru_cache(maxsize=256)
def _made_nest(
    _operator: Operator, _axes: tuple[tuple[str, tuple[ArrayAxis, ...]], ...], _mapping: Mapping
) -> list[Nest]:
    """Where the nest of a mapping stands once it is made: it depends on nothing else."""
    return []


def nest_of(
    operator: Operator,
    engine: Engine,
    mapping: Mapping,
    where: str = "mapping",
    outside: Sequence[Storage] = (),
) -> Nest:
    """The nest of a mapping: constant tile sizes, one order per block.

    Temporal loops that follow each other in one level form one block, unless a dimension repeats or a
    tensor begins to live between them.

    Parameters
    ----------
    operator, engine : the layer and the machine
    mapping : loops and points of storage, outermost first
    where : what errors call the mapping
    outside : stores in which tensors live already, around the mapping
    """
    builder = _NestBuilder(operator, engine, where)
    for index, node in enumerate((*outside, *mapping.nodes), -len(outside)):
        match node:
            case Storage(tensor, level):
                builder.store(tensor, level, f"nodes[{index}]")
            case Temporal(dim, tile, level):
                builder.loop(dim, tile, None, f"nodes[{index}]", level)
            case Spatial(dim, tile, axis):
                builder.loop(dim, tile, axis, f"nodes[{index}]")
            case _:
                assert_never(node)
    return builder.nest()


class _NestBuilder:
    """Walks a mapping's nodes and groups its loops into blocks."""

    def __init__(self, operator: Operator, engine: Engine, where: str) -> None:
        self.operator = operator
        self.engine = engine
        self.where = where
        self.boundaries: list[dict[str, Expr]] = [whole(operator)]
        self.blocks: list[Block] = []
        self.positions: dict[str, dict[int, int]] = {tensor.name: {} for tensor in operator.tensors}
        # ``level`` is that of the last store, ``deepest`` the innermost met so far, ``_at`` that of the loops
        # being collected.
        self.level = self.deepest = 0
        self._at = 0
        self._names = [memory.name for memory in engine.levels]
        self._dims: list[str] = []
        self._inner: dict[str, Expr] = dict(self.boundaries[0])
        self.perfect = True
        self.sliding = {tensor.name: sliding_dims(operator, tensor) for tensor in operator.tensors}

    def store(self, tensor: str, level: str, field: str = "nodes") -> None:
        """A tensor begins to live in a level."""
        self._close()
        self.level = self._at = self._names.index(level)
        self.deepest = max(self.deepest, self.level)
        for block in self.blocks:
            if block.axis is not None and block.level >= self.level:
                raise InputError(self.where, field, f"{level} lies outside axis {block.axis.name}")
        self.positions[tensor][self.level] = len(self.blocks)

    def loop(
        self, dim: str, tile: int, axis_name: str | None, field: str = "nodes", level: str | None = None
    ) -> None:
        """Add a loop; one of a single iteration is left out."""
        inner, outer = as_expr(tile), self._inner[dim]
        # Constants are interned, so identity is equality.
        if outer is inner:
            return
        # Perfect nests have closed forms; one tile that does not divide makes the whole nest imperfect.
        if isinstance(outer, Constant) and outer.value % tile:
            self.perfect = False
        if axis_name is not None:
            self._spatial_loop(dim, inner, axis_name, field)
            return
        at = self.level if level is None else self._names.index(level)
        # A block has one loop per dimension, all of one level.
        if dim in self._dims or at != self._at:
            self._close()
        if at < self._at:
            names = self._names[at], self._names[self._at]
            raise InputError(self.where, field, f"a loop of {names[0]} inside one of {names[1]}")
        self._at = at
        self.deepest = max(self.deepest, at)
        self._dims.append(dim)
        self._inner[dim] = inner

    def _spatial_loop(self, dim: str, inner: Expr, axis_name: str, field: str) -> None:
        self._close()
        level, axis = next(
            (index, axis)
            for index, memory in enumerate(self.engine.levels)
            for axis in (memory.fanout.axes if memory.fanout else ())
            if axis.name == axis_name
        )
        if level < self.deepest:
            outside = self.engine.levels[self.deepest].name
            raise InputError(self.where, field, f"axis {axis_name} lies outside {outside}")
        for block in self.blocks:
            if block.axis is not None and block.level > level:
                raise InputError(self.where, field, f"axis {axis_name} lies outside axis {block.axis.name}")
        like = next(d.like for d in self.operator.dimensions if d.name == dim)
        if axis.carries is not None and like not in axis.carries:
            raise InputError(self.where, field, f"axis {axis_name} does not carry {dim}")
        self._inner[dim] = inner
        # Several dimensions on one axis are one block: its inner boundary moves further in.
        if self.blocks and self.blocks[-1].axis is axis:
            self.boundaries[-1] = dict(self._inner)
            return
        # All axes of an array multiply one network's instances, so no loop in time may stand between them.
        if any(block.axis is axis for block in self.blocks) or (
            any(not block.is_temporal and block.level == level for block in self.blocks)
            and self.blocks[-1].is_temporal
        ):
            raise InputError(self.where, field, f"spatial loops on {axis_name} must stand together")
        self.blocks.append(Block(level, axis))
        self.boundaries.append(dict(self._inner))

    def _close(self) -> None:
        """End the temporal block that is being collected."""
        if self._dims:
            slides = self.sliding
            # A mapping has decided its order: a single effect, and no selector.
            order = order_effect(self.operator, self._dims, slides)
            self.blocks.append(Block(self._at, None, (order,)))
            self.boundaries.append(dict(self._inner))
            self._dims = []

    def nest(self) -> Nest:
        self._close()
        residency = {
            name: Residency(positions, (tuple(sorted(positions)),))
            for name, positions in self.positions.items()
        }
        edges, blocks = tuple(self.boundaries), tuple(self.blocks)
        return Nest(self.operator, self.engine, edges, blocks, residency, self.perfect)
