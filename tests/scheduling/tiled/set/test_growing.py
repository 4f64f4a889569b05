"""How the search for trees begins: layers in subbatches of their own, merging in sweeps, and values."""

from itertools import pairwise
from random import Random

import pytest
from set_cases import form_of, part

from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node, chain
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.heuristics.scheduling.tiled.set.annealing import first_tree, objective
from tilewright.heuristics.scheduling.tiled.set.chains import Segments, best_chain
from tilewright.heuristics.scheduling.tiled.set.growing import Growth, grow_from
from tilewright.heuristics.scheduling.tiled.set.polishing import Polisher, Row
from tilewright.heuristics.scheduling.tiled.set.wide_steps import wide_step


def test_a_layer_too_large_for_the_batch_runs_in_subbatches() -> None:
    """SET's first tree runs all layers on parts of 64 samples; segments of the whole batch need not."""
    form = form_of(part("resnet", (15, 16)), 64)
    begun = first_tree(form)
    assert begun is not None
    assert begun[0].groups > 1
    assert isinstance(form.segment(Leaf(0, 64), 64), Unfit)
    segments = Segments()
    for start in (0, 1):
        grow_from(form, segments, start, 64, 1.0, Growth(longest=2, in_order=True), lambda: False, 64)
    first, second = segments.by_start[0][1], segments.by_start[1][3]
    assert all(isinstance(candidate.tree, Cut) and candidate.tree.groups > 1 for candidate in first)
    values = [form.value(a.energy + b.energy, a.cycles + b.cycles) for a in first for b in second]
    assert min(values) < begun[1]
    assert segments.by_start[0][3]


def test_objectives_are_those_of_the_closed_form() -> None:
    """Random trees have the value of their energy and cycles, or none where they do not fit."""
    random, form = Random(3), form_of(part("resnet", tuple(range(2, 8))), 2)
    tree: Node = chain(tuple(range(6)), 2)
    fitting = 0
    for _ in range(60):
        tree = wide_step(tree, form.network, random) or tree
        cost = form.attempt(tree)
        if isinstance(cost, Unfit):
            assert objective(form, tree) is None
        else:
            fitting += 1
            assert objective(form, tree) == pytest.approx(form.value(cost.energy, cost.cycles), rel=1e-12)
    assert fitting > 0


def test_merging_gains_until_no_neighbours_gain() -> None:
    """Every sweep is told of and better than the one before; afterwards no merged pair is better."""
    form = form_of(part("resnet", tuple(range(2, 10))))
    rows: list[Row] = []
    polisher = Polisher(form, 1, lambda: False, rows.append)
    begun: Row = [Leaf(layer, 1) for layer in range(8)]
    row = polisher.merge(begun)
    assert row == rows[-1]
    values = [polisher.value(candidate) for candidate in (begun, *rows)]
    assert all(after < before for before, after in pairwise(values))
    assert polisher.merge(row) == row


def test_a_stop_leaves_the_best_chain_of_weighted_sums() -> None:
    """Stopped while labels are sought, there is a chain of all layers that is not claimed to be the best."""
    form = form_of(part("resnet", tuple(range(2, 8))), 2)
    segments = Segments()
    sets = [(1 << count) - 1 for count in range(7)]
    for start in sets[:-1]:
        grow_from(form, segments, start, 2, 1.0, Growth(longest=2, in_order=True), lambda: False, 2)
    chained, exact = best_chain(segments, sets, form.value, stop=lambda: True)
    assert not exact
    assert [chained[0].start, *(segment.end for segment in chained)][-1] == sets[-1]
    best, proven = best_chain(segments, sets, form.value)
    assert proven
    values = [form.value(sum(s.energy for s in row), sum(s.cycles for s in row)) for row in (chained, best)]
    assert values[1] <= values[0]
