"""What atoms that fit their buffers take, beside all ways to cut small layers, and below random plans."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from effort import effort
from studies.tiled_random import random_problem
from tiled_enumeration import Enumeration, TooLargeError, tiny_problem
from tiled_plans import random_sized_plan

from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.dag import WEIGHTS
from tilewright.formulation.scheduling.tiled.plan import make_transfers
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.tiling import Borders, Tiling
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.fitting_atoms import fitting_energy
from tilewright.solvers.scheduling.tiled.joint_bounds import CopiesOverCycles, least_key
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds, whole_layers
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Layer, Network


def small(buffer: int, system: str = "atomic-2x2", array: str = "2x2") -> TiledMachine:
    """A machine with so many bytes in each buffer."""
    options = f"[array={array}]" if array else ""
    machine = load_tiled_machine(f"{system}{options}")
    return machine.changed(engine=replace(machine.engine, buffer_bytes=buffer))


def alone(operator: Operator, machine: TiledMachine, sums: str = "chain") -> TiledProblem:
    """One layer."""
    network = Network("alone", [Layer("a", operator, "test")], [])
    return TiledProblem(network, machine, tiled_objective("energy"), partial_sums=sums)  # type: ignore[arg-type]


def borders(size: int) -> list[Borders]:
    """All ways to cut an axis."""
    inner = range(1, size)
    return [(0, *cut, size) for count in range(size) for cut in combinations(inner, count)]


def least_inside(problem: TiledProblem) -> float:
    """The least energy of arrays, registers and buffers over all ways to cut a layer into atoms that fit."""
    shape = shape_of(problem.units[0].layer.operator)
    least = np.inf
    for cuts in product(*map(borders, (*shape.sizes, shape.parts))):
        try:
            dag = problem.dag([Tiling((0, 1), *cuts)])
        except InputError:
            continue
        energies = (dag.compute_energy, dag.buffer_energy, dag.register_energy)
        least = min(least, sum(float(energy.sum()) for energy in energies))
    return least


@pytest.mark.parametrize("seed", range(effort(6)))
def test_no_way_to_cut_a_layer_undercuts_the_bound(seed: int) -> None:
    """All borders along all axes of small layers, in buffers of many sizes, on two kinds of arrays."""
    rng = random.Random(seed)
    kernel = rng.choice([1, 1, 2])
    sides = {"h": rng.randint(2, 3) + kernel - 1, "w": rng.randint(2, 3) + kernel - 1}
    operator = conv2d(k=rng.randint(2, 4), c=rng.randint(2, 4), r=kernel, s=kernel, **sides)
    system, array = rng.choice([("atomic-2x2", "2x2"), ("atomic-2x2", "1x2"), ("set-edge-4x4", "")])
    sums = rng.choice(["chain", "reduction"])
    for buffer in rng.sample(range(12, 100), 3):
        problem = alone(operator, small(buffer, system, array), sums)
        whole = whole_layers(problem)
        energies = (whole.compute_energy, whole.buffer_energy, whole.register_energy)
        bound = sum(float(energy.sum()) for energy in energies) + fitting_energy(problem, whole)[0]
        assert bound <= least_inside(problem) * (1 + 1e-12)


def test_a_layer_whose_pixels_fit_no_buffer_reads_its_weights_again() -> None:
    """Six pixels of four channels are 24 bytes, and so are results: two boxes, which read the weights twice,
    are the least of all ways to cut the layer."""
    problem = alone(conv2d(k=4, c=4, r=1, s=1, h=2, w=3), small(34))
    whole, engine = whole_layers(problem), problem.machine.engine
    again = fitting_energy(problem, whole)[0]
    assert again == pytest.approx((16 - 1) * engine.buffer_read_energy)
    energies = (whole.compute_energy, whole.buffer_energy, whole.register_energy)
    inside = sum(float(energy.sum()) for energy in energies)
    assert least_inside(problem) == pytest.approx(inside + 16 * engine.buffer_read_energy)


def test_weights_that_are_copied_for_two_boxes_are_read_once_for_each() -> None:
    """Two engines with a box of pixels each: the second copy is read where the second box is, not twice."""
    wide = "engines=2x1,array=1x16,link=1024,dram=4096,dram-port=4096,ports=sides"
    machine = small(1400, f"atomic-2x2[{wide}]", "")
    problem = alone(conv2d(k=16, c=16, r=1, s=1, h=8, w=8), machine)
    dag = problem.dag([Tiling((0, 1), (0, 16), (0, 4, 8), (0, 8), (0, 16))])
    plan = complete(dag, machine, np.arange(2), np.zeros(2, dtype=np.int32))
    moves = plan.transfers  # all but the weights, which come together, by the port beside each engine
    apart = np.isin(moves.source, (0, 1)) | (dag.block_kind[moves.block] != WEIGHTS)
    engine = np.minimum(moves.source, moves.target)
    source = np.where(apart & (moves.source > 1), engine + 2, moves.source)
    target = np.where(apart & (moves.target > 1), engine + 2, moves.target)
    moves = make_transfers(2, moves.block, source, target, moves.bytes, moves.first, moves.last)
    result = problem.evaluate(dag, replace(plan, transfers=moves))
    assert result.hop_bytes == 256
    bounds = size_bounds(problem)
    again, extra = (
        fitting_energy(problem, whole_layers(problem))[0],
        float(CopiesOverCycles(problem, bounds).energy(np.array([float(result.cycles)]))[0]),
    )
    assert again == pytest.approx((256 - 1) * machine.engine.buffer_read_energy)
    assert extra > again
    assert 0.999 * result.energy.total <= bounds.energy + extra <= result.energy.total


def test_layers_that_fit_and_those_whose_reads_follow_pixels_take_nothing_more() -> None:
    fits = alone(conv2d(k=4, c=4, r=1, s=1, h=2, w=3), small(64))
    assert fitting_energy(fits, whole_layers(fits)) == [0.0]
    pixels = small(34)
    pixels = pixels.changed(engine=replace(pixels.engine, dataflow="yx"))
    follows = alone(conv2d(k=4, c=4, r=1, s=1, h=2, w=3), pixels)
    assert fitting_energy(follows, whole_layers(follows)) == [0.0]


def check_plans(seed: int, times: int) -> int:
    """Random plans on machines with little buffers beside the bounds; how many of them were raised by it."""
    rng = random.Random(seed)
    problem = random_problem(seed)
    engine = replace(problem.machine.engine, buffer_bytes=rng.choice([2, 4, 8, 16]) * 1024)
    problem = replace(problem, machine=problem.machine.changed(engine=engine))
    raised = sum(fitting_energy(problem, whole_layers(problem))) > 0
    bounds, least = size_bounds(problem), least_key(problem)
    over = CopiesOverCycles(problem, bounds)
    count = 0
    for _ in range(times):
        planned = random_sized_plan(rng, problem, 1500)
        if planned is None:
            continue
        result = problem.evaluate(*planned)
        assert bounds.energy <= result.energy.total * (1 + 1e-9)
        assert least <= problem.objective.key(result.energy.total, result.cycles) * (1 + 1e-9)
        if problem.machine.engines > 1 and engine.static_power == 0:
            extra = float(over.energy(np.array([float(result.cycles)]))[0])
            assert bounds.energy + extra <= result.energy.total * (1 + 1e-9)
        count += raised
    return count


def test_no_enumerated_plan_in_the_least_buffers_undercuts_the_bounds() -> None:
    """The least energy and energy times delay of all plans in rounds, where the largest atom just fits."""
    count = 0
    for seed, objective in product(range(1, 1 + effort(10)), ("energy", "edp")):
        problem, dag = tiny_problem(seed, objective, most=24)
        engine = replace(problem.machine.engine, buffer_bytes=int(dag.needs.max()))
        problem = replace(problem, machine=problem.machine.changed(engine=engine))
        if sum(fitting_energy(problem, whole_layers(problem))) == 0:
            continue
        powers = (1, int(objective == "edp"))
        try:
            least = Enumeration(dag, problem.machine, 1, np.inf, 20_000, powers).run()
        except TooLargeError:
            continue
        assert least_key(problem) <= least * (1 + 1e-9)
        count += 1
    assert count >= 2


def test_no_random_plan_in_little_buffers_undercuts_the_bounds() -> None:
    assert sum(check_plans(seed, 2) for seed in range(effort(40))) >= 5


@pytest.mark.slow
def test_no_plan_of_many_problems_in_little_buffers_undercuts_the_bounds() -> None:
    assert sum(check_plans(seed, 6) for seed in range(2000, 2400)) > 400
