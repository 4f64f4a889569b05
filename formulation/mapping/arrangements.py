"""Arrangements: in which sequence the tensors of a level begin to live, and which loops stand between.

In an *even* nest all tensors of a level begin to live at one point.  In an *uneven* one every tensor has its own point,
and loops stand between the points.  An arrangement fixes, for every level, the sequence of these points (*slots*) and
the dimensions that may have a loop after each; a nest over an arrangement has one block of temporal loops per slot.
The uneven space is the union over all arrangements, and the capacity of a level is shared by its slots.

Most loops after a slot are useless: one that moves the slot's tensor could stand outside its store, and its tile would
be smaller.  ``docs/uneven.md`` shows when that loses nothing (:func:`useful_dims`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations, permutations
from itertools import product as cartesian

from tilewright.formulation.expression import Expr, as_expr, choose, is_one, maximum, product, total
from tilewright.formulation.mapping.cost.base import Limit
from tilewright.formulation.mapping.nest import Nest
from tilewright.formulation.mapping.orders import OrderClass, all_order_classes, sliding_dims
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Tensor

EVEN, UNEVEN = STORAGES = ("even", "uneven")


class Reduction(Enum):
    """What is left out of the uneven space when it is searched."""

    NONE = "none"
    LOOPS = "loops"
    """Loops after a slot over dimensions that :func:`useful_dims` does not name."""
    FORMS = "forms"
    """Those, and arrangements and orders that stand for the same mappings as others; for perfect factors."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A point at which tensors begin to live in a level, and what may stand between it and the next one.

    Parameters
    ----------
    level : index of the memory level
    tensors : names of those that begin to live here, unless they bypass the level
    dims : dimensions that may have a loop after this point, before the next one or the level's array
    """

    level: int
    tensors: tuple[str, ...]
    dims: frozenset[str]


Arrangement = tuple[Slot, ...]


def even_arrangement(operator: Operator, engine: Engine) -> Arrangement:
    """One slot per level."""
    dims = frozenset(operator.bounds)
    return tuple(Slot(index, _kept(operator, engine, index), dims) for index in range(len(engine.levels)))


def arrangements(operator: Operator, engine: Engine, reduction: Reduction) -> Iterator[Arrangement]:
    """Arrangements of the uneven space, outermost slot first.

    With :attr:`Reduction.LOOPS` the even arrangement belongs to the space besides.
    """
    levels = range(len(engine.levels))
    for parts in cartesian(*(_of_level(operator, engine, level, reduction) for level in levels)):
        yield tuple(slot for slots in parts for slot in slots)


def _kept(operator: Operator, engine: Engine, level: int) -> tuple[str, ...]:
    keeps = engine.levels[level].keeps
    return tuple(tensor.name for tensor in operator.tensors if tensor.role in keeps)


def _of_level(operator: Operator, engine: Engine, level: int, reduction: Reduction) -> list[Arrangement]:
    """The sequences of slots of one level."""
    names, every = _kept(operator, engine, level), frozenset(operator.bounds)
    if level == 0 or not names:
        return [(Slot(level, names, every),)]
    if reduction is Reduction.NONE:
        return [tuple(Slot(level, (name,), every) for name in order) for order in permutations(names)]
    if level == 1:
        found = [_sequence(operator, engine, level, (), order) for order in permutations(names)]
    else:
        # what stands first has the loops of outer levels around it, which may leave its tile in place
        found = [
            _sequence(operator, engine, level, first, order)
            for count in range(1, len(names) + 1)
            for first in combinations(names, count)
            for order in permutations([name for name in names if name not in first])
        ]
    if reduction is Reduction.FORMS:
        found = [_settled(operator, engine, slots) for slots in found]
        found = [slots for slots in found if not _repeats(operator, engine, slots)]
    return found


def _sequence(
    operator: Operator, engine: Engine, level: int, first: tuple[str, ...], order: Sequence[str]
) -> Arrangement:
    slots = [Slot(level, first, frozenset(operator.bounds))] if first else []
    for index, name in enumerate(order):
        before = {*first, *order[:index]}
        slots.append(Slot(level, (name,), useful_dims(operator, engine, level, name, before)))
    return tuple(slots)


def useful_dims(
    operator: Operator, engine: Engine, level: int, name: str, before: Collection[str]
) -> frozenset[str]:
    """Dimensions whose loops may be worth having just inside a tensor's store (``docs/uneven.md``).

    Those are all but the ones that move the tensor and would cost nothing outside its store: along which its tiles
    do not overlap, with no tensor inside that such a loop leaves in place or whose window it slides.

    Parameters
    ----------
    before : tensors that begin to live in the level at this point or outside it
    """
    tensor = operator.tensor(name)
    return frozenset(
        dim
        for dim in operator.bounds
        if not _moves_plainly(operator, tensor, dim)
        or any(
            _stays_inside(engine, level, other, dim, before) or _slides(operator, engine, level, other, dim)
            for other in operator.tensors
            if other is not tensor
        )
        or _slides(operator, engine, level, tensor, dim)
    )


def _moves_plainly(operator: Operator, tensor: Tensor, dim: str) -> bool:
    """Whether a loop moves a tensor so that all tiles together are no more than the tile around them."""
    axes = [axis for axis in tensor.axes if any(term.dim == dim for term in axis.terms)]
    if len(axes) != 1:
        return False
    [axis] = axes
    if sum(operator.bounds[term.dim] > 1 for term in axis.terms if term.dim != dim):
        return False
    stride = next(term.stride for term in axis.terms if term.dim == dim)
    return not tensor.is_output or (stride == 1 and not axis.is_compound)


def _stays_inside(engine: Engine, level: int, other: Tensor, dim: str, before: Collection[str]) -> bool:
    """Whether a loop may leave a tensor in place in an inner level, with its store here not in between."""
    if dim in other.dims or not any(other.role in inner.keeps for inner in engine.levels[level + 1 :]):
        return False
    here = engine.levels[level]
    return other.name in before or other.role not in here.keeps or other.role in here.may_bypass


def _slides(operator: Operator, engine: Engine, level: int, other: Tensor, dim: str) -> bool:
    """Whether a loop may slide a tensor's window in this level or an inner one."""
    stores = engine.levels[level:]
    return any(m.sliding_window and other.role in m.keeps for m in stores) and dim in sliding_dims(
        operator, other
    )


def _mandatory(operator: Operator, engine: Engine, slot: Slot) -> bool:
    """Whether a slot's tensors must live in its level."""
    return all(
        operator.tensor(name).role not in engine.levels[slot.level].may_bypass for name in slot.tensors
    )


def _settled(operator: Operator, engine: Engine, slots: Arrangement) -> Arrangement:
    """Without loops after a slot where none of them could move the next one's tensor."""
    found = list(slots)
    for index, (slot, inner) in enumerate(zip(slots, slots[1:], strict=False)):
        moving = slot.dims & operator.tensor(inner.tensors[0]).dims
        if _mandatory(operator, engine, inner) and all(operator.bounds[dim] == 1 for dim in moving):
            found[index] = replace(slot, dims=frozenset())
    return tuple(found)


def _repeats(operator: Operator, engine: Engine, slots: Arrangement) -> bool:
    """Whether two slots are one point for sure, and another arrangement has them as one, or in sequence."""
    names = [tensor.name for tensor in operator.tensors]
    for index, (slot, inner) in enumerate(zip(slots, slots[1:], strict=False)):
        if _mandatory(operator, engine, slot) and _mandatory(operator, engine, inner) and not slot.dims:
            first = slot.level > 1 and index == 0
            if first or names.index(slot.tensors[-1]) > names.index(inner.tensors[0]):
                return True
    return False


def block_orders(
    operator: Operator,
    engine: Engine,
    slots: Arrangement,
    reduction: Reduction,
    index: int,
    every: bool = False,
) -> tuple[OrderClass, ...]:
    """The order effects to choose from for the loops after a slot; none where nothing is stored inside them.

    Only tensors that are stored inside matter.  In settled forms (:attr:`Reduction.FORMS`) the innermost of these
    loops moves the tensor whose store comes next: otherwise it would begin to live outside that loop.

    Parameters
    ----------
    every : whether effects on all tensors matter (the user's demands on orders), dominated ones included
    """
    slot, later = slots[index], slots[index + 1 :]
    inside = {name for inner in later for name in inner.tensors}
    if not later or not (inside or every):
        return ()
    sliding = {
        tensor.name: sliding_dims(operator, tensor)
        if any(tensor.name in s.tensors and engine.levels[s.level].sliding_window for s in later)
        else frozenset[str]()
        for tensor in operator.tensors
    }
    dims = [dim for dim, bound in operator.bounds.items() if bound > 1 and dim in slot.dims]
    if every:
        return all_order_classes(operator, dims, sliding)
    return _undominated(
        all_order_classes(operator, dims, sliding, inside),
        inside,
        _moved(operator, engine, slots, reduction, index),
    )


def _moved(
    operator: Operator, engine: Engine, slots: Arrangement, reduction: Reduction, index: int
) -> str | None:
    """The tensor that the innermost loop after a slot moves in a settled form."""
    if reduction is not Reduction.FORMS or slots[index + 1].level != slots[index].level:
        return None
    return slots[index + 1].tensors[0] if _mandatory(operator, engine, slots[index + 1]) else None


def _undominated(
    orders: Sequence[OrderClass], inside: Collection[str], moved: str | None
) -> tuple[OrderClass, ...]:
    """One order for every effect on some tensors that no other one's dominates."""
    found: dict[object, OrderClass] = {}
    for order in orders:
        if moved is None or not order.reused[moved]:
            found.setdefault(
                tuple((order.reused[name], order.slides[name]) for name in sorted(inside)), order
            )
    kept = [
        order
        for order in found.values()
        if not any(other is not order and other.dominates(order, inside) for other in found.values())
    ]
    return tuple(sorted(kept, key=lambda order: (order.label, order.permutation)))


def arrangement_limits(nest: Nest, slots: Arrangement, reduction: Reduction) -> Iterator[Limit]:
    """What makes a nest over an arrangement well-formed: no loops after a slot whose tensors all bypass the level.

    In settled forms, neighbouring slots are either one point, their tensors in the operator's sequence, or some loop
    between them moves the inner one's tensor.
    """
    blocks = nest.temporal
    names = [tensor.name for tensor in nest.operator.tensors]
    for index, slot in enumerate(slots):
        level = nest.engine.levels[slot.level].name
        alone = [s.level for s in slots].count(slot.level) == 1
        if not alone and not _mandatory(nest.operator, nest.engine, slot):
            loops = 1 - is_one(product(nest.trips([blocks[index]])))
            absent = 1 - maximum([_stored(nest, name, slot.level) for name in slot.tensors])
            yield Limit(f"loops at {level} after a tensor that bypasses it", product([absent, loops]), 0)
        if (
            reduction is not Reduction.FORMS
            or index + 1 == len(slots)
            or slots[index + 1].level != slot.level
        ):
            continue
        inner = slots[index + 1]
        if _mandatory(nest.operator, nest.engine, slot) and _mandatory(nest.operator, nest.engine, inner):
            still = is_one(
                product(nest.trips([blocks[index]], sorted(nest.operator.tensor(inner.tensors[0]).dims)))
            )
            first = slot.level > 1 and (index == 0 or slots[index - 1].level != slot.level)
            apart = first or names.index(slot.tensors[-1]) > names.index(inner.tensors[0])
            idle: Expr = as_expr(0) if apart else is_one(product(nest.trips([blocks[index]])))
            yield Limit(f"points of storage in {level}", total([still, -1 * idle]), 0)


def _stored(nest: Nest, name: str, level: int) -> Expr:
    """1 where a tensor is stored at a level, else 0."""
    residency = nest.residency[name]
    return choose(residency.selector, [as_expr(int(level in chosen)) for chosen in residency.alternatives])
