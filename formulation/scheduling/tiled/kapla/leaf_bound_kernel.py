"""What one run of a layer costs at least with each of its partitions, in machine code.

Everything is exact but for what passes on directly from other layers: of that only the bytes are known, not
from which tiles they come.  Bytes that ``m`` tiles need travel over at least ``m - 1`` links, and over ``m``
where the tiles that made them are none of these.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.set.leaf.layers import CONVOLUTION
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import (
    Flow,
    Leaf,
    Mesh,
    Prices,
    buffer_energy,
    fullest,
    usage,
)
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_traffic_kernel import traffic
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import DRAM, HOPS
from tilewright.foundation.compiled import compiled

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ENERGY, CYCLES, BYTES, INPUTS, WEIGHTS, ONCE, TWICE = range(7)
"""Columns of `floor_rows`: pJ, cycles, bytes of DRAM; bytes of inputs and of weights in all buffers together;
bytes in the fullest buffer with its inputs once and twice.
"""


@compiled
def leaf_bound_rows(
    leaf: Leaf,
    fetched: Flow,
    whole: Flow,
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
) -> Floats:
    """One row per partition of the menu that fits the buffers, columns as listed above.

    Parameters
    ----------
    fetched : what comes from DRAM
    whole : the same with what comes from layers directly as if it came from DRAM, where its bytes count
    apart : whether the layers that pass on directly have tiles of their own
    shared : whether the shares of channels all read the same of what comes directly
    """
    tiles = len(mesh.x)
    counts, both = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    inputs, weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    rows = np.empty((len(menu), 7), dtype=np.float64)
    count = 0
    for row in range(len(menu)):
        parts, steps = menu[row, :4], menu[row, 4:]
        usage(leaf, parts, mesh.idle_receive, inputs, weights)
        most_inputs, most_weights = fullest(inputs, weights, streamed)
        if result_room + most_inputs + most_weights > room or tile_cycles[row] <= 0:
            continue
        traffic(counts, leaf, fetched, mesh, parts, steps, False)
        traffic(both, leaf, whole, mesh, parts, steps, False)
        targets = min(parts[0], leaf.channels) if shared and leaf.window == CONVOLUTION else 1
        links = (both[DRAM] - counts[DRAM]) * (targets - 1 + (1 if apart else 0))
        base = tile_energy[row] * tiles + buffer_energy(leaf, inputs, weights, fetched.runs, prices)
        rows[count, ENERGY] = base + (counts[HOPS] + links) * prices.hop + counts[DRAM] * prices.dram
        rows[count, CYCLES] = max(tile_cycles[row], np.ceil(counts[DRAM] / prices.rate))
        rows[count, BYTES] = counts[DRAM]
        all_inputs, all_weights, once, twice = 0, 0, 0, 0
        for i in range(tiles):
            arriving, pinned = inputs[i], weights[i]
            if streamed > 0:
                pinned = min(pinned, streamed)
            if leaf.made:
                arriving, pinned = arriving + pinned, 0
            all_inputs, all_weights = all_inputs + arriving, all_weights + pinned
            held = arriving + pinned + (result_room if arriving > 0 else 0)
            once, twice = max(once, held), max(twice, held + arriving)
        rows[count, INPUTS], rows[count, WEIGHTS] = all_inputs, all_weights
        rows[count, ONCE], rows[count, TWICE] = once, twice
        count += 1
    return rows[:count]
