"""What the outermost levels cost together, where tensors part there, bounds every mapping."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product as cartesian
from random import Random
from unittest import mock

import pytest
from decided import closeness, decided
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import Instance, hierarchies, leaking, mappings, operators
from stops import in_blocks_of
from written_out import keys_of_mappings

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Storage
from tilewright.formulation.mapping.parts.compulsory import least_accesses, least_key
from tilewright.formulation.mapping.parts.outer_levels import first_stores, knowing_inside, outer_problem
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Origin, Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping import large_problems, problem_kinds
from tilewright.solvers.mapping.large_problems import OF_OUTER_LEVELS, _search_tiles_of_outer_levels
from tilewright.solvers.mapping.levels import outer_bounds
from tilewright.solvers.mapping.levels.outer_bounds import OuterLevels
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import gemm

KEEPS = (
    ({Role.INPUT, Role.OUTPUT}, {Role.WEIGHT}),
    ({Role.WEIGHT}, {Role.INPUT, Role.OUTPUT}),
    ({Role.INPUT}, {Role.WEIGHT, Role.OUTPUT}),
    ({Role.OUTPUT}, set(Role)),
    ({Role.INPUT, Role.WEIGHT}, set(Role)),
)
"""What the first two levels inside the outermost one store."""


@st.composite
def parting(draw: st.DrawFn, most: int) -> Instance:
    """A problem on a machine of four or five levels, two of which are the first ones of some tensors."""
    drawn = draw(hierarchies(levels=draw(st.sampled_from([4, 4, 5])), roomy=draw(st.booleans())))
    kept = draw(st.sampled_from(KEEPS))
    levels = [replace(level, may_bypass=frozenset()) for level in drawn.levels]
    for place, roles in enumerate(kept, start=1):
        levels[place] = replace(
            levels[place], keeps=frozenset(roles), partitions={}, double_buffered=draw(st.booleans())
        )
    engine = leaking(draw, replace(drawn, levels=tuple(levels)))
    objective = draw(st.sampled_from(["energy", "cycles", "edp", "edp", "ed2p"]))
    factors = draw(st.sampled_from(["perfect", "imperfect"]))
    return Instance(draw(operators(most=most)), engine, objective, factors=factors)


def _compare(data: st.DataObject, most: int, enumerated: int) -> None:
    problem = data.draw(parting(most)).problem()
    assume(first_stores(problem) is not None)
    bound = OuterLevels(LayerSearch(problem, Limits())).least_key()
    look = data.draw(st.sampled_from([1, 30]))
    with mock.patch.multiple(outer_bounds, _LOOK=look, _EFFORT=30), in_blocks_of(1):
        early = OuterLevels(LayerSearch(problem, Limits())).least_key()
    assert early <= bound
    optimum = solve(problem, "branch").key
    if optimum:
        fewer = OuterLevels(LayerSearch(problem, Limits())).below(float(optimum) * (1 + 1e-9))
        assert fewer is not None
        assert solve(fewer, "branch").key == optimum
    for key in keys_of_mappings(data, problem, enumerated):
        assert bound <= key * (1 + 1e-12)
        assert optimum is not None
        assert optimum <= Fraction(key) * (1 + Fraction(1, 10**12))
        assert least_key(problem) <= Fraction(key) * (1 + Fraction(1, 10**12))


@settings(max_examples=effort(5))
@given(st.data())
def test_no_mapping_is_below_what_outer_levels_cost_together(data: st.DataObject) -> None:
    """All mappings written out, or random ones, cost at least the bound, and what is compulsory."""
    _compare(data, 24, 300)


@pytest.mark.slow
@settings(max_examples=effort(250))
@given(st.data())
def test_many_mappings_are_not_below_what_outer_levels_cost_together(data: st.DataObject) -> None:
    """The same, for many machines."""
    _compare(data, 48, 2_000)


def _fan(rng: Random, name: str) -> Fanout:
    axes = tuple(ArrayAxis(f"{name}{place}", rng.choice([2, 3])) for place in range(rng.choice([1, 1, 2])))
    return Fanout(axes, multicast=rng.random() < 0.7, reduction=rng.random() < 0.7)


def _free_outside(rng: Random) -> Engine:
    """A machine whose energy is spent inside its outermost level alone."""
    count = rng.choice([4, 4, 5])
    kept = [*rng.choice(KEEPS), *({role for role in Role if rng.random() < 0.6} for _ in range(count - 3))]
    levels = [MemoryLevel("DRAM", None, Fraction(0), Fraction(0))]
    for place, roles in enumerate(kept, start=1):
        read, write = (Fraction(rng.choice([0, 1, 1, 3])) for _ in range(2))
        capacity = rng.choice([1, 2, 4, 8, 16, None] if place > 2 else [16, 64, None])
        fan = _fan(rng, f"{place}") if rng.random() < 0.5 else None
        keeps = frozenset(roles or {Role.WEIGHT})
        levels.append(MemoryLevel(f"L{place}", capacity, read, write, keeps=keeps, fanout=fan))
    return Engine("inside", "hierarchy", 16, Fraction(0), Fraction(1000), tuple(levels))


def _layer(rng: Random) -> Operator:
    first, second, third = (rng.choice([2, 3, 4, 5, 6, 8]) for _ in range(3))
    if rng.random() < 0.5:
        return gemm(m=first, n=second, k=third)
    text = f"conv:N={rng.choice([1, 2])},K={rng.choice([1, 2, 4])},C={rng.choice([1, 3])},P={first},Q=2,"
    return parse_layer(f"{text}R={rng.choice([1, 2, 3])},S=1,stride={rng.choice([1, 1, 2])}")[1]


def _compare_tiles(seed: int, problems: int) -> None:
    """What outer levels cost with the very tiles of random mappings, whatever their orders of loops."""
    rng, near = Random(seed), 0
    for _ in range(problems):
        factors = rng.choice(["perfect", "imperfect"])
        problem = layer_problem(_layer(rng), _free_outside(rng), parse_objective("energy"), factors=factors)
        firsts = first_stores(problem)
        if firsts is None:
            continue
        part = outer_problem(problem, max(firsts.values()))
        knowing = knowing_inside(problem, max(firsts.values()))
        orders = [selector.domain for selector in part.space.selectors]
        for _ in range(20):
            chosen = decided(problem, rng)
            if chosen is None:
                continue
            sizes = {variable.name: size for variable, size in chosen.items()}
            tiles = {own: sizes[own.name] for group in part.space.groups for own in group.variables}
            least = min(
                evaluate(
                    part.statement.energy, {**tiles, **dict(zip(part.space.selectors, order, strict=True))}
                )
                for order in cartesian(*orders)
            )
            energy = evaluate(problem.statement.energy, chosen)
            assert least <= energy
            assert evaluate(knowing.statement.energy, chosen) == energy
            closeness(knowing, chosen)
            near += least > 0.95 * energy
    assert near > problems / 4  # so that a term that is a little too large is seen


def test_no_mapping_costs_less_than_outer_levels_with_its_tiles() -> None:
    """Random mappings on machines where all energy is spent inside the outermost level, by exact numbers."""
    _compare_tiles(0, effort(90))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_no_mapping_of_many_costs_less_than_outer_levels_with_its_tiles(seed: int) -> None:
    """The same, for many machines."""
    _compare_tiles(seed, effort(400))


@settings(max_examples=effort(12))
@given(st.data())
def test_pes_access_their_innermost_stores_at_least_so_often(data: st.DataObject) -> None:
    """Random mappings on machines whose axes carry some dimensions, with and without multicast."""
    operator, engine = data.draw(operators(most=48)), data.draw(hierarchies())
    problem = layer_problem(operator, engine, parse_objective("energy"))
    mapping = data.draw(mappings(operator, engine, False, False))
    judgement = problem.judge(mapping)
    assume(not judgement.violations)
    levels = [level.name for level in engine.levels]
    innermost = {node.tensor: levels.index(node.level) for node in mapping.nodes if isinstance(node, Storage)}
    for access in judgement.evaluation.accesses:
        tensor, level = operator.tensor(access.tensor), innermost[access.tensor]
        if access.level == levels[level]:
            counted = access.updates if tensor.is_output else access.reads
            assert counted >= least_accesses(operator, engine, tensor, level)


def two_buffers(objective: str, of_sums: int = 0, sizes: tuple[int, int, int] = (11, 12, 13)) -> LayerProblem:
    """Inputs and results pass one buffer, weights another one behind an array, smaller than all weights.

    Registers spend ``of_sums`` pJ for a sum that is read or written; ``sizes`` are those of a product.
    """
    array = Fanout((ArrayAxis("pe", 2),))
    levels = (
        MemoryLevel("DRAM", None, Fraction(200), Fraction(200), shared_bandwidth=Fraction(1, 4)),
        MemoryLevel(
            "GLB", 48, Fraction(6), Fraction(6), double_buffered=True,
            keeps=frozenset({Role.INPUT, Role.OUTPUT}), fanout=array,
        ),
        MemoryLevel(
            "WB", 40, Fraction(2), Fraction(2), double_buffered=True, keeps=frozenset({Role.WEIGHT})
        ),
        MemoryLevel("RF", 4, Fraction(of_sums), Fraction(of_sums), keeps=frozenset({Role.OUTPUT})),
    )  # fmt: skip
    engine = Engine("parting", "hierarchy", 16, Fraction(1), Fraction(1000), levels)
    m, n, k = sizes
    return layer_problem(gemm(m=m, n=n, k=k), engine, parse_objective(objective), factors="imperfect")


@pytest.mark.parametrize(("objective", "of_sums"), [("energy", 0), ("cycles", 0), ("edp", 0), ("energy", 40)])
def test_the_bound_sees_what_buffers_of_all_tensors_hold_together(objective: str, of_sums: int) -> None:
    """Weights do not fit, so that something is fetched twice: compulsory traffic is far below the optimum."""
    problem = two_buffers(objective, of_sums)
    search = LayerSearch(problem, Limits())
    optimum = solve(problem, "branch")
    assert optimum.key is not None
    assert optimum.answer is not None
    bound = OuterLevels(search).least_key()
    assert least_key(problem) < Fraction(8, 10) * optimum.key
    assert Fraction(97, 100) * optimum.key <= bound <= optimum.key
    search.offer(optimum.answer, "known", Origin.GIVEN)
    assert OuterLevels(search).least_key() == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_tiles_of_outer_levels_have_the_optimum(objective: str) -> None:
    """Searched as a large problem, first over the tiles that cost little in outer levels."""
    problem = two_buffers(objective, 10, (13, 9, 14))
    optimum = solve(problem, "branch").key
    # Without perfect factors and tiles of inner levels, which would be enough.
    without = {"MOST": 0, "firsts": lambda _problem: []}
    large = mock.patch.object(problem_kinds, "LARGE", 0)
    with large, mock.patch.multiple(large_problems, _OVER=(0.08,), **without):
        result = solve(problem, "branch")
    assert result.key == result.bound == optimum
    assert OF_OUTER_LEVELS in {point.source for point in result.trace}


def test_tiles_that_are_too_many_are_not_a_part_of_themselves() -> None:
    """A list that was not finished proves nothing about the tiles that it lacks."""
    problem = two_buffers("energy", 40)
    optimum = solve(problem, "branch").key
    assert optimum is not None
    levels, key = OuterLevels(LayerSearch(problem, Limits())), float(optimum) * 1.1
    assert levels.below(key) is not None
    with mock.patch.object(outer_bounds, "_MOST", 1):
        assert levels.below(key) is None


def test_remainders_leave_some_of_an_array_idle() -> None:
    """Four PEs add to a result: five products are two additions each, not five quarters of one."""
    zero = Fraction(0)
    adding = Fanout((ArrayAxis("adding", 4, frozenset({"C"})),), reduction=True)
    levels = (
        MemoryLevel("DRAM", None, zero, zero),
        MemoryLevel("GLB", None, zero, zero, keeps=frozenset({Role.INPUT, Role.OUTPUT})),
        MemoryLevel("WB", None, zero, zero, keeps=frozenset({Role.WEIGHT})),
        MemoryLevel("RF", None, zero, Fraction(1), keeps=frozenset({Role.OUTPUT}), fanout=adding),
        MemoryLevel("REG", None, zero, zero, keeps=frozenset({Role.WEIGHT})),
    )
    engine = Engine("adding", "hierarchy", 16, zero, Fraction(1000), levels)
    problem = layer_problem(gemm(m=6, n=7, k=5), engine, parse_objective("energy"), factors="imperfect")
    bound = OuterLevels(LayerSearch(problem, Limits())).least_key()
    assert bound == solve(problem, "branch").key == 6 * 7 * 2


@pytest.mark.parametrize("capacity", [None, 16, 64])
@pytest.mark.parametrize("sums", [2, 4])
def test_orders_count_for_tensors_that_are_stored_further_inside(capacity: int | None, sums: int) -> None:
    """Sums stay in registers while weights inside the buffer move: no order of the weights alone has that."""
    zero, three = Fraction(0), Fraction(3)
    passing = frozenset({Role.INPUT, Role.OUTPUT})
    levels = (
        MemoryLevel("DRAM", None, zero, zero),
        MemoryLevel("GLB", capacity, Fraction(1), three, keeps=passing),
        MemoryLevel("WB", 2, Fraction(1), Fraction(1), keeps=frozenset({Role.WEIGHT})),
        MemoryLevel("RF", sums, three, three, keeps=frozenset({Role.OUTPUT})),
    )
    engine = Engine("sums", "hierarchy", 16, zero, Fraction(1000), levels)
    layer = parse_layer("conv:K=1,C=1,P=8,Q=2,R=3,S=1")[1]
    problem = layer_problem(layer, engine, parse_objective("energy"), factors="imperfect")
    optimum = solve(problem, "branch").key
    assert optimum is not None
    assert 0.9 * float(optimum) <= OuterLevels(LayerSearch(problem, Limits())).least_key() <= optimum


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_a_tree_knows_what_is_inside_tiles_of_outer_levels(objective: str) -> None:
    """Few nodes prove a layer on six levels; with intervals alone forty million do not."""
    layer = parse_layer("conv:N=1,K=192,C=32,P=28,Q=28,R=1,S=1")[1]
    problem = layer_problem(layer, load_engine("simba"), parse_objective(objective), factors="imperfect")
    proven = solve(problem, "branch")
    assert proven.status is Status.OPTIMAL
    assert proven.effort.nodes < 1_500_000


class _Stopped:
    """A method that ends before it has searched anything."""

    def solve(self, search: LayerSearch) -> Outcome:
        return Outcome()


def test_a_search_of_tiles_that_stops_early_proves_nothing() -> None:
    """Then the bound is what outer levels cost, not what other tiles would."""
    search = LayerSearch(two_buffers("energy", 40), Limits())
    bound = OuterLevels(search).least_key()
    _search_tiles_of_outer_levels(search, _Stopped())
    assert search.bound is not None
    assert 0 < search.bound <= bound
