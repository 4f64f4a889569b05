"""Where cycles and energy go: parts that add up, and that a computation by hand has as well."""

from __future__ import annotations

import pytest

from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.html.figures import logarithmic
from tilewright.report.html.mapping.figures import ENERGY as ENERGY_AXIS
from tilewright.report.html.mapping.figures import MOST, stacked_figure
from tilewright.report.records.mapping.breakdown import in_machine_order, in_role_order, latency_parts
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer


@pytest.mark.parametrize(
    ("layer", "arch"),
    [
        ("conv:K=16,C=8,P=14,Q=14,R=3,S=3", "eyeriss-168"),
        ("gemm:M=64,N=16,K=64", "tpu-edge"),
        ("conv:K=16,C=8,P=14,Q=14,R=3,S=3", "dmazerunner-256"),
    ],
)
def test_latency_parts_add_up(layer: str, arch: str) -> None:
    """Compute and exposed transfers make all cycles; compute is what the model says where it says it."""
    operator, engine = parse_layer(layer)[1], load_engine(arch)
    problem = layer_problem(operator, engine, parse_objective("energy"))
    result = solve(problem, "dmazerunner")
    assert result.answer is not None
    evaluation = problem.evaluate(result.answer, "x")
    parts = latency_parts(operator, engine, problem.model.name, result.answer)
    assert sum(part.cycles for part in parts) == evaluation.cycles
    assert all(part.cycles >= 0 for part in parts)
    compute = evaluation.details.get("compute cycles")
    assert compute is None or parts[0].cycles == compute


def test_components_stand_as_in_the_machine() -> None:
    """Levels from the outside in, a network behind its level, the PEs last; roles as machines name them."""
    engine = load_engine("eyeriss-168")
    mixed = ["MAC", "RF", "GLB network", "DRAM", "GLB"]
    assert in_machine_order(mixed, engine) == ["DRAM", "GLB", "GLB network", "RF", "MAC"]
    assert in_role_order(["", "outputs", "inputs", "outputs"]) == ["inputs", "outputs", ""]


@pytest.mark.parametrize("span", [1.05, 3, 40, 1e4, 1e9, 1e40])
def test_logarithmic_axes_have_ticks(span: float) -> None:
    """Wide or narrow, an axis has one to six round numbers, in rising sequence and near its values."""
    axis = logarithmic([0.0, 2.0, 2.0 * span])
    ticks = axis["tickvals"]
    assert 1 <= len(ticks) <= 6
    assert ticks == sorted(ticks)
    assert ticks[0] >= 1
    assert ticks[-1] <= 4 * span
    assert logarithmic([]) == {"type": "log"}


def test_a_legend_has_eight_entries_at_most() -> None:
    """Of twelve pieces the seven largest keep their names, the rest is one, and nothing is lost."""
    pieces = {f"level {i}": float(1 + (7 * i) % 12) for i in range(12)}
    figure = stacked_figure([("x", pieces)], dict.fromkeys(pieces, "#123456"), ENERGY_AXIS)
    names = [entry["name"] for entry in figure["data"]]
    assert len(names) == MOST
    assert names[-1] == "other"
    assert min(pieces[name] for name in names[:-1]) > 5
    assert sum(entry["x"][0] for entry in figure["data"]) == pytest.approx(sum(pieces.values()) * 1e-12)
