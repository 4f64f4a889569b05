"""What a leaf costs that runs in bands of rows, for every partition of a menu, in machine code.

All bands have one partition, each its own rows; those of a weight update are rows of the gradient.  Where
rows are not shared among tiles, the rows that a band has in common with the one before are in the buffers
already; they do not travel again.  Weights are loaded for the first band only, unless they are streamed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.set.leaf.layers import CONVOLUTION, SUMMED
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import (
    Flow,
    Leaf,
    Mesh,
    Prices,
    buffer_energy,
    usage,
)
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_traffic_kernel import traffic
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import DRAM, HOPS
from tilewright.foundation.compiled import compiled

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ENERGY, BYTES, INPUTS, WEIGHTS, ROW = range(5)
"""Columns of `band_costs`: pJ and bytes of DRAM of one sample; bytes of inputs of the largest band and of
weights in all buffers together; the row of the menu.
"""

NEVER = 1 << 40
"""Runs that share one load of weights, where a band finds them loaded."""


@compiled
def stripe_of(leaf: Leaf, low: int, high: int, known: int) -> Leaf:
    """The rows of a leaf (of a weight update, of the gradient) from ``low`` up to ``high``, where inputs
    before ``known`` do not travel.
    """
    rows, taps = high - low, leaf.taps_rows
    if leaf.window == SUMMED:
        rows, taps = leaf.rows, high - low
    return Leaf(
        window=leaf.window,
        channels=leaf.channels,
        rows=rows,
        columns=leaf.columns,
        inputs=leaf.inputs,
        taps_rows=taps,
        taps_columns=leaf.taps_columns,
        stride_rows=leaf.stride_rows,
        stride_columns=leaf.stride_columns,
        pad_rows=leaf.pad_rows,
        pad_columns=leaf.pad_columns,
        input_rows=leaf.input_rows,
        input_columns=leaf.input_columns,
        groups=leaf.groups,
        spread=leaf.spread,
        operands=leaf.operands,
        late=leaf.late,
        weighs=leaf.weighs,
        made=leaf.made,
        external=leaf.external,
        batch=leaf.batch,
        first_row=low,
        known_row=known,
        hop_rows=leaf.hop_rows,
    )


@compiled
def largest_shares(
    leaf: Leaf, borders: Longs, parts: Longs, idle: bool, inputs: Longs, weights: Longs
) -> None:
    """Fill in, per share, the most bytes of inputs of any band, and its weights."""
    one_in, one_weights = np.zeros_like(inputs), np.zeros_like(weights)
    inputs[:], weights[:] = 0, 0
    for j in range(len(borders) - 1):
        usage(stripe_of(leaf, borders[j], borders[j + 1], 0), parts, idle, one_in, one_weights)
        for i in range(len(inputs)):
            inputs[i], weights[i] = max(inputs[i], one_in[i]), max(weights[i], one_weights[i])


@compiled
def stripe_costs(
    leaf: Leaf,
    borders: Longs,
    known: Longs,
    flow: Flow,
    whole: Flow,
    estimated: bool,
    apart: bool,
    shared: bool,
    mesh: Mesh,
    prices: Prices,
    menu: Longs,
    tile_energy: Floats,
    tile_cycles: Floats,
    room: int,
    result_room: int,
    streamed: int,
    copies: int,
) -> Any:
    """One row per partition of the menu that fits the buffers, columns as listed above; and the cycles of its
    bands.

    Parameters
    ----------
    borders, known : of the bands, and the rows of inputs that each finds in the buffers
    flow : exact, or what comes from DRAM
    whole : the same with what comes directly as if it came from DRAM, where costs are only ``estimated``
    apart, shared : as in the estimates of whole layers
    tile_energy, tile_cycles : of the largest share on its tile, shape (menu, bands)
    copies : how often the inputs of a band lie in a buffer
    """
    tiles, bands = len(mesh.x), len(borders) - 1
    counts, both = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    inputs, weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    most, pinned = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    costs = np.empty((len(menu), 5), dtype=np.float64)
    cycles = np.empty((len(menu), bands), dtype=np.float64)
    rest = Flow(flow.producers, flow.layouts, flow.stored, NEVER)
    rest_whole = Flow(whole.producers, whole.layouts, whole.stored, NEVER)
    count, fits = 0, False
    for row in range(len(menu)):
        parts, steps = menu[row, :4], menu[row, 4:]
        again = row > 0
        for i in range(4):
            again = again and parts[i] == menu[row - 1, i]
        if not again:
            largest_shares(leaf, borders, parts, mesh.idle_receive, most, pinned)
            most_inputs, most_weights = 0, 0
            for i in range(tiles):
                if streamed > 0:
                    pinned[i] = min(pinned[i], streamed)
                most_inputs, most_weights = max(most_inputs, most[i]), max(most_weights, pinned[i])
            fits = result_room + copies * most_inputs + most_weights <= room
            for j in range(bands):
                fits = fits and tile_cycles[row, j] > 0
        if not fits:
            continue
        energy, moved = 0.0, 0
        for j in range(bands):
            before = known[j] if parts[2] == 1 or leaf.window == SUMMED else 0
            band = stripe_of(leaf, borders[j], borders[j + 1], before)
            again = j > 0 and streamed == 0
            now, now_whole = (rest, rest_whole) if again else (flow, whole)
            usage(band, parts, mesh.idle_receive, inputs, weights)
            traffic(counts, band, now, mesh, parts, steps, False)
            hops: float = counts[HOPS]
            if estimated:
                traffic(both, band, now_whole, mesh, parts, steps, False)
                targets = min(parts[0], leaf.channels) if shared and leaf.window == CONVOLUTION else 1
                hops += (both[DRAM] - counts[DRAM]) * (targets - 1 + (1 if apart else 0))
            energy += tile_energy[row, j] * tiles + buffer_energy(band, inputs, weights, now.runs, prices)
            energy += hops * prices.hop + counts[DRAM] * prices.dram
            moved += counts[DRAM]
            cycles[count, j] = max(tile_cycles[row, j], np.ceil(counts[DRAM] / prices.rate))
        costs[count, ENERGY], costs[count, BYTES], costs[count, ROW] = energy, moved, row
        costs[count, INPUTS], costs[count, WEIGHTS] = most.sum(), pinned.sum()
        count += 1
    return costs[:count], cycles[:count]
