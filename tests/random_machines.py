"""Random machines of two to six levels, and the machines of fewer levels that they hold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Role

LAYERS = (
    "gemm:M=6,N=10,K=7",
    "gemm:M=1,N=64,K=24",
    "matmul:B=3,M=8,N=8,K=4",
    "conv:K=4,C=3,P=5,Q=5,R=3,S=3,pad=1",
    "conv:K=4,C=4,P=4,Q=3,R=3,S=1,stride=2",
    "depthwise:C=6,P=4,Q=4,R=3,S=3",
    "nest:O[n,k,p] += I[n,c,2*p+r] * W[k,c,r] : n=1,k=4,c=3,p=9,r=3",
)


def random_engine(draw: random.Random) -> Engine:
    """Levels with any capacities, ports and choices of storage; one array, or none."""
    count = draw.randint(2, 6)
    array = draw.randrange(count)
    levels: list[MemoryLevel] = []
    for index in range(count):
        port = draw.choice([None, None, Fraction(1, 2), Fraction(4)])
        shared = draw.random() < 0.3
        keeps = frozenset(Role) if draw.random() < 0.7 else frozenset(draw.sample(sorted(Role), 2))
        axes = tuple(
            ArrayAxis(
                name, draw.choice([2, 3, 8]), draw.choice([None, frozenset("KCMN"), frozenset({"P", "Q"})])
            )
            for name in ("x", "y")[: draw.randint(1, 2)]
        )
        levels.append(
            MemoryLevel(
                f"L{index}",
                draw.choice([2, 3, 4, 9, 30, 200, 3000]) if index else None,
                Fraction(draw.randint(1, 60)),
                Fraction(draw.randint(1, 60)),
                read_bandwidth=None if shared else port,
                write_bandwidth=None if shared else port,
                shared_bandwidth=port if shared else None,
                double_buffered=bool(index) and draw.random() < 0.4,
                keeps=keeps if index else frozenset(Role),
                may_bypass=frozenset(role for role in keeps if draw.random() < 0.6) if index else frozenset(),
                fanout=Fanout(axes, Fraction(draw.randint(0, 2))) if index == array else None,
            )
        )
    return Engine("random", "hierarchy", 16, Fraction(1), Fraction(500), tuple(levels))


def smaller(engine: Engine) -> Iterator[tuple[int, ...]]:
    """The levels of every machine that lacks some which all tensors may bypass."""
    free = [index for index, level in enumerate(engine.levels) if index and level.keeps <= level.may_bypass]
    for count in range(1, len(free) + 1):
        for left_out in combinations(free, count):
            yield tuple(index for index in range(len(engine.levels)) if index not in left_out)


def loose_problem(seed: int) -> LayerProblem:
    """A layer on a machine of two to six levels, most of whose inner levels all tensors may bypass."""
    draw = random.Random(seed)
    operator = parse_layer(draw.choice(LAYERS))[1]
    drawn = random_engine(draw)
    levels = tuple(
        replace(level, may_bypass=level.keeps) if index and draw.random() < 0.7 else level
        for index, level in enumerate(drawn.levels)
    )
    objective = parse_objective(draw.choice(("energy", "edp", "cycles")))
    return layer_problem(operator, replace(drawn, levels=levels), objective)
