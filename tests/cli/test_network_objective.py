"""The edp of a network is total energy times total cycles; the sum of its layers' is another figure."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product as cartesian
from pathlib import Path

import pytest
from calls import Call
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.formulation.network_objective import NetworkObjective, parse_network_objective
from tilewright.formulation.objective import Objective

LAYERS = """
- {name: wide, layer: "gemm:M=8,N=8,K=2"}
- {name: deep, layer: "gemm:M=2,N=2,K=24"}
"""


@settings(max_examples=effort(60))
@given(st.data())
def test_layers_bounds_bound_the_network(data: st.DataObject) -> None:
    """Whatever mappings the layers choose, no objective of the totals is below the bound of their least."""
    powers = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any))
    objective = Objective("E^a*D^b", *map(Fraction, powers))
    point = st.tuples(st.fractions(0, 900, max_denominator=20), st.integers(1, 900))
    choices = data.draw(st.lists(st.lists(point, min_size=1, max_size=4), min_size=1, max_size=3))
    counts = data.draw(st.lists(st.integers(1, 3), min_size=len(choices), max_size=len(choices)))
    least = [min(objective.key(*costs) for costs in several) for several in choices]
    bound = NetworkObjective(objective).bound(zip(counts, least, strict=True))
    values = []
    for chosen in cartesian(*choices):
        energy = sum((count * costs[0] for count, costs in zip(counts, chosen, strict=True)), Fraction(0))
        cycles = sum(count * costs[1] for count, costs in zip(counts, chosen, strict=True))
        values.append(objective.key(energy, cycles))
    assert bound <= min(values)
    if sum(counts) == 1:
        assert bound == min(values)


def test_layers_of_one_ratio_leave_no_gap() -> None:
    """Where all layers spend alike per cycle, the bound is met: roots of powers are exact."""
    objective = parse_network_objective("edp")
    parts = [(2, Fraction(12 * 4)), (1, Fraction(36 * 12))]
    assert objective.bound(parts) == (2 * 12 + 36) * (2 * 4 + 12)


def test_names_of_sums() -> None:
    """A sum of products has a name of its own; one of energies, cycles or a single layer is the objective."""
    assert parse_network_objective("sum-edp").figure(3) == "sum of layer edp"
    assert parse_network_objective("sum-E^2*D").figure(3) == "sum of layer E^2*D"
    assert parse_network_objective("edp").figure(3) == "edp"
    assert parse_network_objective("sum-edp").figure(1) == "edp"
    assert (
        parse_network_objective("sum-energy").figure(3)
        == str(parse_network_objective("sum-energy"))
        == "energy"
    )


@pytest.mark.parametrize("text", ["sum-", "sum-sum-edp", "edp-sum", "sum-E^0.1*D^0.7", "sum edp"])
def test_sums_of_nothing_are_told(call: Call, text: str) -> None:
    """What is no objective after ``sum-`` is one line, with exit code 2."""
    vary = ("--vary", "levels.RF.capacity=512B,256B")
    outcome = call("explore", "gemm:M=2,N=2,K=2", "-a", "dmazerunner-256", "-o", text, *vary)
    assert outcome.code == 2
    assert "--objective" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_map_and_explore_mean_the_same_edp(call: Call, tmp_path: Path) -> None:
    """Both verbs give the same network the same edp, bound it, and name the layers' sum apart."""
    layers, out = tmp_path / "layers.yaml", tmp_path / "explored.json"
    layers.write_text(LAYERS)
    asked = (layers, "--arch", "dmazerunner-256", "-q", "--time-limit", "100")
    totals = call("map", *asked, "--objective", "edp", "--format", "json").document["totals"]
    assert totals["edp"] == totals["energy_pj"] * totals["cycles"]
    assert totals["edp_bound"] <= totals["edp"]
    assert totals["sum_of_layer_edp"] < totals["edp_bound"]
    vary = ("--vary", "levels.RF.capacity=512B,256B", "--every", "--jobs", "1", "--out", out)
    text = call("explore", *asked, "--objective", "edp", *vary).out
    assert "sum of layer edp" in text
    assert "proven optimal" not in text
    document = json.loads(out.read_text())
    assert (document["objective"], document["figure"]) == ("edp", "edp")
    same = document["designs"][0]
    assert same["value"] == pytest.approx(totals["edp"])
    assert same["bound"] == pytest.approx(totals["edp_bound"])
    assert same["sum_of_layers"] == pytest.approx(totals["sum_of_layer_edp"])
    assert same["status"] != "solved"
    assert call("check", out).code == 0
    assert call("check", out, "--prove").code == 0
    document["best"]["optimal"] = True
    out.write_text(json.dumps(document))
    assert call("check", out).code == 5
    text = call("explore", *asked, "--objective", "sum-edp", *vary).out
    assert "edp (of total energy and cycles)" in text
    document = json.loads(out.read_text())
    assert (document["objective"], document["figure"]) == ("sum-edp", "sum of layer edp")
    same = document["designs"][0]
    assert same["status"] == "solved"
    assert same["value"] == pytest.approx(totals["sum_of_layer_edp"])
    assert same["sum_of_layers"] is None
    assert call("check", out).code == 0
    assert call("check", out, "--prove").code == 0
