"""Plans of streams: legal by two referees, never below the bounds, close to that of energies."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from effort import effort
from studies.tiled_first_plans import part_of
from studies.tiled_random import random_machine, random_problem
from tiled_referee import simulate

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledGoal, TiledSearch
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.heuristics.scheduling.tiled.streams import method
from tilewright.heuristics.scheduling.tiled.streams.shares import Share, Streams, even
from tilewright.solvers.scheduling.tiled import auto
from tilewright.solvers.scheduling.tiled.joint_bounds import least_keys
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.mapping.convolutions import conv2d, depthwise_conv2d
from tilewright.workloads.mapping.pointwise import elementwise
from tilewright.workloads.mapping.pooling import pool2d
from tilewright.workloads.network import Layer, Link, Network


def of(name: str, system: str = "atomic-8x8[link=16]", batch: int = 1) -> TiledProblem:
    """A network of the catalog, by energy."""
    return TiledProblem(part_of(name), load_tiled_machine(system), tiled_objective("energy"), batch=batch)


def squeezed() -> Network:
    """What expands, moves windows, and is pooled, scaled and projected, twice."""
    layers, links, before = [], [], None
    for block in "ab":
        expand = Layer(f"{block}.expand", conv2d(k=96, c=16, r=1, s=1, h=28, w=28), "test")
        window = Layer(f"{block}.window", depthwise_conv2d(c=96, r=3, s=3, h=28, w=28, pad=1), "test")
        pool = Layer(f"{block}.pool", pool2d(c=96, r=28, s=28, h=28, w=28), "test")
        scale = Layer(f"{block}.scale", elementwise(shape=(1, 96, 28, 28)), "test")
        project = Layer(f"{block}.project", conv2d(k=16, c=96, r=1, s=1, h=28, w=28), "test")
        if before is not None:
            links.append(Link(before, expand.name, "I", before, 16 * 784))
        links.append(Link(expand.name, window.name, "I", expand.name, 96 * 784))
        links.append(Link(window.name, pool.name, "I", window.name, 96 * 784))
        links.append(Link(window.name, scale.name, scale.operator.inputs[0].name, window.name, 96 * 784))
        links.append(Link(scale.name, project.name, "I", scale.name, 96 * 784))
        layers += [expand, window, pool, scale, project]
        before = project.name
    return Network("squeezed", layers, links)


def drawn(streams: Streams, shares: tuple[Share, ...], rng: random.Random) -> tuple[Share, ...]:
    """Shares of which about half are others, as far as buffers take their atoms."""
    engines = streams.problem.machine.engines
    other = tuple(
        streams.legal(at, Share(rng.randint(1, engines), rng.randint(1, 4), rng.randint(-1, 2)), share)
        if rng.random() < 0.5
        else share
        for at, share in enumerate(shares)
    )
    return streams.without_crowded(other, shares)


def check(problem: TiledProblem, streams: Streams, shares: tuple[Share, ...]) -> None:
    """The plan is one by the evaluator, above all bounds, and the referee's cycles are close to its own."""
    search = TiledSearch(TiledGoal(problem), Limits(), exact=False)
    key, answer = method.planned(Stages(search, "test"), streams, shares, "test")
    assert key == search.key
    assert all(least <= key for least in least_keys(problem))
    result = problem.evaluate(answer.dag, answer.plan)
    assert result.energy.total >= size_bounds(problem).energy * (1 - 1e-9)
    assert 0.5 < simulate(answer.dag, problem.machine, answer.plan) / result.cycles < 1.5


def test_a_stream_is_what_is_read_channel_by_channel() -> None:
    """What expands and the depthwise layer behind it are one; projections begin the next stream."""
    problem = of("mobilenet-v2")
    names = [[problem.units[unit].name for unit in stream] for stream in Streams(problem).streams]
    assert names[:3] == [
        ["conv1", "bottleneck1_1.depthwise"],
        ["bottleneck1_1.project"],
        ["bottleneck2_1.expand", "bottleneck2_1.depthwise"],
    ]
    assert [*map(len, names)].count(2) == 18


def test_even_shares_keep_to_runs() -> None:
    """Shares cover all, are at most as many as asked for, and none holds a part of a run beside others."""
    assert even(10, 4) == (0, 3, 5, 8, 10)
    for run in range(1, 8):
        for size in range(run, 5 * run + 1, run):
            for count in range(1, size + 3):
                cuts = even(size, count, run)
                assert (cuts[0], cuts[-1]) == (0, size)
                assert len(cuts) - 1 <= count
                for low, high in pairwise(cuts):
                    assert low < high
                    assert low // run == (high - 1) // run or low % run == high % run == 0


def test_streams_of_mobilenet_are_close_to_the_bound() -> None:
    """Within 2 %, where the first plan is not."""
    problem = of("mobilenet-v2")
    result = plan_run(lambda: problem, "streams[moves=20]", Limits(seed=1)).run()
    energies = [point.key for point in result.trace if point.improved]
    bound = size_bounds(problem).energy
    assert result.evaluation is not None
    assert bound <= result.evaluation.energy.total <= 1.02 * bound
    assert energies[0] is not None
    assert energies[0] > 1.05 * bound


def test_streams_of_random_networks_are_legal_and_above_the_bounds() -> None:
    count = 0
    for seed in range(effort(24)):
        problem, rng = random_problem(seed), random.Random(seed)
        for samples in {1, problem.batch}:
            streams = Streams(problem, samples=samples)
            try:
                shares = streams.fewest()
            except InputError:
                continue
            check(problem, streams, shares)
            check(problem, streams, drawn(streams, shares, rng))
            count += 1
    assert count >= effort(24) // 2


@pytest.mark.parametrize("batch", [1, 3])
def test_streams_with_pools_and_scales_are_legal_on_every_mesh(batch: int) -> None:
    rng = random.Random(batch)
    for _ in range(effort(6)):
        problem = TiledProblem(squeezed(), random_machine(rng), tiled_objective("edp"), batch=batch)
        streams = Streams(problem, samples=rng.choice([1, batch]))
        assert max(map(len, streams.streams)) > 2
        try:
            shares = streams.fewest()
        except InputError:
            continue
        check(problem, streams, drawn(streams, shares, rng))


@pytest.mark.parametrize("name", ["googlenet", "onnx:shufflenet", "bert-base/layer1"])
def test_streams_with_concatenations_shuffles_and_attention_are_legal(name: str) -> None:
    problem = of(name)
    streams = Streams(problem)
    shares = streams.fewest()
    for seed in range(effort(2)):
        check(problem, streams, drawn(streams, shares, random.Random(seed)))


def test_a_layer_that_fits_no_buffer_is_named() -> None:
    layer = Layer("wide", conv2d(k=16, c=16, r=3, s=3, h=8, w=8, pad=1), "test")
    machine = load_tiled_machine("atomic-2x2[buffer=0.0078125]")
    problem = TiledProblem(Network("one", [layer], []), machine, tiled_objective("energy"))
    with pytest.raises(InputError, match=r"wide.*needs \d+ bytes, a buffer has 8"):
        plan_run(lambda: problem, "streams", Limits(60)).run()


def test_the_same_seed_leads_to_the_same_plan() -> None:
    problem = TiledProblem(squeezed(), load_tiled_machine("atomic-2x2"), tiled_objective("edp"), batch=2)
    one, two = (
        plan_run(lambda: problem, "streams[passes=1,moves=30]", Limits(seed=5, threads=1)).run()
        for _ in range(2)
    )
    assert one.status is Status.FEASIBLE
    assert one.key == two.key
    assert one.answer is not None
    assert two.answer is not None
    assert one.answer.dag.tilings == two.answer.dag.tilings
    keys = [point.key for point in one.trace if point.improved and point.key is not None]
    assert len(keys) > 3
    assert keys == sorted(keys, reverse=True)


def test_limits_end_streams_with_what_there_is() -> None:
    """A limit between plans keeps the best one; too many atoms for the time are never made."""
    problem = of("mobilenet-v2", "atomic-2x2")
    search = TiledSearch(TiledGoal(problem), Limits(), exact=False)
    stages = Stages(search, "test")
    start = method.started(search, stages, Limits())
    before = start.judged
    start.climb(stages, Limits(0.0))
    start.wander(stages, Limits(0.0))
    assert start.judged is before
    with pytest.raises(LimitReachedError, match=r"atoms (of streams|in buffers)"):
        Streams(of("unet"), samples=1).fewest(Limits(0.5))


@pytest.mark.slow
def test_auto_needs_less_energy_with_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a small network that expands and squeezes, with the same seed."""
    machine = load_tiled_machine("atomic-8x8[engines=4x4,buffer=16]")
    problem = TiledProblem(squeezed(), machine, tiled_objective("energy"))

    def key() -> float:
        result = plan_run(lambda: problem, "auto[steps=0]", Limits(60.0, threads=1)).run()
        assert result.key is not None
        return float(result.key)

    with_streams = key()
    monkeypatch.setattr(auto._Portfolio, "begin_streams", lambda _: None)
    assert with_streams < 0.95 * key()
