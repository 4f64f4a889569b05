"""Latency of the ``hierarchy`` cost model.

It is the slowest of compute and all transfers that are hidden by double buffering, plus those that are not,
plus the first fill and the last drain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from tilewright.formulation.expression import Expr, as_expr, ceil_div, choose, maximum, tighten, total
from tilewright.formulation.mapping.cost.hierarchy_counts import selected_counts, spread_of
from tilewright.formulation.mapping.cost.hierarchy_setup import (
    Charge,
    instructions,
    issued,
    rounded_up,
    set_ups,
    sets_up,
    timed_reads,
)
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Role, Tensor


def cycles_of(nest: Nest) -> tuple[Expr, dict[str, Expr]]:
    """Latency and its parts; turns that add to the same sums run one after the other."""
    again = nest.operator.turns - 1
    if not again:
        return _cycles_of_turn(nest)
    first, parts = _cycles_of_turn(replace(nest, operator=replace(nest.operator, turns=1)))
    other, others = _cycles_of_turn(replace(nest, operator=replace(nest.operator, turns=1, continued=True)))
    return first + again * other, {name: part + again * others[name] for name, part in parts.items()}


def _cycles_of_turn(nest: Nest) -> tuple[Expr, dict[str, Expr]]:
    engine = nest.engine
    # No mapping is faster than all PEs at work; intervals alone would not find that.
    peak = -(-nest.operator.iterations // nest.cap(nest.spatial))
    compute = tighten(nest.steps(), lower=peak)
    details = {"compute cycles": compute}
    # Hidden work overlaps with all other hidden work, so that the slowest counts; exposed work adds up.
    hidden: list[Expr] = [total([compute, *instructions(nest)])]
    exposed: list[Expr] = []
    for index, level in enumerate(engine.levels):
        # One port may do both: what fills a double-buffered store hides, what fills a single buffer does not.
        parts = [
            (side, port_time(nest, index, behind)) for behind, side in ((True, hidden), (False, exposed))
        ]
        times = [(side, time) for side, time in parts if time is not None]
        if times:
            details[f"{level.name} transfer cycles"] = total(time for _, time in times)
        for side, time in times:
            side.append(time)
        if level.timing.tile:
            issue = issued(nest, index)
            details[f"{level.name} set-up cycles"] = issue
            (exposed if level.timing.overlap is False else hidden).append(issue)
        if index and level.double_buffered:
            exposed += first_and_last(nest, index)
    return total([maximum(hidden), *exposed]), details


def port_time(nest: Nest, level: int, behind: bool) -> Expr | None:
    """Cycles that one instance's ports are busy; ``None`` where bandwidth is no limit.

    Parameters
    ----------
    nest, level : the loops, and the index of a memory level
    behind : with what hides behind other work (``True``), or with what does not: tensors whose next inner
        store is not double-buffered
    """
    memory = nest.engine.levels[level]
    if not (memory.has_bandwidth or sets_up(memory)):
        return None
    reads: list[tuple[Role, Expr]] = []
    writes: list[tuple[Role, Expr]] = []
    set_up: list[Charge] = []
    for tensor in nest.operator.tensors:
        store = nest.engine.store_behind(level, tensor.role)
        if store is None:
            continue
        alternatives = nest.residency[tensor.name].alternatives
        chosen = [
            store in stores and _hides(nest, stores, (level, store)) is behind for stores in alternatives
        ]
        if any(chosen):
            counts = selected_counts(nest, tensor, store, whole_run=False, among=chosen)
            reads.append((tensor.role, total([timed_reads(nest, tensor, store, chosen), counts.drains])))
            set_up += set_ups(nest, tensor, (level, store), chosen)
            writes += [(tensor.role, counts.fills), (tensor.role, counts.updates)]
    times = port_times(nest.engine, memory, reads, writes)
    if not set_up:
        return maximum(times) if times else None
    return total([maximum(times) if times else 0, rounded_up(set_up)])


def port_times(
    engine: Engine,
    level: MemoryLevel,
    reads: Sequence[tuple[Role, Expr]],
    writes: Sequence[tuple[Role, Expr]],
) -> list[Expr]:
    """Cycles in which each port of a level that limits anything moves some elements of some roles.

    Parameters
    ----------
    engine : gives the widths of elements
    level : whose ports move them
    reads, writes : elements per role; partial sums that are read again stand in both
    """
    ports = (
        (level.read_bandwidth, reads),
        (level.write_bandwidth, writes),
        (level.shared_bandwidth, [*reads, *writes]),
    )
    return [transfer(engine, level, moved, rate) for rate, moved in ports if moved and rate is not None]


def _hides(nest: Nest, stores: Sequence[int], place: tuple[int, int]) -> bool:
    """Whether what is handed inwards hides: into a double-buffered store, or straight to the PEs.

    Parameters
    ----------
    stores : of a tensor
    place : the level through whose ports it goes, and the store that it comes from
    """
    level, source = place
    overlap = nest.engine.levels[level].timing.overlap
    if overlap is not None:
        return overlap
    inner = next((store for store in stores if store > source), None)
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
            if all(rate is None for rate in _first_rates(outer, is_output=role_is_output)):
                continue
            stores = [(tensor, nest.engine.store_behind(source, tensor.role)) for tensor in tensors]
            sizes = [
                (tensor.role, first_tiles(nest, tensor, store, level))
                for tensor, store in stores
                if store is not None
            ]
            times += first_times(nest.engine, outer, sizes, is_output=role_is_output)
        if times:
            result.append(maximum(times))
    return result


def first_times(
    engine: Engine, outer: MemoryLevel, sizes: Sequence[tuple[Role, Expr | None]], *, is_output: bool
) -> list[Expr]:
    """Cycles in which first tiles of inputs, or last ones of outputs, pass each port that limits them.

    Parameters
    ----------
    engine, outer : the machine, and the level that they come from, or go to
    sizes : elements per role; ``None`` for none
    is_output : whether all of them are outputs
    """
    taken = [(role, size) for role, size in sizes if size is not None]
    rates = _first_rates(outer, is_output=is_output)
    return [transfer(engine, outer, taken, rate) for rate in rates if taken and rate is not None]


def _first_rates(outer: MemoryLevel, *, is_output: bool) -> tuple[Fraction | None, Fraction | None]:
    """What may limit first tiles that come from a level, or last ones that go there; ``None`` for nothing."""
    return outer.write_bandwidth if is_output else outer.read_bandwidth, outer.shared_bandwidth


def first_tiles(nest: Nest, tensor: Tensor, source: int, level: int) -> Expr | None:
    """Elements that the first tiles at a level take from one instance of a source; ``None`` for none.

    Parameters
    ----------
    nest : the loops and the choices of storage
    tensor : whose tiles they are
    source, level : the store outside, and the level that is filled
    """
    residency = nest.residency[tensor.name]
    follows = [(source, level) in pairwise(stores) for stores in residency.alternatives]
    if not any(follows):
        return None
    here = residency.positions[level]
    between = nest.spatial_between(residency.positions[source], here)
    size = nest.held(tensor, here, spread_of(nest, tensor, frozenset(), between, level))
    return choose(residency.selector, [size if follow else as_expr(0) for follow in follows])


def transfer(
    engine: Engine, level: MemoryLevel, moved: Sequence[tuple[Role, Expr]], bandwidth: Fraction
) -> Expr:
    """Whole cycles that elements of some roles take on a port of a level.

    Parameters
    ----------
    engine : gives the widths of elements
    level : on one of whose ports they move
    moved : elements per role
    bandwidth : of the port, in elements of the machine's usual width per cycle
    """
    widths = {role: engine.width(level, role) for role, _ in moved}
    # Widths differ by role; their common divisor is the unit in which the port's rate stays exact.
    unit = math.gcd(*widths.values())
    rate, per = bandwidth.numerator * engine.element_bits, bandwidth.denominator * unit
    common = math.gcd(rate, per)
    units = total(widths[role] // unit * elements for role, elements in moved)
    return ceil_div(per // common * units, rate // common)
