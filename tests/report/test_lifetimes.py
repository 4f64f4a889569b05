"""The picture of which tiles stay where: its figures are the evaluator's, and the drawing states them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random
from xml.etree import ElementTree

import pytest
from fused_instances import FusedInstance, random_instance

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.boxes import visits_of, windows_of
from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, evaluate_fused
from tilewright.report.records.mapping.lifetimes import Lifetimes, lifetimes_of
from tilewright.report.records.mapping.turns_shown import MOST_TURNS
from tilewright.report.svg.mapping.lifetimes import lifetimes_panel
from tilewright.report.svg.mapping.nest import WIDTH

SVG = "{http://www.w3.org/2000/svg}"


@cache
def drawn(seed: int) -> tuple[FusedInstance, FusedEvaluation, Lifetimes]:
    """A random fused mapping, what it costs, and its picture."""
    instance = random_instance(Random(seed))
    evaluation = evaluate_fused(instance.group, instance.engine, cost_model("hierarchy"), instance.tree)
    picture = lifetimes_of("group", instance.group, instance.engine, instance.tree, evaluation)
    return instance, evaluation, picture


@pytest.mark.parametrize("seed", range(40))
def test_levels_hold_what_the_evaluator_counts(seed: int) -> None:
    """In every turn that is shown a level holds the bits that the evaluator counts for its layer."""
    _, evaluation, picture = drawn(seed)
    rooms = {room.name: room for room in picture.rooms}
    counted = {
        (room.layer, room.level if room.part is None else f"{room.level} ({room.part})"): room
        for room in evaluation.occupied
        if room.tiles
    }
    assert {level for _, level in counted} == rooms.keys()
    for name, room in rooms.items():
        for turn, held in zip(picture.turns, room.held, strict=True):
            own = counted.get((picture.layers[turn.layer][0], name))
            assert sum(held) == (0 if own is None else own.bits)
            assert own is None or own.most == room.most


def test_all_turns_are_shown_where_there_are_few() -> None:
    """Of few turns every one is shown, of many the first ones, with marks where some are left out."""
    whole = 0
    for seed in range(60):
        _, _, picture = drawn(seed)
        number = Counter(turn.layer for turn in picture.turns)
        assert 0 < len(picture.turns) <= MOST_TURNS
        lacking = [place for place, (_, turns) in enumerate(picture.layers) if number[place] < turns]
        assert all(number[place] <= turns for place, (_, turns) in enumerate(picture.layers))
        if not lacking:
            whole += 1
            assert all(turn.follows for turn in picture.turns)
        if sum(turns for _, turns in picture.layers) <= MOST_TURNS // 4:
            assert not lacking
    assert whole > 10


def test_a_new_bar_is_a_tile_that_moves() -> None:
    """Where every turn is shown, the tiles of an operand's bars are the elements that the evaluator moves."""
    compared = 0
    for seed in range(150):
        instance, evaluation, picture = drawn(seed)
        if len(picture.turns) < sum(turns for _, turns in picture.layers):
            continue
        moved = {(move.tensor, move.inner): move.elements for move in evaluation.movements}
        for room in picture.rooms:
            for store in room.stores:
                layer, _, name = store.name.rpartition(".")
                tensor = instance.group.operator(layer).tensor(name)
                level = next(level for level in instance.engine.levels if level.name == room.name.split()[0])
                if tensor.is_output or level.sliding_window:
                    continue
                leaf = next(leaf for leaf in evaluation.turns.leaves if leaf.leaf.layer == layer)
                placed = next(
                    p for p in leaf.stores if (p.store.name, p.store.level) == (store.name, level.name)
                )
                visits = visits_of(windows_of(tensor, leaf.boxes), leaf.trips, placed.depth)
                sizes = set(visits.elements.tolist())
                if len(sizes) == 1:
                    compared += 1
                    assert len(store.stays) * sizes.pop() == moved[store.name, level.name]
    assert compared > 20


def test_the_drawing_states_its_figures() -> None:
    """Bars, sizes and rooms stand in the drawing, and no text leaves it."""
    for seed in range(20):
        _, _, picture = drawn(seed)
        root = ElementTree.fromstring(lifetimes_panel(picture).svg())
        bars = Counter(
            (rect.get("data-level"), rect.get("data-stay"), rect.get("data-first"), rect.get("data-last"))
            for rect in root.iter(f"{SVG}rect")
            if rect.get("data-stay")
        )
        assert bars == Counter(
            (room.name, store.name, str(first), str(last))
            for room in picture.rooms
            for store in room.stores
            for first, last in store.stays
        )
        for text in root.iter(f"{SVG}text"):
            assert float(text.get("x", "")) + 7.26 * len(text.text or "") <= WIDTH + 4, text.text
        assert "nan" not in ElementTree.tostring(root, encoding="unicode").lower()
