"""Links that weights pass because the engines beside the ports cannot do all work.

A byte of weights comes from a port, and whatever transfers bring it to an engine pass at least as many links
as lie between the engine and its nearest port.  Every byte of a layer's weights is multiplied equally often;
if engine ``e`` does a part ``q`` of that, the byte passes ``max d(e) >= sum of q d(e)`` links.  So a layer's
weights pass at least its bytes times the mean distance of its work.  The engines nearer than ``d`` have only
so much time: at best they do the work with the most bytes, and the other bytes pass a link to distance ``d``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.foundation.arrays import Floats
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.solvers.scheduling.tiled.copies import work_and_weights


@dataclass(frozen=True, slots=True)
class WeighingLayer:
    """A layer with weights of which each byte is multiplied equally often.

    Parameters
    ----------
    unit : its number
    work : cycles that it takes one engine at the least
    weights : bytes of them
    """

    unit: int
    work: float
    weights: int


def weighing_layers(problem: TiledProblem) -> list[WeighingLayer]:
    """The convolutions and products of matrices with stored weights."""
    layers = []
    for index, unit in enumerate(problem.units):
        weighed = work_and_weights(problem, unit.layer.operator)
        if weighed is not None and unit.layer.stored_weights:
            layers.append(WeighingLayer(index, *weighed))
    return layers


def port_distances(machine: TiledMachine) -> list[int]:
    """Per engine, links between its router and that of the nearest DRAM port."""
    net = topology(machine)
    ports = range(net.engines, net.places)
    return [min(net.distance(port, engine) for port in ports) for engine in range(net.engines)]


def link_bytes(
    machine: TiledMachine, layers: Sequence[WeighingLayer], cycles: Floats, windows: Sequence[Floats]
) -> Floats:
    """Bytes of weights times links that they pass at least, in plans of so many cycles.

    Parameters
    ----------
    machine : whose ports lie where
    layers : the ones with weights
    cycles : of plans
    windows : per layer, the cycles of each plan in which it can run
    """
    distances = np.array(port_distances(machine))
    total = np.zeros(len(cycles))
    order = sorted(zip(layers, windows, strict=True), key=lambda pair: -pair[0].weights / pair[0].work)
    for distance in range(1, int(distances.max()) + 1):
        near = int((distances < distance).sum())
        left = near * cycles
        for layer, window in order:
            part = np.minimum(np.clip(near * window / layer.work, 0.0, 1.0), left / layer.work)
            left = left - part * layer.work
            total += layer.weights * (1 - part)
    return total
