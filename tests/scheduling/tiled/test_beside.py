"""Layers beside others: legal whatever is asked, engines that others leave idle, and what siblings share."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from effort import effort
from tiled_plans import random_network

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import TiledGoal, TiledSearch
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.layouts.arranging import arranged, planned
from tilewright.heuristics.scheduling.tiled.layouts.beside import Besides, followers
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layout, Layouts
from tilewright.heuristics.scheduling.tiled.layouts.choosing import LayoutChoice
from tilewright.heuristics.scheduling.tiled.layouts.grids import Grid
from tilewright.heuristics.scheduling.tiled.layouts.journeys import touches
from tilewright.heuristics.scheduling.tiled.layouts.siblings import Operand, kept, siblings
from tilewright.heuristics.scheduling.tiled.layouts.stretches import Stretches
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.solvers.scheduling.tiled.joint_bounds import least_keys
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.pooling import pool2d
from tilewright.workloads.network import Layer, Link, Network

MACHINE = "atomic-8x8[engines=4x4,link=16]"
PRICE = 1e4


def _module(rng: random.Random | None = None) -> Network:
    """A layer that four branches read, as in an inception module: its maps have 7 x 7 results.

    Parameters
    ----------
    rng : channels of the branches are drawn; by default they leave many engines idle
    """
    counts = [48, 80, 32, 16] if rng is None else [16 * rng.randint(1, 8) for _ in range(4)]
    root = conv2d(k=64, c=16, r=1, s=1, h=7, w=7)
    layers, links = [Layer("root", root, "test")], []

    def add(name: str, operator: object, before: str, channels: int) -> None:
        layers.append(Layer(name, operator, "test"))  # type: ignore[arg-type]
        links.append(Link(before, name, operator.inputs[0].name, before, channels * 49))  # type: ignore[attr-defined]

    add("plain", conv2d(k=counts[0], c=64, r=1, s=1, h=7, w=7), "root", 64)
    add("reduce", conv2d(k=32, c=64, r=1, s=1, h=7, w=7), "root", 64)
    add("wide", conv2d(k=counts[1], c=32, r=3, s=3, h=7, w=7, pad=1), "reduce", 32)
    add("few", conv2d(k=16, c=64, r=1, s=1, h=7, w=7), "root", 64)
    add("large", conv2d(k=counts[2], c=16, r=5, s=5, h=7, w=7, pad=2), "few", 16)
    add("pool", pool2d(c=64, r=3, s=3, h=7, w=7, pad=1, stride=1), "root", 64)
    add("projection", conv2d(k=counts[3], c=64, r=1, s=1, h=7, w=7), "pool", 64)
    return Network("module", layers, links)


def _problem(network: Network, objective: str = "edp", batch: int = 1) -> TiledProblem:
    return TiledProblem(network, load_tiled_machine(MACHINE), tiled_objective(objective), batch=batch)


def _choice(problem: TiledProblem) -> LayoutChoice:
    return LayoutChoice(problem, PRICE, room=0.5, most=8).wary().apart()


def _check(problem: TiledProblem, layouts: Layouts, order: tuple[int, ...]) -> None:
    """The plan is legal and above the bound, and layers beside others have these layers' turns."""
    dag, engine, step = arranged(problem, layouts, order=order)
    result = problem.evaluate(dag, complete(dag, problem.machine, engine, step))
    assert problem.value(result) >= max(least_keys(problem)) * (1 - 1e-12)
    for unit, layout in enumerate(layouts):
        mine = slice(int(dag.base[unit]), int(dag.base[unit + 1]))
        assert set(engine[mine].tolist()) <= set(layout.engines(problem.machine.width).ravel().tolist())
    for leader, units in followers(problem, layouts, order).items():
        together = np.isin(dag.unit, [leader, *units])
        begun, ended = step[dag.unit == leader].min(), step[together].max()
        assert all(step[dag.unit == unit].min() <= step[dag.unit == leader].max() for unit in units)
        assert not ((step[~together] >= begun) & (step[~together] <= ended)).any()
        used = [set(engine[dag.unit == unit].tolist()) for unit in (leader, *units)]
        assert sum(map(len, used)) == len(set().union(*used))


@pytest.mark.parametrize("seed", range(effort(8)))
def test_layers_beside_others_make_legal_plans(seed: int) -> None:
    """What is placed beside other layers keeps their engines free, in modules of any widths."""
    rng = random.Random(seed)
    problem = _problem(_module(rng if seed else None), batch=1 + seed % 2)
    choice = _choice(problem)
    state, besides = choice.best(PRICE), Besides(choice)
    for _ in range(3):
        state = besides.placed(state, PRICE * rng.choice([0.5, 1.0, 4.0]))
        _check(problem, state, choice.order)
    if not seed:
        assert followers(problem, state, choice.order)


@pytest.mark.parametrize("seed", range(effort(12)))
def test_whatever_is_asked_the_plan_is_legal(seed: int) -> None:
    """Leaders that a layer reads or that read it, of their own leaders or with the same engines, are none."""
    rng = random.Random(seed)
    network = _module(rng) if seed % 2 else random_network(rng)
    problem = _problem(network)
    choice = _choice(problem)
    layouts = list(choice.best(PRICE))
    engines = list(range(problem.machine.engines))
    for unit in range(len(layouts)):
        if rng.random() < 0.6:
            along = tuple(rng.sample(engines, rng.randint(2, 6)))
            rows = min(2, shape_of(problem.units[unit].layer.operator).sizes[1])
            layouts[unit] = replace(
                layouts[unit],
                grid=Grid((1, rows, 1), (1, 1), inside=False, winding=True),
                along=along,
                leader=rng.randrange(len(layouts)),
            )
    _check(problem, tuple(layouts), choice.order)


def test_a_layer_that_reads_another_is_never_beside_it() -> None:
    """A reduction may run beside its sibling, and neither beside its reader nor beside what both read."""
    problem = _problem(_module())
    choice = _choice(problem)
    names = [unit.name for unit in problem.units]
    root, wide, reduce, plain = (names.index(name) for name in ("root", "wide", "reduce", "plain"))
    grid = Grid((1, 2, 1), (1, 1), inside=False, winding=True)
    small = replace(choice.best(PRICE)[wide], grid=grid, cuts=(1, 1, 1, 1))
    layouts = tuple(
        replace(small, units=layout.units, along=(2 * unit % 16, (2 * unit + 1) % 16))
        for unit, layout in enumerate(choice.best(PRICE))
    )

    def beside(unit: int, leader: int) -> bool:
        asked = (*layouts[:unit], replace(layouts[unit], leader=leader), *layouts[unit + 1 :])
        return bool(followers(problem, asked, choice.order))

    assert beside(reduce, plain)
    assert beside(plain, reduce)
    assert not beside(wide, reduce)
    assert not beside(reduce, wide)
    assert not beside(plain, root)
    assert not beside(root, plain)


def test_idle_engines_spare_cycles() -> None:
    """Layers beside others take fewer cycles than in turn where many engines are idle."""
    problem = _problem(_module())
    search = TiledSearch(TiledGoal(problem), Limits(), exact=False)
    stages, choice = Stages(search, "test"), _choice(problem)
    state = choice.best(PRICE)
    beside = Besides(choice).placed(state, PRICE)
    before = planned(stages, state, "in turn", order=choice.order)
    after = planned(stages, beside, "beside", order=choice.order)
    assert before is not None
    assert after is not None
    cycles = [problem.evaluate(made[1].dag, made[1].plan).cycles for made in (before, after)]
    assert cycles[1] < cycles[0]


@pytest.mark.parametrize("seed", range(effort(4)))
def test_changes_lie_in_their_turns(seed: int) -> None:
    """Stretches move layers beside others and back; what differs lies within the turns that are told."""
    problem = _problem(_module(random.Random(seed)))
    choice = _choice(problem)
    state = Besides(choice).placed(choice.best(PRICE), PRICE)
    stretches, moved_beside = Stretches(choice, state, random.Random(seed)), 0
    for _ in range(20):
        changes, moved = stretches._changes(state, PRICE)
        turns = [turn for change in changes for turn in change]
        assert all(before.stop <= after.start for before, after in pairwise(changes))
        assert {unit for unit, layout in enumerate(moved) if layout != state[unit]} <= {
            choice.order[turn] for turn in turns
        }
        moved_beside += any(layout.leader is not None for layout in moved)
        _check(problem, moved, choice.order)
        state = moved
    assert moved_beside


@pytest.mark.parametrize("seed", range(effort(6)))
def test_what_siblings_keep_is_counted_position_by_position(seed: int) -> None:
    """The part of what engines read again is that of all positions that each of them reads."""
    rng = random.Random(seed)
    problem = _problem(_module(rng))
    choice = _choice(problem)
    pairs = siblings(problem.units, choice.order)
    assert [problem.units[second[0]].name for _, second in pairs] == [
        problem.units[unit].name for unit in choice.order if problem.units[unit].reads[0].producer == 0
    ][1:]
    for first, second in pairs:
        before, after = (tuple(rng.choices(choice.of[index].layouts, k=6)) for index, _ in (first, second))
        table = kept(problem, first, second, before, after)
        assert table is not None
        for i, j in [(rng.randrange(6), rng.randrange(6)) for _ in range(12)]:
            had, wanted = _positions(problem, first, before[i]), _positions(problem, second, after[j])
            again = sum(len(had[engine] & positions) for engine, positions in wanted.items() if engine in had)
            assert table[i, j] == pytest.approx(again / sum(map(len, wanted.values())))


def _positions(problem: TiledProblem, operand: Operand, layout: Layout) -> dict[int, set[tuple[int, ...]]]:
    """The positions of an operand that every engine reads."""
    index, read = operand
    coordinates = touches(problem, index, read)
    assert coordinates is not None
    operator = problem.units[index].layer.operator
    borders, engines = layout.borders(operator), layout.engines(problem.machine.width)
    positions: dict[int, set[tuple[int, ...]]] = {}
    for share in np.ndindex(*engines.shape):
        if any(borders[axis][at] == borders[axis][at + 1] for axis, at in enumerate(share)):
            continue
        along = [
            touched(0, shape_of(operator).parts)
            if axis is None
            else touched(borders[axis][share[axis]], borders[axis][share[axis] + 1])
            for axis, touched in coordinates
        ]
        boxes = {(c, h, w) for c in along[0] for h in along[1] for w in along[2]}
        positions.setdefault(int(engines[share]), set()).update(boxes)
    return positions


@pytest.mark.parametrize("seed", range(effort(4)))
def test_costs_among_others_are_differences_of_the_whole_estimate(seed: int) -> None:
    """What layouts of one layer cost while others stay differs by as much as the estimates of all do."""
    rng = random.Random(seed)
    problem = _problem(_module(rng))
    choice = _choice(problem)
    state = choice.best(PRICE)
    picks = [choice.pick(unit, layout) or 0 for unit, layout in enumerate(state)]
    state = tuple(of.layouts[pick] for of, pick in zip(choice.of, picks, strict=True))

    def estimate(picks: list[int]) -> float:
        own = sum(float(choice._own(unit, PRICE)[pick]) for unit, pick in enumerate(picks))
        pairs = {**choice._energy, **choice._kept}
        return own + sum(float(choice._together((a, b), PRICE)[picks[a], picks[b]]) for a, b in pairs)

    for _ in range(10):
        unit = rng.randrange(len(picks))
        other = rng.randrange(len(choice.of[unit].layouts))
        costs = choice.among_others(state, unit, PRICE)
        moved = [*picks[:unit], other, *picks[unit + 1 :]]
        assert costs[other] - costs[picks[unit]] == pytest.approx(estimate(moved) - estimate(picks), abs=1.0)
