"""Layers on regions of engines: CNN-partition's groups and inter-layer pipelines.

Regions are runs of engines along the zig-zag, so neighbours lie next to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.costs import least_cycles
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.formulation.scheduling.tiled.trips import whole_shapes
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.foundation.compiled import compiled
from tilewright.heuristics.scheduling.tiled.coarsening import workable
from tilewright.heuristics.scheduling.tiled.lists import zigzag
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes

Placed = tuple[AtomicDag, Int32s, Int32s]
"""Atoms, and an engine and a step for each."""


def layer_work(problem: TiledProblem) -> list[int]:
    """Least cycles of every layer for one sample on one engine."""
    engine = problem.machine.engine
    return [
        max(1, int(least_cycles(engine, whole_shapes(unit.layer.operator, 1))[0])) for unit in problem.units
    ]


def regions(engines: int, work: Sequence[int]) -> list[int]:
    """Engines for each of several parts in proportion to their work, at least one each.

    Raises
    ------
    ValueError : for more parts than engines
    """
    if len(work) > engines:
        raise ValueError(f"expected at most {engines} parts, got {len(work)}")
    counts = [1] * len(work)
    for _ in range(engines - len(work)):
        counts[max(range(len(work)), key=lambda i: work[i] / counts[i])] += 1
    return counts


def spread_layers(work: Sequence[int], groups: int) -> list[int]:
    """A group for each layer: the ones of most work first, each to the group with the least."""
    load = [0] * groups
    home = [0] * len(work)
    for i in sorted(range(len(work)), key=lambda unit: -work[unit]):
        home[i] = load.index(min(load))
        load[home[i]] += work[i]
    return home


def runs_of_layers(work: Sequence[int], groups: int) -> list[int]:
    """A group for each layer: consecutive runs, the largest with as little work as possible."""
    low, high = max(work), sum(work)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _runs(work, middle)[-1] < groups else (middle + 1, high)
    return _runs(work, low)


def _runs(work: Sequence[int], most: int) -> list[int]:
    """As few runs as take at most so much work each; the number of every layer's run."""
    home, load, run = [], 0, 0
    for amount in work:
        if load and load + amount > most:
            run, load = run + 1, 0
        load += amount
        home.append(run)
    return home


def cnn_partition(
    problem: TiledProblem,
    work: Sequence[int],
    groups: int,
    *,
    room: float,
    home: Sequence[int],
    limits: Limits | None = None,
) -> Placed:
    """Layers on groups of engines, samples pipelined layer by layer (section II-B, figure 3a).

    Groups are equally large.  In each slot of time a group does its layers for one sample each; a layer of a
    later slot works on an earlier sample, so that nothing within a slot depends on another group.

    Parameters
    ----------
    home : a group for each layer
    """
    machine = problem.machine
    slot = [0] * len(work)
    for i, unit in enumerate(problem.units):
        for read in unit.reads:
            if read.producer is not None:
                slot[i] = max(slot[i], slot[read.producer] + (home[read.producer] != home[i]))
    borders = [machine.engines * i // groups for i in range(groups + 1)]
    sizes = [borders[home[i] + 1] - borders[home[i]] for i in range(len(work))]
    shares = balanced_sizes(problem, room=room, engines=sizes, limits=limits)
    _, dag = workable(problem, shares, room=room, engines=sizes, limits=limits)
    jobs = sorted(
        (slot[i] + sample, i, sample) for i in range(len(work)) for sample in dag.tilings[i].samples[:-1]
    )
    along = zigzag(machine)
    engine, step = np.zeros(dag.tasks, dtype=np.int32), np.zeros(dag.tasks, dtype=np.int32)
    free = [0] * groups
    now = 0
    for k, (time, i, sample) in enumerate(jobs):
        if k and time != jobs[k - 1][0]:
            now = max(free)
            free = [now] * groups
        mine = along[borders[home[i]] : borders[home[i] + 1]]
        for tasks in _waves(dag, i, sample):
            place = np.arange(len(tasks))
            engine[tasks] = mine[place % len(mine)]
            step[tasks] = free[home[i]] + place // len(mine)
            free[home[i]] += -(-len(tasks) // len(mine))
    return dag, engine, step


def pipeline(
    problem: TiledProblem,
    work: Sequence[int],
    depth: int,
    *,
    room: float,
    fine: bool = True,
    limits: Limits | None = None,
) -> Placed:
    """Segments of neighbouring layers, each layer on a region as large as its work (section II-B, figure 3b).

    Rows of results come first in every layer, so that the next one begins when the rows that it needs are
    there: the delay of filling is a few atoms, which is what Tangram's alternating loop order is for.  A
    segment begins when the one before has ended: overlapping ones put atoms of more lengths into a step.

    Parameters
    ----------
    fine : cut rows finer than sharing a layer out asks for
    """
    machine, units = problem.machine, len(problem.units)
    segments = [range(i, min(units, i + depth)) for i in range(0, units, depth)]
    share = [0] * units
    begin = [0] * units
    for segment in segments:
        at = 0
        for i, count in zip(segment, regions(machine.engines, [work[i] for i in segment]), strict=True):
            begin[i], share[i], at = at, count, at + count
    sizes: Sequence[AtomSize] = balanced_sizes(problem, room=room, engines=share, limits=limits)
    if fine:
        sizes = _fine(problem, sizes, share)
    _, dag = workable(problem, sizes, room=room, engines=share, limits=limits)
    order = [
        _by_rows(dag, i, sample)
        for segment in segments
        for sample in range(problem.batch)
        for i in segment
        if sample in dag.tilings[i].samples
    ]
    starts, producers = dag.edges
    engine, step = _place_in_regions(
        np.concatenate(order),
        dag.unit,
        starts,
        producers,
        zigzag(machine),
        np.array(begin, dtype=np.int64),
        np.array(share, dtype=np.int64),
        np.arange(units) // depth,
    )
    return dag, engine, step


@compiled
def _place_in_regions(
    order: Int64s,
    unit: Int32s,
    starts: Int64s,
    producers: Int32s,
    along: Int32s,
    begin: Int64s,
    share: Int64s,
    segment: Int64s,
) -> Any:  # pragma: no cover
    """Task by task, the engine of its layer's region that is free first once its operands are there."""
    engine = np.zeros(len(unit), dtype=np.int32)
    step = np.zeros(len(unit), dtype=np.int32)
    free = np.zeros(len(along), dtype=np.int32)
    now, current = 0, 0
    for task in order:
        if segment[unit[task]] != current:
            now, current = free.max(), segment[unit[task]]
            free[:] = now
        ready = now
        for k in range(starts[task], starts[task + 1]):
            ready = max(ready, step[producers[k]] + 1)
        best, when = -1, 0
        for i in range(begin[unit[task]], begin[unit[task]] + share[unit[task]]):
            time = max(free[along[i]], ready)
            if best < 0 or time < when:
                best, when = along[i], time
        engine[task], step[task] = best, when
        free[best] = when + 1
    return engine, step


def _fine(problem: TiledProblem, sizes: Sequence[AtomSize], share: Sequence[int]) -> list[AtomSize]:
    """Sizes cut along the rows into at least twice as many rounds as fill a region, where rows allow it."""
    fine = []
    for size, count in zip(sizes, share, strict=True):
        rows = max(1, -(-size.rows // 2)) if count < problem.machine.engines else size.rows
        fine.append(AtomSize(rows, size.columns, size.inputs, size.outputs, size.samples))
    return fine


def _tasks(dag: AtomicDag, unit: int, sample: int) -> Int64s:
    """Atoms of a layer that begin with a sample."""
    begin, end = int(dag.base[unit]), int(dag.base[unit + 1])
    ranges = dag.tilings[unit].samples
    per_range = (end - begin) // (len(ranges) - 1)
    at = ranges.index(sample)
    return np.arange(begin + at * per_range, begin + (at + 1) * per_range)


def _waves(dag: AtomicDag, unit: int, sample: int) -> list[Int64s]:
    """Atoms of a layer and sample; first parts of sums come before second ones."""
    tasks, slots = _tasks(dag, unit, sample), int(dag.slots[unit])
    return [tasks[slot::slots] for slot in range(slots)]


def _by_rows(dag: AtomicDag, unit: int, sample: int) -> Int64s:
    """Atoms of a layer and sample, rows first, then columns, then parts of sums, then channels."""
    cuts, slots = dag.tilings[unit], int(dag.slots[unit])
    shape = (len(cuts.channels) - 1, len(cuts.rows) - 1, len(cuts.columns) - 1, slots)
    return _tasks(dag, unit, sample).reshape(shape).transpose(1, 2, 3, 0).ravel()
