"""Links that weights pass because the engines beside the ports cannot do all work.

A byte of weights comes from a port, and whatever transfers bring it to an engine pass at least as many links
as lie between the engine and its nearest port.  Every byte of a layer's weights is multiplied equally often;
if engine ``e`` does a part ``q`` of that, the byte passes ``max d(e) >= sum of q d(e)`` links.  So a layer's
weights pass at least its bytes times the mean distance of its work.  The engines nearer than ``d`` have only
so much time: at best they do the work with the most bytes, and the other bytes pass a link to distance ``d``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.foundation.arrays import Floats
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology


def port_distances(machine: TiledMachine) -> list[int]:
    """Per engine, links between its router and that of the nearest DRAM port."""
    net = topology(machine)
    ports = range(net.engines, net.places)
    return [min(net.distance(port, engine) for port in ports) for engine in range(net.engines)]


def link_bytes(
    machine: TiledMachine,
    work: Sequence[float],
    weights: Sequence[int],
    cycles: Floats,
    windows: Sequence[Floats],
) -> Floats:
    """Bytes of weights times links that they pass at least, in plans of so many cycles.

    Parameters
    ----------
    machine : whose ports lie where
    work : per layer, cycles of one engine
    weights : per layer, bytes
    cycles : of plans
    windows : per layer, the cycles of each plan in which it can run
    """
    distances = np.array(port_distances(machine))
    total = np.zeros(len(cycles))
    order = sorted(range(len(work)), key=lambda layer: -weights[layer] / work[layer])
    for distance in range(1, int(distances.max()) + 1):
        near = int((distances < distance).sum())
        left = near * cycles
        for layer in order:
            part = np.clip(near * windows[layer] / work[layer], 0.0, 1.0)
            part = np.minimum(part, left / work[layer])
            left = left - part * work[layer]
            total += weights[layer] * (1 - part)
    return total
