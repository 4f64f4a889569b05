"""Whether every distinct layer of every built-in network has a mapping that is found at once.

    python -m studies.zoo_maps --arch nvdla-256 --time-limit 5 --part 1/4

Layers with equal operators are solved once.  Prints one line per layer that has no mapping at the limit or
that took longer, and a table of one row; ends with exit code 1 if any layer has none.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from typing import Annotated

import typer

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.mapping.operator import shape_text
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.networks import builders


def distinct_operators(models: list[str]) -> dict[Operator, str]:
    """Every operator that multiplies and accumulates, with the model and layer that has it first."""
    names: dict[Operator, str] = {}
    for name in models:
        for distinct in resolve_model(name).distinct_layers(mac_only=True):
            names.setdefault(distinct.layer.operator, f"{name} {distinct.layer.name}")
    return names


def run(
    models: Annotated[str, typer.Option(help="comma-separated models, or all")] = "all",
    arch: Annotated[str, typer.Option(help="machine")] = "nvdla-256",
    objective: Annotated[str, typer.Option(help="objective")] = "edp",
    solver: Annotated[str, typer.Option(help="solver")] = "auto",
    time_limit: Annotated[float, typer.Option(help="seconds per layer")] = 5.0,
    factors: Annotated[str, typer.Option(help="perfect, imperfect, or empty for the default")] = "",
    part: Annotated[str, typer.Option(help="the I-th of N parts of the layers, I/N")] = "1/1",
) -> None:
    """Solve and print."""
    names = [*builders()] if models == "all" else models.split(",")
    operators = [*distinct_operators(names).items()]
    which, parts = (int(number) for number in part.split("/"))
    mine = operators[which - 1 :: parts]
    engine, goal = load_engine(arch), parse_objective(objective)
    statuses: Counter[str] = Counter()
    times, missing = [], 0
    for operator, name in mine:
        started, before = time.monotonic(), time.process_time()
        problem = layer_problem(operator, engine, goal, factors=factors or None)
        result = solve(problem, solver, Limits(seconds=time_limit, started=started))
        times.append(time.process_time() - before)
        statuses[str(result.status)] += 1
        missing += result.key is None
        if result.key is None or time.monotonic() - started > time_limit + 1:
            what = f"{name}, {operator.kind} {shape_text(operator)}"
            print(f"{what}: {result.status} after {times[-1]:.1f} s", flush=True)
    heads = ["machine", "objective, factors", "networks", "distinct layers", "solved", "mapped", "proven"]
    print(f"| {' | '.join([*heads, 'CPU s: median', 'worst', 'sum'])} |\n|---|---|{'---:|' * 8}")
    counts = (len(names), len(operators), len(mine), len(mine) - missing, statuses["optimal"])
    print(
        f"| {arch} | {objective}, {factors or 'by default'} | {' | '.join(map(str, counts))} "
        f"| {statistics.median(times):.2f} | {max(times):.2f} | {sum(times):.0f} |"
    )
    raise typer.Exit(1 if missing else 0)


if __name__ == "__main__":
    typer.run(run)
