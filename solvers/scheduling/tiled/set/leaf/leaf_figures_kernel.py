"""What a leaf takes at least when it is not known what its direct producers' layouts are, in machine code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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


@compiled
def least_of_rows(
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
    direct_part: float,
    direct_bytes: float,
) -> tuple[float, float, float]:
    """The least energy, cycles and bytes of DRAM over all partitions that fit, each on its own.

    Parameters
    ----------
    flow : without the producers that pass their results on directly
    menu, tile_energy, tile_cycles, room, result_room, streamed : as in `leaf_search_kernel.search`
    direct_part : part of the inputs that comes from these, whose bytes pass a link for every tile that
        receives them but one (at the price of DRAM where that is lower, which they would pass otherwise)
    direct_bytes : bytes of these inputs, each counted once
    """
    tiles = len(mesh.x)
    counts = np.zeros(2, dtype=np.int64)
    inputs, weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    late = leaf.batch * leaf.late * leaf.channels * leaf.rows * leaf.columns
    least, fastest, moved = np.inf, np.inf, np.inf
    for row in range(len(menu)):
        if tile_cycles[row] <= 0:
            continue
        usage(leaf, menu[row, :4], mesh.idle_receive, inputs, weights)
        most_inputs, most_weights = fullest(inputs, weights, streamed)
        if result_room + most_inputs + most_weights > room:
            continue
        traffic(counts, leaf, flow, mesh, menu[row, :4], menu[row, 4:], False)
        copies = max(0.0, direct_part * (np.sum(inputs) - late) - direct_bytes)
        energy = tile_energy[row] * tiles + buffer_energy(leaf, inputs, weights, flow.runs, prices)
        energy += counts[HOPS] * prices.hop + copies * min(prices.hop, prices.dram)
        energy += counts[DRAM] * prices.dram
        least = min(least, energy)
        fastest = min(fastest, max(tile_cycles[row], np.ceil(counts[DRAM] / prices.rate)))
        moved = min(moved, float(counts[DRAM]))
    return least, fastest, moved
