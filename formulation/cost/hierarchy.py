"""The ``hierarchy`` cost model: reads, fills and updates of every tensor at every memory level.

Access counts follow from the loop nest alone, as in Timeloop: a tile is fetched when a loop outside its
store moves it, instances that need the same tile share one read, partial sums of several instances are
added on their way out, and outputs are zero-initialised at their first visit.  Energy is access counts
times unit energies.  Latency is the slowest of compute and all transfers that are hidden by double
buffering, plus those that are not, plus the first fill and the last drain.  ``docs/cost-models.md`` has
the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.formulation.cost.base import (
    Limit,
    Statement,
    Traffic,
    array_limits,
    capacity_limits,
    energy_scale,
    resident,
)
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
from tilewright.formulation.nest import Nest
from tilewright.formulation.orders import OrderClass, order_classes, sliding_dims
from tilewright.hardware.engine import Engine
from tilewright.workloads.operator import Axis, Operator, Tensor


@dataclass(frozen=True, slots=True)
class _Counts:
    """Accesses of one tensor at one level under one residency."""

    reads: Expr
    fills: Expr
    updates: Expr


_NONE = _Counts(as_expr(0), as_expr(0), as_expr(0))


class Hierarchy:
    """Any number of memory levels, any perfect nest."""

    name = "hierarchy"

    def check(self, operator: Operator, engine: Engine) -> None:
        """Every operator and every engine has a meaning here."""

    def orders(self, operator: Operator, engine: Engine, level: int) -> tuple[OrderClass, ...]:
        """Undominated effects; the innermost level's loops feed the PE, where order does not matter."""
        if level == len(engine.levels) - 1:
            return ()
        inner = engine.levels[level + 1 :]
        sliding = {
            tensor.name: sliding_dims(operator, tensor)
            if any(store.sliding_window and tensor.role in store.keeps for store in inner)
            else frozenset[str]()
            for tensor in operator.tensors
        }
        return order_classes(operator, [d for d, n in operator.bounds.items() if n > 1], sliding)

    def statement(self, nest: Nest) -> Statement:
        """Energy, cycles and constraints; energies are exact decimals, scaled to integers."""
        engine = nest.engine
        fans = [level.fanout for level in engine.levels if level.fanout is not None]
        scale = energy_scale(
            [
                engine.mac_energy,
                *(e for level in engine.levels for e in (level.read_energy, level.write_energy)),
                *(fan.energy for fan in fans),
            ]
        )
        components: dict[str, Expr] = {
            "MAC": as_expr(int(engine.mac_energy * scale) * nest.operator.iterations)
        }
        traffic: list[Traffic] = []
        for index, level in enumerate(engine.levels):
            parts: list[Expr] = []
            for tensor in nest.operator.tensors:
                counts = _selected(nest, tensor, index, whole_run=True)
                reads = int(level.read_energy * scale) * counts.reads
                writes = int(level.write_energy * scale) * (counts.fills + counts.updates)
                parts.append(total([reads, writes]))
                if index in nest.residency[tensor.name].positions:
                    tile = nest.footprint(tensor, nest.residency[tensor.name].positions[index])
                    traffic.append(
                        Traffic(level.name, tensor.name, counts.reads, counts.fills, counts.updates, tile)
                    )
            components[level.name] = total(parts)
            if level.fanout is not None and level.fanout.energy:
                hops = total(_transported(nest, tensor, index) for tensor in nest.operator.tensors)
                components[f"{level.name} network"] = int(level.fanout.energy * scale) * hops
        cycles, details = _cycles(nest)
        limits: list[Limit] = [*capacity_limits(nest), *array_limits(nest)]
        return Statement(
            energy=total(components.values()),
            energy_scale=scale,
            cycles=cycles,
            limits=tuple(limits),
            components=components,
            component_scale=scale,
            traffic=tuple(traffic),
            details=details,
        )


def _selected(nest: Nest, tensor: Tensor, level: int, whole_run: bool) -> _Counts:
    """Counts at a level under the chosen residency, per instance or over all instances."""
    residency = nest.residency[tensor.name]
    options = [_counts(nest, tensor, chosen, level, whole_run) for chosen in residency.alternatives]

    def pick(field: Callable[[_Counts], Expr]) -> Expr:
        return choose(residency.selector, [field(option) for option in options])

    return _Counts(pick(lambda c: c.reads), pick(lambda c: c.fills), pick(lambda c: c.updates))


def _counts(nest: Nest, tensor: Tensor, stores: Sequence[int], level: int, whole_run: bool) -> _Counts:
    """Counts at one level when the tensor is stored at ``stores``."""
    if level not in stores:
        return _NONE
    positions = nest.residency[tensor.name].positions
    here = positions[level]
    depth = stores.index(level)
    inner = positions[stores[depth + 1]] if depth + 1 < len(stores) else None
    instances = nest.trips(nest.spatial_between(0, here)) if whole_run else []
    if tensor.is_output:
        return _output_counts(nest, tensor, here, inner, depth > 0, instances)
    slides = nest.engine.levels[level].sliding_window
    fills = nest.delivered(tensor, here, instances, slides) if depth > 0 else as_expr(0)
    if inner is None:
        shares = _shares(nest, tensor, nest.spatial_between(here, len(nest.blocks)))
        reads = product([*instances, *shares, *nest.trips(nest.temporal)])
    else:
        store = nest.engine.levels[stores[depth + 1]]
        extra = [*instances, *_shares(nest, tensor, nest.spatial_between(here, inner))]
        reads = nest.delivered(tensor, inner, extra, store.sliding_window)
    return _Counts(reads, fills, as_expr(0))


def _shares(nest: Nest, tensor: Tensor, spatial: Sequence[int]) -> list[Expr]:
    """Accesses of the outer store per access of one inner instance, as factors.

    Instances with the same tile share an access where the network between multicasts (inputs) or reduces
    (outputs); elsewhere each has its own.
    """
    factors: list[Expr] = []
    for index, level in enumerate(nest.engine.levels):
        blocks = [b for b in spatial if nest.blocks[b].level == index]
        if not blocks or level.fanout is None:
            continue
        shared = level.fanout.reduction if tensor.is_output else level.fanout.multicast
        factors += nest.distinct(tensor, blocks) if shared else nest.trips(blocks)
    return factors


def _seen(nest: Nest, tensor: Tensor, boundary: int) -> list[Expr]:
    """Different output elements that one instance at a boundary ever holds, as factors per axis."""
    outside = [block for block in nest.temporal if block < boundary]
    return [_seen_along(nest, axis, boundary, outside) for axis in tensor.axes]


def _seen_along(nest: Nest, axis: Axis, boundary: int, outside: Sequence[int]) -> Expr:
    dims = [term.dim for term in axis.terms]
    walked = product([nest.extent(axis, boundary), *nest.trips(outside, dims)])
    if not axis.is_compound:
        return walked
    full = axis.extent(nest.operator.bounds)  # tiles overlap, so the walk may count elements twice
    return walked + full - maximum([walked, full])


def _output_counts(
    nest: Nest, tensor: Tensor, here: int, inner: int | None, has_outer: bool, instances: Sequence[Expr]
) -> _Counts:
    """Partial sums: written back at every visit, read again at every visit but the first."""
    if any(axis.is_compound for axis in tensor.axes):
        return _overlapping_output_counts(nest, tensor, here, inner, has_outer, instances)
    seen = [*instances, *_seen(nest, tensor, here)]
    fills = as_expr(0)
    if has_outer:
        fills = nest.visits(tensor, here, lambda n: product([*seen, n - 1]))
    blocks = nest.spatial_between(here, len(nest.blocks) if inner is None else inner)
    own = [dim for dim in nest.operator.bounds if dim in tensor.dims]
    others = [dim for dim in nest.operator.bounds if dim not in tensor.dims]
    unreduced = nest.trips([b for b in blocks if not _reduces(nest, b)], others)
    if inner is None:
        updates = product([*instances, *unreduced, *nest.trips(blocks, own), *nest.trips(nest.temporal)])
        first = tighten(product(seen), upper=_cap_product(nest, instances, tensor))
        return _Counts(updates - first, fills, updates)
    updates = nest.visits(tensor, inner, lambda n: product([*seen, *unreduced, n]))
    reads = nest.visits(tensor, inner, lambda n: product([*seen, product([*unreduced, n]) - 1]))
    return _Counts(reads, fills, updates)


def _cap_product(nest: Nest, instances: Sequence[Expr], tensor: Tensor) -> int:
    """At most this many zero-initialised elements: every instance of the array starts its own."""
    elements = tensor.footprint(nest.operator.bounds)
    return elements * (nest.cap(nest.spatial) if instances else 1)


def _reduces(nest: Nest, block: int) -> bool:
    fan = nest.engine.levels[nest.blocks[block].level].fanout
    return fan is not None and fan.reduction


def _overlapping_output_counts(
    nest: Nest, tensor: Tensor, here: int, inner: int | None, has_outer: bool, instances: Sequence[Expr]
) -> _Counts:
    """Outputs whose tiles overlap (transposed convolution): every touched element is a partial sum."""
    seen = product([*instances, *_seen(nest, tensor, here)])
    fills = as_expr(0)
    if has_outer:
        fills = maximum([0, nest.delivered(tensor, here, instances) - seen])
    if inner is None:
        shares = _shares(nest, tensor, nest.spatial_between(here, len(nest.blocks)))
        updates = product([*instances, *shares, *nest.trips(nest.temporal)])
    else:
        updates = nest.delivered(
            tensor, inner, [*instances, *_shares(nest, tensor, nest.spatial_between(here, inner))]
        )
    return _Counts(maximum([0, updates - seen]), fills, updates)


def _transported(nest: Nest, tensor: Tensor, level: int) -> Expr:
    """Elements that cross a level's network, counted at every instance that receives or sends them."""
    residency = nest.residency[tensor.name]
    end = len(nest.blocks)
    reached = nest.trips(b for b in nest.spatial if nest.blocks[b].level <= level)
    deeper = [b for b in nest.spatial if nest.blocks[b].level > level]

    def crossing(stores: Sequence[int]) -> Expr:
        inner = next((residency.positions[s] for s in stores if s > level), None)
        target = end if inner is None else inner
        extra = [*reached, *_shares(nest, tensor, [b for b in deeper if b < target])]
        if inner is None:
            return product([*extra, *nest.trips(nest.temporal)])
        if not tensor.is_output:
            store = nest.engine.levels[next(s for s in stores if s > level)]
            return nest.delivered(tensor, inner, extra, store.sliding_window)
        # partial sums travel out at every visit and back in at every visit but the first
        if any(axis.is_compound for axis in tensor.axes):
            return 2 * nest.delivered(tensor, inner, extra)
        held = [*nest.trips(nest.spatial_between(0, inner)), *_seen(nest, tensor, inner)]
        return nest.visits(tensor, inner, lambda n: product([*held, 2 * n - 1]))

    return choose(residency.selector, [crossing(stores) for stores in residency.alternatives])


def _cycles(nest: Nest) -> tuple[Expr, dict[str, Expr]]:
    """Latency and its parts."""
    engine = nest.engine
    peak = -(-nest.operator.iterations // nest.cap(nest.spatial))
    compute = tighten(product(nest.trips(nest.temporal)), lower=peak)
    details = {"compute cycles": compute}
    hidden: list[Expr] = [compute]
    exposed: list[Expr] = []
    for index, level in enumerate(engine.levels):
        busy = _port_time(nest, index)
        if busy is not None:
            details[f"{level.name} transfer cycles"] = busy
            innermost = index == len(engine.levels) - 1
            (hidden if innermost or engine.levels[index + 1].double_buffered else exposed).append(busy)
        if index and level.double_buffered:
            exposed += _first_and_last(nest, index)
    return total([maximum(hidden), *exposed]), details


def _port_time(nest: Nest, level: int) -> Expr | None:
    """Cycles that one instance's ports are busy; ``None`` where bandwidth is no limit."""
    memory = nest.engine.levels[level]
    times: list[Expr] = []
    counts = [_selected(nest, tensor, level, whole_run=False) for tensor in nest.operator.tensors]
    if memory.read_bandwidth is not None:
        times.append(_transfer(total(c.reads for c in counts), memory.read_bandwidth))
    if memory.write_bandwidth is not None:
        written = total(part for c in counts for part in (c.fills, c.updates))
        times.append(_transfer(written, memory.write_bandwidth))
    return maximum(times) if times else None


def _first_and_last(nest: Nest, level: int) -> list[Expr]:
    """The first fill and the last drain of a double-buffered level, which nothing hides."""
    outer = nest.engine.levels[level - 1]
    result: list[Expr] = []
    for role_is_output, bandwidth in ((False, outer.read_bandwidth), (True, outer.write_bandwidth)):
        if bandwidth is None:
            continue
        sizes: list[Expr] = []
        for tensor in nest.operator.tensors:
            positions = nest.residency[tensor.name].positions
            if tensor.is_output is role_is_output and level in positions:
                here = positions[level]
                blocks = [b for b in nest.spatial_between(0, here) if nest.blocks[b].level == level - 1]
                size = product([*nest.extents(tensor, here), *nest.distinct(tensor, blocks)])
                sizes.append(resident(nest, tensor, level, size))
        if sizes:
            result.append(_transfer(total(sizes), bandwidth))
    return result


def _transfer(elements: Expr, bandwidth: Fraction) -> Expr:
    """Whole cycles that a transfer takes."""
    return ceil_div(bandwidth.denominator * elements, bandwidth.numerator)
