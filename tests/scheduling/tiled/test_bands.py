"""Bands of rows: their sizes, their order, and what they gain where whole layers leave the buffers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledSearch
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled import starts
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.bands import all_band_sizes, band_sizes
from tilewright.heuristics.scheduling.tiled.lists import depth_first, layer_sequential, list_order
from tilewright.heuristics.scheduling.tiled.refining import Sizes
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network


def problem_of(machine: str, batch: int) -> TiledProblem:
    """A layer that widens and one that narrows again."""
    layers = [
        Layer("wide", conv2d(k=128, c=8, r=3, s=3, h=16, w=16, pad=1), "test"),
        Layer("narrow", conv2d(k=8, c=128, r=1, s=1, h=16, w=16), "test"),
    ]
    network = Network("bottle", layers, [Link("wide", "narrow", "I", "wide", 128 * 256)])
    return TiledProblem(network, load_tiled_machine(machine), tiled_objective("edp"), batch=batch)


def test_bands_have_complete_sums_and_all_columns_or_one_engines_part() -> None:
    """Rows, channels and columns are cut alike in all layers; what has too many atoms is left out."""
    problem = problem_of("atomic-2x2", 1)
    assert band_sizes(problem, 2, 4) == (AtomSize(2, 16, 8, 32), AtomSize(2, 16, 128, 2))
    assert band_sizes(problem, 2, 4, 3) == (AtomSize(2, 6, 8, 32), AtomSize(2, 6, 128, 2))
    everything = dict(all_band_sizes(problem, 10**6))
    assert len(everything) == 4 * 5 * 2
    assert len(set(everything.values())) == len(everything)
    few = dict(all_band_sizes(problem, 16))
    assert (
        set(few.values())
        == {sizes for sizes in everything.values() if problem.dag(sizes).tasks <= 16}
        != set(everything.values())
    )


@pytest.mark.parametrize(("batch", "engines"), [(1, 1), (1, 2), (2, 2), (3, 2), (2, 4), (1, 7)])
def test_every_engine_has_a_run_of_rows(batch: int, engines: int) -> None:
    """Priorities differ, later layers are first, and rows at the same place of their runs are neighbours."""
    problem = problem_of("atomic-2x2", batch)
    dag = problem.dag(band_sizes(problem, 2, 2))
    priority = depth_first(dag, engines)
    assert len(set(priority.tolist())) == dag.tasks
    assert priority[dag.base[1] :].min() > priority[: dag.base[1]].max()
    # two parts of channels of eight bands a sample, in the order of their tasks
    bands = np.arange(dag.base[1]).reshape(batch, 2, 8).transpose(0, 2, 1).reshape(batch * 8, 2)
    run = -(-batch * 8 // engines)
    expected = [task for at in range(run) for task in bands[at::run].ravel().tolist()]
    assert np.argsort(-priority[: dag.base[1]]).tolist() == expected


def test_wide_results_stay_on_chip_in_bands() -> None:
    """Layers in turn write what no buffer holds to DRAM; bands of the same atoms write the outputs alone."""
    problem = problem_of("atomic-2x2[engines=2x1,buffer=16]", 2)
    dag = problem.dag(band_sizes(problem, 1, 1))
    in_turn = complete(dag, problem.machine, *layer_sequential(dag, problem.machine))
    bands = complete(dag, problem.machine, *list_order(dag, problem.machine, priority=depth_first(dag, 2)))
    assert problem.evaluate(dag, bands).cycles < problem.evaluate(dag, in_turn).cycles
    written = problem.evaluate(dag, bands)
    assert written.energy.total < problem.evaluate(dag, in_turn).energy.total


def test_the_method_tries_bands() -> None:
    """`atomic` is no worse than the best bands in its own order, unsmoothed."""
    problem = problem_of("atomic-2x2[engines=2x1,buffer=16]", 2)
    result = plan_run(lambda: problem, "atomic[moves=1]", Limits(threads=1)).run()
    assert result.answer is not None
    judged = TiledGoal(problem).judge(result.answer).key
    machine, tried = problem.machine, 0
    for _, sizes in all_band_sizes(problem, 500):
        with suppress(InputError):
            dag = problem.dag(sizes)
            order = list_order(dag, machine, priority=depth_first(dag, 2))
            key = TiledGoal(problem).judge(AtomicPlan(dag, complete(dag, machine, *order))).key
            assert judged <= key
            tried += 1
    assert tried >= 4


@pytest.mark.parametrize(
    ("objective", "buffer", "tried"),
    [("edp", 128, True), ("makespan", 128, True), ("energy", 128, False), ("energy", 16, True)],
)
def test_bands_are_tried_where_cycles_count_or_buffers_are_small(
    objective: str, buffer: int, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()

    def none(problem: TiledProblem, most: int) -> Iterator[tuple[str, Sizes]]:
        asked.append(most)
        return iter(())

    monkeypatch.setattr(starts, "all_band_sizes", none)
    machine = f"atomic-2x2[engines=2x1,buffer={buffer}]"
    problem = replace(problem_of(machine, 1), objective=tiled_objective(objective))
    search = TiledSearch(TiledGoal(problem), Limits(), exact=False)
    begun = AtomicDataflow(order="waves", mapping="zigzag").starts(
        search, Stages(search, "test", level=False)
    )
    for _ in range(20):
        begun.go_on()
    assert bool(asked) == tried
