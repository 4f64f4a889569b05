"""What is known of turns before they are listed: halos, sizes, and what an iteration takes at least."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from random import Random

import numpy as np
import pytest
from effort import effort
from fused_early import with_open_halos
from fused_instances import random_engine, random_group

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedStore
from tilewright.formulation.mapping.fused.turns import turns_of
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.fused.search import FusedSearch
from tilewright.solvers.mapping.fused.trees.skeletons import NO_MAPPING
from tilewright.workloads.mapping.operators import conv2d, depthwise_conv2d

HIERARCHY = cost_model("hierarchy")
AXES = (0, 1, 2, 3)


def inverted(rows: int, columns: int, stride: int = 1) -> FusedGroup:
    """An inverted residual whose window slides over rows and columns."""
    made = rows * stride, columns * stride
    layers = (
        ("a", conv2d(k=4, c=2, p=made[0], q=made[1], r=1, s=1)),
        ("b", depthwise_conv2d(c=4, p=rows, q=columns, r=3, s=3, stride=stride, pad=1)),
        ("c", conv2d(k=2, c=4, p=rows, q=columns, r=1, s=1)),
    )
    readings = (Reading("b", "I", "a", AXES, (0, 0, 1, 1)), Reading("c", "I", "b", AXES, (0, 0, 0, 0)))
    return FusedGroup(layers, readings, frozenset({"c"}))


def drawn(rng: Random) -> tuple[FusedGroup, Engine]:
    """A group in which windows slide, and a machine that can pass on all its results."""
    while True:
        rows, columns = rng.choice([2, 3, 4, 6]), rng.choice([2, 4])
        group = inverted(rows, columns, rng.choice([1, 2])) if rng.random() < 0.4 else random_group(rng)
        engine = random_engine(rng)
        homeless = FusedSearch(group, engine, HIERARCHY, Limits()).trees.homeless()
        if not homeless and group.has_windows:
            return group, engine


def trees_of(search: FusedSearch, rng: Random, number: int) -> Iterator[Branch]:
    """Some trees that make all that is needed, at most so many."""
    stems = list(search.trees.stems())
    for _ in range(number):
        tree = rng.choice(stems)
        for cut in search.trees.cuts(tree):
            tree = rng.choice(list(search.trees.cut(tree, cut)))
        if search.trees.is_whole(tree):
            tree = rng.choice(list(search.trees.orders(tree)))
            tree = rng.choice(list(search.trees.halos(tree)))
            try:
                skeleton = search.space.skeleton(tree)
            except InputError:
                continue
            if skeleton.makes_all(search.group.leaving):
                yield tree


def check_halos(seed: str, groups: int) -> None:
    """Compare iterations and sizes of turns with those of the evaluator's walk."""
    compared = with_halos = equal = 0
    for number in range(groups):
        rng = Random(f"{seed}-{number}")
        group, engine = drawn(rng)
        search = FusedSearch(group, engine, HIERARCHY, Limits())
        first = search.first
        for tree in trees_of(search, rng, 24):
            boxes = {leaf.leaf.layer: leaf.boxes for leaf in turns_of(group, engine, tree).leaves}
            for in_order in (0, 1, 9):
                for runs in first.runs(with_open_halos(tree), in_order):
                    box = boxes[runs.layer]
                    volume = np.where(box.alive, np.prod([*box.size.values()], axis=0), 0)
                    least = runs.runs * runs.sums * int(np.prod(runs.sizes))
                    assert least <= volume.sum()
                    compared += 1
                    halos = any(s > n for s, n in zip(runs.sizes, runs.needed, strict=True))
                    if halos and in_order == 9:
                        with_halos += 1
                        equal += least == volume.sum()
            for layer, box in boxes.items():
                for dim in group.operator(layer).output.dims:
                    sizes = first.halos.sizes(layer, dim) if first.halos.slides(layer, dim) else None
                    assert sizes is None or set(box.size[dim][box.alive].tolist()) <= sizes
    print(f"{compared} layers of trees; {with_halos} make halos anew, {equal} exactly those")
    assert with_halos > equal > 0 if groups < 10 else equal > with_halos // 2


def test_turns_make_no_less_than_halos_say() -> None:
    """Iterations of all turns are no fewer than a tree's loops and homes say; their sizes are known ones."""
    check_halos("halos", effort(12))


@pytest.mark.slow
def test_turns_of_many_groups_make_no_less_than_halos_say() -> None:
    """The same for more groups."""
    check_halos("more halos", 300)


def test_a_home_further_out_retains_more() -> None:
    """Columns are made anew where rows move inside them, unless the home stands outside the rows' loop."""
    search = FusedSearch(inverted(4, 4), load_engine("tpu-edge"), HIERARCHY, Limits())
    home, other = SharedStore("a", "O", "GBUF"), SharedStore("b", "O", "GBUF")
    columns, rows = SharedLoop("c", "Q", 2), SharedLoop("c", "P", 2)
    leaves = tuple(Leaf(layer, NO_MAPPING) for layer in "abc")
    inside = Branch((columns, rows, home, other), leaves)
    outside = Branch((columns, home, rows, other), leaves)
    made = [search.first.halos.made(tree, 1)["a"] for tree in (inside, outside)]
    assert made == [{"P": 4, "Q": 6}, {"P": 4, "Q": 4}]
    assert search.first.halos.made(inside, 0)["a"] == {"P": 4, "Q": 4}


def check_floors(seed: str, groups: int) -> None:
    """Compare floors with the optimum of turns of random candidates."""
    compared = tight = 0
    for number in range(groups):
        rng = Random(f"{seed}-{number}")
        group, engine = drawn(rng)
        search = FusedSearch(group, engine, HIERARCHY, Limits())
        search.turn_floors.begin()
        for tree in trees_of(search, rng, 6):
            skeleton = search.space.skeleton(tree)
            all_runs = search.first.runs(with_open_halos(tree), 9)
            candidates = list(islice(search.space.candidates(skeleton), 300))
            for candidate in rng.sample(candidates, min(1, len(candidates))):
                for runs in all_runs:
                    homes = search.space.homes(candidate, runs.layer)
                    if homes is None:
                        continue
                    rooms = search.space.whole
                    costs = [
                        (kind.number, search.solver.cost(kind.operator, homes, rooms).bound)
                        for kind in skeleton.kinds[runs.layer]
                    ]
                    floor = search.first.floor(runs, homes)
                    if all(cost is not None for _, cost in costs):
                        least = sum((times * (cost or 0) for times, cost in costs), Fraction(0))
                        assert floor <= least
                        compared += 1
                        tight += floor > least * Fraction(9, 10)
    print(f"{compared} layers; floors of {tight} within a tenth")
    assert tight > compared // 20 > 0


def test_turns_take_no_less_than_their_floors() -> None:
    """Of random trees, the optimum of every layer's turns with all room is at least the floor."""
    check_floors("floors", effort(15))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_turns_of_many_groups_take_no_less_than_their_floors() -> None:
    """The same for more groups."""
    check_floors("more floors", 150)
