"""Smoothing: a plan's transfers moved to other steps and sources, so that no link and no step waits long.

Tasks stay where and when they are.  A transfer may begin as early as its targets have capacity, may come from
any place that holds its block throughout, and must be there by the step that reads it.  Moves are drawn at
random among the transfers that a step waits for, and stay where they shorten the plan (a sum over steps here,
since tasks of one step do not overlap steps); the evaluator judges the result as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled import legality_kernel as legality
from tilewright.formulation.scheduling.tiled import plan_kernel
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import graph_of, network_of, occupancy
from tilewright.formulation.scheduling.tiled.halting import halting
from tilewright.formulation.scheduling.tiled.plan import (
    Plan,
    Transfers,
    make_residency,
    make_transfers,
    multicast_groups,
)
from tilewright.foundation.arrays import Bools, Floats, Int32s, Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled import smoothing_kernel as machine_code
from tilewright.heuristics.scheduling.tiled.smoothing_hints import hints_from, no_hints
from tilewright.heuristics.scheduling.tiled.smoothing_loads import NEVER, Casts, Copies


def smoothed(
    dag: AtomicDag,
    machine: TiledMachine,
    plan: Plan,
    *,
    rounds: int = 4,
    tries: int = 8,
    most: int = 16,
    far: int = 128,
    widths: int = 5,
    seed: int = 0,
    price: float = inf,
    like: tuple[AtomicDag, Plan] | None = None,
    limits: Limits | None = None,
) -> Plan:
    """The plan with its transfers moved; itself where a task spans several steps.

    Parameters
    ----------
    plan : a legal one in which every copy comes by one transfer, as `complete` makes them
    rounds, tries, most : passes over all steps, moves per transfer, transfers per step
    far : steps before its use in which data may arrive
    widths : transfers that are moved take 1, 2, 4 … steps, so many sizes; 1 for single steps
    price : pJ that a cycle is worth; by default cycles alone count
    like : atoms and plan of the same network whose transfers are taken over where that gains
    limits : where they strike, the plan with what has been moved until then
    """
    effort = Effort(rounds, tries, most, far, widths, price)
    return smoothed_and_cycles(dag, machine, plan, effort, seed, like, limits)[0]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much smoothing tries, and what a cycle is worth.

    Parameters
    ----------
    rounds, tries, most, far, widths, price : as of `smoothed`
    heat : cycles that a move may cost and stay in the first pass, evenly less in later ones, none in the last
        ("threshold accepting", Dueck and Scheuer, 1990)
    staged : whether all transfers are timed anew together at the beginning, see `smoothing_staging`
    """

    rounds: int = 4
    tries: int = 8
    most: int = 16
    far: int = 128
    widths: int = 5
    price: float = inf
    heat: float = 0.0
    staged: bool = False

    def worth(self, machine: TiledMachine) -> Floats:
        """Cycles that it is worth to spare a byte a link, and to spare it DRAM for a buffer."""
        beyond = max(0.0, machine.dram_energy - machine.engine.buffer_read_energy)
        return np.array([machine.hop_energy, beyond]) / max(self.price, 1e-9)


def smoothed_and_cycles(
    dag: AtomicDag,
    machine: TiledMachine,
    plan: Plan,
    effort: Effort,
    seed: int = 0,
    like: tuple[AtomicDag, Plan] | None = None,
    limits: Limits | None = None,
) -> tuple[Plan, float | None]:
    """The plan with its transfers moved, and the cycles that it takes by smoothing's own account.

    Transfers that come to agree in source and steps are one multicast, so that the evaluator may find less.

    Parameters
    ----------
    dag, machine : the atoms, and where they run
    plan : a legal one, as of `smoothed`
    effort : how much is tried
    seed : of the moves
    like : as of `smoothed`
    limits : where they strike, the plan with what has been moved until then
    """
    if bool((plan.first != plan.last).any()) or not len(plan.transfers):
        return plan, None
    net, graph = network_of(machine), graph_of(dag)
    moving, held = plan.transfers, plan.residency
    starts = np.concatenate([[0], np.cumsum(np.bincount(held.block, minlength=dag.blocks))]).astype(np.int64)
    group = multicast_groups(moving, machine.engines)
    holds = plan_kernel.Holds(held.block, held.engine, held.start, held.end, starts)
    moves = plan_kernel.Moves(
        moving.block, moving.source, moving.target, moving.bytes, moving.first, moving.last, group
    )
    tasks = plan_kernel.Tasks(plan.engine, plan.first, plan.last)
    fault, (ready, _local, served, supplies, *_) = legality.check(graph, tasks, moves, holds, net, plan.steps)
    if fault[0] != legality.OK:
        return plan, None
    inward = moving.target < machine.engines
    if inward.any() and int(np.bincount(supplies[inward]).max()) > 1:
        return plan, None  # a copy that several transfers bring together
    read_by = np.full(len(held), NEVER, dtype=np.int64)
    np.minimum.at(read_by, served, np.repeat(plan.first, np.diff(dag.read_starts)))
    casts = _casts(dag, machine, plan, group, supplies, read_by, holds, ready)
    hints = no_hints(plan.steps) if like is None else hints_from(like, dag, plan, casts, machine.engines)
    copies = Copies(
        held.block,
        held.engine,
        held.start.copy(),
        held.end.copy(),
        ready.copy(),
        np.full(len(held), NEVER, dtype=np.int32),
        starts,
    )
    cycles = np.zeros((plan.steps, machine.engines), dtype=np.int64)
    cycles[plan.first, plan.engine] = dag.cycles
    stored = np.full(dag.blocks, NEVER, dtype=np.int32)
    back = ~inward
    written = np.full(dag.blocks, -1, dtype=np.int64)
    np.maximum.at(written, moving.block[back], moving.last[back])
    stored[written >= 0] = written[written >= 0]
    whole = np.where(dag.block_parent >= 0, stored[np.maximum(dag.block_parent, 0)], NEVER)
    stored = np.minimum(stored, whole).astype(np.int32)
    links, dram = _fixed_loads(net, moving, back, plan.steps)
    with halting(limits) as halt:
        taken = machine_code.level(
            net=net,
            casts=casts,
            copies=copies,
            work=cycles,
            back=(links, dram, occupancy(dag, machine, plan)),
            parent=dag.block_parent,
            stored=stored,
            steps=plan.steps,
            hints=hints,
            tries=machine_code.Tries(
                effort.rounds,
                effort.tries,
                effort.most,
                effort.far,
                effort.widths,
                effort.heat,
                effort.staged,
            ),
            worth=effort.worth(machine),
            seed=seed,
            halt=halt,
        )
    number = np.repeat(np.arange(len(casts.block)), np.diff(casts.starts))
    transfers = make_transfers(
        machine.engines,
        *(
            np.concatenate([new.astype(np.int64), kept[back].astype(np.int64)])
            for new, kept in (
                (casts.block[number], moving.block),
                (casts.source[number], moving.source),
                (casts.engine, moving.target),
                (casts.size[number], moving.bytes),
                (casts.first[number], moving.first),
                (casts.last[number], moving.last),
            )
        ),
    )
    columns = [column.astype(np.int64) for column in (copies.block, copies.engine, copies.start, copies.end)]
    return replace(plan, transfers=transfers, residency=make_residency(*columns)), float(taken)


def _casts(
    dag: AtomicDag,
    machine: TiledMachine,
    plan: Plan,
    group: Int64s,
    supplies: Int64s,
    read_by: Int64s,
    holds: plan_kernel.Holds,
    ready: Int32s,
) -> Casts:
    """The multicasts into engines, with their targets in the order of the plan."""
    moving = plan.transfers
    chosen = np.flatnonzero(moving.target < machine.engines)
    _, first_of, number = np.unique(group[chosen], return_index=True, return_inverse=True)
    head = chosen[first_of]
    count = len(head)
    needed = read_by[supplies[chosen]]
    due = np.full(count, NEVER, dtype=np.int64)
    np.minimum.at(due, number, needed)
    due = np.minimum(due, plan.steps - 1)
    source = moving.source[head]
    holder = np.full(count, -1, dtype=np.int64)
    inside = np.flatnonzero(source < machine.engines)
    at = head[inside]
    own = plan_kernel.holdings(holds, moving.block[at], source[inside], moving.first[at], moving.last[at])
    parent = dag.block_parent[moving.block[at]]
    whole = plan_kernel.holdings(holds, parent, source[inside], moving.first[at], moving.last[at])
    fits = (own >= 0) & (ready[np.maximum(own, 0)] < moving.first[at])
    holder[inside] = np.where(fits, own, whole)
    return Casts(
        block=moving.block[head].copy(),
        source=source.copy(),
        first=moving.first[head].copy(),
        last=moving.last[head].copy(),
        size=moving.bytes[head].copy(),
        holder=holder.astype(np.int32),
        due=due.astype(np.int32),
        starts=np.concatenate([[0], np.cumsum(np.bincount(number, minlength=count))]).astype(np.int64),
        engine=moving.target[chosen].copy(),
        held=supplies[chosen].astype(np.int32),
        needed=np.minimum(needed, NEVER).astype(np.int32),
    )


def _fixed_loads(
    net: plan_kernel.Network, moving: Transfers, back: Bools, steps: int
) -> tuple[Floats, Floats]:
    """What write-backs load, per step and link, and on DRAM."""
    links = np.zeros((steps, len(net.rates)))
    dram = np.zeros(steps)
    for j in np.flatnonzero(back):
        first, last = int(moving.first[j]), int(moving.last[j])
        share = int(moving.bytes[j]) / (last - first + 1)
        route = int(moving.source[j]) * net.places + int(moving.target[j])
        way = net.links[net.starts[route] : net.starts[route + 1]]
        links[first : last + 1, way] += share
        dram[first : last + 1] += share
    return links, dram
