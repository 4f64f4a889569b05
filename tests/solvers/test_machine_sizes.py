"""Best mappings of one layer for many sizes of the machine, against the evaluator and the exact solver."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.demands.dataflow import style_demands
from tilewright.formulation.mapping.problem import IMPERFECT, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.styles import dataflow, dataflow_names
from tilewright.solvers.mapping.machine_sizes import METRICS, MachineSize, best_by_size
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator

LAYERS = {
    "conv": parse_layer("conv:K=4,C=3,P=4,Q=3,R=3,S=3")[1],
    "depthwise": parse_layer("depthwise:C=4,P=4,Q=4,R=3,S=3")[1],
    "gemm": parse_layer("gemm:M=2,N=4,K=4")[1],
}
MEMORY = 96


def points(flow: str) -> list[MachineSize]:
    style = dataflow(flow)
    return [MachineSize(style.array(pes), Fraction(rate)) for pes in (4, 6) for rate in (1, 3)]


@pytest.mark.parametrize(
    ("layer", "flow"),
    [
        pytest.param(layer, flow, marks=() if (first + second) % 3 == 0 else pytest.mark.slow)
        for first, layer in enumerate(LAYERS)
        for second, flow in enumerate(dataflow_names())
    ],
)
def test_best_mapping_equals_the_exact_solver_at_every_point(flow: str, layer: str) -> None:
    """Where powers of two parts are all there is, every point's best value is the proven optimum."""
    operator, style = LAYERS[layer], dataflow(flow)
    best_mappings = best_by_size(operator, style, MEMORY, points(flow))
    for point in points(flow):
        engine = style.engine_of(point.array, point.bandwidth, MEMORY)
        for metric in METRICS:
            problem = layer_problem(
                operator,
                engine,
                parse_objective(metric),
                factors=IMPERFECT,
                constraints=style_demands(style.fixes(operator)),
            )
            proven = solve(problem, "branch", Limits())
            best = best_mappings.get((point, metric))
            if best is None:
                assert proven.status == "infeasible"
                continue
            evaluation = problem.evaluate(best.mapping)
            assert evaluation.violations == ()
            assert (evaluation.energy, evaluation.cycles) == (best.energy, best.cycles)
            assert problem.key_of(evaluation) == proven.key


@pytest.mark.parametrize("flow", dataflow_names())
def test_memory_figures_are_those_of_the_mapping(flow: str) -> None:
    """The tiles that a best mapping tells of are those that the evaluator counts in the global memory."""
    operator: Operator = LAYERS["conv"]
    style = dataflow(flow)
    for (point, _), best in best_by_size(operator, style, MEMORY, points(flow)).items():
        engine = style.engine_of(point.array, point.bandwidth, MEMORY)
        problem = layer_problem(operator, engine, parse_objective("edp"), factors=IMPERFECT)
        tiles = {a.tensor: a.tile for a in problem.evaluate(best.mapping).accesses if a.level == "GLB"}
        assert best.memory == sum(tiles.values()) <= MEMORY
        assert best.weights == tiles["W"]


def test_more_resources_never_cost_more() -> None:
    """More PEs along an axis or more bandwidth keep every mapping, so the best cannot get worse."""
    operator, style = LAYERS["conv"], dataflow("shidiannao")
    grid = [MachineSize((a, b), Fraction(rate)) for a in (1, 2, 4) for b in (1, 3) for rate in (1, 2, 4)]
    best_mappings = best_by_size(operator, style, MEMORY, grid)
    for size in grid:
        for other in grid:
            larger = all(x <= y for x, y in zip(size.array, other.array, strict=True))
            if larger and size.bandwidth <= other.bandwidth:
                for metric in METRICS:
                    first, second = best_mappings[size, metric], best_mappings[other, metric]
                    figures = {
                        "cycles": (first.cycles, second.cycles),
                        "energy": (first.energy, second.energy),
                    }
                    least = figures.get(metric, (first.cycles * first.energy, second.cycles * second.energy))
                    assert least[1] <= least[0]
