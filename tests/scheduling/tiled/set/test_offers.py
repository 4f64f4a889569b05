"""Limits within methods on trees: time kept for the plan of the best one, and parts that end early."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest
from set_cases import EDGE
from tiled_plans import random_network

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledGoal, TiledSearch
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, engine_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.kapla.approaches import LearnedChains
from tilewright.heuristics.scheduling.tiled.set import offers as offers_module
from tilewright.heuristics.scheduling.tiled.set.annealing import first_tree
from tilewright.heuristics.scheduling.tiled.set.methods import GrownTrees
from tilewright.heuristics.scheduling.tiled.set.offers import AGAIN
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds
from tilewright.solvers.scheduling.tiled.set.exact import best_tree
from tilewright.solvers.scheduling.tiled.set.leaf.layer_bounds import LayerBounds


def network_of(seed: int) -> SetNetwork:
    """A random network of up to eight layers."""
    rng = random.Random(seed)
    return set_network(units_of(random_network(rng, rng.randint(2, 8))), "random")


def form_of(seed: int) -> ClosedForm:
    """The closed form of one on a small machine."""
    return engine_form(network_of(seed), EDGE, 1, Rules(), energy=1, delay=1)


class Clock:
    """A clock that stands unless it is told to move on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("seed", range(12))
def test_down_sets_equal_enumeration(seed: int) -> None:
    """All sets of layers that have what they read, smallest first; none where they are too many."""
    network = network_of(seed)
    count = len(network)
    expected = [
        sum(1 << layer for layer in layers)
        for size in range(count + 1)
        for layers in itertools.combinations(range(count), size)
        if all(network.before[layer] <= {*layers} for layer in layers)
    ]
    sets = network.down_sets()
    assert sets is not None
    assert sorted(sets) == sorted(expected)
    assert [done.bit_count() for done in sets] == sorted(done.bit_count() for done in sets)
    assert network.down_sets(len(sets)) == sets
    assert network.down_sets(len(sets) - 1) is None


def test_time_is_kept_for_the_plan_of_the_best_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as an expansion took no trees are sought at the end; what is expanded heeds the limits."""
    problem = TiledProblem(
        random_network(random.Random(3), 4), load_tiled_machine("atomic-2x2"), tiled_objective("edp")
    )
    clock, method, given = Clock(), GrownTrees(), list[Limits]()
    expand = offers_module.expand

    def slow(*arguments: Any) -> Any:
        clock.now += 2.0
        given.append(arguments[-1])
        return expand(*arguments)

    monkeypatch.setattr(offers_module, "expand", slow)
    search = TiledSearch(TiledGoal(problem), Limits(100.0, clock=clock), exact=False)
    offers = method.offers(search, method.form(search))
    tree = first_tree(offers.form)
    assert tree is not None
    assert not offers.over()
    offers(*tree)
    assert search.answer is not None
    assert search.answer.tree is not None
    assert given == [search.limits]
    clock.now = 99.0 - 2.0 * AGAIN
    assert not offers.over()
    clock.now = 101.0 - 2.0 * AGAIN
    assert offers.over()
    assert not search.done
    offers.offer(tree[0])  # has been expanded
    assert len(given) == 1


def test_a_tree_that_time_does_not_suffice_for_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that strikes while a tree is expanded leaves the plan that there was."""
    problem = TiledProblem(
        random_network(random.Random(3), 4), load_tiled_machine("atomic-2x2"), tiled_objective("edp")
    )
    method = GrownTrees()
    search = TiledSearch(TiledGoal(problem), Limits(60.0), exact=False)
    offers = method.offers(search, method.form(search))
    offers.atoms()
    before, tree = search.answer, first_tree(offers.form)
    assert tree is not None
    offers.search = search.within(replace(search.limits, seconds=0.0))
    offers.offer(tree[0])
    assert search.answer is before


def test_bounds_of_layers_end_with_the_time() -> None:
    """They raise; the proof of all trees is then none, and has the tree that was known."""
    form = form_of(1)
    late = LayerBounds(form, lambda: True)
    with pytest.raises(LimitReachedError):
        tree_bounds(form, late)
    begun = first_tree(form)
    assert begun is not None
    ended = best_tree(form, "all", lambda: False, begun[0], late)
    assert ended.tree == begun[0]
    assert not ended.proven
    in_time = LayerBounds(form, lambda: False)
    assert tree_bounds(form, in_time) == tree_bounds(form)


def test_learned_partitions_are_not_learned_again_for_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a method says of a plan of atoms comes from the closed form that it has."""
    pytest.importorskip("sklearn")
    made: list[object] = []
    form_of_method = LearnedChains.form_of

    def counted(self: LearnedChains, problem: TiledProblem, seed: int) -> ClosedForm:
        made.append(self)
        return form_of_method(self, problem, seed)

    monkeypatch.setattr(LearnedChains, "form_of", counted)
    problem = TiledProblem(
        random_network(random.Random(3), 3),
        load_tiled_machine("atomic-2x2[buffer=1]"),
        tiled_objective("edp"),
    )
    result = plan_run(lambda: problem, "autotvm[iterations=1,batch=2]", Limits(60.0, threads=1)).run()
    assert "the plan is of atoms, layer by layer" in result.message
    assert len(made) == 1
