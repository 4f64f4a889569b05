"""Groups and axes that change places: the same cost, and of images of each other one is searched."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from effort import effort
from random_machines import random_engine

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage
from tilewright.formulation.mapping.nests import exchange
from tilewright.formulation.mapping.nests.exchange import exchangeable_axes, exchangeable_groups
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout
from tilewright.hardware.mapping.load import load_engine
from tilewright.hardware.mapping.timing import Timing
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.goals import LeastEnergy, Minimum
from tilewright.solvers.mapping.tree.layout import laid_out
from tilewright.workloads.mapping.layer_text import parse_layer

LAYERS = (
    "conv:K=4,C=2,P=4,Q=4,R=2,S=2",
    "conv:K=2,C=3,P=3,Q=3,R=3,S=3,pad=1,stride=2",
    "conv:K=3,C=2,P=5,Q=5,R=2,S=2,dilation=2",
    "depthwise:C=4,P=4,Q=4,R=2,S=2",
    "nest:O[k,d,p,q] += I[c,d+t,p+r,q+s] * W[k,c,t,r,s] : k=2,c=2,d=3,p=3,q=3,t=2,r=2,s=2",
)
SMALL = ("conv:K=2,C=1,P=3,Q=3,R=2,S=2", "conv:K=3,C=1,P=4,Q=4,R=1,S=1", "gemm:M=6,N=4,K=3")
PRODUCTS = ("gemm:M=6,N=10,K=7", "matmul:B=3,M=4,N=5,K=4")


def square(engine: Engine) -> Engine:
    """The machine with arrays of two axes of one size, which carry anything."""
    levels = [
        replace(level, fanout=replace(level.fanout, axes=(ArrayAxis("x", 3), ArrayAxis("y", 3))))
        if level.fanout is not None
        else level
        for level in engine.levels
    ]
    return replace(engine, levels=tuple(levels))


def problem_of(seed: int, layers: Sequence[str], objective: str = "edp") -> LayerProblem:
    """A layer on a random machine with a square array."""
    draw = random.Random(seed)
    engine = square(random_engine(draw))
    return layer_problem(parse_layer(draw.choice(layers))[1], engine, parse_objective(objective))


def random_mapping(problem: LayerProblem, draw: random.Random) -> Mapping:
    """Any choice of rows, orders and stores, legal or not."""
    chosen = {selector: draw.choice(selector.domain) for selector in problem.space.selectors}
    for group in problem.space.groups:
        row = group.rows[draw.randrange(len(group))].tolist()
        chosen |= dict(zip(group.variables, row, strict=True))
    return problem.decode(chosen)


def costs(problem: LayerProblem, mapping: Mapping) -> tuple[Fraction, int, int]:
    """Energy, cycles, and how many rules are broken."""
    evaluation = problem.evaluate(mapping)
    return evaluation.energy, evaluation.cycles, len(evaluation.violations)


@pytest.mark.parametrize("seed", range(effort(30)))
def test_exchanged_dimensions_cost_the_same(seed: int) -> None:
    """Random mappings and their images, of every pair of groups, by the evaluator."""
    problem, draw = problem_of(seed, LAYERS), random.Random(seed)
    groups = problem.space.groups
    pairs = exchangeable_groups(problem)
    assert len(pairs) == 1 + (problem.operator.kind == "nest")
    for first, second in pairs:
        dims = dict(zip(groups[first].dims, groups[second].dims, strict=True))
        dims |= {other: dim for dim, other in dims.items()}
        for _ in range(5):
            mapping = random_mapping(problem, draw)
            image = Mapping(
                tuple(
                    node if isinstance(node, Storage) else replace(node, dim=dims.get(node.dim, node.dim))
                    for node in mapping.nodes
                )
            )
            assert (problem.outside(image) is None) == (problem.outside(mapping) is None)
            assert costs(problem, image) == costs(problem, mapping)


@pytest.mark.parametrize("seed", range(effort(30)))
def test_exchanged_axes_cost_the_same(seed: int) -> None:
    """Random mappings in which no dimension is on both axes, and their images, by the evaluator."""
    problem, draw = problem_of(seed, (*LAYERS, *PRODUCTS)), random.Random(seed)
    assert len(exchangeable_axes(problem)) == 1
    compared = 0
    while compared < 3:
        mapping = random_mapping(problem, draw)
        spread = [node for node in mapping.nodes if isinstance(node, Spatial)]
        if len({node.dim for node in spread}) < len(spread):
            continue
        image = Mapping(
            tuple(
                replace(node, axis={"x": "y", "y": "x"}[node.axis]) if isinstance(node, Spatial) else node
                for node in mapping.nodes
            )
        )
        assert costs(problem, image) == costs(problem, mapping)
        compared += 1


def small_problem(seed: int) -> LayerProblem:
    """A square layer or a product whose mappings are few, on a machine with a square array."""
    draw = random.Random(seed)
    while True:
        layer = draw.choice(
            ("conv:K=2,C=1,P=3,Q=3,R=2,S=2", "conv:K=3,C=1,P=4,Q=4,R=1,S=1", "gemm:M=6,N=4,K=3")
        )
        outer, *inner = random_engine(draw).levels
        array = Fanout((ArrayAxis("x", 3), ArrayAxis("y", 3)), Fraction(draw.randint(0, 2)))
        levels = (replace(outer, fanout=array), *(replace(level, fanout=None) for level in inner[:2]))
        engine = replace(load_engine("eyeriss-256"), levels=levels)
        objective = parse_objective(draw.choice(["edp", "energy"]))
        problem = layer_problem(parse_layer(layer)[1], engine, objective)
        if problem.space.size <= 100_000:
            return problem


@pytest.mark.parametrize("seed", range(effort(12)))
def test_the_optimum_is_that_of_enumeration(seed: int) -> None:
    """Searches of one image of two find the oracle's least key."""
    problem = small_problem(seed)
    assert exchangeable_axes(problem)
    oracle = solve(problem, "exhaustive")
    result = solve(problem, "branch")
    assert (result.status, result.key) == (oracle.status, oracle.key)


def nodes(problem: LayerProblem, *, once: bool) -> tuple[int, Fraction | None, float]:
    """What the least key and the least energy took, and both."""
    search = LayerSearch(problem, Limits())
    minimum, least = Minimum(search, "test"), LeastEnergy()
    bounded = 0
    for goal in (minimum, least):
        goal.once = once
        tree = BestFirst(search, goal, laid_out(problem, search.limits))
        assert tree.run() is None
        bounded += tree.bounded
    return bounded, search.key, least.best


@pytest.mark.parametrize("layer", [*LAYERS[:2], PRODUCTS[0]])
def test_one_of_two_images_is_searched(layer: str) -> None:
    """The same least key and least energy with fewer nodes, by groups, by axes, or by both."""
    engine = load_engine("nvdla-256")
    levels = [
        replace(level, fanout=Fanout((ArrayAxis("x", 4), ArrayAxis("y", 4)))) if level.fanout else level
        for level in engine.levels
    ]
    problem = layer_problem(
        parse_layer(layer)[1], replace(engine, levels=tuple(levels)), parse_objective("energy")
    )
    whole, half = nodes(problem, once=False), nodes(problem, once=True)
    assert half[1:] == whole[1:]
    assert half[0] < whole[0]


def test_what_tells_images_apart() -> None:
    """Demands, ports that begin rows, axes that carry one of the two, and spaces of some tiles alone."""
    operator = parse_layer(LAYERS[0])[1]
    engine, objective = square(load_engine("eyeriss-256")), parse_objective("edp")

    def found(machine: Engine, *demands: str, storage: str = "even") -> tuple[int, int]:
        problem = layer_problem(operator, machine, objective, constraints=demands, storage=storage)
        return len(exchangeable_groups(problem)), len(exchangeable_axes(problem))

    outermost, *inner = engine.levels
    assert found(engine) == found(engine, "cycles<=100000") == (1, 1)
    assert found(engine, "tile(P@RF)<=2") == found(engine, storage="uneven") == (0, 0)
    rows = replace(outermost, timing=Timing(row=Fraction(1)))
    assert found(replace(engine, levels=(rows, *inner))) == (0, 0)
    carrying = [
        replace(
            level,
            fanout=level.fanout
            and replace(level.fanout, axes=(ArrayAxis("x", 3, frozenset("PR")), ArrayAxis("y", 3))),
        )
        for level in engine.levels
    ]
    assert found(replace(engine, levels=tuple(carrying))) == (0, 0)
    problem = layer_problem(operator, engine, objective)
    first, *others = (group for group in problem.space.groups if len(group.dims) == 2)
    fewer = [g.having(g.rows[1:]) if g is first else g for g in problem.space.groups]
    part = replace(problem, space=replace(problem.space, groups=tuple(fewer)))
    assert others
    assert exchangeable_groups(part) == ()
    sides = exchange.sides(problem.space.nest, first, exchangeable_axes(problem)[0])
    one = np.flatnonzero(sides == exchange.OUTER)[:1]
    kept = [g.having(np.delete(g.rows, one, axis=0)) if g is first else g for g in problem.space.groups]
    part = replace(problem, space=replace(problem.space, groups=tuple(kept)))
    assert exchangeable_axes(part) == ()
