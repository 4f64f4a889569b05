"""Transfers and residencies of a given order, proven and annealed, against enumeration of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import count
from random import Random
from time import monotonic

import numpy as np
import pytest
from tiled_enumeration import Enumeration, TooLargeError, tiny_problem
from tiled_plans import random_problem

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledSearch
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled import movements_kernel
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential
from tilewright.heuristics.scheduling.tiled.movements import carried, movements_of
from tilewright.solvers.scheduling.tiled.exact import transfers
from tilewright.solvers.scheduling.tiled.exact.incumbent import first_plans, quick_plans
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace, idle_steps
from tilewright.solvers.scheduling.tiled.exact.transfers import GivenOrder, Transfers
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import FromPlan, plan_run
from tilewright.solvers.scheduling.tiled.second_opinion import named_space
from tilewright.workloads.catalog import resolve_model


class OfOrder(Enumeration):
    """All transfers, residencies and write-backs of a plan's order and places."""

    def __init__(self, dag: AtomicDag, machine: TiledMachine, plan: Plan, limit: float, budget: int) -> None:
        super().__init__(dag, machine, 0, limit, budget)
        self.rounds: list[dict[int, int]] = [{} for _ in range(plan.steps)]
        for task, (engine, step) in enumerate(zip(plan.engine.tolist(), plan.first.tolist(), strict=True)):
            self.rounds[step][engine] = task

    def next_rounds(self, done: frozenset[int], gaps: int) -> Iterator[dict[int, int]]:
        """The next round of the order."""
        yield next(runs for runs in self.rounds if not set(runs.values()) <= done)


def orders(problem: TiledProblem, dag: AtomicDag) -> list[Plan]:
    """Plans without idle steps, of different orders."""
    different: dict[object, Plan] = {}
    for plan in quick_plans(dag, problem.machine):
        if idle_steps(plan) == 0:
            different.setdefault((plan.engine.tobytes(), plan.first.tobytes()), plan)
    return list(different.values())


def check(seed: int, budget: int) -> int:
    """How many orders of a tiny problem were compared."""
    problem, dag = tiny_problem(seed)
    compared = 0
    for plan in orders(problem, dag)[:2]:
        search: TiledSearch = TiledSearch(TiledGoal(problem), Limits(60, threads=1))
        outcome = Transfers().solve_from(search, AtomicPlan(dag, plan))
        result = search.result("transfers", "", outcome.exhausted, outcome.message, outcome.error)
        assert result.status is Status.OPTIMAL, (seed, result.message)
        assert result.answer is not None
        assert (result.answer.plan.engine == plan.engine).all()
        assert (result.answer.plan.first == plan.first).all()
        assert search.key is not None
        assert search.key <= problem.evaluate(dag, plan).cycles
        try:
            least = OfOrder(dag, problem.machine, plan, float(search.key), budget).run()
        except TooLargeError:
            continue
        assert search.key == Fraction(int(least)), seed
        annealed = second_stage(problem, AtomicPlan(dag, plan), "soma[spread=1,moves=60]", seed)
        assert annealed.key is not None
        assert annealed.key >= search.key, seed
        compared += 1
    return compared


def second_stage(problem: TiledProblem, given: AtomicPlan, method: str, seed: int = 0) -> TiledSearch:
    """The annealing of a plan's transfers among the round plans of its order, which ends without a clock.

    Parameters
    ----------
    problem, given : the plan and what it is of
    method, seed : what anneals, and of its choices
    """
    space = GivenOrder.of(RoundSpace(problem, given.dag), given.plan)
    search: TiledSearch = TiledSearch(space, Limits(threads=1, seed=seed), exact=False)
    planner = METHODS.make(method)
    assert isinstance(planner, FromPlan)
    planner.solve_from(search, given)
    return search


@pytest.mark.parametrize("seeds", [range(at, at + 4) for at in (0, 4, 8, 12)], ids=str)
def test_no_transfers_or_residencies_of_an_order_are_faster(seeds: range) -> None:
    """What is proven for an order equals the least over all movements, residencies and write-backs."""
    assert sum(check(seed, 60_000) for seed in seeds) > 0


@pytest.mark.slow
def test_no_transfers_of_many_orders_are_faster() -> None:
    """The same on some hundred more problems."""
    assert sum(check(seed, 100_000) for seed in range(1000, 1200)) > 150


def test_annealing_finds_most_of_what_is_proven() -> None:
    """Of the orders of tiny problems, nearly all get the least cycles by some hundred changes."""
    reached = proven = 0
    for seed in (0, 2, 3, 5, 7, 9):
        problem, dag = tiny_problem(seed)
        for plan in orders(problem, dag)[:1]:
            search: TiledSearch = TiledSearch(TiledGoal(problem), Limits(60, threads=1))
            Transfers().solve_from(search, AtomicPlan(dag, plan))
            annealed = second_stage(problem, AtomicPlan(dag, plan), "soma[spread=1,moves=400]")
            proven += search.proven
            reached += annealed.key == search.key
    assert proven > 3
    assert reached >= proven - 1


@pytest.mark.parametrize("seed", range(3))
def test_movements_of_a_plan_are_that_plan_again(seed: int) -> None:
    """What a plan of several engines decides makes that plan; after random changes the order still stands."""
    random = Random(seed)
    problem, dag = random_problem(random, "atomic-8x8[engines=3x2,array=4x4]")
    plan = complete(dag, problem.machine, *layer_sequential(dag, problem.machine))
    movements = movements_of(dag, problem.machine, plan, spread=64)
    assert movements is not None
    again = movements.plan()
    assert again is not None
    assert problem.evaluate(dag, again).cycles == problem.evaluate(dag, plan).cycles
    legal = 0
    for _ in range(200):
        other = movements.neighbour(random)
        made = None if other is None else other.plan()
        if other is None or made is None:
            continue
        assert (made.first == plan.first).all()
        assert (made.transfers.last - made.transfers.first < 64).all()
        with suppress(IllegalPlanError):
            problem.evaluate(dag, made)
            movements, legal = other, legal + 1
    assert legal > 40


@pytest.mark.parametrize("seed", range(3))
def test_movements_cost_what_the_evaluator_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Energy and cycles are its own, and illegal is what it calls so; also of rows not sorted by code."""
    random = Random(seed)
    problem, dag = random_problem(random, "atomic-8x8[engines=3x2,array=4x4]")
    plan = complete(dag, problem.machine, *layer_sequential(dag, problem.machine))
    movements = movements_of(dag, problem.machine, plan, spread=4)
    assert movements is not None
    verdicts = set()
    for _ in range(150):
        other = movements.neighbour(random)
        if other is None:
            continue
        made, cost = other.plan(), None
        with suppress(IllegalPlanError):
            evaluation = None if made is None else problem.evaluate(dag, made)
            cost = evaluation and (evaluation.energy.total, evaluation.cycles)
        assert other.cost() == cost
        verdicts.add(cost is None)
        with monkeypatch.context() as patch:
            patch.setattr(movements_kernel, "judged", lambda *_: (movements_kernel.UNSORTED, 0.0, None))
            assert other.cost() == cost
        movements = movements if cost is None else other
    assert verdicts == {True, False}


@pytest.mark.parametrize("seed", range(3))
def test_movements_are_carried_to_another_order(seed: int) -> None:
    """To their own order all of them; to other engines in a round more, in the steps that they had."""
    random = Random(seed)
    problem, dag = random_problem(random, "atomic-8x8[engines=3x2,array=4x4]")
    machine = problem.machine
    plan = complete(dag, machine, *layer_sequential(dag, machine))
    movements = movements_of(dag, machine, plan, spread=4)
    assert movements is not None
    own = carried(movements, plan, np.arange(movements.uses.steps))
    assert own is not None
    for name in ("loaded", "source", "first", "last", "stored", "stored_last", "port"):
        assert (getattr(own.decided, name) == getattr(movements.decided, name)).all()
    engine = ((plan.engine + 1) % machine.engines).astype(np.int32)
    split = int(np.flatnonzero(np.bincount(plan.first) > 1)[0])
    late = plan.first > split
    late[np.flatnonzero(plan.first == split)[-1]] = True
    other = complete(dag, machine, engine, (plan.first + late).astype(np.int32))
    assert (other.first == plan.first + late).all()
    steps = np.arange(movements.uses.steps)
    at = steps + (steps > split)
    moved = carried(movements, other, at)
    assert moved is not None
    assert (moved.uses.order.engine == engine).all()
    before = np.zeros(dag.blocks, dtype=np.int64)
    before[movements.uses.needs.block] = at[movements.decided.last]
    alone = np.bincount(movements.uses.needs.block, minlength=dag.blocks) == 1
    compared = moved.decided.loaded & alone[moved.uses.needs.block]
    assert compared.any()
    wanted = np.clip(before[moved.uses.needs.block], moved.uses.low, moved.uses.needs.step)
    assert (moved.decided.last == wanted)[compared].all()
    assert (moved.decided.first <= moved.decided.last).all()


def test_two_stages_give_the_same_plan_twice_and_keep_their_limits() -> None:
    """One thread and a seed decide the answer; both stages together end within the limit."""
    problem = TiledProblem(
        resolve_model("mlp", 1), load_tiled_machine("soma-edge[buffer=1024]"), tiled_objective("edp")
    )
    keys = []
    for _ in range(2):
        run = plan_run(lambda: problem, "soma[moves=60]", Limits(threads=1, seed=3, deterministic=True))
        result = run.run()
        assert result.status is Status.FEASIBLE
        assert result.key is not None
        keys.append(result.key)
    assert keys[0] == keys[1]
    clock = monotonic()
    result = plan_run(lambda: problem, "soma", Limits(1.5, threads=1)).run()
    assert monotonic() - clock < 2.5
    assert result.key is not None


def slower_than_needed() -> tuple[TiledProblem, AtomicDag, Plan]:
    """A tiny problem and a plan that other transfers make faster."""
    for seed in count():
        problem, dag = tiny_problem(seed)
        for plan in orders(problem, dag):
            search: TiledSearch = TiledSearch(TiledGoal(problem), Limits(20, threads=1))
            Transfers().solve_from(search, AtomicPlan(dag, plan))
            if search.key is not None and search.key < problem.evaluate(dag, plan).cycles:
                return problem, dag, plan
    raise AssertionError


def test_a_plan_to_begin_with_gets_better_transfers_and_a_claim_about_its_order() -> None:
    """The claim names the space, which is found again from the answer; the plan given lies in it."""
    problem, dag, plan = slower_than_needed()
    given = AtomicPlan(dag, plan)
    run = plan_run(lambda: problem, "transfers", Limits(20, threads=1), warm=given)
    result = run.run()
    assert result.status is Status.OPTIMAL
    assert result.answer is not None
    assert run.search is not None
    named = named_space(problem, result.answer, run.search.problem.space)
    assert isinstance(named, GivenOrder)
    assert named.outside(given) is None
    turned = Plan(plan.engine, plan.first[::-1].copy(), plan.last, plan.transfers, plan.residency, plan.steps)
    assert named.outside(AtomicPlan(dag, turned)) is not None


def test_what_is_not_stated_is_told_and_claims_nothing_beyond_all_sizes() -> None:
    """Another objective, or more atoms than asked for: the plan is the one given, the message says why."""
    problem, dag = tiny_problem(1)
    plan = orders(problem, dag)[0]
    other = TiledProblem(problem.network, problem.machine, tiled_objective("edp"))
    for stated, method, word in ((other, "transfers", "makespan"), (problem, "transfers[atoms=1]", "atoms")):
        run = plan_run(
            lambda stated=stated: stated, method, Limits(20, threads=1), warm=AtomicPlan(dag, plan)
        )
        result = run.run()
        assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
        assert word in result.message
        assert run.search is not None
        assert run.search.problem.space == ""


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_objectives_that_are_not_stated_get_the_plan_of_the_heuristics(
    objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No atoms are coarsened and no round plans completed for a statement that is not made."""
    monkeypatch.setattr(transfers, "chosen_atoms", None)
    problem = TiledProblem(
        resolve_model("mlp", 1), load_tiled_machine("atomic-2x2"), tiled_objective(objective)
    )
    result = plan_run(lambda: problem, "transfers", Limits(5.0, threads=1)).run()
    assert result.message.startswith("transfers states the makespan alone: the plan is the heuristics'")
    assert result.answer is not None
    assert problem.evaluate(result.answer.dag, result.answer.plan).cycles > 0


def test_round_plans_to_begin_with_keep_to_their_part_of_the_time() -> None:
    """Once time for them is up there is one; without a limit there are those of few engines, too."""
    problem, dag = tiny_problem(4, "edp")
    assert len(list(first_plans(problem, dag, Limits(0.0)))) == 1
    assert len(list(first_plans(problem, dag, Limits()))) > len(list(quick_plans(dag, problem.machine))) > 1


def test_atoms_beyond_the_statement_get_the_plan_of_the_heuristics() -> None:
    """Where no sizes have as few atoms as asked for, there is a plan of more, and the message counts them."""
    problem, _ = tiny_problem(1)
    result = plan_run(lambda: problem, "transfers[atoms=1]", Limits(20, threads=1)).run()
    assert result.answer is not None
    assert result.status is Status.FEASIBLE
    assert f"transfers states up to 1 atoms (option atoms), here {result.answer.dag.tasks}" in result.message


def test_orders_of_other_plans_lie_outside() -> None:
    """The space of an order has the plans of this order alone."""
    problem, dag = next(
        (problem, dag) for problem, dag in map(tiny_problem, count()) if len(orders(problem, dag)) > 1
    )
    first, second = orders(problem, dag)[:2]
    space = GivenOrder.of(RoundSpace(problem, dag), first)
    assert space.outside(AtomicPlan(dag, first)) is None
    assert space.outside(AtomicPlan(dag, second)) is not None
    assert space.content_hash != GivenOrder.of(RoundSpace(problem, dag), second).content_hash
