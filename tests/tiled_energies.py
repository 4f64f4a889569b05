"""Random round plans of random problems for tests of energy, and what their places take at least."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
from ortools.sat.python import cp_model
from studies.tiled_graphs import machine_of, unequal_layers
from tiled_plans import random_plan, random_problem

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.prices import EnergyUnits, energy_units
from tilewright.solvers.scheduling.tiled.exact.sharing import Runs, energy_of_places
from tilewright.solvers.scheduling.tiled.exact.space import as_round_plan

MACHINES = (
    "atomic-2x2",
    "atomic-8x8[engines=3x2,ports=corners]",
    "atomic-8x8[engines=4x1,topology=torus]",
    "set-edge-4x4[engines=2x2,buffer=64]",
    "atomic-2x2[topology=htree]",
)
PRICES = ((4.88, 56.0), (0.0, 160.0), (90.0, 7.0), (4.88, 3.0), (0.0, 0.25))
"""Of a byte over a link and of DRAM, in pJ: also such that DRAM costs less than links, or than buffers."""


def random_case(seed: int) -> tuple[TiledProblem, AtomicDag, Plan]:
    """A random problem, its atoms, and a random round plan of them.

    Of odd seeds results go through DRAM; of every third one all results are outputs.
    """
    rng = random.Random(seed)
    problem, dag = random_problem(rng, MACHINES[seed % len(MACHINES)])
    if seed % 3 == 0:
        dag = replace(dag, is_output=np.ones_like(dag.is_output))
    hop, dram = rng.choice(PRICES)
    machine = problem.machine.changed(hop_energy=hop, dram_energy=dram)
    problem = replace(problem, machine=machine)
    plan = random_plan(rng, problem, dag)
    if seed % 2:
        plan = complete(dag, machine, plan.engine, plan.first, through_dram=True)
    return problem, dag, as_round_plan(dag, plan, machine.engines)


def compared(problem: TiledProblem, dag: AtomicDag, plan: Plan) -> tuple[int, int, int]:
    """Energy of every plan and of a plan's places at least, and that of the plan, in units."""
    instance = RoundInstance(dag, problem.machine)
    result = problem.evaluate(dag, plan)
    units = energy_units(instance, Fraction(result.energy.total), 1)
    assert units.whole
    model = cp_model.CpModel()
    places = zip(plan.engine.tolist(), plan.first.tolist(), strict=True)
    runs = {(task, e, r): model.new_constant(1) for task, (e, r) in enumerate(places)}
    energy = least_energy(model, instance, runs, units)
    assert energy is not None
    return units.least(instance), energy, units.counted(result.energy.total)


def least_energy(
    model: cp_model.CpModel, instance: RoundInstance, runs: Runs, units: EnergyUnits
) -> int | None:
    """The least energy of places in units; ``None`` where there are none."""
    energy = energy_of_places(model, instance, runs, units)
    model.minimize(energy)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    return int(solver.value(energy)) if status == cp_model.OPTIMAL else None


def small_instance(seed: int) -> RoundInstance:
    """Four to six unequal atoms on two to four engines, with DRAM from slow to fast."""
    numbers = random.Random(seed)
    engines, dram = numbers.choice(["2x1", "3x1", "2x2"]), numbers.choice([0.5, 2.0, 8.0, 64.0])
    machine = machine_of(f"atomic-2x2[engines={engines}]", free=True).changed(dram_rate=dram)
    return RoundInstance(unequal_layers(numbers.choice([4, 5, 6]), seed, machine).dag, machine)
