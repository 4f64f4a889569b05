"""Small networks and closed forms for tests on trees."""

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.released.networks import program_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, program_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine

EDGE = load_tiled_machine("set-edge-4x4")


def part(network: str, layers: tuple[int, ...]) -> SetNetwork:
    """Some layers of one of the program's networks."""
    return program_network(network).part(layers, f"{network}-part")


def form_of(network: SetNetwork, batch: int = 1) -> ClosedForm:
    """The closed form on 4 x 4 tiles."""
    return program_form(network, EDGE, batch, Rules())


def value_of(form: ClosedForm, tree: Node) -> float:
    """The objective of a tree, infinite where it does not fit."""
    cost = form.attempt(tree)
    return float("inf") if isinstance(cost, Unfit) else form.value(cost.energy, cost.cycles)
