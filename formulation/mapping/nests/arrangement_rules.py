"""What holds for nests over an arrangement: the orders of their loops to choose from, and their limits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tilewright.formulation.expression import Expr, as_expr, choose, is_one, maximum, product, total
from tilewright.formulation.mapping.cost.base import Limit
from tilewright.formulation.mapping.nests.arrangements import (
    Arrangement,
    Reduction,
    is_fixed,
    is_mandatory,
    neighbouring_slots,
    segments,
    stand_apart,
)
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.nests.orders import OrderClass, all_order_classes, sliding_dims
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator


def block_orders(
    operator: Operator,
    engine: Engine,
    slots: Arrangement,
    reduction: Reduction,
    index: int,
    every: bool = False,
    also: Collection[str] = (),
) -> tuple[OrderClass, ...]:
    """The order effects to choose from for the loops after a slot; none where nothing is stored inside them.

    Only tensors that are stored inside matter.  In settled forms (:attr:`Reduction.FORMS`) the innermost of
    these loops moves the tensor whose store comes next: otherwise it would begin to live outside that loop.

    Parameters
    ----------
    every : whether effects on all tensors matter (the user's demands on orders), dominated ones included
    also : tensors whose effects matter, though nothing in these slots stores them further inside
    """
    slot, later = slots[index], slots[index + 1 :]
    inside = {*also, *(name for inner in later for name in inner.tensors)}
    # Loops inside the last store run over the PEs' own element: their order changes no count.
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
    if reduction is Reduction.FORMS:
        for at, _slot, inner, segment in neighbouring_slots(engine, slots):
            if at == index and is_fixed(operator, engine, segment):
                return inner.tensors[0]
    return None


def _undominated(
    orders: Sequence[OrderClass], inside: Collection[str], moved: str | None
) -> tuple[OrderClass, ...]:
    """One order for every effect on some tensors that no other one's dominates."""
    by_effect: dict[object, OrderClass] = {}
    for order in orders:
        # An order whose leading run leaves the next store's tensor in place repeats another arrangement.
        if moved is None or not order.reused[moved]:
            by_effect.setdefault(
                tuple((order.reused[name], order.slides[name]) for name in sorted(inside)), order
            )
    kept = [
        order
        for order in by_effect.values()
        if not any(other is not order and other.dominates(order, inside) for other in by_effect.values())
    ]
    return tuple(sorted(kept, key=lambda order: (order.label, order.permutation)))


def arrangement_limits(nest: Nest, slots: Arrangement, reduction: Reduction) -> Iterator[Limit]:
    """What makes a nest over an arrangement well-formed: no loops after slots that nothing is stored in.

    Reduced, neighbouring slots are either one point, level by level and tensors in the operator's sequence,
    or some loop between them moves the inner one's tensor.  And it is no even nest, where the even part is
    searched besides.
    """
    yield from _present(nest, slots)
    if reduction is Reduction.NONE:
        return
    operator, engine, blocks = nest.operator, nest.engine, nest.temporal
    between: list[Expr] = []
    for index, slot, inner, segment in neighbouring_slots(engine, slots):
        trips = nest.trips([blocks[index]])
        between += trips
        if is_fixed(operator, engine, segment):
            own = sorted(operator.tensor(inner.tensors[0]).dims)
            still = is_one(product(nest.trips([blocks[index]], own)))
            idle: Expr = as_expr(0) if stand_apart(operator, slot, inner) else is_one(product(trips))
            level = engine.levels[inner.level].name
            yield Limit(f"points of storage in {level}", total([still, -1 * idle]), 0)
    if reduction is Reduction.LOOPS:
        yield Limit("points of storage", is_one(product(between)), 0)


def _present(nest: Nest, slots: Arrangement) -> Iterator[Limit]:
    """No loops after a slot in which nothing is stored, unless an array's buffers have one point.

    Loops after a slot belong to its level.  Of the slots at the first point behind an array the last one has
    the loops; another arrangement has the mappings that store nothing there.
    """
    operator, engine = nest.operator, nest.engine
    for segment in segments(engine)[1:]:
        own = [index for index, slot in enumerate(slots) if slot.level in segment.levels]
        for index in own:
            slot = slots[index]
            if not slot.dims or (slot.tensors and is_mandatory(operator, engine, slot)):
                continue
            if segment.fed and all(slots[i].leads for i in own):
                continue
            loops = 1 - is_one(product(nest.trips([nest.temporal[index]])))
            stored = [_stored(nest, name, slot.level) for name in slot.tensors]
            yield Limit("loops after a bypass", product([1 - maximum([0, *stored]), loops]), 0)


def _stored(nest: Nest, name: str, level: int) -> Expr:
    """1 where a tensor is stored at a level, else 0."""
    residency = nest.residency[name]
    return choose(residency.selector, [as_expr(int(level in chosen)) for chosen in residency.alternatives])
