"""Access counts of the ``hierarchy`` cost model: what every tensor reads, fills and updates at a level.

They follow from the loop nest alone, as in Timeloop: a tile is fetched when a loop outside its store moves
it, instances that need the same tile share one read, partial sums of several instances are added on their
way out, and outputs are zero-initialised at their first visit.  Buffers that share a tensor hold a part of
its tile each and pass the parts round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tilewright.formulation.expression import (
    Expr,
    as_expr,
    ceil_div,
    choose,
    maximum,
    product,
    tighten,
    total,
)
from tilewright.formulation.mapping.nests.nest import Nest, Spread
from tilewright.workloads.mapping.operator import Tensor


@dataclass(frozen=True, slots=True)
class Counts:
    """Accesses of one tensor at one level under one residency; drains are reads of what leaves outwards."""

    reads: Expr
    fills: Expr
    updates: Expr
    drains: Expr = field(default_factory=lambda: as_expr(0))


_NONE = Counts(as_expr(0), as_expr(0), as_expr(0))


def next_stores(nest: Nest, tensor: Tensor, level: int) -> dict[int | None, list[bool]]:
    """By the next store inside a level (``None``: the PEs), the residencies in which it is that one."""
    alternatives = nest.residency[tensor.name].alternatives
    inner = [next((store for store in stores if store > level), None) for stores in alternatives]
    return {store: [other == store for other in inner] for store in dict.fromkeys(inner)}


def selected_counts(
    nest: Nest, tensor: Tensor, level: int, whole_run: bool, among: Sequence[bool] | None = None
) -> Counts:
    """Counts at a level under the chosen residency, per instance or over all instances.

    ``among`` selects which of the residencies' alternatives count; the others count nothing.

    Parameters
    ----------
    nest : the loops and the choices of storage
    tensor : whose accesses are counted
    level : index of the memory level whose accesses these are
    whole_run : whether all instances are counted together, for energy, or one alone, for the time of its
        ports
    among : per alternative of the tensor's residency, whether it counts; the others count nothing
    """
    residency = nest.residency[tensor.name]
    options = [
        _counts(nest, tensor, chosen, level, whole_run) if among is None or among[index] else _NONE
        for index, chosen in enumerate(residency.alternatives)
    ]
    if isinstance(residency.selector, int):
        return options[residency.selector]

    def pick(count: Callable[[Counts], Expr]) -> Expr:
        return choose(residency.selector, [count(option) for option in options])

    return Counts(
        pick(lambda c: c.reads), pick(lambda c: c.fills), pick(lambda c: c.updates), pick(lambda c: c.drains)
    )


def _counts(nest: Nest, tensor: Tensor, stores: Sequence[int], level: int, whole_run: bool) -> Counts:
    """Counts at one level when the tensor is stored at ``stores``."""
    if level not in stores:
        return _NONE
    positions, depth = nest.residency[tensor.name].positions, stores.index(level)
    store = stores[depth + 1] if depth + 1 < len(stores) else None
    place = level, positions[level]
    inner = store, len(nest.blocks) if store is None else positions[store]
    # Nests with the same loops share what was counted: all that differs between them is in the key.
    features = [
        (memory.sliding_window, memory.timing.drained)
        for memory in (nest.engine.levels[index] for index in (level, store) if index is not None)
    ]
    outside = frozenset(nest.spatial_between(0, place[1])) if whole_run else frozenset[int]()
    below = spread_of(nest, tensor, outside, nest.spatial_between(place[1], inner[1]), store)
    pool = nest.pool(tensor, level)
    key = tensor.name, place, inner, depth > 0, outside, below, pool, bool(pool) and whole_run, *features
    known = nest.counted.get(key)
    if known is None:
        known = nest.counted[key] = _counts_at(nest, tensor, place, inner, depth, (outside, below), whole_run)
    return known


def _counts_at(
    nest: Nest,
    tensor: Tensor,
    place: tuple[int, int],
    within: tuple[int | None, int],
    depth: int,
    spread: tuple[frozenset[int], Spread],
    whole_run: bool,
) -> Counts:
    """Counts at a level that stores the tensor.

    Parameters
    ----------
    place : the level, and its boundary
    within : the next inner store (``None``: the PEs), and its boundary
    depth : how many levels outside store the tensor
    spread : spatial blocks outside the level that count, and instances whose accesses reach it
    """
    (level, here), (store, inner), (outside, below) = place, within, spread
    at_store = Spread(outside)
    if tensor.is_output:
        counts = _output_counts(
            nest, tensor, (here, at_store), (None if store is None else inner, below), depth
        )
        if depth and nest.engine.levels[level].timing.drained:
            counts = replace(counts, drains=_drains(nest, tensor, here, at_store))
        return counts
    fills = as_expr(0)
    if depth > 0:
        pool = nest.pool(tensor, level) & outside  # buffers that share are filled once together
        windows = nest.engine.levels[level].sliding_window
        fills = nest.delivered(tensor, here, Spread(outside - pool, pooled=pool), windows)
        if not whole_run:
            fills = ceil_div(fills, product(nest.sharers(tensor, level)))
    reads = in_all_turns(nest, _reads(nest, tensor, store, below))
    return Counts(reads, in_all_turns(nest, fills), as_expr(0))


def _starting_at_zero(nest: Nest, tensor: Tensor, boundary: int, spread: Spread) -> Expr:
    """Instances that hold the same outputs and start them at zero; none where there are sums already."""
    return as_expr(0) if nest.operator.continued else nest.partners(tensor, boundary, spread)


def in_all_turns(nest: Nest, count: Expr) -> Expr:
    """What every turn of the operator takes anew, summed over its turns."""
    return count if nest.operator.turns == 1 else nest.operator.turns * count


def _reads(nest: Nest, tensor: Tensor, store: int | None, below: Spread, times: Expr | None = None) -> Expr:
    """Elements that the next inner store (``None``: the PEs) reads, over the instances that count."""
    if store is None:
        return product([nest.iterations(tensor, below), 1 if times is None else times])
    position = nest.residency[tensor.name].positions[store]
    return nest.delivered(tensor, position, below, nest.engine.levels[store].sliding_window, times)


def hops_of(nest: Nest, tensor: Tensor, level: int, among: Sequence[bool] | None = None) -> Expr:
    """Elements that a level's buffers pass on to each other.

    Whenever the inside reads a shared tile, it goes round its ``n`` buffers: ``n - 1`` hops for every element
    that the first of them reads.  ``n - 1`` is a sum over dimensions, as of rings within rings, so that every
    term is a product of what depends on one dimension.

    Parameters
    ----------
    nest : the loops and the choices of storage
    tensor : an input or the weights; outputs are not passed on
    level : index of the memory level whose buffers share tiles
    among : per alternative of the tensor's residency, whether it counts
    """
    pool = nest.pool(tensor, level)
    if not pool:
        return as_expr(0)
    rings: list[Expr] = []
    before: list[Expr] = []
    for size in nest.sharers(tensor, level):
        if size is not as_expr(1):
            rings.append(product([*before, size - 1]))
        before.append(size)
    residency = nest.residency[tensor.name]
    here = residency.positions[level]
    outside = frozenset(nest.spatial_between(0, here)) - pool

    def passed(stores: Sequence[int]) -> Expr:
        if level not in stores:
            return as_expr(0)
        store = next((inner for inner in stores if inner > level), None)
        end = len(nest.blocks) if store is None else residency.positions[store]
        spread = spread_of(nest, tensor, outside, nest.spatial_between(here, end), store)
        leaders = replace(spread, pooled=spread.pooled | pool)
        return in_all_turns(nest, total(_reads(nest, tensor, store, leaders, ring) for ring in rings))

    return _chosen(nest, tensor, passed, among)


def spread_of(
    nest: Nest, tensor: Tensor, outside: frozenset[int], between: Sequence[int], store: int | None
) -> Spread:
    """Instances whose accesses reach the outer store.

    Those that need the same tile share an access where the network between multicasts (inputs) or reduces
    (outputs), and where the buffers of the inner store share it; elsewhere each has its own.

    Parameters
    ----------
    nest : whose arrays multicast, reduce and share
    tensor : what travels
    outside : spatial blocks outside the outer store, whose instances all count
    between : spatial blocks between the two stores
    store : level of the inner store; ``None`` for the PEs
    """
    blocks = frozenset(between)
    shared = frozenset(block for block in blocks if _shares(nest, tensor, block))
    pool = frozenset[int]() if store is None else nest.pool(tensor, store)
    return Spread((outside | (blocks - shared)) - pool, shared, pool & (outside | blocks) - shared)


def _shares(nest: Nest, tensor: Tensor, block: int) -> bool:
    fan = nest.engine.levels[nest.blocks[block].level].fanout
    return fan is not None and (fan.reduction if tensor.is_output else fan.multicast)


def _output_counts(
    nest: Nest, tensor: Tensor, store: tuple[int, Spread], inner: tuple[int | None, Spread], depth: int
) -> Counts:
    """Partial sums: written back at every visit, read again at every visit but the first of all turns.

    Parameters
    ----------
    store : boundary of the store, and its instances
    inner : boundary of the next inner store (``None`` for the PEs), and the instances that reach this one
    """
    here, instances = store
    target, below = inner
    elements = nest.coverage(tensor, here, instances)
    arriving = elements
    if any(not axis.is_compound and term.stride > 1 for axis in tensor.axes for term in axis.terms):
        # a tile also spans what lies between its elements, so that tiles of different stores differ
        arriving = nest.coverage(tensor, len(nest.blocks) if target is None else target, below)
    partners = _starting_at_zero(nest, tensor, here, instances)
    first = product([*arriving, partners])
    if tensor.overlaps:
        # tiles overlap: every touched element is a partial sum
        updates = nest.iterations(tensor, below) if target is None else nest.delivered(tensor, target, below)
        updates = in_all_turns(nest, updates)
        held = product([*elements, partners])
        arrived = in_all_turns(nest, nest.delivered(tensor, here, instances))
        fills = maximum([0, arrived - held]) if depth else as_expr(0)
        return Counts(maximum([0, updates - first]), fills, updates)
    fills = as_expr(0)
    if depth:
        fills = nest.visits(
            tensor, here, instances, lambda n: product([*elements, in_all_turns(nest, n) - partners])
        )
    if target is None:
        updates = in_all_turns(nest, nest.iterations(tensor, below))
        most = tensor.footprint(nest.operator.bounds) * nest.cap(instances.every)
        return Counts(updates - tighten(first, upper=most), fills, updates)
    updates = in_all_turns(nest, nest.visits(tensor, target, below, lambda n: product([*arriving, n])))
    reads = nest.visits(
        tensor, target, below, lambda n: product([*arriving, in_all_turns(nest, n) - partners])
    )
    return Counts(reads, fills, updates)


def _drains(nest: Nest, tensor: Tensor, boundary: int, instances: Spread) -> Expr:
    """Elements that a store's instances send outwards, one by one before any network adds them up."""
    if tensor.overlaps:
        return in_all_turns(nest, nest.delivered(tensor, boundary, instances))
    elements = nest.coverage(tensor, boundary, instances)
    return nest.visits(tensor, boundary, instances, lambda n: product([*elements, in_all_turns(nest, n)]))


def transported(nest: Nest, tensor: Tensor, level: int, among: Sequence[bool] | None = None) -> Expr:
    """Elements that cross a level's network, counted at every instance that receives or sends them.

    Parameters
    ----------
    nest : the loops and the choices of storage
    tensor : what travels
    level : index of the memory level below which the network lies
    among : per alternative of the tensor's residency, whether it counts
    """
    residency = nest.residency[tensor.name]
    reached = frozenset(b for b in nest.spatial if nest.blocks[b].level <= level)
    deeper = [b for b in nest.spatial if nest.blocks[b].level > level]

    def crossing(stores: Sequence[int]) -> Expr:
        store = next((s for s in stores if s > level), None)
        target = len(nest.blocks) if store is None else residency.positions[store]
        spread = spread_of(nest, tensor, reached, [b for b in deeper if b < target], store)
        if store is None:
            return in_all_turns(nest, nest.iterations(tensor, spread))
        if not tensor.is_output:
            windows = nest.engine.levels[store].sliding_window
            return in_all_turns(nest, nest.delivered(tensor, target, spread, windows))
        # partial sums travel out at every visit and back in at every visit but the first
        if tensor.overlaps:
            return in_all_turns(nest, 2 * nest.delivered(tensor, target, spread))
        elements = nest.coverage(tensor, target, spread)
        partners = _starting_at_zero(nest, tensor, target, spread)
        return nest.visits(
            tensor, target, spread, lambda n: product([*elements, in_all_turns(nest, 2 * n) - partners])
        )

    return _chosen(nest, tensor, crossing, among)


def _chosen(
    nest: Nest, tensor: Tensor, count: Callable[[Sequence[int]], Expr], among: Sequence[bool] | None
) -> Expr:
    """A count under the chosen residency, 0 where that is not ``among`` those that count."""
    residency = nest.residency[tensor.name]
    counting = [True] * len(residency.alternatives) if among is None else among
    options = [
        count(stores) if counts else as_expr(0)
        for stores, counts in zip(residency.alternatives, counting, strict=True)
    ]
    return choose(residency.selector, options)
