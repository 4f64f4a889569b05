"""KAPLA's descent: what it decides, its variants, and its distance from the optimum."""

from __future__ import annotations

from math import prod

import pytest

from tilewright.formulation.mapping import Spatial
from tilewright.formulation.method import MethodText
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.problem import LayerProblem, layer_problem
from tilewright.hardware.load import load_engine
from tilewright.heuristics.registry import heuristic
from tilewright.solvers.solve import solve
from tilewright.workloads.layer_text import parse_layer

LAYER = "conv:N=4,K=64,C=64,P=14,Q=14,R=3,S=3,pad=1"


def problem_of(arch: str, objective: str = "energy") -> LayerProblem:
    return layer_problem(
        parse_layer(LAYER)[1], load_engine(arch), parse_objective(objective), None, (), "perfect"
    )


@pytest.mark.parametrize("arch", ["eyeriss-168", "nvdla-256", "tpu-edge"])
def test_energy_is_near_the_optimum(arch: str) -> None:
    """On Eyeriss-like and TPU-like arrays the energy is within a factor of 1.5 of the proven optimum."""
    problem = problem_of(arch)
    result, proven = solve(problem, "kapla"), solve(problem, "branch")
    assert result.value is not None
    assert proven.value is not None
    assert proven.value <= result.value <= proven.value * 3 / 2


def test_stacking_fills_the_array() -> None:
    """Most of a systolic array's 16 x 16 PEs work: sums down one axis, output channels along the other."""
    mapping = solve(problem_of("tpu-edge"), "kapla").mapping
    assert mapping is not None
    steps = mapping.loops(parse_layer(LAYER)[1])
    spread = {step.node.dim: step.trip for step in steps if isinstance(step.node, Spatial)}
    assert spread["K"] == 16
    assert 2 * prod(spread.values()) > 256


def test_keeping_more_schemes_is_never_worse_at_the_first_level() -> None:
    """With every scheme handed on, the answer is at least as good as with one."""
    problem = problem_of("nvdla-256", "edp")
    one, many = (solve(problem, f"kapla[keep={count}]").value for count in (1, 64))
    assert one is not None
    assert many is not None
    assert many <= one


def test_variants() -> None:
    """Both ways to break ties, and both guides, give legal mappings."""
    for variant in ("ties=second", "ties=position", "guide=objective"):
        assert solve(problem_of("tpu-edge"), f"kapla[{variant}]").mapping is not None
    assert heuristic(MethodText("kapla", {})) == heuristic(MethodText("kapla", {"ties": "second"}))
