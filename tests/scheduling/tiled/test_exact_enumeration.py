"""The exact method against plain enumeration on tiny problems: every order, place, movement and eviction."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction

import pytest
from effort import effort
from tiled_enumeration import Enumeration, TooLargeError, tiny_problem

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Origin, Status
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.solvers.scheduling.tiled.exact.counts import Counts, alike, twins
from tilewright.solvers.scheduling.tiled.exact.incumbent import first_plans
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.priced_proof import proof_of
from tilewright.solvers.scheduling.tiled.exact.sequences import searched
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace

QUICK = (70, 131, 64, 17, 4, 76, 77, 35, 37, 197, 10, 121, 47, 146, 184, 2, 20, 44, 21, 89)
"""Problems on which enumeration takes a fraction of a second."""
PRICED = {"energy": (0, 1, 2, 3, 4, 6, 7, 8, 10), "edp": (2, 3, 4, 7, 10, 11)}
"""The same where energy counts."""


def proven(
    problem: TiledProblem, dag: AtomicDag, idle: int, *, begin: bool, seconds: float = 60
) -> TiledSearch:
    """A search that the exact method has ended on given atoms; in less than a minute it may be left open."""
    space = RoundSpace(problem, dag, idle)
    search: TiledSearch = TiledSearch(space, Limits(seconds, threads=1, clock=time.process_time))
    if begin:
        for plan in first_plans(problem, dag, Limits()):
            search.offer(AtomicPlan(dag, plan), "heuristics", Origin.HEURISTIC)
    outcome = proof_of(search, space).run()
    result = search.result("exact", "", outcome.exhausted, outcome.message, outcome.error)
    done = result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert done or seconds < 60, (result.status, result.message)
    return search


def check_priced(
    seed: int,
    objective: str,
    budget: int,
    fewest: int = 2,
    most: int = 36,
    power: float = 0.0,
    seconds: float = 60,
) -> bool:
    """Exact and enumeration agree on energy, or its product with cycles; false where enumeration would take
    too long, or where exact has only a bound, which is then below.

    Parameters
    ----------
    seed, objective : the problem
    budget : of the enumeration
    fewest, most : as of `tiny_problem`
    power : of an engine, in pJ a cycle
    seconds : for the proof; less than 60 where it may stay open
    """
    problem, dag = tiny_problem(seed, objective, fewest, most)
    machine = problem.machine
    powered = machine.changed(engine=replace(machine.engine, static_power=power))
    problem = replace(problem, machine=powered)
    idle = int(seed % 3 == 0)
    begin = seed % 2 == 0 or seconds < 60
    search = proven(problem, dag, idle, begin=begin, seconds=seconds)
    limit = math.inf if search.key is None else float(search.key)
    try:
        least = Enumeration(dag, powered, idle, limit, budget, problem.objective.key_powers).run()
    except TooLargeError:
        return False
    if search.key is not None and search.key != search.bound:  # left open
        assert search.bound is not None
        assert float(search.bound) <= least * (1 + 1e-10) <= limit * (1 + 1e-9), seed
        return False
    assert least == pytest.approx(limit, rel=1e-10), seed
    return True


def check(seed: int, budget: int) -> bool:
    """Exact and enumeration agree on one tiny problem, and no sequence of rounds bounds it from above; false
    where enumeration would take too long."""
    problem, dag = tiny_problem(seed)
    idle = int(seed % 3 == 0)
    search = proven(problem, dag, idle, begin=seed % 2 == 0)
    limit = math.inf if search.answer is None else problem.evaluate(dag, search.answer.plan).cycles
    assert search.answer is None or search.key == search.bound == Fraction(int(limit))
    try:
        assert Enumeration(dag, problem.machine, idle, limit, budget).run() == limit, seed
    except TooLargeError:
        return False
    instance = RoundInstance(dag, problem.machine)
    for together in (alike, twins):
        for ways in (1, 40, 200):
            counts = Counts(instance, together(instance), ways)
            outcome = searched(counts, 10**7, lambda: False, lambda _: None, 2000, steady=idle == 0)
            assert outcome.bound <= limit, seed
    return True


def compared(first: int, many: int, budget: int) -> int:
    """Problems compared when so many have been, or ten times as many were tried."""
    count = 0
    for seed in range(first, first + 10 * many):
        count += check(seed, budget)
        if count == many:
            break
    return count


@pytest.mark.parametrize("seed", QUICK[: effort(len(QUICK))])
def test_exact_equals_enumeration(seed: int) -> None:
    """On tiny problems with buffers, halos and hops the proven plan is the fastest that there is."""
    assert check(seed, 10**6)


@pytest.mark.parametrize(
    ("objective", "seed"),
    [(objective, seed) for objective, seeds in PRICED.items() for seed in seeds[: effort(12)]],
)
def test_exact_energies_equal_enumeration(objective: str, seed: int) -> None:
    """No order, place, movement or eviction takes less energy, or energy times cycles, than is proven."""
    assert check_priced(seed, objective, 10**6, power=20.0 if seed % 4 == 3 else 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_exact_energies_equal_enumeration_on_many_problems(objective: str) -> None:
    """The same on more problems with and without power, and on those of up to eight atoms on few engines."""
    compared = 0
    for seed in range(1000, 1000 + effort(48)):
        compared += check_priced(seed, objective, 20_000, power=20.0 * (seed % 4 == 3), seconds=3)
    assert compared > effort(16)
    large = [check_priced(seed, objective, 30_000, fewest=6, most=120, seconds=5) for seed in range(100, 105)]
    assert any(large)


@pytest.mark.slow
def test_exact_equals_enumeration_on_many_problems() -> None:
    """The same on 200 more problems, those left out that enumeration does not end."""
    assert compared(1000, effort(200), 20_000) == effort(200)
