"""Uneven storage where tiles hold more than they need: strides, dilations, windows, two near levels.

A tile under ``A[3*i]`` holds what lies between its elements.  So the whole of a tensor is not the least that
a store fetches, and bounds that take it for that are none.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import replace
from fractions import Fraction
from itertools import chain, count, islice
from itertools import product as cartesian
from pathlib import Path

import numpy as np
import pytest
from bounded_parts import search_parts
from effort import effort
from strided_instances import (
    FACTORS,
    POWERS,
    RATES,
    ROOMS,
    TELLING,
    Strided,
    has_gap,
    overlapping,
    strided,
    telling,
)
from uneven_oracle import DIVISORS, LEAST, Oracle

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.parts import uneven_parts
from tilewright.formulation.mapping.parts.compulsory import least_cycles, least_energy
from tilewright.formulation.mapping.parts.relaxation import problem_tables, root_bound
from tilewright.formulation.mapping.parts.segment_parts import (
    has_parts,
    inner_arrangements,
    inside_part,
    leaks_outside,
    near_arrangements,
    outside_part,
    storages,
    within,
)
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import MapSpace
from tilewright.formulation.mapping.tiles.boundary_tiles import restricted, tiles_at
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.arrays import Int64s
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.answers.answer_sets import pareto_front
from tilewright.solvers.mapping.arrangements import arrangement_trees, inside_together
from tilewright.solvers.mapping.arrangements.part_tables import PartTables
from tilewright.solvers.mapping.arrangements.segment_bounds import SegmentBounds
from tilewright.solvers.mapping.explore.compulsory import count_bounds
from tilewright.solvers.mapping.explore.features import features_of
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree.goals import Minimum
from tilewright.workloads.mapping.layer_text import parse_layer

MACHINES = Path(__file__).parent.parent / "data" / "strided"
ALL = "a gap, a capacity that binds and a rate that limits"


def traits(instance: Strided, kind: str) -> Iterator[str]:
    """What an instance is an example of; its claim is that of enumeration."""
    oracle = instance.oracle(kind)
    least = instance.least(oracle)
    judge(instance, kind, least)
    gap = has_gap(instance.operator)
    binds = instance.least(instance.oracle(kind, oracle, **ROOMS)) != least
    limits = instance.least(instance.oracle(kind, oracle, **RATES)) != least
    yield "an instance"
    yield from ("a gap",) * gap + ("a capacity that binds",) * binds + ("a rate that limits",) * limits
    yield from (ALL,) * (gap and binds and limits)
    yield from ("two near levels",) * instance.has_two_near
    yield from ("a mapping",) * (least is not None)


def judge(instance: Strided, kind: str, least: Fraction | None) -> None:
    """An instance's claim is that of enumeration."""
    result = solve(instance.problem(kind), "branch", Limits(seconds=600))
    assert result.status is (Status.INFEASIBLE if least is None else Status.OPTIMAL), (
        instance.seed,
        result.message,
    )
    assert (result.key, result.bound) == (least, least), (instance.seed, instance.operator, instance.engine)


def test_a_role_left_out_does_not_change_what_a_capacity_counts() -> None:
    """Where widths differ by role, a level that one role may pass by keeps its bits without that role."""
    instance = strided(300_002, 8)
    judge(instance, DIVISORS, instance.least(instance.oracle(DIVISORS)))


def judged(
    kind: str, number: int, start: int, most: int, few: int, known: tuple[int, ...] = ()
) -> Counter[str]:
    """The traits of so many instances with few arrangements, all of them judged.

    Parameters
    ----------
    start : the first seed
    known : seeds of instances with all traits
    """
    drawn = (instance for seed in count(start) if (instance := strided(seed, most)).has_few(kind, few))
    seeds = chain(known, count(max(known, default=start) + 1))
    hard = (instance for seed in seeds if (instance := telling(seed, most, kind, few)) is not None)
    third = -(-number // 3)
    instances = chain(islice(drawn, number - third), islice(hard, third))
    return Counter(trait for drawn_instance in instances for trait in traits(drawn_instance, kind))


PARTS = [(DIVISORS, part) for part in range(5)] + [(LEAST, part) for part in range(2)]  # of 9 each


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_claims_over_strided_tiles_are_those_of_enumeration(kind: str, part: int) -> None:
    """Optimum and bound of 63 random problems, a third of which have gap, tight room and slow port."""
    number = max(3, effort(9))  # of which one is hard
    seen = judged(kind, number, 1000 * part, 6, 5, TELLING[part::5])
    print(kind, dict(seen))
    assert seen["an instance"] == number
    assert seen[ALL] * 3 >= number
    assert seen["two near levels"] * 5 >= number
    assert seen["a mapping"] * 2 >= number


@pytest.mark.slow
@pytest.mark.parametrize("part", range(11))
@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_claims_over_strided_tiles_at_length(kind: str, part: int) -> None:
    """The same on 2,200 more, up to eight iterations and thirty arrangements."""
    seen = judged(kind, 100, 100_000 * (part + 1), 8, 30)
    print(kind, dict(seen))
    assert seen[ALL] * 3 >= seen["an instance"] == 100


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
@pytest.mark.parametrize("in_steps", [False, True])
def test_claims_on_outputs_whose_tiles_overlap(
    kind: str, in_steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts bound whatever the number of arrangements; what is stopped at once, or later, is a bound."""
    monkeypatch.setattr(arrangement_trees, "_FEW", 0)
    monkeypatch.setattr(uneven_parts, "_FEW", 0)
    monkeypatch.setattr(uneven_parts, "_FEW_OF_PATTERNS", 0)
    if in_steps:
        monkeypatch.setattr(arrangement_trees, "is_large", lambda _problem: True)
        monkeypatch.setattr(inside_together, "_MOST", 4)
    seen: Counter[str] = Counter()
    drawn = (overlapping(seed, 6) for seed in count(1000 * in_steps))
    few = (instance for instance in drawn if instance.has_few(kind, 8))
    for instance in islice((own for own in few if has_parts(own.problem(kind))), effort(60)):
        least = instance.least(instance.oracle(kind))
        judge(instance, kind, least)
        for seconds in (0.002, 0.02) if least is not None else ():
            stopped = solve(instance.problem(kind), "branch", Limits(seconds=seconds))
            assert stopped.bound is None or stopped.bound <= least, instance.seed
        seen["levels, too"] += uneven_parts.has_uneven_parts(instance.problem(kind))
        seen["a mapping"] += least is not None
    assert seen["levels, too"]
    assert seen["a mapping"] * 2 >= effort(60)


FAULTS = [
    ("nest:O[i,k] += A[3*i,j] * B[j,k] : i=3,j=2,k=1", "two_near", "energy", 537),
    ("nest:O[i,k] += A[3*i,j] * B[j,k] : i=4,j=2,k=2", "stride", "edp", 88368),
    ("nest:O[i,k] += A[2*i,j] * B[j,k] : i=2,j=4,k=1", "error", "edp", 42120),
]


def stated(layer: str, machine: str, objective: str) -> LayerProblem:
    """A problem over perfect factors and uneven storage."""
    place = MACHINES / f"{machine}.yaml"
    engine = load_engine(str(place) if place.exists() else machine)
    operator = parse_layer(layer)[1]
    return layer_problem(operator, engine, parse_objective(objective), factors="perfect", storage="uneven")


@pytest.mark.parametrize(("layer", "machine", "objective", "least"), FAULTS)
def test_whole_tensors_are_not_the_least_that_near_stores_fetch(
    layer: str, machine: str, objective: str, least: int
) -> None:
    """Two near levels, a slow port, and a bound above the optimum: each was claimed wrongly, or an error."""
    problem = stated(layer, machine, objective)
    assert Oracle(problem.operator, problem.engine, DIVISORS).least(POWERS[objective]) == least
    result = solve(problem, "auto")
    assert (result.status, result.key, result.bound) == (Status.OPTIMAL, least, least)


def test_a_shortcut_of_a_residual_network() -> None:
    """A stride of two on a machine that is shipped: the best mapping has tiles without gaps."""
    problem = stated("conv:N=1,K=64,C=64,P=14,Q=14,R=1,S=1,stride=2", "eyeriss-256", "edp")
    result = solve(problem, "auto")
    assert (result.status, result.key) == (Status.OPTIMAL, 42943142400)


@pytest.mark.parametrize(("layer", "machine", "_objective", "_least"), FAULTS)
def test_fronts_over_strided_tiles_are_whole(layer: str, machine: str, _objective: str, _least: int) -> None:
    """Every undominated pair of energy and cycles of the uneven space, and the claim that these are all."""
    problem = stated(layer, machine, "edp")
    answers = pareto_front(problem)
    front = {(solution.evaluation.energy, solution.evaluation.cycles) for solution in answers.solutions}
    assert answers.complete
    assert front == Oracle(problem.operator, problem.engine, DIVISORS).front()


# -- bounds of parts, mapping by mapping ---------------------------------------------------------------


def rows_of(space: MapSpace, places: tuple[int, ...]) -> dict[Variable, int]:
    """Tile sizes of one row of every group."""
    return {
        variable: int(size)
        for group, place in zip(space.groups, places, strict=True)
        for variable, size in zip(group.variables, group.rows[place], strict=True)
    }


def every_cost(part: LayerProblem) -> Iterator[tuple[int, int]]:
    """Energy (scaled) and cycles of all that is legal in a small part."""
    space = part.space
    for places in cartesian(*(range(len(group)) for group in space.groups)):
        tiles = rows_of(space, places)
        for chosen in cartesian(*(selector.domain for selector in space.selectors)):
            values = {**tiles, **dict(zip(space.selectors, chosen, strict=True))}
            if all(evaluate(limit.expr, values) <= limit.bound for limit in part.limits):
                yield evaluate(part.statement.energy, values), evaluate(part.statement.cycles, values)


def spent_outside(problem: LayerProblem, evaluation: Evaluation) -> Fraction:
    """Energy of moving tensors from and to near levels, as the evaluator counts it, and what leaks there."""
    engine = problem.engine
    array = next(i for i, level in enumerate(engine.levels) if level.fanout)
    near = {level.name for level in engine.levels[1 : array + 1]}
    stored = {access.tensor for access in evaluation.accesses if access.level in near}
    energy = engine.leak * evaluation.cycles if leaks_outside(problem) else Fraction(0)
    for access in evaluation.accesses:
        level, role = engine.level(access.level), problem.operator.tensor(access.tensor).role
        if access.level in near:
            energy += level.write_energy_of(role) * access.fills
        elif level is engine.levels[0] and access.tensor in stored:
            energy += level.read_energy_of(role) * access.reads
            energy += level.write_energy_of(role) * (access.fills + access.updates)
    return energy


def row_of(group: AxisGroup, values: MappingABC[Variable, int]) -> Int64s:
    """The row of a group that some values are, shape (1, variables)."""
    return np.array([[values[variable] for variable in group.variables]], dtype=np.int64)


def random_mappings(
    problem: LayerProblem, draw: random.Random, tries: int
) -> Iterator[tuple[dict[Variable, int], Evaluation]]:
    """Legal ones of the space of one arrangement, with the decisions that they are."""
    space = problem.space
    for _ in range(tries if all(len(group) for group in space.groups) else 0):
        values = rows_of(space, tuple(draw.randrange(len(group)) for group in space.groups))
        values |= {selector: draw.choice(list(selector.domain)) for selector in space.selectors}
        evaluation = problem.evaluate(problem.decode(values))
        if not evaluation.violations and all(
            evaluate(limit.expr, values) <= limit.bound for limit in problem.limits
        ):
            yield values, evaluation


def compare_parts(problem: LayerProblem, draw: random.Random, tries: int) -> int:
    """How many random mappings were compared: the parts over their tiles cost no more than they do."""
    compared = 0
    inner = draw.choice(list(inner_arrangements(problem)))
    near = draw.choice(list(near_arrangements(problem)))
    whole, part = problem.arranged((*near, *inner)), inside_part(problem, inner)
    shell = outside_part(problem, near)
    least_outside = min((energy for energy, _ in every_cost(shell)), default=None)
    for values, evaluation in random_mappings(whole, draw, tries):
        edges = within(whole.space)
        tiles = {
            group.name: tiles_at(whole.space, edges, group.having(row_of(group, values)))
            for group in whole.space.groups
        }
        space = restricted(part.space, within(part.space), tiles)
        assert all(len(group) for group in space.groups)
        costs = list(every_cost(replace(part, space=space)))
        scale = whole.statement.energy_scale
        outside = spent_outside(problem, evaluation)
        assert min(energy for energy, _ in costs) <= (evaluation.energy - outside) * scale
        assert min(cycles for _, cycles in costs) <= evaluation.cycles
        assert least_outside is not None
        assert least_outside <= outside * scale
        compared += 1
    return compared


def with_parts(kind: str) -> Iterator[tuple[Strided, LayerProblem]]:
    """Problems with gaps that are bounded by parts, on machines whose storage is settled."""
    for seed in chain(TELLING, count(TELLING[-1] + 1)):
        instance = telling(seed, 6, kind, 5)
        if instance is not None and has_parts(instance.problem(kind)):
            yield instance, next(iter(storages(instance.problem(kind))))


@pytest.mark.parametrize(("kind", "number"), [(DIVISORS, 8), (LEAST, 3)])
def test_parts_cost_no_more_than_random_mappings(kind: str, number: int) -> None:
    """Inside energy, cycles and outside energy of any mapping, good or bad, are no less than the parts'."""
    compared = 0
    for instance, problem in with_parts(kind):
        compared += compare_parts(problem, random.Random(instance.seed), 4)
        if compared >= effort(number):
            break
    assert compared >= effort(number)


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_no_root_bound_is_above_the_even_optimum(kind: str) -> None:
    """What parts bound before anything is searched, and compulsory traffic, against even storage."""
    compared = 0
    for instance, problem in with_parts(kind):
        even = solve(problem.even(), "branch", Limits(seconds=60))
        if even.key is None or even.evaluation is None:
            continue
        search = LayerSearch(problem, Limits())
        bounds = SegmentBounds(search, Minimum(search, "test"), problem, True, PartTables())
        search_parts(bounds)
        assert bounds.least <= even.key * problem.key_scale, instance.seed
        assert least_energy(instance.operator, instance.engine) <= even.evaluation.energy
        assert least_cycles(instance.operator, instance.engine) <= even.evaluation.cycles
        compared += 1
        if compared == effort(6):
            break
    assert compared == effort(6)


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_no_bound_is_above_any_random_mapping(kind: str) -> None:
    """Compulsory traffic, plain intervals and the counts of `explore` against mappings good and bad."""
    compared = 0
    for seed in count(20_000):
        instance, draw = strided(seed, 12), random.Random(seed)
        problem = instance.problem(kind).even()
        tables = problem_tables(problem)
        counts = count_bounds(instance.operator, instance.engine, "hierarchy", FACTORS[kind])
        prices = features_of(instance.engine).prices
        least = sum(float(price) * number for price, number in zip(prices, counts.least, strict=True))
        root = root_bound(problem, tables)
        for _, evaluation in random_mappings(problem, draw, 10):
            assert least_energy(instance.operator, instance.engine) <= evaluation.energy
            assert max(least_cycles(instance.operator, instance.engine), counts.cycles) <= evaluation.cycles
            assert least <= float(evaluation.energy) * (1 + 1e-9)
            assert root is None or root <= problem.key_of(evaluation)
            compared += 1
        if compared >= effort(12):
            break
    assert compared >= effort(12)
