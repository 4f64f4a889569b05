"""The machine code of trees and segments: leaves, the released program's tile, bounds and proofs."""

from __future__ import annotations

from random import Random
from typing import Final

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.set.leaf import (
    leaf_kernel,
    leaf_rows_kernel,
    leaf_search_kernel,
    leaf_traffic_kernel,
)
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.released import tile as released_tile
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import engine_form, program_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import PUBLISHED, Rules
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing
from tilewright.heuristics.scheduling.tiled.set.tree_search import Clock, TreeSearch
from tilewright.solvers.compiling import Kernels
from tilewright.solvers.scheduling.tiled.set.exact import best_tree
from tilewright.solvers.scheduling.tiled.set.leaf import leaf_figures_kernel
from tilewright.solvers.scheduling.tiled.set.trees import places_kernel
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network


def calls() -> None:
    """Call everything once, in the types that searches have, on a network of three layers."""
    operator = conv2d(k=16, c=16, r=3, s=3, h=4, w=4, pad=1)
    layers = [Layer(name, operator, "compiling") for name in ("a", "b", "c")]
    links = [Link("a", "b", "I", "x", 256), Link("b", "c", "I", "y", 256)]
    network = Network("three layers", layers, links)
    machine = load_tiled_machine("atomic-2x2")
    units = TiledProblem(network, machine, tiled_objective("edp")).units
    for make, rules in ((engine_form, Rules()), (program_form, PUBLISHED)):
        form = make(set_network(units, network.name), machine, 2, rules, energy=1.0, delay=1.0)
        search = TreeSearch(
            form, Clock(lambda: False, lambda: 1.0), Random(0), lambda tree, value: None, shakes=1
        )
        search.run()
        KaplaSolver(form, Slicing(stripes=2)).solve()
        best_tree(form, "all")


TREES: Final = Kernels(
    (__name__, "TREES"),
    (
        leaf_rows_kernel.leaf_rows,
        leaf_figures_kernel.least_of_rows,
        leaf_rows_kernel.stripe_of,
        leaf_rows_kernel.largest_shares,
        leaf_kernel.buffer_energy,
        leaf_kernel.usage,
        leaf_search_kernel.search,
        leaf_traffic_kernel.traffic,
        places_kernel.fewer,
        places_kernel.side_by_side,
        places_kernel.wider,
        released_tile.map_share,
    ),
    calls,
)
"""What methods on trees and segments need in addition to the code of plans."""
