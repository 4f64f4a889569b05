"""dMazeRunner's search: orderings, counts after each pruning, best values, options."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import dmazerunners, operators
from reference import convolution, load
from studies.dmazerunner_counting import count_tilings

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.nests.orders import all_order_classes
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.dmazerunner.orderings import loop_orderings
from tilewright.heuristics.mapping.dmazerunner.prunings import (
    Prunings,
    conditions,
    fixed_residencies,
    kept_rows,
    read_opts,
)
from tilewright.heuristics.mapping.dmazerunner.tilings import Tilings
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator

LAYERS = load("dmazerunner_optima.json", "layers")
COUNTS = load("dmazerunner_prunings.json", "tilings")
SPACES = {"1": "OPT1", "1-2": "OPT1+2", "1-3": "OPT1+2+3"}


def reuse_vector(operator: Operator, ordering: Sequence[str], trips: MappingABC[str, int]) -> dict[str, int]:
    """Algorithm 1: per operand, for how many consecutive iterations an ordering reuses its data.

    Parameters
    ----------
    ordering : loops, outermost first
    trips : iterations of every loop
    """
    result: dict[str, int] = {}
    for operand in operator.tensors:
        reuse = 1
        for loop in reversed(ordering):
            if trips[loop] == 1:
                continue
            if loop in operand.dims:
                break
            reuse *= trips[loop]
        result[operand.name] = reuse
    return result


def problem_of(layer: str, objective: str = "edp") -> LayerProblem:
    return layer_problem(
        convolution(LAYERS[layer]), load_engine("dmazerunner-256"), parse_objective(objective)
    )


def listed(problem: LayerProblem, prunings: Prunings) -> int:
    """How many tilings the enumeration yields, over all residencies."""
    space = problem.space
    demands = conditions(space.nest, prunings)
    tables = Tables(space.groups, [condition.expr for condition in demands])
    rows = [kept_rows(table, space.nest, prunings).nonzero()[0] for table in tables.tables]
    if not all(len(kept) for kept in rows):
        return 0
    tables = tables.restricted(rows)
    return sum(
        lot.shape[1]
        for residency in fixed_residencies(space.nest)
        for lot in Tilings(space.nest, tables, demands, residency).batches()
    )


def test_fifteen_orderings_of_a_convolution() -> None:
    """Algorithm 2 leaves 15 of 5040 orderings (table 2): per operand one for every set of loops."""
    operator = convolution(LAYERS["conv2_2"])
    orderings = loop_orderings(operator)
    assert len(orderings) == 15
    trips = {"N": 2, "K": 3, "C": 5, "P": 7, "Q": 11, "R": 13, "S": 17}
    vectors = {tuple(reuse_vector(operator, ordering, trips).values()) for ordering in orderings}
    assert len(vectors) == 15
    assert max(reuse_vector(operator, o, trips)["W"] for o in orderings) == 2 * 7 * 11
    assert max(reuse_vector(operator, o, trips)["O"] for o in orderings) == 5 * 13 * 17
    assert max(reuse_vector(operator, o, trips)["I"] for o in orderings) == 3


def test_three_orderings_per_level_after_opt4() -> None:
    """Maximal reuse leaves one ordering per operand, 3 x 3 for SPM and DRAM."""
    selectors = problem_of("conv2_2").space.selectors
    assert [len(selector.domain) for selector in selectors] == [3, 3]


def test_five_orderings_of_the_printed_example() -> None:
    """Figure 6: four loops with 192 iterations, of which N = 2, and C and Fy reuse the output."""
    example = nest("O[n,m] += W[m,c,f] * I[n,c,f]", bounds={"n": 2, "m": 8, "c": 4, "f": 3}, like={"m": "K"})
    orderings = loop_orderings(example)
    assert len(orderings) == 5
    vectors = [reuse_vector(example, order, example.bounds) for order in orderings]
    assert sorted((reuse["W"], reuse["I"], reuse["O"]) for reuse in vectors) == [
        (1, 1, 3),
        (1, 1, 4),
        (1, 1, 12),
        (1, 8, 1),
        (2, 1, 1),
    ]


@settings(max_examples=effort(40))
@given(operators())
def test_orderings_have_every_reuse(operator: Operator) -> None:
    """Algorithm 2 finds exactly the reuse effects that some permutation has, but for none at all."""
    never = {tensor.name: frozenset[str]() for tensor in operator.tensors}
    loops = [dim for dim, bound in operator.bounds.items() if bound > 1]
    every = {tuple(order.reused.values()) for order in all_order_classes(operator, loops, never)}
    trips = {loop: 2 + position for position, loop in enumerate(operator.bounds)}
    ones = dict.fromkeys(operator.bounds, 1)
    vectors = (
        {
            tuple(reuse_vector(operator, order, ones | {x: trips[x] for x in loops}).items())
            for order in permutations(loops)
        }
        if len(loops) <= 5
        else None
    )
    orderings = loop_orderings(operator)
    assert len(orderings) == len({effect for effect in every if any(effect)})
    if vectors is not None:
        mine = {
            tuple(reuse_vector(operator, o, ones | {x: trips[x] for x in loops}).items()) for o in orderings
        }
        assert {v for v in vectors if any(reuse > 1 for _, reuse in v)} == mine


@pytest.mark.parametrize("opts", ["none", "1", "1-2", "1-3"])
@pytest.mark.parametrize("layer", LAYERS)
def test_counts_of_tilings(layer: str, opts: str) -> None:
    """As many valid tilings as the released tool has, up to 1.16e9, without and with OPT1 to OPT3."""
    assert count_tilings(problem_of(layer), Prunings(read_opts(opts))) == COUNTS[layer][opts]


@pytest.mark.parametrize(
    ("layer", "opts"),
    [("conv5_1", "1"), ("conv5_2", "1"), ("conv4_2", "1-2"), ("conv1", "1-3"), ("conv3_2", "1-3")],
)
def test_listing_finds_as_many(layer: str, opts: str) -> None:
    """Enumeration and counting agree on published layers."""
    assert listed(problem_of(layer), Prunings(read_opts(opts))) == COUNTS[layer][opts]


@settings(max_examples=effort(25))
@given(operators(most=64), dmazerunners(), st.sampled_from(["none", "1", "2", "3", "1-3"]))
def test_listing_counts_on_random_problems(operator: Operator, engine: object, opts: str) -> None:
    """Both agree wherever counting applies."""
    try:
        problem = layer_problem(operator, engine, parse_objective("edp"))  # type: ignore[arg-type]
    except InputError:
        return
    if len(problem.space.nest.spatial) > 1:
        return
    prunings = Prunings(read_opts(opts), 0.5, 0.5, 0.2)
    assert listed(problem, prunings) == count_tilings(problem, prunings)


def test_a_layer_of_one_iteration_is_pruned_too() -> None:
    """One PE of 256 at work is below OPT1's threshold, also where there is nothing to choose."""
    _, operator = parse_layer("gemm:M=1,N=1,K=1")
    problem = layer_problem(operator, load_engine("dmazerunner-256"), parse_objective("edp"))
    assert listed(problem, Prunings(read_opts("none"))) == 1
    assert listed(problem, Prunings(read_opts("1"))) == count_tilings(problem, Prunings(read_opts("1"))) == 0
    assert "thresholds scaled by 0" in solve(problem, "dmazerunner[opt=1]", Limits(threads=1)).message


def best_values(layer: str, opts: str, objective: str) -> tuple[int, int]:
    """The method's value and the tool's."""
    result = solve(problem_of(layer, objective), f"dmazerunner[opt={opts}]", Limits(threads=1))
    (tabulated,) = (
        row["value"]
        for row in LAYERS[layer]["best"]
        if (row["space"], row["objective"]) == (SPACES[opts], objective)
    )
    assert result.key is not None
    return int(result.key), tabulated


@pytest.mark.parametrize(
    "objective", ["edp", *(pytest.param(text, marks=pytest.mark.slow) for text in ("energy", "cycles"))]
)
@pytest.mark.parametrize(
    ("layer", "opts"),
    [
        *(
            pytest.param(layer, "1-3", marks=pytest.mark.slow if layer in ("conv1", "conv2_2") else ())
            for layer in LAYERS
        ),
        *((f"conv5_{i}", opts) for i in (1, 2) for opts in ("1", "1-2")),
    ],
)
def test_best_values(layer: str, opts: str, objective: str) -> None:
    """To the last digit what the released tool finds under the same prunings."""
    searched_values, tabulated = best_values(layer, opts, objective)
    assert searched_values == tabulated


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["edp", "energy", "cycles"])
@pytest.mark.parametrize("opts", ["1", "1-2"])
@pytest.mark.parametrize("layer", ["conv1", "conv2_2", "conv3_2", "conv4_2"])
def test_best_values_of_large_spaces(layer: str, opts: str, objective: str) -> None:
    """The same over up to 1.4 million tilings."""
    searched_values, tabulated = best_values(layer, opts, objective)
    assert searched_values == tabulated


def test_opt4_and_opt5_lose_nothing() -> None:
    """All 15 x 15 orders, or one thread, give the same best value."""
    values = {
        solve(problem_of("conv5_2"), method, Limits(threads=2)).key
        for method in ("dmazerunner", "dmazerunner[opt4=off]", "dmazerunner[opt5=off]")
    }
    assert len(values) == 1


def test_thresholds_are_relaxed_where_nothing_reaches_them() -> None:
    """A layer too small for the machine still gets a mapping, unless that is switched off."""
    operator = nest("O[i] += A[i,j] * B[j]", bounds={"i": 4, "j": 4}, like={"i": "P", "j": "C"})
    problem = layer_problem(operator, load_engine("nvdla-256"), parse_objective("edp"))
    relaxed = solve(problem, "dmazerunner")
    assert relaxed.answer is not None
    assert "scaled by" in relaxed.message
    strict = solve(problem, "dmazerunner[relax=off]")
    assert strict.answer is None
    assert "left by the prunings" in strict.message


@pytest.mark.parametrize("text", ["4", "0-2", "1-", "x", "1,2", "", "2-1"])
def test_bad_sets_of_prunings(text: str) -> None:
    """Only OPT1 to OPT3 can be chosen."""
    with pytest.raises(ValueError, match="expected numbers from 1 to 3"):
        read_opts(text)


def test_counting_says_where_it_does_not_apply() -> None:
    """Constraints and imperfect factors are refused, not miscounted."""
    operator = convolution(LAYERS["conv5_2"])
    imperfect = layer_problem(operator, load_engine("nvdla-256"), parse_objective("edp"))
    with pytest.raises(ValueError, match="perfect factors"):
        count_tilings(imperfect, Prunings())


@pytest.mark.parametrize("room", [16, 24])
def test_tilings_that_fit_because_buffers_share_them(room: int) -> None:
    """Without prunings the best of all tilings is the optimum, though a tile fits only once it is shared."""
    machine = load_engine(str(Path(__file__).parents[1] / "data" / "four-nodes.yaml"))
    levels = (
        machine.levels[0],
        replace(machine.levels[1], capacity=room),
        replace(machine.levels[2], capacity=8),
    )
    operator = parse_layer("gemm:M=8,N=16,K=8")[1]
    engine = replace(machine, levels=levels)
    problem = layer_problem(operator, engine, parse_objective("energy"), None, (), "perfect")
    proven, result = solve(problem, "branch"), solve(problem, "dmazerunner[opt=none]")
    assert proven.key == proven.bound == result.key
    assert proven.evaluation is not None
    assert any(row.hops for row in proven.evaluation.accesses)
    alone = replace(levels[1], fanout=None)  # one axis of nodes, without PE arrays
    nodes = replace(engine, levels=(levels[0], alone, levels[2]))
    with pytest.raises(ValueError, match="without buffer sharing"):
        count_tilings(
            layer_problem(operator, nodes, parse_objective("energy"), None, (), "perfect"), Prunings()
        )
