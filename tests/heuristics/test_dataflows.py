"""Fixed dataflows: what they spread and keep in place, and how their tiles are filled."""

from __future__ import annotations

import pytest
from reference import convolution, load

from tilewright.formulation.mapping.demands.dataflow import DATAFLOWS, Dataflow, restricted
from tilewright.formulation.mapping.mapping import Spatial
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import gemm

LAYERS = load("dmazerunner_optima.json", "layers")


def problem_of(layer: str, arch: str = "dmazerunner-256") -> LayerProblem:
    return layer_problem(convolution(LAYERS[layer]), load_engine(arch), parse_objective("edp"))


def test_constraint_lines() -> None:
    """A dataflow's demands are those that a user would write."""
    machine = load_engine("eyeriss-168")
    flow = Dataflow("x", "", ("P", "K"), {"y": ("P",)}, Role.WEIGHT, Role.OUTPUT, ("N",))
    demands = flow.demands(convolution(LAYERS["conv5_2"]), machine)
    assert {demand.text for demand in demands} == {
        "spatial(N)=1",
        "spatial(C)=1",
        "spatial(Q)=1",
        "spatial(R)=1",
        "spatial(S)=1",
        "spatial(K@y)=1",
        "tile(N@RF)=1",
        "stationary@GLB=W",
        "stationary@DRAM=O",
    }


def test_dimensions_count_as_what_they_are_like() -> None:
    """A matrix product's M, N and K are an output row, an output channel and an input channel."""
    demands = DATAFLOWS["ws2"].demands(gemm(m=4, n=4, k=4), load_engine("dmazerunner-256"))
    assert [demand.text for demand in demands if demand.kind == "spatial"] == ["spatial(M)=1"]


@pytest.mark.parametrize("layer", ["conv1", "conv4_2", "conv5_2"])
@pytest.mark.parametrize("name", DATAFLOWS)
def test_the_dataflow_holds(name: str, layer: str) -> None:
    """The answer is a mapping of the restricted problem: no other dimension is spread."""
    problem = problem_of(layer)
    result = solve(problem, name)
    assert result.answer is not None
    flow = DATAFLOWS[name]
    assert {node.dim for node in result.answer.nodes if isinstance(node, Spatial)} <= set(flow.spread)
    assert not restricted(problem, flow).evaluate(result.answer).violations


@pytest.mark.parametrize(
    "name", [name if name == "rs" else pytest.param(name, marks=pytest.mark.slow) for name in DATAFLOWS]
)
def test_search_within_a_dataflow_is_at_least_as_good(name: str) -> None:
    """Annealing starts from the greedy filling and stays within the proven optimum of the dataflow."""
    problem = problem_of("conv5_2")
    greedy, searched = solve(problem, name), solve(problem, f"{name}[fill=search]")
    proven = solve(restricted(problem, DATAFLOWS[name]), "branch")
    assert greedy.key is not None
    assert searched.key is not None
    assert proven.key is not None
    assert proven.key <= searched.key <= greedy.key


def test_several_output_channels_use_more_of_the_array() -> None:
    """7 x 7 outputs fill 49 PEs; groups of them on several channels fill more."""
    trips_by_dataflow = {}
    for name in ("soc", "moc"):
        mapping = solve(problem_of("conv5_2"), name).answer
        assert mapping is not None
        steps = mapping.loops(problem_of("conv5_2").operator)
        trips_by_dataflow[name] = [step.trip for step in steps if isinstance(step.node, Spatial)]
    assert sorted(trips_by_dataflow["soc"]) == [7, 7]
    assert sorted(trips_by_dataflow["moc"]) == [4, 7, 7]
