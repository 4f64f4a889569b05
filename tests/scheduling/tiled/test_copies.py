"""Copies that engines must be sent: beside what random divisions of layers among engines need, and plans."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest
from effort import effort
from studies.tiled_random import random_problem
from tiled_plans import random_sized_plan

from tilewright.formulation.scheduling.tiled.atoms import SUM_BYTES
from tilewright.formulation.scheduling.tiled.dag import WEIGHTS
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled import joint_bounds
from tilewright.solvers.scheduling.tiled.bounds import bound_key
from tilewright.solvers.scheduling.tiled.copies import (
    Prices,
    SharedLayer,
    array_reads,
    copies,
    energy_prices,
    merged,
    shared_layers,
    weight_elements,
)
from tilewright.solvers.scheduling.tiled.joint_bounds import CopiesOverCycles, least_key, least_keys
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds, whole_layers
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.operator import Axis, Term
from tilewright.workloads.network import Layer, Link, Network


def needed(owner: np.ndarray, engines: int, prices: Prices) -> tuple[float, float]:
    """What enters the engines' buffers beyond one copy, and the largest share, of a product of matrices.

    Parameters
    ----------
    owner : per channel, pixel and part, the engine that multiplies
    """
    channels, pixels, parts = owner.shape
    cost = 0.0
    shares = []
    for engine in range(engines):
        mine = owner == engine
        weights, inputs, sums = mine.any(axis=1).sum(), mine.any(axis=0).sum(), mine.any(axis=2).sum()
        cost += prices.weights * weights + prices.inputs * inputs + prices.sums * sums
        shares.append(mine.sum() / owner.size)
    once = (
        prices.weights * channels * parts + prices.inputs * pixels * parts + prices.sums * channels * pixels
    )
    return float(cost - once), max(shares)


@pytest.mark.parametrize("seed", range(effort(40)))
def test_no_division_among_engines_needs_fewer_copies(seed: int) -> None:
    """Boxes and single multiplications dealt out at random need no less than the bound."""
    rng = np.random.default_rng(seed)
    channels, pixels, parts = (int(side) for side in rng.integers(1, 7, 3))
    engines = int(rng.integers(1, 9))
    owner = rng.integers(0, engines, (channels, pixels, parts))
    if seed % 4:  # boxes: the same engine along the blocks of every axis
        cuts = [np.sort(rng.integers(0, int(rng.integers(1, 4)), side)) for side in owner.shape]
        deal = rng.integers(0, engines, (3, 3, 3))
        owner = deal[np.ix_(*cuts)]
    prices = Prices(*(float(price) for price in rng.choice([0.0, 0.5, 1.0, 7.0], 3)))
    layer = SharedLayer(
        unit=0,
        work=1.0,
        weights=channels * parts,
        inputs=pixels * parts,
        sums=channels * pixels,
        read=pixels * parts,
        outside=True,
    )
    cost, share = needed(owner, engines, prices)
    assert copies(layer, prices, np.array([1 / share]))[0] <= cost * (1 + 1e-9) + 1e-9


def test_no_deal_of_a_cube_among_two_engines_needs_fewer_copies() -> None:
    """None of the 256 ways to deal two channels, pixels and parts out needs less than its shares do."""
    layer = SharedLayer(unit=0, work=1.0, weights=4, inputs=4, sums=4, read=4, outside=True)
    for deal in product(range(2), repeat=8):
        for prices in (Prices(1.0, 1.0, 1.0), Prices(5.0, 1.0, 2.0), Prices(1.0, 0.0, 3.0)):
            cost, share = needed(np.array(deal).reshape(2, 2, 2), 2, prices)
            assert copies(layer, prices, np.array([1 / share]))[0] <= cost + 1e-9


def test_copies_rise_with_engines_and_begin_at_none() -> None:
    """One engine needs one copy of everything; eight that cut a cube three ways need two of each."""
    layer = SharedLayer(unit=0, work=1.0, weights=64, inputs=64, sums=64, read=64, outside=True)
    cost = copies(layer, Prices(1.0, 1.0, 1.0), np.array([1.0, 2.0, 8.0, 64.0]))
    assert cost[0] == 0.0
    assert (np.diff(cost) > 0).all()
    assert cost[2] == pytest.approx(3 * 64)


def check_plans(seed: int, times: int) -> int:
    """Random plans of a random problem, judged, beside the bounds; how many there were."""
    rng = random.Random(seed)
    problem = random_problem(seed)
    goal, least = TiledGoal(problem), least_key(problem)
    bounds = size_bounds(problem)
    over = CopiesOverCycles(problem, bounds)
    count = 0
    for _ in range(times):
        planned = random_sized_plan(rng, problem, 1500)
        if planned is None:
            continue
        result = problem.evaluate(*planned)
        count += 1
        assert over.least_cycles() <= result.cycles
        assert least <= goal.judge(AtomicPlan(*planned)).key
        if problem.machine.engine.static_power == 0:
            extra = over.energy(np.array([float(result.cycles)]))[0]
            assert bounds.energy + extra <= result.energy.total * (1 + 1e-9)
    return count


@pytest.mark.parametrize("seeds", [range(10 * at, 10 * at + 10) for at in range(effort(5))], ids=str)
def test_no_random_plan_undercuts_the_bound_of_both_together(seeds: range) -> None:
    """On random networks, machines and objectives, energy and cycles of random plans of random sizes."""
    assert sum(check_plans(seed, 2) for seed in seeds) >= 10


@pytest.mark.slow
def test_no_plan_of_five_hundred_problems_undercuts_the_bound() -> None:
    """As by default, on many more problems with more plans each."""
    assert sum(check_plans(seed, 8) for seed in range(1000, 1500)) > 2000


def test_the_closer_bound_is_no_less_and_closer_where_links_are_narrow() -> None:
    """Both bounds hold; on narrow links what engines must be sent takes more cycles than all work does."""
    problem = random_problem(6)
    apart, together = least_keys(problem)
    assert apart == bound_key(TiledGoal(problem), size_bounds(problem))
    assert together > apart * 11 / 10


def test_layers_that_read_in_other_ways_count_for_nothing() -> None:
    """Two layers that read one result alike are a group; one with less work that reads it in another way is
    left out, and so is one whose input is joined of two results.
    """
    make = conv2d(k=16, c=8, r=1, s=1, h=8, w=8)
    read, joined = conv2d(k=8, c=16, r=3, s=3, h=8, w=8, pad=1), conv2d(k=8, c=16, r=1, s=1, h=8, w=8)
    layers = [Layer("a", make, "t"), Layer("b", read, "t"), Layer("c", read, "t"), Layer("d", joined, "t")]
    links = [
        Link("a", "b", "I", "x", 1024),
        Link("a", "c", "I", "x", 1024),
        Link("b", "d", "I", "y", 512),
        Link("c", "d", "I", "z", 512, channel=8),
        Link("a", "e", "I", "x", 1024),
    ]
    layers.append(Layer("e", conv2d(k=8, c=16, r=1, s=1, h=8, w=8), "t"))
    problem = TiledProblem(
        Network("n", layers, links), load_tiled_machine("atomic-2x2"), tiled_objective("edp")
    )
    shared = shared_layers(problem, whole_layers(problem))
    assert [[layer.unit for layer in group] for group in shared] == [[0], [1, 2]]


def test_of_an_input_of_the_network_only_what_its_first_reader_reads_is_known() -> None:
    """A later layer that reads it in another way is left out, though it has more work."""
    layers = [
        Layer("a", conv2d(k=8, c=8, r=1, s=1, h=8, w=8, stride=2), "t"),
        Layer("b", conv2d(k=8, c=8, r=3, s=3, h=8, w=8, pad=1), "t"),
        Layer("c", conv2d(k=4, c=8, r=1, s=1, h=8, w=8, stride=2), "t"),
    ]
    links = [Link(None, layer.name, "I", "x", 512) for layer in layers]
    problem = TiledProblem(
        Network("n", layers, links), load_tiled_machine("atomic-2x2"), tiled_objective("edp")
    )
    shared = shared_layers(problem, whole_layers(problem))
    assert [[layer.unit for layer in group] for group in shared] == [[0, 2]]


def test_weights_of_some_pixels_alone_are_not_shared() -> None:
    """Each row of results has its own: their number says nothing of how often each is used."""
    layer = conv2d(k=4, c=4, r=1, s=1, h=2, w=2)
    assert weight_elements(layer) == 16
    inputs, weights, outputs = layer.tensors
    own = replace(weights, axes=(*weights.axes, Axis((Term("P", 1),), 2)))
    assert weight_elements(replace(layer, tensors=(inputs, own, outputs))) is None


def test_layers_together_work_at_the_pace_of_the_fastest() -> None:
    """Ten cycles at two multiplications and ten at four are fifteen at four."""
    slow = SharedLayer(0, 10.0, weights=8, inputs=4, sums=16, read=4, outside=True, pace=2)
    fast = replace(slow, unit=1, pace=4)
    together = merged([slow, fast])
    assert (together.work, together.pace, together.weights, together.sums) == (15.0, 4, 16, 32)


def test_layers_of_one_tensor_have_the_time_of_the_freest() -> None:
    """What must run behind one of them says nothing of the others."""
    same = conv2d(k=8, c=8, r=1, s=1, h=2, w=2)
    window, last = conv2d(k=8, c=8, r=2, s=2, h=2, w=2), conv2d(k=64, c=8, r=1, s=1, h=1, w=1)
    layers = [Layer("a", same, "t"), Layer("b", same, "t"), Layer("c", window, "t"), Layer("d", last, "t")]
    links = [
        Link(None, "a", "I", "x", 32),
        Link(None, "b", "I", "x", 32),
        Link("a", "c", "I", "y", 32),
        Link("c", "d", "I", "z", 8),
    ]
    problem = TiledProblem(
        Network("n", layers, links), load_tiled_machine("atomic-2x2"), tiled_objective("edp")
    )
    over, whole = CopiesOverCycles(problem, size_bounds(problem)), whole_layers(problem)
    behind = over._waiting(whole)[1]
    assert (behind[0] > 0, behind[1]) == (True, 0)
    assert [layer.unit for layer in shared_layers(problem, whole)[0]] == [0, 1]
    assert over._outside[0] == 0


@pytest.mark.parametrize("seed", [3, 6, 11])
def test_long_intervals_of_cycles_say_less(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its first cycle, and what its last one needs."""
    problem = random_problem(seed)
    over = CopiesOverCycles(problem, size_bounds(problem))
    keys = []
    for fine in (1.0005, 1.5):
        monkeypatch.setattr(joint_bounds, "FINE", fine)
        keys.append(over.least_key())
    assert keys[1] < Fraction(99, 100) * keys[0]


def test_cycles_below_all_windows_have_no_plan() -> None:
    """With fewer cycles than all engines need for a layer the copies are infinite."""
    problem = random_problem(6)
    over = CopiesOverCycles(problem, size_bounds(problem))
    assert over.sums(np.array([10.0]), over.prices)[0] == inf


TWO_ENGINES = [
    "atomic-2x2[engines=2x1,array=4x4]",
    "atomic-2x2[engines=2x1,dataflow=yx]",
    "set-edge-4x4[engines=2x1]",
]


def check_deals(problem: TiledProblem, sizes: list[AtomSize]) -> None:
    """All ways to deal atoms out over two engines: energies and keys lie above the bounds.

    So do what arrays read again above the weights that both engines have.
    """
    bounds, least, goal = size_bounds(problem), least_key(problem), TiledGoal(problem)
    over = CopiesOverCycles(problem, bounds)
    dag = problem.dag(sizes)
    order = np.arange(dag.tasks, dtype=np.int32)
    again = float(dag.buffer_energy.sum() - whole_layers(problem).buffer_energy.sum())
    read = np.repeat(order, np.diff(dag.read_starts))
    for engines in product(range(2), repeat=dag.tasks):
        mine = (set(dag.reads[np.array(engines)[read] == engine].tolist()) for engine in range(2))
        twice = sum(
            int(dag.block_bytes[at]) for at in set.intersection(*mine) if dag.block_kind[at] == WEIGHTS
        )
        assert array_reads(problem.machine.engine) * twice <= again + 1e-9
        plan = complete(dag, problem.machine, np.array(engines, np.int32), order)
        result = problem.evaluate(dag, plan)
        extra = over.energy(np.array([float(result.cycles)]))[0]
        assert bounds.energy + extra <= result.energy.total * (1 + 1e-9)
        assert least <= goal.judge(AtomicPlan(dag, plan)).key


@pytest.mark.parametrize("system", TWO_ENGINES)
def test_copies_of_blocks_are_counted_on_every_engine_of_a_tiny_layer(system: str) -> None:
    """However its four atoms are dealt out over two engines."""
    network = Network("tiny", [Layer("a", conv2d(k=8, c=8, r=1, s=1, h=2, w=2), "t")])
    problem = TiledProblem(network, load_tiled_machine(system), tiled_objective("edp"))
    for size in (AtomSize(1, 2, 8, 4), AtomSize(2, 2, 4, 4), AtomSize(2, 1, 4, 8), AtomSize(1, 1, 8, 8)):
        check_deals(problem, [size])


def test_power_that_flows_all_the_time_counts_once() -> None:
    """It counts for the cycles of the bound, and for those of a plan beyond."""
    network = Network("halves", [Layer("a", conv2d(k=8, c=64, r=1, s=1, h=8, w=8), "t")])
    machine = load_tiled_machine(TWO_ENGINES[0])
    machine = replace(machine, engine=replace(machine.engine, static_power=1e4))
    problem = TiledProblem(network, machine, tiled_objective("edp"))
    check_deals(problem, [AtomSize(4, 8, 64, 8)])
    bounds = size_bounds(problem)
    key = CopiesOverCycles(problem, bounds)._key(bounds.cycles, 0.0)
    assert float(key) == pytest.approx(bounds.energy * bounds.cycles)


def test_a_copy_of_weights_costs_its_write_its_link_and_the_reads_of_one_more_array() -> None:
    """In as many cycles as two engines need together each has half of the pixels and all 256 bytes."""
    network = Network("halves", [Layer("a", conv2d(k=4, c=64, r=1, s=1, h=8, w=8), "t")])
    problem = TiledProblem(network, load_tiled_machine(TWO_ENGINES[0]), tiled_objective("edp"))
    engine, bounds = problem.machine.engine, size_bounds(problem)
    copied = CopiesOverCycles(problem, bounds).energy(np.array([float(bounds.work)]))[0]
    read = engine.buffer_write_energy + engine.buffer_read_energy + problem.machine.hop_energy
    assert copied == pytest.approx(256 * read)


def test_a_sum_that_is_finished_elsewhere_is_written_and_read_once_more() -> None:
    """Two engines have half of the input channels each, and one sends 16 sums; weights pass links, too."""
    network = Network("sums", [Layer("a", conv2d(k=4, c=64, r=1, s=1, h=2, w=2), "t")])
    problem = TiledProblem(network, load_tiled_machine(TWO_ENGINES[0]), tiled_objective("edp"))
    check_deals(problem, [AtomSize(2, 2, 32, 4)])
    bounds, machine = size_bounds(problem), problem.machine
    over, cycles = CopiesOverCycles(problem, bounds), np.array([float(bounds.work)])
    sums = 16 * SUM_BYTES * energy_prices(machine).sums
    assert sums <= over.energy(cycles)[0] <= sums + machine.hop_energy * over.link_bytes(cycles)[0]
    engine = machine.engine
    moved = 2 * engine.buffer_write_energy + engine.buffer_read_energy + machine.hop_energy
    assert energy_prices(machine).sums == pytest.approx(moved)


def test_arrays_that_read_weights_for_every_block_of_pixels_read_no_copy_again() -> None:
    """Two engines with two rows each read all weights as often as one engine with four rows."""
    network = Network("rows", [Layer("a", conv2d(k=2, c=2, r=1, s=1, h=4, w=2), "t")])
    machine = load_tiled_machine("atomic-2x2[engines=2x1,array=2x2,dataflow=yx]")
    check_deals(TiledProblem(network, machine, tiled_objective("edp")), [AtomSize(2, 2, 2, 2)])


@pytest.mark.parametrize("bits", [(4, 4), (12, 4), (4, 12), (3, 5)], ids=str)
def test_rounding_of_bits_to_bytes_saves_no_copies(bits: tuple[int, int]) -> None:
    """However atoms of inputs and weights of half and odd bytes are dealt out."""
    layer = conv2d(k=3, c=3, r=1, s=1, h=1, w=3)
    inputs, weights = (replace(tensor, bits=own) for tensor, own in zip(layer.inputs, bits, strict=True))
    layer = replace(layer, tensors=(inputs, weights, layer.output))
    network = Network("odd", [Layer("a", layer, "t")])
    problem = TiledProblem(network, load_tiled_machine(TWO_ENGINES[0]), tiled_objective("edp"))
    for size in (AtomSize(1, 1, 3, 3), AtomSize(1, 2, 2, 3), AtomSize(1, 2, 3, 2)):
        check_deals(problem, [size])


def readers(widths: Sequence[int], system: str, *, made: bool) -> TiledProblem:
    """Layers of so many channels that read one result, or one input of the network."""
    layers = [Layer(f"l{at}", conv2d(k=k, c=8, r=1, s=1, h=2, w=2), "t") for at, k in enumerate(widths)]
    source = "m" if made else None
    links = [Link(source, layer.name, "I", "x", 32) for layer in layers]
    if made:
        layers.insert(0, Layer("m", conv2d(k=8, c=4, r=1, s=1, h=2, w=2), "t"))
    return TiledProblem(Network("readers", layers, links), load_tiled_machine(system), tiled_objective("edp"))


@pytest.mark.parametrize("made", [False, True])
def test_layers_that_read_one_tensor_alike_are_one_with_the_channels_of_both(made: bool) -> None:
    """What two layers share is what one does, and no deal of their atoms needs less."""
    one, two = (readers(widths, TWO_ENGINES[0], made=made) for widths in ((12,), (8, 4)))
    single, both = (shared_layers(problem, whole_layers(problem))[-1] for problem in (one, two))
    assert len(both) == 2
    assert [merged(both)] == single
    for system in TWO_ENGINES:
        two = readers((8, 4), system, made=made)
        for size in (AtomSize(1, 2, 8, 8), AtomSize(2, 2, 4, 4)):
            check_deals(two, [AtomSize(2, 2, 4, 8)] * made + [size, AtomSize(1, 2, 8, 4)])
