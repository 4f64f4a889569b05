"""``--factors`` wherever a problem is stated, and the constraints that clash where it has no mapping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from calls import SMALL, TIGHT, Call
from shipped import follows_schema

from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.layer_text import parse_layer

PRIME = "gemm:M=7,N=4,K=5"
"""A layer whose bounds have no divisors: imperfect factors win."""

ARCH = ("-a", "eyeriss-168", "-o", "edp", "-q")


def hash_of(factors: str | None) -> str:
    operator, engine = parse_layer(PRIME)[1], load_engine("eyeriss-168")
    return layer_problem(operator, engine, parse_objective("edp"), factors=factors).content_hash


def layer_of(call: Call, *args: object) -> Any:
    """The only layer of a document that follows the schema."""
    outcome = call("map", PRIME, *ARCH, "-f", "json", *args)
    assert outcome.code == 0
    follows_schema(outcome.document)
    return outcome.document["layers"][0]


def test_factors_are_part_of_the_answer(call: Call) -> None:
    """Either kind is recorded with its own hash; imperfect ones are never worse, and by default one is."""
    perfect, imperfect = (layer_of(call, "--factors", kind) for kind in ("perfect", "imperfect"))
    assert (perfect["factors"], perfect["input_hash"]) == ("perfect", hash_of("perfect"))
    assert (imperfect["factors"], imperfect["input_hash"]) == ("imperfect", hash_of("imperfect"))
    assert imperfect["value"] < perfect["value"]
    default = layer_of(call)
    assert default["input_hash"] == hash_of(None)
    assert default["factors"] in ("perfect", "imperfect")


@pytest.mark.parametrize("kind", ["perfect", "imperfect"])
def test_check_states_the_same_problem(call: Call, tmp_path: Path, kind: str) -> None:
    """A result of either kind holds and is confirmed; with the other kind, or none, written in it fails."""
    path = tmp_path / "r.json"
    assert call("map", PRIME, *ARCH, "--factors", kind, "--out", path).code == 0
    outcome = call("check", path, "--prove", "-q", "-f", "json")
    assert outcome.code == 0
    assert outcome.document["layers"][0]["proof"]["verdict"] == "confirmed"
    text = path.read_text()
    document = json.loads(text)
    document["layers"][0]["factors"] = "imperfect" if kind == "perfect" else "perfect"
    path.write_text(json.dumps(document))
    outcome = call("check", path)
    assert outcome.code == 5
    assert "input_hash" in outcome.out
    document = json.loads(text)
    document["settings"]["factors"] = None  # the cost model's choice, which is imperfect
    path.write_text(json.dumps(document))
    assert call("check", path).code == (5 if kind == "perfect" else 0)


def test_mapping_files_keep_the_factors(call: Call, tmp_path: Path) -> None:
    """A saved mapping states its problem; --factors states another one."""
    layer = layer_of(call, "--factors", "imperfect", "--save-mappings", "maps", "--out", "r.json")
    path = tmp_path / "maps" / "gemm.yaml"
    assert yaml.safe_load(path.read_text())["factors"] == "imperfect"
    for stored in (path, tmp_path / "r.json"):
        (record,) = call("evaluate", stored, "-f", "json").document["layers"]
        assert (record["factors"], record["input_hash"]) == ("imperfect", layer["input_hash"])
    (record,) = call("evaluate", path, "-f", "json", "--factors", "perfect").document["layers"]
    assert (record["factors"], record["input_hash"]) == ("perfect", hash_of("perfect"))


def test_own_factors_do_not_reach_another_machine(call: Call) -> None:
    """On another machine, whose cost model may know perfect factors only, the file's kind does not count."""
    usual = layer_of(call)["factors"]
    other = "imperfect" if usual == "perfect" else "perfect"
    layer_of(call, "--factors", other, "--out", "r.json")
    outcome = call("evaluate", "r.json", "-a", "eyeriss-256", "-f", "json")
    assert outcome.document["layers"][0]["factors"] == usual


def test_formulas_of_both_kinds(call: Call) -> None:
    """Where the last tile may be smaller the formulas round up."""
    perfect, imperfect = (
        call("show", PRIME, "--formula", "-a", "eyeriss-168", "-v", "--factors", kind).out
        for kind in ("perfect", "imperfect")
    )
    assert perfect != imperfect


def test_clash_names_the_demands(call: Call) -> None:
    """Demands that contradict each other are named, harmless ones are not."""
    args = ("--constraint", "cycles<=10", "--constraint", "tile(M@GLB)<=4")
    outcome = call("map", SMALL, *ARCH, *args, "-f", "json", "--out", "r.json")
    assert outcome.code == 3
    layer = outcome.document["layers"][0]
    assert (layer["clash"], layer["message"]) == (["cycles<=10"], "no mapping satisfies: cycles<=10")
    assert call("check", "r.json").code == 0
    table = call("map", SMALL, *ARCH, *args)
    assert "no mapping satisfies: cycles<=10" in table.out


def test_clash_names_the_level(call: Call, tmp_path: Path, network: Path) -> None:
    """A level that cannot hold one element of each tensor is named, for every layer of a table."""
    (tmp_path / "tight.yaml").write_text(TIGHT)
    outcome = call("map", network, "-a", "tight.yaml")
    assert outcome.code == 3
    for name in ("first", "second"):
        assert f"{name}: no mapping satisfies: capacity of RF" in outcome.out
    assert "  no mapping satisfies: capacity of RF" in outcome.err.splitlines()


def test_clash_that_takes_too_long_is_left_out(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infeasibility stands without its explanation."""
    monkeypatch.setattr(
        "tilewright.solvers.mapping.answers.minimal_conflicts.minimal_conflict", lambda *_: ()
    )
    outcome = call("map", SMALL, *ARCH, "--constraint", "cycles<=10", "-f", "json")
    assert outcome.code == 3
    layer = outcome.document["layers"][0]
    assert (layer["status"], "clash" in layer) == ("infeasible", False)
    assert layer["message"]
