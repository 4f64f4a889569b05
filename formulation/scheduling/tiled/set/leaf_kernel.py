"""Traffic, buffers and the best partition of one leaf, in machine code.

Shares are numbered ``((k * pb + b) * ph + h) * pw + w``; the tile of a share is the sum of its indices times
the steps of its partition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tilewright.formulation.scheduling.tiled.set.layers import (
    CONVOLUTION,
    GROUPED,
    SUM_BYTES,
    SUMMED,
    SWAPPED,
)
from tilewright.formulation.scheduling.tiled.set.traffic_kernel import (
    DRAM,
    HOPS,
    LINKS,
    fetch,
    receive,
    store,
)

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Leaf(NamedTuple):
    """What a leaf computes, as numbers.

    Parameters
    ----------
    window, channels, rows, columns, inputs, taps_rows, taps_columns, stride_rows, stride_columns, pad_rows,
    pad_columns, input_rows, input_columns, groups, spread, operands : of its layer
    late : tensors of the shape of the results that fused layers read
    weighs : whether it has weights; ``made``: whether other layers make them
    external : input channels from outside the network
    batch : samples of one run
    first_row : of the layer's results, where the rows of this run begin
    known_row : of the inputs, rows before it are in the buffers from the run before
    hop_rows : of a weight update over rows of the gradient from ``first_row`` on, by how many rows of the
        inputs neighbours differ; 0 where it runs over all at once
    """

    window: int
    channels: int
    rows: int
    columns: int
    inputs: int
    taps_rows: int
    taps_columns: int
    stride_rows: int
    stride_columns: int
    pad_rows: int
    pad_columns: int
    input_rows: int
    input_columns: int
    groups: int
    spread: bool
    operands: int
    late: int
    weighs: bool
    made: bool
    external: int
    batch: int
    first_row: int = 0
    known_row: int = 0
    hop_rows: int = 0


class Flow(NamedTuple):
    """Where a leaf's data comes from and goes to.

    Parameters
    ----------
    producers : per producer whether it passes results on directly, offset, channels, its role, whether its
        results are scattered, and where its layout begins; shape (producers, 6)
    layouts : of the direct ones, one after the other
    stored : whether results go to DRAM
    runs : runs of the leaf that share one load of its weights, or that a weight update sums up before it is
        stored
    """

    producers: Longs
    layouts: Longs
    stored: bool
    runs: int


class Mesh(NamedTuple):
    """Tiles of a leaf and DRAM's ports, and the rules that the released program bends."""

    height: int
    x: Longs
    y: Longs
    ports: Longs
    idle_receive: bool
    free_concatenation: bool
    undivided_links: bool


class Prices(NamedTuple):
    """pJ per byte and hop, of DRAM, of buffer reads and writes; bytes per cycle of DRAM; powers of the
    objective.
    """

    hop: float
    dram: float
    read: float
    write: float
    rate: float
    energy_power: float
    delay_power: float


@njit(cache=True, nogil=True)
def _border(size: int, parts: int, index: int) -> int:
    return -(-size * index // parts)


@njit(cache=True, nogil=True)
def _inputs(
    leaf: Leaf, need: Longs, k0: int, k1: int, b0: int, b1: int, h0: int, h1: int, w0: int, w1: int
) -> None:
    """The box of inputs that a box of results reads."""
    need[2], need[3] = b0, b1
    if leaf.window == SWAPPED:
        need[0], need[1], need[4], need[5], need[6], need[7] = h0, h1, k0, k1, w0, w1
        return
    if leaf.window == SUMMED:
        out, into = leaf.channels // leaf.groups, leaf.inputs // leaf.groups
        need[0] = k0 // out * into + h0 // leaf.stride_rows
        need[1] = (-(-k1 // out) - 1) * into - (-h1 // leaf.stride_rows)
        need[4], need[5], need[6], need[7] = 0, leaf.input_rows, 0, leaf.input_columns
        if leaf.hop_rows > 0:
            last = (leaf.first_row + leaf.taps_rows - 1) * leaf.hop_rows + leaf.stride_rows - leaf.pad_rows
            need[4] = max(0, leaf.first_row * leaf.hop_rows - leaf.pad_rows, leaf.known_row)
            need[5] = max(0, min(leaf.input_rows, last))
            need[4] = min(need[4], need[5])
        return
    h0, h1 = h0 + leaf.first_row, h1 + leaf.first_row
    if leaf.spread:
        need[4] = max(0, -((leaf.taps_rows - 1 - h0) // leaf.stride_rows))
        need[5] = max(need[4], min(leaf.input_rows, (h1 - 1) // leaf.stride_rows + 1))
        need[6] = max(0, -((leaf.taps_columns - 1 - w0) // leaf.stride_columns))
        need[7] = max(need[6], min(leaf.input_columns, (w1 - 1) // leaf.stride_columns + 1))
        need[4] = min(need[5], max(need[4], leaf.known_row))
        _input_channels(leaf, need, k0, k1)
        return
    need[4] = max(0, h0 * leaf.stride_rows - leaf.pad_rows)
    need[5] = max(need[4], min(leaf.input_rows, (h1 - 1) * leaf.stride_rows + leaf.taps_rows - leaf.pad_rows))
    need[6] = max(0, w0 * leaf.stride_columns - leaf.pad_columns)
    end = (w1 - 1) * leaf.stride_columns + leaf.taps_columns - leaf.pad_columns
    need[7] = max(need[6], min(leaf.input_columns, end))
    need[4] = min(need[5], max(need[4], leaf.known_row))
    _input_channels(leaf, need, k0, k1)


@njit(cache=True, nogil=True)
def _input_channels(leaf: Leaf, need: Longs, k0: int, k1: int) -> None:
    if leaf.window == CONVOLUTION:
        need[0], need[1] = 0, leaf.inputs
    elif leaf.window == GROUPED:
        out, into = leaf.channels // leaf.groups, leaf.inputs // leaf.groups
        need[0], need[1] = k0 // out * into, -(-k1 // out) * into
    else:
        need[0], need[1] = k0, k1


@njit(cache=True, nogil=True)
def _volume(need: Longs) -> int:
    found: int = (need[1] - need[0]) * (need[3] - need[2]) * (need[5] - need[4]) * (need[7] - need[6])
    return found


@njit(cache=True, nogil=True)
def usage(leaf: Leaf, parts: Longs, idle_receive: bool, inputs: Longs, weights: Longs) -> None:
    """Fill in, per share, the bytes of inputs and of weights that its tile receives."""
    pk, pb, ph, pw = parts[0], parts[1], parts[2], parts[3]
    need = np.zeros(8, dtype=np.int64)
    per_channel = leaf.inputs // leaf.groups * leaf.taps_rows * leaf.taps_columns if leaf.weighs else 0
    summed = leaf.window == SUMMED
    if summed:
        per_channel = leaf.taps_rows * leaf.taps_columns
    share = -1
    for k in range(pk):
        k0, k1 = _border(leaf.channels, pk, k), _border(leaf.channels, pk, k + 1)
        for b in range(pb):
            b0, b1 = _border(leaf.batch, pb, b), _border(leaf.batch, pb, b + 1)
            for h in range(ph):
                h0, h1 = _border(leaf.rows, ph, h), _border(leaf.rows, ph, h + 1)
                for w in range(pw):
                    w0, w1 = _border(leaf.columns, pw, w), _border(leaf.columns, pw, w + 1)
                    share += 1
                    inputs[share], weights[share] = 0, 0
                    busy = k1 > k0 and b1 > b0 and h1 > h0 and w1 > w0
                    shared = leaf.window == CONVOLUTION
                    if busy or (idle_receive and shared and b1 > b0 and h1 > h0 and w1 > w0):
                        _inputs(leaf, need, k0, k1, b0, b1, h0, h1, w0, w1)
                        inputs[share] = _volume(need) * leaf.operands
                    inputs[share] += (k1 - k0) * (b1 - b0) * (h1 - h0) * (w1 - w0) * leaf.late
                    if summed:
                        if busy:
                            inputs[share] += (k1 - k0) * (b1 - b0) * per_channel
                            weights[share] = (k1 - k0) * (h1 - h0) * (w1 - w0) * SUM_BYTES
                    elif busy or (idle_receive and k1 > k0 and (b1 > b0 or not leaf.made)):
                        weights[share] = (k1 - k0) * per_channel * (b1 - b0 if leaf.made else 1)


@njit(cache=True, nogil=True)
def _tile(steps: Longs, k: int, b: int, h: int, w: int) -> int:
    found: int = steps[0] * k + steps[1] * b + steps[2] * h + steps[3] * w
    return found


@njit(cache=True, nogil=True)
def _receive_parts(
    counts: Longs, leaf: Leaf, flow: Flow, mesh: Mesh, parts: Longs, steps: Longs, which: int, loads: bool
) -> None:
    """Count what all tiles read of one operand: producer ``which``, or DRAM's inputs (-1), or weights
    (-2).
    """
    pk, pb, ph, pw = parts[0], parts[1], parts[2], parts[3]
    tiles = pk * pb * ph * pw
    tx, ty = np.empty(tiles, dtype=np.int64), np.empty(tiles, dtype=np.int64)
    need = np.zeros(8, dtype=np.int64)
    direct, offset, channels, weights, scattered, start = 0, 0, leaf.external, which == -2, False, 0
    late = False
    if which >= 0:
        row = flow.producers[which]
        direct, offset, channels, start = row[0], row[1], row[2], row[5]
        weights, late, scattered = row[3] == 1, row[3] == 2, row[4] != 0
    elif which == -2:
        channels = leaf.channels
    summed = leaf.window == SUMMED
    per_group = 1 if summed else leaf.inputs // leaf.groups
    over_k = leaf.window == CONVOLUTION and not weights and not late
    over_b = weights and not leaf.made and not summed
    over_hw = weights
    for k in range(1 if over_k else pk):
        k0, k1 = _border(leaf.channels, pk, k), _border(leaf.channels, pk, k + 1)
        for b in range(1 if over_b else pb):
            b0, b1 = _border(leaf.batch, pb, b), _border(leaf.batch, pb, b + 1)
            for h in range(1 if over_hw else ph):
                h0, h1 = _border(leaf.rows, ph, h), _border(leaf.rows, ph, h + 1)
                for w in range(1 if over_hw else pw):
                    w0, w1 = _border(leaf.columns, pw, w), _border(leaf.columns, pw, w + 1)
                    if k1 <= k0 or b1 <= b0 or h1 <= h0 or w1 <= w0:
                        continue
                    if weights:
                        need[0], need[1] = k0, k1
                        need[2], need[3] = (b0, b1) if leaf.made or summed else (0, 1)
                        need[4], need[5] = 0, per_group
                        need[6], need[7] = 0, leaf.taps_rows * leaf.taps_columns
                        if summed:
                            need[5], need[7] = leaf.taps_rows, leaf.taps_columns
                    elif late:
                        need[0], need[1], need[2], need[3] = k0, k1, b0, b1
                        need[4], need[5] = leaf.first_row + h0, leaf.first_row + h1
                        need[6], need[7] = w0, w1
                    else:
                        _inputs(leaf, need, k0, k1, b0, b1, h0, h1, w0, w1)
                    targets = 0
                    for k2 in range(pk) if over_k else range(k, k + 1):
                        idle_k = _border(leaf.channels, pk, k2) == _border(leaf.channels, pk, k2 + 1)
                        for b2 in range(pb) if over_b else range(b, b + 1):
                            idle_b = _border(leaf.batch, pb, b2) == _border(leaf.batch, pb, b2 + 1)
                            for h2 in range(ph) if over_hw else range(h, h + 1):
                                idle_h = _border(leaf.rows, ph, h2) == _border(leaf.rows, ph, h2 + 1)
                                for w2 in range(pw) if over_hw else range(w, w + 1):
                                    idle_w = _border(leaf.columns, pw, w2) == _border(
                                        leaf.columns, pw, w2 + 1
                                    )
                                    if (idle_k or idle_b or idle_h or idle_w) and not mesh.idle_receive:
                                        continue
                                    at = _tile(steps, k2, b2, h2, w2)
                                    tx[targets], ty[targets] = mesh.x[at], mesh.y[at]
                                    targets += 1
                    if direct:
                        layout = flow.layouts[start:]
                        receive(
                            counts,
                            mesh.height,
                            layout,
                            need,
                            leaf.batch,
                            offset,
                            scattered,
                            tx,
                            ty,
                            targets,
                            loads,
                            mesh.free_concatenation,
                        )
                    else:
                        if not scattered:
                            need[0] = max(need[0], offset)
                            need[1] = max(need[0], min(need[1], offset + channels))
                        size = _volume(need)
                        if size > 0:
                            fetch(counts, mesh.height, mesh.ports, tx, ty, targets, size, loads)


@njit(cache=True, nogil=True)
def traffic(
    counts: Longs, leaf: Leaf, flow: Flow, mesh: Mesh, parts: Longs, steps: Longs, loads: bool
) -> None:
    """Count everything that one run of a leaf moves; link loads only where asked for."""
    counts[:] = 0
    part = np.zeros_like(counts)
    for which in range(-2, len(flow.producers)):
        ratio, whole_links = 1, False
        if which == -2:
            if not leaf.weighs or leaf.made:
                continue
            ratio = 1 if leaf.window == SUMMED else flow.runs
        elif which == -1:
            if leaf.external == 0:
                continue
        elif flow.producers[which, 0] and not flow.producers[which, 4]:
            batch = flow.layouts[flow.producers[which, 5]]
            ratio = max(1, batch // leaf.batch)
            whole_links = mesh.undivided_links
        part[:] = 0
        _receive_parts(part, leaf, flow, mesh, parts, steps, which, loads)
        for i in range(len(counts)):
            counts[i] += part[i] if ratio == 1 or (whole_links and i >= LINKS) else part[i] // ratio
    if flow.stored:
        part[:] = 0
        ratio = flow.runs if leaf.window == SUMMED else 1
        pk, pb, ph, pw = parts[0], parts[1], parts[2], parts[3]
        for k in range(pk):
            ck = _border(leaf.channels, pk, k + 1) - _border(leaf.channels, pk, k)
            for b in range(pb):
                cb = _border(leaf.batch, pb, b + 1) - _border(leaf.batch, pb, b)
                if leaf.window == SUMMED:
                    cb = 1
                for h in range(ph):
                    ch = _border(leaf.rows, ph, h + 1) - _border(leaf.rows, ph, h)
                    for w in range(pw):
                        cw = _border(leaf.columns, pw, w + 1) - _border(leaf.columns, pw, w)
                        size = ck * cb * ch * cw
                        if size > 0:
                            at = _tile(steps, k, b, h, w)
                            store(part, mesh.height, mesh.ports, mesh.x[at], mesh.y[at], size, loads)
        for i in range(len(counts)):
            counts[i] += part[i] // ratio


@njit(cache=True, nogil=True)
def fullest(inputs: Longs, weights: Longs, streamed: int) -> tuple[int, int]:
    """Most bytes of inputs and of weights that a buffer holds, weights as far as they are not streamed."""
    most_inputs, most_weights = 0, 0
    for i in range(len(inputs)):
        most_inputs, most_weights = max(most_inputs, inputs[i]), max(most_weights, weights[i])
    if streamed > 0:
        most_weights = min(most_weights, streamed)
    return most_inputs, most_weights


@njit(cache=True, nogil=True)
def buffer_energy(leaf: Leaf, inputs: Longs, weights: Longs, runs: int, prices: Prices) -> float:
    """pJ at the tiles' buffers outside the arrays: inputs and weights written, results read."""
    all_inputs, all_weights = 0, 0
    for i in range(len(inputs)):
        all_inputs += inputs[i]
        all_weights += weights[i]
    results: float = leaf.channels * leaf.rows * leaf.columns
    if leaf.window == SUMMED:  # what lies in the buffers besides inputs are sums, read when they are stored
        return results / runs * prices.read + all_inputs * prices.write
    written = all_weights * prices.write
    if not leaf.made:
        written /= runs
    return written + results * leaf.batch * prices.read + all_inputs * prices.write


@njit(cache=True, nogil=True)
def search(
    leaf: Leaf,
    flow: Flow,
    mesh: Mesh,
    prices: Prices,
    menu: Longs,
    tile_energy: Floats,
    tile_cycles: Floats,
    room: int,
    result_room: int,
    streamed: int,
) -> int:
    """The row of a menu of partitions that costs the leaf least, or -1 where none fits the buffers.

    Of equal ones the first.  What moves is counted for the most promising rows first, and not for those that
    cost more even without it.

    Parameters
    ----------
    menu : shares and steps per dimension, shape (rows, 8); rows of equal shares follow each other
    tile_energy, tile_cycles : per row, of the largest share on its tile; no number where it cannot be mapped
    room, result_room : bytes of a buffer, and of it for results
    streamed : bytes of a buffer through which weights are streamed, 0 where they have to fit
    """
    tiles = len(mesh.x)
    counts = np.zeros(2, dtype=np.int64)
    inputs, weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    bases, bounds = np.zeros(len(menu)), np.full(len(menu), np.inf)
    for row in range(len(menu)):
        parts = menu[row, :4]
        again = row > 0
        for i in range(4):
            again = again and parts[i] == menu[row - 1, i]
        if again:
            bases[row], bounds[row] = bases[row - 1], bounds[row - 1]
            continue
        usage(leaf, parts, mesh.idle_receive, inputs, weights)
        most_inputs, most_weights = fullest(inputs, weights, streamed)
        bases[row] = tile_energy[row] * tiles + buffer_energy(leaf, inputs, weights, flow.runs, prices)
        if result_room + most_inputs + most_weights <= room and tile_cycles[row] > 0:
            bounds[row] = bases[row] ** prices.energy_power * tile_cycles[row] ** prices.delay_power
    best, least = -1, np.inf
    for row in np.argsort(bounds):
        if bounds[row] > least or bounds[row] == np.inf:
            break
        traffic(counts, leaf, flow, mesh, menu[row, :4], menu[row, 4:], False)
        energy = bases[row] + (counts[HOPS] * prices.hop + counts[DRAM] * prices.dram)
        cycles = max(tile_cycles[row], np.ceil(counts[DRAM] / prices.rate))
        cost = energy**prices.energy_power * cycles**prices.delay_power
        if cost < least or (cost == least and row < best):
            best, least = row, cost
    return best
