"""Fused mappings of AccelForge: read line by line, priced by its rules, and its space searched to the end."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from studies.fused_peer import CLOSE, Case, cases_of, chain, searched, study
from studies.fused_regression import Regression, best, regressions

from tilewright.foundation.errors import InputError
from tilewright.report.exchange.mapping.accelforge_einsums import einsum_network
from tilewright.report.exchange.mapping.accelforge_fused import read_fused
from tilewright.workloads.mapping.operator import Role

DATA = Path(__file__).parents[1] / "data" / "fused_peer.json"


def data() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DATA.read_text(), parse_float=Decimal)
    return content


CASES = list(cases_of(data()))
SMALL = data()["small"]["rows"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.kind}")
def test_counts_latencies_and_values_are_those_of_the_peer(case: Case) -> None:
    """Every access and every component's seconds are AccelForge's; energies agree to single precision."""
    found = case.priced()
    assert case.differing(found) == []
    assert not found.violations
    assert float(case.value(found)) == pytest.approx(float(case.row["value"]), rel=1e-6)


def long(row: dict[str, Any]) -> bool:
    """Whether a proof takes long: there are many trees where a large buffer is shared."""
    return bool(row["fused"] and row["glb_bits"] == 16384)


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=pytest.mark.slow if long(row) else ()) for row in SMALL if row["einsums"] == 2],
)
def test_optima_of_small_chains_are_the_values_of_the_peer(row: dict[str, Any]) -> None:
    """Its least energies of two products are met and proven."""
    answer = searched(*chain(row), 2 if row["fused"] else 1, 60)
    assert answer.value == answer.bound == row["energy"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["d_at", "d_mlp", "d_c3", "mm64", "at64", "mm64-nvdla", "three"])
def test_optima_are_at_most_the_values_of_the_peer(name: str) -> None:
    """The optimum is proven, and no mapping of AccelForge takes less."""
    if name == "three":
        row = next(row for row in SMALL if row["einsums"] == 3 and row["fused"])
        answer = searched(*chain(row), 3, 120)
        assert answer.value == answer.bound == row["energy"]
        return
    for case in CASES:
        if case.name == name:
            answer = case.searched(120)
            assert answer.value == answer.bound
            assert answer.value <= case.priced().energy * 10**12


def test_the_table_tells_what_differs() -> None:
    """A wrong count in the file is named in its row."""
    content = data()
    counts = content["cases"][0]["fused"]["actions_bits_by_einsum_component_tensor_action"]
    counts["('QK', 'DRAM', 'Q', 'read')"] = 7
    rows = list(study(content, [content["cases"][0]["case"]], None))
    assert "1 differ: QK DRAM Q" in rows[2]
    assert "equal" in rows[3]


def test_operands_get_roles_and_loops_their_likes() -> None:
    """What no einsum makes stands for the weights; arrays tell loops by the role that does not have them."""
    bounds = {"h": 2, "m": 4, "p": 4, "e": 2, "f": 2}
    lines = ["QK: S[h,m,p] += Q[h,m,e] * K[h,p,e]", "AV: O[h,m,f] += V[h,p,f] * S[h,m,p]"]
    network = einsum_network("attention", lines, bounds)
    qk, av = (layer.operator for layer in network.layers)
    assert {t.name: t.role for t in av.inputs} == {"V": Role.WEIGHT, "S": Role.INPUT}
    assert {d.name: d.like for d in qk.dimensions} == {"h": "G", "m": "N", "p": "K", "e": "C"}
    assert [(link.producer, link.consumer, link.operand) for link in network.links] == [("QK", "AV", "S")]


LINES = next(case.row["mapping"] for case in CASES if case.name == "at64" and case.kind == "fused")
SOME = next(case for case in CASES if case.name == "at64")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("GLB: S", "SRAM: S", "mapping:7: unknown name 'SRAM'"),
        ("GLB: S", "for S", "mapping:7: expected a store, Temporal, Spatial or Sequential, got 'for S'"),
        ("Temporal m tile 1", "Temporal z tile 1", "mapping:4: expected a rank variable and a tile"),
        (
            "Temporal m tile 1",
            "Spatial m tile 1",
            "mapping:4: expected a rank variable and a tile, and of Spatial",
        ),
        ("Sequential", "Temporal p tile 1", "mapping:8: expected Sequential or Compute"),
        ("    Compute QK on MAC", "    Compute QQ on MAC", "mapping: computes ['QQ', 'AV']"),
    ],
)
def test_a_line_that_means_nothing_is_named(old: str, new: str, message: str) -> None:
    """Its number stands before what was expected."""
    lines = [new if line == old else line for line in LINES]
    with pytest.raises(InputError) as raised:
        read_fused(lines, SOME.network, SOME.engine)
    assert message in str(raised.value)


def test_einsums_that_are_none_are_named() -> None:
    """A line without a name, and a tensor that two einsums make."""
    with pytest.raises(InputError, match=r"einsums\[0\]: expected NAME"):
        einsum_network("net", ["S[m] += A[m,k] * B[k]"], {"m": 2, "k": 2})
    with pytest.raises(InputError, match="makes S, as A does"):
        einsum_network("net", ["A: S[m] += X[m,k] * Y[k]", "B: S[m] += X[m,k] * Z[k]"], {"m": 2, "k": 2})


REGRESSIONS = list(regressions(data()))
QUICK = (
    "simple matmuls KN=64,M=64,N_EINSUMS=2 unfused",
    "simba matmuls KN=64,M=64,N_EINSUMS=2 unfused",
    "snowcat matmuls KN=64,M=64,N_EINSUMS=2 unfused",
    "snowcat matvecs unfused",
)


@pytest.mark.parametrize(
    "case", [case for case in REGRESSIONS if case.is_product], ids=lambda case: case.name
)
def test_no_mapping_of_the_peers_own_tests_is_faster_than_the_least_time(case: Regression) -> None:
    """The time that operations and the outermost memory take at least is at most that of its best mapping."""
    assert case.least_seconds() <= Fraction(case.row["latency"]) * (1 + CLOSE)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if case.name in QUICK else pytest.mark.slow, id=case.name)
        for case in REGRESSIONS
    ],
)
def test_values_of_the_peers_own_tests_are_met(case: Regression) -> None:
    """No value is above AccelForge's, whose tests allow one fused loop, and none below its bound."""
    value, bound = best(case, 60)
    assert bound <= value <= case.theirs() * (1 + CLOSE)
    if case.row["machine"] in ("simple", "snowcat"):
        assert value >= case.theirs() * (1 - CLOSE)
