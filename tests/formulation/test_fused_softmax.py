"""Softmaxes in parts: what they cost by hand, which ones there are, and what is said of the others."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from fused_files import PAIR, evaluated

from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedStore
from tilewright.formulation.mapping.fused.turns import turns_of
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.mapping.fused_file import parse_fused_mapping, render_fused_mapping
from tilewright.workloads.mapping.operators import elementwise, gemm

ONLINE: dict[str, Any] = {
    **PAIR,
    "online_softmax": True,
    "layers": [PAIR["layers"][0], {**PAIR["layers"][1], "reads": {"A": {"layer": "qk", "rows": [1]}}}],
}


def changed(*changes: tuple[Any, ...]) -> dict[str, Any]:
    """The file with other fields, each by its path and its value."""
    data = deepcopy(ONLINE)
    for *path, last, value in changes:
        place: Any = data
        for key in path:
            place = place[key]
        place[last] = value
    return data


def test_a_softmax_in_parts_costs_two_words_a_row_and_its_readers_sums_again() -> None:
    """Two parts of each row: four turns write their rows' words, two read them and scale 64 sums each."""
    parts, plain = evaluated(ONLINE), evaluated(PAIR)
    assert not parts.violations
    buffer, multiply = load_engine("tpu-edge").level("GBUF"), load_engine("tpu-edge").mac_energy
    rows, turns, sums = 8, 4, 2 * 8 * 8
    reads, writes = 2 * rows * turns // 2 + sums, 2 * rows * turns + sums
    added = reads * buffer.read_energy + writes * buffer.write_energy + sums * multiply
    assert parts.energy == plain.energy + added
    held = next(dict(room.tiles) for room in parts.occupied if (room.layer, room.level) == ("qk", "GBUF"))
    assert held["av.A softmax"] == 2 * rows
    assert parts.macs == plain.macs
    assert parts.cycles > plain.cycles


def test_rows_that_no_loop_cuts_cost_nothing() -> None:
    """With whole rows the permission changes nothing."""
    nodes = [node for node in PAIR["nodes"] if node.get("temporal") != "av.K"]
    assert evaluated(changed(("nodes", nodes))).energy == evaluated(PAIR | {"nodes": nodes}).energy


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("online_softmax", False),
            "at once, and not a part in each turn unless online_softmax is asked for",
        ),
        (("online_softmax", "perhaps"), "online_softmax"),
        (("layers", 1, "reads", "A", "softmax", False), "what needs whole rows is no softmax"),
        (("layers", 1, "reads", "A", "softmax", 1), "reads.A.softmax: expected true or false, got 1"),
        (("layers", 1, "reads", "A", "rows", [0, 1]), "its rows run along several axes"),
        (("layers", 1, "reads", "A", "rows", [0]), "av adds up along K, too"),
        (("leaving", ["qk"]), "qk is needed outside the group"),
        (
            ("nodes", 6, {"temporal": "av.N", "tile": 4}),
            "nodes[6]: av needs all of N at once while rows of its softmax come in parts",
        ),
    ],
)
def test_rows_that_may_not_be_cut_are_named(change: tuple[Any, ...], told: str) -> None:
    """A tree that cuts rows without permission, or rows that must be whole, gives one line."""
    with pytest.raises(InputError) as raised:
        evaluated(changed(change))
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_rows_of_a_layer_of_its_own_are_cut_with_its_reader_alone() -> None:
    """A softmax that is a layer itself comes in parts where its reader's loop cuts it, and nowhere else."""
    soft = elementwise(shape=(4, 4), operands=1)
    layers = (("qk", gemm(m=4, n=4, k=2)), ("soft", soft), ("av", gemm(m=4, n=2, k=4)))
    readings = (Reading("soft", "I", "qk", (0, 1), (0, 0)), Reading("av", "A", "soft", (0, 1), (0, 0)))
    names, rows = frozenset({"soft"}), frozenset({("soft", 1)})
    group = FusedGroup(layers, readings, frozenset({"av"}), rows, names, online_softmax=True)
    qk, leaf, av = (Leaf(name, Mapping(())) for name in group.names)
    homes = SharedStore("qk", "C", "GBUF"), SharedStore("soft", "O", "GBUF")
    engine = load_engine("tpu-edge")
    whole = Branch((SharedLoop("av", "K", 2), *homes), (qk, leaf, av))
    assert turns_of(group, engine, whole).softmaxes["av", "A"].words == 8
    inner = Branch((SharedLoop("soft", soft.dimensions[1].name, 2), homes[0]), (qk, leaf))
    with pytest.raises(InputError, match="soft needs whole rows, since none of its readers is inside"):
        turns_of(group, engine, Branch((homes[1],), (inner, av)))


def test_a_file_with_rows_is_read_back() -> None:
    """What rows are, and that they may be cut, survives a file."""
    stored = parse_fused_mapping(ONLINE, "pair.yaml", Path())
    again = parse_fused_mapping(yaml.safe_load(render_fused_mapping(stored)), "pair.yaml", Path())
    assert (again.group, again.tree) == (stored.group, stored.tree)
