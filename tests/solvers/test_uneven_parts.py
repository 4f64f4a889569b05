"""What each level costs whatever the points of storage: against random mappings, and claims."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice

import pytest
from effort import effort
from strided_instances import FACTORS, overlapping_operator, strided_operator
from uneven_oracle import DIVISORS, LEAST, Oracle

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.nests.arrangements import EVEN
from tilewright.formulation.mapping.parts.uneven_parts import has_uneven_parts
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status, TracePoint
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping import problem_kinds
from tilewright.solvers.mapping.arrangements import arrangement_trees, turns
from tilewright.solvers.mapping.patterns import pattern_bounds
from tilewright.solvers.mapping.patterns.pattern_bounds import PatternBounds
from tilewright.solvers.mapping.patterns.pattern_machines import stores_of
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, gemm

POWERS = {"energy": (1, 0), "edp": (1, 1), "ed2p": (1, 2)}


def machine(draw: random.Random, near: int, roomy: bool, loose: float) -> Engine:
    """An outermost level, some near levels, an array, and one level behind it.

    Parameters
    ----------
    loose : share of the tensors of a level that may bypass it
    """

    def level(name: str, room: int | None, most: int, **fields: object) -> MemoryLevel:
        ports = [draw.choice([None, Fraction(1, 4), Fraction(1, 2), Fraction(2)]) for _ in range(2)]
        energies = [Fraction(draw.randint(0, most)) for _ in range(2)]
        by_role = {role: Fraction(draw.randint(0, most)) for role in Role} if draw.random() < 0.3 else {}
        return MemoryLevel(
            *(name, room, *energies),
            read_bandwidth=ports[0],
            write_bandwidth=ports[1],
            read_energies=by_role,
            double_buffered=room is not None and draw.random() < 0.6,
            **fields,  # type: ignore[arg-type]
        )

    sizes = (20, 200) if roomy else (5, 24)
    levels = [level("DRAM", None, 60)]
    for index in range(near + 1):
        passed = frozenset(role for role in Role if draw.random() < loose)
        keeps = frozenset(Role) if draw.random() < 0.8 else frozenset(draw.sample(sorted(Role), 2))
        room = draw.randint(*sizes) if index < near else draw.randint(3, 9)
        levels.append(level(f"L{index}", room, 20 - 4 * index, keeps=keeps, may_bypass=passed & keeps))
    axes = tuple(ArrayAxis(name, draw.choice([2, 3, 4])) for name in draw.choice(["x", "xy"]))
    fan = Fanout(axes, Fraction(draw.randint(0, 2)), draw.random() < 0.7, draw.random() < 0.7)
    levels[near] = replace(levels[near], fanout=fan)
    return Engine("drawn", "hierarchy", 16, Fraction(1), Fraction(500), tuple(levels))


def operator(draw: random.Random, most: int) -> Operator:
    """A product, a small convolution, a nest with strides, or one whose output tiles overlap."""
    kind = draw.choice(["gemm", "gemm", "conv", "strided", "overlapping"])
    sizes = [1, 2, 3, 4, 5, 6, 8]
    while True:
        if kind == "strided":
            return strided_operator(draw, most)
        if kind == "overlapping":
            return overlapping_operator(draw, most)
        m, n, k = (draw.choice(sizes) for _ in range(3))
        drawn = (
            gemm(m=m, n=n, k=k)
            if kind == "gemm"
            else conv2d(k=m, c=n, p=k, q=1, r=draw.choice([1, 2, 3]), s=1, stride=draw.choice([1, 1, 2]))
        )
        if drawn.iterations <= most:
            return drawn


def problems(
    kind: str, most: int, start: int, levels: tuple[int, ...] = (1, 2, 2, 3)
) -> Iterator[tuple[int, LayerProblem]]:
    """Problems that levels bound, with the seeds that they come from."""
    for seed in count(start):
        draw = random.Random(seed)
        engine = machine(draw, draw.choice(levels), draw.random() < 0.5, draw.choice([0.0, 0.2, 0.5]))
        objective = parse_objective(draw.choice([*POWERS]))
        problem = layer_problem(
            operator(draw, most), engine, objective, factors=FACTORS[kind], storage="uneven"
        )
        if has_uneven_parts(problem):
            yield seed, problem


def random_decisions(
    problem: LayerProblem, draw: random.Random, tries: int
) -> Iterator[tuple[LayerProblem, dict[Variable, int]]]:
    """Arrangements, and decisions on each that break no limit."""
    arrangements = [*islice(problem.arrangements(), 3_000)]
    for _ in range(tries):
        whole = problem.arranged(draw.choice(arrangements)) if arrangements else problem
        if not all(len(group) for group in whole.space.groups):
            continue
        values = {selector: draw.choice(selector.domain) for selector in whole.space.selectors}
        for group in whole.space.groups:
            row = group.rows[draw.randrange(len(group))]
            values |= dict(zip(group.variables, row.tolist(), strict=True))
        if all(evaluate(limit.expr, values) <= limit.bound for limit in whole.limits):
            yield whole, values


def compare(problem: LayerProblem, draw: random.Random, tries: int) -> int:
    """How many random mappings cost no less than all parts of their patterns, each by itself and in all."""
    compared, bounds = 0, None
    for whole, values in random_decisions(problem, draw, tries):
        if bounds is None:
            bounds = PatternBounds(LayerSearch(problem, Limits()))
            while bounds.take() is not None:
                pass
        mapping = whole.decode(values)
        evaluation = problem.evaluate(mapping)
        stores, model, nest = stores_of(problem, mapping), whole.model, whole.space.nest
        assert isinstance(model, Hierarchy)
        key = float(problem.key_of(evaluation))
        assert bounds.key_of(stores) <= key * (1 + 1e-12)
        number = bounds.number_of(stores)
        parts = bounds.known(number).parts
        scale = model.scale_of(whole.engine)
        moved = model.energy_of_moving(nest)
        computing = float(problem.engine.mac_energy) * problem.operator.iterations
        for level, least in parts.items():
            is_last = level == len(problem.engine.levels) - 1
            spent = computing if is_last else 0.0
            for tensor, own in zip(problem.operator.tensors, stores, strict=True):
                places = [nest.residency[tensor.name].positions[level]] if level in own else []
                places += [len(nest.blocks)] if is_last else []
                spent += sum(evaluate(moved[place, tensor.name], values) / scale for place in {*places})
            assert least <= spent * (1 + 1e-12), (level, stores)
        compared += 1
    return compared


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_no_part_costs_more_than_in_random_mappings(kind: str) -> None:
    """On one to three near levels, with bypass, strides and windows, energies by role and slow ports."""
    compared, wanted = 0, effort(12)
    for seed, problem in problems(kind, 60, 0):
        compared += compare(problem, random.Random(seed), 30)
        if compared >= wanted:
            break
    assert compared >= wanted


def test_no_part_costs_more_where_output_tiles_overlap_over_even_storage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Random mappings level by level, on one or two near levels that tensors may bypass."""
    monkeypatch.setattr(problem_kinds, "FEW", 0)
    compared, wanted = 0, effort(300)
    for seed in count():
        draw = random.Random(f"even {seed}")
        engine = machine(draw, draw.choice([1, 1, 2]), draw.random() < 0.8, draw.choice([0.0, 0.5, 0.9]))
        objective = parse_objective(draw.choice([*POWERS]))
        problem = layer_problem(overlapping_operator(draw, 60), engine, objective)
        if problem_kinds.has_patterns(problem):
            compared += compare(problem, draw, 60)
        if compared >= wanted:
            break
    assert compared >= wanted


def has_one_axis(engine: Engine) -> bool:
    """Whether its arrays are rows, as enumeration has them."""
    return all(len(level.fanout.axes) == 1 for level in engine.levels if level.fanout is not None)


def agrees(problem: LayerProblem, kind: str) -> bool:
    """Whether a problem has a mapping; the claim is that of plain enumeration."""
    wanted = Oracle(problem.operator, problem.engine, kind).least(POWERS[problem.objective.name])
    result = solve(problem, "branch", Limits(seconds=60))
    assert result.status is (Status.INFEASIBLE if wanted is None else Status.OPTIMAL), result.message
    assert (result.key, result.bound) == (wanted, wanted)
    return wanted is not None


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
@pytest.mark.parametrize(("step", "share"), [(0.005, 0.4), (0.0005, 0.0)])
def test_claims_of_machines_in_turn_are_those_of_enumeration(
    kind: str, step: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is listed at once is searched in turn as well, in few steps of the cutoff or in many.

    Levels are bounded after the even part, or without it, before all tables.
    """
    monkeypatch.setattr(arrangement_trees, "_QUICK", 0)
    monkeypatch.setattr(arrangement_trees, "_FEW", 0)
    monkeypatch.setattr(turns, "_STEP", step)
    monkeypatch.setattr(arrangement_trees, "_SHARE", share)
    drawn = (problem for _, problem in problems(kind, 6, 100, levels=(1,)))
    few = (problem for problem in drawn if problem.operator.kind == "gemm" and has_one_axis(problem.engine))
    assert sum(agrees(problem, kind) for problem in islice(few, effort(2))) >= 1


def test_what_a_limit_leaves_of_levels_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little effort for each part, and limits anywhere: no bound is above the optimum."""
    monkeypatch.setattr(pattern_bounds, "_EFFORTS", (1, 20))
    for seed, problem in islice(problems(LEAST, 24, 500, levels=(1,)), effort(2)):
        best = solve(problem, "branch", Limits(seconds=20)).key
        draw = random.Random(seed)
        for _ in range(3):
            stopped = solve(problem, "branch", Limits(seconds=draw.uniform(0.01, 0.6)))
            if best is not None and stopped.bound is not None:
                assert stopped.bound <= best


@pytest.mark.slow
def test_storage_patterns_find_the_best_even_mapping_first() -> None:
    """Where even storage is searched by patterns, its optimum is known before parts of the machine are."""
    operator = gemm(m=4, n=3, k=4)
    problem = layer_problem(operator, load_engine("eyeriss-65nm"), parse_objective("edp"), storage="uneven")
    trace: list[TracePoint] = []
    uneven, even = solve(problem, "branch", listener=trace.append), solve(problem.even(), "branch")
    assert uneven.key is not None
    assert even.key is not None
    assert uneven.key <= even.key
    assert min(point.key for point in trace if point.source == EVEN and point.key is not None) == even.key
