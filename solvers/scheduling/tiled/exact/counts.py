"""Tasks in classes of which only the number that has run is known: what a number of them needs at least.

Any partition of the tasks gives a relaxation.  With one task per class, or with interchangeable ones
together (`twins`), what has run is known exactly; `alike` puts tasks together that look the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance

Classes = tuple[tuple[int, ...], ...]

LARGEST = 12
"""Most tasks in a class, since all its subsets are enumerated."""


def twins(instance: RoundInstance) -> Classes:
    """Tasks that can change places in every plan: same readers and sources, same bytes, own data alike."""
    by_kind: dict[object, list[int]] = {}
    for task in range(instance.tasks):
        own, shared = [], []
        for block in _fetched(instance, task):
            if instance.readers[block] == (task,):
                own.append(instance.size[block])
            else:
                shared.append(block)
        key = (
            instance.cycles[task],
            instance.outputs[task],
            instance.size[task],
            tuple((p, read_bytes(instance, task, p)) for p in sorted(instance.before[task])),
            tuple((s, read_bytes(instance, s, task)) for s in sorted(instance.after[task])),
            tuple(sorted(own)),
            tuple(shared),
        )
        by_kind.setdefault(key, []).append(task)
    return _chunks(by_kind.values())


def read_bytes(instance: RoundInstance, task: int, producer: int) -> int:
    """Bytes of a result that a task needs, at least: the parts that it reads, or all of it."""
    parts = sum(instance.size[b] for b in instance.reads[task] if instance.parent[b] == producer)
    return min(parts, instance.size[producer])


def alike(instance: RoundInstance) -> Classes:
    """Tasks of the same colour, refined by the colours of what they read and what reads them."""
    colour: list[object] = [
        (instance.cycles[t], instance.outputs[t], instance.size[t]) for t in range(instance.tasks)
    ]
    number = _numbered(colour)
    while True:
        blocks = {
            block: (instance.size[block], tuple(sorted(number[t] for t in readers)))
            for block, readers in instance.readers.items()
        }
        colour = [
            (
                number[t],
                tuple(sorted(number[p] for p in instance.before[t])),
                tuple(sorted(number[s] for s in instance.after[t])),
                tuple(sorted(blocks[b] for b in _fetched(instance, t))),
            )
            for t in range(instance.tasks)
        ]
        refined = _numbered(colour)
        if max(refined) == max(number):
            break
        number = refined
    by_number: dict[int, list[int]] = {}
    for task, kind in enumerate(number):
        by_number.setdefault(kind, []).append(task)
    return _chunks(by_number.values())


def _numbered(colours: list[object]) -> list[int]:
    numbers: dict[object, int] = {}
    return [numbers.setdefault(colour, len(numbers)) for colour in colours]


def _chunks(groups: Iterable[Sequence[int]]) -> Classes:
    chunks: list[tuple[int, ...]] = []
    for group in groups:
        chunks += [tuple(group[i : i + LARGEST]) for i in range(0, len(group), LARGEST)]
    return tuple(chunks)


def _fetched(instance: RoundInstance, task: int) -> list[int]:
    return [block for block in instance.reads[task] if instance.parent[block] < 0]


@dataclass(frozen=True, slots=True)
class Group:
    """Blocks of one size that tasks of the same classes read.

    Parameters
    ----------
    size : bytes of one
    number : of blocks
    least : per class, and number of its tasks, the blocks that they read at least
    """

    size: int
    number: int
    least: dict[int, list[int]]


@dataclass(frozen=True, eq=False)
class Counts:
    """What classes of tasks need and take; times in parts of a cycle, transfers in DRAM's time.

    Parameters
    ----------
    instance : the tasks of a round
    given : classes of tasks, a partition
    ways : in which the blocks that are counted individually may have been fetched, at most
    """

    instance: RoundInstance
    given: Classes
    ways: int = 40

    @cached_property
    def classes(self) -> Classes:
        """Those with the longest tasks first."""
        return tuple(sorted(self.given, key=lambda members: -min(self.instance.cycles[t] for t in members)))

    @cached_property
    def exact(self) -> bool:
        """Whether all classes are of tasks that can change places."""
        kinds = {task: i for i, members in enumerate(twins(self.instance)) for task in members}
        return all(len({kinds[t] for t in members}) == 1 for members in self.classes)

    @cached_property
    def cycles(self) -> Int64s:
        unit = self.instance.unit
        return np.array([unit * min(self.instance.cycles[t] for t in members) for members in self.classes])

    @cached_property
    def chain(self) -> Int64s:
        """Parts of a cycle from the start of the last remaining task of a class to the end of the plan."""
        instance = self.instance
        after = [0] * instance.tasks
        for t in reversed(range(instance.tasks)):
            own = max(self.leaving(t), self.passing(instance.size[t] * instance.outputs[t]))
            after[t] = instance.unit * instance.cycles[t] + max([own, *(after[s] for s in instance.after[t])])
        return np.array([min(after[t] for t in members) for members in self.classes])

    def leaving(self, task: int) -> int:
        """DRAM's time for a task's result, 0 where it does not leave."""
        instance = self.instance
        return instance.duration(instance.size[task], instance.dram_rate) if instance.outputs[task] else 0

    @cached_property
    def needs(self) -> Int64s:
        """Rows (class, class before, tasks of the former, tasks of the latter that they need at least)."""
        rows = []
        place = {t: (c, i) for c, members in enumerate(self.classes) for i, t in enumerate(members)}
        for c, members in enumerate(self.classes):
            masks: dict[int, list[int]] = {}
            for i, t in enumerate(members):
                for p in self.instance.before[t]:
                    before, bit = place[p]
                    masks.setdefault(before, [0] * len(members))[i] |= 1 << bit
            for before, mask in masks.items():
                rows += [(c, before, k, n) for k, n in enumerate(_least_unions(mask)) if k]
        return np.array(rows, dtype=np.int64).reshape(-1, 4)

    def passing(self, size: int) -> int:
        """The time of so many bytes through the ports between DRAM and an engine."""
        rate = self.instance.passing_rate
        return 0 if rate is None else self.instance.duration(size, rate)

    @cached_property
    def reading(self) -> Int64s:
        """Per class the time of all that a task fetches through its engine's port."""
        instance, rate = self.instance, self.instance.port_rate
        if rate is None:
            return np.zeros(len(self.classes), dtype=np.int64)
        sizes = [
            [sum(instance.size[b] for b in _fetched(instance, t)) for t in members]
            for members in self.classes
        ]
        return np.array([instance.duration(min(members), rate) for members in sizes], dtype=np.int64)

    @cached_property
    def results(self) -> Int64s:
        """Per class and class before the time of a result, or what is read of it, through an engine's port.

        Of classes that determine what has run (`twins`); 1 part of a cycle at least, so that hops count.
        """
        instance, rate = self.instance, self.instance.port_rate
        durations = np.zeros((len(self.classes), len(self.classes)), dtype=np.int64)
        for c, members in enumerate(self.classes):
            for p, before in enumerate(self.classes):
                if before[0] in instance.before[members[0]]:
                    size = read_bytes(instance, members[0], before[0])
                    durations[c, p] = 1 if rate is None else max(1, instance.duration(size, rate))
        return durations

    @cached_property
    def groups(self) -> list[Group]:
        """Blocks from DRAM, those alike together, the largest first."""
        place = {t: (c, i) for c, members in enumerate(self.classes) for i, t in enumerate(members)}
        by_size: dict[object, list[int]] = {}
        for block, readers in self.instance.readers.items():
            if self.instance.parent[block] < 0:
                kind = tuple(sorted(place[t][0] for t in readers))
                by_size.setdefault((self.instance.size[block], kind), []).append(block)
        groups = []
        for blocks in by_size.values():
            masks: dict[int, list[int]] = {}
            for bit, block in enumerate(blocks):
                for t in self.instance.readers[block]:
                    c, i = place[t]
                    masks.setdefault(c, [0] * len(self.classes[c]))[i] |= 1 << bit
            least = {c: _least_unions(mask) for c, mask in masks.items()}
            groups.append(Group(self.instance.size[blocks[0]], len(blocks), least))
        return sorted(groups, key=lambda group: -group.size)


def _least_unions(masks: list[int]) -> list[int]:
    """Per number of sets the least number of elements in the union of so many of them."""
    if all(mask == masks[0] for mask in masks):
        return [0] + [masks[0].bit_count()] * len(masks)
    if all(a & b == 0 for a, b in combinations(masks, 2)):
        sizes = sorted(mask.bit_count() for mask in masks)
        return [sum(sizes[:k]) for k in range(len(masks) + 1)]
    unions = []
    for k in range(len(masks) + 1):
        best = None
        for chosen in combinations(masks, k):
            union = 0
            for mask in chosen:
                union |= mask
            best = union.bit_count() if best is None else min(best, union.bit_count())
        unions.append(best or 0)
    return unions
