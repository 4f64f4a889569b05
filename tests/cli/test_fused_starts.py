"""``map --fuse --warm-start``: fused mappings made elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from calls import Call
from fused_files import PAIR
from stops import AfterChecks

import tilewright as tw

LAYERS = """\
- {name: qk, layer: "gemm:M=16,N=16,K=8"}
- {name: av, layer: "gemm:M=16,N=8,K=16", reads: {A: qk}}
"""
QUESTION = ("-a", "tpu-edge", "--fuse", "--factors", "perfect", "--out")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two products of which one reads the other."""
    path = tmp_path_factory.mktemp("starts") / "pair.yaml"
    path.write_text(LAYERS)
    return path


@pytest.fixture(scope="module")
def saved(model: Path) -> Path:
    """The document of that network."""
    path = model.parent / "pair.json"
    tw.solve(tw.network(str(model)).on("tpu-edge", fuse=True, factors="perfect")).save(path)
    return path


def renamed(path: Path, names: dict[str, str]) -> Path:
    """A document over layers of other names, without what only holds for the old ones."""
    text = path.read_text()
    for name, other in names.items():
        text = text.replace(f'"{name}', f'"{other}')
    new = path.with_name("renamed.json")
    new.write_text(text)
    return new


def test_a_start_is_kept_whatever_happens(model: Path, saved: Path) -> None:
    """Where a limit strikes before any group is searched, the start is the answer, by other names."""
    question = tw.network(str(model)).on("tpu-edge", fuse=True, factors="perfect")
    whole = json.loads(saved.read_text())["totals"]
    for start in (saved, tw.load(saved), renamed(saved, {"qk": "first", "av": "second"})):
        result = tw.solve(question, stop=AfterChecks(30), warm_starts=start)
        assert result.value == whole["value"]
        assert result.bound < whole["bound"]
        assert not result.record.beside
        assert not result.notes
        assert result.rows()[0]["layers"] == ["qk", "av"]
    assert tw.solve(question, stop=AfterChecks(30)).value is None


def test_what_lies_outside_stands_beside_the_claim(
    call: Call, model: Path, saved: Path, tmp_path: Path
) -> None:
    """A better mapping with a home that is not asked for changes no claim; the check evaluates it."""
    out, plain = tmp_path / "beside.json", tmp_path / "plain.json"
    assert call("map", model, *QUESTION, plain, "--fuse-at", "ACC").code == 0
    outcome = call("map", model, *QUESTION, out, "--fuse-at", "ACC", "--warm-start", saved)
    assert outcome.code == 0, outcome.err
    told = " ".join(outcome.out.split())
    assert "qk + av: beside: a mapping from outside the space" in told
    assert "its sequences, or the levels of its homes, are not searched" in told
    document = json.loads(out.read_text())
    assert document["totals"] == json.loads(plain.read_text())["totals"]
    beside = document["beside"][0]
    assert beside["value"] == json.loads(saved.read_text())["groups"][0]["value"]
    assert beside["value"] < document["totals"]["value"]
    assert call("check", out).code == 0

    def fault(**change: Any) -> str:
        altered = tmp_path / "altered.json"
        altered.write_text(json.dumps(document | {"beside": [beside | change]}))
        outcome = call("check", altered)
        assert outcome.code == 5
        return " ".join(outcome.out.split())

    assert "beside[0].value, metrics: not those of the tree" in fault(value=1.0)
    assert "beside[0].tree" in fault(tree=beside["tree"][1:])
    altered = tmp_path / "altered.json"
    altered.write_text(json.dumps(json.loads(saved.read_text()) | {"beside": [beside]}))
    assert "beside[0].tree: lies inside the space" in " ".join(call("check", altered).out.split())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"layers": PAIR["layers"][:1]}, "tree: nodes: unknown layer 'av'"),
        ({"nodes": [{"temporal": "av.M", "tile": 99}, *PAIR["nodes"]]}, "tile 99 of av.M"),
        ({"nodes": [{"store": "av.B", "level": "REG"}, *PAIR["nodes"]]}, "REG is inside an array"),
        ({"leaving": ["qk"]}, ""),
        (
            {"layers": [{"name": "qk", "layer": "gemm:M=16,N=16,K=9"}, PAIR["layers"][1]]},
            "layers: no layers of the network compute this",
        ),
    ],
)
def test_starts_that_are_none_are_told_of(
    call: Call, model: Path, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    """Illegal trees and other layers are refused in one line, and the answer is what it is without them."""
    start = tmp_path / "start.yaml"
    start.write_text(yaml.safe_dump(PAIR | change))
    outcome = call("map", model, *QUESTION, tmp_path / "out.json", "-q", "--warm-start", start)
    assert outcome.code == 0, outcome.err
    assert (f"--warm-start: {start}" in " ".join(outcome.err.split())) == bool(told)
    assert told in " ".join(outcome.err.split())
    assert json.loads((tmp_path / "out.json").read_text())["totals"]["gap"] == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[", "start.yaml"),
        ("{schema: tilewright.result/1}", "schema: expected tilewright.fused/1"),
        ("{layers: [], nodes: []}", "layers"),
        ("{layers: [{name: a, layer: 'gemm:M=2,N=2,K=2'}], nodes: [{sequence: 3}]}", "nodes"),
    ],
)
def test_files_that_hold_none_are_refused(
    call: Call, model: Path, tmp_path: Path, text: str, told: str
) -> None:
    """One line names the file and the field, with exit code 2."""
    start = tmp_path / "start.yaml"
    start.write_text(text)
    outcome = call("map", model, *QUESTION, tmp_path / "out.json", "--warm-start", start)
    assert outcome.code == 2
    assert told in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
