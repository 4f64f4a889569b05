"""Trees of single networks: annealing, the search for trees, LS, LP and the bound.

    python -m studies.set_trees resnet darknet trans_cell --rules program
    python -m studies.set_trees resnet50 trans_cell --figures engine --seeds 5

Names of the released program's networks and of the catalog; objective EDP.  Every search is a cell that is
kept as it ends, so a study that is killed goes on where it was.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

from studies.answers import AnswerStore
from studies.command import run_study, study_parser
from studies.set_cells import TREES, TreeCell, TreeFound

METHODS = {
    "sa": "annealing, beta 100",
    "sa-long": "annealing, all the time",
    "set": "set",
    "ls": "LS",
    "lp": "LP",
    "bound": "bound",
}
STOCHASTIC = ("sa", "sa-long", "set")

HEAD = "| network | | least | median | gap | s | |\n|---|---|---:|---:|---:|---:|---|"


def cells(name: str, asked: argparse.Namespace) -> dict[str, list[TreeCell]]:
    """The cells of one network by method."""
    by_method = {}
    for method in asked.methods:
        seeds = range(1, asked.seeds + 1) if method in STOCHASTIC else (1,)
        by_method[method] = [
            TreeCell(
                network=name,
                part=(),
                system=asked.system,
                figures=asked.figures,
                rules=asked.rules,
                batch=asked.batch,
                energy_power=1,
                delay_power=1,
                method=method,
                seed=seed,
                seconds=asked.seconds,
            )
            for seed in seeds
        ]
    return by_method


def rows(
    name: str, by_method: dict[str, list[TreeCell]], store: AnswerStore[TreeCell, TreeFound]
) -> list[str]:
    """A row for every method: values over the seeds, gap of the least to the bound, CPU seconds until it."""
    known = {method: [store.get(cell) for cell in row] for method, row in by_method.items()}
    bound = max((run.bound for run in known.get("bound", []) if run is not None), default=0.0)
    lines = []
    for method, row in known.items():
        runs = [run for run in row if run is not None and run.status != "error"]
        if not runs:
            lines.append(f"| {name} | {METHODS[method]} | - | | | | not run |")
        elif method == "bound":
            lines.append(f"| {name} | {METHODS[method]} | {bound:.4g} | | | {runs[0].seconds:.1f} | |")
        else:
            lines.append(f"| {name} | {METHODS[method]} | {_figures(runs, bound)} |")
    return lines


def _figures(runs: Sequence[TreeFound], bound: float) -> str:
    best = min(runs, key=lambda run: run.value)
    middle = f"{statistics.median(run.value for run in runs):.4g}" if len(runs) > 1 else ""
    gap = f"{1 - bound / best.value:.1%}" if bound else ""
    word = f"{len(runs)} seeds" if len(runs) > 1 else best.status
    return f"{best.value:.4g} | {middle} | {gap} | {best.seconds:.1f} | {word}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, then print a table."""
    parser = study_parser(__doc__, "set.sqlite", 20.0)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--system", default="set-edge-4x4")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--figures", choices=("program", "engine"), default="program")
    parser.add_argument("--rules", choices=("paper", "program"), default="paper")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args(arguments)
    tables = {name: cells(name, asked) for name in asked.networks}
    return run_study(
        asked,
        TREES,
        [cell for table in tables.values() for row in table.values() for cell in row],
        lambda store: [HEAD, *(line for name, table in tables.items() for line in rows(name, table, store))],
    )


if __name__ == "__main__":
    raise SystemExit(main())
