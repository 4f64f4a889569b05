"""What ports bring for a layer and for its reader: beside random ways to deal both out, and random plans."""

from __future__ import annotations

import random

import numpy as np
import pytest
from effort import effort
from studies.tiled_random import random_problem
from tiled_plans import narrowed, random_sized_plan

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled import joint_bounds
from tilewright.solvers.scheduling.tiled.copies import SharedLayer
from tilewright.solvers.scheduling.tiled.joint_bounds import CopiesOverCycles
from tilewright.solvers.scheduling.tiled.port_pairs import (
    Earned,
    LayerPair,
    ports_suffice,
    reader_share,
    sums_factor,
)
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network


def layer(channels: int, pixels: int, parts: int, *, outside: bool) -> SharedLayer:
    """A product of matrices; elements have a byte, unfinished sums four."""
    inputs = pixels * parts
    return SharedLayer(0, 1.0, channels * parts, inputs, 4 * channels * pixels, inputs, outside)


def entering(owner: np.ndarray, finisher: np.ndarray, own: np.ndarray | None) -> np.ndarray:
    """Bytes that enter each engine for a layer.

    Parameters
    ----------
    owner : per channel, pixel and part, the engine that multiplies
    finisher : per channel and pixel, the engine that ends with the finished sum; others send it one sum each
    own : per pixel and part, the engine that made the input; ``None`` where inputs come from DRAM
    """
    engines = int(max(owner.max(), finisher.max(), 0 if own is None else own.max())) + 1
    ports = np.zeros(engines)
    for engine in range(engines):
        mine = owner == engine
        inputs = mine.any(axis=0) if own is None else mine.any(axis=0) & (own != engine)
        ports[engine] += mine.any(axis=1).sum() + inputs.sum()
        sent = mine.any(axis=2) & (finisher != engine)
        np.add.at(ports, finisher[sent], 4)
    return ports


def dealt(rng: np.random.Generator, shape: tuple[int, int, int], engines: int) -> np.ndarray:
    """The engine of every multiplication: at random, or the same along the blocks of every axis."""
    if rng.random() < 0.2:
        return rng.integers(0, engines, shape)
    cuts = [np.sort(rng.integers(0, int(rng.integers(1, 4)), side)) for side in shape]
    return rng.integers(0, engines, (3, 3, 3))[np.ix_(*cuts)]


def finished(rng: np.random.Generator, owner: np.ndarray) -> np.ndarray:
    """Where each sum is finished: on an engine that adds to it."""
    return owner[:, :, 0] if rng.random() < 0.5 else owner[:, :, rng.integers(owner.shape[2])]


@pytest.mark.parametrize("seed", range(effort(12)))
def test_no_random_deal_of_two_layers_passes_narrower_ports(seed: int) -> None:
    """Ports that bring what the busiest engine is sent suffice, in the words of the bound."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        parts, middle, channels, pixels = (int(side) for side in rng.integers(1, 9, 4))
        engines = int(rng.integers(2, 7))
        first = dealt(rng, (middle, pixels, parts), engines)
        made = finished(rng, first)
        second = dealt(rng, (channels, pixels, middle), engines)
        if rng.random() < 0.5:  # where its inputs are
            second = np.broadcast_to(made.T, (channels, pixels, middle)).copy()
        total = np.zeros(engines)
        for ports in (entering(first, made, None), entering(second, finished(rng, second), made.T)):
            total[: len(ports)] += ports
        pair = LayerPair(
            layer(middle, pixels, parts, outside=True),
            layer(channels, pixels, middle, outside=False),
            middle * pixels,
        )
        assert ports_suffice(pair, engines, float(total.max()), 0.0)


@pytest.mark.parametrize("seed", range(effort(6)))
def test_what_is_counted_enters_in_every_deal(seed: int) -> None:
    """Each input of the second layer is used where it was finished, so nothing enters for it.

    Operands of the first layer, the inputs that the bound takes for no own ones, and the charged part of sums
    are no more than what enters: a result that came as sums counts once.
    """
    rng = np.random.default_rng(seed)
    full = 0
    for _ in range(40):
        parts, middle, pixels = (int(side) for side in rng.integers(1, 9, 3))
        first = dealt(rng, (middle, pixels, parts), int(rng.integers(2, 7)))
        made = finished(rng, first)
        maker = layer(middle, pixels, parts, outside=True)
        pair = LayerPair(maker, layer(1, pixels, middle, outside=False), middle * pixels)
        counted = 0.0
        for engine in range(int(first.max()) + 1):
            mine = first == engine
            weights, inputs = mine.any(axis=1).sum(), mine.any(axis=0).sum()
            whole = weights / maker.weights * inputs / maker.inputs * pair.made
            sent = 4 * (mine.any(axis=2) & (made != engine)).sum()
            counted += weights + inputs + max(0.0, (made == engine).sum() - whole)
            counted += pair.charged / maker.sums * sent
        entered = entering(first, made, None).sum()
        assert counted <= entered * (1 + 1e-9)
        full += (made[:, :, None] != first).any() and counted >= 0.95 * entered
    assert full > 1


def busiest(deal: list[np.ndarray], engines: int) -> tuple[float, float]:
    """Bytes that enter the busiest engine, and all, for the owners and finishers of two layers."""
    first, made, second, ends = deal
    total = np.zeros(engines)
    for ports in (entering(first, made, None), entering(second, ends, made.T)):
        total[: len(ports)] += ports
    return float(total.max()), float(total.sum())


@pytest.mark.parametrize("seed", [2, 9, 11])
def test_no_deal_that_was_improved_passes_narrower_ports(seed: int) -> None:
    """Boxes of multiplications, and sums, move to other engines while the busiest port brings no more."""
    rng = np.random.default_rng(seed)
    parts, middle, channels, pixels = (int(side) for side in rng.integers(2, 7, 4))
    engines = int(rng.integers(2, 5))
    owners = [dealt(rng, (middle, pixels, parts), engines), dealt(rng, (channels, pixels, middle), engines)]
    deal = [owners[0], owners[0][:, :, 0].copy(), owners[1], owners[1][:, :, 0].copy()]
    least = busiest(deal, engines)
    for _ in range(600):
        trial = [array.copy() for array in deal]
        owner, finisher = trial[:2] if rng.random() < 0.5 else trial[2:]
        corner = [int(rng.integers(0, side)) for side in owner.shape]
        if rng.random() < 0.4:
            finisher[corner[0], corner[1]] = rng.choice(owner[corner[0], corner[1]])
        else:
            ends = [
                at + int(rng.integers(1, side - at + 1)) for at, side in zip(corner, owner.shape, strict=True)
            ]
            owner[tuple(map(slice, corner, ends))] = int(rng.integers(0, engines))
            gone = ~(owner == finisher[:, :, None]).any(axis=2)
            finisher[gone] = owner[:, :, 0][gone]
        if busiest(trial, engines) <= least:
            deal, least = trial, busiest(trial, engines)
    pair = LayerPair(
        layer(middle, pixels, parts, outside=True),
        layer(channels, pixels, middle, outside=False),
        middle * pixels,
    )
    assert ports_suffice(pair, engines, least[0], 0.0)


@pytest.mark.parametrize("worth", [0.01, 0.2, 0.7, 1.0, 3.0])
def test_sums_add_no_more_than_their_factor(worth: float) -> None:
    """Of all shares that one part of the operands allows, none is worth more, less the price of its sums."""
    operands = 0.04
    shares = np.linspace(operands, 1.0, 20_001)
    sent = shares**2 / operands - shares  # of all unfinished sums, from phi**2 <= a b (phi + s / S)
    largest = float((shares - worth * sent).max())
    assert largest <= sums_factor(worth) * operands * (1 + 1e-9)
    if worth >= 0.05:  # the best share is below 1
        assert largest == pytest.approx(sums_factor(worth) * operands, rel=1e-4)


@pytest.mark.parametrize("own", [0.0, 5.0, 24.0])
@pytest.mark.parametrize(("channels", "pixels"), [(3, 4), (9, 1)])
def test_the_largest_share_of_a_reader_is_that_of_plain_enumeration(
    channels: int, pixels: int, own: float
) -> None:
    """Among many splits of the bytes into weights and inputs none has a larger product.

    Few inputs beside many weights are all there before the weights are.
    """
    reader = layer(channels, pixels, 6, outside=False)
    for brought in (0.0, 1.0, 7.0, 17.0, 30.0, 60.0):
        weights = np.linspace(0.0, min(float(reader.weights), brought), 1801)
        parts = np.minimum(reader.inputs, own + brought - weights) / reader.inputs
        shares = weights / reader.weights * parts
        largest = float(reader_share(reader, np.array(brought), np.array(own)))
        assert largest == pytest.approx(float(shares.max()), abs=1e-3)
        assert largest >= shares.max() - 1e-12


@pytest.mark.parametrize("seed", range(effort(6)))
def test_rectangles_of_any_size_err_upwards(seed: int) -> None:
    """At any prices an engine earns no more at any of many points than in the few rectangles around them."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        parts, middle, channels, pixels = (int(side) for side in rng.integers(1, 9, 4))
        pair = LayerPair(
            layer(middle, pixels, parts, outside=True),
            layer(channels, pixels, middle, outside=False),
            middle * pixels,
        )
        engines, port = int(rng.integers(2, 7)), float(rng.uniform(1, 100))
        cells = int(rng.integers(1, 6))
        exact = Earned(pair, engines, port, 0.0, 60 * cells, rectangles=False)
        proven = Earned(pair, engines, port, 0.0, cells, rectangles=True)
        for _ in range(10):
            worth, own = np.exp(rng.normal(0, 3)), rng.choice([0.0, rng.uniform(0, 0.5)])
            prices = float(worth), float(rng.uniform(0.01, 1)), float(own)
            assert exact.worth(prices) <= proven.worth(prices) * (1 + 1e-12)


def test_four_engines_in_squares_need_little_more_than_the_bound() -> None:
    """Each of four engines makes a square of results, and a square of the next layer's.

    It is sent 32 + 32 bytes for the first, and of 32 + 32 for the second it has made 16.
    """
    first = layer(8, 8, 8, outside=True)
    pair = LayerPair(first, layer(8, 8, 8, outside=False), 64)
    assert ports_suffice(pair, 4, 112.0, 0.0)
    # each layer alone would pass ports of 64 bytes
    assert not ports_suffice(pair, 4, 70.0, 0.0)


@pytest.mark.parametrize("seed", range(effort(4)))
def test_one_engine_needs_all_operands_of_both_layers(seed: int) -> None:
    """It makes all inputs of the second one itself."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        parts, middle, channels, pixels = (int(side) for side in rng.integers(1, 9, 4))
        first = layer(middle, pixels, parts, outside=True)
        second = layer(channels, pixels, middle, outside=False)
        pair = LayerPair(first, second, middle * pixels)
        needed = float(first.weights + first.inputs + second.weights)
        assert ports_suffice(pair, 1, needed, 0.0)


def test_engines_that_keep_their_pixels_need_no_inputs_of_the_reader() -> None:
    """Both engines have all weights, 16 and 16 bytes, and half of 256 inputs; they make what they read."""
    pair = LayerPair(layer(2, 32, 8, outside=True), layer(8, 32, 2, outside=False), 2 * 32)
    assert ports_suffice(pair, 2, 16 + 128 + 16, 0.0)
    assert not ports_suffice(pair, 2, 0.9 * (16 + 128 + 16), 0.0)


def test_what_passes_besides_a_pair_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two layers in a row everything belongs to the pair."""
    first, second = (conv2d(k=k, c=c, r=1, s=1, h=8, w=8) for k, c in ((16, 4), (8, 16)))
    network = Network(
        "two", [Layer("a", first, "test"), Layer("b", second, "test")], [Link("a", "b", "I", "x", 1024)]
    )
    problem = TiledProblem(network, load_tiled_machine("atomic-2x2"), tiled_objective("edp"))
    besides: list[float] = []

    def asked(pair: LayerPair, engines: int, port: float, others: float) -> bool:
        besides.append(others)
        return True

    monkeypatch.setattr(joint_bounds, "ports_suffice", asked)
    CopiesOverCycles(problem, size_bounds(problem)).least_cycles()
    assert set(besides) == {0}


@pytest.mark.parametrize(("seed", "more"), [(6, 4850), (12, 1060)])
def test_a_reader_with_its_maker_takes_longer_than_each_alone(seed: int, more: int) -> None:
    problem = random_problem(seed)
    assert CopiesOverCycles(problem, size_bounds(problem)).least_cycles() > more


def test_results_are_own_ones_of_a_single_engine() -> None:
    """Ports of 24 bytes bring each of two engines all 8 operands of the first layer and half of 32 weights.

    Both could then make all 16 results, but each of these is finished once.  With half of them each an engine
    is sent 2 weights, 4 inputs, the 8 other results and 16 weights.
    """
    pair = LayerPair(layer(4, 4, 1, outside=True), layer(8, 4, 4, outside=False), 16)
    assert ports_suffice(pair, 2, 2 + 4 + 8 + 16, 0.0)
    assert not ports_suffice(pair, 2, 24.0, 0.0)


@pytest.mark.slow
def test_no_random_plan_on_narrow_ports_is_faster() -> None:
    """Random sizes, engines and orders on machines whose ports bring little."""
    planned = 0
    for seed in range(300):
        rng, problem = random.Random(seed), narrowed(random_problem(seed), seed)
        if problem.machine.engines == 1:
            continue
        over = CopiesOverCycles(problem, size_bounds(problem))
        sized = random_sized_plan(rng, problem, 1000)
        if sized is None:
            continue
        assert over.least_cycles() <= problem.evaluate(*sized).cycles
        planned += 1
    assert planned > 50
