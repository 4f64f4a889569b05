"""What a method reaches in some seconds of the processor, and how its energy and cycles compare with bounds.

python -m studies.tiled_default resnet50 mobilenet-v2 --objectives edp energy --seconds 60
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.running import plan_run, prepare
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.catalog import resolve_model

HEAD = (
    "| network | objective | value | bound | gap | mJ | over bound | cycles | over bound | last plan |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---|"
)


def row(name: str, system: str, objective: str, method: str, seconds: float) -> str:
    """One network, as a line of a table.

    Parameters
    ----------
    name, system, objective : the problem, batch 1
    method, seconds : what searches in one thread, and for how long
    """
    problem = TiledProblem(resolve_model(name, 1), load_tiled_machine(system), tiled_objective(objective))
    prepare(method)
    limits = Limits(seconds, threads=1, clock=time.process_time)
    result = plan_run(lambda: problem, method, limits).run()
    if result.evaluation is None or result.key is None or result.bound is None:
        return f"| {name} | {objective} | {result.status} | | | | | | | {result.message} |"
    energy, cycles, least = result.evaluation.energy.total, result.evaluation.cycles, size_bounds(problem)
    source = next(point.source for point in reversed(result.trace) if point.improved)
    cells = (
        name,
        objective,
        f"{float(result.key):.4g}",
        f"{float(result.bound):.4g}",
        f"{100 * (result.gap or 0.0):.1f} %",
        f"{energy / 1e9:.3f}",
        f"{energy / float(least.energy):.2f}",
        f"{cycles:,}",
        f"{cycles / least.cycles:.2f}",
        source,
    )
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--objectives", nargs="+", default=["edp", "energy", "makespan"])
    parser.add_argument("--system", default="atomic-8x8[link=16]")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the processor, for each search")
    asked = parser.parse_args(arguments)
    print(HEAD, flush=True)
    for name in asked.networks:
        for objective in asked.objectives:
            print(row(name, asked.system, objective, asked.method, asked.seconds), flush=True)


if __name__ == "__main__":
    main()
