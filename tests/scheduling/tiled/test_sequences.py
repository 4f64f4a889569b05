"""Sequences of rounds: the search against plain recursion, its classes, and what it proves."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest
from studies.tiled_graphs import machine_of, unequal_layers
from studies.tiled_proofs import proven
from tiled_energies import small_instance

from tilewright.solvers.scheduling.tiled.exact.counts import Counts, alike, twins
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.sequences import searched

MANY = 10**7
"""Cycles beyond every plan of these tests."""


def plain(instance: RoundInstance, *, whole: bool) -> int:
    """The least time of all sequences of rounds by recursion: no order of search, no dominance, no bounds.

    DRAM moves whatever is there to be moved, fetches first; with ``whole``, every block in one round.
    """
    tasks = range(instance.tasks)
    fetch = {
        b: instance.duration(instance.size[b], instance.dram_rate)
        for b in instance.readers
        if instance.parent[b] < 0
    }
    leaving = [
        instance.duration(instance.size[t], instance.dram_rate) if instance.outputs[t] else 0 for t in tasks
    ]
    reads = [{b for b in instance.reads[t] if b in fetch} for t in tasks]
    fluid = 0 if whole else sum(fetch.values())

    @cache
    def rest(done: frozenset[int], held: frozenset[int], moved: int) -> int:
        best = MANY * instance.unit
        ready = [t for t in tasks if t not in done and instance.before[t] <= done]
        for many in range(1, min(instance.engines, len(ready)) + 1):
            for run in combinations(ready, many):
                for new in sets(frozenset(fetch) - held if whole else frozenset()):
                    best = min(best, one_round(done, held, moved, frozenset(run), new))
        return best

    def one_round(
        done: frozenset[int], held: frozenset[int], moved: int, run: frozenset[int], new: frozenset[int]
    ) -> int:
        after = done | run
        used = set().union(*(reads[t] for t in after))
        counted = sum(fetch[b] for b in new)
        if whole:
            if not used <= held | new:
                return MANY * instance.unit
            waited, late = sum(fetch[b] for b in new & used), 0
            waiting = [t for t in run if reads[t] & new]
            longest = max((instance.cycles[t] for t in waiting), default=0)
        else:
            waited = late = max(0, sum(fetch[b] for b in used) - min(moved, fluid))
            longest = (max if not done else min)(
                (instance.cycles[t] for t in run if reads[t]), default=-(10**9)
            )
        length = max(max(instance.cycles[t] for t in run) * instance.unit, counted + late)
        if waited:
            length = max(length, waited + longest * instance.unit)
        there = fluid + sum(leaving[t] for t in done)
        moved = min(moved + length - counted, there)
        if len(after) == instance.tasks:
            return length + max(sum(leaving[t] for t in run), fluid + sum(leaving) - moved)
        return length + rest(after, held | new, moved)

    return -(-rest(frozenset(), frozenset(), 0) // instance.unit)


def sets(blocks: frozenset[int]) -> list[frozenset[int]]:
    """All sets of some blocks."""
    return [
        frozenset(combination)
        for many in range(len(blocks) + 1)
        for combination in combinations(sorted(blocks), many)
    ]


def optimum(instance: RoundInstance, ways: int, *, together: bool) -> int:
    """What the search proves."""
    counts = Counts(instance, (alike if together else twins)(instance), ways)
    search = searched(counts, MANY, lambda: False, lambda _: None)
    assert search.ended
    assert search.rounds is not None
    assert sum(map(sum, search.rounds)) == instance.tasks
    return search.bound


@pytest.mark.parametrize("seed", range(6))
def test_the_search_loses_nothing(seed: int) -> None:
    """With a fluid DRAM and with whole blocks it finds what recursion over all sequences finds; classes of
    tasks that look alike never give more."""
    instance = small_instance(seed)
    fluid = plain(instance, whole=False)
    assert optimum(instance, 1, together=False) == fluid
    assert optimum(instance, 1, together=True) <= fluid
    if sum(instance.parent[b] < 0 for b in instance.readers) <= 4:
        assert optimum(instance, 1 << 20, together=False) == plain(instance, whole=True)


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_unequal_atoms_are_proven(seed: int) -> None:
    """20 atoms of unequal costs: the best sequence of rounds meets a plan."""
    assert proven(unequal_layers(20, seed, machine_of("atomic-2x2", free=True)), 60, threads=1).proven


def test_a_bound_is_one_wherever_the_search_stops() -> None:
    """Out of memory, the bound is below the optimum; below a ceiling it says that nothing is left."""
    counts = Counts(small_instance(3), twins(small_instance(3)))
    best = searched(counts, MANY, lambda: False, lambda _: None).bound
    for labels in (1, 2, 4, 8, 16):
        assert searched(counts, MANY, lambda: False, lambda _: None, labels).bound <= best
    ended = searched(counts, best - 1, lambda: False, lambda _: None)
    assert ended.ended
    assert ended.rounds is None
    assert ended.bound == best
