"""Layers that wait for their weights run on the engines beside the ports of DRAM, where weights pass no link.

A fully connected layer of one sample multiplies each weight once.  Its time is that of its weights on their
way through DRAM, and the engines at the ports alone multiply as fast as these arrive: what others do passes
links for nothing.  Only what buffers hold before the layer begins is better spread over all engines, since
that arrives while DRAM would have nothing to do.
"""

from __future__ import annotations

import math

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import WEIGHTS, AtomicDag
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine

HELD = 0.8
"""Part of all buffers that weights fill at most before their layer begins."""

LONG = 0.4
"""Where buffers hold all weights, these stay where they are if all work takes that part of their time."""

EVEN = 0.9
"""Part of the tiles of channels of the first engine that the engines of a layer must have on average."""


def beside_ports(
    dag: AtomicDag, machine: TiledMachine, engine: Int32s, step: Int32s, along: Int32s
) -> tuple[Int32s, Int32s] | None:
    """Engines and rounds in which layers that wait for their weights run beside the ports of DRAM.

    A layer stays as it is as far as its weights may be in buffers when it begins: what buffers hold, and DRAM
    has time for in the layers before.  Then each engine beside a port has tiles of channels of its own, and
    makes all results of one tile, the parts of their sums in order, before the next tile.  A layer that runs
    beside others stays, and so do all where buffers hold all weights that arrive beside long work.

    Parameters
    ----------
    dag : the atoms
    machine : where they run
    engine, step : per atom; a plan in which all that an atom reads is made in earlier rounds
    along : the engines that take part

    Returns
    -------
    engine and round per atom, of another such plan; ``None`` where no atom moves, as of one that this made
    """
    ports = _ports(machine, along)
    rate = _rate(machine, len(along))
    port = min(machine.port_rate, machine.dram_port_rate)
    fewest = math.ceil(rate / port)
    if len(along) <= 1 or fewest > len(ports):
        return None
    work, weights = _layers(dag)
    buffers, ahead = machine.engine.buffer_bytes * len(along), 0.0
    if weights.sum() <= buffers and work.sum() * rate / len(along) >= LONG * weights.sum():
        return None
    placed, after = engine.copy(), step.astype(np.int64)
    turn = np.zeros(dag.tasks, dtype=np.int64)
    for unit in range(len(dag.units)):
        few = _fewest(dag, unit, work[unit] * rate, weights[unit], rate / port, range(fewest, len(ports) + 1))
        held = ahead / weights[unit] if few else 1.0
        ahead = min(HELD * buffers, max(0.0, ahead + work[unit] * rate / len(along) - weights[unit]))
        if held >= 1.0:
            continue
        tasks = slice(int(dag.base[unit]), int(dag.base[unit + 1]))
        rounds = step[tasks]
        if np.count_nonzero((step >= rounds.min()) & (step <= rounds.max())) > len(rounds):
            continue
        late = np.flatnonzero(rounds >= np.sort(rounds)[int(held * len(rounds))])
        channel, order = _turns(dag, unit, few)
        placed[tasks.start + late] = ports[channel[late] % few]
        after[tasks.start + late] = rounds.max()
        turn[tasks.start + late] = 1 + order[late]
    if (placed == engine).all():
        return None
    keys = after * (int(turn.max()) + 1) + turn
    return placed, np.unique(keys, return_inverse=True)[1].astype(np.int32)


def _ports(machine: TiledMachine, along: Int32s) -> Int32s:
    """The engines beside ports that take part."""
    beside = {y * machine.width + x for x, y in machine.dram_ports}
    return np.array(sorted(beside & set(along.tolist())), dtype=np.int32)


def _rate(machine: TiledMachine, engines: int) -> float:
    """Bytes a cycle that DRAM sends to so many engines at most."""
    ports = len(machine.dram_ports) * machine.dram_port_rate
    return min(machine.dram_rate, ports, engines * machine.port_rate)


def _layers(dag: AtomicDag) -> tuple[Floats, Floats]:
    """Cycles of every layer's atoms, and bytes of its weights."""
    count = len(dag.units)
    stored = dag.block_kind[dag.reads] == WEIGHTS
    reader = np.full(dag.blocks, -1, dtype=np.int64)
    reader[dag.reads[stored]] = np.repeat(dag.unit, np.diff(dag.read_starts))[stored]
    blocks = np.flatnonzero(reader >= 0)
    work = np.bincount(dag.unit, weights=dag.cycles, minlength=count)
    weights = np.bincount(reader[blocks], weights=dag.block_bytes[blocks], minlength=count)
    return work.astype(np.float64), weights.astype(np.float64)


def _fewest(dag: AtomicDag, unit: int, arriving: float, weights: float, ports: float, engines: range) -> int:
    """The fewest engines that multiply as fast as a layer's weights arrive, 0 if none.

    Of those that have tiles evenly, the ones that take in the weights soonest.

    Parameters
    ----------
    dag, unit : the atoms, and the layer
    arriving : bytes that arrive while one engine does all its work
    weights : bytes
    ports : of engines that bring as much as DRAM sends
    engines : that may be chosen
    """
    tiles = len(dag.tilings[unit].channels) - 1
    fit = [few for few in engines if arriving <= few * weights and tiles >= EVEN * few * -(-tiles // few)]
    return min(fit, key=lambda few: max(tiles, ports * -(-tiles // few)), default=0) if weights else 0


def _turns(dag: AtomicDag, unit: int, few: int) -> tuple[Int64s, Int64s]:
    """Per atom of a layer its tile of channels, and its turn where so few engines have a tile each at a time.

    All samples and pixels follow each other in every part of a sum, so that weights are read by one engine in
    a row.
    """
    cuts = dag.tilings[unit]
    sizes = [len(borders) - 1 for borders in (cuts.samples, cuts.channels, cuts.rows, cuts.columns)]
    slots = int(dag.slots[unit])
    sample, channel, row, column, slot = np.indices((*sizes, slots)).reshape(5, -1)
    box = (sample * sizes[2] + row) * sizes[3] + column
    boxes = sizes[0] * sizes[2] * sizes[3]
    return channel, (channel // few * slots + slot) * boxes + box
