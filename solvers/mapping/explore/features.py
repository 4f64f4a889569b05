"""What of a machine decides a layer's cost: prices, capacities, and everything else.

*Prices* are energies: a mapping's energy is a sum of them, each times a count that does not depend on prices.
*Capacities* are sizes and bandwidths: with more of one, no mapping becomes illegal and none takes more energy
or cycles.  Everything else is the *shape*, which two machines must share to be compared.
Cost models that are comparable (`comparable_rounding`) keep this bargain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

from tilewright.hardware.mapping.engine import Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.operator import Operator, Role


@dataclass(frozen=True, slots=True)
class Features:
    """A machine as prices, capacities and shape.

    Parameters
    ----------
    prices : pJ, exact
    capacities : elements, elements per cycle, instances; ``None`` for what is unlimited
    shape : equal for machines that differ in prices and capacities alone
    """

    prices: tuple[Fraction, ...]
    capacities: tuple[Fraction | int | None, ...]
    shape: tuple[Any, ...]


def features_of(engine: Engine) -> Features:
    """Prices, capacities and shape of a machine."""
    shape = (
        engine.cost_model,
        engine.element_bits,
        engine.dma,
        tuple(_level_shape(level) for level in engine.levels),
    )
    return Features(tuple(_prices(engine)), tuple(_capacities(engine)), shape)


def _level_shape(level: MemoryLevel) -> tuple[Any, ...]:
    fan = level.fanout
    return (
        level.name,
        level.bank,
        level.double_buffered,
        tuple(sorted(level.keeps)),
        tuple(sorted(level.may_bypass)),
        level.sliding_window,
        level.timing,
        tuple(sorted(level.partitions)),
        tuple(sorted(level.widths.items())),
        tuple(sorted(level.read_energies)),
        tuple(sorted(level.write_energies)),
        None
        if fan is None
        else (
            tuple(
                (axis.name, None if axis.carries is None else tuple(sorted(axis.carries)))
                for axis in fan.axes
            ),
            fan.multicast,
            fan.reduction,
            fan.sharing,
        ),
    )


def _prices(engine: Engine) -> Iterator[Fraction]:
    yield engine.mac_energy
    for level in engine.levels:
        yield from level.energies
        if level.fanout is not None:
            yield level.fanout.energy
            yield level.fanout.hop_energy
    yield engine.leak  # the price of a cycle


def _capacities(engine: Engine) -> Iterator[Fraction | int | None]:
    for level in engine.levels:
        yield level.capacity
        for role in sorted(level.partitions):
            yield level.partitions[role]
        yield level.read_bandwidth
        yield level.write_bandwidth
        yield level.shared_bandwidth
        for axis in level.fanout.axes if level.fanout else ():
            yield axis.size


def with_prices(engine: Engine, prices: Sequence[Fraction]) -> Engine:
    """The machine with other prices."""
    given = iter(prices)
    mac = next(given)
    levels = []
    for level in engine.levels:
        level = replace(
            level,
            read_energy=next(given),
            write_energy=next(given),
            read_energies={role: next(given) for role in sorted(level.read_energies)},
            write_energies={role: next(given) for role in sorted(level.write_energies)},
        )
        if level.fanout is not None:
            fan = replace(level.fanout, energy=next(given), hop_energy=next(given))
            level = replace(level, fanout=fan)
        levels.append(level)
    leak = next(given)
    return replace(engine, mac_energy=mac, levels=tuple(levels), leakage={"": leak} if leak else {})


def with_capacities(engine: Engine, capacities: Sequence[Any]) -> Engine:
    """The machine with other capacities."""
    given = iter(capacities)
    levels = []
    for level in engine.levels:
        capacity = next(given)
        partitions = {role: next(given) for role in sorted(level.partitions)}
        level = replace(
            level,
            capacity=capacity,
            partitions=partitions,
            read_bandwidth=next(given),
            write_bandwidth=next(given),
            shared_bandwidth=next(given),
        )
        if level.fanout is not None:
            axes = tuple(replace(axis, size=next(given)) for axis in level.fanout.axes)
            level = replace(level, fanout=replace(level.fanout, axes=axes))
        levels.append(level)
    return replace(engine, levels=tuple(levels))


def trimmed(engine: Engine, operator: Operator) -> Engine:
    """The machine without capacity that a layer cannot use, and without what its cost does not depend on.

    No tile is larger than its tensor, no dimension has more parts than iterations: a level that holds all
    tensors whole is as good as any larger one, and so is an array axis with an instance for every
    combination of what may be spread along it.  Two machines that are equal after this ask the same question.
    """
    levels = tuple(
        _trimmed_level(engine, level, operator, outermost=not index)
        for index, level in enumerate(engine.levels)
    )
    return replace(engine, name="trimmed", description="", clock_mhz=Fraction(1), levels=levels)


def _trimmed_level(engine: Engine, level: MemoryLevel, operator: Operator, *, outermost: bool) -> MemoryLevel:
    if level.fanout is not None:
        level = replace(level, fanout=_trimmed_fanout(level.fanout, operator))
    if outermost or level.capacity is None:
        return level
    bits = engine.capacity_element_bits(level)
    bank = (level.bank or 1) * bits
    needs: dict[Role | None, int] = {}  # bits
    for tensor in operator.tensors:
        if tensor.role in level.keeps:
            part = tensor.role if tensor.role in level.partitions else None
            needed = tensor.footprint(operator.bounds) * engine.width(level, tensor.role)
            if level.bank is not None:
                needed = -(-needed // bank) * bank
            needs[part] = needs.get(part, 0) + needed
    partitions = {
        role: max(1, min(available, -(-needs.get(role, 0) // engine.width(level, role))))
        for role, available in level.partitions.items()
    }
    if level.partitions and set(level.partitions) == set(level.keeps):
        return replace(level, capacity=sum(partitions.values()), partitions=partitions)
    unit = level.bank or 1
    usable = level.capacity // unit * unit
    return replace(level, capacity=max(1, min(usable, -(-needs.get(None, 0) // bits))), partitions=partitions)


def _trimmed_fanout(fanout: Fanout, operator: Operator) -> Fanout:
    axes = []
    for axis in fanout.axes:
        parts = prod(
            dimension.bound
            for dimension in operator.dimensions
            if axis.carries is None or dimension.like in axis.carries
        )
        axes.append(replace(axis, size=min(axis.size, parts)))
    return replace(fanout, axes=tuple(axes))


def with_largest_capacities(engines: Sequence[Engine]) -> Engine:
    """A machine of the same shape on which whatever is legal on one of these is legal, at no more cycles."""
    columns = zip(*(features_of(engine).capacities for engine in engines), strict=True)
    capacities = [
        None if any(available is None for available in column) else max(column) for column in columns
    ]
    return with_capacities(engines[0], capacities)
