"""What every layer takes of a plan's cycles and energy: it tells changes far from each other apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tilewright.formulation.objective import Objective
from tilewright.formulation.scheduling.tiled.evaluator import network_of, parts_of
from tilewright.formulation.scheduling.tiled.plan_kernel import Moves, Network
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.compiled import compiled


def layer_accounts(problem: TiledProblem, answer: AtomicPlan) -> Floats:
    """What every layer takes of a plan's energy and cycles.

    A step's cycles are those of the layers of its tasks, in equal parts; the energy of a transfer is that of
    the layer which reads it, or whose results leave.  Static power goes with cycles.

    Parameters
    ----------
    answer : a legal plan

    Returns
    -------
    pJ and cycles, shape (2, layers); their sums are those of the plan but for steps in which no task begins,
    its cycles before they are rounded up
    """
    dag, plan, machine = answer.dag, answer.plan, problem.machine
    layers = len(dag.units)
    result = problem.evaluate(dag, plan)

    def layer_sums(figures: Floats, of: Int32s | Int64s = dag.unit) -> Floats:
        return np.bincount(of, weights=figures, minlength=layers).astype(np.float64)

    length = np.diff(result.step_start)
    busy = np.bincount(plan.first, minlength=plan.steps)
    cycles = layer_sums((length / np.maximum(busy, 1))[plan.first])
    inside = dag.compute_energy + dag.buffer_energy + dag.register_energy
    energy = layer_sums(inside)
    moving = plan.transfers
    if len(moving):
        reader = np.full(dag.blocks, -1, dtype=np.int64)
        reader[dag.reads] = np.repeat(dag.unit, np.diff(dag.read_starts))
        maker = dag.unit[np.maximum(dag.block_parent[moving.block], 0)]
        # a result is read in parts, which are blocks of their own; what is read as a whole has its reader
        layer = np.where(reader[moving.block] >= 0, reader[moving.block], maker)
        layer = np.where(moving.target < machine.engines, layer, maker)
        engine = machine.engine
        prices = np.array(
            [engine.buffer_read_energy, engine.buffer_write_energy, machine.hop_energy, machine.dram_energy]
        )
        spent: Floats = _transfer_energy(parts_of(dag, plan, machine.engines)[1], network_of(machine), prices)
        energy += layer_sums(spent, layer)
    energy += machine.engine.static_power * machine.engines * cycles
    return np.stack([energy, cycles])


BESIDE = 3
"""Layers before and after a change that it is judged by as well, at most."""


def layers_beside(changes: Sequence[range], layers: int) -> list[slice]:
    """The layers by whose accounts each change is judged: its own, and up to `BESIDE` on either side of it,
    of those before the next change half.

    Parameters
    ----------
    changes : layers that each change is about, in order
    layers : of the network
    """
    middles = [(a.stop + b.start + 1) // 2 for a, b in pairwise(changes)]
    return [
        slice(max(low, units.start - BESIDE), min(high, units.stop + BESIDE))
        for units, low, high in zip(changes, [0, *middles], [*middles, layers], strict=True)
    ]


def more_taken(objective: Objective, before: Floats, after: Floats) -> Floats:
    """What every layer takes more of an objective than before, as a part of the whole.

    Parameters
    ----------
    before, after : of `layer_accounts`
    """
    energy, cycles = (after - before) / before.sum(axis=1, keepdims=True)
    more: Floats = float(objective.energy_power) * energy + float(objective.delay_power) * cycles
    return more


@compiled
def _transfer_energy(moves: Moves, net: Network, prices: Any) -> Any:  # pragma: no cover
    """pJ of every transfer; the first of a multicast has what all share: the read and their links.

    Parameters
    ----------
    prices : of a byte read from a buffer, written into one, over a link, and from or to DRAM
    """
    spent = np.zeros(len(moves.block), dtype=np.float64)
    stamp = np.full(len(net.rates), -1, dtype=np.int64)
    for j in range(len(moves.block)):
        price = 0.0
        if j == 0 or moves.group[j] != moves.group[j - 1]:
            price += prices[0] if moves.source[j] < net.engines else prices[3]
            if moves.target[j] >= net.engines:
                price += prices[3]
        if moves.target[j] < net.engines:
            price += prices[1]
        route = moves.source[j] * net.places + moves.target[j]
        for q in range(net.starts[route], net.starts[route + 1]):
            link = net.links[q]
            if link >= net.routers and stamp[link] != moves.group[j]:
                stamp[link] = moves.group[j]
                price += prices[2]
        spent[j] = price * moves.bytes[j]
    return spent
