"""Rows and columns of square groups change places: the same cost, and one tree of two is searched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from effort import effort
from fused_instances import random_engine, random_tree
from fused_tiny import tiny_engine

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.fused.search import FusedSearch
from tilewright.solvers.mapping.fused.trees.mirror import mirrored_ranks
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d, depthwise_conv2d, pool2d

HIERARCHY = cost_model("hierarchy")
OTHER = {"P": "Q", "Q": "P", "R": "S", "S": "R"}
AXES = (0, 1, 2, 3)


def square_group(rng: Random, most: int = 4) -> FusedGroup:
    """Two or three layers with as many rows as columns, windows among them."""
    rows, hidden, wide = rng.randint(2, most), rng.choice([1, 2]), rng.choice([1, 2, 3])
    pad = wide // 2
    window: Operator = rng.choice(
        [
            depthwise_conv2d(c=hidden, p=rows, q=rows, r=wide, s=wide, pad=pad),
            conv2d(k=hidden, c=hidden, p=rows, q=rows, r=wide, s=wide, pad=pad),
            pool2d(c=hidden, p=rows, q=rows, r=wide, s=wide, pad=pad),
        ]
    )
    made = rows + wide - 1 - 2 * pad
    layers = [("a", conv2d(k=hidden, c=1, p=made, q=made, r=1, s=1)), ("b", window)]
    readings = [Reading("b", "I", "a", AXES, (0, 0, pad, pad))]
    if rng.random() < 0.5:
        layers.append(("c", conv2d(k=1, c=hidden, p=rows, q=rows, r=1, s=1)))
        readings.append(Reading("c", "I", "b", AXES, (0, 0, 0, 0)))
    return FusedGroup(tuple(layers), tuple(readings), frozenset({layers[-1][0]}))


def exchanged(tree: Branch) -> Branch:
    """The tree with rows and columns exchanged in all loops, those of its layers' mappings among them."""
    nodes = (
        replace(node, dim=OTHER.get(node.dim, node.dim)) if isinstance(node, SharedLoop) else node
        for node in tree.nodes
    )
    children = (
        Leaf(child.layer, exchanged_mapping(child.mapping)) if isinstance(child, Leaf) else exchanged(child)
        for child in tree.children
    )
    return Branch(tuple(nodes), tuple(children))


def exchanged_mapping(mapping: Mapping) -> Mapping:
    return Mapping(
        tuple(
            node if isinstance(node, Storage) else replace(node, dim=OTHER.get(node.dim, node.dim))
            for node in mapping.nodes
        )
    )


def symmetric_engine(rng: Random) -> Engine:
    """Whose arrays carry rows where they carry columns."""
    while True:
        engine = random_engine(rng)
        axes = [axis for level in engine.levels if level.fanout is not None for axis in level.fanout.axes]
        if all(axis.carries is None for axis in axes):
            return engine


def compared_trees(rng: Random, number: int) -> Iterator[bool]:
    """Random whole trees beside their mirror images; whether they fit."""
    while number:
        group, engine = square_group(rng), symmetric_engine(rng)
        assert mirrored_ranks(group, engine)
        try:
            tree = random_tree(rng, group, engine)
            costs = [evaluate_fused(group, engine, HIERARCHY, own) for own in (tree, exchanged(tree))]
        except InputError:
            continue
        assert costs[0].energy == costs[1].energy
        assert costs[0].cycles == costs[1].cycles
        assert len(costs[0].violations) == len(costs[1].violations)
        number -= 1
        yield not costs[0].violations


def check_costs(seed: str, number: int) -> None:
    """Compare so many trees; some of them fit."""
    fitting = list(compared_trees(Random(seed), number))
    print(f"{sum(fitting)} of {number} fit")
    assert any(fitting)


def test_mirror_images_cost_the_same() -> None:
    """Energy and cycles of whole random trees, windows, halos and residents among them, by the evaluator."""
    check_costs("mirrors", effort(40))


@pytest.mark.slow
def test_mirror_images_of_many_trees_cost_the_same() -> None:
    """The same for more trees."""
    check_costs("more mirrors", 3000)


def test_of_two_mirror_images_at_least_one_is_kept_to_the_end() -> None:
    """Of every tree, it or its image passes all three stages of the search; where they differ, only one."""
    rng, both, single = Random("kept"), 0, 0
    while not single:
        search = FusedSearch(square_group(rng), load_engine("tpu-edge"), HIERARCHY, Limits())
        for family in (f for stem in search.trees.stems() for f in search.trees.families(stem)):
            for tree in search.trees.orders(family):
                kept = [
                    search.mirror.is_needed(own, decided=False)
                    and search.mirror.is_needed(own)
                    and search.mirror.is_needed(own, ordered=True)
                    for own in (tree, exchanged(tree))
                ]
                assert any(kept)
                same = tree == exchanged(tree)
                assert all(kept) == same
                both, single = both + same, single + (not same)
    assert both > 0


def check_searches(seed: str, groups: int) -> None:
    """The optimum is that of a search of all trees."""
    rng = Random(seed)
    for _ in range(groups):
        group, engine = square_group(rng, 3), tiny_engine(rng)
        search, whole = (FusedSearch(group, engine, HIERARCHY, Limits()) for _ in range(2))
        assert search.mirror.ranks
        whole.mirror.ranks = {}
        mine, other = search.run(), whole.run()
        assert mine.complete
        assert mine.value == other.value


def test_the_optimum_is_that_of_all_trees() -> None:
    """Searches of small square groups with all trees and with one of two."""
    check_searches("optima", effort(4))


@pytest.mark.slow
def test_the_optima_of_many_groups_are_those_of_all_trees() -> None:
    """The same for more groups."""
    check_searches("more optima", 60)


def test_what_is_not_square_has_no_mirror() -> None:
    """Other rows than columns, strides, padding, filters, or an array that carries rows alone."""
    engine = load_engine("tpu-edge")
    group = square_group(Random("square"))
    assert mirrored_ranks(group, engine)
    assert not mirrored_ranks(group, load_engine("eyeriss-168"))
    for window, pads, made in (
        (conv2d(k=1, c=1, p=4, q=3, r=3, s=3, pad=1), (1, 1), (4, 3)),
        (conv2d(k=1, c=1, p=4, q=4, r=3, s=1, pad=(1, 0)), (1, 0), (4, 4)),
        (conv2d(k=1, c=1, p=4, q=4, r=3, s=3, pad=(1, 0)), (1, 0), (4, 6)),
        (conv2d(k=1, c=1, p=4, q=4, r=3, s=3, stride=(1, 2)), (0, 0), (6, 9)),
    ):
        layers = ("a", conv2d(k=1, c=1, p=made[0], q=made[1], r=1, s=1)), ("b", window)
        reading = Reading("b", "I", "a", AXES, (0, 0, *pads))
        assert not mirrored_ranks(FusedGroup(layers, (reading,), frozenset({"b"})), engine)
