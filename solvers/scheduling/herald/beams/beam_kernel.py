"""Beam search over what free engines take next, over flat arrays, compiled once per installation.

A state is a schedule up to its clock, the first cycle at which an engine is free: that engine takes the next
task of a chain that is ready, or waits until something ends.  States lie in pools by their clocks, so that
those of a pool have the same time behind them; a pool keeps the best of each set of placed tasks, and the
best of all.  The value of a state is the least that any schedule from it on costs, by several prices of the
engines, and in addition a guide: a multiple of the squared lengths of what is left of each chain.
"""

from __future__ import annotations

from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.scheduling.herald.beams.beam_pool_kernel import (
    FREE,
    NODE,
    NODES,
    PLACED,
    POOL,
    SOURCE,
    SPARES,
    Aim,
    Beam,
    Begin,
    Chains,
    Worth,
    enter,
    note,
    slot_for,
)
from tilewright.solvers.scheduling.herald.walks.list_kernel import TaskGraph

_NEVER = 2**62


@compiled
def begin(chains: Chains, worth: Worth, aim: Aim, beam: Beam, behind: Begin) -> None:
    """Only the state in which no task of the chains is placed.

    Parameters
    ----------
    chains, worth : tasks and what they cost
    aim : what is looked for
    beam : anew
    behind : what is placed already
    """
    states, runs, prices = beam.state.shape[0], chains.first.shape[0] - 1, worth.price.shape[0]
    engines, fields = worth.price.shape[1], beam.state.shape[1]
    beam.held[:] = 0
    beam.table[:] = 0
    beam.counts[:] = 0
    beam.best[0] = aim.cost
    beam.best[1] = -1.0
    for slot in range(states):
        beam.pool[slot] = -1
        beam.spare[slot] = slot
    beam.counts[SPARES] = states
    beam.counts[NODES] = 1
    slot = slot_for(beam, 0, 0, 0.0)
    beam.state[slot, NODE] = beam.state[slot, PLACED] = 0
    beam.value[slot, prices] = behind.spent
    beam.value[slot, prices + 1] = beam.value[slot, prices + 2] = 0.0
    for here in range(engines):
        beam.state[slot, FREE + here] = behind.free[here]
        beam.state[slot, FREE + engines + here] = behind.last[here]
    key = 0
    for run in range(runs):
        beam.state[slot, fields - 2 * runs + run] = behind.ready[run]
        beam.state[slot, fields - runs + run] = chains.first[run]
        key += chains.mark[chains.first[run]]
        part = chains.left[chains.first[run]] / aim.horizon
        beam.value[slot, prices + 1] += part * part
    for number in range(prices):
        beam.value[slot, number] = behind.spent
        for here in range(engines):
            beam.value[slot, number] += worth.price[number, here] * behind.free[here]
        for place in range(chains.task.shape[0]):
            if chains.task[place] >= 0:
                beam.value[slot, number] += worth.least[number, chains.task[place]]
    beam.key[slot] = key
    enter(beam, 0, slot)


@compiled
def _take(
    graph: TaskGraph,
    chains: Chains,
    worth: Worth,
    aim: Aim,
    beam: Beam,
    slot: int,
    here: int,
    run: int,
    option: int,
    until: int,
) -> None:
    """Change a state: an engine takes the next task of a chain, or waits.

    Parameters
    ----------
    graph, chains, worth : tasks and what they cost
    aim : what is looked for
    beam : in which the state is
    slot : the state; its value is not changed
    here : the engine
    run : the chain, -1 for none
    option : of its task
    until : the cycle at which the engine is free again
    """
    engines, runs, prices = worth.price.shape[1], chains.first.shape[0] - 1, worth.price.shape[0]
    fields, free = beam.state.shape[1], beam.state[slot, FREE + here]
    beam.state[slot, FREE + here] = until
    for number in range(prices):
        beam.value[slot, number] += worth.price[number, here] * (until - free)
    if run < 0:
        return
    at = beam.state[slot, fields - runs + run]
    task = chains.task[at]
    entries = worth.spent.shape[0] * worth.spent.shape[1]
    entry = task * worth.spent.shape[1] + option
    beam.state[slot, NODE] = note(beam, beam.state[slot, NODE], entry, entries)
    beam.state[slot, PLACED] += 1
    beam.state[slot, FREE + engines + here] = until - graph.cycles[task, option]
    beam.state[slot, fields - 2 * runs + run] = until
    beam.state[slot, fields - runs + run] = at + 1
    spent = worth.spent[task, option]
    for number in range(prices):
        beam.value[slot, number] += spent - worth.least[number, task]
    beam.value[slot, prices] += spent
    before, after = chains.left[at] / aim.horizon, chains.left[at + 1] / aim.horizon
    beam.value[slot, prices + 1] += after * after - before * before
    beam.key[slot] += chains.mark[at + 1] - chains.mark[at]


@compiled
def _add(
    graph: TaskGraph,
    chains: Chains,
    worth: Worth,
    aim: Aim,
    beam: Beam,
    slot: int,
    here: int,
    run: int,
    option: int,
    until: int,
) -> None:
    """The state in which an engine takes the next task of a chain, or waits.

    Parameters
    ----------
    graph, chains, worth : tasks and what they cost
    aim : what is looked for
    beam : in which the state is put
    slot : the state before
    here : the engine
    run : the chain, -1 for none
    option : of its task
    until : the cycle at which the engine is free again
    """
    engines, runs, prices = worth.price.shape[1], chains.first.shape[0] - 1, worth.price.shape[0]
    fields, pools = beam.state.shape[1], beam.held.shape[0] - 2
    free = beam.state[slot, FREE + here]
    key, spent, bulk = beam.key[slot], beam.value[slot, prices], beam.value[slot, prices + 1]
    task, at, entry = -1, 0, 0
    if run >= 0:
        at = beam.state[slot, fields - runs + run]
        task = chains.task[at]
        entry = task * worth.spent.shape[1] + option
        before, after = chains.left[at] / aim.horizon, chains.left[at + 1] / aim.horizon
        bulk += after * after - before * before
        spent += worth.spent[task, option]
        key += chains.mark[at + 1] - chains.mark[at]
    worst = 0.0
    for number in range(prices):
        cost = beam.value[slot, number] + worth.price[number, here] * (until - free)
        if run >= 0:
            cost += worth.spent[task, option] - worth.least[number, task]
        worst = max(worst, cost)
    if worst >= aim.cost:
        return
    if run >= 0 and beam.state[slot, PLACED] + 1 == chains.task.shape[0] - runs:
        length = until
        for other in range(engines):
            length = max(length, beam.state[slot, FREE + other])
        if length + spent < beam.best[0]:
            beam.best[0] = length + spent
            beam.best[1] = note(
                beam, beam.state[slot, NODE], entry, worth.spent.shape[0] * worth.spent.shape[1]
            )
        return
    clock = until
    for other in range(engines):
        if other != here:
            clock = min(clock, beam.state[slot, FREE + other])
    pool = clock // (aim.horizon // pools + 1)
    if pool <= beam.counts[POOL]:
        pool = pools + (beam.counts[SOURCE] == pools)
    value = worst + aim.guide * bulk
    if aim.path > 0:
        latest = clock
        for other in range(runs):
            rest = beam.state[slot, fields - runs + other] + (other == run)
            ready = until if other == run else beam.state[slot, fields - 2 * runs + other]
            if chains.task[rest] >= 0:
                latest = max(latest, max(ready, clock) + chains.left[rest])
        value += aim.path * latest
    new = slot_for(beam, pool, key, value)
    if new < 0:
        return
    for field in range(fields):
        beam.state[new, field] = beam.state[slot, field]
    for number in range(prices + 2):
        beam.value[new, number] = beam.value[slot, number]
    beam.key[new] = beam.key[slot]
    _take(graph, chains, worth, aim, beam, new, here, run, option, until)
    beam.value[new, prices + 2] = value
    enter(beam, pool, new)


@compiled
def _expand(graph: TaskGraph, chains: Chains, worth: Worth, aim: Aim, beam: Beam, slot: int) -> None:
    """All that the engines that are free first may do.

    Parameters
    ----------
    graph, chains, worth : tasks and what they cost
    aim : what is looked for
    beam : in which the states are put
    slot : the state before
    """
    engines, runs, fields = worth.price.shape[1], chains.first.shape[0] - 1, beam.state.shape[1]
    clock, soon, last = beam.state[slot, FREE], _NEVER, _NEVER
    for here in range(1, engines):
        clock = min(clock, beam.state[slot, FREE + here])
    for run in range(runs):
        at = beam.state[slot, fields - runs + run]
        ready = beam.state[slot, fields - 2 * runs + run]
        if max(clock, ready) + chains.left[at] >= aim.horizon:
            return
        if chains.task[at] >= 0 and ready > clock:
            soon = min(soon, ready)
    first = -1
    for here in range(engines):
        if beam.state[slot, FREE + here] > clock:
            last = min(last, beam.state[slot, FREE + here])
            continue
        if first < 0:
            first = here
        for run in range(runs):
            at = beam.state[slot, fields - runs + run]
            task = chains.task[at]
            if task < 0 or beam.state[slot, fields - 2 * runs + run] > clock:
                continue
            twin = chains.twin[run]
            if twin >= 0 and beam.state[slot, fields - runs + twin] == chains.first[twin]:
                continue
            for option in range(chains.options[task]):
                if graph.engine[task, option] == here:
                    start = max(clock, beam.state[slot, FREE + engines + here] + graph.fetch[task, option])
                    end = start + graph.cycles[task, option]
                    if end + chains.left[at + 1] < aim.horizon:
                        _add(graph, chains, worth, aim, beam, slot, here, run, option, end)
    if soon == _NEVER:
        soon = last  # all that is left is ready; another engine may take it
    if soon < aim.horizon:
        _add(graph, chains, worth, aim, beam, slot, first, -1, 0, soon)


@compiled
def advance(graph: TaskGraph, chains: Chains, worth: Worth, aim: Aim, beam: Beam, expansions: int) -> int:
    """Expand at least so many states, a pool in hand to its end; returns how many, 0 once none is left.

    Parameters
    ----------
    graph, chains, worth : tasks and what they cost
    aim : what is looked for
    beam : changed
    expansions : states to be expanded
    """
    pools, counts, work = beam.held.shape[0] - 2, beam.counts, beam.work
    children = 1 + chains.first.shape[0] * graph.engine.shape[1]
    expanded = 0
    while counts[POOL] < pools and expanded < expansions:
        source = counts[SOURCE]
        count = beam.held[source]
        if count == 0:
            counts[POOL] += 1
            counts[SOURCE] = counts[POOL]
            continue
        for at in range(count):
            work[at] = beam.heap[source, at]
            beam.pool[work[at]] = -1
        beam.held[source] = 0
        noted = counts[NODES] + count * children <= beam.node.shape[0]
        for at in range(count):
            if noted:
                _expand(graph, chains, worth, aim, beam, work[at])
            beam.spare[counts[SPARES]] = work[at]
            counts[SPARES] += 1
        expanded += count
        counts[SOURCE] = pools + (source == pools)
    return expanded


@compiled
def taken(beam: Beam, entries: int, row: Int64s) -> int:
    """The entries of the best complete schedule, ``task * options + option``, the last one first; how many.

    Parameters
    ----------
    beam : that has been searched
    entries : tasks times options
    row : filled in
    """
    node, count = int(beam.best[1]), 0
    while node > 0:
        row[count] = beam.node[node] % entries
        node = beam.node[node] // entries
        count += 1
    return count
