"""The engine that one turn of a fused layer sees: tensors start at their homes, which have less room.

To an ordinary layer problem the outermost level holds every tensor.  Here it stands for each role's home: it
has the home's energies for that role, and no level down to the home keeps the role any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from tilewright.formulation.mapping.fused.occupancy import room_bits
from tilewright.formulation.mapping.parts.compulsory import touched
from tilewright.hardware.mapping.engine import ArrayAxis, Engine
from tilewright.workloads.mapping.operator import Dimension, Operator, Role, Tensor

Homes = tuple[tuple[Role, int], ...]
"""Per role that starts on chip, the index of its home level."""

Rooms = tuple[int | None, ...]
"""Bits that are left per level and partition, in the order of `places_of`; ``None`` without a limit."""

Place = tuple[int, Role | None]
"""A level and one of its partitions, ``None`` for what the other roles share."""


def places_of(engine: Engine, shared_levels: int) -> tuple[Place, ...]:
    """Where shared stores may take room: all levels down to the first array, and their partitions."""
    return tuple(
        (index, part)
        for index in range(1, shared_levels + 1)
        for part in (None, *sorted(engine.levels[index].partitions))
    )


def shared_levels(engine: Engine) -> int:
    """The index of the innermost level that all turns see as one: that of the first array."""
    return next(
        (index for index, level in enumerate(engine.levels) if level.fanout is not None),
        len(engine.levels) - 1,
    )


def residences(engine: Engine, role: Role) -> list[int]:
    """Levels in which tensors of a role may be resident; none passes over a level that must store it."""
    levels: list[int] = []
    for index in range(1, shared_levels(engine) + 1):
        level = engine.levels[index]
        if role in level.keeps:
            levels.append(index)
            if role not in level.may_bypass:
                break
    return levels


@dataclass(frozen=True)
class TurnEngines:
    """Engines derived from one machine.

    Parameters
    ----------
    engine : the machine
    perfect : whether tiles within turns divide the ones around them
    loose : dimensions of the layer at hand of which a turn may have other sizes than those that are known
    """

    engine: Engine
    perfect: bool = False
    loose: frozenset[str] = frozenset()

    def loosened(self, dims: Iterable[str]) -> TurnEngines:
        """The same for a layer with dimensions whose sizes in turns are not known."""
        loose = frozenset(dims)
        return self if loose == self.loose else replace(self, loose=loose)

    def whole_rooms(self) -> Rooms:
        """Everything that shared levels have."""
        return tuple(
            room_bits(self.engine, self.engine.levels[index], part)
            for index, part in places_of(self.engine, shared_levels(self.engine))
        )

    def derived(self, homes: Homes, rooms: Rooms) -> Engine:
        """The engine with some homes and so much room."""
        home = dict(homes)
        engine = self.engine
        outermost = engine.levels[0]
        read = dict(outermost.read_energies)
        write = dict(outermost.write_energies)
        for role, index in homes:
            read[role] = engine.levels[index].read_energy_of(role)
            write[role] = engine.levels[index].write_energy_of(role)
        levels = [replace(outermost, read_energies=read, write_energies=write)]
        left = dict(zip(places_of(engine, shared_levels(engine)), rooms, strict=True))
        for index, level in enumerate(engine.levels[1:], 1):
            gone = frozenset(role for role in level.keeps if index <= home.get(role, 0))
            unit = engine.capacity_element_bits(level)
            bits = left.get((index, None), room_bits(engine, level, None))
            partitions = {
                role: left.get((index, role), size * engine.width(level, role))
                for role, size in level.partitions.items()
            }
            levels.append(
                replace(
                    level,
                    keeps=level.keeps - gone,
                    may_bypass=level.may_bypass - gone,
                    capacity=None if bits is None else bits // unit,
                    partitions={
                        role: (size or 0) // engine.width(level, role)
                        for role, size in partitions.items()
                        if role not in gone
                    },
                    counted_bits=unit,
                )
            )
        return replace(engine, levels=tuple(levels), starts=home)

    def gain_by_turn(self, operator: Operator, tensor: Tensor) -> bool:
        """Whether a resident with a tile of one turn may gain something over a streamed tensor.

        That one may store such a tile as well, for the same energy.  In cycles its first tile counts twice,
        as transfer and as first fill.  Beside another tensor of its role it starts where that one does.
        """
        mates = [other for other in operator.tensors if other.role is tensor.role]
        return bool(self.engine.leak) or len(mates) > 1

    def operations(self, operator: Operator) -> Fraction:
        """What all turns cost at least beside moving tensors: operations, and static power meanwhile."""
        working = math.prod(
            self._spread(axis, operator.dimensions)
            for level in self.engine.levels
            if level.fanout is not None
            for axis in level.fanout.axes
        )
        least = operator.iterations * self.engine.mac_energy
        least += -(-operator.iterations // working) * self.engine.leak
        return operator.turns * least

    def _spread(self, axis: ArrayAxis, dimensions: Iterable[Dimension]) -> int:
        """How many instances along an axis can have iterations of their own of some dimensions."""
        carried = [d for d in dimensions if d.bound > 1 and _carries(axis, d)]
        free = [d for d in carried if not self.perfect or d.name in self.loose]
        bounds = sorted(d.bound for d in carried if d not in free)
        return most_spread(axis.size, tuple(bounds), math.prod(d.bound for d in free))

    def least_energy(self, operator: Operator, tensor: Tensor, homes: Homes, visits: int = 1) -> Fraction:
        """What a tensor costs in all turns at least, whatever the mapping and however much room there is.

        Every element comes out of the home once a turn, and into every level that must store it; the
        innermost such level serves every operation, an element for all PEs below it that can share it.

        Parameters
        ----------
        operator, tensor : what the turns compute
        homes : where tensors start that do not come from the outermost level
        visits : how often at least every element of an operand is needed anew in a turn
        """
        least = self._least_accesses(operator, tensor, homes, visits)
        return least + self._least_delivered(operator, tensor)

    def _least_delivered(self, operator: Operator, tensor: Tensor) -> Fraction:
        """What a tensor costs on networks of arrays: an element per operation, if nothing inside keeps it."""
        levels = self.engine.levels
        energy = Fraction(0)
        for index, level in enumerate(levels):
            if level.fanout is None or not level.fanout.energy:
                continue
            inside = levels[index + 1 :]
            number = touched(operator, tensor)
            if not any(tensor.role in inner.keeps for inner in inside):
                deeper = math.prod(inner.fanout.instances for inner in inside if inner.fanout is not None)
                number = -(-operator.iterations // deeper)
            energy += operator.turns * number * level.fanout.energy
        return energy

    def _least_accesses(self, operator: Operator, tensor: Tensor, homes: Homes, visits: int) -> Fraction:
        """The same of memory levels alone, whichever level serves the operations.

        No level inside the one that serves stores the tensor, so that one stands no further out than the
        innermost level that must store it.
        """
        home = dict(homes).get(tensor.role, 0)
        levels = self.engine.levels
        inside = [i for i, level in enumerate(levels) if i > home and tensor.role in level.keeps]
        musts = [index for index in inside if tensor.role not in levels[index].may_bypass]
        serving = [index for index in (home, *inside) if index >= (musts[-1] if musts else home)]
        return min(
            self._served(operator, tensor, home, tuple(dict.fromkeys((*musts, index))), visits)
            for index in serving
        )

    def _served(
        self, operator: Operator, tensor: Tensor, home: int, stores: tuple[int, ...], visits: int
    ) -> Fraction:
        """What a tensor costs that is stored in some levels, the last of which serves the operations.

        Parameters
        ----------
        operator, tensor : what the turns compute
        home : where the tensor starts
        stores : levels inside, outermost first; the home where it serves them itself
        visits : how often an operand comes to them in a turn
        """
        engine, role, turns = self.engine, tensor.role, operator.turns
        elements = touched(operator, tensor)
        outer, level = engine.levels[home], engine.levels[stores[-1]]
        inner = [engine.levels[index] for index in stores if index != home]
        accesses = -(-operator.iterations // self._sharing(stores[-1], operator, tensor))
        if not tensor.is_output:
            read, fetched = turns * outer.read_energy_of(role), visits * elements
            if not inner:  # the home serves every operation, and no fewer elements than it hands out
                return read * max(fetched, accesses)
            energy = read * fetched + turns * accesses * level.read_energy_of(role)
            return energy + sum(
                (turns * fetched * store.write_energy_of(role) for store in inner), Fraction(0)
            )
        again = (turns - 1) * elements
        energy = turns * elements * outer.write_energy_of(role) + again * outer.read_energy_of(role)
        for store in inner:
            energy += (turns * elements + again) * store.write_energy_of(role)
            if store.timing.drained:
                energy += turns * elements * store.read_energy_of(role)
        energy += turns * max(0, accesses - elements) * level.write_energy_of(role)
        plain = tensor.is_plain
        alone = not any(other.fanout is not None for other in engine.levels[: stores[-1]])
        if plain and alone and inner:
            # Every update but an element's first one in a turn reads the sum before it.
            energy += turns * max(0, accesses - elements) * level.read_energy_of(role)
        return energy

    def _sharing(self, level: int, operator: Operator, tensor: Tensor) -> int:
        """How many PEs below one instance of a level can use one element at a time.

        They differ in loops that the tensor does not depend on, or that move along one of its windows
        together with another loop; no more of these fit on an axis than it carries.
        """
        shared = [d for d in operator.dimensions if d.name not in tensor.dims]
        arrays = [inner.fanout for inner in self.engine.levels[level:] if inner.fanout is not None]
        for window in tensor.axes:
            moving = {term.dim for term in window.terms}
            spread = [
                d
                for d in operator.dimensions
                if d.name in moving
                and d.bound > 1
                and any(_carries(axis, d) for array in arrays for axis in array.axes)
            ]
            # PEs that differ in one of a window's loops alone use elements of their own.
            if len(spread) > 1:
                shared += [d for d in spread if d not in shared]
        number = 1
        for array in arrays:
            if array.sharing:
                number *= array.instances
            else:
                for axis in array.axes:
                    number *= self._spread(axis, shared)
        return number


@lru_cache(maxsize=4096)
def most_spread(size: int, bounds: tuple[int, ...], free: int) -> int:
    """The largest number of instances, up to a size, over which loops can be spread.

    Parameters
    ----------
    size : of an axis
    bounds : of the loops that it carries in parts that divide them
    free : iterations of all other loops that it carries, which any part may have
    """
    numbers = {1}
    for bound in bounds:
        parts = [part for part in range(1, min(size, bound) + 1) if bound % part == 0]
        numbers = {number * part for number in numbers for part in parts if number * part <= size}
    return max(number * min(free, size // number) for number in numbers)


def _carries(axis: ArrayAxis, dimension: Dimension) -> bool:
    return axis.carries is None or dimension.like in axis.carries


def left_of(whole: Rooms, taken: MappingABC[int, int]) -> Rooms | None:
    """What is left of rooms; ``None`` where more is taken than there is.

    Parameters
    ----------
    whole : the rooms
    taken : bits per index of a room
    """
    rooms = tuple(None if room is None else room - taken.get(index, 0) for index, room in enumerate(whole))
    return None if any(room is not None and room < 0 for room in rooms) else rooms
