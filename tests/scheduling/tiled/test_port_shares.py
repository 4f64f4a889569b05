"""What enters engines that share a layer through ports of so many bytes: beside all ways to deal it out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from effort import effort
from studies.tiled_random import random_problem

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.copies import SharedLayer
from tilewright.solvers.scheduling.tiled.joint_bounds import CopiesOverCycles, least_key
from tilewright.solvers.scheduling.tiled.port_shares import least_coming, least_entering, most_share
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Network


def matrices(channels: float, pixels: float, parts: float, *, outside: bool) -> SharedLayer:
    """A product of matrices whose elements and sums have a byte each."""
    weights, inputs, sums = channels * parts, pixels * parts, channels * pixels
    sizes = {"weights": weights, "inputs": inputs, "sums": sums, "read": inputs}
    return SharedLayer(unit=0, work=1.0, outside=outside, **sizes)  # type: ignore[arg-type]


def bound(layer: SharedLayer, port: float, share: float, sums: float) -> float:
    """The bound for one port and share."""
    return float(least_entering(layer, np.array([float(port)]), np.array([share]), sums)[0])


def entering(owner: np.ndarray, maker: np.ndarray) -> tuple[list[int], int, float]:
    """Per engine the weights and inputs that enter it, unfinished sums that are sent, and the largest share.

    Parameters
    ----------
    owner : per channel, pixel and part, the engine that multiplies
    maker : per pixel and part, the engine that made the input, -1 where it comes from DRAM
    """
    engines = sorted({*owner.ravel().tolist()})
    ports, sums = [], -owner.shape[0] * owner.shape[1]
    for engine in engines:
        mine = owner == engine
        inputs = mine.any(axis=0) & (maker != engine)
        ports.append(int(mine.any(axis=1).sum() + inputs.sum()))
        sums += int(mine.any(axis=2).sum())
    return ports, sums, max(float((owner == engine).mean()) for engine in engines)


@pytest.mark.parametrize("seed", range(effort(12)))
def test_no_random_deal_brings_less_in(seed: int) -> None:
    """With boxes or single multiplications dealt at random, and inputs made anywhere, no less enters."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        channels, pixels, parts = (int(side) for side in rng.integers(1, 9, 3))
        owner = rng.integers(0, int(rng.integers(1, 7)), (channels, pixels, parts))
        if rng.random() < 0.8:  # boxes: the same engine along the blocks of every axis
            cuts = [np.sort(rng.integers(0, int(rng.integers(1, 4)), side)) for side in owner.shape]
            owner = rng.integers(0, 6, (3, 3, 3))[np.ix_(*cuts)]
        outside = bool(rng.random() < 0.4)
        if outside:
            maker = np.full((pixels, parts), -1)
        elif rng.random() < 0.5:  # where they are read first
            maker = owner[0]
        else:
            maker = rng.integers(0, 6, (pixels, parts))
        ports, sums, share = entering(owner, maker)
        price = float(rng.choice([0.1, 0.5, 1.0, 4.0]))
        layer = matrices(channels, pixels, parts, outside=outside)
        total = sum(ports) + price * sums
        for port, part in ((max(ports), 1.0), (max(ports), share), (10**9, share), (10**9, 1.0)):
            assert bound(layer, max(port, 1), part, price) <= total + 1e-9


@pytest.mark.parametrize("sides", [(2, 2, 2), (3, 2, 1), (1, 3, 2), (2, 1, 3)], ids=str)
def test_no_deal_among_two_engines_brings_less_in(sides: tuple[int, int, int]) -> None:
    """All deals of all multiplications, and of all inputs over their makers, bring no less in."""
    channels, pixels, parts = sides
    layers = {outside: matrices(*sides, outside=outside) for outside in (False, True)}

    @cache
    def least(outside: bool, port: int, share: float, price: float) -> float:
        return bound(layers[outside], port, share, price)

    inside = list(product(range(2), repeat=pixels * parts))
    reached = 0
    for deal in product(range(2), repeat=channels * pixels * parts):
        owner = np.array(deal).reshape(sides)
        for making in ((-1,) * (pixels * parts), *inside):
            ports, sums, share = entering(owner, np.array(making).reshape(pixels, parts))
            for price in (0.25, 1.0, 4.0):
                low = least(making[0] < 0, max(1, *ports), share, price)
                assert low <= sum(ports) + price * sums + 1e-9
                reached += low >= (sum(ports) + price * sums) * (1 - 1e-6)
    assert reached > 0


@pytest.mark.parametrize("inputs", [10.0, 60.0, 900.0])
def test_the_least_bytes_of_a_share_are_those_of_plain_enumeration(inputs: float) -> None:
    """Of parts of 60 bytes of weights and of the inputs whose product is a share, none has fewer bytes."""
    for share in (0.001, 0.05, 0.2, 0.7, 1.0):
        part = np.geomspace(share, 1.0, 20_001)
        fewest = float((part * 60.0 + share / part * inputs).min())
        coming = least_coming(60.0, inputs, np.array([share]))
        assert coming[0] == pytest.approx(fewest, rel=1e-6)
        assert coming[0] <= fewest * (1 + 1e-12)
        assert most_share(60.0, inputs, coming) == pytest.approx([share])


@pytest.mark.parametrize(("across", "down"), [(1, 1), (2, 2), (3, 3), (4, 4)])
def test_equal_squares_need_just_the_bound(across: int, down: int) -> None:
    """A square cut into equal squares, each filling its port, brings in what the bound says."""
    side = 12
    layer = matrices(side, side, 1, outside=True)
    port = side / across + side / down
    assert bound(layer, port, 1.0, 100.0) == pytest.approx(across * down * port)


def test_cubes_that_share_sums_need_just_the_bound() -> None:
    """Cubes along all three axes are the best where a sum costs as much as a weight and an input together."""
    side, cut = 12.0, 3
    layer = matrices(side, side, side, outside=True)
    port = 2 * side**2 / cut**2
    # k cuts along each axis: X = 2 W k k balances D k k where a sum counts twice
    total = cut**3 * port + 2.0 * side**2 * (cut - 1)
    assert bound(layer, port, 1.0, 2.0) == pytest.approx(total)


def test_an_engine_that_made_all_inputs_fetches_the_weights_alone() -> None:
    """One engine may do a layer with its own inputs, if its port brings all weights."""
    layer = matrices(8, 8, 2, outside=False)
    assert bound(layer, 16, 1.0, 4.0) == pytest.approx(16)
    assert bound(layer, 10**9, 1.0, 4.0) == pytest.approx(16)


def test_others_help_an_engine_that_made_all_inputs_in_squares() -> None:
    """Ports of four bytes: one engine does half of the channels with its own inputs, four do squares."""
    owner = np.zeros((8, 4, 1), dtype=int)
    owner[4:] = (1 + np.arange(4).reshape(2, 2).repeat(2, 0).repeat(2, 1))[:, :, None]
    ports, sums, _ = entering(owner, np.zeros((4, 1), dtype=int))
    assert (ports, sums) == ([4] * 5, 0)
    assert bound(matrices(8, 4, 1, outside=False), 4, 1.0, 100.0) == pytest.approx(20)


def test_narrow_ports_take_more_cycles_than_all_ports_together() -> None:
    """With links of 2 B/cycle a plan takes over 40 % longer than work and compulsory traffic do."""
    problem = random_problem(6)
    at_once = replace(size_bounds(problem), waiting=0)
    assert CopiesOverCycles(problem, at_once).least_cycles() > at_once.cycles * 14 // 10


def test_no_place_of_four_squares_is_faster_than_narrow_ports() -> None:
    """No way to deal four atoms out over four engines is faster than what each square reads comes in."""
    machine = load_tiled_machine("atomic-2x2[engines=2x2,array=16x16,ports=sides,link=1,dram=100000]")
    network = Network("n", [Layer("a", conv2d(k=64, c=64, r=1, s=1, h=8, w=8), "t")])
    problem = TiledProblem(network, machine, tiled_objective("makespan"))
    bounds, dag = size_bounds(problem), problem.dag([AtomSize(4, 8, 64, 32)])
    least = CopiesOverCycles(problem, bounds).least_cycles()
    assert least == 4096 == 2 * bounds.cycles
    times = []
    for engines in product(range(4), repeat=dag.tasks):
        steps = np.zeros(4, np.int32) if len(set(engines)) == 4 else np.arange(4, dtype=np.int32)
        plan = complete(dag, machine, np.array(engines, np.int32), steps)
        times.append(problem.evaluate(dag, plan).cycles)
    # the best one computes for 256 cycles after that, and writes 1,024 bytes of results from each engine
    assert least <= min(times) <= least + 256 + 1024 + 8


def test_copies_that_cost_nothing_leave_the_bounds_apart() -> None:
    """Where writes and links take no energy, both together are no more than the least cycles make of them."""
    problem = random_problem(6)
    engine = replace(problem.machine.engine, buffer_write_energy=0.0)
    machine = problem.machine.changed(engine=engine, hop_energy=0.0)
    free = TiledProblem(problem.network, machine, problem.objective, batch=problem.batch)
    bounds = size_bounds(free)
    over = CopiesOverCycles(free, bounds)
    least = free.objective.key(Fraction(bounds.energy), over.least_cycles())
    assert float(least_key(free)) == pytest.approx(float(least))
