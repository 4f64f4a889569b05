"""Energy in exact round plans: units, tasks in turn, ports, and the bound of places below random plans."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from effort import effort
from ortools.sat.python import cp_model
from studies.tiled_graphs import block, machine_of
from studies.tiled_proofs import proven
from tiled_energies import compared, least_energy, random_case

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.cpsat_run import CpSatRun
from tilewright.solvers.scheduling.tiled.exact.incumbent import by_nearest_ports
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.priced_proof import PricedProof
from tilewright.solvers.scheduling.tiled.exact.prices import energy_units
from tilewright.solvers.scheduling.tiled.exact.sharing import energy_of_places, engines_within
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace, as_round_plan, in_turn
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network


@pytest.mark.parametrize("seed", range(effort(20)))
def test_no_bound_of_places_exceeds_a_random_plan(seed: int) -> None:
    """What follows from a random plan's places is at most its energy, and at least what all plans take."""
    least, bound, value = compared(*random_case(seed))
    assert least <= bound <= value


@pytest.mark.parametrize("seed", range(effort(20)))
def test_no_energy_of_engines_within_its_cycles_exceeds_a_random_plan(seed: int) -> None:
    """Nor does a bound that is told before the least energy is known."""
    problem, dag, plan = random_case(seed)
    instance, result = RoundInstance(dag, problem.machine), problem.evaluate(dag, plan)
    units = energy_units(instance, Fraction(result.energy.total), 1)
    model = cp_model.CpModel()
    model.minimize(energy_of_places(model, instance, engines_within(model, instance, result.cycles), units))
    run = CpSatRun(model, Limits(threads=1), lambda: False, effort=0.3)
    assert run.solve() != cp_model.INFEASIBLE
    assert run.bound <= units.counted(result.energy.total)


@pytest.mark.parametrize("seed", range(effort(6)))
def test_the_least_energy_within_cycles_is_that_of_all_ways_to_deal_tasks_out(seed: int) -> None:
    """Two rows of each of two layers, of random kernels and channels, on three engines in a line."""
    numbers = random.Random(seed)
    wide, side = numbers.choice([8, 16, 24]), numbers.choice([2, 5])
    operators = [
        conv2d(k=wide, c=16, r=1, s=1, h=2, w=side),
        conv2d(k=8, c=wide, r=numbers.choice([1, 2]), s=1, h=2, w=side),
    ]
    layers = [Layer(name, operator, "test") for name, operator in zip("ab", operators, strict=True)]
    network = Network("chain", layers, [Link("a", "b", "I", "a", 1)])
    machine = load_tiled_machine("atomic-8x8[engines=3x1,ports=left]")
    problem = TiledProblem(network, machine, tiled_objective("edp"))
    dag = problem.dag([AtomSize(1, 8, 16, wide), AtomSize(1, 8, wide, 8)])
    instance = RoundInstance(dag, machine)
    units = energy_units(instance, Fraction(10**6), 1)
    work = int(dag.cycles.sum())
    dealt: list[tuple[int, int]] = []
    for engines in product(range(3), repeat=dag.tasks):
        loads = [int(dag.cycles[[at == e for at in engines]].sum()) for e in range(3)]
        model = cp_model.CpModel()
        runs = {(task, e, task): model.new_constant(1) for task, e in enumerate(engines)}
        energy = least_energy(model, instance, runs, units)
        assert energy is not None
        dealt.append((max(loads), energy))
    for cycles in (work, work // 2, -(-work // 3), work // 4):
        fitting = [energy for load, energy in dealt if load <= cycles]
        model = cp_model.CpModel()
        bound = least_energy(model, instance, engines_within(model, instance, cycles), units)
        assert bound == min(fitting, default=None)


def test_an_output_that_is_read_comes_cheaper_from_dram() -> None:
    """Where DRAM costs less than a buffer, what a reader elsewhere takes is what the bound says."""
    layers = [Layer(name, conv2d(k=4, c=4, r=1, s=1, h=2, w=2), "test") for name in ("a", "b")]
    network = Network("chain", layers, [Link("a", "b", "I", "a", 16)])
    machine = load_tiled_machine("atomic-2x2").changed(hop_energy=0.0, dram_energy=0.25)
    problem = TiledProblem(network, machine, tiled_objective("energy"))
    dag = problem.dag([AtomSize(2, 2, 4, 4)] * 2)
    dag = replace(dag, is_output=np.ones_like(dag.is_output))
    engine, step = np.array([0, 1], dtype=np.int32), np.array([0, 1], dtype=np.int64)
    plan = complete(dag, machine, engine, step, through_dram=True)
    _, bound, value = compared(problem, dag, as_round_plan(dag, plan, machine.engines))
    assert bound == value


@pytest.mark.parametrize("seed", range(effort(20)))
def test_tasks_in_turn_move_the_same(seed: int) -> None:
    """The same plan with one task in a step is legal, takes the same energy, and is again a round plan."""
    problem, dag, plan = random_case(seed)
    turned = in_turn(plan, dag.tasks, problem.machine.engines)
    before, after = problem.evaluate(dag, plan), problem.evaluate(dag, turned)
    assert replace(before.energy, static=0.0) == replace(after.energy, static=0.0)
    assert sorted(turned.first.tolist()) == sorted({*turned.first.tolist()})
    assert RoundSpace(problem, dag, plan.steps).outside(AtomicPlan(dag, turned)) is None


def test_the_nearest_ports_need_no_more_links() -> None:
    """By the nearest ports a plan is legal, and moves as much with fewer bytes over links."""
    fewer = 0
    for seed in range(6):
        problem, dag, plan = random_case(seed)
        near = by_nearest_ports(plan, problem.machine)
        before, after = problem.evaluate(dag, plan), problem.evaluate(dag, near)
        assert before.dram_write_bytes == after.dram_write_bytes
        assert after.dram_read_bytes <= before.dram_read_bytes
        fewer += after.hop_bytes < before.hop_bytes
    assert fewer > 3


def test_prices_that_are_no_decimals_leave_a_gap() -> None:
    """Where a price has more places than are counted, the bound stays below the plan."""
    case = block("residual block", machine_of("atomic-2x2", free=False), 24)
    machine = case.problem.machine.changed(hop_energy=1 / 3, dram_energy=100 / 7)
    problem = replace(case.problem, machine=machine, objective=tiled_objective("energy"))
    search = proven(replace(case, problem=problem), 1, threads=1)
    assert search.key is not None
    assert search.bound is not None
    assert Fraction(999_999, 1_000_000) * search.key < search.bound < search.key


@pytest.mark.parametrize("name", ["bottleneck", "inception 5a", "inception 3a"])
def test_least_energies_of_blocks_are_proven(name: str) -> None:
    """One engine beside a port that never fetches twice takes the least energy that there is."""
    case = block(name, machine_of("atomic-2x2", free=False), 24)
    problem = replace(case.problem, objective=tiled_objective("energy"))
    assert proven(replace(case, problem=problem), 60, threads=1).proven


def test_cycles_of_interest_leave_room_for_the_least_energy() -> None:
    """A product below the best plan's needs fewer cycles than the quotient by the least energy."""
    problem, dag, plan = random_case(0)
    problem = replace(problem, objective=tiled_objective("edp"))
    space = RoundSpace(problem, dag, plan.steps)
    search: TiledSearch = TiledSearch(space, Limits(1, threads=1))
    search.offer(AtomicPlan(dag, plan), "test")
    proof = PricedProof(search, space)
    below = proof.below()
    assert below is not None
    assert proof.energy(proof.most) * proof.most <= below
    assert proof.energy(proof.most + 1) * (proof.most + 1) > below
