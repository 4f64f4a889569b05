"""The fused search against plain enumeration of everything, and on cases of known value."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import count
from random import Random

import pytest
from effort import effort
from fused_brute import Listing
from fused_pricing import least_fused
from fused_tiny import (
    joined_group,
    ragged_group,
    repriced,
    set_up,
    softmax_group,
    timed,
    tiny_engine,
    tiny_group,
)
from fused_widths import random_bits, stated, widened
from particulars import particular
from stops import AfterChecks

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.fused.group_search import search_fused
from tilewright.solvers.mapping.fused.search import FusedSearch
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import conv2d, depthwise_conv2d, elementwise, gemm, matmul

HIERARCHY = cost_model("hierarchy")


def compare(
    seed: str,
    groups: int,
    machines: int = 1,
    cycles: bool = False,
    perfect: bool = True,
    drawn: Callable[[Random], FusedGroup] | None = None,
    begun: bool = False,
    three: bool = False,
) -> None:
    """The search's optimum is the least of everything that can be listed.

    Parameters
    ----------
    groups, machines : how many, and for each group machines of other energies and rooms
    cycles : whether cycles have a price
    perfect : whether tiles divide
    drawn : makes groups; by default tiny or ragged ones
    begun : whether ports take cycles to begin tiles
    three : whether machines have three levels, two of which may be homes
    """
    drawn = drawn or (tiny_group if perfect else ragged_group)
    outcomes: Counter[str] = Counter()
    for number in range(groups):
        rng = Random(f"{seed}-{number}")
        group, engine = drawn(rng), tiny_engine(rng, three)
        if cycles:
            engine = timed(rng, set_up(rng, engine) if begun else engine)
        listing = Listing(group, engine, perfect)
        for machine in range(machines):
            engine = repriced(rng, engine) if machine else engine
            factors = "perfect" if perfect else "imperfect"
            answer = search_fused(group, engine, HIERARCHY, Limits(), factors=factors)
            least = least_fused(listing, engine, answer.value)
            assert answer.complete
            assert answer.value == least, (seed, number, machine, answer.value, least)
            if least is not None:
                assert answer.bound == least
                assert answer.evaluation is not None
                assert not answer.evaluation.violations
            outcomes[f"{len(group.names)} layers"] += 1
            outcomes["none fits" if least is None else "solved"] += 1
            if answer.evaluation is not None and answer.evaluation.turns.softmaxes:
                outcomes["rows in parts"] += 1
        outcomes["trees"] += len(listing.trees)
    print(dict(outcomes))
    assert outcomes["solved"] >= (groups * machines + 1) // 2
    assert groups < 4 or outcomes["3 layers"]
    assert drawn is not softmax_group or outcomes["rows in parts"]


def test_the_optimum_is_that_of_plain_enumeration() -> None:
    """Random tiny groups, each on three tiny machines, every tree tried."""
    compare("listed", effort(4), machines=3)


def test_the_optimum_with_two_levels_for_homes_is_that_of_plain_enumeration() -> None:
    """A layer reads two results, one of them through windows, whose homes may be in different levels."""
    compare("two homes a", effort(1), machines=effort(3), drawn=window_beside_sum, three=True)


def window_beside_sum(rng: Random) -> FusedGroup:
    """A result that is read through windows, and added to what is made of it."""
    p, axes = rng.choice([2, 3]), (0, 1, 2, 3)
    layers = (
        ("a", conv2d(k=1, c=1, p=p, q=1, r=1, s=1)),
        ("b", conv2d(k=1, c=1, p=p, q=1, r=3, s=1, pad=(1, 0))),
        ("c", elementwise(shape=(1, 1, p, 1))),
    )
    readings = (
        Reading("b", "I", "a", axes, (0, 0, 1, 0)),
        Reading("c", "I0", "a", axes, (0, 0, 0, 0)),
        Reading("c", "I1", "b", axes, (0, 0, 0, 0)),
    )
    return FusedGroup(layers, readings, frozenset({"c"}))


def test_the_optimum_of_sums_with_operands_from_outside_is_that_of_plain_enumeration() -> None:
    """An operand from outside starts where the result of the group starts that it is added to."""
    compare("joined", effort(4), machines=5, drawn=joined_group)


def test_the_optimum_at_a_price_of_cycles_is_that_of_plain_enumeration() -> None:
    """The same with static power, with a price of every cycle, and for cycles alone."""
    compare("priced", effort(3), cycles=True)


def test_the_optimum_on_machines_with_set_up_cycles_is_that_of_plain_enumeration() -> None:
    """The same where ports take cycles to begin tiles and rows."""
    compare("begun", effort(1), cycles=True, begun=True)


def test_set_up_cycles_of_homes_ports_are_those_of_the_evaluator() -> None:
    """Values on three levels, which the search compares with the evaluator's, and where unfused is worse."""
    values = 0
    for number in range(effort(4)):
        rng = Random(f"begun ports-{number}")
        engine = timed(rng, set_up(rng, tiny_engine(rng, three=True)))
        answer = search_fused(tiny_group(rng), engine, HIERARCHY, Limits(), factors="perfect")
        assert answer.complete
        values += answer.value is not None
    assert values >= 2


def test_the_optimum_of_imperfect_tiles_is_that_of_plain_enumeration() -> None:
    """Pairs and residual sums whose shared and own tiles need not divide, with a price of cycles."""
    compare("ragged g", effort(1), cycles=True, perfect=False)


def test_residents_of_inner_sequences_take_room_there_alone() -> None:
    """What stays over an inner sequence's turns leaves its room to the layers of the outer one."""
    layers = (
        ("a", gemm(m=3, n=3, k=1)),
        ("s", elementwise(shape=(3, 3), operands=1)),
        ("b", gemm(m=3, n=1, k=3)),
    )
    readings = (Reading("s", "I", "a", (0, 1), (0, 0)), Reading("b", "A", "s", (0, 1), (0, 0), (1,)))
    group = FusedGroup(layers, readings, frozenset({"b"}))
    outside = MemoryLevel("L0", None, Fraction(75), Fraction(35))
    inside = MemoryLevel("L1", 8, Fraction(13), Fraction(15), may_bypass=frozenset({Role.INPUT}))
    engine = Engine("tiny", "hierarchy", 16, Fraction(1), Fraction(500), (outside, inside))
    answer = search_fused(group, engine, HIERARCHY, Limits())
    assert answer.value == answer.bound == 2550  # the least of plain enumeration


@pytest.mark.parametrize("cycles", [False, True])
def test_the_optimum_of_softmaxes_in_parts_is_that_of_plain_enumeration(cycles: bool) -> None:
    """Products behind a softmax whose rows may be cut, energy and prices of cycles."""
    compare("rows b", effort(1), 1 if cycles else 2, cycles, drawn=softmax_group)


def compare_widths(seed: str, groups: int) -> None:
    """Optima of groups that state widths, on machines that have none, are the least of everything listed."""
    solved = 0
    for number in range(groups):
        rng = Random(f"{seed}-{number}")
        group, engine, (outside, inside) = tiny_group(rng), timed(rng, tiny_engine(rng)), random_bits(rng)
        answer = search_fused(stated(group, outside, inside), engine, HIERARCHY, Limits())
        wide = widened(engine, outside, inside)
        least = least_fused(Listing(group, wide), wide, answer.value)
        assert answer.complete
        assert answer.value == least, (seed, number, answer.value, least)
        assert least is None or answer.bound == least
        solved += least is not None
    assert solved


def test_the_optimum_with_stated_widths_is_that_of_plain_enumeration() -> None:
    """Weights, operands, results and sums of other widths, with a price of cycles."""
    compare_widths("widths", effort(1))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_optimum_of_many_groups_with_stated_widths_is_that_of_plain_enumeration() -> None:
    """The same for 60 groups."""
    compare_widths("more widths", 60)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("cycles", [False, True])
@pytest.mark.parametrize("perfect", [True, False])
def test_the_optimum_of_many_softmaxes_in_parts_is_that_of_plain_enumeration(
    cycles: bool, perfect: bool
) -> None:
    """The same for 40 groups, with tiles that need not divide as well."""
    compare("many rows", 40, 1 if cycles else 30, cycles, perfect, softmax_group)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_optimum_is_that_of_plain_enumeration_for_many_groups() -> None:
    """The same for 100 groups on 30 machines each."""
    compare("much", 100, machines=30)
    compare("much joined", 60, machines=10, drawn=joined_group)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("perfect", [True, False])
def test_the_optimum_at_prices_of_cycles_is_that_of_plain_enumeration_for_many_groups(perfect: bool) -> None:
    """Prices of cycles, with tiles that divide or need not, for 100 groups."""
    compare("much", 100, cycles=True, perfect=perfect)


def test_searches_of_machines_with_particulars_do_not_fail() -> None:
    """Widths, energies and ports by role, and results that leave: every answer is legal and priced alike."""
    solved = 0
    for number in range(effort(40)):
        rng = Random(f"particular-{number}")
        group = tiny_group(rng)
        group = FusedGroup(group.layers, group.readings, frozenset(group.names))
        engine = particular(tiny_engine(rng, three=True), lambda options, rng=rng: rng.choice(list(options)))
        answer = search_fused(group, engine, HIERARCHY, Limits(seconds=1, clock=time.process_time))
        solved += answer.value is not None
    assert solved


def attention(tokens: int, width: int) -> FusedGroup:
    layers = (("qk", gemm(m=tokens, n=tokens, k=width)), ("av", gemm(m=tokens, n=width, k=tokens)))
    return FusedGroup(layers, (Reading("av", "A", "qk", (0, 1), (0, 0)),), frozenset({"av"}))


@pytest.mark.parametrize(
    ("machine", "most"),
    [
        ("tpu-edge", "1636.1"),
        pytest.param("eyeriss-168", "4153.94", marks=pytest.mark.slow),
        pytest.param("dmazerunner-256", "2854.0", marks=pytest.mark.slow),
    ],
)
def test_attention_of_512_tokens(machine: str, most: str) -> None:
    """QK and AV of BERT's 12 heads are proven at or below the energy of an earlier search, in µJ."""
    answer = search_fused(attention(512, 64), load_engine(machine), HIERARCHY, Limits())
    assert answer.complete
    assert answer.value == answer.bound
    assert answer.value is not None
    assert 12 * answer.value <= Fraction(most) * 10**6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "tokens", "width", "heads", "most"),
    [
        ("tpu-edge", 4096, 64, 12, 96165),
        ("eyeriss-168", 4096, 64, 12, 246651),
        ("dmazerunner-256", 4096, 64, 12, 173932),
        ("tpu-v4i", 2048, 128, 96, 78169),
    ],
)
def test_attention_of_more_tokens(machine: str, tokens: int, width: int, heads: int, most: int) -> None:
    """The same for 4,096 tokens, and for GPT-3's 2,048."""
    answer = search_fused(attention(tokens, width), load_engine(machine), HIERARCHY, Limits())
    assert answer.complete
    assert answer.value is not None
    assert heads * answer.value <= most * 10**6


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "most"), [("tpu-edge", 58_800_000), ("eyeriss-168", 117_100_000)])
def test_an_inverted_residual(machine: str, most: int) -> None:
    """A block of MobileNetV2 on 14x14 is proven at or below the energy of an earlier search, in pJ."""
    layers = (
        ("expand", conv2d(k=384, c=64, p=14, q=14, r=1, s=1)),
        ("dw", depthwise_conv2d(c=384, p=14, q=14, r=3, s=3, pad=1)),
        ("project", conv2d(k=64, c=384, p=14, q=14, r=1, s=1)),
    )
    readings = (
        Reading("dw", "I", "expand", (0, 1, 2, 3), (0, 0, 1, 1)),
        Reading("project", "I", "dw", (0, 1, 2, 3), (0, 0, 0, 0)),
    )
    group = FusedGroup(layers, readings, frozenset({"project"}))
    answer = search_fused(group, load_engine(machine), HIERARCHY, Limits())
    assert answer.complete
    assert answer.value is not None
    assert answer.bound == answer.value <= most


def test_a_gap_ends_the_search() -> None:
    """A search for a gap of 10 % opens less than one for the optimum, and its bound lies below that."""
    engine = load_engine("eyeriss-168")
    whole = search_fused(attention(256, 64), engine, HIERARCHY, Limits())
    close = search_fused(attention(256, 64), engine, HIERARCHY, Limits(gap=0.1))
    assert whole.value is not None
    assert close.value is not None
    assert close.bound is not None
    assert close.opened < whole.opened
    assert close.bound <= whole.value <= close.value
    assert close.value - close.bound <= Fraction(1, 10) * close.value


def test_names_axes_and_heads_do_not_change_the_optimum() -> None:
    """Renamed layers, results read transposed, and heads as a batch of products take the same energy."""
    engine = load_engine("tpu-edge")

    def least(group: FusedGroup) -> Fraction:
        answer = search_fused(group, engine, HIERARCHY, Limits())
        assert answer.complete
        assert answer.value is not None
        return answer.value

    plain = least(attention(64, 32))
    layers = (("x", gemm(m=64, n=64, k=32)), ("y", gemm(m=64, n=32, k=64, transpose_a=True)))
    turned = FusedGroup(layers, (Reading("y", "A", "x", (1, 0), (0, 0)),), frozenset({"y"}))
    assert least(turned) == plain
    heads = (("qk", matmul(m=64, n=64, k=32, batch=3)), ("av", matmul(m=64, n=32, k=64, batch=3)))
    batched = FusedGroup(heads, (Reading("av", "A", "qk", (0, 1, 2), (0, 0, 0)),), frozenset({"av"}))
    assert least(batched) == 3 * plain


def test_a_level_that_keeps_no_outputs_is_no_home() -> None:
    """On a machine whose buffer keeps no results nothing is fused, and the answer says why."""
    answer = search_fused(attention(64, 32), load_engine("nvdla-256"), HIERARCHY, Limits())
    assert answer.complete
    assert answer.value is None
    assert answer.reason == "no level can keep qk.C in both its roles"


def test_a_turn_that_a_limit_cuts_short_leaves_its_tree_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn's mapping that is not proven makes no claim, and the search goes on with the tree."""
    rng = Random("l7-12")
    group, engine = tiny_group(rng), tiny_engine(rng, True)
    whole = search_fused(group, engine, HIERARCHY, Limits())
    assert whole.value is not None
    limits, calls = Limits(), count(1)

    def stopped(problem: LayerProblem, name: str, own: Limits) -> LayerResult:
        if next(calls) < whole.solves:  # the last one
            return solve(problem, name, own)
        limits.stop.set()
        other = solve(problem.minimising(parse_objective("cycles")), name)
        return replace(other, status=Status.FEASIBLE, bound=None)

    monkeypatch.setattr("tilewright.solvers.mapping.fused.trees.turn_solver.solve", stopped)
    search = FusedSearch(group, engine, HIERARCHY, limits)
    first = search.run()
    assert not first.complete
    assert first.bound is None or first.bound <= whole.value
    assert search.run(limits=Limits()).value == whole.value


def test_a_limit_leaves_a_bound_and_what_was_found() -> None:
    """A search that ends early says so, and its bound is below the optimum."""
    engine = load_engine("tpu-edge")
    whole = search_fused(attention(256, 64), engine, HIERARCHY, Limits())
    assert whole.value is not None
    for opened in (0, 3, 20):
        limits = Limits().stopping(AfterChecks(200 + opened))
        answer = search_fused(attention(256, 64), engine, HIERARCHY, limits)
        assert answer.bound is None or answer.bound <= whole.value
        assert answer.value is None or answer.value >= whole.value
        assert answer.complete <= (answer.value == whole.value)
