"""Fused groups and machines that are small enough for plain enumeration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.hardware.mapping.timing import Timing
from tilewright.solvers.mapping.fused.prices import at_price
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, depthwise_conv2d, elementwise, gemm


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


def joined_group(rng: Random) -> FusedGroup:
    """Two or three layers one of which joins a result of the group with an operand from outside."""
    m, n = rng.choice([(2, 1), (3, 1), (1, 2), (2, 2)])
    joined = rng.sample(["I0", "I1"], rng.choice([1, 1, 2]))
    layers = [("a", gemm(m=m, n=n, k=rng.choice([1, 2]))), ("b", elementwise(shape=(m, n)))]
    readings = [Reading("b", joined[0], "a", (0, 1), (0, 0))]
    if len(joined) > 1:  # neither is made in the group, but the sum is read in it
        layers = [("b", elementwise(shape=(m, n))), ("c", gemm(m=m, n=1, k=n))]
        readings = [Reading("c", "A", "b", (0, 1), (0, 0))]
    elif m * n < 4 and rng.random() < 0.5:
        layers.append(("c", gemm(m=m, n=1, k=n)))
        readings.append(Reading("c", "A", "b", (0, 1), (0, 0)))
    return FusedGroup(tuple(layers), tuple(readings), frozenset({layers[-1][0]}))


def softmax_group(rng: Random) -> FusedGroup:
    """Two or three layers with a softmax between them whose rows may come in parts."""
    kind = rng.choice(["pair", "pair", "values", "layer", "chain"])
    # Three layers with two rows take ten seconds.
    m, n, p = 2 if kind == "pair" else 1, rng.choice([4, 4, 6]), rng.choice([1, 2])
    layers: list[tuple[str, Operator]] = [("a", gemm(m=m, n=n, k=1)), ("b", gemm(m=m, n=p, k=n))]
    readings = [Reading("b", "A", "a", (0, 1), (0, 0), (1,))]
    if kind == "values":  # what is weighted by the softmax is made in the group, too
        layers.insert(1, ("v", gemm(m=n, n=p, k=1)))
        readings.append(Reading("b", "B", "v", (0, 1), (0, 0)))
    elif kind == "layer":
        layers.insert(1, ("s", elementwise(shape=(m, n), operands=1)))
        readings = [Reading("s", "I", "a", (0, 1), (0, 0)), Reading("b", "A", "s", (0, 1), (0, 0))]
        rows = frozenset({("s", 1)})
        softmaxes = frozenset({"s"})
        return FusedGroup(tuple(layers), tuple(readings), frozenset({"b"}), rows, softmaxes, True)
    elif kind == "chain":
        layers.append(("c", gemm(m=m, n=1, k=p)))
        readings.append(Reading("c", "A", "b", (0, 1), (0, 0)))
    return FusedGroup(tuple(layers), tuple(readings), frozenset({layers[-1][0]}), online_softmax=True)


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


def nested_group(rng: Random) -> FusedGroup:
    """Three layers of which two may run in an inner sequence with loops of its own, windows among them."""
    size = lambda: rng.choice([1, 2, 2, 4])  # noqa: E731
    layers: list[tuple[str, Operator]]
    if rng.random() < 0.6:
        m, n, p, q = rng.choice([2, 4]), size(), size(), size()
        layers = [("a", gemm(m=m, n=n, k=1)), ("b", gemm(m=m, n=p, k=n)), ("c", gemm(m=m, n=q, k=p))]
        readings = [Reading("b", "A", "a", (0, 1), (0, 0)), Reading("c", "A", "b", (0, 1), (0, 0))]
    else:
        p, hidden, r = rng.choice([2, 3, 4]), rng.choice([1, 2]), rng.choice([1, 3])
        layers = [
            ("a", conv2d(k=hidden, c=1, p=p, q=1, r=1, s=1)),
            ("b", depthwise_conv2d(c=hidden, p=p, q=1, r=r, s=1, pad=(r // 2, 0))),
            ("c", conv2d(k=rng.choice([1, 2]), c=hidden, p=p, q=1, r=1, s=1)),
        ]
        readings = [
            Reading("b", "I", "a", (0, 1, 2, 3), (0, 0, r // 2, 0)),
            Reading("c", "I", "b", (0, 1, 2, 3), (0, 0, 0, 0)),
        ]
    more = {name for name, _ in layers if rng.random() < 0.1}
    return FusedGroup(tuple(layers), tuple(readings), frozenset({"c", *more}))


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


def set_up(rng: Random, engine: Engine) -> Engine:
    """The machine with ports that take cycles to begin tiles and rows."""
    amount = lambda: rng.choice([Fraction(0), Fraction(1, 2), Fraction(2), Fraction(9)])  # noqa: E731
    levels = tuple(
        replace(
            level,
            timing=replace(
                level.timing,
                transfer=amount(),
                row=amount(),
                row_bits=rng.choice([None, 32]),
                refetch=bool(index) and rng.random() < 0.2,
            ),
        )
        for index, level in enumerate(engine.levels)
    )
    return replace(engine, levels=levels)


def repriced(rng: Random, engine: Engine) -> Engine:
    """The machine with other energies, rooms and banks."""
    other = tiny_engine(rng, three=len(engine.levels) == 3)
    levels = tuple(
        replace(
            level,
            capacity=drawn.capacity,
            bank=drawn.bank,
            read_energy=drawn.read_energy,
            write_energy=drawn.write_energy,
        )
        for level, drawn in zip(engine.levels, other.levels, strict=True)
    )
    return replace(engine, mac_energy=other.mac_energy, levels=levels)
