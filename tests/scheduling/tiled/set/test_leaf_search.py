"""A leaf's best partition against counting every one of them, and trees that short limits leave."""

from itertools import count
from random import Random

import numpy as np
import pytest
from set_cases import EDGE, part

from tilewright.formulation.scheduling.tiled.set.leaf import leaf_kernel, leaf_traffic_kernel
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, program_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import PUBLISHED, Rules
from tilewright.heuristics.scheduling.tiled.set.annealing import first_tree
from tilewright.heuristics.scheduling.tiled.set.tree_search import Clock, TreeSearch


def costs_one_by_one(
    form: ClosedForm, layer: int, batch: int, first: int, tiles: int, stored: bool, direct: tuple[int, ...]
) -> list[float]:
    """The objective of every partition of the menu, counted link by link; infinite where it does not fit."""
    engine, prices, costs = form.engine, form.engine.prices, []
    stated = engine.statement(layer, batch, first, tiles)
    leaf, mesh, menu = stated.leaf, stated.mesh, stated.menu
    flow = engine.flow(engine.shapes[layer], stored, 1, direct)
    inputs, weights = np.zeros((2, tiles), dtype=np.int64)
    for row, each, time in zip(menu.rows, menu.energy[:, 0], menu.cycles[:, 0], strict=True):
        leaf_kernel.usage(leaf, row[:4], mesh.idle_receive, inputs, weights)
        counts = np.zeros(2 + 4 * engine.grid.tiles, dtype=np.int64)
        leaf_traffic_kernel.traffic(counts, leaf, flow, mesh, row[:4], row[4:], True)
        outside = leaf_kernel.buffer_energy(leaf, inputs, weights, 1, prices)
        spent = each * tiles + outside + (counts[0] * prices.hop + counts[1] * prices.dram)
        last = max(time, np.ceil(counts[1] / prices.rate))
        fits = engine.rules.result_bytes + inputs.max() + weights.max() <= engine.capacity and time > 0
        costs.append(float(spent**prices.energy_power * last**prices.delay_power) if fits else np.inf)
    return costs


@pytest.mark.parametrize("rules", [Rules(streamed_bytes=0), PUBLISHED], ids=["paper", "program"])
def test_the_best_partition_is_the_best_of_all(rules: Rules) -> None:
    """Of layers that read DRAM, other layers' results on other numbers of samples, or both."""
    random = Random(7)
    network = part("goog", tuple(range(3, 9)))
    form = program_form(network, EDGE, 4, rules, energy=1, delay=2)
    checked = 0
    for _ in range(60):
        layer, batch = random.randrange(len(network)), random.choice((1, 2, 4))
        tiles = random.choice((3, 4, 6, 16))
        first = random.randrange(17 - tiles)
        direct = []
        for producer in network.layers[layer].producers:
            made, spread = random.choice((1, 2, 4)), random.choice((4, 8))
            menu = form.engine.menu(producer.layer, made, spread)
            passed = random.random() < 0.7
            number = (
                form.engine.layout(producer.layer, made, 16 - spread, random.choice(menu)) if passed else -1
            )
            direct.append(number)
        stored = random.random() < 0.5
        costs = costs_one_by_one(form, layer, batch, first, tiles, stored, tuple(direct))
        leaf_cost = form.engine.leaf(layer, batch, first, tiles, stored, 1, tuple(direct))
        if leaf_cost is None:
            assert min(costs) == np.inf
        else:
            menu = form.engine.menu(layer, batch, tiles)
            assert leaf_cost.partition == menu[costs.index(min(costs))]
            checked += 1
    assert checked > 30


def test_a_short_limit_leaves_no_less_than_the_first_tree() -> None:
    """On 64 samples a search that is stopped after few looks at its clock has annealing's first tree or a
    better one, and the longer it may take the better.
    """
    network = part("goog", tuple(range(3, 9)))
    values = []
    for looks in (0, 10, 100, 300):
        form = program_form(network, EDGE, 64, Rules(), energy=1, delay=2)
        begun = first_tree(form)
        assert begun is not None
        passed = count()
        clock = Clock(lambda: next(passed) >= looks, lambda: 0.0)  # noqa: B023 - used within the loop
        search = TreeSearch(form, clock, Random(1), lambda tree, value: None)
        tree = search.run()
        assert tree is not None
        cost = form.evaluate(tree)
        assert form.value(cost.energy, cost.cycles) == pytest.approx(search.value, rel=1e-12)
        assert search.value <= begun[1]
        values.append(search.value)
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]
