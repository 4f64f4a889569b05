"""Fused mappings: what an unfused tree costs, and what errors say of trees that make no sense."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from effort import effort
from fused_files import LEAF, PAIR, evaluated
from fused_instances import random_engine, random_group, random_tree

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.fused.tree import Branch, tree_from_data, unfused
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.mapping.fused_file import (
    StoredFusedMapping,
    parse_fused_mapping,
    render_fused_mapping,
)
from tilewright.workloads.mapping.operators import gemm

HIERARCHY = cost_model("hierarchy")


def test_an_unfused_tree_costs_the_sum_of_its_layers() -> None:
    """Energy, cycles and components of whole layers in turn are the sums of the single evaluations."""
    checked = 0
    for seed in range(effort(60)):
        rng = Random(f"unfused-{seed}")
        group, engine = random_group(rng), random_engine(rng)
        alone = FusedGroup(group.layers, (), frozenset(group.names))
        mappings = {}
        for name in group.names:
            single = FusedGroup(((name, group.operator(name)),), (), frozenset({name}))
            mappings[name] = next(whole_layer(rng, single, engine).leaves()).mapping
        singles = [
            evaluate_mapping(group.operator(name), engine, HIERARCHY, mapping)
            for name, mapping in mappings.items()
        ]
        for which in (group, alone):
            whole = evaluate_fused(which, engine, HIERARCHY, unfused(mappings))
            assert whole.energy == sum((single.energy for single in singles), Fraction(0))
            assert whole.cycles == sum(single.cycles for single in singles)
            assert whole.macs == sum(single.macs for single in singles)
            assert bool(whole.violations) == any(single.violations for single in singles)
            checked += 1
    assert checked == 2 * effort(60)


def whole_layer(rng: Random, group: FusedGroup, engine: Engine) -> Branch:
    """A tree of one whole layer."""
    while True:
        tree = random_tree(rng, group, engine, shared=False)
        try:
            evaluate_fused(group, engine, HIERARCHY, tree)
        except InputError:
            continue
        return tree


def test_a_fused_pair_saves_the_outermost_traffic_of_its_intermediate() -> None:
    """Under shared loops the intermediate never passes the outermost level, and sums are added up on chip."""
    evaluation = evaluated(PAIR)
    assert not evaluation.violations
    assert [cost.turns for cost in evaluation.layers] == [4, 4]
    passing = evaluation.turns.passings["qk"]
    assert (passing.elements, passing.made, passing.covered) == (64, 256, True)
    through = {move.tensor: (move.elements, move.again) for move in evaluation.movements}
    assert through == {"qk.A": (128, 0), "av.C": (128, 0)}
    assert ("DRAM", "C") not in evaluation.layers[0].accesses


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("nodes", 6, "store", "av.A"), "nodes[6]: av.A is qk.C, store that"),
        (("nodes", 6, "level", "ACC"), "nodes[6]: ACC keeps no inputs, which qk.C needs"),
        (("nodes", 6, "level", "REG"), "nodes[6]: REG is inside an array"),
        (("nodes", 6, "level", "L9"), "nodes[6]: unknown level 'L9'"),
        (("nodes", 6, "store", "qk.Z"), "nodes[6]: unknown tensor 'Z' of qk"),
        (("nodes", 6, "store", "zz.C"), "nodes[6]: unknown layer 'zz'"),
        (("nodes", 6, "store", "C"), "nodes[6].store: expected LAYER.NAME"),
        (("nodes", 6, "halo", "kept"), "nodes[6].halo: expected one of ['retained', 'recomputed']"),
        (("nodes", 3, "halo", "recomputed"), "nodes[3]: qk.A is no intermediate"),
        (("nodes", 0, "level", "GBUF"), "nodes[0]: qk.A is not stored in DRAM first"),
        (("nodes", 2, "tile", 17), "nodes[2]: tile 17 of av.M, expected 1 to 16"),
        (("nodes", 2, "tile", 0), "nodes[2].tile: expected a number of at least 1"),
        (("nodes", 2, "tile", True), "nodes[2].tile: expected a number of at least 1"),
        (("nodes", 2, "temporal", "qk.K"), "nodes[2]: av would read qk's sums before they are complete"),
        (("nodes", 2, "temporal", "qk.Z"), "nodes[2]: unknown dimension 'Z' of qk"),
        (("nodes", 7, "sequence", []), "nodes[7].sequence: expected a list of children"),
        (("nodes", 7, "sequence", 3), "nodes[7].sequence: expected a list of children"),
        (("layers", 1, "reads", {"A": "nobody"}), "layers[2]: reads.A: unknown name 'nobody'"),
        (("layers", 1, "reads", {"Z": "qk"}), "layers[2]: reads.Z: unknown name 'Z'"),
        (("layers", 1, "reads", {"B": "qk"}), "layers[2]: reads.B: axis 1 of the result of qk has 16"),
        (
            ("layers", 1, "reads", {"A": {"layer": "qk", "axes": [0, 0]}}),
            "reads.A.axes: expected each of 0 to 1",
        ),
        (
            ("layers", 1, "layer", "gemm:M=16,N=8,K=12"),
            "layers[2]: reads.A: axis 1 of the result of qk has 16",
        ),
    ],
)
def test_errors_of_hostile_trees_name_the_node(change: tuple[Any, ...], expected: str) -> None:
    """One changed field gives one line that names the place and what is wrong."""
    data = deepcopy(PAIR)
    *path, last, value = change
    place: Any = data
    for key in path:
        place = place[key]
    place[last] = value
    with pytest.raises(InputError) as raised:
        evaluated(data)
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)


def nested(*children: Any) -> list[dict[str, Any]]:
    return [{"sequence": list(children)}]


QK, AV = {"layer": "qk", "nodes": LEAF}, {"layer": "av", "nodes": LEAF}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (nested(AV, QK), "av runs before qk, which it reads"),
        (nested(QK), "av is in no leaf"),
        (nested(QK, AV, AV), "av is in 2 leaves"),
        (nested(QK, {"layer": "zz", "nodes": []}), "unknown layer 'zz'"),
        (
            nested({"nodes": [{"store": "qk.C", "level": "GBUF"}, *nested(QK)]}, AV),
            "qk.C ends with this turn",
        ),
        (nested({"nodes": [{"temporal": "av.M", "tile": 2}, *nested(QK)]}, AV), "av does not run inside"),
        ([{"store": "qk.C", "level": "GBUF"}] * 2 + nested(QK, AV), "stored in GBUF inside a store of GBUF"),
        ([{"temporal": "av.N", "tile": 1}, *nested(QK, AV)], "nodes[1].sequence[0]"),
        ([{"temporal": "av.M", "tile": 4}], "expected {sequence: [...]} as the last node"),
        ([], "expected a list of nodes that ends with a sequence"),
    ],
)
def test_errors_of_hostile_sequences_name_what_is_wrong(nodes: list[Any], expected: str) -> None:
    """Stores across a sequence, readers before producers, missing and repeated layers are refused."""
    with pytest.raises(InputError) as raised:
        evaluated(PAIR | {"nodes": nodes})
    assert expected in str(raised.value)


def test_a_tile_inside_a_sequence_ends_with_its_run() -> None:
    """Weights of an inner sequence come anew in every run; further out they stay and take room from all."""
    weights = {"store": "av.B", "level": "GBUF"}
    outside = [{"store": name, "level": "DRAM"} for name in ("av.B", "av.C")]
    around = [*outside, {"temporal": "av.M", "tile": 8}, {"store": "qk.C", "level": "GBUF"}]
    first = {"layer": "qk", "nodes": [{"store": "A", "level": level} for level in ("DRAM", "GBUF")] + LEAF}
    leaf = {"layer": "av", "nodes": LEAF[2:]}
    inner, outer = (
        evaluated(PAIR | {"nodes": nodes})
        for nodes in (
            [*around, *nested(first, {"nodes": [weights, *nested(leaf)]})],
            [*around, weights, *nested(first, leaf)],
        )
    )
    moved = [
        next(move.elements for move in evaluation.movements if move.tensor == "av.B")
        for evaluation in (inner, outer)
    ]
    assert moved == [2 * 16 * 8, 16 * 8]
    held = [
        next(
            "av.B" in dict(room.tiles)
            for room in evaluation.occupied
            if (room.layer, room.level) == ("qk", "GBUF")
        )
        for evaluation in (inner, outer)
    ]
    assert held == [False, True]


def test_a_home_without_room_is_illegal() -> None:
    """What shared stores and a turn's own tiles hold together must fit their level."""
    data = deepcopy(PAIR)
    data["layers"][0]["layer"] = "gemm:M=4096,N=4096,K=8"
    data["layers"][1]["layer"] = "gemm:M=4096,N=8,K=4096"
    data["nodes"] = [{"store": "qk.C", "level": "GBUF"}, {"sequence": data["nodes"][-1]["sequence"]}]
    for child in data["nodes"][-1]["sequence"]:
        streamed = [{"store": name, "level": "DRAM"} for name in ("A" if child["layer"] == "qk" else "C")]
        stored = [{"store": name["store"], "level": "GBUF"} for name in streamed]
        child["nodes"] = [*streamed, LEAF[0], {"temporal": "M", "tile": 64}, *stored, *LEAF[1:]]
    violations = evaluated(data).violations
    assert any(text.startswith("qk: capacity of GBUF") for text in violations)
    assert any(text.startswith("av: capacity of GBUF") for text in violations)


def test_a_result_that_leaves_needs_the_outermost_level() -> None:
    """An intermediate that is needed outside as well must have a copy there, each element once."""
    broken = evaluated(PAIR | {"leaving": ["qk"]})
    assert broken.violations == ("qk.C is needed outside the group and has no store in DRAM",)
    copied = evaluated(
        PAIR | {"leaving": ["qk"], "nodes": [{"store": "qk.C", "level": "DRAM"}, *PAIR["nodes"]]}
    )
    assert not copied.violations
    dram = load_engine("tpu-edge").levels[0]
    assert copied.energy == evaluated(PAIR).energy + 256 * dram.write_energy


def test_widths_that_differ_between_layers_are_refused() -> None:
    """A layer whose operands are of another width than those of the others is named."""
    stored = parse_fused_mapping(PAIR, "pair.yaml", Path())
    data = yaml.safe_load(render_fused_mapping(stored))
    data["layers"][1]["operator"]["tensors"][0] |= {"bits": 4, "sum_bits": None}
    with pytest.raises(InputError, match=r"widths: .. has inputs of another width than others"):
        evaluated(data)


def test_a_written_file_is_read_back() -> None:
    """Random groups and trees survive a fused mapping file."""
    for seed in range(effort(20)):
        rng = Random(f"file-{seed}")
        group = random_group(rng)
        engine = random_engine(rng)
        try:
            tree = random_tree(rng, group, engine)
        except InputError:
            continue
        assert tree_from_data(tree.to_data()) == tree
    stored = parse_fused_mapping(PAIR, "pair.yaml", Path())
    text = render_fused_mapping(stored)
    again = parse_fused_mapping(yaml.safe_load(text), "pair.yaml", Path())
    assert isinstance(again, StoredFusedMapping)
    assert (again.group, again.tree) == (stored.group, stored.tree)


def test_readings_must_match_the_result() -> None:
    """A group refuses an operand whose axes are not those of the result."""
    group = parse_fused_mapping(PAIR, "pair.yaml", Path()).group
    for axes, offsets in (((1, 0), (0, 0)), ((0,), (0,)), ((0, 1), (0,))):
        reading = Reading("av", "A", "qk", axes, offsets)
        layers = (*group.layers[:1], ("av", gemm(m=16, n=8, k=12)))
        with pytest.raises(InputError, match=r"av: reads\.A"):
            FusedGroup(layers, (reading,), frozenset({"av"}))
