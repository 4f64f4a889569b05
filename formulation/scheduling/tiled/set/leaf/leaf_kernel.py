"""A leaf in machine code: what it computes, its shares, what they read and what lies in the buffers.

Shares are numbered ``((k * pb + b) * ph + h) * pw + w``; the tile of a share is the sum of its indices times
the steps of its partition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import (
    CONVOLUTION,
    GROUPED,
    SUM_BYTES,
    SUMMED,
    SWAPPED,
)
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import (
    CHANNELS_FROM,
    CHANNELS_TO,
    COLUMNS_FROM,
    COLUMNS_TO,
    ROWS_FROM,
    ROWS_TO,
    SAMPLES_FROM,
    SAMPLES_TO,
    Ports,
)
from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled

DIRECT, OFFSET, CHANNELS, ROLE, SCATTERED, START = range(6)
"""Columns of the producers of a flow, see `Flow`."""


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

    producers: Int64s
    layouts: Int64s
    stored: bool
    runs: int


class Mesh(NamedTuple):
    """Tiles of a leaf and DRAM's ports, and the rules that the released program bends."""

    width: int
    height: int
    x: Int64s
    y: Int64s
    ports: Ports
    idle_receive: bool
    free_concatenation: bool


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


class Shares(NamedTuple):
    """How a leaf is divided: borders of the shares of K, B, H and W, and the steps between their tiles."""

    k: Int64s
    b: Int64s
    h: Int64s
    w: Int64s
    steps: Int64s


@compiled
def _borders(size: int, parts: int) -> Int64s:
    borders = np.empty(parts + 1, dtype=np.int64)
    for index in range(parts + 1):
        borders[index] = -(-size * index // parts)
    return borders


@compiled
def divided(leaf: Leaf, parts: Int64s, steps: Int64s) -> Shares:
    """A leaf's shares by a row of a menu."""
    return Shares(
        _borders(leaf.channels, parts[0]),
        _borders(leaf.batch, parts[1]),
        _borders(leaf.rows, parts[2]),
        _borders(leaf.columns, parts[3]),
        steps,
    )


@compiled
def input_box(
    leaf: Leaf, need: Int64s, k0: int, k1: int, b0: int, b1: int, h0: int, h1: int, w0: int, w1: int
) -> None:
    """Fill in the box of inputs that a box of results reads.

    Parameters
    ----------
    leaf : whose window relates the two
    need : begin and end of input channels, samples, rows and columns, shape (8,); overwritten
    k0, k1 : output channels of the box of results
    b0, b1 : its samples
    h0, h1 : its rows, counted from the leaf's ``first_row``
    w0, w1 : its columns
    """
    need[SAMPLES_FROM], need[SAMPLES_TO] = b0, b1
    if leaf.window == SWAPPED:
        need[CHANNELS_FROM], need[CHANNELS_TO] = h0, h1
        need[ROWS_FROM], need[ROWS_TO] = k0, k1
        need[COLUMNS_FROM], need[COLUMNS_TO] = w0, w1
        return
    if leaf.window == SUMMED:
        out, into = leaf.channels // leaf.groups, leaf.inputs // leaf.groups
        need[CHANNELS_FROM] = k0 // out * into + h0 // leaf.stride_rows
        need[CHANNELS_TO] = (-(-k1 // out) - 1) * into - (-h1 // leaf.stride_rows)
        need[ROWS_FROM], need[ROWS_TO] = 0, leaf.input_rows
        need[COLUMNS_FROM], need[COLUMNS_TO] = 0, leaf.input_columns
        if leaf.hop_rows > 0:
            last = (leaf.first_row + leaf.taps_rows - 1) * leaf.hop_rows + leaf.stride_rows - leaf.pad_rows
            need[ROWS_FROM] = max(0, leaf.first_row * leaf.hop_rows - leaf.pad_rows, leaf.known_row)
            need[ROWS_TO] = max(0, min(leaf.input_rows, last))
            need[ROWS_FROM] = min(need[ROWS_FROM], need[ROWS_TO])
        return
    h0, h1 = h0 + leaf.first_row, h1 + leaf.first_row
    if leaf.spread:
        need[ROWS_FROM] = max(0, -((leaf.taps_rows - 1 - h0) // leaf.stride_rows))
        need[ROWS_TO] = max(need[ROWS_FROM], min(leaf.input_rows, (h1 - 1) // leaf.stride_rows + 1))
        need[COLUMNS_FROM] = max(0, -((leaf.taps_columns - 1 - w0) // leaf.stride_columns))
        need[COLUMNS_TO] = max(
            need[COLUMNS_FROM], min(leaf.input_columns, (w1 - 1) // leaf.stride_columns + 1)
        )
        need[ROWS_FROM] = min(need[ROWS_TO], max(need[ROWS_FROM], leaf.known_row))
        _input_channels(leaf, need, k0, k1)
        return
    need[ROWS_FROM] = max(0, h0 * leaf.stride_rows - leaf.pad_rows)
    need[ROWS_TO] = max(
        need[ROWS_FROM], min(leaf.input_rows, (h1 - 1) * leaf.stride_rows + leaf.taps_rows - leaf.pad_rows)
    )
    need[COLUMNS_FROM] = max(0, w0 * leaf.stride_columns - leaf.pad_columns)
    end = (w1 - 1) * leaf.stride_columns + leaf.taps_columns - leaf.pad_columns
    need[COLUMNS_TO] = max(need[COLUMNS_FROM], min(leaf.input_columns, end))
    need[ROWS_FROM] = min(need[ROWS_TO], max(need[ROWS_FROM], leaf.known_row))
    _input_channels(leaf, need, k0, k1)


@compiled
def _input_channels(leaf: Leaf, need: Int64s, k0: int, k1: int) -> None:
    if leaf.window == CONVOLUTION:
        need[CHANNELS_FROM], need[CHANNELS_TO] = 0, leaf.inputs
    elif leaf.window == GROUPED:
        out, into = leaf.channels // leaf.groups, leaf.inputs // leaf.groups
        need[CHANNELS_FROM], need[CHANNELS_TO] = k0 // out * into, -(-k1 // out) * into
    else:
        need[CHANNELS_FROM], need[CHANNELS_TO] = k0, k1


@compiled
def volume(need: Int64s) -> int:
    elements: int = (
        (need[CHANNELS_TO] - need[CHANNELS_FROM])
        * (need[SAMPLES_TO] - need[SAMPLES_FROM])
        * (need[ROWS_TO] - need[ROWS_FROM])
        * (need[COLUMNS_TO] - need[COLUMNS_FROM])
    )
    return elements


@compiled
def usage(leaf: Leaf, parts: Int64s, idle_receive: bool, inputs: Int64s, weights: Int64s) -> None:
    """Fill in, per share, the bytes of inputs and of weights that its tile receives.

    Operands of fused layers count as inputs, and sums of a weight update as weights.

    Parameters
    ----------
    leaf : or a stripe of one
    parts : numbers of shares along K, B, H and W, shape (4,)
    idle_receive : a defect: tiles whose share is empty receive data too
    inputs, weights : bytes per share, shape (shares,); overwritten
    """
    shares = divided(leaf, parts, parts)
    need = np.zeros(8, dtype=np.int64)
    per_channel = leaf.inputs // leaf.groups * leaf.taps_rows * leaf.taps_columns if leaf.weighs else 0
    summed = leaf.window == SUMMED
    if summed:
        per_channel = leaf.taps_rows * leaf.taps_columns
    share = -1
    for k in range(parts[0]):
        k0, k1 = shares.k[k], shares.k[k + 1]
        for b in range(parts[1]):
            b0, b1 = shares.b[b], shares.b[b + 1]
            for h in range(parts[2]):
                h0, h1 = shares.h[h], shares.h[h + 1]
                for w in range(parts[3]):
                    w0, w1 = shares.w[w], shares.w[w + 1]
                    share += 1
                    inputs[share], weights[share] = 0, 0
                    busy = k1 > k0 and b1 > b0 and h1 > h0 and w1 > w0
                    shared = leaf.window == CONVOLUTION
                    if busy or (idle_receive and shared and b1 > b0 and h1 > h0 and w1 > w0):
                        input_box(
                            leaf=leaf, need=need, k0=k0, k1=k1, b0=b0, b1=b1, h0=h0, h1=h1, w0=w0, w1=w1
                        )
                        inputs[share] = volume(need) * leaf.operands
                    inputs[share] += (k1 - k0) * (b1 - b0) * (h1 - h0) * (w1 - w0) * leaf.late
                    if summed:
                        if busy:
                            inputs[share] += (k1 - k0) * (b1 - b0) * per_channel
                            weights[share] = (k1 - k0) * (h1 - h0) * (w1 - w0) * SUM_BYTES
                    elif busy or (idle_receive and k1 > k0 and (b1 > b0 or not leaf.made)):
                        weights[share] = (k1 - k0) * per_channel * (b1 - b0 if leaf.made else 1)


@compiled
def fullest(inputs: Int64s, weights: Int64s, streamed: int) -> tuple[int, int]:
    """Most bytes of inputs and of weights that a buffer holds, weights as far as they are not streamed."""
    most_inputs, most_weights = 0, 0
    for i in range(len(inputs)):
        most_inputs, most_weights = max(most_inputs, inputs[i]), max(most_weights, weights[i])
    if streamed > 0:
        most_weights = min(most_weights, streamed)
    return most_inputs, most_weights


@compiled
def buffer_energy(leaf: Leaf, inputs: Int64s, weights: Int64s, runs: int, prices: Prices) -> float:
    """pJ at the tiles' buffers outside the arrays: inputs and weights written, results read.

    Parameters
    ----------
    leaf : or a stripe of one
    inputs, weights : bytes that each tile receives, shape (shares,), see `usage`
    runs : runs that share one load of weights, or that a weight update sums up before it is stored
    prices : pJ per byte read and written
    """
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
