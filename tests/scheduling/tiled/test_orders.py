"""Orders of layers: apart from what they read, legal as plans, and waits beyond the layers between."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from effort import effort
from tiled_plans import random_network

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import TiledGoal, TiledSearch
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.layouts.arranging import arranged, planned
from tilewright.heuristics.scheduling.tiled.layouts.choosing import LayoutChoice
from tilewright.heuristics.scheduling.tiled.layouts.orders import order_apart
from tilewright.heuristics.scheduling.tiled.layouts.stretches import Stretches
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network

MACHINE = "atomic-8x8[engines=3x2,link=8]"


def _problem(network: Network, objective: str = "edp") -> TiledProblem:
    return TiledProblem(network, load_tiled_machine(MACHINE), tiled_objective(objective))


def _branches(count: int, depth: int) -> Network:
    """A layer that so many branches of so many layers read, and one that reads the last of the first one."""
    layer = conv2d(k=16, c=16, r=1, s=1, h=8, w=8)
    layers, links = [Layer("root", layer, "test")], []
    for branch in range(count):
        before = "root"
        for number in range(depth):
            name = f"b{branch}_{number}"
            layers.append(Layer(name, layer, "test"))
            links.append(Link(before, name, "I", before, 16 * 64))
            before = name
    return Network("branches", layers, links)


def _producers(unit: Unit, at: int) -> set[int]:
    return {read.producer for read in unit.reads if read.producer is not None} - {at}


@pytest.mark.parametrize("seed", range(effort(8)))
def test_next_is_the_layer_whose_last_producer_ran_first(seed: int) -> None:
    """Every layer runs once, after what it reads, and none that could run then had waited for longer."""
    units = _problem(random_network(random.Random(seed))).units
    order = order_apart(units)
    assert sorted(order) == list(range(len(units)))
    place = {unit: at for at, unit in enumerate(order)}
    waited = {
        unit: max((place[producer] for producer in _producers(units[unit], unit)), default=-1)
        for unit in order
    }
    for at, unit in enumerate(order):
        assert waited[unit] < at
        able = [other for other in order[at:] if waited[other] < at]
        assert waited[unit] == min(waited[other] for other in able)


def test_branches_take_turns_and_chains_stay() -> None:
    """Of four branches no layer runs right after the one that it reads; a chain runs as the network says."""
    units = _problem(_branches(4, 3)).units
    order = order_apart(units)
    assert [units[unit].name for unit in order[1:5]] == [f"b{branch}_0" for branch in range(4)]
    place = {unit: at for at, unit in enumerate(order)}
    for unit in order[5:]:
        assert all(place[unit] - place[producer] == 4 for producer in _producers(units[unit], unit))
    assert order_apart(_problem(_branches(1, 5)).units) == tuple(range(6))


@pytest.mark.parametrize("seed", range(effort(4)))
def test_layers_run_in_turn_in_any_order(seed: int) -> None:
    """Atoms of layers in an order make a legal plan, one layer after the other, on the same engines."""
    rng = random.Random(seed)
    problem = _problem(_branches(3, 2) if seed % 2 else random_network(rng))
    choice = LayoutChoice(problem, 1e3, room=0.5, most=4).apart()
    layouts = choice.best(1e3)
    dag, engine, step = arranged(problem, layouts, order=choice.order)
    plain = arranged(problem, layouts)
    assert (engine == plain[1]).all()
    spans = [(int(step[dag.unit == unit].min()), int(step[dag.unit == unit].max())) for unit in choice.order]
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    problem.evaluate(dag, complete(dag, problem.machine, engine, step))


def test_waits_count_beyond_the_layers_between() -> None:
    """Of three branches waits are less by what two other layers take at least, and never negative."""
    problem = _problem(_branches(3, 2))
    near = LayoutChoice(problem, 1e3, room=0.5, most=4)
    apart = near.apart()
    pair = 1, 2
    between = apart.order[apart.order.index(1) + 1 : apart.order.index(2)]
    assert len(between) == 2
    hidden = sum(float(apart.of[unit].cycles.min()) for unit in between)
    assert apart._cycles[pair] == pytest.approx(np.maximum(0.0, near._cycles[pair] - hidden))
    assert near._cycles[pair] == pytest.approx(near._flowing[pair])
    assert all((waits >= 0.0).all() for waits in apart.waiting()._cycles.values())


def test_stretches_climb_in_an_order() -> None:
    """A climb keeps the order of its choice, and never leads to a worse plan."""
    problem = _problem(_branches(4, 2))
    search = TiledSearch(TiledGoal(problem), Limits(), exact=False)
    stages = Stages(search, "test")
    choice = LayoutChoice(problem, 1e3, room=0.5, most=4).apart()
    state = choice.best(1e3)
    base = planned(stages, state, "first", order=choice.order)
    assert base is not None
    stretches = Stretches(choice, state, random.Random(1))
    state, best = stretches.climb(stages, base, "climb", Limits(), 12)
    assert best[0] <= base[0]
    _, engine, step = arranged(problem, state, order=choice.order)
    assert (best[1].plan.engine == engine).all()
    assert (np.argsort(best[1].plan.first, kind="stable") == np.argsort(step, kind="stable")).all()
    moved = Stretches(choice, state, random.Random(2), 1).visit(stages, state, best, "visit")
    assert moved is None or moved[1][0] < best[0]


def test_inception_modules_run_reductions_before_their_readers() -> None:
    """In GoogLeNet no convolution of 3 x 3 or 5 x 5 follows right after the reduction that it reads."""
    units = _problem(resolve_model("googlenet", 1)).units
    order = order_apart(units)
    place = {units[unit].name: at for at, unit in enumerate(order)}
    modules = [name.split(".")[0] for name in place if name.endswith(".3x3")]
    assert len(modules) == 9
    for module in modules:
        for kernel in ("3x3", "5x5"):
            assert place[f"{module}.{kernel}"] - place[f"{module}.{kernel}_reduce"] >= 3
