"""KAPLA's descent: what it decides, its variants, and its distance from the optimum."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from tilewright.formulation.mapping.mapping import Spatial
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.method_text import MethodText
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.registry import HEURISTICS
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer

LAYER = "conv:N=4,K=64,C=64,P=14,Q=14,R=3,S=3,pad=1"
NODES = Path(__file__).parents[1] / "data" / "four-nodes.yaml"


def problem_of(arch: str, objective: str = "energy") -> LayerProblem:
    return layer_problem(
        parse_layer(LAYER)[1], load_engine(arch), parse_objective(objective), None, (), "perfect"
    )


@pytest.mark.parametrize("arch", ["eyeriss-168", "nvdla-256", "tpu-edge"])
def test_energy_is_near_the_optimum(arch: str) -> None:
    """On Eyeriss-like and TPU-like arrays the energy is within a factor of 1.5 of the proven optimum."""
    problem = problem_of(arch)
    result, proven = solve(problem, "kapla"), solve(problem, "branch")
    assert result.key is not None
    assert proven.key is not None
    assert proven.key <= result.key <= proven.key * 3 / 2


def test_stacking_fills_the_array() -> None:
    """Most of a systolic array's 16 x 16 PEs work: sums down one axis, output channels along the other."""
    mapping = solve(problem_of("tpu-edge"), "kapla").answer
    assert mapping is not None
    steps = mapping.loops(parse_layer(LAYER)[1])
    spread = {step.node.dim: step.trip for step in steps if isinstance(step.node, Spatial)}
    assert spread["K"] == 16
    assert 2 * prod(spread.values()) > 256


def test_keeping_more_schemes_is_never_worse_at_the_first_level() -> None:
    """With every scheme handed on, the answer is at least as good as with one."""
    problem = problem_of("nvdla-256", "edp")
    single, many = (solve(problem, f"kapla[keep={count}]").key for count in (1, 64))
    assert single is not None
    assert many is not None
    assert many <= single


def test_variants() -> None:
    """Both ways to break ties, and both guides, give legal mappings."""
    for variant in ("ties=second", "ties=position", "guide=objective"):
        assert solve(problem_of("tpu-edge"), f"kapla[{variant}]").answer is not None
    assert HEURISTICS.make(MethodText("kapla", {})) == HEURISTICS.make(
        MethodText("kapla", {"ties": "second"})
    )


def unshared(engine: Engine) -> Engine:
    """The same machine, every buffer with a whole tile of its own."""
    levels = (
        replace(level, fanout=level.fanout and replace(level.fanout, sharing=False))
        for level in engine.levels
    )
    return replace(engine, levels=tuple(levels))


@pytest.mark.parametrize("layer", ["conv:N=2,K=32,C=16,P=8,Q=8,R=3,S=3,pad=1", "gemm:M=16,N=128,K=64"])
def test_buffer_sharing(layer: str) -> None:
    """Where node buffers share, the descent takes tiles that no buffer could hold alone, and gains by it.

    What it finds is legal, and no better than the proven optimum.
    """
    operator, engine = parse_layer(layer)[1], load_engine(str(NODES))
    together, alone = (
        layer_problem(operator, machine, parse_objective("energy"), None, (), "perfect")
        for machine in (engine, unshared(engine))
    )
    result, other, proven = solve(together, "kapla"), solve(alone, "kapla"), solve(together, "branch")
    assert result.answer is not None
    assert together.evaluate(result.answer).violations == ()
    (violation,) = alone.evaluate(result.answer).violations
    assert violation.startswith("capacity of GBUF")
    assert result.key is not None
    assert other.key is not None
    assert proven.key == proven.bound
    assert proven.key is not None
    assert proven.key <= result.key < other.key
