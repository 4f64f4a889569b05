"""Trees that decide outer tiles first: what they know of the inside, and how few nodes they take."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from decided import closeness, decided
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import hierarchies, operators
from scratchpad_machines import LAYERS, scratchpads

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.parts.outer_levels import first_levels, knowing_inside
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.levels.outside_first import seen_from_outside, ways_of_deciding
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer

ENERGY = parse_objective("energy")


def _share_known(problem: LayerProblem, rng: Random, decisions: int) -> float:
    """The largest share of a term that is known of random decisions; none costs less than is known."""
    knowing, closest = knowing_inside(problem, 1), 0.0
    for _ in range(decisions):
        chosen = decided(problem, rng)
        if chosen is not None:
            assert evaluate(knowing.statement.energy, chosen) == evaluate(problem.statement.energy, chosen)
            closest = max(closest, closeness(knowing, chosen))
    return closest


def _around_scratchpads(rng: Random) -> LayerProblem:
    engine = scratchpads(rng)
    levels = tuple(replace(level, may_bypass=frozenset()) for level in engine.levels)
    factors = rng.choice(["perfect", "imperfect"])
    layer = parse_layer(rng.choice(LAYERS))[1]
    return layer_problem(layer, replace(engine, levels=levels), ENERGY, factors=factors)


def test_no_decision_around_scratchpads_costs_less_than_what_is_known_inside() -> None:
    """Random machines and decisions; in many something is known exactly."""
    rng = Random(0)
    shares = [_share_known(_around_scratchpads(rng), rng, 20) for _ in range(effort(40))]
    assert sum(share == 1 for share in shares) > len(shares) / 4


@settings(max_examples=effort(30))
@given(st.data())
def test_no_decision_costs_less_than_what_is_known_inside(data: st.DataObject) -> None:
    """Machines of any levels and arrays that keep every tensor where they may."""
    sharing, arrays = data.draw(st.booleans()), data.draw(st.booleans())
    drawn = data.draw(hierarchies(roomy=data.draw(st.booleans()), sharing=sharing, arrays=arrays))
    levels = tuple(replace(level, may_bypass=frozenset()) for level in drawn.levels)
    operator = data.draw(operators(most=data.draw(st.sampled_from([24, 64]))))
    factors = data.draw(st.sampled_from(["perfect", "imperfect"]))
    problem = layer_problem(operator, replace(drawn, levels=levels), ENERGY, factors=factors)
    assume(first_levels(problem) is not None)
    _share_known(problem, Random(data.draw(st.integers(0, 99))), 20)


def test_which_trees_decide_outer_tiles_first() -> None:
    """For energy around scratchpads alone; elsewhere they take turns with another; not with open storage."""
    layer = parse_layer("conv:K=64,C=64,P=14,Q=14,R=3,S=3,pad=1")[1]
    chip = load_engine("eyeriss-65nm")
    stored = replace(chip, levels=tuple(replace(level, may_bypass=frozenset()) for level in chip.levels))
    around = layer_problem(layer, stored, ENERGY)
    assert seen_from_outside(around) is not None
    assert seen_from_outside(around.minimising(parse_objective("edp"))) is None
    assert seen_from_outside(layer_problem(layer, chip, ENERGY)) is None
    turns = ways_of_deciding(layer_problem(layer, load_engine("eyeriss-256"), ENERGY))
    assert [bool(deciding.stores) for _, deciding in turns] == [False, True]


def test_few_nodes_prove_a_layer_around_scratchpads() -> None:
    """Eight patterns on a preset whose scratchpads keep one tensor each; intervals alone take 25 million."""
    layer = parse_layer("conv:K=48,C=32,P=13,Q=13,R=3,S=3,pad=1")[1]
    proven = solve(layer_problem(layer, load_engine("eyeriss-65nm"), ENERGY), "branch")
    assert proven.status is Status.OPTIMAL
    assert proven.effort.nodes < 8_000_000
