"""Energy that follows from which tasks run in one round: copies on their engines, and links to these.

Charges of all rounds together stay below what any plan with these rounds takes beside `EnergyUnits.least`
(docs/tiled-exact.md has the reasons).  Divided by a price of a cycle they are lengths, so that a search over
sequences of rounds bounds energy plus price times cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.solvers.scheduling.tiled.exact.counts import Classes, read_bytes
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.prices import EnergyUnits

FEW = 5
"""Tasks of a family up to which only rounds with more than half of them are charged."""


@dataclass(frozen=True, slots=True)
class Family:
    """Tasks of which those of one round cost energy, being on different engines.

    Parameters
    ----------
    tasks : which of a round count
    units : of energy, per number of them in one round; from 0 on
    """

    tasks: tuple[int, ...]
    units: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RoundCharges:
    """Charges of rounds, in units of energy.

    Parameters
    ----------
    instance, units : the atoms, and what they and their movements cost
    price : units that a part of a cycle is worth, times parts in a cycle
    """

    instance: RoundInstance
    units: EnergyUnits
    price: int

    def parts(self, energy: int) -> int:
        """Parts of a cycle that are worth so many units, rounded down."""
        return energy * self.instance.unit // self.price

    @cached_property
    def _link(self) -> int:
        return min(self.units.hop, self.units.dram)

    @cached_property
    def _copy(self) -> int:
        """Units of a byte that reaches one more engine: a link, or DRAM once more, and its buffer."""
        return self.units.write + self._link

    @cached_property
    def _sent(self) -> int:
        """Units of a byte that leaves where it was made."""
        return min(self.units.read, self.units.dram - self._link)

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """All families that cost something."""
        every = (*self._of_data(), *self._of_results())
        return tuple(family for family in every if any(family.units))

    def _of_data(self) -> Iterator[Family]:
        """Readers of data from DRAM, which is written into the buffers of all of their engines."""
        instance = self.instance
        for block, readers in instance.readers.items():
            if instance.parent[block] < 0:
                price = instance.size[block] * self._copy
                yield Family(readers, self._shared([price] * (len(readers) - 1)))

    def _of_results(self) -> Iterator[Family]:
        """Readers of a result, one of which may be where it was made; and those who make results together.

        Tasks that all read all results of some others: of these the largest result is left to the engines
        that make them, which a reader shares with one of them at most.
        """
        instance = self.instance
        for makers, readers in self._together():
            size = {task: min(read_bytes(instance, t, task) for t in readers) for task in makers}
            rising = sorted(size.values())
            yield Family(makers, _of_most([self._copy * bytes_ for bytes_ in rising[:-1]]))
            others = sum(rising[:-1])
            copied = [self._copy * others] * (len(readers) - 1)
            yield Family(readers, _of_most(copied, self._sent * others))
        alone = {*range(instance.tasks)}.difference(*(makers for makers, _ in self._together()))
        for task in sorted(alone):
            readers = tuple(sorted(instance.after[task]))
            rising = sorted(read_bytes(instance, t, task) for t in readers)
            if len(rising) > 1:
                copied = [self._copy * bytes_ for bytes_ in rising[:-1]]
                yield Family(readers, _of_most(copied, self._sent * rising[0]))

    def _together(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Tasks whose results the same tasks read, which read no others."""
        instance = self.instance
        readers: dict[frozenset[int], list[int]] = {}
        for task, makers in enumerate(instance.before):
            if len(makers) > 1:
                readers.setdefault(makers, []).append(task)
        for makers, tasks in readers.items():
            if all(instance.after[task] == {*tasks} for task in makers):
                yield tuple(sorted(makers)), tuple(tasks)

    def _shared(self, copied: Sequence[int]) -> tuple[int, ...]:
        """Charges of copies of one price, whatever rounds the tasks are divided among.

        Of k tasks in a round, n altogether, ``(k - 1) k / n`` copies: the sum over rounds is the mean of
        k - 1 over the tasks, so at most what the round with most of them needs.
        """
        tasks = len(copied) + 1
        if tasks <= FEW:
            return _of_most(copied)
        return tuple(sum(copied[: k - 1]) * k // tasks if k else 0 for k in range(tasks + 1))

    # -- as arrays -------------------------------------------------------------------------------------

    def inside(self, classes: Classes) -> Int64s:
        """(family, class, number) how many of so many tasks of a class belong to a family at least."""
        width = 1 + max(len(members) for members in classes)
        least = np.zeros((len(self.families), len(classes), width), dtype=np.int64)
        for f, family in enumerate(self.families):
            for c, members in enumerate(classes):
                others = sum(task not in family.tasks for task in members)
                least[f, c] = np.maximum(0, np.arange(width) - others)
        return least

    def charges(self) -> Int64s:
        """(family, number) parts of a cycle of so many tasks of a family in one round."""
        width = 1 + max((len(family.tasks) for family in self.families), default=0)
        charges = np.zeros((len(self.families), width), dtype=np.int64)
        for f, family in enumerate(self.families):
            charges[f, : len(family.units)] = [self.parts(units) for units in family.units]
        return charges

    def far(self, classes: Classes) -> Int64s:
        """Per class the parts of a cycle for what a task alone fetches or writes back, over one link.

        A result that others read may be written back by one of them.
        """
        instance = self.instance
        moved = [
            sum(instance.size[b] for b in instance.reads[task] if self._own(b))
            + instance.size[task] * (instance.outputs[task] and not instance.after[task])
            for task in range(instance.tasks)
        ]
        least = [min(moved[task] for task in members) for members in classes]
        return np.array([self.parts(bytes_ * self.units.hop) for bytes_ in least], dtype=np.int64)

    def ways(self) -> Int64s:
        """Links between each engine and the nearest port, in rising order."""
        net, ports = self.instance.net, self.instance.ports
        ways = [min(net.distance(port, e) for port in ports) for e in range(self.instance.engines)]
        return np.array(sorted(ways), dtype=np.int64)

    def _own(self, block: int) -> bool:
        """Whether a block comes from DRAM for one task alone."""
        return self.instance.parent[block] < 0 and len(self.instance.readers[block]) == 1


def free_of_charge(instance: RoundInstance) -> RoundCharges:
    """Nothing costs anything."""
    return RoundCharges(instance, EnergyUnits(1, 0, 0, 0, 0, 0, 0, whole=True), 1)


def _of_most(copied: Sequence[int], first: int = 0) -> tuple[int, ...]:
    """Charges of rounds with more than half of some tasks, of which there is one at most.

    Parameters
    ----------
    copied : what each further engine costs, in rising order; one less than there are tasks
    first : what is added where there is one
    """
    tasks = len(copied) + 1
    return tuple(sum(copied[: k - 1]) + first if k > 1 and 2 * k > tasks else 0 for k in range(tasks + 1))
