"""What a leaf takes at least when the layouts of its direct producers are not known, in machine code."""

from __future__ import annotations

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import Flow, Leaf, Mesh, Prices
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_rows_kernel import leaf_rows
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled


@compiled
def least_of_rows(
    late: int,
    direct_part: float,
    direct_bytes: float,
    leaf: Leaf,
    borders: Int64s,
    known: Int64s,
    flow: Flow,
    passed: Flow,
    mesh: Mesh,
    prices: Prices,
    menu: Int64s,
    tile_energy: Floats,
    tile_cycles: Floats,
    capacity: int,
    result_bytes: int,
    streamed: int,
    copies: int,
) -> tuple[float, float, float]:
    """The least energy, cycles and bytes of DRAM of a whole leaf, each over all partitions that fit.

    Parameters
    ----------
    late : bytes among the inputs that come from late operands
    direct_part : part of the other inputs that is read directly
    direct_bytes : bytes of these inputs, each counted once
    leaf, borders, known, mesh, prices, menu, tile_energy, tile_cycles : as of `leaf_rows`, with one stripe
    flow, passed : as of `leaf_rows`, without producers that pass their results on directly
    capacity, result_bytes, streamed, copies : as of `leaf_rows`
    """
    row_of, inputs, _weights, _once, _twice, inside, hops, moved, _passed, cycles = leaf_rows(
        leaf=leaf,
        borders=borders,
        known=known,
        flow=flow,
        passed=passed,
        mesh=mesh,
        prices=prices,
        menu=menu,
        tile_energy=tile_energy,
        tile_cycles=tile_cycles,
        capacity=capacity,
        result_bytes=result_bytes,
        streamed=streamed,
        copies=copies,
    )
    least, fastest, least_moved = np.inf, np.inf, np.inf
    # Bytes that are read directly and whole pass a link for every tile but one that receives them, or DRAM
    # where that is cheaper.
    cheaper = min(prices.hop, prices.dram)
    for k in range(len(row_of)):
        copied = max(0.0, direct_part * (inputs[k] - late) - direct_bytes)
        energy = inside[k, 0] + (hops[k, 0] * prices.hop + copied * cheaper)
        energy += moved[k, 0] * prices.dram
        least = min(least, energy)
        fastest = min(fastest, cycles[k, 0])
        least_moved = min(least_moved, float(moved[k, 0]))
    return least, fastest, least_moved
