"""Uneven storage and every integer tile, searched and proven, against plain enumeration."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count, islice

import pytest
from effort import effort
from particulars import particular
from uneven_oracle import DIVISORS, EVERY, LEAST, Oracle

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.claimed_space import ClaimedSpace
from tilewright.formulation.mapping.mapping import Mapping, Node, Storage, Temporal
from tilewright.formulation.mapping.nests.arrangements import Reduction, arrangements
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.hardware.mapping.timing import Timing
from tilewright.solvers.mapping.answers.answer_set_searches import AnswerSetRequest
from tilewright.solvers.mapping.arrangements import arrangement_trees
from tilewright.solvers.mapping.arrangements.arrangement_trees import ArrangementTrees
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import gemm, matmul

KINDS = {
    DIVISORS: {"factors": "perfect"},
    LEAST: {"factors": "imperfect"},
    EVERY: {"factors": "imperfect", "tiles": "every"},
}
REDUCTIONS = {DIVISORS: Reduction.FORMS, LEAST: Reduction.LOOPS, EVERY: Reduction.NONE}
FEW = {DIVISORS: 4, LEAST: 4, EVERY: 6}  # arrangements, each of which is stated anew
ENERGY = parse_objective("energy")
POWERS = {"energy": (1, 0), "cycles": (0, 1), "edp": (1, 1)}


def random_operator(draw: random.Random, most: int) -> Operator:
    """A product of small matrices, or a nest like one."""
    sizes = [1, 1, 1]
    while True:
        place = draw.randrange(3)
        grown = sizes.copy()
        grown[place] += draw.choice([1, 1, 2, 3])
        if grown[0] * grown[1] * grown[2] > most:
            break
        sizes = grown
    a, b, c = sizes
    kind = draw.choice(["gemm", "gemm", "matmul", "nest"])
    if kind == "matmul":
        return matmul(batch=2, m=a, n=1, k=min(b, 3)) if a > 1 else gemm(m=a, n=b, k=c)
    if kind == "nest":
        return nest(
            "O[i] += A[i,j] * B[j,k]", bounds={"i": a, "j": b, "k": c}, like={"i": "K", "j": "C", "k": "P"}
        )
    return gemm(m=a, n=b, k=c)


def random_machine(draw: random.Random) -> Engine:
    """Two or three levels, with or without an array, tight buffers, some levels kept from some tensors."""

    def energy() -> Fraction:
        return Fraction(draw.randint(0, 20), draw.choice([1, 2]))

    def bandwidth() -> Fraction | None:
        return draw.choice([None, Fraction(1, 2), Fraction(1), Fraction(3)])

    def level(name: str, most: int, **fields: object) -> MemoryLevel:
        return MemoryLevel(
            name,
            draw.randint(3, most),
            energy(),
            energy(),
            read_bandwidth=bandwidth(),
            write_bandwidth=bandwidth(),
            double_buffered=draw.random() < 0.5,
            timing=Timing(drained=draw.random() < 0.3),
            **fields,  # type: ignore[arg-type]
        )

    fan = Fanout(
        (ArrayAxis("x", draw.choice([2, 3, 4])),),
        multicast=draw.random() < 0.7,
        reduction=draw.random() < 0.7,
    )
    dram = MemoryLevel(
        "DRAM", None, Fraction(100), Fraction(100), read_bandwidth=bandwidth(), write_bandwidth=bandwidth()
    )
    keeps = draw.choice(
        [frozenset(Role), frozenset(Role), frozenset({Role.WEIGHT}), frozenset({Role.OUTPUT, Role.INPUT})]
    )
    loose = (
        draw.choice([frozenset[Role](), frozenset({Role.INPUT}) & keeps])
        if len(keeps) > 1
        else frozenset[Role]()
    )
    shape = draw.choice(["one", "array", "array", "two", "split", "spread"])
    if shape == "one":
        levels = (dram, level("BUF", 12))
    elif shape == "array":
        levels = (dram, level("BUF", 12, fanout=fan), level("RF", 6, keeps=keeps, may_bypass=loose))
    elif shape == "split":  # outputs past the buffer of the others
        own = frozenset({Role.OUTPUT})
        levels = (dram, level("BUF", 8, keeps=frozenset(Role) - own), level("ACC", 6, keeps=own, fanout=fan))
        levels = (*levels, level("RF", 3, keeps=frozenset({Role.WEIGHT})))
    elif shape == "spread":
        levels = (replace(dram, fanout=fan), level("BUF", 8))
    else:
        levels = (dram, level("BUF", 12), level("RF", 6, keeps=keeps, may_bypass=loose))
    return Engine("random", "hierarchy", 16, energy(), Fraction(500), levels)


@dataclass(frozen=True)
class Instance:
    """What is drawn for a seed."""

    seed: int
    objective: str
    operator: Operator
    engine: Engine

    def problem(self, kind: str) -> LayerProblem:
        """The instance over uneven storage."""
        objective = parse_objective(self.objective)
        return layer_problem(self.operator, self.engine, objective, storage="uneven", **KINDS[kind])  # type: ignore[arg-type]

    def arrangements(self, kind: str) -> int:
        """In how many sequences the points of storage may stand."""
        return sum(1 for _ in arrangements(self.operator, self.engine, REDUCTIONS[kind]))


def instance(seed: int, most: int) -> Instance:
    """A random operator of at most so many iterations on a random machine; a third sets roles apart."""
    draw = random.Random(seed)
    objective = draw.choice(sorted(POWERS))
    operator, engine = random_operator(draw, most), random_machine(draw)
    if seed % 3 == 0:
        engine = particular(engine, draw.choice)
    return Instance(seed, objective, operator, engine)


def agrees(instance: Instance, kind: str, solver: str = "branch") -> bool:
    """Whether a random instance has a mapping; its claim is that of enumeration."""
    problem, seed = instance.problem(kind), instance.seed
    oracle = Oracle(problem.operator, problem.engine, kind)
    wanted = oracle.least(POWERS[problem.objective.name])
    result = solve(problem, solver, Limits(seconds=60))
    assert result.status is (Status.INFEASIBLE if wanted is None else Status.OPTIMAL), (seed, result.message)
    assert (result.key, result.bound) == (wanted, wanted), (seed, problem.operator.bounds)
    return wanted is not None


@pytest.mark.parametrize("kind", KINDS)
def test_claims_are_those_of_enumeration(kind: str) -> None:
    """Least energy, cycles and EDP over all loop sequences, tiles and points of storage."""
    drawn = (instance(seed, 6) for seed in count())
    few = (instance for instance in drawn if instance.arrangements(kind) <= FEW[kind])
    assert sum(agrees(instance, kind) for instance in islice(few, effort(25))) > effort(7)


def test_bounds_know_energies_by_role() -> None:
    """A machine on which bounds that charge one energy for all roles leave out the best mapping."""
    assert agrees(instance(1014, 8), DIVISORS)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_claims_are_those_of_enumeration_at_length(kind: str, part: int) -> None:
    """The same on more than a thousand larger instances, with all their arrangements."""
    seeds = range(1000 + 40 * part, 1040 + 40 * part)
    assert sum(agrees(instance(seed, 8), kind) for seed in seeds) > 20


@pytest.mark.parametrize("solver", ["exhaustive", "cpsat", "highs", "auto"])
def test_every_exact_solver_agrees(solver: str) -> None:
    """Solvers that know one arrangement at a time prove the same optimum."""
    problem = layer_problem(gemm(m=2, n=4, k=2), small(), ENERGY, factors="perfect", storage="uneven")
    even = solve(problem.even(), "branch")
    wanted = Oracle(problem.operator, problem.engine, DIVISORS).least((1, 0))
    result = solve(problem, solver, Limits(seconds=60))
    assert (result.status, result.key, result.bound) == (Status.OPTIMAL, wanted, wanted)
    assert wanted is not None
    assert even.key is not None
    assert wanted < even.key


@pytest.mark.parametrize("name", ["annealing", "random", "kapla"])
def test_heuristics_search_the_even_part_and_prove_nothing(name: str) -> None:
    """A heuristic's mapping counts; the bound that it has of even storage does not."""
    problem = layer_problem(gemm(m=2, n=4, k=2), small(), ENERGY, factors="perfect", storage="uneven")
    result = solve(problem, name, Limits(seconds=5))
    assert result.key is not None
    assert result.bound is None
    assert problem.outside(result.answer) is None  # type: ignore[arg-type]


def test_uneven_mappings_lie_in_the_uneven_space() -> None:
    """The proven mapping is outside the even space and inside its own; an even one is inside both."""
    problem = layer_problem(gemm(m=2, n=4, k=2), small(), ENERGY, factors="perfect", storage="uneven")
    uneven, even = solve(problem, "branch").answer, solve(problem.even(), "branch").answer
    assert uneven is not None
    assert even is not None
    assert "even storage begins outside" in str(problem.even().outside(uneven))
    assert problem.outside(uneven) is None
    assert problem.outside(even) is None
    assert problem.even().outside(even) is None


def test_any_points_of_storage_lie_in_the_full_space() -> None:
    """With perfect factors, whatever has one loop per dimension between points of storage lies inside."""
    draw = random.Random(3)
    problem = layer_problem(gemm(m=2, n=4, k=2), small(), ENERGY, factors="perfect", storage="uneven")
    tensors = [tensor.name for tensor in problem.operator.tensors]
    nests = list(Oracle(problem.operator, problem.engine, DIVISORS).nests())
    for _ in range(200):
        loops, _, _ = draw.choice(nests)
        points = {name: draw.randint(0, len(loops)) for name in tensors}
        nodes: list[Node] = [Storage(name, "DRAM") for name in tensors]
        seen: set[str] = set()
        twice = False
        for index in range(len(loops) + 1):
            here = [name for name in tensors if points[name] == index]
            nodes += [Storage(name, "BUF") for name in here]
            seen = set() if here else seen
            if index < len(loops):
                twice = twice or loops[index].dim in seen
                seen.add(loops[index].dim)
                nodes.append(Temporal(loops[index].dim, loops[index].tile))
        assert (problem.outside(Mapping(tuple(nodes))) is not None) == twice


def test_demands_on_loops_are_kept_over_uneven_storage() -> None:
    """Caps, tiles and orders hold for what is found, and the optimum is no better than without them."""
    operator = gemm(m=4, n=4, k=2)
    free = solve(layer_problem(operator, small(9), ENERGY, storage="uneven"), "branch")
    for demand in ("trips(N@DRAM)=2", "tile(M@BUF)<=2", "stationary@DRAM=C", "cycles<=40"):
        problem = layer_problem(operator, small(9), ENERGY, constraints=[demand], storage="uneven")
        result = solve(problem, "branch")
        assert result.status is Status.OPTIMAL, demand
        assert result.answer is not None
        assert result.key is not None
        assert free.key is not None
        assert not problem.evaluate(result.answer).violations
        assert result.key >= free.key


def test_a_tile_that_is_no_least_one_of_its_trip_count_wins() -> None:
    """Every integer tile: ten rows in tiles of 8 on four PEs, an EDP of 91260 against 94752."""
    operator = gemm(m=10, n=1, k=3)
    edp = parse_objective("edp")
    assert solve(layer_problem(operator, tiny(), edp), "branch").key == 94752
    problem = layer_problem(operator, tiny(), edp, tiles="every")
    result = solve(problem, "branch")
    assert (result.status, result.key) == (Status.OPTIMAL, 91260)
    assert set(ClaimedSpace.of(problem).tiles.values()) == {"every integer"}


def test_what_no_uneven_search_can_answer_is_refused() -> None:
    """Cost models of even storage, tiles without imperfect factors, and lists of mappings."""
    operator = gemm(m=2, n=2, k=2)
    with pytest.raises(InputError, match="even storage only"):
        layer_problem(operator, load_engine("dmazerunner-256"), ENERGY, "dmazerunner", storage="uneven")
    with pytest.raises(InputError, match="needs imperfect factors"):
        layer_problem(operator, small(), ENERGY, factors="perfect", tiles="every")
    with pytest.raises(InputError, match="unknown 'odd'"):
        layer_problem(operator, small(), ENERGY, storage="odd")
    with pytest.raises(InputError, match="lists of mappings"):
        AnswerSetRequest(best=3).check("uneven")


def test_a_short_limit_leaves_a_mapping_and_a_true_bound() -> None:
    """A limit in the middle of many arrangements: no bound above the optimum, and no claim of one."""
    operator = gemm(m=6, n=4, k=4)
    problem = layer_problem(operator, small(20, levels=3), ENERGY, factors="perfect", storage="uneven")
    full = solve(problem, "branch")
    assert full.key is not None
    for seconds in (0.02, 0.1, 0.3):
        cut = solve(problem, "branch", Limits(seconds=seconds))
        assert cut.bound is None or 0 < cut.bound <= full.key
        assert cut.bound is not None or cut.key is None
        assert cut.key is None or cut.key >= full.key


@pytest.mark.parametrize("factors", ["perfect", "imperfect"])
def test_very_many_arrangements_wait_for_the_best_even_mapping(
    factors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that strikes while arrangements are listed leaves what even storage has."""
    uneven = layer_problem(
        gemm(m=6, n=4, k=5), load_engine("eyeriss-256"), ENERGY, None, (), factors, "uneven"
    )
    even, whole = solve(uneven.even(), "branch"), solve(uneven, "branch")

    def strike(_search: ArrangementTrees) -> None:
        raise LimitReachedError

    monkeypatch.setattr(arrangement_trees, "_VERY_MANY", 20)
    assert solve(uneven, "branch").key == whole.key
    monkeypatch.setattr(ArrangementTrees, "_even_tree", strike)
    stopped = solve(uneven, "branch")
    assert (stopped.status, stopped.key) == (Status.FEASIBLE, even.key)
    assert whole.key is not None
    assert stopped.bound is not None
    assert stopped.bound <= whole.key


def small(size: int = 7, levels: int = 2) -> Engine:
    """DRAM and one or two small buffers."""
    unit = Fraction(1)
    memories = [
        MemoryLevel("DRAM", None, 100 * unit, 100 * unit),
        MemoryLevel("BUF", size, 6 * unit, 6 * unit),
    ]
    if levels == 3:
        memories.append(MemoryLevel("RF", 5, unit, unit))
    return Engine("small", "hierarchy", 16, unit, Fraction(500), tuple(memories))


def tiny() -> Engine:
    """One buffer and four PEs that rows may be spread over."""
    unit = Fraction(1)
    fan = Fanout((ArrayAxis("x", 4, frozenset("P")),), Fraction(0))
    levels = (
        MemoryLevel("DRAM", None, 200 * unit, 200 * unit),
        MemoryLevel("BUF", 17, 6 * unit, 6 * unit, double_buffered=True, fanout=fan),
        MemoryLevel("RF", 3, unit, unit, double_buffered=True),
    )
    return Engine("tiny", "hierarchy", 8, unit, Fraction(1000), levels)
