"""An event simulation of plans that shares no rule with the evaluator.

There are no steps here: every engine runs its tasks one after the other, each as soon as its data is there.
A movement begins when its source has the data and its target has finished the tasks before the movement's
first step (its buffer then has room), and flows through buckets of time: in each bucket it takes what is left
on the scarcest link of its tree, so that later movements fill gaps that earlier ones leave.  What has flowed
arrives after the cycles that its way takes from router to router.  Plans are taken as legal.

A movement may use what is left of a bucket whenever that was, so buckets must be short against atoms: with
512 cycles each, plans of short atoms come out up to 5 % too fast; from 64 down little changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology


def simulate(
    dag: AtomicDag, machine: TiledMachine, plan: Plan, bucket: int = 64, *, together: bool = False
) -> float:
    """Cycles until the last task and the last movement end.

    Parameters
    ----------
    bucket : cycles of a bucket of time
    together : whether tasks wait for all that ended in steps before theirs, as the rounds of Atomic Dataflow
        do ("synchronized by the last finished one", section III); otherwise engines run freely
    """
    net = topology(machine)
    moving = plan.transfers
    groups: dict[tuple[int, ...], list[int]] = {}
    for j in range(len(moving)):
        back = bool(moving.target[j] >= machine.engines)
        key = (*(int(c[j]) for c in (moving.first, moving.last, moving.block, moving.source)), back)
        groups.setdefault(key, []).append(j)
    trees, targets, hops, sizes, rows = [], [], [], [], []
    for (first, last, block, source, _), members in groups.items():
        tree: set[int] = set()
        for j in members:
            tree |= {int(hop) for hop in net.route(source, int(moving.target[j]))}
        if source >= machine.engines or moving.target[members[0]] >= machine.engines:
            tree.add(len(net.rates))
        trees.append(sorted(tree))
        targets.append([int(moving.target[j]) for j in members])
        links = [len(net.route(source, int(moving.target[j]))) for j in members]
        hops.append([max(0, link - 2) * machine.hop_cycles for link in links])  # a port on either side
        sizes.append(int(moving.bytes[members[0]]))
        rows.append((first, last, block, source))
    order = sorted(range(len(rows)), key=lambda i: (rows[i][1], rows[i][0]))
    rates = np.append(net.rates, machine.dram_rate) * bucket
    tree_starts = np.cumsum([0] + [len(trees[i]) for i in order])
    target_starts = np.cumsum([0] + [len(targets[i]) for i in order])
    horizon = int(dag.cycles.sum() / bucket) + int(4 * sum(sizes) / rates.min()) + 4096
    by_step = np.lexsort((np.arange(dag.tasks), plan.first))
    return float(
        _simulate(
            np.array([rows[i] for i in order], dtype=np.int64).reshape(-1, 4),
            np.array([sizes[i] for i in order], dtype=np.float64),
            tree_starts,
            np.array([x for i in order for x in trees[i]], dtype=np.int64),
            target_starts,
            np.array([x for i in order for x in targets[i]], dtype=np.int64),
            np.array([x for i in order for x in hops[i]], dtype=np.float64),
            rates,
            horizon,
            bucket,
            machine.engines,
            by_step,
            plan.engine.astype(np.int64),
            plan.first.astype(np.int64),
            dag.cycles,
            dag.read_starts,
            dag.reads.astype(np.int64),
            dag.block_parent.astype(np.int64),
            plan.steps,
            plan.last.astype(np.int64),
            together,
        )
    )


@njit(cache=True)
def _simulate(
    rows: Any,
    sizes: Any,
    tree_starts: Any,
    trees: Any,
    target_starts: Any,
    targets: Any,
    hops: Any,
    rates: Any,
    horizon: int,
    bucket: int,
    engines: int,
    by_step: Any,
    engine: Any,
    first: Any,
    cycles: Any,
    read_starts: Any,
    reads: Any,
    parent: Any,
    steps: int,
    last: Any,
    together: bool,
) -> float:  # pragma: no cover
    blocks, links = len(parent), len(rates)
    used = np.zeros((links, horizon))
    there = np.full((blocks, engines), -1.0)  # when a copy is complete
    stored = np.full(blocks, -1.0)
    free = np.zeros(engines)  # when the engine has finished its tasks so far
    done_before = np.zeros((engines, steps + 1))
    latest = np.zeros(steps + 1)  # per step, when the last of the tasks that end in it or before is done
    end = 0.0
    g, t_at = 0, 0
    for step in range(steps):
        if step > 0:
            latest[step] = max(latest[step], latest[step - 1])
        for e in range(engines):
            done_before[e, step] = free[e]
        # movements that end in this step, then tasks that begin in it
        while g < len(rows) and rows[g, 1] == step:
            b, source = rows[g, 2], rows[g, 3]
            at = 0.0
            if source < engines:
                at = there[b, source]
                if at < 0.0:
                    at = there[parent[b], source]
            elif parent[b] >= 0:
                at = stored[b] if stored[b] >= 0.0 else stored[parent[b]]
            for k in range(target_starts[g], target_starts[g + 1]):
                if targets[k] < engines:
                    at = max(at, done_before[targets[k], rows[g, 0]])
            left, slot = sizes[g], int(at // bucket)
            finish = at
            while left > 1e-9:
                begun = max(0.0, at / bucket - slot)  # the part of the bucket that was over before the start
                room, least = left, np.inf
                for k in range(tree_starts[g], tree_starts[g + 1]):
                    rate = rates[trees[k]]
                    room = min(room, min(rate - used[trees[k], slot], rate * (1.0 - begun)))
                    least = min(least, rate)
                if room > 1e-9:
                    worst = begun + room / least
                    for k in range(tree_starts[g], tree_starts[g + 1]):
                        used[trees[k], slot] += room
                        worst = max(worst, used[trees[k], slot] / rates[trees[k]])
                    left -= room
                    finish = (slot + worst) * bucket
                slot += 1
            finish = max(finish, at)
            end = max(end, finish)
            for k in range(target_starts[g], target_starts[g + 1]):
                if targets[k] < engines:
                    there[b, targets[k]] = max(there[b, targets[k]], finish + hops[k])
                else:
                    stored[b] = max(stored[b], finish + hops[k])
            g += 1
        while t_at < len(by_step) and first[by_step[t_at]] == step:
            t = by_step[t_at]
            e = engine[t]
            at = max(free[e], latest[step - 1]) if together and step > 0 else free[e]
            for k in range(read_starts[t], read_starts[t + 1]):
                b = reads[k]
                ready = there[b, e]
                if ready < 0.0:
                    ready = there[parent[b], e]
                at = max(at, ready)
            free[e] = at + cycles[t]
            there[t, e] = free[e]
            latest[last[t]] = max(latest[last[t]], free[e])
            end = max(end, free[e])
            t_at += 1
    return end
