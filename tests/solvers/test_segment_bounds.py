"""Parts of the machine bound uneven storage: against plain enumeration, and mapping by mapping."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count, islice
from itertools import product as cartesian
from typing import Any

import pytest
from bounded_parts import search_parts
from effort import effort
from machines_with_parts import FACTORS, drawn, past_a_loose_level, sampled
from stops import AfterChecks, in_blocks_of
from strided_instances import strided
from uneven_oracle import DIVISORS, LEAST, Oracle

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.nests.arrangements import Arrangement
from tilewright.formulation.mapping.nests.orders import sliding_dims
from tilewright.formulation.mapping.parts.compulsory import least_cycles, least_energy, least_key
from tilewright.formulation.mapping.parts.near_storage import spent_elsewhere, storage_of
from tilewright.formulation.mapping.parts.segment_parts import (
    around,
    has_parts,
    inner_arrangements,
    inside_part,
    leaks_outside,
    least_outside,
    near_arrangements,
    outside_part,
    storages,
    stores_near,
    within,
)
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.formulation.mapping.tiles.boundary_tiles import restricted, standing_around, tiles_at
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.arrays import among
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.answers.answer_sets import pareto_front
from tilewright.solvers.mapping.arrangements import (
    arrangement_trees,
    inside_together,
    open_trees,
    part_searches,
    segment_bounds,
    turns,
    wholes,
)
from tilewright.solvers.mapping.arrangements.arrangement_trees import ArrangementTrees
from tilewright.solvers.mapping.arrangements.inside_together import InsideTogether
from tilewright.solvers.mapping.arrangements.outside_front import OutsideFront
from tilewright.solvers.mapping.arrangements.part_searches import PartSearches
from tilewright.solvers.mapping.arrangements.part_tables import PartTables
from tilewright.solvers.mapping.arrangements.segment_bounds import SegmentBounds
from tilewright.solvers.mapping.compiled.cuts import Cut
from tilewright.solvers.mapping.first_mapping import offer_one_mapping
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree.best_first import BestFirst
from tilewright.solvers.mapping.tree.goals import Below, LeastEnergy, Minimum, goal_of
from tilewright.solvers.mapping.tree.layout import Layout
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import conv2d, gemm

POWERS = {"energy": (1, 0), "cycles": (0, 1), "edp": (1, 1), "ed2p": (1, 2), "E^2*D": (2, 1)}


def agrees(problem: LayerProblem, kind: str = DIVISORS) -> bool:
    """Whether a problem has a mapping; claim and compulsory bound are those of enumeration."""
    oracle = Oracle(problem.operator, problem.engine, kind)
    wanted = oracle.least(POWERS[problem.objective.name])
    result = solve(problem, "branch", Limits(seconds=60))
    assert result.status is (Status.INFEASIBLE if wanted is None else Status.OPTIMAL), result.message
    assert (result.key, result.bound) == (wanted, wanted)
    assert wanted is None or least_key(problem) <= wanted
    return wanted is not None


@pytest.mark.parametrize(("most", "quick"), [(1_000_000, 0), (1_000_000, 20_000), (1, 0), (1, 20_000)])
def test_claims_are_those_of_enumeration(most: int, quick: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays behind one or two buffers, where all survivors are listed and where none are.

    What is listed at once is searched in steps where that is too much.
    """
    monkeypatch.setattr(arrangement_trees, "_QUICK", quick)
    monkeypatch.setattr(segment_bounds, "_MOST_LISTED", most)
    monkeypatch.setattr(inside_together, "_MOST", 4 * most)
    problems = (problem for seed in count(7) if has_parts(problem := drawn(seed, 6)))
    assert sum(agrees(problem) for problem in islice(problems, effort(4))) >= effort(4) // 2


def test_claims_where_memory_is_for_one_tree_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is open is searched to its end before more is stated, and tables are forgotten between."""
    monkeypatch.setattr(open_trees, "_MOST_BYTES", -1)
    monkeypatch.setattr(open_trees, "_MOST_SHARED", -1)
    monkeypatch.setattr(segment_bounds, "_MOST_LISTED", 1)
    problems = (problem for seed in count(7) if has_parts(problem := drawn(seed, 6)))
    assert sum(agrees(problem) for problem in islice(problems, effort(4))) >= effort(4) // 2
    drawings = (drawn(seed, 6, LEAST) for seed in count(7))
    few = (drawing for drawing in drawings if 1 < len(list(drawing.arrangements())) <= 8)
    assert sum(agrees(problem, LEAST) for problem in islice(few, effort(2))) >= 1


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_what_machines_share_counts_as_before(kind: str) -> None:
    """Parts and wholes that take loops and counts from machines with other stores say what new ones do."""
    draw = random.Random(5)
    for _ in range(effort(1)):
        fresh = past_a_loose_level(draw, kind)
        alike = Alike()
        stated = 0
        for problem in islice(storages(fresh), 0, None, 3):
            parts = [partial(inside_part, inner=inner) for inner in inner_arrangements(problem)]
            if stores_near(problem):
                parts += [partial(outside_part, near=near) for near in near_arrangements(problem)]
            wholes = islice(problem.arrangements(), 4)
            parts += [partial(LayerProblem.arranged, slots=slots) for slots in wholes]
            for number, part in enumerate(parts):
                stated += 1
                own, other = part(problem), part(replace(problem, alike=alike))
                assert sampled(own, random.Random(number)) == sampled(other, random.Random(number))
                assert own.space.sites == other.space.sites
        assert len(alike.spaces) < 0.8 * stated


def loose_inside(problem: LayerProblem, machine: LayerProblem) -> LayerProblem:
    """A machine whose near levels may be passed by, as those of a problem."""
    together = InsideTogether(LayerSearch(problem, Limits()), Minimum, machine, PartTables())  # type: ignore[arg-type]
    return together._problem


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_the_inside_of_all_machines_together_says_what_each_says(kind: str) -> None:
    """Random decisions under every storage: energy, cycles and legality are those of its own machine.

    Where nothing is stored near it may say less: what leaks outside on other machines leaks inside there, and
    if tiles need not divide, one cut stands for several.
    """
    draw, compared, legal = random.Random(3), 0, 0
    problems = (problem for seed in count(40) if has_parts(problem := drawn(seed, 60, kind)))
    loose = (problem for problem in problems if any(level.may_bypass for level in problem.engine.levels))
    some = [*islice(loose, effort(3)), *(past_a_loose_level(draw, kind) for _ in range(effort(2)))]
    for problem in some:
        machines = [*storages(problem)]
        spent = {storage_of(machine): draw.randrange(99) for machine in machines}
        inner = draw.choice([*inner_arrangements(problem)])
        for machine in draw.sample(machines, min(4, len(machines))):
            every = inside_part(loose_inside(problem, machine), inner)
            own = inside_part(machine, inner)
            stores = {
                residency.selector: residency.alternatives.index(stored)
                for residency, stored in zip(
                    every.space.nest.residency.values(), storage_of(machine), strict=True
                )
                if not isinstance(residency.selector, int)
            }
            orders = [selector for selector in every.space.selectors if selector not in stores]
            assert [len(order.domain) for order in orders] == [len(o.domain) for o in own.space.selectors]
            for _ in range(20):
                chosen = [draw.choice(order.domain) for order in orders]
                mine, all_ = (
                    dict(zip(own.space.selectors, chosen, strict=True)),
                    dict(zip(orders, chosen, strict=True)),
                )
                for group, other in zip(own.space.groups, every.space.groups, strict=True):
                    assert (group.rows == other.rows).all()
                    row = group.rows[draw.randrange(len(group))].tolist()
                    mine |= zip(group.variables, row, strict=True)
                    all_ |= zip(other.variables, row, strict=True)
                all_ |= stores
                for one_says, all_say in (
                    (own.statement.energy, every.statement.energy),
                    (own.statement.cycles, every.statement.cycles),
                ):
                    says, at_least = evaluate(one_says, mine), evaluate(all_say, all_)
                    assert says == at_least or (
                        not stores_near(machine)
                        and (kind == LEAST or leaks_outside(every))
                        and says > at_least
                    )
                allowed = [
                    all(evaluate(limit.expr, decided) <= limit.bound for limit in part.limits)
                    for part, decided in ((own, mine), (every, all_))
                ]
                assert allowed[0] == allowed[1]
                assert evaluate(spent_elsewhere(every, spent), all_) == spent[storage_of(machine)]
                compared += 1
                legal += allowed[0]
    assert compared > 100
    assert 0 < legal < compared


def test_what_is_listed_together_is_what_each_machine_lists() -> None:
    """Bounds and tiles of all that is left inside, of every machine and sequence of points."""
    draw, compared, fewer = random.Random(8), 0, 0
    for _ in range(effort(1)):
        problem = past_a_loose_level(draw, DIVISORS)
        search = LayerSearch(problem, Limits())
        best = solve(problem.even(), "branch").key
        assert best is not None
        goal = Below(Minimum(search, "test"), 0.95 * float(best * problem.key_scale))
        machines, together = [*storages(problem)], dict[Any, InsideTogether]()
        bounds = []
        for machine in machines:
            key = InsideTogether.key(machine)
            together.setdefault(key, InsideTogether(search, goal, machine, PartTables()))
            bounds.append(SegmentBounds(search, goal, machine, False, PartTables()))
            bounds[-1].begin_at_once(0, together[key])
        for machine, listing in draw.sample([*zip(machines, bounds, strict=True)], len(machines) // 2):
            listed = {own.slots: own for own in listing._look_inside()}
            listing._together = None
            listing._inner_parts = [inside_part(machine, inner) for inner in listing._inner]
            alone = {own.slots: own for own in listing._look_inside()}
            assert listed.keys() == alone.keys()
            compared += len(alone)
            fewer += len(alone) < len(listing._inner)
            for slots, own in alone.items():
                other = listed[slots]
                assert (own.key, own.energy, own.cycles) == (other.key, other.energy, other.cycles)
                assert own.tiles is not None
                assert other.tiles is not None
                for name, tiles in own.tiles.items():
                    assert tiles.tolist() == other.tiles[name].tolist()
    assert compared
    assert fewer


def test_two_tensors_of_a_role_that_may_bypass_have_no_parts() -> None:
    """One of them may be stored without the other, which no machine of fixed storage says."""
    _, operator = parse_layer("nest:O[i,j] += A[i,k] * B[k,j] * D[i] : i=4,j=3,k=4")
    machines = {role: past_a_dear_level((4, 2, 1), DIVISORS).engine for role in (Role.INPUT, Role.WEIGHT)}
    for role, engine in machines.items():
        levels = [replace(level, may_bypass=level.may_bypass & {role}) for level in engine.levels]
        engine = replace(engine, levels=tuple(levels))
        problem = layer_problem(
            operator, engine, parse_objective("energy"), factors="perfect", storage="uneven"
        )
        assert has_parts(problem) is (role is Role.WEIGHT)


def past_a_dear_level(sizes: tuple[int, int, int], kind: str) -> LayerProblem:
    """A product on a machine with a near level so dear that all tensors bypass it."""
    fan = Fanout((ArrayAxis("x", 2),), Fraction(0))
    levels = (
        MemoryLevel("DRAM", None, Fraction(60), Fraction(60)),
        MemoryLevel("BUF", 99, Fraction(900), Fraction(900), may_bypass=frozenset(Role), fanout=fan),
        MemoryLevel("RF", 4, Fraction(2), Fraction(2)),
    )
    engine = Engine("dear", "hierarchy", 16, Fraction(1), Fraction(500), levels)
    m, n, k = sizes
    return layer_problem(
        gemm(m=m, n=n, k=k), engine, parse_objective("energy"), factors=FACTORS[kind], storage="uneven"
    )


def test_near_levels_that_store_nothing() -> None:
    """Arrangements inside the array are searched, too, where nothing is stored outside it."""
    problem = past_a_dear_level((4, 2, 1), DIVISORS)
    assert has_parts(problem)
    assert agrees(problem)


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
@pytest.mark.parametrize("sizes", [(2, 3, 2), (3, 1, 3), (5, 2, 1)])
def test_near_levels_that_store_nothing_at_length(
    sizes: tuple[int, int, int], kind: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same on more products, also where tiles need not divide."""
    monkeypatch.setattr(arrangement_trees, "is_large", lambda _problem: large)
    monkeypatch.setattr(arrangement_trees, "_FEW", 0)
    assert agrees(past_a_dear_level(sizes, kind), kind)


def filled_first(problem: LayerProblem, draw: random.Random) -> LayerProblem:
    """The same, minimising some product, where near levels are filled through one slow port first."""
    first, *others = problem.engine.levels
    array = next(index for index, level in enumerate(others) if level.fanout)
    port = {"read_bandwidth": draw.choice([Fraction(1, 4), Fraction(1, 2), Fraction(1)])}
    levels = [
        replace(level, read_bandwidth=None, write_bandwidth=None, double_buffered=index <= array)
        for index, level in enumerate(others)
    ]
    engine = replace(problem.engine, levels=(replace(first, **port, write_bandwidth=None), *levels))  # type: ignore[arg-type]
    objective = parse_objective(draw.choice(["edp", "ed2p", "E^2*D"]))
    return layer_problem(problem.operator, engine, objective, factors=FACTORS[LEAST], storage="uneven")


def test_claims_where_first_fills_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The front outside bounds lists of the inside below rising cutoffs; no stop leaves a bound too high."""
    cuts, honest, found = list[bool](), OutsideFront.cut, segment_bounds.found_outside

    def finding(searches: PartSearches, parts: Any, below: float, *rest: int) -> Any:
        goal = goal_of(searches._search)
        assert goal is not None
        assert below >= float(goal * searches._search.problem.key_scale)  # all that may still be wanted
        return found(searches, parts, below, *rest)

    def noted(front: OutsideFront, cut: Cut) -> Cut:
        both = honest(front, cut)
        cuts.append(both is not cut)
        return both

    def start(trees: ArrangementTrees, _share: float) -> bool:
        offer_one_mapping(trees._search)
        return False

    monkeypatch.setattr(OutsideFront, "cut", noted)
    monkeypatch.setattr(segment_bounds, "found_outside", finding)
    monkeypatch.setattr(ArrangementTrees, "_offer_even", start)
    monkeypatch.setattr(ArrangementTrees, "_offer_perfect_factors", lambda _trees: None)
    monkeypatch.setattr(arrangement_trees, "is_large", lambda _problem: True)
    for name, value in {"_FEW": 0, "_QUICK": 0, "_EFFORT": 1, "_LOOK": 1}.items():
        monkeypatch.setattr(arrangement_trees, name, value)
    monkeypatch.setattr(segment_bounds, "_TELLING", -1)
    draw = random.Random(6)
    drawings = (filled_first(drawn(seed, 8, LEAST), draw) for seed in count(7))
    problems = (own for own in drawings if has_parts(own) and len(list(own.arrangements())) <= 24)
    bounded = early = 0
    for problem in islice(problems, effort(25)):
        cuts.clear()
        assert agrees(problem, LEAST)
        bounded += any(cuts)
        optimum = solve(problem, "branch").key
        for looks in draw.sample(range(20, 300), 6):
            with in_blocks_of(4):
                cut = solve(problem, "branch", Limits().stopping(AfterChecks(looks)))
            assert optimum is None or cut.bound is None or cut.bound <= optimum
            early += cut.status is Status.INTERRUPTED or cut.bound != optimum
    assert bounded >= effort(15)
    assert early >= effort(30)


@pytest.mark.parametrize("even", ["a tree", "proven", "open", "cut short"])
@pytest.mark.parametrize("most", [4_000_000, 4])
def test_claims_where_tiles_need_not_divide(even: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The even part searched first, or bounded by parts as all others are; listed at once, or in steps."""
    monkeypatch.setattr(inside_together, "_MOST", most)
    monkeypatch.setattr(arrangement_trees, "is_large", lambda _problem: even != "a tree")
    if even == "open":
        monkeypatch.setattr(ArrangementTrees, "_offer_even", lambda _trees, _share: False)
    if even == "cut short":  # what is known of it then closes nothing
        monkeypatch.setattr(arrangement_trees, "_SHARE", 0.0)
        monkeypatch.setattr(arrangement_trees, "_MOSTLY", 0.0)
    monkeypatch.setattr(arrangement_trees, "_FEW", 0)
    drawings = (drawn(seed, 7, LEAST) for seed in count(7))
    problems = (
        drawing for drawing in drawings if has_parts(drawing) and len(list(drawing.arrangements())) <= 8
    )
    assert sum(agrees(problem, LEAST) for problem in islice(problems, effort(3))) > 0


def test_fills_tell_nothing_where_nothing_outside_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of which nothing is known but that they are not less than 0."""
    monkeypatch.setattr(part_searches, "_SLACK", 1.0)
    fan, free = Fanout((ArrayAxis("x", 2),), Fraction(0)), Fraction(0)
    levels = (
        MemoryLevel("DRAM", None, free, free, read_bandwidth=Fraction(1, 2)),
        MemoryLevel("BUF", 6, free, free, double_buffered=True, fanout=fan),
        MemoryLevel("RF", 3, free, free),
    )
    engine = Engine("free", "hierarchy", 16, Fraction(1), Fraction(500), levels)
    problem = layer_problem(gemm(m=3, n=2, k=1), engine, parse_objective("edp"), storage="uneven")
    bounds = SegmentBounds(
        search := LayerSearch(problem, Limits()), Minimum(search, "test"), problem, True, PartTables()
    )
    search_parts(bounds)
    assert not bounds.fills_count


def test_uneven_fronts_hold_the_even_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tiles need not divide: the best even mapping is known, and closes no even part of a front."""
    monkeypatch.setattr(arrangement_trees, "_FEW", 0)
    draw, beyond = random.Random(1), 0
    drawings = (drawn(seed, 12, LEAST).minimising(parse_objective("edp")) for seed in count(7))
    problems = (own for own in drawings if has_parts(own) and len(list(own.arrangements())) <= 12)
    for problem in islice(problems, effort(8)):
        monkeypatch.setattr(arrangement_trees, "_QUICK", draw.choice([0, 200_000]))
        large = draw.random() < 0.5
        monkeypatch.setattr(arrangement_trees, "is_large", lambda _problem, large=large: large)
        whole, even = (
            {(solution.evaluation.energy, solution.evaluation.cycles) for solution in front.solutions}
            for front in (pareto_front(problem), pareto_front(problem.even()))
        )
        for energy, cycles in even:
            assert any(other[0] <= energy and other[1] <= cycles for other in whole)
        beyond += len(whole & even) > 1
    assert beyond


def test_the_best_even_mapping_comes_before_parts_of_large_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of what may beat the best perfect factors would be long where remainders save much."""
    monkeypatch.setattr(arrangement_trees, "is_large", lambda _problem: True)
    known: list[Fraction | None] = []
    few_machines = ArrangementTrees._few_machines

    def listing(trees: ArrangementTrees, *rest: Any) -> list[SegmentBounds]:
        known.append(goal_of(trees._search))
        return few_machines(trees, *rest)

    monkeypatch.setattr(ArrangementTrees, "_few_machines", listing)
    engine = load_engine("studies/machines/peer-eyeriss.yaml")
    problem = layer_problem(gemm(m=13, n=22, k=17), engine, parse_objective("edp"), storage="uneven")
    best_even = solve(problem.even(), "branch", Limits()).key
    assert best_even != solve(problem.with_perfect_factors(), "branch", Limits()).key
    assert solve(problem, "branch", Limits()).key is not None
    assert known[-1] is not None
    assert best_even is not None
    assert known[-1] <= best_even


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_claims_where_tiles_need_not_divide_at_length(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on some hundred more, in many small steps of the cutoff."""
    monkeypatch.setattr(arrangement_trees, "is_large", lambda _problem: True)
    monkeypatch.setattr(arrangement_trees, "_FEW", 0)
    monkeypatch.setattr(turns, "_STEP", 0.01)
    monkeypatch.setattr(turns, "_FASTER", 2)
    problems = (
        problem for seed in range(60 * part, 60 * part + 60) if has_parts(problem := drawn(seed, 8, LEAST))
    )
    assert sum(agrees(problem, LEAST) for problem in problems) > 5


@pytest.mark.parametrize("start", [0, 10_000])
def test_every_mapping_computes_as_long_as_the_best_splits_at_least(start: int) -> None:
    """Random decisions of random arrangements, of all machines: no bound of computing is above theirs."""
    draw, compared, met = random.Random(start), 0, 0
    problems = (problem for seed in count(start) if has_parts(problem := drawn(seed, 64)))
    for problem in islice(problems, effort(10)):
        search = LayerSearch(problem, Limits())
        problem = problem.minimising(parse_objective("edp"))
        machines = [replace(machine, alike=None) for machine in storages(problem)]
        bounds = [SegmentBounds(search, Minimum(search, "t"), own, True, PartTables()) for own in machines]
        (computing,) = {own.computing() for own in bounds}
        for machine in machines:
            arrangements = [*islice(machine.arrangements(), 1, 40)]
            for slots in draw.sample(arrangements, min(3, len(arrangements))):
                part = machine.arranged(slots)
                for _ in range(10):
                    assignment = {selector: draw.choice(selector.domain) for selector in part.space.selectors}
                    for group in part.space.groups:
                        row = group.rows[draw.randrange(len(group))]
                        assignment |= dict(zip(group.variables, row.tolist(), strict=True))
                    evaluation = part.evaluate(part.decode(assignment))
                    if not any("axis" in text for text in evaluation.violations):
                        compared += 1
                        steps = evaluate(part.space.nest.steps(), assignment)
                        met += steps == computing
                        assert computing <= steps <= evaluation.cycles
    assert compared > 50
    assert met


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_what_is_compulsory_outside(kind: str) -> None:
    """No random decisions of a part outside spend less than what every mapping spends there at least."""
    draw, compared, met = random.Random(4), 0, 0
    problems = [*islice((p for seed in count(90) if has_parts(p := drawn(seed, 60, kind))), effort(6))]
    problems += [past_a_loose_level(draw, kind) for _ in range(effort(2))]
    strides = (instance.problem(kind) for seed in count(600) if (instance := strided(seed, 12)))
    for problem in (*problems, *islice(filter(has_parts, strides), effort(6))):
        for machine in filter(stores_near, storages(problem)):
            least = least_outside(machine)
            for near in islice(near_arrangements(machine), 3):
                part = outside_part(machine, near)
                for _ in range(10):
                    energy = sampled(part, draw)[0]
                    compared += 1
                    met += energy == least
                    assert least <= energy
    assert compared > 200
    assert met


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_near_tiles_of_every_whole_stand_around_those_inside(kind: str) -> None:
    """What is left outside, given some tiles inside, has the near tiles of all wholes with those."""
    draw, compared, fewer = random.Random(6), 0, 0
    problems = [*islice((p for seed in count(30) if has_parts(p := drawn(seed, 60, kind))), effort(6))]
    problems += [past_a_loose_level(draw, kind) for _ in range(effort(2))]
    for problem in problems:
        for machine in filter(stores_near, storages(problem)):
            near, inner = (
                draw.choice([*every(machine)]) for every in (near_arrangements, inner_arrangements)
            )
            whole, space = machine.arranged_space((*near, *inner)), outside_part(machine, near).space
            rows = {
                group.name: group.having(group.rows[[draw.randrange(len(group))]]) for group in whole.groups
            }
            inside = {name: tiles_at(whole, within(whole), group) for name, group in rows.items()}
            left = standing_around(space, near, [inside])
            for group, every in zip(left.groups, space.groups, strict=True):
                kept = tiles_at(left, around(near), group)
                wholes = restricted(whole, within(whole), inside)
                (own,) = (other for other in wholes.groups if other.name == group.name)
                assert among(tiles_at(whole, around(near), own), kept).all()
                compared += 1
                fewer += len(group) < len(every)
    assert compared > 30
    assert fewer


def test_parts_are_listed_at_once_where_that_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum is that of rising cutoffs, by fewer trees; where too much is left they follow."""
    operator, engine = gemm(m=64, n=64, k=64), load_engine("nvdla-256")
    problem = layer_problem(operator, engine, parse_objective("edp"), factors="perfect", storage="uneven")
    begun = list[bool]()

    def noted(begins: Callable[..., None], searches: bool) -> Callable[..., None]:
        def begin(*given: object) -> None:
            begun.append(searches)
            begins(*given)

        return begin

    monkeypatch.setattr(SegmentBounds, "begin", noted(SegmentBounds.begin, True))
    monkeypatch.setattr(SegmentBounds, "begin_at_once", noted(SegmentBounds.begin_at_once, False))
    ended = []
    for quick, most in ((0, 1_000_000), (20_000, 1_000_000), (20_000, 0)):
        monkeypatch.setattr(arrangement_trees, "_QUICK", quick)
        monkeypatch.setattr(inside_together, "_MOST", 4 * most)
        begun.clear()
        result = solve(problem, "branch")
        assert result.status is Status.OPTIMAL
        ended.append((result.key, [*begun]))
    assert len({key for key, _ in ended}) == 1
    assert [ways for _, ways in ended] == [[True], [False], [False, True]]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_claims_are_those_of_enumeration_at_length(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on some hundred more, up to eight iterations, half of them in many steps of the cutoff."""
    if part % 2:
        monkeypatch.setattr(arrangement_trees, "_QUICK", 0)
        monkeypatch.setattr(turns, "_STEP", 0.01)
        monkeypatch.setattr(turns, "_FASTER", 2)
    problems = [problem for seed in range(40 * part, 40 * part + 40) if has_parts(problem := drawn(seed, 8))]
    assert sum(agrees(problem) for problem in problems) > 5


def least_of(part: LayerProblem) -> Fraction | None:
    """The least key (scaled) of a part's legal mappings, each of them evaluated."""
    space, keys = part.space, []
    for rows in cartesian(*(group.rows.tolist() for group in space.groups)):
        tiles = {
            variable: int(size)
            for group, row in zip(space.groups, rows, strict=True)
            for variable, size in zip(group.variables, row, strict=True)
        }
        for chosen in cartesian(*(selector.domain for selector in space.selectors)):
            assignment = {**tiles, **dict(zip(space.selectors, chosen, strict=True))}
            evaluation = part.evaluate(part.decode(assignment))
            if not evaluation.violations:
                keys.append(part.key_of(evaluation) * part.key_scale)
    return min(keys, default=None)


@pytest.mark.parametrize("objective", ["energy", "cycles"])
def test_what_is_told_of_parts_is_never_above_the_optimum(objective: str) -> None:
    """Nor where it is all that there is to tell, with cycles of computing known."""
    told: list[Fraction] = []
    for seed in (11, 13, 16, 21):
        (machine,) = storages(drawn(seed, 6).minimising(parse_objective(objective)))
        least = solve(machine, "branch", Limits(seconds=60)).key
        assert least is not None
        search = LayerSearch(machine, Limits())
        bounds = SegmentBounds(search, Minimum(search, "test"), machine, True, PartTables())
        bounds.begin(bounds.computing())
        going = True
        while going:
            told.append(Fraction(bounds.least) / (least * machine.key_scale))
            going = bounds.go_on()
    assert 1 - Fraction(1, 10**9) < max(told) <= 1


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_what_effort_leaves_open_of_a_list_is_below_all_of_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Least keys and energies of a list that was cut short bound those of the whole list."""
    monkeypatch.setattr(segment_bounds, "is_small", lambda part: False)
    monkeypatch.setattr(segment_bounds, "_LISTING", 0)
    problems = (problem for seed in count(7) if has_parts(problem := drawn(seed, 60, kind)))
    cut = 0
    for problem in islice(problems, effort(3)):
        (machine, *_) = storages(problem.minimising(parse_objective("edp")))
        whole: list[segment_bounds.Survivors] = []
        for most in (10**9, 10, 160):
            monkeypatch.setattr(segment_bounds, "_MOST_LISTED", most)
            search = LayerSearch(machine, Limits())
            bounds = SegmentBounds(search, Minimum(search, "test"), machine, True, PartTables())
            search_parts(bounds)
            left = bounds._look_inside()
            whole = whole or left
            assert bounds._inside <= min(every.energy for every in whole) * (1 + 1e-9)
            for own, every in zip(left, whole, strict=True):
                assert own.slots == every.slots
                assert own.key <= every.key * (1 + 1e-9)
                assert own.energy <= every.energy * (1 + 1e-9)
                assert own.cycles <= every.cycles
                cut += own.tiles is None
    assert cut


@pytest.mark.parametrize("seed", [34, 123])
def test_rising_cutoffs_bound_each_part_anew(seed: int) -> None:
    """What survivors of a lower cutoff spend does not bound what a higher one gives out.

    In each of these problems a part has a mapping that costs less than the survivors' energies tell.
    """
    problem = drawn(seed, 8).minimising(parse_objective("edp"))
    compared = 0
    for machine in storages(problem):
        search = LayerSearch(problem, Limits())
        goal = Minimum(search, "test")
        bounds = SegmentBounds(search, goal, machine, True, PartTables())
        search_parts(bounds)
        least = bounds.least
        for step in (1.02, 1.1, 1.3, 3.0):
            bounds.want(Below(goal, step * least))
            bounds.look_inside()
            for pair in bounds.pairs():
                part = pair.stated()
                optimum = None if part is None else least_of(part)
                if optimum is not None:
                    compared += 1
                    assert bounds.least <= pair.key <= optimum
    assert compared


@pytest.mark.parametrize("stated", ["inside_part", "outside_part"])
def test_a_limit_may_strike_while_parts_are_stated(stated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No further part is stated: machines of many levels have thousands of them."""
    problem = next(
        problem
        for seed in count()
        if has_parts(problem := drawn(seed, 60).minimising(parse_objective("energy")))
        and len([*near_arrangements(problem)]) > 2
        and len([*inner_arrangements(problem)]) > 2
    )
    honest, search = getattr(segment_bounds, stated), LayerSearch(problem, Limits())
    parts: list[LayerProblem] = []

    def counted(*given: object) -> LayerProblem:
        search.limits.stop.set()
        parts.append(honest(*given))
        return parts[-1]

    monkeypatch.setattr(segment_bounds, stated, counted)
    (machine, *_) = storages(problem)
    bounds = SegmentBounds(search, Minimum(search, "test"), machine, True, PartTables())
    with pytest.raises(LimitReachedError):
        search_parts(bounds)
    assert len(parts) == 1


@pytest.mark.parametrize("most", [0, 1_000_000])
@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_rising_cutoffs_find_what_parts_cost(kind: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where little effort leaves parts open, more of it finds the same least values, or lower ones."""
    problems = (problem for seed in count(7) if has_parts(problem := drawn(seed, 60, kind)))
    raised, honest = list[bool](), PartSearches._least_below

    def noted(self: PartSearches, goal: LeastEnergy, layout: Layout, known: float) -> float:
        least = honest(self, goal, layout, known)
        raised.append(least > known)
        return least

    monkeypatch.setattr(PartSearches, "_least_below", noted)
    monkeypatch.setattr(segment_bounds, "_TELLING", math.inf)  # else products have little effort alone
    dive = BestFirst._dive
    for problem in islice(problems, effort(18)):
        (machine, *_) = storages(problem)
        least = []
        for effort_first, effort_then in ((1_000_000, 1_000_000), (1, most)):
            # Without a dive no value is known that happens to be the least one; without effort it is one
            # that a bound must not reach.
            dives = effort_first > 1 or most == 0
            monkeypatch.setattr(BestFirst, "_dive", dive if dives else lambda _tree, _nodes: None)
            monkeypatch.setattr(part_searches, "_LITTLE_EFFORT", effort_first)
            monkeypatch.setattr(part_searches, "_EFFORT", effort_then)
            monkeypatch.setattr(part_searches, "_SLACK", 0.0)
            search = LayerSearch(problem, Limits())
            bounds = SegmentBounds(search, Minimum(search, "test"), machine, True, PartTables())
            search_parts(bounds)
            least.append(bounds.least)
        exact, cut = least
        assert cut == pytest.approx(exact, rel=1e-9) if most else cut <= exact * (1 + 1e-9)
    assert raised
    assert any(raised) == (most > 0)


def test_claims_where_windows_slide_and_tiles_need_not_divide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts bound uneven storage of windows whose overlap stays in the innermost level."""
    monkeypatch.setattr(arrangement_trees, "_FEW", 0)
    monkeypatch.setattr(arrangement_trees, "is_large", lambda _problem: True)
    judged = 0
    for seed in count(500_000):
        instance = strided(seed, 6)
        levels = instance.engine.levels
        levels = (*levels[:-1], replace(levels[-1], sliding_window=True))
        instance = replace(instance, engine=replace(instance.engine, levels=levels))
        slides = any(
            tensor.role in levels[-1].keeps and sliding_dims(instance.operator, tensor)
            for tensor in instance.operator.tensors
        )
        problem = instance.problem(LEAST)
        if slides and instance.has_few(LEAST, 8) and has_parts(problem):
            least = instance.least(instance.oracle(LEAST))
            result = solve(problem, "branch", Limits(seconds=60))
            assert (result.key, result.bound) == (least, least), seed
            judged += 1
            if judged == effort(4):
                break


@pytest.mark.parametrize("step", [2, 10])
def test_a_limit_while_parts_are_searched(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped at any part: the even mapping stands, and no bound is above the optimum."""
    engine = load_engine("dmazerunner-256")
    problem = layer_problem(
        gemm(m=16, n=24, k=32),
        engine,
        parse_objective("edp"),
        "hierarchy",
        factors="perfect",
        storage="uneven",
    )
    limits, real, stated = Limits(), inside_part, count(1)

    def counted(*arguments: Any) -> LayerProblem:
        if next(stated) == step:
            limits.stop.set()
        return real(*arguments)

    monkeypatch.setattr(inside_together, "inside_part", counted)
    cut = solve(problem, "branch", limits)
    even = solve(problem.even(), "branch")
    assert cut.status is Status.INTERRUPTED
    assert cut.bound is not None
    assert cut.key is not None
    assert even.key is not None
    assert 0 < cut.bound < cut.key <= even.key
    assert problem.outside(cut.answer) is None  # type: ignore[arg-type]


def test_a_limit_while_machines_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that strikes while arrangements of one machine are listed keeps those of others from it."""
    problem = layer_problem(
        gemm(m=16, n=24, k=32), load_engine("tpu-v4i"), parse_objective("edp"), storage="uneven"
    )
    limits, real, listed = Limits(), wholes.near_arrangements, count(1)

    def counted(machine: LayerProblem) -> Iterator[Arrangement]:
        if next(listed) == 2:
            limits.stop.set()
        return real(machine)

    monkeypatch.setattr(wholes, "near_arrangements", counted)
    cut = solve(problem, "branch", limits)
    assert len(list(storages(problem))) > 2 == next(listed) - 1
    assert cut.status is Status.INTERRUPTED
    assert cut.bound is not None
    assert cut.key is not None
    assert 0 < cut.bound < cut.key


def test_compulsory_traffic_is_below_the_optimum_of_real_layers() -> None:
    """Strides, windows and arrays: energy and cycles of proven mappings are no less."""
    for name in ("nvdla-256", "tpu-v4i"):
        engine = load_engine(name)
        operator = conv2d(n=1, k=8, c=4, p=5, q=5, r=3, s=3, stride=2)
        for goal in ("energy", "cycles"):
            result = solve(
                layer_problem(operator, engine, parse_objective(goal), factors="perfect"), "branch"
            )
            assert result.evaluation is not None
            assert least_energy(operator, engine) <= result.evaluation.energy
            assert least_cycles(operator, engine) <= result.evaluation.cycles
