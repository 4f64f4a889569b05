"""Networks and batches whose atoms by the estimates would be too many or too large, and remembered layers."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from tiled_plans import random_problem

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled import atoms, build, reading, sources
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, atom_count
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled import coarsening
from tilewright.heuristics.scheduling.tiled.coarsening import crowded, smaller, workable
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_menu, balanced_sizes
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.operators import gemm
from tilewright.workloads.network import Layer, Link, Network

COLUMNS = ("cycles", "operations", "block_bytes", "block_parent", "block_kind", "read_starts", "reads")


def problem_of(name: str, machine: str, batch: int = 1) -> TiledProblem:
    return TiledProblem(
        resolve_model(name, 1), load_tiled_machine(machine), tiled_objective("makespan"), batch=batch
    )


def test_too_many_atoms_become_fewer_and_few_stay() -> None:
    """Layers beyond a common number get coarser atoms until the sum is kept; the others keep their sizes."""
    problem = problem_of("resnet18", "atomic-8x8", batch=4)
    given = balanced_sizes(problem)
    counts = [atom_count(unit, size, 4) for unit, size in zip(problem.units, given, strict=True)]
    same, _ = workable(problem, given, most=sum(counts))
    assert same == given
    sizes, dag = workable(problem, given, most=9 * sum(counts) // 10)
    fewer = [atom_count(unit, size, 4) for unit, size in zip(problem.units, sizes, strict=True)]
    assert dag.tasks == sum(fewer) <= 9 * sum(counts) // 10
    assert all(a <= b for a, b in zip(fewer, counts, strict=True))
    least = counts.index(min(counts))
    assert sizes[least] == given[least]


def test_atoms_beyond_their_estimate_become_smaller() -> None:
    """Sizes that fit no buffer are replaced by some that do; where none does, the layer is named."""
    problem = _wide()
    whole = [AtomSize(14, 14, 64, 64)] * len(problem.units)
    with pytest.raises(InputError, match="needs"):
        problem.dag(whole)
    _, dag = workable(problem, whole)
    assert dag.needs.max() <= problem.machine.engine.buffer_bytes
    tiny = replace(problem.machine.engine, buffer_bytes=16)
    with pytest.raises(InputError, match="smallest atom needs"):
        workable(replace(problem, machine=replace(problem.machine, engine=tiny)), whole)


@pytest.mark.parametrize("samples", [1, 2])
def test_atoms_that_need_too_much_shrink_alike_in_every_batch(samples: int) -> None:
    """What is tried on one sample fits all of them: the DAG is that of the sizes, and no side grows."""
    problem, begun = _wide(), AtomSize(14, 14, 64, 64, samples)
    single, _ = workable(problem, [replace(begun, samples=1)])
    several = replace(problem, batch=4)
    sizes, dag = workable(several, [begun])
    assert sizes == single
    for size in sizes:
        sides = (size.rows, size.columns, size.inputs, size.outputs)
        assert all(side <= most for side, most in zip(sides, (14, 14, 64, 64), strict=True))
    again = several.dag(sizes)
    assert dag.tasks == again.tasks == 4 * problem.dag(sizes).tasks
    assert np.array_equal(dag.reads, again.reads)


def test_the_next_size_needs_less_until_none_is_left() -> None:
    """From any size of a menu pixels fall, or the estimate with no more pixels; then it ends."""
    problem = _wide()
    menu = balanced_menu(problem, problem.units[0], 4, room=1.0)
    draw = random.Random(0)
    for wide in (False, True):
        for _ in range(20):
            at = draw.randrange(len(menu.atoms))
            while len(fitting := smaller(menu, menu.size(at), draw.uniform(0.05, 1), wide)):
                after = int(draw.choice(fitting.tolist()))
                pixels = [int(menu.sizes[entry, 0] * menu.sizes[entry, 1]) for entry in (at, after)]
                less = menu.need[after] < menu.need[at]
                assert pixels[1] < pixels[0] or (less and pixels[1] == pixels[0]) if wide else less
                at = after
            if not wide:
                assert menu.need[at] == menu.need.min()


def _wide() -> TiledProblem:
    layer = conv2d(k=64, c=64, r=3, s=3, h=14, w=14)
    network = Network("wide", [Layer("a", layer, "test")])
    return TiledProblem(network, load_tiled_machine("atomic-2x2[buffer=32]"), tiled_objective("makespan"))


def test_more_atoms_than_can_be_planned_are_counted_before_they_are_made() -> None:
    """Too many for the time are a limit, too many for any plan an error: both name buffer and layer."""
    product = Network("product", [Layer("large", gemm(m=1 << 14, n=1 << 14, k=1 << 13), "test")])
    problem = TiledProblem(product, load_tiled_machine("atomic-8x8"), tiled_objective("makespan"))
    sizes = balanced_sizes(problem)
    begun = Limits(1.0, clock=lambda: 0.0)
    with pytest.raises(LimitReachedError, match=r"a buffer of 131,072 bytes are .* of large: too many for"):
        workable(problem, sizes, limits=begun)
    several = replace(problem, batch=32)
    for limits in (begun, None):
        with pytest.raises(InputError, match=r"of large, expected at most 3,000,000"):
            workable(several, balanced_sizes(several), limits=limits)


def test_a_pool_over_a_large_map_is_cut_below_the_array_width() -> None:
    """EfficientNet's first squeeze reads 112 x 112 positions of every channel: atoms of few channels fit."""
    problem = problem_of("efficientnet-b0", "atomic-8x8")
    sizes = balanced_sizes(problem)
    squeeze = next(i for i, unit in enumerate(problem.units) if unit.name == "block1_1.squeeze")
    assert sizes[squeeze].outputs * 112 * 112 < problem.machine.engine.buffer_bytes


@pytest.mark.parametrize("seed", range(4))
def test_what_is_remembered_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A DAG from remembered layers equals one in which every layer is worked out anew."""
    problem, dag = random_problem(random.Random(seed), "atomic-2x2")
    monkeypatch.setattr(sources.READS, "recall", lambda owner, key, make: make())
    for module, name in ((atoms, "LAYERS"), (atoms, "WEIGHTS"), (reading, "CROSSINGS")):
        monkeypatch.setattr(getattr(module, name), "get", lambda operator, key, make: make())
    again = problem.dag(dag.tilings)
    for column in COLUMNS:
        assert np.array_equal(getattr(dag, column), getattr(again, column)), column


def test_equal_layers_read_as_those_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a layer's readers read is worked out once per kind of layer, and is what each would read alone."""
    channels, count = 8, 6
    layers = [
        Layer(f"l{i}", conv2d(k=channels, c=channels, r=3, s=3, h=12, w=12, pad=1), "test")
        for i in range(count)
    ]
    links = [Link(f"l{i}", f"l{i + 1}", "I", f"t{i}", channels * 144) for i in range(count - 1)]
    network = Network("same", layers, links)
    problem = TiledProblem(network, load_tiled_machine("atomic-2x2"), tiled_objective("makespan"))
    sizes = [AtomSize(5, 4, 4, 8)] * count
    sources.READS.clear()
    made: list[int] = []
    honest = sources.Source._compute
    monkeypatch.setattr(
        sources.Source, "_compute", lambda self, crossings: made.append(self.task) or honest(self, crossings)
    )
    dag = problem.dag(sizes)
    assert len(made) < count - 1
    monkeypatch.setattr(sources.READS, "recall", lambda owner, key, make: make())
    alone = problem.dag(sizes)
    for column in COLUMNS:
        assert np.array_equal(getattr(dag, column), getattr(alone, column)), column


def test_a_single_plan_reads_fewer_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where time allows the coarsest atoms alone, sizes of about as many atoms are those that read little."""
    problem = problem_of("unet", "atomic-8x8")
    limits = Limits(0.5, clock=lambda: 0.0)
    assert crowded(problem, 0.5)
    assert not crowded(problem, 600.0)
    given = balanced_sizes(problem, room=1.0)
    few = workable(problem, given, room=1.0, most=1, limits=limits)[1]
    monkeypatch.setattr(coarsening, "SLACK", 1.0)
    fewest = workable(problem, given, room=1.0, most=1, limits=limits)[1]
    assert fewest.tasks <= few.tasks <= 1.1 * fewest.tasks
    assert len(few.reads) < len(fewest.reads)
    assert int(few.needs.max()) <= problem.machine.engine.buffer_bytes


def test_reads_that_take_longer_than_what_is_left_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where coordinates mix, every atom reads a share of every result; that many are counted beforehand."""
    problem = problem_of("alexnet", "atomic-2x2")
    sizes = balanced_sizes(problem)
    monkeypatch.setattr(build, "crossings", lambda *given: None)
    monkeypatch.setattr(build, "READS", 0)
    with pytest.raises(LimitReachedError, match=r"buffers of .* bytes.*; pool1 reads .* as coordinates mix"):
        problem.dag(sizes, Limits(60.0))
    monkeypatch.undo()
    monkeypatch.setattr(build, "READS", 0)
    with pytest.raises(
        LimitReachedError, match=r"buffers of .* bytes, which read [\d,]+ blocks, .*: too many"
    ):
        problem.dag(sizes, Limits(60.0))
    assert problem.dag(sizes, Limits()).tasks
