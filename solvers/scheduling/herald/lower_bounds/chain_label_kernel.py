"""Labels of chains that take turns on engines, in machine code: each stands for schedules of first tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Bools, Floats, Int64s
from tilewright.foundation.compiled import compiled

_NEVER = 1e300  # cycles


class ChainTasks(NamedTuple):
    """Chains of tasks, one place after the other, each chain with a place behind its last task.

    Parameters
    ----------
    first : per chain, its first place
    equal : per chain, an equal one before it, -1 for none
    radix : per chain, what a place of it counts in the key of a label
    engine, cycles, energy : shape (places, options): the engine, -1 where there is no further option and
        behind a chain; cycles; and energy at its price
    longest, spent : per place, the least of cycles and energy, and of energy alone, up to the chain's end
    """

    first: Int64s
    equal: Int64s
    radix: Int64s
    engine: Int64s
    cycles: Floats
    energy: Floats
    longest: Floats
    spent: Floats


class ChainBounds(NamedTuple):
    """What schedules from a label on cost at least, one bound per row.

    Parameters
    ----------
    free, load : shape (rows, engines): what counts a cycle before an engine is free, and one of its load
    others : per row, the least that all tasks beside the chains cost
    weights : per row, which weights of engines it has
    left : shape (weights, places): the least that what is left of a chain costs
    frugal : what the tasks beside the chains cost in energy alone
    """

    free: Floats
    load: Floats
    others: Floats
    weights: Int64s
    left: Floats
    frugal: float


class Labels(NamedTuple):
    """Labels, and how each came about.

    Parameters
    ----------
    place : shape (labels, chains)
    row : shape (labels, chains + 2 engines + 1): when chains are ready and engines free, energy at its price,
        and the loads of engines
    source : the label before it
    entry : ``chain * options + option`` of the task by which it came about
    """

    place: Int64s
    row: Floats
    source: Int64s
    entry: Int64s


@compiled
def moved(
    tasks: ChainTasks, bounds: ChainBounds, rows: int, before: Labels, limit: float, after: Labels
) -> int:
    """All labels with one task more that may cost no more than the limit; how many, -1 if there is no room.

    Tasks are placed in the order of their starts, so whatever follows starts no earlier.  Of equal chains the
    farther one, or the one that is ready first, comes first.

    Parameters
    ----------
    tasks : of the chains
    bounds : of what labels cost
    rows : how many of these are looked at
    before : labels
    limit : cycles, with energy at its price
    after : filled in
    """
    chains, engines, options = before.place.shape[1], bounds.free.shape[1], tasks.engine.shape[1]
    count = 0
    for label in range(before.place.shape[0]):
        for chain in range(chains):
            place = before.place[label, chain]
            equal = tasks.equal[chain]
            if equal >= 0 and place - tasks.first[chain] == before.place[label, equal] - tasks.first[equal]:
                continue
            for option in range(options):
                if tasks.engine[place, option] < 0:
                    break
                if count == after.place.shape[0]:
                    return -1
                for other in range(chains):
                    after.place[count, other] = before.place[label, other]
                for column in range(before.row.shape[1]):
                    after.row[count, column] = before.row[label, column]
                place_task(tasks, engines, after, count, chain, option)
                after.source[count] = label
                after.entry[count] = chain * options + option
                count += is_within(tasks, bounds, rows, after, count, limit)
    return count


@compiled
def place_task(tasks: ChainTasks, engines: int, labels: Labels, label: int, chain: int, option: int) -> None:
    """Change a label: the next task of a chain begins as soon as its engine is free.

    Parameters
    ----------
    tasks : of the chains
    engines : how many there are
    labels, label : which one
    chain, option : of the task
    """
    chains = labels.place.shape[1]
    energy = chains + engines
    place, row = labels.place[label, chain], labels.row[label]
    engine = tasks.engine[place, option]
    start = max(row[chain], row[chains + engine])
    end = start + tasks.cycles[place, option]
    labels.place[label, chain] = place + 1
    row[energy] += tasks.energy[place, option]
    row[energy + 1 + engine] += tasks.cycles[place, option]
    for other in range(chains):
        row[other] = max(row[other], start)
    row[chain] = end
    row[chains + engine] = end
    ready = _NEVER
    for other in range(chains):
        if tasks.engine[labels.place[label, other], 0] >= 0:
            ready = min(ready, row[other])
    if ready < _NEVER:
        for other in range(engines):
            row[chains + other] = max(row[chains + other], ready)
    here, equal = chain, tasks.equal[chain]
    while equal >= 0 and row[equal] > row[here]:
        if labels.place[label, here] - tasks.first[here] != labels.place[label, equal] - tasks.first[equal]:
            break
        ready = row[equal]
        row[equal] = row[here]
        row[here] = ready
        here = equal
        equal = tasks.equal[here]


@compiled
def is_within(
    tasks: ChainTasks, bounds: ChainBounds, rows: int, labels: Labels, label: int, limit: float
) -> bool:
    """Whether a label may become a schedule that costs no more than the limit.

    Parameters
    ----------
    tasks : of the chains
    bounds : of what labels cost
    rows : how many of these are looked at
    labels, label : which one
    limit : cycles, with energy at its price
    """
    chains, engines = labels.place.shape[1], bounds.free.shape[1]
    place, row = labels.place[label], labels.row[label]
    energy = row[chains + engines]
    spent = energy + bounds.frugal
    for chain in range(chains):
        spent += tasks.spent[place[chain]]
    for chain in range(chains):
        if row[chain] + spent + tasks.longest[place[chain]] - tasks.spent[place[chain]] > limit:
            return False
    for number in range(rows):
        cost = energy + bounds.others[number]
        for chain in range(chains):
            cost += bounds.left[bounds.weights[number], place[chain]]
        for engine in range(engines):
            cost += bounds.free[number, engine] * row[chains + engine]
            cost += bounds.load[number, engine] * row[chains + engines + 1 + engine]
        if cost > limit:
            return False
    return True


@compiled
def all_within(tasks: ChainTasks, bounds: ChainBounds, labels: Labels, limit: float, within: Bools) -> None:
    """Which labels may become schedules that cost no more than the limit, by all bounds.

    Parameters
    ----------
    tasks : of the chains
    bounds : of what labels cost
    labels : that are asked about
    limit : cycles, with energy at its price
    within : filled in
    """
    for label in range(labels.entry.shape[0]):
        within[label] = is_within(tasks, bounds, bounds.others.shape[0], labels, label, limit)


@compiled
def keep_undominated(rows: Floats, key: Int64s, order: Int64s, columns: int, kept: Bools) -> None:
    """Mark the rows of which no other one with the same key is at most as large in every column.

    Parameters
    ----------
    rows : shape (rows, columns or more)
    key : per row
    order : of the rows, by key, then by the sum of the columns
    columns : that are compared
    kept : filled in; of equal rows the first is kept
    """
    alone = np.zeros(order.shape[0], np.int64)
    count = 0
    for at in range(order.shape[0]):
        row = order[at]
        if at == 0 or key[row] != key[order[at - 1]]:
            count = 0
        dominated = False
        for place in range(count):
            other = alone[place]
            smaller = True
            for column in range(columns):
                if rows[other, column] > rows[row, column]:
                    smaller = False
                    break
            if smaller:
                dominated = True
                break
        kept[row] = not dominated
        if not dominated:
            alone[count] = row
            count += 1
