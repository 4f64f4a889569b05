"""How well every solver keeps a time limit on large layers, and what it knows when the limit strikes.

    python -m studies.time_limits --limits 1,5,30

Prints one Markdown table: the gap that is left and the seconds over the limit.  Every bound is compared with
the optimum that ``auto`` proves, where it does.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Annotated

import typer

from tilewright.benchmarks.suites import suite
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator

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
    names = SOLVERS.names() if solver == "all" else solver.split(",")
    seconds = [*map(float, limits.split(","))]
    print("| machine | layer | solver |", *(f"{limit:g} s |" for limit in seconds))
    print("|---|---|---|" + "---|" * len(seconds))
    for machine, suite_name, layer in CASES:
        operator = next(case.operator for case in suite(suite_name) if case.name == layer)
        best = solve(_problem(operator, machine, objective), "auto", Limits(seconds=proof))
        least = best.key if best.status is Status.OPTIMAL else None
        for name in names:
            print(f"| {machine} | {layer} | {name} |", end="", flush=True)
            for limit in seconds:
                print(f" {_cell(operator, machine, objective, name, limit, least)} |", end="", flush=True)
            print()


def _cell(
    operator: Operator, machine: str, objective: str, name: str, seconds: float, least: Fraction | None
) -> str:
    """Gap or proof, and the seconds beyond the limit."""
    started = time.monotonic()
    result = solve(_problem(operator, machine, objective), name, Limits(seconds=seconds, started=started))
    over = max(0.0, time.monotonic() - started - seconds)
    if least is not None and result.bound is not None and result.bound > least:
        return "WRONG BOUND"
    if result.status is Status.OPTIMAL:
        return "proven"
    gap = "no gap known" if result.gap is None else f"{100 * result.gap:.1f} %"
    return f"{gap}, +{over:.2f} s"


def _problem(operator: Operator, machine: str, objective: str) -> LayerProblem:
    return layer_problem(operator, load_engine(machine), parse_objective(objective))


if __name__ == "__main__":
    typer.run(run)
