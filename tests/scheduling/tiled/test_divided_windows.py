"""Pools with one row of results, whose windows are divided: reads by the element, bounds, plans, files."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import numpy as np
import pytest
from effort import effort
from tiled_plans import random_plan
from tiled_referee import simulate

from tilewright.formulation.scheduling.tiled.coordinates import Range, inner_run, shape_of
from tilewright.formulation.scheduling.tiled.dag import RESULT
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.formulation.scheduling.tiled.tiling import Tiling
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.layouts.arranging import arranged
from tilewright.heuristics.scheduling.tiled.layouts.candidates import Layout
from tilewright.heuristics.scheduling.tiled.layouts.choosing import LayoutChoice
from tilewright.heuristics.scheduling.tiled.layouts.grids import grid_of, grids
from tilewright.heuristics.scheduling.tiled.size_menus import size_menu
from tilewright.report.records.scheduling.tiled.plan import PlanRecord
from tilewright.solvers.scheduling.tiled.joint_bounds import least_keys
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.pointwise import elementwise, reduction
from tilewright.workloads.mapping.pooling import pool2d
from tilewright.workloads.network import Layer, Link, Network

MACHINES = ("atomic-2x2[link=4]", "atomic-8x8[engines=3x2,link=8]", "atomic-8x8[engines=4x4,link=2]")


def squeezed(rng: random.Random) -> Network:
    """A convolution, a pool of all its rows, a layer on what that makes, and at times their product."""
    channels, side, width = rng.choice([4, 24, 32]), rng.choice([5, 7, 12]), rng.choice([1, 3])
    first = conv2d(k=channels, c=8, r=width, s=width, h=side, w=side, pad=width // 2)
    columns, pad = rng.choice([side, 1, 2]), rng.choice([0, 0, 1])
    pool = pool2d(c=channels, r=side + 2 * pad, s=columns, h=side, w=side, pad=(pad, 0))
    if rng.random() < 0.3:
        pool = reduction(shape=(1, channels, side, side), over=rng.choice([(2, 3), (2,)]))
    wide = shape_of(pool).sizes[2]
    last = conv2d(k=channels, c=channels, r=1, s=1, h=1, w=wide)
    layers = [Layer("conv", first, "test"), Layer("pool", pool, "test"), Layer("last", last, "test")]
    links = [
        Link("conv", "pool", pool.inputs[0].name, "conv", channels * side * side),
        Link("pool", "last", "I", "pool", channels * wide),
    ]
    if rng.random() < 0.5:
        scaled = elementwise(shape=(1, channels, side, side))
        layers.append(Layer("scale", scaled, "test"))
        links.append(Link("conv", "scale", scaled.inputs[0].name, "conv", channels * side * side))
    return Network("squeezed", layers, links)


def random_problem(rng: random.Random) -> TiledProblem:
    """Such a network on one of the machines."""
    return TiledProblem(
        squeezed(rng),
        load_tiled_machine(rng.choice(MACHINES)),
        tiled_objective("edp"),
        batch=rng.choice([1, 2]),
        fuse=rng.random() < 0.5,
        partial_sums=rng.choice(["chain", "reduction"]),  # type: ignore[arg-type]
    )


def random_tiling(rng: random.Random, operator: Operator, batch: int) -> Tiling:
    """Uneven borders along every axis, both of windows, too."""

    def drawn(size: int, run: int) -> tuple[int, ...]:
        inside = list(range(run, size, run))
        return (0, *sorted(rng.sample(inside, rng.randint(0, min(3, len(inside))))), size)

    shape = shape_of(operator)
    cuts = [
        drawn(size, inner_run(operator, axis) if axis < 3 and size > inner_run(operator, axis) else 1)
        for axis, size in enumerate((*shape.sizes, shape.parts))
    ]
    across = drawn(shape.strips, 1) if shape.across and rng.random() < 0.7 else ()
    return Tiling(drawn(batch, 1), *cuts, across)


@pytest.mark.parametrize("seed", range(effort(20)))
def test_parts_of_windows_read_what_is_theirs_and_meet_in_one_atom(seed: int) -> None:
    """Every part reads the elements of its rows and columns of the window; the last atom reads all parts."""
    rng = random.Random(seed)
    problem = random_problem(rng)
    dag = problem.unchecked_dag(
        [random_tiling(rng, unit.layer.operator, problem.batch) for unit in problem.units]
    )
    at = next(i for i, unit in enumerate(problem.units) if unit.name == "pool")
    pool, made = problem.units[at].layer.operator, problem.units[0].layer.operator
    channels, height, width = shape_of(made).sizes
    owner: dict[tuple[int, ...], int] = {}
    for task in range(int(dag.base[0]), int(dag.base[1])):
        if (task + 1 - int(dag.base[0])) % int(dag.slots[0]) == 0:
            n, c, h, w, _ = dag.box(task)
            owner |= dict.fromkeys(product(*(range(*span) for span in (n, c, h, w))), task)
    assert len(owner) == problem.batch * channels * height * width
    parts, slots = dag.tilings[at].divisions, int(dag.slots[at])
    assert slots == (parts if parts == 1 else parts + 1)
    for task in range(int(dag.base[at]), int(dag.base[at + 1])):
        first = task - (task - int(dag.base[at])) % slots
        read = Counter[int]()
        for block in dag.reads_of(task):
            read[int(dag.block_parent[block])] += int(dag.block_bytes[block])
        if task - first == parts:
            assert dag.strip(task) == (0, 0)
            four = 4 * int(dag.block_bytes[task])
            assert read == dict.fromkeys(range(first, task), four)
            continue
        n, c, _, w, rows = dag.box(task)
        wanted = _touched(pool, n, c, w, rows, dag.strip(task), height)
        expected = Counter(owner[element] for element in wanted if element in owner)
        assert read == expected
    assert (
        dag.macs
        == problem.unchecked_dag([_whole(unit.layer.operator, problem) for unit in problem.units]).macs
    )


def _touched(
    pool: Operator, n: Range, c: Range, w: Range, rows: Range, strip: Range, height: int
) -> set[tuple[int, ...]]:
    """Elements of the map that a pool's loops touch for so many samples, channels, columns of results, and
    rows and columns of its window.
    """
    bounds, place = pool.bounds, {"N": n, "C": c, "K": c}
    reduced = "P" if "P" in pool.reduction_dims else "R"
    place[reduced] = rows
    if "Q" not in pool.reduction_dims:
        place["Q"] = w
    across = shape_of(pool).across
    if across is not None:
        place[across] = strip
    tensor, touched = pool.inputs[0], set[tuple[int, ...]]()
    before = (tensor.axes[2].size - height) // 2
    for values in product(*(range(*place.get(name, (0, bounds[name]))) for name in bounds)):
        at = dict(zip(bounds, values, strict=True))
        index = [sum(term.stride * at[term.dim] for term in axis.terms) for axis in tensor.axes]
        touched.add((index[0], index[1], index[2] - before, index[3]))
    return touched


def _whole(operator: Operator, problem: TiledProblem) -> Tiling:
    shape = shape_of(operator)
    return Tiling((0, problem.batch), *((0, size) for size in (*shape.sizes, shape.parts)))


def check_plans(seed: int) -> int:
    """Random plans of random divisions are not below the bounds; how many there were."""
    rng = random.Random(seed)
    problem = random_problem(rng)
    free, least, count = size_bounds(problem), max(least_keys(problem)), 0
    for _ in range(3):
        dag = problem.unchecked_dag(
            [random_tiling(rng, unit.layer.operator, problem.batch) for unit in problem.units]
        )
        if (dag.needs > problem.machine.engine.buffer_bytes).any():
            continue
        plan = random_plan(rng, problem, dag)
        result = problem.evaluate(dag, plan)
        assert free.cycles <= min(result.cycles, simulate(dag, problem.machine, plan, 16))
        assert free.energy <= result.energy.total * (1 + 1e-12)
        assert least <= problem.value(result) * (1 + 1e-12)
        count += 1
    return count


def test_no_plan_with_divided_windows_is_below_the_bounds() -> None:
    assert sum(map(check_plans, range(effort(40)))) > effort(40)


@pytest.mark.slow
def test_no_plan_of_many_with_divided_windows_is_below_the_bounds() -> None:
    assert sum(map(check_plans, range(1000, 1500))) > 500


@pytest.mark.parametrize("seed", range(effort(8)))
def test_engines_that_share_a_window_make_legal_plans(seed: int) -> None:
    """Every engine pools what it has of a map, and adds up some sums; the plan is above the bound."""
    rng = random.Random(seed)
    problem = random_problem(rng)
    machine = problem.machine
    choice = LayoutChoice(problem, 1e3, room=0.5, most=16)
    layouts = list(choice.best(1e3))
    at = next(i for i, unit in enumerate(problem.units) if unit.name == "pool")
    shape = shape_of(problem.units[at].layer.operator)
    columns = shape.extent(shape.laid[2])
    made = [
        grid_of(row) for row in grids(machine.width, machine.height, shape.sizes[0], shape.parts, columns)
    ]
    grid = rng.choice([grid for grid in made if grid.groups[1] * grid.groups[2] > 1])
    layouts[at] = Layout(grid, (*(rng.choice([1, 2]) for _ in range(3)), 1), (1, 1, 1, 1))
    dag, engine, step = arranged(problem, layouts)
    result = problem.evaluate(dag, complete(dag, machine, engine, step))
    assert problem.value(result) >= max(least_keys(problem)) * (1 - 1e-12)
    begin, end, slots = int(dag.base[at]), int(dag.base[at + 1]), int(dag.slots[at])
    placed = grid.engines(machine.width)
    assert set(engine[begin:end].tolist()) <= set(placed.ravel().tolist())
    assert len(np.unique(engine[begin:end])) > 1
    made_by = engine[begin:end].reshape(problem.batch, -1, slots)
    for *terms, last in made_by.reshape(-1, slots).tolist():
        assert slots == 1 or last in terms


def test_layouts_divide_the_window_of_a_large_map() -> None:
    """Where pixels of a map lie on many engines, their partial sums are sent, not the map."""
    conv = conv2d(k=16, c=16, r=3, s=3, h=64, w=64, pad=1)
    pool = pool2d(c=16, r=64, s=64, h=64, w=64)
    layers = [Layer("conv", conv, "test"), Layer("pool", pool, "test")]
    network = Network("map", layers, [Link("conv", "pool", pool.inputs[0].name, "conv", 16 * 64 * 64)])
    problem = TiledProblem(network, load_tiled_machine("atomic-8x8[engines=4x4]"), tiled_objective("edp"))
    layouts = LayoutChoice(problem, 1e4, room=0.5, most=16).best(1e4)
    assert layouts[1].grid.groups[1] * layouts[1].grid.groups[2] > 1


def test_windows_of_earlier_files_are_whole() -> None:
    """A plan is read back from its record, and from one of a version that knew no parts of windows."""
    rng = random.Random(3)
    problem = random_problem(rng)
    for drawn in (True, False):
        cuts = [_whole(unit.layer.operator, problem) for unit in problem.units]
        if drawn:
            cuts = [random_tiling(rng, unit.layer.operator, problem.batch) for unit in problem.units]
        dag = problem.unchecked_dag(cuts)
        record = PlanRecord.of(AtomicPlan(dag, random_plan(rng, problem, dag)))
        assert record.build_dag(problem, "plan").tilings == dag.tilings
    at = next(i for i, unit in enumerate(problem.units) if unit.name == "pool")
    layers = list(record.layers)
    layers[at] = layers[at].model_copy(update={"inputs": [0, 1]})
    earlier = record.model_copy(update={"layers": layers})
    assert earlier.build_dag(problem, "plan").tilings == dag.tilings


@pytest.mark.parametrize("over", [None, (1,), (2,), (3,), (2, 3), (1, 2, 3)])
def test_menus_know_what_an_atom_of_a_pool_reads(over: tuple[int, ...] | None) -> None:
    """The largest atom of every size reads as many bytes as its menu says, whichever axes disappear."""
    pool = pool2d(c=32, r=14, s=14, h=14, w=14)
    if over is not None:
        pool = reduction(shape=(1, 32, 14, 14), over=over)
    network = Network("alone", [Layer("pool", pool, "test")], [])
    problem = TiledProblem(network, load_tiled_machine("atomic-2x2"), tiled_objective("edp"))
    menu = size_menu(pool, problem.machine.engine, False, 0, fine=True)
    for at in random.Random(1).sample(range(len(menu.atoms)), min(12, len(menu.atoms))):
        dag = problem.unchecked_dag([menu.size(at)])
        blocks = [[b for b in dag.reads_of(task) if dag.block_kind[b] != RESULT] for task in range(dag.tasks)]
        assert max(int(dag.block_bytes[read].sum()) for read in blocks) == int(menu.fetch[at])
