"""The ways of data to and from DRAM."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.plan_kernel import Network
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.compiled import compiled

BLOCK, SOURCE, TARGET, FIRST, LAST = range(5)
"""Columns of moves: the block, where it leaves and arrives, its first and its last step."""


class Ports(NamedTuple):
    """The way to DRAM: routes, their hops, and the bytes that this step has put on every port so far."""

    net: Network
    hops: Int32s
    load: Floats


@compiled
def nearest_port(ports: Ports, e: int, size: int, inward: bool) -> Any:  # pragma: no cover
    """The port with the least load of this step, distances counted in.

    Parameters
    ----------
    ports : the ports; the chosen one's load grows by the bytes
    e : the engine
    size : bytes
    inward : whether they go from DRAM to the engine
    """
    engines, places = ports.net.engines, ports.net.places
    best, least = engines, np.inf
    for port in range(engines, places):
        distance = ports.hops[port * places + e] if inward else ports.hops[e * places + port]
        cost = ports.load[port - engines] + 0.25 * size * distance
        if cost < least:
            best, least = port, cost
    ports.load[best - engines] += size
    return best


@compiled
def send_results(
    p: int,
    leaving: Int32s,
    moves: Any,
    block: Int32s,
    where: Int32s,
    stored: Int32s,
    ports: Ports,
    block_bytes: Int64s,
) -> Any:  # pragma: no cover
    """Write-backs, in step ``p``, of results that leave the network; how many there are.

    Parameters
    ----------
    p : the step
    leaving : copies to write back
    moves : rows (block, source, target, first, last) to fill
    block, where : per copy, its block and its engine
    stored : per block, the step in which it is written back; changed in place
    ports : ways to DRAM
    block_bytes : per block
    """
    for q in range(len(leaving)):
        node = leaving[q]
        b, e = block[node], where[node]
        moves[q, BLOCK], moves[q, SOURCE] = b, e
        moves[q, TARGET] = nearest_port(ports, e, block_bytes[b], False)
        moves[q, FIRST], moves[q, LAST] = p, p
        stored[b] = p
    return len(leaving)
