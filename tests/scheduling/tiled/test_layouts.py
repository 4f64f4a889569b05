"""Layouts: the choice against enumeration, ways against completed plans, and plans under the evaluator."""

from __future__ import annotations

import itertools
import math
import random
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from effort import effort
from tiled_plans import random_network, random_plan, random_problem

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.coordinates import Shape, shape_of
from tilewright.formulation.scheduling.tiled.dag import PartialSums
from tilewright.formulation.scheduling.tiled.overlap import entries, operand_axes
from tilewright.formulation.scheduling.tiled.plan import multicast_groups
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.stretches_read import Touched
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.heuristics.scheduling.tiled.layouts import choosing, elimination, method
from tilewright.heuristics.scheduling.tiled.layouts.arranging import arranged
from tilewright.heuristics.scheduling.tiled.layouts.candidates import (
    FINER,
    Layout,
    candidates,
    cut_menu,
    reads_outside,
    tiling_of,
)
from tilewright.heuristics.scheduling.tiled.layouts.choosing import LayoutChoice
from tilewright.heuristics.scheduling.tiled.layouts.cuts_kernel import FIRST, HANDOVER
from tilewright.heuristics.scheduling.tiled.layouts.elimination import least_choice
from tilewright.heuristics.scheduling.tiled.layouts.flows import last_waits
from tilewright.heuristics.scheduling.tiled.layouts.grids import Grid, grid_of, grids, sides
from tilewright.heuristics.scheduling.tiled.layouts.journeys import Journeys, journeys, overlaps, touches
from tilewright.heuristics.scheduling.tiled.layouts.ways_kernel import places, ways
from tilewright.heuristics.scheduling.tiled.size_menus import tile_menu
from tilewright.heuristics.scheduling.tiled.smoothing import smoothed
from tilewright.solvers.scheduling.tiled.joint_bounds import least_keys
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.pointwise import elementwise
from tilewright.workloads.mapping.pooling import pool2d
from tilewright.workloads.network import Layer, Link, Network

MACHINES = (
    "atomic-8x8[engines=4x4,link=8]",
    "atomic-8x8[engines=3x2,link=4,buffer=32]",
    "atomic-8x8[engines=2x3,link=16,topology=torus]",
    "set-edge-4x4",
)


@pytest.mark.parametrize("network", ["mobilenet-v3", "random"])
def test_many_stretches_touch_what_each_touches(network: str) -> None:
    """First and last positions, how many come before a point, and how often each is touched are those of the
    positions that stretches touch one by one.
    """
    rng = random.Random(network)
    made = random_network(rng) if network == "random" else resolve_model(network, 1)
    problem = TiledProblem(made, load_tiled_machine("atomic-2x2"), tiled_objective("edp"))
    for index, unit in enumerate(problem.units[:30]):
        shape = shape_of(unit.layer.operator)
        for read in unit.reads:
            coordinates = None if read.producer in (None, index) else touches(problem, index, read)
            for axis, touched in coordinates or []:
                size = shape.parts if axis is None else shape.extent(shape.laid[axis])
                borders = [sorted(rng.choices(range(size + 1), k=2)) for _ in range(6)]
                _compare_touched(touched, [(low, high) for low, high in borders if low < high], rng)


def _compare_touched(touched: Touched, stretches: list[tuple[int, int]], rng: random.Random) -> None:
    """Hold what many stretches touch at once against the positions of each."""
    each = [touched(*borders) for borders in stretches]
    if not each:
        return
    most = 1 + max((int(positions[-1]) for positions in each if len(positions)), default=0)
    points = np.array([rng.randint(0, most + 1) for _ in range(5)])
    low, high = np.array(stretches).T
    kinds = np.array([rng.randrange(3) for _ in stretches])
    often = np.zeros((3, most))
    for positions, ends, before, kind in zip(
        each, touched.ends(low, high).tolist(), touched.below(low, high, points), kinds, strict=True
    ):
        assert (before == [np.count_nonzero(positions < point) for point in points]).all()
        often[kind, positions] += 1
        assert ends == [positions[0], positions[-1] + 1] if len(positions) else ends[0] == ends[1]
    assert (touched.often(low, high, kinds, often.shape) == often).all()


@pytest.mark.parametrize("seed", range(effort(40)))
def test_least_choices_equal_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum is the least of all choices, on any graph of pairs, whether choices go that others undercut or
    not; with small tables it is never less.
    """
    if seed % 2:
        monkeypatch.setattr(elimination, "LARGE", 0)
        monkeypatch.setattr(elimination, "WORTH", 0.1)
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    count = rng.randint(1, 6)
    choices = [rng.randint(1, 4) for _ in range(count)]
    own = [numbers.integers(0, 20 + seed % 2 * 40, n).astype(float) for n in choices]
    pairs = {
        (a, b) if rng.random() < 0.5 else (b, a): np.zeros(0)
        for a, b in combinations(range(count), 2)
        if rng.random() < 0.6
    }
    pairs = {(a, b): numbers.integers(0, 20, (choices[a], choices[b])).astype(float) for a, b in pairs}

    def value(picks: tuple[int, ...]) -> float:
        alone = sum(costs[pick] for costs, pick in zip(own, picks, strict=True))
        return float(alone + sum(costs[picks[a], picks[b]] for (a, b), costs in pairs.items()))

    least = min(value(picks) for picks in product(*(range(n) for n in choices)))
    picks, proven = least_choice(own, pairs)
    assert proven
    assert value(tuple(picks)) == least
    picks, proven = least_choice(own, pairs, most=8)
    assert value(tuple(picks)) >= least
    assert not proven or value(tuple(picks)) == least


@pytest.mark.parametrize("machine", [*MACHINES, "atomic-8x8"])
def test_shares_of_a_grid_have_engines_of_their_own(machine: str) -> None:
    """No two groups of a grid share an engine, and none lies outside of the machine."""
    of = load_tiled_machine(machine)
    for pieces in ((1, 1, 1, 1), (3, 7, 7, 2), (60, 7, 7, 10), (4, 56, 56, 1), (63, 1, 1, 64)):
        made = [grid_of(row) for row in grids(of.width, of.height, *pieces)]
        assert made
        for grid in made:
            engines = grid.engines(of.width)
            assert engines.shape == grid.groups
            assert len(np.unique(engines)) == engines.size
            assert 0 <= engines.min() <= engines.max() < of.engines


@pytest.mark.parametrize("machine", [*MACHINES, "atomic-8x8", "atomic-8x8[engines=4x4,ports=corners]"])
def test_machine_code_places_grids_as_they_are(machine: str) -> None:
    """Engines of all groups, links of multicasts from the nearest port and of sums, against plain ones."""
    of = load_tiled_machine(machine)
    ports = np.array(of.dram_ports).reshape(-1, 2)
    for pieces in ((3, 7, 7, 2), (4, 56, 56, 1), (60, 1, 7, 10)):
        every = grids(of.width, of.height, *pieces)
        rows = every[np.random.default_rng(1).permutation(len(every))[:40]]
        made = [grid_of(row) for row in rows]
        assert (sides(made) == rows).all()
        trees, links = ways(rows, of.width, of.height, ports)
        for last in ((), (3,), (1, 2)):
            groups, placed = places(rows, of.width, of.engines, np.isin(np.arange(4), last))
            kept = tuple(slice(-1 if axis in last else 0, None) for axis in range(4))
            for n, grid in enumerate(made):
                engines = grid.engines(of.width)[kept]
                assert tuple(groups[n]) == engines.shape
                assert (placed[n, : engines.size] == engines.ravel()).all()
                assert (placed[n, engines.size :] == -1).all()
        for n, grid in enumerate(made):
            engines = np.moveaxis(grid.engines(of.width), 3, 1)
            x, y = engines % of.width, engines // of.width
            passed = np.abs(np.diff(x, axis=1)) + np.abs(np.diff(y, axis=1))
            assert links[n] == pytest.approx(passed.mean() if passed.size else 0.0)
            columns = len(np.unique(x[0, 0]))
            nearest = [
                min(
                    max(0, xs.max() - px, 0)
                    + max(0, px - xs.min())
                    + columns * (max(0, ys.max() - py) + max(0, py - ys.min()))
                    for px, py in ports
                )
                for xs, ys in zip(x.reshape(-1, *x.shape[2:]), y.reshape(-1, *y.shape[2:]), strict=True)
            ]
            assert trees[n] == pytest.approx(np.mean(nearest))


def _of_cuts(
    problem: TiledProblem, unit: Unit, layout: Layout, cuts: tuple[int, ...], price: float
) -> tuple[float, float]:
    """Cycles that an engine computes for its share in these cuts, and what they cost; infinite where they do
    not fit or change nothing."""
    engine, port = problem.machine.engine, problem.machine.port_rate
    shape = shape_of(unit.layer.operator)
    whole, tiles, idle, filled = [], [], False, 1.0
    groups, pool = layout.grid.groups, not unit.layer.operator.is_mac
    for at, (axis, piece, count, cut) in enumerate(zip(shape.laid, layout.units, groups, cuts, strict=True)):
        size = shape.extent(axis)
        pieces = -(-size // piece)
        share = -(-pieces // count)
        if pool and at == 0:  # shares of many channels are cut into tiles of some
            share, piece = share * piece, 1
        whole.append([min(size, piece * share)])
        tiles.append([min(size, piece * -(-share // cut))])
        idle |= cut > 1 and tiles[-1] == whole[-1]
        filled *= share / (cut * -(-share // cut))  # atoms are not all as large as the largest
    known = unit.layer.operator, engine, unit.layer.stored_weights, sum(read.late for read in unit.reads)
    full, atom = (
        tile_menu(*known, (sides[0], sides[1], sides[2], sides[3]), shape.laid) for sides in (whole, tiles)
    )
    # rows and columns are those of a pool's window
    results = whole[0][0] * (1 if pool else whole[1][0] * whole[2][0])
    terms, chain = (cuts[1] * cuts[2], groups[1] * groups[2]) if pool else (cuts[3], groups[3])
    boxes = math.prod(cuts) // terms
    if not pool:
        turns = max(boxes, chain)
        busy = turns * cuts[3] * (filled * int(atom.cycles[0]) + HANDOVER)
        busy += turns * results * 4 / boxes / port if chain > 1 and boxes < 2 * chain else 0
    else:  # parts of a window are made apart, then added up, some boxes by each engine
        busy = boxes * terms * filled * int(atom.cycles[0])
        last = -(-boxes // chain)
        busy += last * (HANDOVER + chain * terms * results * 4 / boxes / port) if chain * terms > 1 else 0
    fetch, weights = int(atom.fetch[0]), int(atom.weights[0])
    cycles = busy + FIRST * fetch / port + max(0.0, int(full.fetch[0]) / port - busy)
    if reads_outside(unit):
        cycles += (fetch - weights) * math.prod(groups[1:]) / problem.machine.dram_rate
    sums = (terms * chain - 1) * results * (math.prod(groups) // chain) * 4
    spent = sums * (engine.buffer_read_energy + engine.buffer_write_energy)
    spent += math.prod(groups) * boxes * terms * weights * engine.buffer_read_energy
    fits = not idle and int(atom.need[0]) <= 0.5 * engine.buffer_bytes
    return busy, price * cycles + spent if fits else np.inf


@pytest.mark.parametrize("kernel", [3, 8])
@pytest.mark.parametrize("price", [1.0, 2e4])
def test_shares_have_the_best_cuts_of_their_kind(price: float, kernel: int) -> None:
    """No other cuts of a kind are better by the estimate, which is computed one by one here."""
    problem = TiledProblem(
        _two_layers(kernel), load_tiled_machine("atomic-8x8[engines=4x4]"), tiled_objective("edp")
    )
    rng, kinds, near = random.Random(1), set[tuple[bool, ...]](), list[Grid]()
    for unit in problem.units:
        shape = shape_of(unit.layer.operator)
        of = candidates(problem, unit, room=0.5, prices=(price,), most=4, atoms=4, near=near)
        near = [layout.grid for layout in of.layouts]
        most = FINER * 4 if shape.is_window else 4
        for at in rng.sample(range(len(of.layouts)), min(4, len(of.layouts))):
            layout = of.layouts[at]
            busy, least = _of_cuts(problem, unit, layout, layout.cuts, price)
            assert of.cycles[at] == pytest.approx(busy)
            for cuts in product(*cut_menu(shape)):
                alike = _kind(shape, cuts) == _kind(shape, layout.cuts) and math.prod(cuts) <= most
                assert not alike or _of_cuts(problem, unit, layout, cuts, price)[1] >= least * (1 - 1e-12)
            kinds.add(_kind(shape, layout.cuts))
    assert len(kinds) > 1


def _kind(shape: Shape, cuts: tuple[int, ...]) -> tuple[bool, ...]:
    """Whether the sum is cut, whether pixels with it, and without it whether columns or rows alone."""
    _, rows, columns, parts = (cut > 1 for cut in cuts)
    if shape.is_window:
        return rows or columns, False, False, False
    return parts, parts and (rows or columns), not parts and columns, not parts and rows and not columns


def _two_layers(kernel: int) -> Network:
    """Two convolutions, the second of which reads the first; of a kernel of 8 it is a pool of all pixels."""
    first = conv2d(k=64, c=16, r=1, s=1, h=8, w=8)
    second = conv2d(k=32, c=64, r=kernel, s=kernel, h=8, w=8, pad=kernel // 2)
    if kernel == 8:
        second = pool2d(c=64, r=8, s=8, h=8, w=8)
    layers = [Layer("a", first, "test"), Layer("b", second, "test")]
    return Network("two", layers, [Link("a", "b", second.inputs[0].name, "a", 64 * 64)])


@pytest.mark.parametrize("widths", ["", ",link=4,port=32"])
@pytest.mark.parametrize("kernel", [1, 3, 8])
def test_ways_cost_what_completed_plans_pay(kernel: int, widths: str) -> None:
    """Energy and the busiest link of bringing results to their readers are those of a plan with one atom per
    share; where halos differ by reader, several multicasts of the estimate may be one.
    """
    machine = load_tiled_machine(f"atomic-8x8[engines=4x4{widths}]")
    problem = TiledProblem(_two_layers(kernel), machine, tiled_objective("edp"))
    rng = random.Random(kernel)
    shares = [((4, 8, 8, 1), 16), ((2, 8, 8, 4), 16) if kernel < 8 else ((4, 8, 8, 1), 1)]
    drawn = [
        [
            Layout(grid_of(row), (1, 1, 1, 1), (16, 1, 1, part))
            for row in rng.choices([*grids(4, 4, *pieces)], k=25)
        ]
        for pieces, part in shares
    ]
    ways = journeys(problem, 1, problem.units[1].reads[0], *drawn)
    assert ways is not None
    assert any(
        math.prod(layout.grid.groups[1:] if kernel == 8 else layout.grid.groups[3:]) > 1
        for layout in drawn[1]
    )
    net, engine = topology(machine), machine.engine
    for i, j in [(rng.randrange(25), rng.randrange(25)) for _ in range(60)]:
        dag, engines, steps = arranged(problem, (drawn[0][i], drawn[1][j]))
        plan = complete(dag, machine, engines, steps)
        moves = plan.transfers
        group = multicast_groups(moves, machine.engines)
        of_results = (dag.block_parent[moves.block] >= 0) & (moves.target < machine.engines)
        of_results &= dag.unit[np.maximum(dag.block_parent[moves.block], 0)] == 0  # not of unfinished sums
        loads = np.zeros(len(net.rates))
        spent = 0.0
        for number in np.unique(group[of_results]):
            chosen = np.flatnonzero((group == number) & of_results)
            size = int(moves.bytes[chosen[0]])
            routes = [net.route(int(moves.source[at]), int(moves.target[at])) for at in chosen]
            passed = {link for route in routes for link in route.tolist()}
            loads[list(passed)] += size
            links = {link for link in passed if link >= net.routers}
            spent += size * (engine.buffer_read_energy + machine.hop_energy * len(links))
            spent += size * engine.buffer_write_energy * len(chosen)
        slowest = float((loads / net.rates).max())
        assert ways.energy[i, j] >= spent - 1e-6
        assert ways.arrival[i, j] >= slowest - 1e-6
        if kernel != 3:
            assert ways.energy[i, j] == pytest.approx(spent)
            assert ways.arrival[i, j] == pytest.approx(slowest)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("sums", ["chain", "reduction"])
def test_first_atoms_wait_for_what_is_made_last_of_what_they_read(kernel: int, sums: PartialSums) -> None:
    """Waits are those of counting, position by position, the turns in which results are made."""
    machine = load_tiled_machine("atomic-8x8[engines=4x4]")
    problem = TiledProblem(_two_layers(kernel), machine, tiled_objective("edp"), partial_sums=sums)
    made, wanted = (
        candidates(problem, unit, room=0.5, prices=(2e4,), most=40, atoms=32) for unit in problem.units
    )
    first = np.random.default_rng(kernel).uniform(
        1.0, 2.0 * made.cycles.max(), (len(made.layouts), len(wanted.layouts))
    )
    waits = last_waits(problem, 1, problem.units[1].reads[0], made, wanted, first)
    rng, kinds = random.Random(kernel), set[bool]()
    for _ in range(60):
        i, j = rng.randrange(len(made.layouts)), rng.randrange(len(wanted.layouts))
        layout = made.layouts[i]
        tiling, _, numbers = tiling_of(problem.units[0].layer.operator, layout, 1)
        borders = tiling.channels, tiling.rows, tiling.columns
        turns = [
            [
                number
                for number, (low, high) in zip(along.tolist(), pairwise(cuts), strict=True)
                for _ in range(low, high)
            ]
            for along, cuts in zip(numbers, borders, strict=False)
        ]
        k, h, w = (max(along) + 1 for along in turns)
        tiling, shares, _ = tiling_of(problem.units[1].layer.operator, wanted.layouts[j], 1)
        starts = []
        for along, cuts in zip(shares[1:4], (tiling.rows, tiling.columns, tiling.parts), strict=True):
            low = {share: at for at, share in reversed(list(enumerate(along.tolist())))}
            starts.append([(cuts[at], cuts[at + 1]) for at in low.values()])
        halo = kernel // 2
        counts = [0] * (k * h * w)
        for row, column, channel in product(*starts):
            for y in range(max(0, row[0] - halo), min(8, row[1] + halo)):
                for x in range(max(0, column[0] - halo), min(8, column[1] + halo)):
                    for c in range(channel[0] if kernel == 1 else 0, channel[1] if kernel == 1 else 64):
                        counts[(turns[1][y] * w + turns[2][x]) * k + turns[0][c]] += 1
        parts, boxes = layout.grid.groups[3], k * h * w
        # engines that share sums finish all boxes in the last turns
        lag = 2 if boxes >= 2 * parts else 1
        last = max(boxes, parts) - lag * (parts - 1)
        lasting = made.cycles[i] / max(boxes, parts) * last / boxes
        if sums == "reduction":
            lasting = 0.0 if parts * layout.cuts[3] > 1 else made.cycles[i] / boxes
        longest = max(
            sum(counts[turn:]) / sum(counts) * first[i, j] - (boxes - 1 - turn) * lasting
            for turn in range(boxes)
        )
        assert waits[i, j] == pytest.approx(max(0.0, longest))
        kinds.add(longest < first[i, j] - 1e-6)
    assert kinds == {False, True}


def test_operands_that_are_read_alike_are_sent_once() -> None:
    """An element-wise layer that reads another twice takes what it takes to read it once."""
    first = conv2d(k=64, c=16, r=1, s=1, h=8, w=8)
    energies = []
    for operands in (1, 2):
        second = elementwise(shape=(1, 64, 8, 8), operands=operands)
        links = [Link("a", "b", tensor.name, "a", 64 * 64) for tensor in second.inputs]
        network = Network("two", [Layer("a", first, "test"), Layer("b", second, "test")], links)
        machine = load_tiled_machine("atomic-8x8[engines=4x4]")
        problem = TiledProblem(network, machine, tiled_objective("edp"), fuse=False)
        choice = LayoutChoice(problem, 1e3, room=0.5, most=4)
        energies.append(choice._energy[0, 1])
    assert energies[0].max() > 0
    assert (energies[1] <= energies[0].max()).all()


@pytest.mark.parametrize("seed", range(effort(10)))
def test_overlaps_of_shares_are_what_atoms_read(seed: int) -> None:
    """Positions that shares of a reader touch of shares that were made are those of the atoms' reads."""
    rng = random.Random(seed)
    size, stride, kernel = rng.randint(7, 20), rng.randint(1, 3), rng.randint(1, 5)
    operator = conv2d(
        k=4, c=4, r=kernel, s=kernel, h=size, w=size, stride=stride, pad=rng.randint(0, kernel // 2)
    )
    axes = operand_axes(operator, operator.tensor("I"), (4, size, size), 0, centred=(False,) * 3)
    assert axes is not None
    rows = next(dimension.bound for dimension in operator.dimensions if dimension.like == "P")

    def drawn(end: int) -> tuple[int, ...]:
        return (0, *sorted(rng.choices(range(end + 1), k=rng.randint(0, 4))), end)

    theirs, mine = [drawn(size) for _ in range(3)], [drawn(rows) for _ in range(3)]
    table = overlaps(Touched(operator, axes[1], size, is_flat=False), theirs, mine)
    for (i, cuts), (j, tiles) in product(enumerate(theirs), enumerate(mine)):
        plain = [tuple(dict.fromkeys(borders)) for borders in (cuts, tiles)]
        read = entries(operator, axes[1], size, [(0, 1), plain[1], (0, 1), (0, 1)], (1, 1, 1, 1), plain[0])
        expected = np.zeros(table.shape[2:])
        made, wanted = (np.flatnonzero(np.diff(borders) > 0) for borders in (cuts, tiles))
        expected[made[read.producer], wanted[read.consumer]] = read.count
        assert (table[i, j] == expected).all()


@pytest.mark.parametrize("seed", range(effort(12)))
def test_plans_of_layouts_are_legal_and_never_below_the_bound(seed: int) -> None:
    """Chosen and rechosen layouts of random networks make plans that the evaluator accepts, each above the
    bound over all sizes, whose engines are those of their grids.
    """
    rng = random.Random(seed)
    machine = load_tiled_machine(MACHINES[seed % len(MACHINES)])
    problem = TiledProblem(random_network(rng), machine, tiled_objective("edp"), batch=rng.choice([1, 2]))
    bound = max(least_keys(problem))
    choice = LayoutChoice(problem, rng.choice([10.0, 1e3, 1e6]), room=0.5, most=16)
    layouts = choice.best(rng.choice([10.0, 1e3, 1e6]))
    for _ in range(4):
        dag, engine, step = arranged(problem, layouts)
        plan = complete(dag, machine, engine, step)
        plan = smoothed(dag, machine, plan, price=rng.choice([0.0, 100.0, 1e9]), seed=seed)
        result = problem.evaluate(dag, plan)
        assert problem.value(result) >= bound * (1 - 1e-12)
        for unit, layout in enumerate(layouts):
            begin, end = dag.base[unit : unit + 2]
            assert set(engine[begin:end].tolist()) <= set(layout.grid.engines(machine.width).ravel().tolist())
        first = rng.randrange(len(layouts))
        units = range(first, min(len(layouts), first + 3))
        layouts = choice.rechosen(layouts, units, 1e3, rng, 3.0)


@pytest.mark.parametrize("sums", ["chain", "reduction"])
@pytest.mark.parametrize("seed", range(effort(8)))
def test_engines_that_share_sums_make_legal_plans(seed: int, sums: PartialSums) -> None:
    """Engines that share a sum make its parts in turn, or apart: the plan is legal, above the bound, and
    results end on the last of them, or, where they begin with different boxes, on all.
    """
    rng = random.Random(seed)
    machine = load_tiled_machine(MACHINES[seed % 3])
    network = _two_layers(rng.choice([1, 3]))
    problem = TiledProblem(network, machine, tiled_objective("edp"), partial_sums=sums)
    layouts = []
    for pieces in ((4, 8, 8, 1), (2, 8, 8, 4)):
        made = [grid_of(row) for row in grids(machine.width, machine.height, *pieces)]
        deepest = max(grid.groups[3] for grid in made)
        grid = rng.choice([grid for grid in made if grid.groups[3] == deepest])
        rows = rng.choice([1, 2, 4]) if sums == "chain" else 4  # all parts meet in one buffer
        layouts.append(Layout(grid, (1, rows, 1, rng.choice([1, 2])), (16, 1, 1, 16)))
    dag, engine, step = arranged(problem, layouts)
    result = problem.evaluate(dag, complete(dag, machine, engine, step))
    assert problem.value(result) >= max(least_keys(problem)) * (1 - 1e-12)
    placed = layouts[1].grid.engines(machine.width)
    assert placed.shape[3] > 1
    ends = set(engine[dag.is_output].tolist())
    assert ends <= set(placed.ravel().tolist())
    if sums == "reduction":
        assert ends <= set(placed[..., -1].ravel().tolist())


@pytest.mark.parametrize("seed", range(6))
def test_smoothing_for_energy_spares_energy(seed: int) -> None:
    """Where cycles are worth nothing, random plans never take more energy afterwards, and some take less."""
    rng = random.Random(seed)
    problem, dag = random_problem(rng, MACHINES[seed % 3])
    plans = [random_plan(rng, problem, dag)]
    for turn in range(3):
        plans.append(smoothed(dag, problem.machine, plans[-1], price=0.0, seed=turn))
    energies = [problem.evaluate(dag, plan).energy.total for plan in plans]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(energies))
    assert energies[-1] < energies[0]


@pytest.mark.parametrize("objective", ["edp", "energy", "makespan"])
def test_the_method_answers_twice_the_same(objective: str) -> None:
    """With a fixed number of moves and a seed two searches end with the same plan, above the bound."""
    machine = load_tiled_machine(MACHINES[0])
    problem = TiledProblem(random_network(random.Random(3)), machine, tiled_objective(objective))
    runs = [plan_run(lambda: problem, "layouts[moves=3]", Limits(60.0)).run() for _ in range(2)]
    assert runs[0].key == runs[1].key
    assert runs[0].key is not None
    assert runs[0].key >= max(least_keys(problem))


def test_a_large_layer_has_more_atoms_than_are_wanted() -> None:
    """Where no share fits a buffer as one atom, it is cut as often as it must be."""
    wide = Network("one", [Layer("wide", conv2d(k=512, c=512, r=3, s=3, h=7, w=7, pad=1), "test")], [])
    problem = TiledProblem(wide, load_tiled_machine("atomic-8x8[link=16]"), tiled_objective("edp"))
    (layout,) = LayoutChoice(problem, 1e3, room=0.5, most=1).best(1e3)
    assert np.prod(layout.cuts) * layout.grid.groups[3] > 1


def test_who_is_hasty_takes_fewer_layouts_or_none_where_pairs_of_layers_would_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a clock of one second a look, six layers of two kinds leave 5 of 14 s and 14 of 23 s.  A plan
    needs 28 s, and of fewer layouts 12.
    """
    same = conv2d(k=16, c=16, r=1, s=1, h=8, w=8)
    layers = [Layer(f"layer{i}", same, "test") for i in range(6)]
    links = [Link(a.name, b.name, same.inputs[0].name, a.name, 16 * 64) for a, b in pairwise(layers)]
    machine = load_tiled_machine("atomic-2x2[link=16]")
    problem = TiledProblem(Network("chain", layers, links), machine, tiled_objective("edp"))

    pairs: list[int] = []

    def counted(*ends: Any) -> Journeys | None:
        pairs.append(len(ends[3]) * len(ends[4]))
        return journeys(*ends)

    def chosen(seconds: float, *, hasty: bool) -> LayoutChoice:
        looks, stood = itertools.count(), list[float]()
        pairs.clear()
        limits = Limits(seconds, clock=lambda: stood[0] if stood else float(next(looks)))
        choice = LayoutChoice(problem, 1e3, room=0.5, most=4, limits=limits, hasty=hasty)
        stood.append(0.0)  # the clock is that of the pairs alone
        return choice

    monkeypatch.setattr(choosing, "journeys", counted)
    with pytest.raises(LimitReachedError, match="in pairs"):
        chosen(14.0, hasty=True)
    assert chosen(14.0, hasty=False).best(1e3) == chosen(60.0, hasty=True).best(1e3)
    every = list(pairs)
    chosen(23.0, hasty=True).best(1e3)
    assert all(0 < few < most for few, most in zip(pairs, every, strict=True))


def test_what_fits_no_buffer_leaves_the_plan_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers in turn have a plan before a share that does not fit is met; the message names the layer."""

    def refuse(*_: object, **__: object) -> None:
        raise InputError("machine", "layer", "no share of it fits a buffer")

    monkeypatch.setattr(method, "LayoutChoice", refuse)
    machine = load_tiled_machine(MACHINES[0])
    problem = TiledProblem(random_network(random.Random(3)), machine, tiled_objective("edp"))
    result = plan_run(lambda: problem, "layouts", Limits(60.0)).run()
    assert result.answer is not None
    assert "no share of it fits a buffer" in result.message
