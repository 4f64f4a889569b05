"""What dMazeRunner's prunings leave and cost: tilings and distance from the optimum (figure 11 of the paper).

    python -m studies.dmazerunner_prunings

Prints one Markdown row per layer of the paper: valid tilings, and how far the best of those that are left
is above the proven optimum, without pruning, under OPT1, OPT1-2 and OPT1-3.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

import typer

from studies.dmazerunner_counting import count_tilings
from studies.time_to_proof import worked
from tilewright.benchmarks.suites import suite
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.heuristics.mapping.dmazerunner.prunings import Prunings, read_opts
from tilewright.solvers.mapping.solve import solve

_SETS = ("1", "1-2", "1-3")


def run(
    objective: Annotated[str, typer.Option(help="energy, cycles or edp")] = "edp",
    arch: Annotated[str, typer.Option(help="a machine whose array has one axis")] = "dmazerunner-256",
    layers: Annotated[str, typer.Option(help="only layers of these names (glob)")] = "*",
) -> None:
    """Measure and print."""
    engine = load_engine(arch)
    heads = "".join(f" OPT{opts} | above | CPU s |" for opts in _SETS)
    print(f"| layer | tilings | optimum | proof, CPU s |{heads}")
    print("|---|---:|---:|---:|" + "---:|---:|---:|" * len(_SETS))
    for case in (case for case in suite("dmazerunner") if fnmatchcase(case.name, layers)):
        problem = layer_problem(case.operator, engine, parse_objective(objective))
        began = worked()
        proven = solve(problem, "branch")
        assert proven.key is not None
        cells = [
            case.name,
            f"{count_tilings(problem, Prunings(read_opts('none'))):,}",
            f"{float(proven.key):.6g}",
            f"{worked() - began:.2f}",
        ]
        for opts in _SETS:
            began = worked()
            result = solve(problem, f"dmazerunner[opt={opts}]")
            took = worked() - began
            left = count_tilings(problem, Prunings(read_opts(opts)))
            above = "–" if result.key is None else f"{100 * float(result.key / proven.key - 1):.2f} %"
            cells += [f"{left:,}", above, f"{took:.2f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    typer.run(run)
