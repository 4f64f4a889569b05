"""A relaxation of round plans as shortest path: sequences of rounds, DRAM as a fluid."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.solvers.scheduling.tiled.exact.charges import RoundCharges, free_of_charge
from tilewright.solvers.scheduling.tiled.exact.counts import Counts
from tilewright.solvers.scheduling.tiled.exact.label_kernel import BEST, BOUND, LABELS, Memory, memory_of
from tilewright.solvers.scheduling.tiled.exact.remainder_kernel import remainders_of, weigh
from tilewright.solvers.scheduling.tiled.exact.round_length_kernel import Tables
from tilewright.solvers.scheduling.tiled.exact.sequence_kernel import ENDED, RUNNING, advance

LINKED = 6
"""Most engines for which all placements of tasks next to results are enumerated."""

LARGEST_KEY = 1 << 62
"""Numbers below which all that may have run must be distinguished."""

SLICE = 0.1
"""Seconds between two looks at the limits, about; a label may take some thousandths of them."""

LABELS_AT_MOST = 1_000_000

MEMBERS_AT_MOST = 250_000
"""Members of the lattice of what has run, up to which the rounds to come of each are known."""


@dataclass(frozen=True, slots=True)
class RoundSequence:
    """What the search came to.

    Parameters
    ----------
    bound : lower bound on the cycles of all round plans; with charges, on parts of a cycle and charges
    ended : whether it is the relaxation's optimum, or no plan is below what was asked
    counts : the classes
    rounds : per round the number of tasks of each class, where an optimum was found
    labels : that were kept
    """

    bound: int
    ended: bool
    counts: Counts
    rounds: list[list[int]] | None
    labels: int


def tables_of(counts: Counts, ceiling: int, charges: RoundCharges, *, steady: bool) -> Tables:
    """Arrays for the kernel.

    Hops and results of the round before count for classes that determine what has run, on few engines.

    Parameters
    ----------
    ceiling : parts of a cycle that are of no interest
    charges, steady : as of `searched`
    """
    instance = counts.instance
    linked = steady and counts.exact and instance.networked and instance.engines <= LINKED
    classes, groups = counts.classes, counts.groups
    width = 1 + max(len(members) for members in classes)
    least = np.zeros((len(classes), len(classes), width), dtype=np.int64)
    for c, p, k, n in counts.needs:
        least[c, p, k] = n
    blocks = np.zeros((len(groups), len(classes), width), dtype=np.int64)
    moving, size = np.zeros((2, len(groups)), dtype=np.int64)
    for g, group in enumerate(groups):
        moving[g], size[g] = instance.duration(group.size, instance.dram_rate), group.number
        for c, reads in group.least.items():
            blocks[g, c, : len(reads)] = reads
    strides, stride = np.zeros(len(classes), dtype=np.int64), 1
    for c, members in enumerate(classes):
        strides[c] = stride
        stride *= len(members) + 1
    group_strides, ways = np.zeros(len(groups), dtype=np.int64), 1
    for g in range(len(groups)):
        many = int(size[g]) + 1
        if ways * many <= counts.ways and stride * many < LARGEST_KEY:
            group_strides[g] = stride
            stride *= many
            ways *= many
    far = charges.far(classes)
    sinks = [[counts.leaving(t) for t in members if not instance.after[t]] for members in classes]
    return Tables(
        number=np.array([len(members) for members in classes], dtype=np.int64),
        cycles=counts.cycles.astype(np.int64),
        chain=counts.chain.astype(np.int64),
        leaving_least=np.array([min(members) if members else -1 for members in sinks], dtype=np.int64),
        leaving_most=np.array(
            [max(counts.leaving(t) for t in members) for members in classes], dtype=np.int64
        ),
        strides=strides,
        reads=np.array(blocks.any(axis=(0, 2)), dtype=np.int64),
        least=least,
        blocks=blocks,
        time=moving,
        size=size,
        group_strides=group_strides,
        fluid=int((moving * size)[group_strides == 0].sum()),
        leaving=sum(counts.leaving(t) for t in range(instance.tasks)),
        passing=np.array([counts.passing(group.size) for group in groups], dtype=np.int64),
        results=counts.results if linked else np.zeros((len(classes), len(classes)), dtype=np.int64),
        reading=counts.reading if linked else np.zeros(len(classes), dtype=np.int64),
        leaving_passing=np.array(
            [
                min(counts.passing(instance.size[t] * instance.outputs[t]) for t in members)
                for members in classes
            ],
            dtype=np.int64,
        ),
        hop=instance.hop_cycles * instance.unit if linked else 0,
        beside=instance.beside_ports,
        ports=len(instance.ports),
        steady=int(steady),
        linked=int(linked),
        engines=instance.engines,
        ceiling=ceiling,
        inside=charges.inside(classes),
        charge=charges.charges(),
        far=far,
        by_far=np.argsort(-far, kind="stable").astype(np.int64),
        ways=charges.ways(),
    )


def searched(
    counts: Counts,
    most: int,
    over: Callable[[], bool],
    reported: Callable[[int], None],
    labels: int = LABELS_AT_MOST,
    *,
    steady: bool = True,
    charges: RoundCharges | None = None,
) -> RoundSequence:
    """Search until an optimum is proven, memory is full, or the time is over; at once where there are more
    states than numbers.

    Parameters
    ----------
    most : cycles of what is of interest; with charges, parts of a cycle
    reported : called with every better bound
    steady : whether every step before the last atom runs one
    charges : what rounds cost beside their lengths
    """
    if prod(len(members) + 1 for members in counts.classes) >= LARGEST_KEY:
        return RoundSequence(0, False, counts, None, 0)
    instance = counts.instance
    unit = instance.unit if charges is None else 1
    charges = charges or free_of_charge(instance)
    tables, memory = tables_of(counts, most * unit + 1, charges, steady=steady), memory_of(labels)
    start(tables, memory)
    rest = remainders_of(tables.number, min(labels, MEMBERS_AT_MOST))
    _in_slices(lambda steps: bool(weigh(tables, rest, steps)), over)
    status, bound = RUNNING, 0

    def advanced(pops: int) -> bool:
        nonlocal status, bound
        status = advance(tables, rest, memory, pops)
        proven = -(-int(memory.state[BOUND]) // unit)
        if proven > bound:
            bound = proven
            reported(bound)
        return bool(status != RUNNING)

    _in_slices(advanced, over)
    rounds = path(tables, memory) if status == ENDED and memory.state[BEST] else None
    return RoundSequence(bound, bool(status == ENDED), counts, rounds, int(memory.state[LABELS]))


def _in_slices(work: Callable[[int], bool], over: Callable[[], bool]) -> None:
    """Do a work in as many steps at a time as `SLICE` allows, until it is done or the time is over."""
    done, steps = False, 1
    while not done and not over():
        begun = time.monotonic()
        done = work(steps)
        steps = 2 * steps if time.monotonic() - begun < SLICE else max(1, steps // 2)


def start(tables: Tables, memory: Memory) -> None:
    """The label of nothing run."""
    memory.state[LABELS] = 1
    memory.alive[0] = True
    memory.parent[0] = memory.following[0] = -1
    memory.table[0] = 0
    memory.heap[0] = 0
    memory.state[1] = 1


def path(tables: Tables, memory: Memory) -> list[list[int]]:
    """Tasks of each class in each round, to the best label."""
    label, steps = int(memory.state[BEST]), []
    while memory.parent[label] >= 0:
        steps.append(
            _ran(tables, int(memory.key[label])) - _ran(tables, int(memory.key[memory.parent[label]]))
        )
        label = int(memory.parent[label])
    return [step.tolist() for step in steps[::-1]]


def _ran(tables: Tables, key: int) -> Int64s:
    return key // tables.strides % (tables.number + 1)
