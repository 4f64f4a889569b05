"""Bounds on trees of tiny networks, where what is rounded away counts, against all of their trees."""

import math

import pytest
from set_cases import EDGE, value_of

from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import HOPS
from tilewright.formulation.scheduling.tiled.set.released.builder import NetworkBuilder
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, engine_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds
from tilewright.solvers.scheduling.tiled.set.exact import best_tree
from tilewright.solvers.scheduling.tiled.set.leaf.layer_bounds import LayerBounds
from tilewright.solvers.scheduling.tiled.set.trees.enumeration import all_trees, lone_trees


def tiny_form(width: int, height: int, batch: int, energy: float, delay: float) -> ClosedForm:
    """Weights of nine, one and four bytes, which runs that share a load count less of."""
    net = NetworkBuilder("tiny")
    first = net.conv("a", 1, 1, 7, taps=3, source=(7, 7))
    net.conv("b", 1, 1, 7)
    net.conv("c", 1, 1, 6, (first,), taps=2)
    ports = ((0, 0), (width - 1, height - 1))
    machine = EDGE.changed(width=width, height=height, dram_ports=tuple(dict.fromkeys(ports)))
    return engine_form(net.build(), machine, batch, Rules(), energy=energy, delay=delay)


@pytest.mark.parametrize(("width", "height", "batch"), [(1, 1, 2), (2, 1, 4), (1, 3, 3), (4, 4, 1)])
@pytest.mark.parametrize(("energy", "delay"), [(1, 1), (1, 2)])
def test_bound_of_tiny_networks(width: int, height: int, batch: int, energy: float, delay: float) -> None:
    """No tree lies below the bound, and the best one is found, also where floors of energy are negative."""
    form = tiny_form(width, height, batch, energy, delay)
    trees = [*all_trees(form.network, batch), *lone_trees(form.network, batch)]
    costs = [form.attempt(tree) for tree in trees]
    least = min(form.value(cost.energy, cost.cycles) for cost in costs if not isinstance(cost, Unfit))
    assert 0 <= tree_bounds(form).value <= least
    proof = best_tree(form, "all")
    assert proof.proven
    assert math.isclose(proof.value, least, rel_tol=1e-12)


@pytest.mark.parametrize(("width", "height"), [(1, 2), (2, 1)])
@pytest.mark.parametrize("batch", [1, 2])
def test_odd_bytes_may_all_come_from_the_near_port(width: int, height: int, batch: int) -> None:
    """A byte shared out over the ports comes from one of them, here the nearest to the tile that reads
    it; so a tree takes fewer hops than bytes at the mean distance from the ports, and is not bounded away.
    """
    net = NetworkBuilder("apart")
    net.conv("even", 2, 2, 1, source=(1, 1))
    net.conv("odd", 1, 1, 1, source=(1, 1))
    machine = EDGE.changed(
        width=width, height=height, dram_ports=((0, 0), (width - 1, height - 1)), hop_energy=1000.0
    )
    form = engine_form(net.build(), machine, batch, Rules(), energy=1, delay=0)
    trees = [*all_trees(form.network, batch), *lone_trees(form.network, batch)]
    best = form.evaluate(min(trees, key=lambda tree: value_of(form, tree)))
    lower_bounds = LayerBounds(form)
    at_mean_distance = sum(lower_bounds.compulsory) * lower_bounds.reach
    assert best.counts[HOPS] * (batch // best.node.batch) < at_mean_distance
    assert tree_bounds(form).value <= best.energy
    result = best_tree(form, "all")
    assert result.proven
    assert math.isclose(result.value, best.energy, rel_tol=1e-12)
