"""Plans of streams beside the bound of energies: legal, never below it, and close to it."""

from __future__ import annotations

import pytest
from effort import effort
from studies.tiled_random import random_problem
from studies.tiled_streams import Streams, even

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.catalog import resolve_model


def of(name: str) -> TiledProblem:
    """A network of the catalog on 64 engines."""
    return TiledProblem(
        resolve_model(name, 1), load_tiled_machine("atomic-8x8[link=16]"), tiled_objective("energy")
    )


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
    assert even(10, 4) == (0, 3, 5, 8, 10)


def test_streams_of_mobilenet_are_close_to_the_bound() -> None:
    """Within 3 % once every stream's bands have been changed."""
    problem = of("mobilenet-v2")
    streams = Streams(problem)
    answer, bound = streams.climbed(1), size_bounds(problem).energy
    energy = problem.evaluate(answer.dag, answer.plan).energy.total
    assert bound <= energy <= 1.03 * bound
    assert energy < streams.energy(streams.fewest())


def test_streams_of_random_networks_are_legal_and_above_the_bound() -> None:
    count = 0
    for seed in range(effort(24)):
        problem = random_problem(seed)
        streams = Streams(problem)
        try:
            answer = streams.plan(streams.fewest())
        except InputError:
            continue
        energy = problem.evaluate(answer.dag, answer.plan).energy.total
        assert energy >= size_bounds(problem).energy * (1 - 1e-9)
        assert energy == pytest.approx(streams.energy(streams.fewest()), rel=1e-12)
        count += 1
    assert count >= effort(24) // 2
