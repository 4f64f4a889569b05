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
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine

HELD = 0.8
"""Part of all buffers that weights may fill before their layer begins."""

EVEN = 0.9
"""Part of the tiles of channels of the first engine that the engines of a layer must have on average."""


def beside_ports(
    dag: AtomicDag, machine: TiledMachine, engine: Int32s, step: Int32s, along: Int32s
) -> tuple[Int32s, Int32s] | None:
    """Engines and rounds in which layers that wait for their weights run beside the ports of DRAM.

    A layer stays as it is as far as buffers may hold its weights when it begins, which is nothing right after
    one that moves.  Then each engine beside a port has tiles of channels of its own, and makes all results of
    one tile, the parts of their sums in order, before the next tile.  A layer that runs beside others stays.

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
    fewest = math.ceil(rate / min(machine.port_rate, machine.dram_port_rate))
    if len(along) <= 1 or fewest > len(ports):
        return None
    layers = _waiting(dag, rate, fewest, len(ports))
    room = HELD * machine.engine.buffer_bytes * len(along)
    placed, after = engine.copy(), step.astype(np.int64)
    turn = np.zeros(dag.tasks, dtype=np.int64)
    moved: int | None = None
    for unit, (weights, few) in layers.items():
        tasks = slice(int(dag.base[unit]), int(dag.base[unit + 1]))
        rounds = step[tasks]
        held = 0.0 if moved == unit - 1 else room / weights
        alone = np.count_nonzero((step >= rounds.min()) & (step <= rounds.max())) == len(rounds)
        if held >= 1.0 or not alone:
            continue
        late = np.flatnonzero(rounds >= np.sort(rounds)[int(held * len(rounds))])
        channel, order = _turns(dag, unit, few)
        placed[tasks.start + late] = ports[channel[late] % few]
        after[tasks.start + late] = rounds.max()
        turn[tasks.start + late] = 1 + order[late]
        moved = unit
    if moved is None or (placed == engine).all():
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


def _waiting(dag: AtomicDag, rate: float, fewest: int, most: int) -> dict[int, tuple[float, int]]:
    """Layers of which some engines multiply as fast as weights arrive: the bytes, and the fewest engines.

    Parameters
    ----------
    rate : bytes of weights that arrive a cycle
    fewest, most : engines that may be chosen
    """
    count = len(dag.units)
    work = np.bincount(dag.unit, weights=dag.cycles, minlength=count) * rate
    reader = np.repeat(dag.unit, np.diff(dag.read_starts))
    stored = dag.block_kind[dag.reads] == WEIGHTS
    # as if no two atoms read the same, which rules out nearly all layers at once
    read = np.bincount(reader[stored], weights=dag.block_bytes[dag.reads[stored]], minlength=count)
    layers = {}
    for unit in np.flatnonzero((read > 0) & (read * most >= work)).tolist():
        reads = dag.reads[dag.read_starts[dag.base[unit]] : dag.read_starts[dag.base[unit + 1]]]
        blocks = np.unique(reads[dag.block_kind[reads] == WEIGHTS])
        weights, tiles = float(dag.block_bytes[blocks].sum()), len(dag.tilings[unit].channels) - 1
        for few in range(max(fewest, math.ceil(work[unit] / weights)), most + 1):
            if tiles >= EVEN * few * -(-tiles // few):
                layers[unit] = weights, few
                break
    return layers


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
