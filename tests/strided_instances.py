"""Random problems of uneven storage in which tiles skip elements, and machines with near levels and an array.

A *gap* is an element between two that an operator needs which it does not need itself: a tile holds it all
the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

from machines_with_parts import leakage
from particulars import particular
from uneven_oracle import DIVISORS, LEAST, Oracle

from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Axis, Operator, Role

STRIDED = (
    "O[i,k] += A[{s}*i,j] * B[j,k]",
    "O[i,k] += A[{s}*i,{t}*j] * B[j,k]",
    "O[i,k] += A[{s}*i+{t}*j] * B[j,k]",
    "O[i,k] += A[k,{s}*i+{t}*j] * B[k,j]",  # a group for every k
    "O[i] += A[j,{s}*i+{t}*k] * B[j,k]",
    "O[{s}*i,k] += A[i,j] * B[j,k]",
    "O[i,k] += A[i,j] * B[{s}*j,k]",
    "O[{s}*i+{t}*j] += A[i,k] * B[k,j]",
    "O[k,i] += A[k,{s}*i+{t}*j]",
    "O[i,k] += A[i,{s}*i+{t}*j] * B[j,k]",
)
OVERLAPPING = (
    "O[{s}*i+{t}*j] += A[i,k] * B[k,j]",
    "O[k,{s}*i+{t}*j] += A[i] * B[k,j]",
    "O[{s}*i+{t}*j,k] += A[i,k] * B[j,k]",
    "O[k,{s}*i+{t}*j] += A[l,i] * B[k,l,j]",  # a transposed convolution
    "O[{s}*i+{t}*j,l+k] += A[i,k] * B[j,l]",
)
OBJECTIVES = ("energy", "cycles", "edp", "edp", "ed2p")
POWERS = {"energy": (1, 0), "cycles": (0, 1), "edp": (1, 1), "ed2p": (1, 2)}
INPUT, WEIGHT, OUTPUT = Role.INPUT, Role.WEIGHT, Role.OUTPUT
FACTORS = {DIVISORS: "perfect", LEAST: "imperfect"}
KEPT = (frozenset(Role), frozenset(Role), frozenset({INPUT}), frozenset({INPUT, WEIGHT}), frozenset({OUTPUT}))


def has_gap(operator: Operator) -> bool:
    """Whether the whole of some tensor holds elements that no iteration needs."""
    return any(_skips(operator, axis) for tensor in operator.tensors for axis in tensor.axes)


def _skips(operator: Operator, axis: Axis) -> bool:
    reached = {0}
    for term in axis.terms:
        reached = {start + term.stride * i for start in reached for i in range(operator.bounds[term.dim])}
    return len(reached) < axis.extent(operator.bounds)


def strided_operator(draw: random.Random, most: int) -> Operator:
    """A nest of at most so many iterations with strides and dilations, as a rule with a gap."""
    while True:
        line = draw.choice(STRIDED).format(s=draw.choice([1, 2, 2, 3, 3]), t=draw.choice([1, 1, 2, 3]))
        names = [name for name in "ijk" if name in line]
        bounds = {name: draw.choice([1, 2, 2, 3, 4]) for name in names}
        likes = dict(zip(names, draw.sample("KCP", len(names)), strict=True))
        operator = nest(line, bounds=bounds, like=likes)
        if 2 < operator.iterations <= most and (has_gap(operator) or draw.random() < 0.2):
            return operator


def overlapping_operator(draw: random.Random, most: int) -> Operator:
    """A nest of at most so many iterations in which tiles of the output overlap, or leave gaps."""
    while True:
        line = draw.choice(OVERLAPPING).format(s=draw.choice([1, 2, 2, 3, 4]), t=draw.choice([1, 1, 1, 2, 3]))
        names = [name for name in "ijkl" if name in line]
        bounds = {name: draw.choice([1, 2, 3, 4, 5, 6, 7]) for name in names}
        operator = nest(
            line, bounds=bounds, like=dict(zip(names, draw.sample("KCPR", len(names)), strict=True))
        )
        if 2 < operator.iterations <= most:
            return operator


def near_machine(draw: random.Random) -> Engine:
    """An outermost level, one or two near it, as a rule an array, and one or two levels behind it."""

    def energy(most: int) -> Fraction:
        return Fraction(draw.randint(0, most), draw.choice([1, 2]))

    def rate() -> Fraction | None:
        return draw.choice([None, Fraction(1, 4), Fraction(1, 2), Fraction(1)])

    def level(name: str, sizes: Sequence[int], most: int, keeps: frozenset[Role]) -> MemoryLevel:
        return MemoryLevel(
            name,
            draw.choice(sizes),
            energy(most),
            energy(most),
            read_bandwidth=rate(),
            write_bandwidth=rate(),
            double_buffered=draw.random() < 0.6,
            keeps=keeps,
            may_bypass=keeps & frozenset({draw.choice(list(Role))}) if draw.random() < 0.15 else frozenset(),
            sliding_window=draw.random() < 0.2,
        )

    fan = Fanout(
        (ArrayAxis("x", draw.choice([2, 2, 3, 4])),),
        energy(1),
        multicast=draw.random() < 0.7,
        reduction=draw.random() < 0.7,
    )
    levels = [replace(level("L0", [1], 60, frozenset(Role)), capacity=None, double_buffered=False)]
    levels[0] = replace(levels[0], may_bypass=frozenset(), sliding_window=False)
    kept = draw.choice([KEPT[:1], KEPT[1:]])  # a level for all, or two for some
    for index in range(len(kept[:2])):
        levels.append(level(f"L{1 + index}", [2, 3, 4, 5, 6, 8], 20, draw.choice(kept)))
    array = len(levels) - 1 if draw.random() < 0.9 else None
    for index in range(1 if len(levels) > 2 else draw.choice([1, 1, 2])):
        levels.append(level(f"R{index}", [1, 1, 2, 3], 8, draw.choice(KEPT)))
    if array is not None:
        levels[array] = replace(levels[array], fanout=fan)
    engine = Engine("near", "hierarchy", 16, energy(3), Fraction(500), tuple(levels))
    engine = particular(engine, draw.choice) if draw.random() < 0.3 else engine
    return replace(engine, leakage=leakage(draw))


@dataclass(frozen=True)
class Strided:
    """What is drawn for a seed."""

    seed: int
    objective: str
    operator: Operator
    engine: Engine

    def problem(self, kind: str) -> LayerProblem:
        """The instance over uneven storage, with the tiles of an oracle's kind."""
        objective = parse_objective(self.objective)
        return layer_problem(self.operator, self.engine, objective, factors=FACTORS[kind], storage="uneven")

    def oracle(self, kind: str, like: Oracle | None = None, **without: None) -> Oracle:
        """What enumerates it, or the same on a machine without some limits of its levels."""
        levels = tuple(replace(level, **without) for level in self.engine.levels)  # type: ignore[arg-type]
        return Oracle(self.operator, replace(self.engine, levels=levels), kind, like)

    def least(self, oracle: Oracle) -> Fraction | None:
        """The least objective key by enumeration."""
        return oracle.least(POWERS[self.objective])

    def has_few(self, kind: str, most: int) -> bool:
        """Whether it has so many arrangements at most."""
        return next(islice(self.problem(kind).arrangements(), most, None), None) is None

    @property
    def has_two_near(self) -> bool:
        """Whether two levels stand between the outermost one and the array."""
        array = next((i for i, level in enumerate(self.engine.levels) if level.fanout), 0)
        return array > 1


ROOMS = {"capacity": None}
RATES = {"read_bandwidth": None, "write_bandwidth": None, "shared_bandwidth": None}


def strided(seed: int, most: int) -> Strided:
    """A random operator of at most so many iterations on a random machine."""
    draw = random.Random(f"strided {seed}")
    objective = draw.choice(OBJECTIVES)
    return Strided(seed, objective, strided_operator(draw, most), near_machine(draw))


def overlapping(seed: int, most: int) -> Strided:
    """The same with an operator in which tiles of the output overlap."""
    draw = random.Random(f"overlapping {seed}")
    objective = draw.choice(OBJECTIVES)
    return Strided(seed, objective, overlapping_operator(draw, most), near_machine(draw))


TELLING = (
    43,
    44,
    61,
    87,
    91,
    168,
    189,
    204,
    289,
    297,
    401,
    407,
    466,
    490,
    499,
    500,
    514,
    583,
    627,
    656,
    690,
    731,
    736,
    782,
    813,
    957,
    993,
    1091,
    1108,
    1127,
    1138,
    1184,
    1193,
    1200,
    1284,
    1325,
    1329,
    1378,
    1428,
    1456,
    1461,
    1508,
    1546,
    1560,
    1578,
    1586,
    1596,
    1644,
    1648,
    1663,
    1721,
    1817,
    1820,
    1822,
    1825,
    1830,
    1836,
    1856,
    1933,
    1940,
    1969,
    2055,
    2069,
    2084,
    2115,
    2142,
    2151,
    2199,
    2222,
    2229,
)
"""Seeds of which :func:`telling` makes something, for both kinds, of six iterations and five arrangements."""


def telling(seed: int, most: int, kind: str, few: int) -> Strided | None:
    """One with a gap, a level that is made smaller until it binds, and a rate that limits; if possible."""
    draw = random.Random(f"telling {seed}")
    instance = Strided(
        seed, draw.choice(("cycles", "edp", "ed2p")), strided_operator(draw, most), near_machine(draw)
    )
    if not has_gap(instance.operator) or not instance.has_few(kind, few):
        return None
    place = draw.choice(list(range(1, len(instance.engine.levels)))[:2])
    levels = list(instance.engine.levels)
    field = draw.choice(["read_bandwidth", "write_bandwidth"])
    rate = draw.choice([Fraction(1, 4), Fraction(1, 2)])
    levels[place] = replace(levels[place], **{field: rate}, shared_bandwidth=None)  # type: ignore[arg-type]
    instance = replace(instance, engine=replace(instance.engine, levels=tuple(levels)))
    first = instance.oracle(kind, **ROOMS)
    roomy = instance.least(first)
    if instance.least(instance.oracle(kind, first, **ROOMS, **RATES)) == roomy:
        return None
    for size in (8, 6, 5, 4, 3, 2):
        levels[place] = replace(levels[place], capacity=size)
        tight = replace(instance, engine=replace(instance.engine, levels=tuple(levels)))
        least = tight.least(tight.oracle(kind, first))
        if least is None:
            return None
        if least != roomy:
            return tight
    return None
