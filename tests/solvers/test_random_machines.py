"""Random machines of two to six levels: what has a mapping gets one, and bounds hold with fewer levels."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from effort import effort
from random_machines import LAYERS, random_engine, smaller

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.mapping import Mapping, Node, Storage, Temporal
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.floors.least_room import fits_alone
from tilewright.solvers.mapping.patterns.pattern_machines import machine_of
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator


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


def attacked(problem: LayerProblem, seconds: float) -> bool:
    """Whether a problem has mappings; then one must be there after so many CPU seconds."""

    def limits() -> Limits:
        return Limits(seconds, threads=1, clock=time.process_time)

    result = solve(problem, "auto", limits())
    if problem.evaluate(single_elements(problem.operator, problem.engine)).violations:
        assert result.status is Status.INFEASIBLE, result.message
        return False
    assert result.key is not None
    for stored in smaller(problem.engine):
        part = solve(problem.on(machine_of(problem.engine, stored)), "auto", limits())
        assert part.key is not None
        # The smaller machine's mappings are mappings here, so no bound may pass them.
        assert result.bound is None or result.bound <= part.key
        assert result.status is not Status.OPTIMAL or result.key <= part.key
    return True


def test_what_has_a_mapping_gets_one() -> None:
    """On a few machines."""
    assert sum(attacked(drawn(seed), 1.0) for seed in range(effort(4))) > 0


def test_what_does_not_fit_in_single_elements_is_infeasible_at_once() -> None:
    """Uneven storage: no arrangement is searched, and nothing is called too large that has a mapping."""
    fitting = []
    for seed in range(effort(40)):
        even = drawn(seed)
        outermost, *inner = even.engine.levels
        levels = [outermost, *(replace(level, capacity=1 + seed % 4) for level in inner)]
        engine = replace(even.engine, levels=tuple(levels))
        problem = layer_problem(even.operator, engine, even.objective, storage="uneven")
        fits = not problem.evaluate(single_elements(problem.operator, engine)).violations
        assert fits_alone(problem.operator, engine) == fits
        fitting.append(fits)
        if not fits:
            result = solve(problem, "auto")
            assert (result.status, result.effort.methods) == (Status.INFEASIBLE, ())
    assert {*fitting} == {False, True}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_what_has_a_mapping_gets_one_at_length(part: int) -> None:
    """On a hundred more."""
    seeds = range(100 + 25 * part, 125 + 25 * part)
    assert sum(attacked(drawn(seed), 2.0) for seed in seeds) > 5
