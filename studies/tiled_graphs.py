"""Small graphs on 2 x 2 engines for proofs of round plans: equal layers, parts of real networks."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.exact.incumbent import coarse_sizes
from tilewright.workloads.blueprint import Blueprint
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network
from tilewright.workloads.networks.googlenet import MODULES, inception
from tilewright.workloads.networks.resnet import bottleneck, plain_block

MACHINE = "atomic-2x2"

FREE = 2.0**60
"""Bytes per cycle of links that never delay anything."""


@dataclass(frozen=True, eq=False)
class SmallGraph:
    """One case: a problem and its atoms."""

    name: str
    problem: TiledProblem
    dag: AtomicDag


def machine_of(text: str, *, free: bool) -> TiledMachine:
    """A machine as it is, or with a network that never delays anything; DRAM stays as it is."""
    machine = load_tiled_machine(text)
    if not free:
        return machine
    return machine.changed(hop_cycles=0, link_rate=FREE, port_rate=FREE, dram_port_rate=FREE)


def rows_of_layers(layers: int, width: int, machine: TiledMachine) -> SmallGraph:
    """A chain of 3x3 convolutions, each cut into as many atoms of four rows: neighbours share halos."""
    operator = conv2d(k=64, c=64, r=3, s=3, h=4 * width, w=16, pad=1)
    made = [Layer(f"layer{i}", operator, "study") for i in range(layers)]
    links = [Link(f"layer{i}", f"layer{i + 1}", "I", "x", 64 * 64 * width) for i in range(layers - 1)]
    problem = TiledProblem(Network("rows", made, links), machine, tiled_objective("makespan"))
    dag = problem.dag([AtomSize(4, 16, 64, 64)] * layers)
    return SmallGraph(f"{layers} layers of {width}", problem, dag)


def unequal_layers(atoms: int, seed: int, machine: TiledMachine) -> SmallGraph:
    """Layers of different kernels, channels and widths that read random earlier ones: costs are unequal."""
    numbers = random.Random(seed)
    made: list[Layer] = []
    links: list[Link] = []
    sizes: list[AtomSize] = []
    count = 0
    while count < atoms:
        cut = min(numbers.choice([2, 3, 4, 5]), atoms - count)
        kernel, channels = numbers.choice([1, 3, 5]), numbers.choice([32, 64, 96])
        source = numbers.choice(made[-2:]) if made else None
        inputs = 64 if source is None else source.operator.bounds["K"]
        name = f"layer{len(made)}"
        operator = conv2d(k=channels, c=inputs, r=kernel, s=kernel, h=60, w=8, pad=kernel // 2)
        if source is not None:
            links.append(Link(source.name, name, "I", "x", inputs * 480))
        made.append(Layer(name, operator, "study"))
        sizes.append(AtomSize(-(-60 // cut), 8, inputs, channels))
        count += cut
    problem = TiledProblem(Network("unequal", made, links), machine, tiled_objective("makespan"))
    return SmallGraph(f"{atoms} unequal atoms, seed {seed}", problem, problem.dag(sizes))


def block(name: str, machine: TiledMachine, most: int) -> SmallGraph:
    """A part of a real network, its layers cut coarsely into so many atoms at most."""
    net = Blueprint(name, 1)
    BLOCKS[name](net)
    problem = TiledProblem(net.network(), machine, tiled_objective("makespan"))
    dag = problem.dag(coarse_sizes(problem, most))
    return SmallGraph(f"{name}, {dag.tasks} atoms", problem, dag)


def _bottleneck(net: Blueprint) -> None:
    bottleneck(net, net.image(256, 28), 256, 1)


def _downsampling(net: Blueprint) -> None:
    bottleneck(net, net.image(256, 28), 512, 2)


def _plain(net: Blueprint) -> None:
    plain_block(net, net.image(64, 28), 64, 1)


def _cell(name: str, channels: int, rows: int) -> Callable[[Blueprint], None]:
    def build(net: Blueprint) -> None:
        inception(net, net.image(channels, rows), MODULES[name])

    return build


BLOCKS: dict[str, Callable[[Blueprint], None]] = {
    "residual block": _plain,
    "bottleneck": _bottleneck,
    "downsampling bottleneck": _downsampling,
    "inception 3a": _cell("3a", 192, 28),
    "inception 4a": _cell("4a", 480, 14),
    "inception 5a": _cell("5a", 832, 7),
}
"""A basic block of ResNet-18, blocks of ResNet-50, and cells of GoogLeNet."""
