"""Fused mappings to begin with: what lies in the searched space, and what is kept beside the claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from effort import effort
from fused_instances import random_tree
from fused_tiny import nested_group, softmax_group, timed, tiny_engine, tiny_group

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import HALOS, Branch, Leaf, SharedLoop, SharedStore
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.search import FusedSearch
from tilewright.solvers.mapping.fused.trees.membership import FusedSpace

HIERARCHY = cost_model("hierarchy")


def changed(rng: Random, engine: Engine, tree: Branch) -> Branch:
    """A tree with another tile, level, halo or order, with one node fewer, or with a leaf's node left out."""
    nodes, place = list(tree.nodes), rng.randrange(len(tree.nodes) + 1)
    if place == len(nodes):
        index = rng.randrange(len(tree.children))
        child = tree.children[index]
        if isinstance(child, Branch):
            child = changed(rng, engine, child)
        else:
            own = [*child.mapping.nodes]
            if own and rng.random() < 0.5:
                own.pop(rng.randrange(len(own)))
            else:
                tensors = [node.tensor for node in own if isinstance(node, Storage)] or ["A"]
                own.insert(rng.randint(0, len(own)), Storage(rng.choice(tensors), engine.levels[-1].name))
            child = Leaf(child.layer, Mapping(tuple(own)))
        return Branch(tree.nodes, (*tree.children[:index], child, *tree.children[index + 1 :]))
    node = nodes[place]
    choice = rng.choice(["drop", "change", "move"])
    if choice == "drop":
        nodes.pop(place)
    elif choice == "move":
        nodes.insert(rng.randint(0, len(nodes) - 1), nodes.pop(place))
    elif isinstance(node, SharedLoop):
        nodes[place] = replace(node, tile=max(1, node.tile + rng.choice([-1, 1])))
    elif isinstance(node, SharedStore):
        level = rng.choice([level.name for level in engine.levels])
        nodes[place] = replace(node, level=level, halo=rng.choice(HALOS))
    return Branch(tuple(nodes), tree.children)


class _Noting(FusedSearch):
    """A search that keeps the trees of all values."""

    def __init__(self, *asked: object) -> None:
        super().__init__(*asked)  # type: ignore[arg-type]
        self.priced: list[Branch] = []
        of = self.space.tree

        def noted(*given: object) -> Branch:
            self.priced.append(of(*given))  # type: ignore[arg-type]
            return self.priced[-1]

        self.space.tree = noted  # type: ignore[method-assign]


def legal(rng: Random, group: FusedGroup, engine: Engine, trees: list[Branch]) -> Iterator[Branch]:
    """Random legal trees, and legal ones that differ from known ones in one thing."""
    for number in range(60):
        try:
            tree = changed(rng, engine, rng.choice(trees)) if number % 4 else random_tree(rng, group, engine)
            if not evaluate_fused(group, engine, HIERARCHY, tree).violations:
                yield tree
        except InputError:
            continue


@pytest.mark.parametrize("drawn", [tiny_group, nested_group, softmax_group])
def test_what_lies_inside_takes_no_less_than_the_optimum(drawn: object) -> None:
    """All trees of a search lie inside, and no other legal tree does that takes less than its optimum."""
    counts: Counter[str] = Counter()
    for number in range(effort(1)):
        rng = Random(f"starts-{number}")
        group, engine = drawn(rng), tiny_engine(rng)  # type: ignore[operator]
        engine = timed(rng, engine) if number % 2 else engine
        search = _Noting(group, engine, HIERARCHY, Limits(), "perfect")
        answer = search.run()
        space = FusedSpace(engine, HIERARCHY, "perfect", None, None)
        assert all(space.outside(group, tree) is None for tree in search.priced)
        for tree in legal(rng, group, engine, search.priced) if search.priced else ():
            value = evaluate_fused(group, engine, HIERARCHY, tree).energy
            reason = space.outside(group, tree)
            assert answer.value is not None
            assert reason is not None or value >= answer.value, (number, tree)
            counts["inside" if reason is None else "outside"] += 1
            counts["better"] += value < answer.value
    print(dict(counts))
    assert counts["inside"] > 5
    assert counts["outside"]
