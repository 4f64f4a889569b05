"""Machines with a scratchpad for each tensor: fewer orders, loops first, the optimum of plain enumeration."""

from __future__ import annotations

import random

import pytest
from effort import effort
from scratchpad_machines import LAYERS, scratchpads

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.exact import ExactReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.nests.idle_orders import idle_order_limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.problem_kinds import has_patterns
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tables.stages import has_scratchpads, stages_of
from tilewright.workloads.mapping.layer_text import parse_layer


def problem_of(seed: int) -> LayerProblem:
    draw = random.Random(seed)
    objective = parse_objective(draw.choice(["energy", "edp", "energy"]))
    factors = draw.choice(["perfect", "imperfect"])
    operator = parse_layer(draw.choice(LAYERS))[1]
    return layer_problem(operator, scratchpads(draw), objective, factors=factors)


def compared(problem: LayerProblem) -> bool:
    """Whether the search proves what all mappings in every order have at least, if these are few.

    Nearly all the time goes to the enumeration, most of it to the largest spaces.
    """
    every = problem.with_every_order()
    if every.space.size > 400_000:
        return False
    enumerated = solve(every, "exhaustive", Limits())
    found = solve(problem, "branch", Limits(threads=1))
    assert found.status is enumerated.status
    assert (found.key, found.bound) == (enumerated.key, enumerated.bound)
    return enumerated.status is Status.OPTIMAL


def test_the_optimum_is_that_of_all_mappings_in_every_order() -> None:
    """Random machines and layers."""
    assert sum(compared(problem_of(seed)) for seed in range(effort(25))) >= 3


@pytest.mark.slow
def test_the_optimum_is_that_of_all_mappings_in_every_order_of_many_machines() -> None:
    """More of them."""
    assert sum(compared(problem_of(seed)) for seed in range(1000, 1000 + effort(400))) > 40


def points(problem: LayerProblem, draw: random.Random) -> dict[Variable, int]:
    """Some tiles, orders and stores of the space."""
    values: dict[Variable, int] = {}
    for group in problem.space.groups:
        row = group.rows[draw.randrange(len(group))]
        values |= {variable: int(size) for variable, size in zip(group.variables, row, strict=True)}
    values |= {selector: draw.randrange(len(selector.domain)) for selector in problem.space.selectors}
    return values


def test_what_is_left_out_costs_as_much_with_the_first_order() -> None:
    """Tiles and stores stay; every excluded order gives way to the first one of its block."""
    excluded = 0
    for seed in range(effort(60)):
        problem, draw = problem_of(seed), random.Random(seed)
        limits = [*idle_order_limits(problem)]
        blocks = problem.space.nest.blocks
        for _ in range(200):
            drawn = points(problem, draw)
            first = dict(drawn)
            for limit in limits:
                if ExactReader(drawn).read(limit.expr) > limit.bound:
                    excluded += 1
                    (own,) = (b.selector for b in blocks if b.selector in limit.expr.support)
                    first[own] = 0
            for root in (problem.statement.energy, problem.statement.cycles):
                assert ExactReader(first).read(root) <= ExactReader(drawn).read(root)
    assert excluded > 100


def test_orders_that_make_different_mappings_stay() -> None:
    """Where every mapping is asked for, and where windows slide."""
    for layer in LAYERS[:2]:
        every = layer_problem(parse_layer(layer)[1], scratchpads(random.Random(3)), parse_objective("energy"))
        assert [*idle_order_limits(every)]
        batch = parse_layer("matmul:B=2,M=3,N=2,K=4")[1]
        every = layer_problem(batch, scratchpads(random.Random(3)), parse_objective("energy"))
        assert not [*idle_order_limits(every.with_every_order())]


def test_scratchpads_have_the_orders_of_what_is_stored_inside() -> None:
    """Inputs, weights and outputs follow each other on the preset."""
    operator = parse_layer("conv:K=64,C=256,P=56,Q=56,R=1,S=1")[1]
    problem = layer_problem(operator, load_engine("eyeriss-65nm"), parse_objective("energy"))
    nest = problem.space.nest
    labels = [[order.label for order in nest.blocks[block].orders] for block in nest.temporal]
    assert labels[1:] == [
        ["I-stationary", "O-stationary", "W-stationary"],
        ["O-stationary", "W-stationary"],
        ["O-stationary"],
        [],
    ]


def test_scratchpads_are_searched_by_patterns_and_loops() -> None:
    """Their eight patterns have machines of their own; which loops iterate comes before tiles."""
    operator = parse_layer("conv:K=64,C=256,P=56,Q=56,R=1,S=1")[1]
    problem = layer_problem(operator, load_engine("eyeriss-65nm"), parse_objective("energy"))
    assert has_scratchpads(problem.engine)
    assert has_patterns(problem)
    names = [stage.name for stage in stages_of(problem.space, inner_first=True)]
    assert names.index("loops") < min(names.index(name) for name in names if "tile" in name)
    assert not has_scratchpads(load_engine("eyeriss-168"))
    assert "loops" not in [stage.name for stage in stages_of(problem.space, spread_first=True)]


def test_a_layer_with_a_scratchpad_for_each_tensor_is_proven() -> None:
    """Some sixteen million nodes; one tree for all patterns left a gap of nine per cent after sixty."""
    operator = parse_layer("conv:K=64,C=256,P=56,Q=56,R=1,S=1")[1]
    problem = layer_problem(operator, load_engine("eyeriss-65nm"), parse_objective("energy"))
    result = solve(problem, "branch", Limits(threads=1))
    assert result.status is Status.OPTIMAL
    assert result.effort.nodes < 30_000_000
