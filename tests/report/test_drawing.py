"""Drawings of mappings state what the evaluator says: every tile, loop, axis and first move."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from fused_instances import random_instance
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators

from tilewright.cli.main import run
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.build import metrics_record
from tilewright.report.records.mapping.picture import fused_picture, picture_of, steps_of
from tilewright.report.svg.canvas import LETTER
from tilewright.report.svg.mapping.drawing import mapping_drawing
from tilewright.report.text.quantities import bytes_text
from tilewright.workloads.mapping.operator import Operator

SVG = "{http://www.w3.org/2000/svg}"
LAYERS = {
    "even": ("conv:N=1,K=8,C=6,P=7,Q=5,R=3,S=3,pad=1", "eyeriss-168", []),
    "uneven": ("gemm:M=12,N=10,K=9", "simba", ["--storage", "uneven"]),
    "two tiles of the array": ("gemm:M=100,N=33,K=20", "tpu-edge", []),
}


def texts(root: ElementTree.Element, key: str) -> list[ElementTree.Element]:
    """The texts that state something."""
    return [text for text in root.iter(f"{SVG}text") if f"data-{key}" in text.attrib]


@pytest.mark.parametrize(("layer", "arch", "flags"), LAYERS.values(), ids=LAYERS)
def test_a_drawing_states_what_the_documents_say(
    layer: str, arch: str, flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tiles with their bytes, trips and spread axes, from the file that ``show --plot`` writes."""
    result, picture = tmp_path / "r.json", tmp_path / "r.svg"
    asked = ["map", layer, "--arch", arch, *flags, "--solver", "annealing[steps=200]", "--time-limit", "60"]
    assert run([*asked, "--format", "json", "--out", str(result)]) == 0
    assert run(["show", str(result), "--plot", str(picture)]) == 0
    capsys.readouterr()
    assert run(["show", str(result), "--format", "json"]) == 0
    stated = json.loads(capsys.readouterr().out)["layers"][0]
    document = json.loads(result.read_text())
    assert stated["metrics"]["accesses"] == document["layers"][0]["metrics"]["accesses"]
    root = ElementTree.parse(picture).getroot()

    drawn = {
        (text.get("data-in"), text.get("data-tensor")): (int(text.get("data-elements", 0)), text.text)
        for text in texts(root, "in")
    }
    assert {key: elements for key, (elements, _) in drawn.items()} == {
        (row["level"], row["tensor"]): row["tile"] for row in stated["metrics"]["accesses"]
    }
    for text in texts(root, "in"):
        elements, bits = int(text.get("data-elements", 0)), int(text.get("data-bits", 0))
        assert text.text == f"{text.get('data-tensor')} {bytes_text(elements, bits)}"

    outer, loops, axes = dict(stated["bounds"]), [], {}
    for node in stated["mapping"]["nodes"]:
        if "store" in node:
            continue
        dim, trips = node.get("temporal") or node["spatial"], 0
        while trips * node["tile"] < outer[dim]:
            trips += 1
        loops.append((dim, str(trips), str(node["tile"]), node.get("axis")))
        if "axis" in node:
            axes[node["axis"]] = axes.get(node["axis"], 1) * trips
        outer[dim] = node["tile"]
    shown = texts(root, "trips")
    assert [
        tuple(text.get(f"data-{key}") for key in ("dim", "trips", "tile", "axis")) for text in shown
    ] == loops
    for text in shown:
        assert f"{text.get('data-dim')} in {int(text.get('data-trips', 0)):,}" in (text.text or "")
    used = {text.get("data-axis"): int(text.get("data-used", 0)) for text in texts(root, "used")}
    assert {axis: count for axis, count in used.items() if count > 1} == {
        axis: count for axis, count in axes.items() if count > 1
    }
    assert "<script" not in picture.read_text()
    assert "href" not in picture.read_text()


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Operator, Engine, Mapping]:
    operator, engine = draw(operators(most=24)), draw(hierarchies())
    return (
        operator,
        engine,
        draw(mappings(operator, engine, uneven=draw(st.booleans()), perfect=draw(st.booleans()))),
    )


@settings(max_examples=60, deadline=None)
@given(_cases())
def test_first_moves_add_up_to_the_evaluators_fills(case: tuple[Operator, Engine, Mapping]) -> None:
    """All rounds together bring every input's first inner store what the evaluator counts as its fills."""
    operator, engine, mapping = case
    if any(level.sliding_window or (level.fanout and level.fanout.sharing) for level in engine.levels):
        return
    evaluation = evaluate_mapping(operator, engine, cost_model("hierarchy"), mapping)
    if evaluation.violations:
        return
    fills = {(row.level, row.tensor): row.fills for row in metrics_record(evaluation, engine).accesses}
    moved: dict[tuple[str, str], int] = {}
    for step in steps_of(operator, engine, mapping):
        for move in step.moves:
            if not move.is_output:
                key = (move.level, move.tensor)
                moved[key] = moved.get(key, 0) + move.elements * move.is_new
    spread_before = {
        (node.level, node.tensor): any(isinstance(other, Spatial) for other in mapping.nodes[:place])
        for place, node in enumerate(mapping.nodes)
        if isinstance(node, Storage)
    }
    for key, elements in moved.items():
        if not spread_before[key]:
            assert elements == fills[key], (key, mapping)


def test_fused_drawings_state_the_evaluators_tiles() -> None:
    """Shared stores with the tiles that the evaluator counts, and every layer's turns."""
    for seed in range(6):
        instance = random_instance(Random(seed))
        evaluation = evaluate_fused(
            instance.group, instance.engine, cost_model("hierarchy"), instance.tree, "tree"
        )
        picture = fused_picture("group", instance.group, instance.engine, instance.tree, evaluation)
        root = ElementTree.fromstring(mapping_drawing(picture).svg())
        drawn = {
            (text.get("data-in"), text.get("data-tensor"), text.get("data-elements"))
            for text in texts(root, "in")
        }
        for store, elements in evaluation.turns.tiles.items():
            assert (store.level, store.name, str(elements)) in drawn
        turns = " ".join(rect.get("data-turn", "") for rect in root.iter(f"{SVG}rect"))
        assert all(f"{layer}" in turns for layer in instance.group.names)


def test_six_levels_and_nine_loops_fit_their_sheet() -> None:
    """No text leaves its panel, and boxes lie inside each other."""
    nodes: list[Any] = []
    from tilewright.hardware.mapping.load import load_engine
    from tilewright.workloads.mapping.operators import gemm

    engine, operator = load_engine("simba"), gemm(m=1024, n=1024, k=1024)
    names = [level.name for level in engine.levels]
    assert len(names) == 6
    tiles = {"M": 1024, "N": 1024, "K": 1024}
    cuts = iter("MNKMNKMNK")
    for level in engine.levels:
        nodes += [{"store": t.name, "level": level.name} for t in operator.tensors if t.role in level.keeps]
        for dim in (next(cuts, None) for _ in range(2)):
            if dim is not None:
                tiles[dim] = 1 if tiles[dim] <= 8 else tiles[dim] // 9
                nodes.append({"temporal": dim, "tile": tiles[dim]})
    mapping = Mapping.from_data(nodes, "mapping")
    evaluation = evaluate_mapping(operator, engine, cost_model("hierarchy"), mapping)
    drawing = mapping_drawing(
        picture_of("gemm", operator, engine, mapping, metrics_record(evaluation, engine))
    )
    for panel in (*drawing.still, *drawing.steps):
        for text in panel.root.iter("text"):
            width = LETTER * int(text.get("font-size", 0)) * len(text.text or "")
            assert float(text.get("x", 0)) + width <= panel.width, text.text
    boxes = [rect for rect in drawing.still[0].root.iter("rect") if "data-level" in rect.attrib]
    assert [box.get("data-level") for box in boxes] == names
    edges = [
        (float(b.get("x", 0)), float(b.get("y", 0)), float(b.get("width", 0)), float(b.get("height", 0)))
        for b in boxes
    ]
    for (x, y, wide, high), (left, top, width, height) in itertools.pairwise(edges):
        assert x < left
        assert y < top
        assert left + width < x + wide
        assert top + height < y + high
