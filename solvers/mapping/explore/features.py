"""What of a machine decides a layer's cost: prices, capacities, and everything else.

*Prices* are energies: a mapping's energy is a sum of them, each times a count that does not depend on prices.
*Capacities* are sizes and bandwidths: with more of one, no mapping becomes illegal and none takes more energy
or cycles.  Everything else is the *shape*, which two machines must share to be compared.
Cost models that are comparable (`comparable_rounding`) keep this bargain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from threading import get_ident
from typing import Any

import numpy as np

from tilewright.formulation.mapping.space import Alike
from tilewright.foundation.arrays import Floats
from tilewright.hardware.mapping.engine import Dma, Engine, Fanout, MemoryLevel
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
    levels = [LevelFeatures.of(level) for level in engine.levels]
    prices = chain.from_iterable(level.prices for level in levels)
    return Features(
        (engine.mac_energy, *prices, engine.leak),  # the last one is the price of a cycle
        tuple(chain.from_iterable(level.capacities for level in levels)),
        (engine.cost_model, engine.element_bits, engine.dma, tuple(level.shape for level in levels)),
    )


def spaces_of(operator: Operator, engine: Engine) -> Alike:
    """What the spaces of a layer on machines of one shape have in common, which is stated once."""
    return _spaces(operator, features_of(engine).shape, get_ident())


@lru_cache(maxsize=64)
def _spaces(_operator: Operator, _shape: tuple[Any, ...], _thread: int) -> Alike:
    return Alike()  # of one thread: the tables beside it are for one at a time


def sharing_levels(engines: Sequence[Engine]) -> list[Engine]:
    """The same machines; what is equal is one object, of which :class:`Survey` finds out all at once."""
    known: dict[LevelFeatures, list[MemoryLevel]] = {}

    def shared(level: MemoryLevel) -> MemoryLevel:
        alike = known.setdefault(LevelFeatures.of(level), [])
        same = next((other for other in alike if other == level), None)
        if same is None:
            alike.append(level)
        return level if same is None else same

    energies: dict[Fraction, Fraction] = {}
    dmas: dict[Dma | None, Dma | None] = {}
    leakages: dict[tuple[tuple[str, Fraction], ...], MappingABC[str, Fraction]] = {}
    return [
        replace(
            engine,
            levels=tuple(map(shared, engine.levels)),
            mac_energy=energies.setdefault(engine.mac_energy, engine.mac_energy),
            dma=dmas.setdefault(engine.dma, engine.dma),
            leakage=leakages.setdefault(tuple(engine.leakage.items()), engine.leakage),
        )
        for engine in engines
    ]


@dataclass(frozen=True, slots=True)
class _Head:
    """What machines have in common besides their levels.

    Parameters
    ----------
    number, shape : those of equal ones are equal, and of ones that differ in prices alone
    mac, leak : pJ of an operation, and of a cycle
    """

    number: int
    shape: int
    mac: float
    leak: float


@dataclass(frozen=True, slots=True)
class _Kind:
    """Levels that have equal features.

    Parameters
    ----------
    number, shape : those of equal features, and of equal shapes, are equal
    features : exact ones
    prices, capacities : the same as floats; infinite for what is unlimited
    instances : of its array; 1 without one
    """

    number: int
    shape: int
    features: LevelFeatures
    prices: list[float]
    capacities: list[float]
    instances: int


class Survey:
    """Machines as one layer sees them, each different level looked at once.

    Parameters
    ----------
    machines : levels that they share are one object
    trims : whether capacity that the layer cannot use is left out (:func:`trimmed`)

    Attributes
    ----------
    signatures : equal for machines that ask the same question
    shapes : equal for machines that differ in prices and capacities alone, shape (machines,)
    prices, capacities : of the features, shape (machines, columns); machines of fewer columns have zeros at
        the end, since machines of different shapes are never compared
    peaks : processing elements
    """

    def __init__(self, machines: Sequence[Engine], operator: Operator, *, trims: bool) -> None:
        self._machines, self._operator, self._trims = machines, operator, trims
        self._sizes = _sizes(operator)
        self._levels: dict[tuple[int, int, bool], tuple[MemoryLevel, _Kind]] = {}
        self._kinds: dict[LevelFeatures, _Kind] = {}
        self._shapes: dict[object, int] = {}
        self._seen_levels = [
            [self._seen(machine, level, not index) for index, level in enumerate(machine.levels)]
            for machine in machines
        ]
        self._heads: dict[tuple[object, ...], _Head] = {}
        self._numbers: dict[object, int] = {}
        shapes: dict[tuple[int, ...], int] = {}
        own_shapes: list[int] = []
        prices: list[list[float]] = []
        capacities: list[list[float]] = []
        self.signatures: list[tuple[int, ...]] = []
        self.peaks: list[int] = []
        for machine, seen in zip(machines, self._seen_levels, strict=True):
            kinds = [kind for _, kind in seen]
            head = self._head(machine)
            self.signatures.append((head.number, *[kind.number for kind in kinds]))
            shape = (head.shape, *[kind.shape for kind in kinds])
            own_shapes.append(shapes.setdefault(shape, len(shapes)))
            # The last price is that of a cycle.
            prices.append([head.mac, *_joined(kind.prices for kind in kinds), head.leak])
            capacities.append(_joined(kind.capacities for kind in kinds))
            self.peaks.append(math.prod(kind.instances for kind in kinds))
        self.shapes = np.array(own_shapes)
        self.prices, self.capacities = _padded(prices), _padded(capacities)

    def engine(self, index: int) -> Engine:
        """A machine, trimmed if that is asked for."""
        machine = self._machines[index]
        if not self._trims:
            return machine
        return _with_trimmed(machine, (level for level, _ in self._seen_levels[index]))

    def largest(self, indices: Iterable[int]) -> Engine:
        """A machine on which whatever is legal on some of one shape is legal, at no more cycles.

        Parameters
        ----------
        indices : of the machines, at least one
        """
        indices = list(indices)
        places = zip(*(self._seen_levels[index] for index in indices), strict=True)
        # Capacities of a level do not depend on other levels, so every different level counts once.
        columns = [
            list({kind.number: kind.features.capacities for _, kind in seen}.values()) for seen in places
        ]
        rows = [
            tuple(chain.from_iterable(own[min(number, len(own) - 1)] for own in columns))
            for number in range(max(map(len, columns)))
        ]
        return with_largest_capacities(self.engine(indices[0]), rows)

    def _head(self, machine: Engine) -> _Head:
        """What a machine has besides its levels; machines are kept, and so identities."""
        common = machine.cost_model, machine.element_bits
        key = *common, id(machine.dma), id(machine.mac_energy), id(machine.leakage)
        head = self._heads.get(key)
        if head is None:
            shape, leak = (*common, machine.dma), machine.leak
            whole = *shape, machine.mac_energy, leak
            head = self._heads[key] = _Head(
                self._numbers.setdefault(whole, len(self._numbers)),
                self._numbers.setdefault(shape, len(self._numbers)),
                float(machine.mac_energy),
                float(leak),
            )
        return head

    def _seen(self, machine: Engine, level: MemoryLevel, outermost: bool) -> tuple[MemoryLevel, _Kind]:
        """A level, trimmed or not, and its kind."""
        key = id(level), machine.element_bits, outermost
        known = self._levels.get(key)
        if known is None:
            own = level
            if self._trims:
                own = _trimmed_level(machine, level, self._operator, self._sizes, outermost=outermost)
            known = self._levels[key] = own, self._kind(own)
        return known

    def _kind(self, level: MemoryLevel) -> _Kind:
        """The kind of a level."""
        features = LevelFeatures.of(level)
        kind = self._kinds.get(features)
        if kind is None:
            kind = self._kinds[features] = _Kind(
                len(self._kinds),
                self._shapes.setdefault(features.shape, len(self._shapes)),
                features,
                [float(price) for price in features.prices],
                [math.inf if amount is None else float(amount) for amount in features.capacities],
                1 if level.fanout is None else level.fanout.instances,
            )
        return kind


def _joined(parts: Iterable[list[float]]) -> list[float]:
    return list(chain.from_iterable(parts))


def _padded(rows: Sequence[list[float]]) -> Floats:
    """One row per machine, filled up with zeros."""
    width = max(map(len, rows))
    return np.array([row + [0.0] * (width - len(row)) for row in rows])


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
        parts = math.prod(
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
