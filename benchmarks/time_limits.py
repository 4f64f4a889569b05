"""How well every solver keeps a time limit on large layers, and what it knows when the limit strikes.

    python -m tilewright.benchmarks.time_limits --limits 1,5,30

Prints one Markdown table: seconds over the limit, the gap that is left, and whether the bound holds against
the optimum that ``auto`` proves.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from tilewright.benchmarks.suites import suite
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.problem import LayerProblem, layer_problem
from tilewright.formulation.result import Status
from tilewright.formulation.search import Limits
from tilewright.hardware.load import load_engine
from tilewright.solvers.registry import solver_names
from tilewright.solvers.solve import solve
from tilewright.workloads.operator import Operator

#: machine, suite and layer: large map spaces, with perfect factors and, by default, imperfect ones
CASES = (
    ("dmazerunner-256", "dmazerunner", "conv1"),
    ("dmazerunner-256", "dmazerunner", "conv2_2"),
    ("eyeriss-168", "resnet50", "conv1"),
    ("nvdla-256", "vgg19", "fc6"),
)


def run(
    limits: Annotated[str, typer.Option(help="comma-separated seconds")] = "1,5,30",
    solver: Annotated[str, typer.Option(help="comma-separated solvers, or all")] = "all",
    objective: Annotated[str, typer.Option(help="one objective")] = "edp",
    proof: Annotated[float, typer.Option(help="seconds allowed to prove the optimum")] = 300.0,
) -> None:
    """Measure and print."""
    names = solver_names() if solver == "all" else solver.split(",")
    print("| machine | layer | solver | limit s | over by s | status | gap | bound holds |")
    print("|---|---|---|---|---|---|---|---|")
    for machine, suite_name, layer in CASES:
        operator = next(case.operator for case in suite(suite_name) if case.name == layer)
        best = solve(_problem(operator, machine, objective), "auto", Limits(seconds=proof))
        for name in names:
            for seconds in map(float, limits.split(",")):
                started = time.monotonic()
                result = solve(
                    _problem(operator, machine, objective), name, Limits(seconds=seconds, started=started)
                )
                over = max(0.0, time.monotonic() - started - seconds)
                least = best.value if best.status is Status.OPTIMAL else None
                holds = "–" if least is None or result.bound is None else str(result.bound <= least).lower()
                gap = "–" if result.gap is None else f"{100 * result.gap:.1f} %"
                print(
                    f"| {machine} | {layer} | {name} | {seconds:g} | {over:.2f} | {result.status} "
                    f"| {gap} | {holds} |",
                    flush=True,
                )


def _problem(operator: Operator, machine: str, objective: str) -> LayerProblem:
    return layer_problem(operator, load_engine(machine), parse_objective(objective))


if __name__ == "__main__":
    typer.run(run)
