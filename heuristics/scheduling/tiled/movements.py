"""The transfers and residencies of a given order as decisions, each of which can be changed by itself.

Order and places say which engine needs which block in which steps: its *uses*.  A use finds the copy that the
use before it found, or a new one.  Decided is for each use whether a copy is loaded for it, over which steps
and from where, and for each result when and by which port it is stored.  The rest follows: a copy stays until
its last use, the last transfer that reads it, and its write-back; results are stored that leave the network
or are loaded from DRAM.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from tilewright.formulation.scheduling.tiled import legality_kernel as legality
from tilewright.formulation.scheduling.tiled import plan_kernel
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import (
    IllegalPlanError,
    energy_of,
    evaluate,
    graph_of,
    network_of,
    parts_of,
    whole_cycles,
)
from tilewright.formulation.scheduling.tiled.plan import Plan, make_residency, make_transfers
from tilewright.foundation.arrays import Bools, Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.heuristics.scheduling.tiled import movements_kernel as machine_code
from tilewright.heuristics.scheduling.tiled.movements_kernel import Decisions, Needs

STORES, TOGGLES, EXCHANGES = 0.1, 0.1, 0.2
"""Parts of the changes that are of stores, of whether a copy stays between two uses, and of two loads."""

NEAR = 2
"""Steps by which half of the changes of steps move a transfer, at most."""


@dataclass(frozen=True, eq=False, slots=True)
class Uses:
    """What an order needs where and when, by block, engine and step.

    Parameters
    ----------
    dag, machine : the atoms, and where they run
    graph, net : the same as machine code reads them
    order : a plan of which engines and steps of tasks count
    steps : of the plans; one at least follows the last task
    needs : of each use what must be there, and in which steps
    low : per use, the first step in which a copy for it may be loaded
    again : uses whose block the same engine uses before
    spread : steps that a transfer may be spread over
    """

    dag: AtomicDag
    machine: TiledMachine
    graph: plan_kernel.Graph
    net: plan_kernel.Network
    order: Plan
    steps: int
    needs: Needs
    low: Int64s
    again: list[int]
    spread: int

    def places(self, block: int) -> list[int]:
        """Where a block may come from: the ports, and the engines that use it or its whole."""
        here = {*self._users(block), *self._users(int(self.dag.block_parent[block]))}
        engines = self.machine.engines
        return [*range(engines, engines + len(self.machine.dram_ports)), *sorted(here)]

    def _users(self, block: int) -> list[int]:
        """Engines of the uses of a block, which stand together."""
        low, high = np.searchsorted(self.needs.block, (block, block + 1))
        users: list[int] = self.needs.engine[low:high].tolist()
        return users


@dataclass(frozen=True, eq=False, slots=True)
class Movements:
    """Decisions about the transfers of an order.

    Parameters
    ----------
    uses : that they serve
    decided : how these get their blocks, and results leave
    """

    uses: Uses
    decided: Decisions

    def _with(self, **columns: Any) -> Movements:
        """The same with some columns of decisions in place of others."""
        return replace(self, decided=self.decided._replace(**columns))

    def kept(self) -> Int64s:
        """Tasks whose results are stored: outputs, and what is loaded from DRAM."""
        uses = self.uses
        kept = machine_code.stored_results(uses.graph, uses.needs, self.decided, uses.machine.engines)
        return np.flatnonzero(kept)

    def plan(self) -> Plan | None:
        """The plan of these decisions, legal or not; ``None`` where a source never had what it sends."""
        uses, engines = self.uses, self.uses.machine.engines
        sent, moves, holds = machine_code.columns_of(uses.graph, uses.needs, self.decided, engines)
        if not sent:
            return None
        held = make_residency(holds.block, holds.engine, holds.start, holds.end)
        order = uses.order
        return Plan(order.engine, order.first, order.last, make_transfers(engines, *moves), held, uses.steps)

    def cost(self) -> tuple[float, int] | None:
        """Energy in pJ and cycles of the plan, as the evaluator has it; ``None`` where that is not legal."""
        uses, order = self.uses, self.uses.order
        tasks = plan_kernel.Tasks(order.engine, order.first, order.last)
        verdict, end, totals = machine_code.judged(
            uses.graph, tasks, uses.needs, self.decided, uses.net, uses.steps
        )
        if verdict == machine_code.LEGAL:
            cycles = whole_cycles(end)
            return energy_of(uses.dag, uses.machine, totals, cycles).total, cycles
        plan = self.plan() if verdict == machine_code.UNSORTED else None
        if plan is None:
            return None
        with suppress(IllegalPlanError):
            evaluation = evaluate(uses.dag, uses.machine, plan)
            return evaluation.energy.total, evaluation.cycles
        return None

    def neighbour(self, random: Random) -> Movements | None:
        """One decision changed at random; ``None`` where nothing changes."""
        uses, kind = self.uses, random.random()
        if kind < STORES:
            return self._other_store(random)
        if kind < STORES + TOGGLES and uses.again:
            use = random.choice(uses.again)
            loaded = self.decided.loaded.copy()
            loaded[use] = not loaded[use]
            return self._other_load(use, random, loaded) if loaded[use] else self._with(loaded=loaded)
        loads = np.flatnonzero(self.decided.loaded)
        if not len(loads):
            return None
        use = int(random.choice(loads))
        if kind < STORES + TOGGLES + EXCHANGES:
            return self._exchanged(use, int(random.choice(loads)))
        return self._other_load(use, random, self.decided.loaded)

    def _exchanged(self, use: int, other: int) -> Movements:
        """Two loads, each in the steps of the other, as far as it may be there."""
        now, low, step = self.decided, self.uses.low, self.uses.needs.step
        first, last = now.first.copy(), now.last.copy()
        for load, like in ((use, other), (other, use)):
            last[load] = min(max(int(now.last[like]), int(low[load])), int(step[load]))
            first[load] = min(max(int(now.first[like]), int(low[load])), int(last[load]))
        return self._with(first=first, last=last)

    def _other_load(self, use: int, random: Random, loaded: Bools) -> Movements | None:
        """Other steps for the load of a use, another source, or both."""
        uses, kind = self.uses, random.randrange(4)
        places = uses.places(int(uses.needs.block[use]))
        source, first, last = self.decided.source, self.decided.first, self.decided.last
        if kind == 0 and len(places) > 1:
            source = _changed(source, use, random.choice(places))
        if kind or source is self.decided.source:
            window = self._window(int(uses.low[use]), int(uses.needs.step[use]), int(last[use]), random)
            if window is None:
                return None
            first, last = _changed(first, use, window[0]), _changed(last, use, window[1])
        return self._with(loaded=loaded, source=source, first=first, last=last)

    def _other_store(self, random: Random) -> Movements | None:
        """Other steps for a write-back, or another port."""
        stores, uses = self.kept(), self.uses
        if not len(stores):
            return None
        task = int(stores[random.randrange(len(stores))])
        low, high = int(uses.order.last[task]) + 1, uses.steps - 1
        window = self._window(low, high, int(self.decided.stored_last[task]), random)
        if window is None:
            return None
        port, engines = self.decided.port, uses.machine.engines
        if len(uses.machine.dram_ports) > 1 and random.random() < 0.5:
            port = _changed(port, task, engines + random.randrange(len(uses.machine.dram_ports)))
        stored, stored_last = (
            _changed(column, task, step)
            for column, step in zip((self.decided.stored, self.decided.stored_last), window, strict=True)
        )
        return self._with(port=port, stored=stored, stored_last=stored_last)

    def _window(self, low: int, high: int, now: int, random: Random) -> tuple[int, int] | None:
        """First and last step of a transfer, near its last step now or anywhere it may be."""
        if low > high:
            return None
        if random.random() < 0.5:
            last = min(max(now + random.randint(-NEAR, NEAR), low), high)
        else:
            last = random.randint(low, high)
        widths = self.uses.spread.bit_length()
        width = min(1 << random.randrange(widths), self.uses.spread)
        return max(low, last - width + 1), last


def _changed(column: Int64s, at: int, value: int) -> Int64s:
    """The same with one other entry."""
    copy = column.copy()
    copy[at] = value
    return copy


def movements_of(dag: AtomicDag, machine: TiledMachine, plan: Plan, spread: int) -> Movements | None:
    """What a plan decides, every transfer spread over at most so many of its last steps.

    Copies that serve no task are left out; of results of which a part is stored, all is.

    Parameters
    ----------
    plan : a legal one; ``None`` is the answer for any other
    spread : steps that a transfer may be spread over
    """
    engines, net = machine.engines, topology(machine)
    graph, routes = graph_of(dag), network_of(machine)
    tasks, moves, holds = parts_of(dag, plan, engines)
    fault, known = legality.check(graph, tasks, moves, holds, routes, plan.steps)
    if fault[0] != legality.OK:
        return None
    _ready, local, served, supplied, *_ = known
    reader = np.repeat(np.arange(dag.tasks), np.diff(dag.read_starts))
    makings = plan_kernel.holdings(
        holds, np.arange(dag.tasks, dtype=np.int32), plan.engine, plan.first, plan.last
    )
    copy = np.concatenate([makings, served]).astype(np.int64)
    task = np.concatenate([np.arange(dag.tasks), reader])
    block, engine = holds.block[copy].astype(np.int64), holds.engine[copy].astype(np.int64)
    step, last = plan.first[task].astype(np.int64), plan.last[task].astype(np.int64)
    _, distinct = np.unique((block * engines + engine) * plan.steps + step, return_index=True)
    block, engine, step, last, copy = (column[distinct] for column in (block, engine, step, last, copy))
    made = distinct < dag.tasks
    by = np.full(len(holds.block), -1, dtype=np.int64)
    by[supplied[supplied >= 0]] = np.flatnonzero(supplied >= 0)
    fresh = np.concatenate([[True], copy[1:] != copy[:-1]])
    loaded = fresh & ~local[copy]
    transfer = np.maximum(by[copy], 0)
    same = ~np.concatenate([[True], (block[1:] != block[:-1]) | (engine[1:] != engine[:-1])])
    low = np.where(same, np.concatenate([[0], last[:-1] + 1]), 0)
    parent = dag.block_parent[block]
    low = np.maximum(low, np.where(parent >= 0, plan.last[np.maximum(parent, 0)] + 1, 0))
    steps = max(plan.steps, int(plan.last.max()) + 2)
    uses = Uses(
        dag=dag,
        machine=machine,
        graph=graph,
        net=routes,
        order=plan,
        steps=steps,
        needs=Needs(block, engine, step, last, made),
        low=low,
        again=np.flatnonzero(same & ~made).tolist(),
        spread=spread,
    )
    moving = plan.transfers
    until = np.where(loaded, moving.last[transfer], step).astype(np.int64)
    begun = np.where(loaded, np.maximum(moving.first[transfer], until - spread + 1), step).astype(np.int64)
    nearest = engines + net.hops.reshape(net.places, -1)[:engines, engines:].argmin(axis=1)
    port = nearest[plan.engine]
    stored_from, stored = plan.engine.astype(np.int64), plan.last.astype(np.int64) + 1
    stored_last = stored.copy()
    for j in np.flatnonzero(moving.target >= engines):
        result = dag.block_parent[moving.block[j]]
        port[result], stored_from[result] = moving.target[j], moving.source[j]
        stored_last[result] = moving.last[j]
        stored[result] = max(int(moving.first[j]), int(moving.last[j]) - spread + 1)
    source = np.where(loaded, moving.source[transfer], nearest[engine]).astype(np.int64)
    decided = Decisions(loaded, source, begun, until, port, stored_from, stored, stored_last)
    return Movements(uses, decided)


def carried(movements: Movements, plan: Plan, at: Int64s) -> Movements | None:
    """The movements of another plan, those that both have in the steps and from the ports where they are now.

    Parameters
    ----------
    movements : that are carried over, as far as the plan's order and buffers have such
    plan : a legal one of the same atoms; ``None`` is the answer for any other
    at : per step of the movements the step of the plan that it is now, in rising order
    """
    uses = movements.uses
    other = movements_of(uses.dag, uses.machine, plan, uses.spread)
    if other is None:
        return None
    engines, needs = uses.machine.engines, uses.needs
    asked, wanted = other.uses, other.uses.needs
    mine, theirs = movements.decided, other.decided
    loads = np.flatnonzero(mine.loaded)[::-1]  # of several, the first one stays last
    by_place = np.full(uses.dag.blocks * engines, -1, dtype=np.int64)
    by_block = np.full(uses.dag.blocks, -1, dtype=np.int64)
    by_place[needs.block[loads] * engines + needs.engine[loads]] = loads
    by_block[needs.block[loads]] = loads
    same = by_place[wanted.block * engines + wanted.engine]
    like = np.where(same >= 0, same, by_block[wanted.block])
    known = theirs.loaded & (like >= 0)
    from_port = known & (same >= 0) & (mine.source[same] >= engines) & (theirs.source >= engines)
    last = np.where(known, np.clip(at[mine.last[like]], asked.low, wanted.step), theirs.last)
    first = np.where(known, np.clip(at[mine.first[like]], asked.low, last), theirs.first)
    low, high = plan.last.astype(np.int64) + 1, asked.steps - 1
    return other._with(
        source=np.where(from_port, mine.source[same], theirs.source),
        first=first,
        last=last,
        port=mine.port,
        stored=np.clip(at[mine.stored], low, high),
        stored_last=np.clip(at[mine.stored_last], low, high),
    )
