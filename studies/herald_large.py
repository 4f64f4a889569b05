"""Schedules of hundreds to thousands of tasks: gaps of `cpsat` under a limit.

    python -m studies.herald_large [--seconds 60] [--problems FILE.json]

Prints one row per problem.  The problems (``herald_large.json``) are synthetic: networks of layers with
three options each, edges between layers, and runs of each network in turn until the number of tasks is
reached.  An option is engine, cycles, pJ, cycles of the first fetch, bytes held, bytes fetched, and layout.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    Task,
)
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.herald.registry import METHODS

_FILE = Path(__file__).with_suffix(".json")


def problems(path: Path) -> Iterator[SchedulingProblem]:
    """The problems of a file."""
    for row in json.loads(path.read_text())["problems"]:
        yield problem_of(row)


def problem_of(row: dict[str, Any]) -> SchedulingProblem:
    """One row of the file as a problem."""
    tasks: list[Task] = []
    edges: list[tuple[int, int]] = []
    networks = row["networks"]
    for run in range(row["runs"]):
        network = networks[run % len(networks)]
        first = len(tasks)
        for layer, options in enumerate(network["options"]):
            own = tuple(
                Option(engine, cycles, Fraction(energy), fetch, memory, fetch_memory, layout)
                for engine, cycles, energy, fetch, memory, fetch_memory, layout in options
            )
            name = f"{network['name']}/{run // len(networks)}"
            tasks.append(Task(name, network["name"], f"l{layer}", own))
        edges += [(first + before, first + after) for before, after in network["edges"]]
    engines = tuple(f"e{number}" for number in range(row["engines"]))
    return SchedulingProblem(
        f"seed {row['seed']}", engines, tuple(tasks), tuple(edges), row["global_memory_bytes"]
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--problems", type=Path, default=_FILE)
    asked = parser.parse_args()
    print("| tasks | runs | Herald | dispatching, 1 s | best | bound (Mcycles) | gap |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for problem in problems(asked.problems):
        goal = ScheduleGoal(problem, ScheduleObjective.MAKESPAN)
        trace: list[TracePoint] = []
        search = ScheduleSearch(goal, Limits(seconds=asked.seconds, threads=2))
        run_method(search, METHODS.make("cpsat"), "cpsat")
        result = search.result("cpsat", "")
        assert result.key is not None
        assert result.bound is not None
        trace = [point for point in result.trace if point.improved and point.key is not None]
        herald = min(point.key for point in trace if point.source in ("herald", "greedy") if point.key)
        begun = next(point.seconds for point in trace if point.source == "dispatching")
        early = min(point.key for point in trace if point.seconds <= begun + 1 if point.key)
        figures = (f"{float(key) / 1e6:,.2f}" for key in (herald, early, result.key, result.bound))
        print(
            f"| {len(problem.tasks):,} | {len(problem.instances)} | {' | '.join(figures)} | "
            f"{100 * float(result.gap or 0):.2f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
