"""The ``hierarchy`` cost model: reads, fills and updates of every tensor at every memory level.

Access counts follow from the loop nest alone, as in Timeloop: a tile is fetched when a loop outside its
store moves it, instances that need the same tile share one read, partial sums of several instances are
added on their way out, and outputs are zero-initialised at their first visit.  Buffers that share a tensor
hold a part of its tile each and pass the parts round.  Energy is access counts times unit energies.
Latency is the slowest of compute and all transfers that are hidden by double buffering, plus those that are
not, plus the first fill and the last drain.  ``docs/cost-models.md`` has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

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
from tilewright.formulation.mapping.cost.base import (
    Limit,
    Statement,
    Traffic,
    array_limits,
    capacity_limits,
    energy_scale,
)
from tilewright.formulation.mapping.nest import Nest, Spread
from tilewright.formulation.mapping.orders import OrderClass, all_order_classes, order_classes, sliding_dims
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Operator, Role, Tensor


@dataclass(frozen=True, slots=True)
class _Counts:
    """Accesses of one tensor at one level under one residency."""

    reads: Expr
    fills: Expr
    updates: Expr


_NONE = _Counts(as_expr(0), as_expr(0), as_expr(0))


@dataclass(frozen=True)
class Hierarchy:
    """Any number of memory levels, any perfect nest."""

    name = "hierarchy"
    perfect_only = False
    even_only = False

    def check(self, operator: Operator, engine: Engine) -> None:
        """Every operator and every engine has a meaning here."""

    def orders(
        self, operator: Operator, engine: Engine, level: int, every: bool = False
    ) -> tuple[OrderClass, ...]:
        """Undominated effects, or every one; none for the innermost level, whose loops feed the PE."""
        if level == len(engine.levels) - 1:
            return ()
        inner = engine.levels[level + 1 :]
        sliding = {
            tensor.name: sliding_dims(operator, tensor)
            if any(store.sliding_window and tensor.role in store.keeps for store in inner)
            else frozenset[str]()
            for tensor in operator.tensors
        }
        dims = [dim for dim, bound in operator.bounds.items() if bound > 1]
        return (all_order_classes if every else order_classes)(operator, dims, sliding)

    def statement(self, nest: Nest) -> Statement:
        """Energy, cycles and constraints; energies are exact decimals, scaled to integers."""
        engine = nest.engine
        scale = self._scale(engine)
        components: dict[str, Expr] = {"MAC": self._computing(nest, scale)}
        traffic: list[Traffic] = []
        details: dict[str, Expr] = {}
        for index, level in enumerate(engine.levels):
            parts: list[Expr] = []
            passed: list[Expr] = []
            for tensor in nest.operator.tensors:
                counts = _selected(nest, tensor, index, whole_run=True)
                reads = int(level.read_energy_of(tensor.role) * scale) * counts.reads
                writes = int(level.write_energy_of(tensor.role) * scale) * (counts.fills + counts.updates)
                parts.append(total([reads, writes]))
                if index in nest.residency[tensor.name].positions:
                    tile, hops = nest.kept(tensor, index), _hops(nest, tensor, index)
                    traffic.append(
                        Traffic(
                            level.name, tensor.name, counts.reads, counts.fills, counts.updates, tile, hops
                        )
                    )
                    passed.append(hops)
            components[level.name] = total(parts)
            fan = engine.levels[index - 1].fanout if index else None
            if fan is not None and fan.sharing:
                details[f"{level.name} shared hops"] = total(passed)
                if fan.hop_energy:
                    components[f"{level.name} sharing"] = int(fan.hop_energy * scale) * total(passed)
            if level.fanout is not None and level.fanout.energy:
                moved = total(_transported(nest, tensor, index) for tensor in nest.operator.tensors)
                components[f"{level.name} network"] = int(level.fanout.energy * scale) * moved
        cycles, times = _cycles(nest)
        limits: list[Limit] = [*capacity_limits(nest), *array_limits(nest)]
        return Statement(
            energy=total(components.values()),
            energy_scale=scale,
            cycles=cycles,
            limits=tuple(limits),
            components=components,
            component_scale=scale,
            traffic=tuple(traffic),
            details={**times, **details},
        )

    def energy_by_store(self, nest: Nest) -> dict[int, Expr]:
        """The energy, divided by the boundary at which what is moved is stored, or read by the PEs.

        What moves into a store, and partial sums out of it, depends on the tiles there and on the loops
        around them; so do the energy of the store outside that it takes, and of the networks between.
        """
        engine = nest.engine
        scale = self._scale(engine)
        parts: dict[int, list[Expr]] = {len(nest.blocks): [self._computing(nest, scale)]}
        for index, level in enumerate(engine.levels):
            fan = engine.levels[index - 1].fanout if index else None
            for tensor in nest.operator.tensors:
                read = int(level.read_energy_of(tensor.role) * scale)
                write = int(level.write_energy_of(tensor.role) * scale)
                residency = nest.residency[tensor.name]
                for store, chosen in _served(nest, tensor, index).items():
                    inner = len(nest.blocks) if store is None else residency.positions[store]
                    into = parts.setdefault(inner, [])
                    if level.fanout is not None and level.fanout.energy:
                        moved = _transported(nest, tensor, index, chosen)
                        into.append(int(level.fanout.energy * scale) * moved)
                    if index not in residency.positions:
                        continue
                    counts = _selected(nest, tensor, index, whole_run=True, among=chosen)
                    into += [read * counts.reads, write * counts.updates]
                    parts.setdefault(residency.positions[index], []).append(write * counts.fills)
                    if fan is not None and fan.sharing and fan.hop_energy:
                        into.append(int(fan.hop_energy * scale) * _hops(nest, tensor, index, chosen))
        return {boundary: total(terms) for boundary, terms in sorted(parts.items())}

    @staticmethod
    def _scale(engine: Engine) -> int:
        fans = [level.fanout for level in engine.levels if level.fanout is not None]
        return energy_scale(
            [
                engine.mac_energy,
                *(energy for level in engine.levels for energy in level.energies),
                *(fan.energy for fan in fans),
                *(fan.hop_energy for fan in fans),
            ]
        )

    @staticmethod
    def _computing(nest: Nest, scale: int) -> Expr:
        return as_expr(int(nest.engine.mac_energy * scale) * nest.operator.iterations)


def _served(nest: Nest, tensor: Tensor, level: int) -> dict[int | None, list[bool]]:
    """By the next store inside a level (``None``: the PEs), the residencies in which it is that one."""
    alternatives = nest.residency[tensor.name].alternatives
    inner = [next((store for store in stores if store > level), None) for stores in alternatives]
    return {store: [other == store for other in inner] for store in dict.fromkeys(inner)}


def _selected(
    nest: Nest, tensor: Tensor, level: int, whole_run: bool, among: Sequence[bool] | None = None
) -> _Counts:
    """Counts at a level under the chosen residency, per instance or over all instances.

    ``among`` tells which of the residencies' alternatives count; the others count nothing.
    """
    residency = nest.residency[tensor.name]
    options = [
        _counts(nest, tensor, chosen, level, whole_run) if among is None or among[index] else _NONE
        for index, chosen in enumerate(residency.alternatives)
    ]

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
    store = stores[depth + 1] if depth + 1 < len(stores) else None
    inner = len(nest.blocks) if store is None else positions[store]
    outside = frozenset(nest.spatial_between(0, here)) if whole_run else frozenset[int]()
    at_store = Spread(outside)
    below = _spread(nest, tensor, outside, nest.spatial_between(here, inner), store)
    if tensor.is_output:
        return _output_counts(
            nest, tensor, (here, at_store), (None if store is None else inner, below), depth
        )
    fills = as_expr(0)
    if depth > 0:
        pool = nest.pool(tensor, level) & outside  # buffers that share are filled once together
        windows = nest.engine.levels[level].sliding_window
        fills = nest.delivered(tensor, here, Spread(outside - pool, pooled=pool), windows)
        if not whole_run:
            fills = ceil_div(fills, product(nest.sharers(tensor, level)))
    return _Counts(_reads(nest, tensor, store, below), fills, as_expr(0))


def _reads(nest: Nest, tensor: Tensor, store: int | None, below: Spread, times: Expr | None = None) -> Expr:
    """Elements that the next inner store (``None``: the PEs) reads, over the instances that count."""
    if store is None:
        return product([nest.iterations(tensor, below), 1 if times is None else times])
    position = nest.residency[tensor.name].positions[store]
    return nest.delivered(tensor, position, below, nest.engine.levels[store].sliding_window, times)


def _hops(nest: Nest, tensor: Tensor, level: int, among: Sequence[bool] | None = None) -> Expr:
    """Elements that a level's buffers pass on to each other.

    Whenever the inside reads a shared tile, it goes round its ``n`` buffers: ``n - 1`` hops for every element
    that the first of them reads.  ``n - 1`` is a sum over dimensions, as of rings within rings, so that every
    term is a product of what depends on one dimension.
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
        spread = _spread(nest, tensor, outside, nest.spatial_between(here, end), store)
        leaders = replace(spread, pooled=spread.pooled | pool)
        return total(_reads(nest, tensor, store, leaders, ring) for ring in rings)

    return _chosen(nest, tensor, passed, among)


def _spread(
    nest: Nest, tensor: Tensor, outside: frozenset[int], between: Sequence[int], store: int | None
) -> Spread:
    """Instances whose accesses reach the outer store.

    Those that need the same tile share an access where the network between multicasts (inputs) or reduces
    (outputs), and where the buffers of the inner store share it; elsewhere each has its own.
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
) -> _Counts:
    """Partial sums: written back at every visit, read again at every visit but the first.

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
    partners = nest.partners(tensor, here, instances)
    first = product([*arriving, partners])
    if any(axis.is_compound for axis in tensor.axes):
        # tiles overlap: every touched element is a partial sum
        updates = nest.iterations(tensor, below) if target is None else nest.delivered(tensor, target, below)
        held = product([*elements, partners])
        fills = maximum([0, nest.delivered(tensor, here, instances) - held]) if depth else as_expr(0)
        return _Counts(maximum([0, updates - first]), fills, updates)
    fills = as_expr(0)
    if depth:
        fills = nest.visits(tensor, here, instances, lambda n: product([*elements, n - partners]))
    if target is None:
        updates = nest.iterations(tensor, below)
        most = tensor.footprint(nest.operator.bounds) * nest.cap(instances.every)
        return _Counts(updates - tighten(first, upper=most), fills, updates)
    updates = nest.visits(tensor, target, below, lambda n: product([*arriving, n]))
    reads = nest.visits(tensor, target, below, lambda n: product([*arriving, n - partners]))
    return _Counts(reads, fills, updates)


def _transported(nest: Nest, tensor: Tensor, level: int, among: Sequence[bool] | None = None) -> Expr:
    """Elements that cross a level's network, counted at every instance that receives or sends them."""
    residency = nest.residency[tensor.name]
    reached = frozenset(b for b in nest.spatial if nest.blocks[b].level <= level)
    deeper = [b for b in nest.spatial if nest.blocks[b].level > level]

    def crossing(stores: Sequence[int]) -> Expr:
        store = next((s for s in stores if s > level), None)
        target = len(nest.blocks) if store is None else residency.positions[store]
        spread = _spread(nest, tensor, reached, [b for b in deeper if b < target], store)
        if store is None:
            return nest.iterations(tensor, spread)
        if not tensor.is_output:
            return nest.delivered(tensor, target, spread, nest.engine.levels[store].sliding_window)
        # partial sums travel out at every visit and back in at every visit but the first
        if any(axis.is_compound for axis in tensor.axes):
            return 2 * nest.delivered(tensor, target, spread)
        elements = nest.coverage(tensor, target, spread)
        partners = nest.partners(tensor, target, spread)
        return nest.visits(tensor, target, spread, lambda n: product([*elements, 2 * n - partners]))

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


def _cycles(nest: Nest) -> tuple[Expr, dict[str, Expr]]:
    """Latency and its parts."""
    engine = nest.engine
    peak = -(-nest.operator.iterations // nest.cap(nest.spatial))
    compute = tighten(nest.steps(), lower=peak)
    details = {"compute cycles": compute}
    hidden: list[Expr] = [compute]
    exposed: list[Expr] = []
    for index, level in enumerate(engine.levels):
        parts = [
            (side, _port_time(nest, index, behind)) for behind, side in ((True, hidden), (False, exposed))
        ]
        times = [(side, time) for side, time in parts if time is not None]
        if times:
            details[f"{level.name} transfer cycles"] = total(time for _, time in times)
        for side, time in times:
            side.append(time)
        if index and level.double_buffered:
            exposed += first_and_last(nest, index)
    return total([maximum(hidden), *exposed]), details


def _port_time(nest: Nest, level: int, behind: bool) -> Expr | None:
    """Cycles that one instance's ports are busy; ``None`` where bandwidth is no limit.

    Parameters
    ----------
    behind : with what hides behind other work (``True``), or with what does not: tensors whose next inner
        store is not double-buffered
    """
    memory = nest.engine.levels[level]
    reads: list[tuple[Role, Expr]] = []
    writes: list[tuple[Role, Expr]] = []
    for tensor in nest.operator.tensors:
        alternatives = nest.residency[tensor.name].alternatives
        chosen = [level in stores and _hides(nest, stores, level) is behind for stores in alternatives]
        if any(chosen):
            counts = _selected(nest, tensor, level, whole_run=False, among=chosen)
            reads.append((tensor.role, counts.reads))
            writes += [(tensor.role, counts.fills), (tensor.role, counts.updates)]
    times = port_times(nest.engine, memory, reads, writes)
    return maximum(times) if times else None


def port_times(
    engine: Engine,
    level: MemoryLevel,
    reads: Sequence[tuple[Role, Expr]],
    writes: Sequence[tuple[Role, Expr]],
) -> list[Expr]:
    """Cycles in which each port of a level that limits anything moves some elements of some roles."""
    ports = (
        (level.read_bandwidth, reads),
        (level.write_bandwidth, writes),
        (level.shared_bandwidth, [*reads, *writes]),
    )
    return [transfer(engine, level, moved, rate) for rate, moved in ports if moved and rate is not None]


def _hides(nest: Nest, stores: Sequence[int], level: int) -> bool:
    """Whether what a level hands inwards hides: into a double-buffered store, or straight to the PEs."""
    inner = next((store for store in stores if store > level), None)
    return inner is None or nest.engine.levels[inner].double_buffered


def first_and_last(nest: Nest, level: int) -> list[Expr]:
    """The first fill and the last drain of a double-buffered level, which nothing hides.

    Every tensor's first tiles come from the store outside this one, through that store's port; several such
    stores work side by side.
    """
    result: list[Expr] = []
    for role_is_output in (False, True):
        tensors = [t for t in nest.operator.tensors if t.is_output is role_is_output]
        times: list[Expr] = []
        for source, outer in enumerate(nest.engine.levels[:level]):
            own = outer.write_bandwidth if role_is_output else outer.read_bandwidth
            sizes = [(tensor.role, _first_tiles(nest, tensor, source, level)) for tensor in tensors]
            taken = [(role, size) for role, size in sizes if size is not None]
            for rate in (own, outer.shared_bandwidth):
                if taken and rate is not None:
                    times.append(transfer(nest.engine, outer, taken, rate))
        if times:
            result.append(maximum(times))
    return result


def _first_tiles(nest: Nest, tensor: Tensor, source: int, level: int) -> Expr | None:
    """Elements that the first tiles at a level take from one instance of a source; ``None`` for none."""
    residency = nest.residency[tensor.name]
    follows = [(source, level) in pairwise(stores) for stores in residency.alternatives]
    if not any(follows):
        return None
    here = residency.positions[level]
    between = nest.spatial_between(residency.positions[source], here)
    size = nest.held(tensor, here, _spread(nest, tensor, frozenset(), between, level))
    return choose(residency.selector, [size if follow else as_expr(0) for follow in follows])


def transfer(
    engine: Engine, level: MemoryLevel, moved: Sequence[tuple[Role, Expr]], bandwidth: Fraction
) -> Expr:
    """Whole cycles that elements of some roles take on a port of a level."""
    widths = {role: engine.width(level, role) for role, _ in moved}
    unit = math.gcd(*widths.values())
    rate = Fraction(bandwidth * engine.element_bits) / unit
    units = total(widths[role] // unit * elements for role, elements in moved)
    return ceil_div(rate.denominator * units, rate.numerator)
