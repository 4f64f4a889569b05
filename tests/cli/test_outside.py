"""``--warm-start``, ``evaluate`` and ``check`` with mappings from outside the searched space."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from shipped import follows_schema

LAYER = "gemm:M=2,N=4,K=2"
MACHINE = """\
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 16}
levels:
  - {name: DRAM, energy: 100}
  - {name: BUF, elements: 7, energy: 1}
"""
HEAD = """\
tilewright: mapping/1
layer: "gemm:M=2,N=4,K=2"
arch: small.yaml
objective: energy
nodes:
  - {store: A, level: DRAM}
  - {store: B, level: DRAM}
  - {store: C, level: DRAM}
"""
STARTS = {
    "uneven": """\
  - {temporal: N, tile: 1}
  - {store: A, level: BUF}
  - {store: B, level: BUF}
  - {temporal: M, tile: 1}
  - {store: C, level: BUF}
  - {temporal: K, tile: 1}
""",
    "tile": """\
  - {temporal: N, tile: 3}
  - {temporal: M, tile: 1}
  - {temporal: K, tile: 1}
  - {store: A, level: BUF}
  - {store: B, level: BUF}
  - {store: C, level: BUF}
  - {temporal: N, tile: 1}
""",
    "skips": """\
  - {temporal: N, tile: 1}
  - {store: A, level: BUF}
  - {store: B, level: BUF}
  - {temporal: M, tile: 1}
  - {temporal: K, tile: 1}
""",
}
OPTIMUM = 2892  # of the even space with perfect factors, by enumeration (tests/solvers/test_outside.py)


@pytest.fixture
def starts(tmp_path: Path) -> dict[str, Path]:
    """A machine and mappings for it that its space does not have."""
    (tmp_path / "small.yaml").write_text(MACHINE)
    paths = {}
    for name, nodes in STARTS.items():
        paths[name] = tmp_path / f"{name}.yaml"
        paths[name].write_text(HEAD + nodes)
    return paths


def mapped(call: Call, start: Path, *args: object) -> Any:
    """The document of a run from a start."""
    more: tuple[object, ...] = ("-a", "small.yaml", "-o", "energy", "--factors", "perfect")
    solver = () if "--solver" in args else ("--solver", "exhaustive")
    more = (*more, *solver, *args)
    outcome = call("map", LAYER, *more, "--warm-start", start, "--out", "r.json", "-f", "json")
    assert outcome.code == 0
    follows_schema(outcome.document)
    return outcome.document, outcome.err


@pytest.mark.parametrize("name", ["uneven", "tile", "skips"])
@pytest.mark.parametrize("solver", ["auto", "exhaustive"])
def test_a_start_from_outside_changes_no_claim(
    call: Call, starts: dict[str, Path], name: str, solver: str
) -> None:
    """Value, bound and status are those of the space; a legal start is told beside them."""
    document, told = mapped(call, starts[name], "--solver", solver)
    (layer,) = document["layers"]
    assert (layer["status"], layer["value"], layer["bound"]) == ("optimal", OPTIMUM, OPTIMUM)
    assert layer["space"] == {
        "storage": "even",
        "factors": "perfect",
        "constraints": [],
        "tiles": {"M": "divisors", "N": "divisors", "K": "divisors"},
    }
    if name == "skips":
        assert "beside" not in layer
        assert "illegal here: C skips BUF, which it may not bypass" in told
    else:
        assert "outside the searched space: " in told
        assert layer["beside"]["source"] == "warm start"
        assert Fraction(layer["beside"]["value_exact"]) == layer["beside"]["value"]
    assert call("check", "r.json", "--prove", "-q").code == 0


def test_a_better_start_is_shown_beside_the_claim(call: Call, starts: dict[str, Path]) -> None:
    """The table says by how much a mapping from outside is better, and why it is outside."""
    (layer,) = mapped(call, starts["uneven"])[0]["layers"]
    assert layer["beside"]["value"] < OPTIMUM
    outcome = call("show", "r.json")
    text = " ".join(outcome.out.split())
    assert "space even storage, perfect factors, tiles divisors" in text
    assert "a mapping from outside the space (warm start) has" in text
    assert "below the optimum of the space: C begins to live in BUF inside BUF's loop over M" in text


@pytest.mark.parametrize(
    ("name", "code", "verdict"),
    [
        (
            "uneven",
            0,
            "legal outside the searched space (even storage, imperfect factors, tiles ceil(outer/n))",
        ),
        ("tile", 0, "the tile 3 of N at DRAM is not ceil(4/n): 2 trips need 2 at least"),
        ("skips", 5, "illegal: C skips BUF, which it may not bypass"),
    ],
)
def test_evaluate_answers_both_questions(
    call: Call, starts: dict[str, Path], name: str, code: int, verdict: str
) -> None:
    """Whether a mapping is legal under the machine's rules, and whether it lies in the searched space."""
    outcome = call("evaluate", starts[name])
    assert outcome.code == code
    assert verdict in " ".join(outcome.out.split())
    (layer,) = call("evaluate", starts[name], "-f", "json").document["layers"]
    assert layer["legal"] == (code == 0)
    assert not layer["inside"]
    assert layer["outside"]
    assert layer["space"]["storage"] == "even"


def forged(document: Any, kind: str) -> Any:
    """A document that claims the mapping beside it as its optimum, or another space."""
    copied = copy.deepcopy(document)
    (layer,) = copied["layers"]
    beside = layer["beside"]
    if kind == "mapping":
        layer["mapping"] = beside["mapping"]
        for field in ("value", "bound"):
            layer[field], layer[f"{field}_exact"] = beside["value"], beside["value_exact"]
    elif kind == "tiles":
        layer["space"]["tiles"]["N"] = "every integer"
    elif kind == "storage":
        layer["space"]["storage"] = "uneven"
    elif kind == "missing":
        del layer["space"]
    elif kind == "beside":
        beside["value"], beside["value_exact"] = 1, "1"
    elif kind == "inside":
        beside["mapping"] = layer["mapping"]
    else:
        layer["best"]["mappings"][0]["mapping"] = beside["mapping"]
    return copied


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("mapping", "mapping: outside the space of the claim: C begins to live in BUF"),
        ("tiles", "space: even storage, perfect factors, tiles divisors (M K), every integer (N)"),
        ("storage", "input_hash: operator, machine, objective"),
        ("missing", "space: missing, expected even storage, perfect factors, tiles divisors"),
        ("beside", "beside: differs from the evaluator's result"),
        ("inside", "beside: the mapping lies inside the space"),
        ("best", "best.mappings[0]: outside the space of the claim: C begins to live"),
    ],
)
def test_check_holds_every_claim_to_its_space(
    call: Call, starts: dict[str, Path], kind: str, fault: str
) -> None:
    """A claimed mapping from outside, and a space that was not searched, are found."""
    document = mapped(call, starts["uneven"], "--best", "3")[0]
    assert call("check", "r.json").code == 0
    Path("f.json").write_text(json.dumps(forged(document, kind)))
    outcome = call("check", "f.json", "-f", "json")
    assert outcome.code == 5
    assert any(fault in reported for reported in outcome.document["layers"][0]["faults"])
    if kind == "mapping":
        outcome = call("check", "f.json", "--prove", "-q", "-f", "json")
        proof = outcome.document["layers"][0]["proof"]
        assert proof["verdict"] == "refuted"
        assert "outside the space of the claim" in proof["message"]


def test_check_names_the_space(call: Call, starts: dict[str, Path]) -> None:
    """``check`` says over which space the claims hold, constraints included."""
    mapped(call, starts["uneven"], "--constraint", "cycles<=1000")
    outcome = call("check", "r.json")
    assert "space: even storage, perfect factors, tiles divisors, cycles<=1000" in outcome.out
    (layer,) = call("check", "r.json", "-f", "json").document["layers"]
    assert layer["space"]["constraints"] == ["cycles<=1000"]
    assert "divisors" in call("map", LAYER, "-a", "small.yaml", "--factors", "perfect", "-f", "csv").out


def test_further_answers_stay_in_the_space(call: Call, starts: dict[str, Path]) -> None:
    """Best and optimal mappings, fronts and second objectives never hold a start from outside."""
    more = ("--best", "5", "--pareto", "--all-optimal", "--then", "cycles")
    (layer,) = mapped(call, starts["uneven"], *more)[0]["layers"]
    assert layer["beside"]["value"] < OPTIMUM
    assert layer["then"]["status"] == "optimal"
    lists = [layer["front"]["points"], layer["best"]["mappings"], layer["optima"]["mappings"]]
    assert all(layer[field]["complete"] for field in ("front", "best", "optima"))
    assert all(answer["energy_pj"] >= OPTIMUM for listed in lists for answer in listed)
    assert call("check", "r.json").code == 0
