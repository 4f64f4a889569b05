"""Random machines of two to six levels: what has a mapping gets one, and bounds hold with fewer levels."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from effort import effort

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping, Node, Storage, Temporal
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator, Role

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


def drawn(seed: int) -> LayerProblem:
    draw = random.Random(seed)
    _, operator = parse_layer(draw.choice(LAYERS))
    objective = parse_objective(draw.choice(["energy", "edp", "cycles"]))
    return layer_problem(operator, random_engine(draw), objective)


def single_elements(operator: Operator, engine: Engine) -> Mapping:
    """All loops outermost, one element of each tensor in the levels that must store it.

    Nothing takes less room, so where this does not fit nothing does.
    """
    nodes: list[Node] = []
    for index, level in enumerate(engine.levels):
        nodes += [
            Storage(tensor.name, level.name)
            for tensor in operator.tensors
            if tensor.role in (level.keeps - level.may_bypass)
        ]
        if not index:
            nodes += [Temporal(dim, 1) for dim, bound in operator.bounds.items() if bound > 1]
    return Mapping(tuple(nodes))


def smaller(engine: Engine) -> Iterator[Engine]:
    """The machine without one level that all tensors may bypass."""
    for index, level in enumerate(engine.levels):
        if index and level.fanout is None and level.keeps <= level.may_bypass:
            yield replace(engine, levels=(*engine.levels[:index], *engine.levels[index + 1 :]))


def attacked(problem: LayerProblem, seconds: float) -> bool:
    """Whether a problem has mappings; then one must be there after so many CPU seconds."""

    def limits() -> Limits:
        return Limits(seconds, threads=1, clock=time.process_time)

    result = solve(problem, "auto", limits())
    if problem.evaluate(single_elements(problem.operator, problem.engine)).violations:
        assert result.status is Status.INFEASIBLE, result.message
        return False
    assert result.key is not None
    for engine in smaller(problem.engine):
        part = solve(problem.on(engine), "auto", limits())
        assert part.key is not None
        # The smaller machine's mappings are mappings here, so no bound may pass them.
        assert result.bound is None or result.bound <= part.key
        assert result.status is not Status.OPTIMAL or result.key <= part.key
    return True


def test_what_has_a_mapping_gets_one() -> None:
    """On a few machines."""
    assert sum(attacked(drawn(seed), 2.0) for seed in range(effort(4))) > 0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_what_has_a_mapping_gets_one_at_length(part: int) -> None:
    """On a hundred more."""
    seeds = range(100 + 25 * part, 125 + 25 * part)
    assert sum(attacked(drawn(seed), 2.0) for seed in seeds) > 5
