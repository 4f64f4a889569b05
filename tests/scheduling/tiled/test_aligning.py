"""Of sizes that are equally good for a layer, those are taken whose atoms read few blocks."""

from __future__ import annotations

from itertools import product

import pytest

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled import coarsening
from tilewright.heuristics.scheduling.tiled.aligning import aligned
from tilewright.heuristics.scheduling.tiled.coarsening import workable
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_menu, balanced_sizes
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.network import Network


def attention() -> TiledProblem:
    """The first softmax of `gpt2-small`, with what it reads and who reads it."""
    whole = resolve_model("gpt2-small", 1)
    middle = next(layer.name for layer in whole.layers if "softmax" in layer.name)
    links = [link for link in whole.links if middle in (link.producer, link.consumer) and link.producer]
    names = {name for link in links for name in (link.producer, link.consumer)}
    layers = [layer for layer in whole.layers if layer.name in names]
    network = Network("attention", layers, links)
    return TiledProblem(network, load_tiled_machine("atomic-2x2"), tiled_objective("edp"))


def test_the_chosen_sizes_read_fewer_blocks_than_most() -> None:
    """Of all ways to take equal sizes the choice is among the tenth that read the fewest blocks."""
    problem = attention()
    menus = [balanced_menu(problem, unit, 4, room=1.0) for unit in problem.units]
    equal = [menu.equal(int(menu.atoms.argmin()))[:5] for menu in menus]
    assert max(map(len, equal)) > 1
    counted = {sizes: len(problem.unchecked_dag(sizes).reads) for sizes in product(*equal)}
    chosen = aligned(problem, [those[0] for those in equal], equal)
    assert sum(count < counted[chosen] for count in counted.values()) <= len(counted) / 10


def test_nothing_is_chosen_where_sizes_are_one() -> None:
    """Without a choice the sizes are those given."""
    problem = attention()
    sizes = balanced_sizes(problem)
    assert aligned(problem, sizes, [[size] for size in sizes]) == sizes


def test_a_size_that_needs_too_much_gives_way_to_its_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an atom needs more than its estimate says, the first of its equals comes before smaller ones."""
    problem = attention()
    given = balanced_sizes(problem)
    atoms = {}
    for place in (0, -1):

        def one(
            _problem: TiledProblem, _sizes: list[AtomSize], equal: list[list[AtomSize]], place: int = place
        ) -> tuple[AtomSize, ...]:
            return tuple(those[place] for those in equal)

        monkeypatch.setattr(coarsening, "aligned", one)
        _, dag = workable(problem, given, most=1)
        assert dag.needs.max() <= problem.machine.engine.buffer_bytes
        atoms[place] = dag.tasks
    assert atoms[-1] <= atoms[0]
