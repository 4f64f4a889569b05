"""Orders in which layers run one after the other."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from tilewright.formulation.scheduling.tiled.units import Unit


def order_apart(units: Sequence[Unit]) -> tuple[int, ...]:
    """An order in which layers run long after those that they read, as far as others can run between.

    Next is always the layer whose last producer ran first; of several the one from which the longest way
    leads to an end of the network, so that what reads it can begin early; then the first of the network.  On
    a chain this is the network's order.

    Parameters
    ----------
    units : the layers, each after all that it reads

    Returns
    -------
    Numbers of layers, each after all that it reads
    """
    producers = [
        {read.producer for read in unit.reads if read.producer is not None and read.producer != at}
        for at, unit in enumerate(units)
    ]
    readers: list[list[int]] = [[] for _ in units]
    for at, made in enumerate(producers):
        for producer in made:
            readers[producer].append(at)
    way = [0] * len(units)
    for at in reversed(range(len(units))):
        way[at] = 1 + max((way[reader] for reader in readers[at]), default=0)
    missing = [len(made) for made in producers]
    ready = [(-1, -way[at], at) for at in range(len(units)) if not missing[at]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        unit = heapq.heappop(ready)[2]
        for reader in readers[unit]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (len(order), -way[reader], reader))
        order.append(unit)
    return tuple(order)
