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

from tilewright.formulation.objective import Objective, parse_objective, sum_name

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
    least = [min(objective.key(*one) for one in several) for several in choices]
    bound = objective.network_bound(zip(counts, least, strict=True))
    values = []
    for chosen in cartesian(*choices):
        energy = sum((count * one[0] for count, one in zip(counts, chosen, strict=True)), Fraction(0))
        cycles = sum(count * one[1] for count, one in zip(counts, chosen, strict=True))
        values.append(objective.key(energy, cycles))
    assert bound <= min(values)
    if sum(counts) == 1:
        assert bound == min(values)


def test_layers_of_one_ratio_leave_no_gap() -> None:
    """Where all layers spend alike per cycle, the bound is met but for the rounding of roots."""
    objective = parse_objective("edp")
    parts = [(2, Fraction(12 * 4)), (1, Fraction(36 * 12))]
    assert float(objective.network_bound(parts)) == pytest.approx((2 * 12 + 36) * (2 * 4 + 12))


def test_names_of_sums() -> None:
    """A sum of products has a name of its own; one of energies, cycles or a single layer is the objective."""
    assert sum_name(parse_objective("edp"), 3) == "sum of layer edp"
    assert sum_name(parse_objective("ed2p"), 3) == "sum of layer ed2p"
    assert sum_name(parse_objective("edp"), 1) == "edp"
    assert sum_name(parse_objective("energy"), 3) == "energy"


def test_map_and_explore_mean_the_same_edp(call: Call, tmp_path: Path) -> None:
    """Both verbs give the same network the same edp, bound it, and name the layers' sum apart."""
    layers, out = tmp_path / "layers.yaml", tmp_path / "explored.json"
    layers.write_text(LAYERS)
    asked = (layers, "--arch", "dmazerunner-256", "--objective", "edp", "-q", "--time-limit", "100")
    totals = call("map", *asked, "--format", "json").document["totals"]
    assert totals["edp"] == totals["energy_pj"] * totals["cycles"]
    assert totals["edp_bound"] <= totals["edp"]
    assert totals["sum_of_layer_edp"] < totals["edp_bound"]
    vary = ("--vary", "levels.RF.capacity=512B,256B", "--jobs", "1", "--out", out)
    text = call("explore", *asked, *vary).out
    assert "sum of layer edp" in text
    assert "edp (of total energy and cycles)" in text
    document = json.loads(out.read_text())
    assert document["figure"] == "sum of layer edp"
    same = document["designs"][0]
    assert same["value"] == pytest.approx(totals["sum_of_layer_edp"])
    assert same["network_value"] == pytest.approx(totals["edp"])
    least = document["network_best"]
    assert least["bound"] <= least["value"] <= same["network_value"]
    assert call("check", out).code == 0
    document["network_best"]["bound"] *= 1.01
    out.write_text(json.dumps(document))
    assert call("check", out).code == 5
