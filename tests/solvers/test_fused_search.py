"""The fused search against plain enumeration of everything, and on cases of known value."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from effort import effort
from fused_brute import least_fused
from particulars import particular

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.stopping import Stop
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.hardware.mapping.timing import Timing
from tilewright.solvers.mapping.fused.prices import at_price
from tilewright.solvers.mapping.fused.search import search_fused
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, depthwise_conv2d, elementwise, gemm, matmul

HIERARCHY = cost_model("hierarchy")


def tiny_engine(rng: Random, three: bool = False) -> Engine:
    """Two or three levels without arrays, often too small for all."""
    energy = lambda: Fraction(rng.randint(1, 30), rng.choice([1, 2]))  # noqa: E731
    levels = [MemoryLevel("L0", None, energy() * 5, energy() * 5)]
    for index in range(1, 3 if three else 2):
        keeps = frozenset(Role)
        if index == 2 and rng.random() < 0.5:
            keeps = frozenset(rng.sample(sorted(Role), 2))
        bypass = frozenset(role for role in sorted(keeps) if rng.random() < 0.2)
        capacity = rng.choice([4, 6, 8, 12, 20])
        bank = rng.choice([None, None, None, 2])
        levels.append(
            MemoryLevel(
                f"L{index}",
                capacity,
                energy(),
                energy(),
                bank=bank,
                keeps=keeps,
                may_bypass=bypass,
                sliding_window=rng.random() < 0.3,
                timing=Timing(drained=rng.random() < 0.3),
            )
        )
    return Engine("tiny", "hierarchy", 16, energy(), Fraction(500), tuple(levels))


def tiny_group(rng: Random) -> FusedGroup:
    """Two or three layers with few iterations, residual sums and windows among them."""
    two = lambda: rng.choice([1, 2, 2])  # noqa: E731
    kind = rng.choice(["pair", "pair", "pair", "chain", "residual", "windows"])
    layers: list[tuple[str, Operator]]
    if kind == "pair":
        m, n = rng.choice([2, 3, 4]), 2
        layers = [("a", gemm(m=m, n=n, k=two())), ("b", gemm(m=m, n=two(), k=n))]
        readings = [Reading("b", "A", "a", (0, 1), (0, 0))]
    elif kind == "chain":
        m, n, p = rng.sample([1, 2, 2], 3)  # three loops of two iterations take ten seconds
        layers = [("a", gemm(m=m, n=n, k=1)), ("b", gemm(m=m, n=p, k=n)), ("c", gemm(m=m, n=1, k=p))]
        readings = [Reading("b", "A", "a", (0, 1), (0, 0)), Reading("c", "A", "b", (0, 1), (0, 0))]
    elif kind == "residual" and rng.random() < 0.5:
        p = rng.choice([2, 3])
        layers = [
            ("a", conv2d(k=1, c=1, p=p, q=1, r=1, s=1)),
            ("b", conv2d(k=1, c=1, p=p, q=1, r=3, s=1, pad=(1, 0))),
            ("c", elementwise(shape=(1, 1, p, 1))),
        ]
        axes = (0, 1, 2, 3)
        readings = [
            Reading("b", "I", "a", axes, (0, 0, 1, 0)),
            Reading("c", "I0", "a", axes, (0, 0, 0, 0)),
            Reading("c", "I1", "b", axes, (0, 0, 0, 0)),
        ]
    elif kind == "residual":
        m, n = rng.choice([2, 3]), 2
        layers = [("a", gemm(m=m, n=n, k=1)), ("b", gemm(m=m, n=n, k=n)), ("c", elementwise(shape=(m, n)))]
        readings = [
            Reading("b", "A", "a", (0, 1), (0, 0)),
            Reading("c", "I0", "a", (0, 1), (0, 0)),
            Reading("c", "I1", "b", (0, 1), (0, 0)),
        ]
    else:
        p, r, stride = rng.choice([2, 3, 4]), rng.choice([1, 2, 3]), rng.choice([1, 1, 2])
        pad = rng.choice([0, 1]) if r > 1 else 0
        rows = (p - 1) * stride + r - 2 * pad
        if rows < 1:
            pad, rows = 0, (p - 1) * stride + r
        layers = [
            ("a", conv2d(k=1, c=1, p=rows, q=1, r=1, s=1)),
            ("b", conv2d(k=two(), c=1, p=p, q=1, r=r, s=1, stride=(stride, 1), pad=(pad, 0))),
        ]
        readings = [Reading("b", "I", "a", (0, 1, 2, 3), (0, 0, pad, 0))]
    last = layers[-1][0]
    more = {name for name, _ in layers if rng.random() < 0.1}
    return FusedGroup(tuple(layers), tuple(readings), frozenset({last, *more}))


def ragged_group(rng: Random) -> FusedGroup:
    """Two or three layers some of whose loops have prime numbers of iterations."""
    m, n = rng.choice([3, 5, 7]), rng.choice([2, 3])
    layers: list[tuple[str, Operator]]
    if rng.random() < 0.7:
        layers = [("a", gemm(m=m, n=n, k=1)), ("b", gemm(m=m, n=rng.choice([1, 2]), k=n))]
        readings = [Reading("b", "A", "a", (0, 1), (0, 0))]
    else:
        layers = [("a", gemm(m=m, n=2, k=1)), ("b", gemm(m=m, n=2, k=2)), ("c", elementwise(shape=(m, 2)))]
        readings = [
            Reading("b", "A", "a", (0, 1), (0, 0)),
            Reading("c", "I0", "a", (0, 1), (0, 0)),
            Reading("c", "I1", "b", (0, 1), (0, 0)),
        ]
    return FusedGroup(tuple(layers), tuple(readings), frozenset({layers[-1][0]}))


def timed(rng: Random, engine: Engine) -> Engine:
    """The machine with ports, double buffers, and a price of cycles, or cycles alone."""
    rate = lambda: rng.choice([None, Fraction(rng.randint(1, 4), rng.choice([1, 2, 3]))])  # noqa: E731
    levels = tuple(
        replace(
            level,
            read_bandwidth=rate(),
            write_bandwidth=rate(),
            shared_bandwidth=rng.choice([None, None, rate()]),
            double_buffered=bool(index) and rng.random() < 0.5,
        )
        for index, level in enumerate(engine.levels)
    )
    price = rng.choice([None, Fraction(rng.randint(1, 9)), Fraction(rng.randint(10, 200), 3)])
    return at_price(replace(engine, levels=levels, leakage={"L1": Fraction(1, 2)}), price)


def compare(seed: str, count: int, cycles: bool = False, perfect: bool = True) -> None:
    """The search's optimum is the least of everything that can be listed."""
    outcomes: Counter[str] = Counter()
    for number in range(count):
        rng = Random(f"{seed}-{number}")
        group, engine = tiny_group(rng), tiny_engine(rng)
        if cycles:
            engine = timed(rng, engine)
        if not perfect:
            group = ragged_group(rng)
        least, trees = least_fused(group, engine, perfect)
        factors = "perfect" if perfect else "imperfect"
        answer = search_fused(group, engine, HIERARCHY, Limits(), factors=factors)
        assert answer.complete
        assert answer.value == least, (seed, number, answer.value, least)
        if least is not None:
            assert answer.bound == least
            assert answer.evaluation is not None
            assert not answer.evaluation.violations
        outcomes[f"{len(group.names)} layers"] += 1
        outcomes["none fits" if least is None else "solved"] += 1
        outcomes["trees"] += trees
    print(dict(outcomes))
    assert outcomes["solved"] >= count // 2
    assert count < 4 or outcomes["3 layers"]


def test_the_optimum_is_that_of_plain_enumeration() -> None:
    """Random tiny groups on tiny machines, every tree tried."""
    compare("brute", effort(4))


def test_the_optimum_at_a_price_of_cycles_is_that_of_plain_enumeration() -> None:
    """The same with static power, with a price of every cycle, and for cycles alone."""
    compare("priced", effort(3), cycles=True)


def test_the_optimum_of_imperfect_tiles_is_that_of_plain_enumeration() -> None:
    """Pairs and residual sums whose shared and own tiles need not divide, with a price of cycles."""
    compare("ragged", effort(1), cycles=True, perfect=False)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("cycles", "perfect"), [(False, True), (True, True), (True, False)])
def test_the_optimum_is_that_of_plain_enumeration_for_many_groups(cycles: bool, perfect: bool) -> None:
    """All for 1,000 groups."""
    compare("much", 1000, cycles, perfect)


def test_searches_of_machines_with_particulars_do_not_fail() -> None:
    """Widths, energies and ports by role, and results that leave: every answer is legal and priced alike."""
    solved = 0
    for number in range(effort(20)):
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
    ("machine", "most"), [("tpu-edge", "1636.1"), ("eyeriss-168", "4153.94"), ("dmazerunner-256", "2854.0")]
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


def test_a_limit_leaves_a_bound_and_what_was_found() -> None:
    """A search that ends early says so, and its bound is below the optimum."""
    engine = load_engine("tpu-edge")
    whole = search_fused(attention(256, 64), engine, HIERARCHY, Limits())
    assert whole.value is not None
    for opened in (0, 1, 3, 8, 20, 60):
        limits = Limits().stopping(AfterChecks(200 + opened))
        answer = search_fused(attention(256, 64), engine, HIERARCHY, limits)
        assert answer.bound is None or answer.bound <= whole.value
        assert answer.value is None or answer.value >= whole.value
        assert answer.complete <= (answer.value == whole.value)


class AfterChecks(Stop):
    """Ends a search after so many looks at its limits."""

    def __init__(self, most: int) -> None:
        self.left = most

    def holds(self, elapsed: float, search: object) -> bool:
        self.left -= 1
        return self.left < 0
