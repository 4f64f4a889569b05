"""The evaluator of fused mappings against a walk that moves every element, turn by turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from effort import effort
from fused_instances import FusedInstance, random_instance, random_sized, random_softmax, random_tree
from fused_walker import Walked, walk
from fused_widths import random_bits, stated, widened

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, evaluate_fused
from tilewright.formulation.mapping.fused.tree import Branch, SharedLoop, SharedStore
from tilewright.foundation.errors import InputError

HIERARCHY = cost_model("hierarchy")


def counts_of(evaluation: FusedEvaluation) -> dict[tuple[str, str, str], tuple[int, ...]]:
    """Reads, fills and updates by layer, level and tensor, of turns and shared stores together."""
    counts: Counter[tuple[tuple[str, str, str], int]] = Counter()
    for cost in evaluation.layers:
        for (level, tensor), row in cost.accesses.items():
            for place, number in enumerate(row):
                counts[(cost.layer, level, tensor), place] += number
    for move in evaluation.movements:
        layer, _, tensor = move.tensor.rpartition(".")
        for (level, place), number in move.accesses.items():
            counts[(layer, level, tensor), ["reads", "fills", "updates"].index(place)] += number
    keys = {key for key, _ in counts}
    return {key: row for key in keys if any(row := tuple(counts[key, place] for place in range(3)))}


def compare(instance: FusedInstance) -> tuple[FusedEvaluation, Walked]:
    """Both counts of one mapping, which must be the same."""
    evaluation = evaluate_fused(instance.group, instance.engine, HIERARCHY, instance.tree)
    walked = walk(instance.group, instance.engine, instance.tree)
    moved = {key: tuple(row) for key, row in walked.counts.items() if any(row)}
    assert counts_of(evaluation) == moved, instance
    assert evaluation.energy == walked.energy, instance
    assert evaluation.macs == walked.macs, instance
    assert evaluation.cycles == walked.cycles, instance
    full = {(room.layer, room.level) for room in evaluation.occupied if room.violation}
    assert full == walked.full, instance
    unmet = {text.split(" ")[0] for text in evaluation.violations if "needed outside" in text}
    unmet |= {text.split(" ")[2] for text in evaluation.violations if "never computed" in text}
    assert {name.rpartition(".")[0] for name in unmet} == walked.incomplete, instance
    return evaluation, walked


def features(instance: FusedInstance, walked: Walked) -> set[str]:
    """What occurs in a mapping."""
    present = set(walked.features)
    operators = instance.group.operators.values()
    terms = [t for o in operators for tensor in o.inputs for axis in tensor.axes for t in axis.terms]
    if any(term.stride > 1 for term in terms):
        present.add("stride")
    depths = [
        depth for name, depth in homes(instance.tree) if instance.group.read_by(name.rpartition(".")[0])
    ]
    if len(set(depths)) > 1:
        present.add("different depths")
    if walked.full:
        present.add("capacity binds")
    return present


def homes(branch: Branch, depth: int = 0) -> list[tuple[str, int]]:
    """Shared stores on chip with the number of loops outside them."""
    found: list[tuple[str, int]] = []
    for node in branch.nodes:
        if isinstance(node, SharedLoop):
            depth += 1
        elif isinstance(node, SharedStore) and node.level != "L0":
            found.append((node.name, depth))
    for child in branch.children:
        if isinstance(child, Branch):
            found += homes(child, depth)
    return found


LEAST = {
    "shared reduction": 0.33,
    "different depths": 0.33,
    "second reader": 0.1,
    "stride": 0.1,
    "padding": 0.1,
    "ragged": 0.1,
    "retained": 0.1,
    "recomputed": 0.05,
    "resident": 0.3,
    "home": 0.6,
    "capacity binds": 0.2,
}
"""Shares of random mappings that each feature must have."""


PARTS = {
    "rows in parts": 1,
    "scaled on chip": 0.2,
    "ragged": 0.2,
    "different depths": 0.1,
    "capacity binds": 0.2,
}
"""The same of mappings that take a softmax in parts."""


def check_many(
    count: int,
    seed: int | str,
    draw: Callable[[Random], FusedInstance] = random_instance,
    shown: Mapping[str, float] = LEAST,
) -> None:
    """Compare random mappings, print how often each feature occurred, and hold the shares to some.

    Parameters
    ----------
    count, seed : of mappings
    draw : makes one
    shown : least shares
    """
    shares: Counter[str] = Counter()
    for number in range(count):
        instance = draw(Random(f"{seed}-{number}"))
        shares.update(features(instance, compare(instance)[1]))
    print({name: f"{shares[name] / count:.0%}" for name in shown})
    for name, least in shown.items():
        assert shares[name] >= least * count, (name, shares[name], count)


def test_counts_are_those_of_a_walk_that_moves_every_element() -> None:
    """Accesses, energy, cycles, full levels and missing parts of random trees equal the walker's."""
    check_many(effort(300), seed=1)


def with_set_ups(rng: Random) -> FusedInstance:
    """A random mapping on a machine without arrays whose ports begin tiles and rows."""
    instance = random_instance(rng)
    amount = lambda: rng.choice([Fraction(0), Fraction(1, 2), Fraction(3), Fraction(20)])  # noqa: E731
    levels = tuple(
        replace(
            level,
            fanout=None,
            timing=replace(
                level.timing, transfer=amount(), row=amount(), row_bits=rng.choice([None, 16, 40])
            ),
        )
        for level in instance.engine.levels
    )
    engine = replace(instance.engine, levels=levels)
    while True:
        try:
            return FusedInstance(instance.group, engine, random_tree(rng, instance.group, engine))
        except InputError:
            continue


def test_set_up_cycles_are_those_of_the_tiles_that_ports_begin() -> None:
    """The same on machines whose ports take cycles for every tile and row, in turns and between them."""
    check_many(effort(25), "set-ups", with_set_ups, {"resident": 0.3, "ragged": 0.1, "home": 0.6})


def test_turns_of_some_sizes_have_mappings_of_their_own() -> None:
    """The same where a remainder, a halo or a window at an edge has another mapping than other turns."""
    check_many(effort(30), "sized", random_sized, {"mapped by size": 1})


def test_softmaxes_in_parts_are_counted_as_their_elements_move() -> None:
    """Running maxima and sums, their room, and what is scaled anew equal a walk over rows and sums."""
    check_many(effort(45), "softmax", random_softmax, PARTS)


def test_widths_that_layers_state_are_those_of_the_machine_that_is_walked() -> None:
    """What stated widths cost, and which levels they fill, is what a walk on a machine with them counts."""
    checked = kept = 0
    while checked < effort(40):
        rng = Random(f"widths-{checked + kept}")
        instance, (outside, inside) = random_instance(rng), random_bits(rng)
        wide = widened(instance.engine, outside, inside)
        try:
            group = stated(instance.group, outside, inside)
            evaluation = evaluate_fused(group, instance.engine, HIERARCHY, instance.tree)
        except InputError as error:
            if "in several widths" not in str(error):
                raise
            kept += 1
            continue
        walked = walk(instance.group, wide, instance.tree)
        assert (evaluation.energy, evaluation.cycles) == (walked.energy, walked.cycles)
        assert {(room.layer, room.level) for room in evaluation.occupied if room.violation} == walked.full
        checked += 1
    assert kept


def test_remainders_of_shared_tiles_make_axes_depend_on_each_other() -> None:
    """Where a remainder leaves one channel, halos are retained that full tiles lose; the counts agree."""
    compare(random_instance(Random("2-1820")))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_thousand_softmaxes_in_parts() -> None:
    """The same for 3,000 random trees."""
    check_many(3_000, "more softmax", random_softmax, PARTS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_counts_of_ten_thousand_trees_are_those_of_the_walk() -> None:
    """The same for 10,000 random trees."""
    check_many(10_000, seed=2)
