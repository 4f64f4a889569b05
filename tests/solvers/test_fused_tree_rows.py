"""What the model over columns counts of trees with inner sequences, against the evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from effort import effort
from fused_brute import residents
from fused_tiny import nested_group, timed, tiny_engine

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.occupancy import bits_of_tile
from tilewright.formulation.mapping.fused.shared_traffic import movements_of
from tilewright.formulation.mapping.fused.tree import Branch, SharedStore
from tilewright.formulation.mapping.fused.turns import turns_of
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.columns.columns import Column, Columns
from tilewright.solvers.mapping.fused.columns.fronts import Fronts
from tilewright.solvers.mapping.fused.columns.placing import placed_tree
from tilewright.solvers.mapping.fused.columns.space import Listed
from tilewright.solvers.mapping.fused.columns.tree_rows import LayerRow, TreeRow, TreeRows
from tilewright.solvers.mapping.fused.columns.trees import Trees
from tilewright.solvers.mapping.fused.prices import at_price

HIERARCHY = cost_model("hierarchy")
Moved = tuple[int, Fraction, int, frozenset[str]]
"""Of a resident, its level, pJ of moving its tiles, bits of one, and in whose turns it takes room."""


def nested_trees(rng: Random, rows: TreeRows, most: int) -> list[tuple[Branch, TreeRow]]:
    """Some legal trees with a sequence within another one, and what they fix."""
    trees = [t for t in Trees(rows.group, rows.listed) if any(isinstance(c, Branch) for c in t.children)]
    known = ((tree, rows.of(tree)) for tree in rng.sample(trees, len(trees)))
    return [(tree, row) for tree, row in known if row is not None][:most]


def placed(group: FusedGroup, engine: Engine, tree: Branch, layer: str, name: str) -> Iterator[Moved]:
    """A tensor from outside at every place in a tree, as the evaluator counts it."""
    role = group.operator(layer).tensor(name).role
    for index, level in enumerate(engine.levels[1:], 1):
        if role not in level.keeps or any(role not in o.may_bypass for o in engine.levels[1:index]):
            continue
        store = SharedStore(layer, name, level.name)
        outermost = SharedStore(layer, name, engine.levels[0].name)
        for resident in residents(tree, layer, name, level.name):
            turns = turns_of(group, engine, replace(resident, nodes=(outermost, *resident.nodes)))
            moves = [move for move in movements_of(group, engine, turns) if move.tensor == store.name]
            inside = [leaf for leaf in turns.leaves if any(own.store == store for own in leaf.stores)]
            yield (
                index,
                sum((move.energy for move in moves), Fraction(0)),
                bits_of_tile(engine, level, role, turns.tiles[store]),
                frozenset(leaf.leaf.layer for leaf in inside),
            )


@pytest.mark.parametrize("seed", range(effort(6)))
def test_residents_are_listed_at_all_places_of_all_sequences(seed: int) -> None:
    """With a price of cycles no place is left out; the start of an inner sequence is a place of its own."""
    rng = Random(f"places-{seed}")
    engine = timed(rng, tiny_engine(rng))
    levels = tuple(replace(level, capacity=None, bank=None) for level in engine.levels)
    engine = at_price(replace(engine, levels=levels), Fraction(rng.randint(1, 9)))
    rows = TreeRows(group := nested_group(rng), Listed(engine, HIERARCHY, "perfect"))
    for tree, known in nested_trees(rng, rows, 4):
        for row in known.layers:
            tensors = group.operator(row.layer).tensors
            outside = [tensor.name for tensor in tensors if not rows.is_passed(row.layer, tensor)]
            for name, ways in zip(outside, row.ways, strict=True):
                listed = {(w.start, w.traffic, sum(w.bits), w.around) for w in ways if w.store is not None}
                assert listed == set(placed(group, engine, tree, row.layer, name))


def test_columns_cost_and_take_what_the_evaluator_counts() -> None:
    """Random ways and mappings in trees with inner sequences: energy, and room in every layer's turns."""
    counted = sum(
        counted_trees(Random(f"counts-{seed}"), timed_too=seed % 2 == 1) for seed in range(effort(3))
    )
    assert counted >= effort(10)


def counted_trees(rng: Random, timed_too: bool) -> int:
    """How many trees were compared, with a price of cycles or without."""
    group, engine = nested_group(rng), tiny_engine(rng, three=True)
    engine = timed(rng, engine) if timed_too else engine
    listed, scale = Listed(engine, HIERARCHY, "perfect"), Hierarchy.scale_of(engine)
    columns = Columns(TreeRows(group, listed), Fronts(listed, Limits()), scale)
    drawn: list[LayerRow] = []  # columns know rows by their identity
    counted = 0
    for _, tree in nested_trees(rng, columns.rows, 20):
        chosen: dict[str, tuple[LayerRow, Column]] = {}
        for row in tree.layers:
            drawn.append(replace(row, ways=tuple((rng.choice(ways),) for ways in row.ways)))
            if own := columns.of(drawn[-1]):
                chosen[row.layer] = drawn[-1], rng.choice(own)
        if len(chosen) < len(group.names):
            continue  # tensors of one role start apart, or do not fit
        counted += 1
        evaluation = evaluate_fused(group, engine, HIERARCHY, placed_tree(tree, chosen, columns))
        cost = sum(column.cost for _, column in chosen.values())
        assert evaluation.energy == tree.fixed + Fraction(cost, scale)
        takes = [dict(column.takes) for _, column in chosen.values()]
        taken: dict[tuple[str, str], int] = {}
        for row, homes in zip(tree.layers, tree.homes, strict=True):
            held = [homes, *(own[row.layer] for own in takes if row.layer in own)]
            for place, (index, _) in enumerate(listed.places):
                taken[row.layer, engine.levels[index].name] = sum(bits[place] for bits in held)
        assert taken == {(room.layer, room.level): room.bits for room in evaluation.occupied}
    return counted
