"""What of a machine decides a layer's cost: prices, capacities, and everything else.

*Prices* are energies: a mapping's energy is a sum of them, each times a count that does not depend on prices.
*Capacities* are sizes and bandwidths: with more of one, no mapping becomes illegal and none takes more energy
or cycles.  Everything else is the *shape*, which two machines must share to be compared.
Cost models that are comparable (`comparable_rounding`) keep this bargain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
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


@dataclass(frozen=True, slots=True)
class LevelFeatures:
    """What a level adds to the features of its machine."""

    prices: tuple[Fraction, ...]
    capacities: tuple[Fraction | int | None, ...]
    shape: tuple[Any, ...]

    @classmethod
    def of(cls, level: MemoryLevel) -> LevelFeatures:
        """Prices, capacities and shape of a level."""
        return cls(tuple(_prices(level)), tuple(_capacities(level)), _level_shape(level))


def features_of(engine: Engine) -> Features:
    """Prices, capacities and shape of a machine."""
    return _features(engine, [LevelFeatures.of(level) for level in engine.levels])


def _features(engine: Engine, levels: Sequence[LevelFeatures]) -> Features:
    """The features of a machine of given levels."""
    prices = chain.from_iterable(level.prices for level in levels)
    return Features(
        (engine.mac_energy, *prices, engine.leak),  # the last one is the price of a cycle
        tuple(chain.from_iterable(level.capacities for level in levels)),
        (engine.cost_model, engine.element_bits, engine.dma, tuple(level.shape for level in levels)),
    )


def sharing_levels(engines: Sequence[Engine]) -> list[Engine]:
    """The same machines; equal levels are one object, of which :class:`Survey` finds out all at once."""
    known: dict[LevelFeatures, list[MemoryLevel]] = {}

    def shared(level: MemoryLevel) -> MemoryLevel:
        alike = known.setdefault(LevelFeatures.of(level), [])
        same = next((other for other in alike if other == level), None)
        if same is None:
            alike.append(level)
        return level if same is None else same

    return [replace(engine, levels=tuple(map(shared, engine.levels))) for engine in engines]


class Survey:
    """Machines as one layer sees them, each different level looked at once.

    Parameters
    ----------
    machines : levels that they share are one object
    trims : whether capacity that the layer cannot use is left out (:func:`trimmed`)

    Attributes
    ----------
    engines, features : of the machines
    signatures : equal for machines that ask the same question
    """

    def __init__(self, machines: Sequence[Engine], operator: Operator, *, trims: bool) -> None:
        self._operator, self._trims = operator, trims
        self._sizes = _sizes(operator)
        self._levels: dict[tuple[int, int, bool], tuple[MemoryLevel, LevelFeatures, int]] = {}
        self._numbers: dict[LevelFeatures, int] = {}
        self.engines: list[Engine] = []
        self.features: list[Features] = []
        self.signatures: list[object] = []
        for machine in machines:
            seen = [self._seen(machine, level, not index) for index, level in enumerate(machine.levels)]
            engine = _with_trimmed(machine, (level for level, *_ in seen)) if trims else machine
            self.engines.append(engine)
            self.features.append(_features(engine, [features for _, features, _ in seen]))
            self.signatures.append(
                (
                    *(engine.cost_model, engine.element_bits, engine.dma, engine.mac_energy, engine.leak),
                    tuple(number for *_, number in seen),
                )
            )

    def _seen(
        self, machine: Engine, level: MemoryLevel, outermost: bool
    ) -> tuple[MemoryLevel, LevelFeatures, int]:
        """A level, trimmed or not, its features, and the number of all that have equal ones."""
        key = id(level), machine.element_bits, outermost
        known = self._levels.get(key)
        if known is None:
            own = level
            if self._trims:
                own = _trimmed_level(machine, level, self._operator, self._sizes, outermost=outermost)
            features = LevelFeatures.of(own)
            number = self._numbers.setdefault(features, len(self._numbers))
            known = self._levels[key] = own, features, number
        return known


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


def _prices(level: MemoryLevel) -> Iterator[Fraction]:
    yield from level.energies
    if level.fanout is not None:
        yield level.fanout.energy
        yield level.fanout.hop_energy


def _capacities(level: MemoryLevel) -> Iterator[Fraction | int | None]:
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
    sizes = _sizes(operator)
    levels = (
        _trimmed_level(engine, level, operator, sizes, outermost=not index)
        for index, level in enumerate(engine.levels)
    )
    return _with_trimmed(engine, levels)


def _with_trimmed(engine: Engine, levels: Iterable[MemoryLevel]) -> Engine:
    """A machine of such levels, without what its cost does not depend on."""
    return replace(engine, name="trimmed", description="", clock_mhz=Fraction(1), levels=tuple(levels))


def _sizes(operator: Operator) -> list[tuple[Role, int]]:
    """Role and elements of every tensor."""
    return [(tensor.role, tensor.footprint(operator.bounds)) for tensor in operator.tensors]


def _trimmed_level(
    engine: Engine,
    level: MemoryLevel,
    operator: Operator,
    sizes: Sequence[tuple[Role, int]],
    *,
    outermost: bool,
) -> MemoryLevel:
    if level.fanout is not None:
        level = replace(level, fanout=_trimmed_fanout(level.fanout, operator))
    if outermost or level.capacity is None:
        return level
    bits = engine.capacity_element_bits(level)
    bank = (level.bank or 1) * bits
    needs: dict[Role | None, int] = {}  # bits
    for role, size in sizes:
        if role in level.keeps:
            part = role if role in level.partitions else None
            needed = size * engine.width(level, role)
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


def with_largest_capacities(engine: Engine, capacities: Sequence[Sequence[Fraction | int | None]]) -> Engine:
    """A machine of the same shape on which whatever is legal on others is legal, at no more cycles.

    Parameters
    ----------
    capacities : of the others, itself among them
    """
    largest = [
        None if any(available is None for available in column) else max(column)
        for column in (set(column) for column in zip(*capacities, strict=True))
    ]
    return with_capacities(engine, largest)
