"""Methods on tiled machines: legal plans within the bounds; orders and places against plain enumeration."""

from __future__ import annotations

import random
from itertools import combinations, permutations

import numpy as np
import pytest
from tiled_plans import random_network, random_problem

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledResult
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.annealing import Annealing, annealed_sizes
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential
from tilewright.heuristics.scheduling.tiled.partitions import regions
from tilewright.heuristics.scheduling.tiled.placement import matched, place
from tilewright.heuristics.scheduling.tiled.rounds import RoundOrder
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network

EVERY = (
    "ls",
    "ls[buffering=occupation,room=0.2]",
    "cnn-p",
    "cnn-p[clps=2]",
    "il-pipe",
    "il-pipe[depth=3]",
    "rammer",
    "atomic[moves=20]",
    "atomic[atoms=printed,order=rules,mapping=permutations,buffering=occupation,refine=off]",
    "atomic[atoms=repaired,order=rules,options=3,lookahead=2,mapping=nearest,moves=5]",
    "atomic[atoms=shares,order=layers,mapping=zigzag,refine=off]",
    "atomic[atoms=genetic,moves=2]",
    "sizes",
    "sizes[goal=spread,order=lists,mapping=zigzag]",
    "lns[steps=9,proof=0.5]",
    "layouts[moves=1]",
    "streams[passes=1,moves=2]",
    "auto[steps=1]",
)


def small_problem(seed: int, objective: str = "makespan", batch: int | None = None) -> TiledProblem:
    """A random network of five layers on 2 x 2 or 3 x 2 small engines."""
    rng = random.Random(seed)
    machine = rng.choice(["atomic-2x2[array=16x16]", "atomic-8x8[engines=3x2,link=8]"])
    samples = rng.choice([1, 3]) if batch is None else batch
    return TiledProblem(
        random_network(rng), load_tiled_machine(machine), tiled_objective(objective), batch=samples
    )


def solved(problem: TiledProblem, method: str, seed: int = 0) -> TiledResult:
    """What a method finds."""
    return plan_run(lambda: problem, method, Limits(60, seed=seed)).run()


@pytest.mark.parametrize("method", EVERY)
def test_every_method_plans_within_the_bounds(method: str) -> None:
    """On random networks every method gives a plan that the evaluator accepts, above all bounds, unproven."""
    for seed, objective in enumerate(["makespan", "energy", "edp"]):
        if seed != EVERY.index(method) % 3:
            continue  # one objective for each method, and every objective for one of three methods
        problem = small_problem(seed, objective, batch=1 + 2 * (seed == 1))
        result = solved(problem, method)
        assert result.status is Status.FEASIBLE, result.message
        assert result.answer is not None
        assert result.key is not None
        assert result.bound is not None
        fresh = problem.evaluate(result.answer.dag, result.answer.plan)
        assert problem.objective.value(result.key) == pytest.approx(problem.value(fresh), rel=1e-12)
        assert result.bound <= result.key
        assert fresh.cycles >= dag_bounds(result.answer.dag, problem.machine).cycles


def test_the_same_seed_finds_the_same_plan() -> None:
    """Two runs with one seed agree in key and sizes; the climb never ends above its start."""
    problem = small_problem(3)
    result, other = (solved(problem, "atomic[moves=5]", seed=7) for _ in range(2))
    assert result.answer is not None
    assert other.answer is not None
    assert result.key == other.key
    assert result.answer.dag.tilings == other.answer.dag.tilings
    start = solved(problem, "atomic[refine=off]", seed=7)
    assert result.key is not None
    assert start.key is not None
    assert result.key <= start.key


def enumerated(dag: AtomicDag, engines: int) -> int:
    """Least sum of the rounds' longest atoms, by trying every order of full rounds."""
    starts, producers = dag.edges
    needs = [set(producers[starts[t] : starts[t + 1]].tolist()) for t in range(dag.tasks)]

    def least(done: frozenset[int]) -> int:
        ready = [t for t in range(dag.tasks) if t not in done and needs[t] <= done]
        if not ready:
            return 0
        return min(
            max(int(dag.cycles[t]) for t in chosen) + least(done | set(chosen))
            for chosen in combinations(ready, min(engines, len(ready)))
        )

    return least(frozenset())


@pytest.mark.parametrize("seed", [*range(5), pytest.param(5, marks=pytest.mark.slow)])
def test_the_dynamic_program_equals_enumeration(seed: int) -> None:
    """On tiny graphs algorithm 2 with every combination finds what enumeration finds; rules may lose."""
    rng = random.Random(seed)
    count = rng.choice([2, 3])
    layers = [
        Layer(f"l{i}", conv2d(k=rng.choice([16, 32]), c=16 if i == 0 else 32, r=1, s=1, h=8, w=8), "test")
        for i in range(count)
    ]
    links = [Link("l0", f"l{i}", "I", "x", 1) for i in range(1, count) if rng.random() < 0.5]
    machine = load_tiled_machine("atomic-2x2[array=16x16,engines=2x1]")
    problem = TiledProblem(Network("tiny", layers, links), machine, tiled_objective("makespan"))
    dag = problem.dag([AtomSize(rng.choice([3, 4, 5]), 8, 64, rng.choice([16, 32])) for _ in layers])
    least = enumerated(dag, 2)
    assert RoundOrder(dag, 2, options=0, lookahead=0, ranked=False).cost() == least
    for options in (0, 1, 4):
        for lookahead in (1, 2):
            assert RoundOrder(dag, 2, options, lookahead).cost() >= least


def test_rounds_keep_dependencies_and_engines() -> None:
    """Rounds hold at most as many atoms as engines, after everything that they read, samples in turn."""
    for seed in range(4):
        problem, dag = random_problem(random.Random(seed), "atomic-8x8[engines=3x2]")
        step = RoundOrder(dag, problem.machine.engines, 3, 2).steps()
        starts, producers = dag.edges
        readers = np.repeat(np.arange(dag.tasks), np.diff(starts))
        assert (step[producers] < step[readers]).all()
        assert np.bincount(step).max() <= problem.machine.engines


@pytest.mark.parametrize("seed", range(4))
def test_matching_is_the_least_of_all_assignments(seed: int) -> None:
    """The matching of a round costs what the best of all assignments of rows to columns costs."""
    cost = np.random.default_rng(seed).integers(0, 50, size=(3, 5))
    matching = matched(cost)
    assert len(set(matching.tolist())) == 3
    least = min(sum(cost[i, c] for i, c in enumerate(assignment)) for assignment in permutations(range(5), 3))
    assert cost[np.arange(3), matching].sum() == least


def test_places_are_distinct_within_a_round() -> None:
    """Every way of placing gives the atoms of a round engines of their own."""
    problem, dag = random_problem(random.Random(5), "atomic-8x8[engines=3x2]")
    step = layer_sequential(dag, problem.machine)[1]
    for how in ("zigzag", "permutations", "matching", "nearest"):
        engine = place(dag, problem.machine, step, how)
        assert len({*zip(step.tolist(), engine.tolist(), strict=True)}) == dag.tasks


def test_annealing_takes_sizes_that_fit() -> None:
    """Algorithm 1, printed and repaired, gives every layer a size whose atoms fit; a seed decides it."""
    problem = small_problem(1)
    for printed in (True, False):
        rules = Annealing(printed=printed, iterations=50)
        first, other = (annealed_sizes(problem, random.Random(2), rules) for _ in range(2))
        assert first == other
        assert problem.dag(first).needs.max() <= problem.machine.engine.buffer_bytes


def test_regions_follow_the_work() -> None:
    """Engines are shared out in proportion to work, one at least; more parts than engines are refused."""
    assert regions(8, [6, 1, 1]) == [6, 1, 1]
    assert regions(4, [100, 1, 1]) == [2, 1, 1]
    with pytest.raises(ValueError, match="at most 2"):
        regions(2, [1, 1, 1])


def test_bad_input_names_what_is_wrong() -> None:
    """A layer that fits no buffer, a batch of 0, a cycle, and an unknown option are one line each."""
    layer = Layer("wide", conv2d(k=16, c=16, r=3, s=3, h=8, w=8, pad=1), "test")
    machine = load_tiled_machine("atomic-2x2[buffer=0.0078125]")
    narrow = TiledProblem(Network("one", [layer], []), machine, tiled_objective("makespan"))
    with pytest.raises(InputError, match="wide: its smallest atom needs"):
        solved(narrow, "ls")
    with pytest.raises(InputError, match="at least 1"):
        TiledProblem(narrow.network, machine, tiled_objective("makespan"), batch=0)
    with pytest.raises(InputError, match="cycle"):
        Network("ring", [layer], [Link("wide", "wide", "I", "x", 1)])
    with pytest.raises(InputError, match="option"):
        solved(narrow, "atomic[sizes=printed]")
