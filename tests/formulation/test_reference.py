"""The cost models against figures of published programs, to the last digit."""

from __future__ import annotations

import math
from collections.abc import Mapping as MappingABC
from typing import Any

import pytest
from reference import TIMELOOP, convolution, load, mapping

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.operators import conv2d

METHODS = load("dmazerunner_evaluations.json", "methods")
OPTIMA = load("dmazerunner_optima.json", "layers")
TIMELOOP_MAPPINGS = load("timeloop_counts.json", "mappings")
DMAZERUNNER = cost_model("dmazerunner")
COMPONENTS = ("MAC", "RF", "network", "SPM", "DRAM")


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m['layer']}-{m['spm_passes']}-{m['rf_passes']}")
def test_dmazerunner_evaluations(method: MappingABC[str, Any]) -> None:
    """Energy, its components, cycles, DMA cycles, passes and tiles of every tiling and order pair."""
    operator, engine = convolution(method), load_engine("dmazerunner-256")
    for row in method["orders"]:
        evaluation = evaluate_mapping(operator, engine, DMAZERUNNER, mapping(operator, method["tiling"], row))
        assert (evaluation.energy, evaluation.cycles, evaluation.violations) == (
            row["energy"],
            row["cycles"],
            (),
        )
        parts = [float(evaluation.components[name]) for name in COMPONENTS]
        assert parts == pytest.approx(row["components"], rel=1e-12)
        assert round(sum(evaluation.components.values())) == row["energy"]
        assert evaluation.details["SPM passes"] == method["spm_passes"]
        assert [evaluation.details[f"DMA cycles of {name}"] for name in "OIW"] == method["dma_cycles"]
        tiles = {(access.level, access.tensor): access.tile for access in evaluation.accesses}
        assert [tiles["SPM", name] for name in "OIW"] == method["spm_tile"]
        assert [tiles["RF", name] for name in "OIW"] == method["rf_tile"]
        moved = {(access.level, access.tensor): access for access in evaluation.accesses}
        output = operator.output.footprint(operator.bounds)
        visits = method["spm_passes"] // row["reuse_dram"][0]
        assert moved["DRAM", "O"].updates == visits * method["spm_tile"][0]
        assert moved["DRAM", "O"].reads == moved["DRAM", "O"].updates - output
        assert moved["DRAM", "O"].reads == row["partial_sum_reads"] * method["spm_tile"][0]
        if row["reuse_spm"][0] < method["rf_passes"] and max(row["reuse_dram"]) == 1:
            assert evaluation.details["cycles of an SPM pass"] == row["spm_pass_cycles"]


def test_dmazerunner_evaluations_are_all_there() -> None:
    """30 execution methods and 145 order pairs, of which many keep something in place across passes."""
    orders = [row for method in METHODS for row in method["orders"]]
    assert (len(METHODS), len(orders)) == (30, 145)
    assert sum(max(row["reuse_dram"]) > 1 for row in orders) > 50


@pytest.mark.parametrize("name", OPTIMA)
def test_dmazerunner_best_methods(name: str) -> None:
    """The best methods of six layers, with and without the published pruning, cost what was tabulated."""
    layer, engine = OPTIMA[name], load_engine("dmazerunner-256")
    operator = convolution(layer)
    for row in layer["best"]:
        evaluation = evaluate_mapping(operator, engine, DMAZERUNNER, mapping(operator, row, row["orders"]))
        assert (evaluation.energy, evaluation.cycles, evaluation.violations) == (
            row["energy"],
            row["cycles"],
            (),
        )
        by_name = {
            "edp": evaluation.energy * evaluation.cycles,
            "energy": evaluation.energy,
            "cycles": evaluation.cycles,
        }
        assert by_name[row["objective"]] == row["value"]


def test_dmazerunner_best_methods_are_all_there() -> None:
    """69 tabulated methods: six layers, three objectives, four spaces, of which conv2_2 lacks one."""
    assert sum(len(layer["best"]) for layer in OPTIMA.values()) == 69


@pytest.mark.parametrize("row", TIMELOOP_MAPPINGS, ids=[str(i) for i in range(24)])
def test_timeloop_counts(row: MappingABC[str, Any]) -> None:
    """Reads, fills, updates and tiles per level and tensor, and compute cycles."""
    n, k, c, p, q, r, s = row["bounds"]
    operator = conv2d(n=n, k=k, c=c, p=p, q=q, r=r, s=s, stride=row["stride"])
    evaluation = evaluate_mapping(
        operator, TIMELOOP, cost_model("hierarchy"), mapping(operator, row["tiling"], row["orders"])
    )
    spread = math.prod(row["tiling"]["Spatial"])
    counts = {}
    for access in evaluation.accesses:
        instances = spread if access.level == "RF" else 1
        whole = (access.reads, access.fills, access.updates)
        counts[f"{access.level} {access.tensor}"] = [*(n / instances for n in whole), access.tile]
    assert counts == row["counts"]
    assert evaluation.cycles == row["cycles"]
