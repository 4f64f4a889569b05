"""Schedules of hundreds to thousands of tasks: gaps of `cpsat` under a limit.

    python -m studies.herald_large [--seconds 60] [--problems FILE.json]
    python -m studies.herald_large --processor --seconds 120 --seeds 1 2 --tasks 300 --engines 2
    python -m studies.herald_large --processor --seconds 120 --series

Prints one row per problem.  The problems (``herald_large.json``) are synthetic: networks of layers with
an option per engine, edges between layers, and runs of each network in turn until the number of tasks is
reached.  An option is engine, cycles, pJ, cycles of the first fetch, bytes held, bytes fetched, and layout.
With ``--seeds`` problems are drawn by the same recipe, with ``--series`` twelve of several sizes.  Seconds
are by the clock, or with ``--processor`` those of the processor: two threads that are never kept waiting
take twice as many.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from tilewright.formulation.limits import Limits
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


_LAYERS = (20, 35, 53, 70)  # of a network
_SPEEDS = (1, 3, 8, 14, 18)  # at which an engine may run a layer
_CYCLES = (14.2, 1.7)  # mean and standard deviation of the logarithm of a layer's cycles at speed 1
_PICOJOULES = (19.0, 1.6)  # the same of an option's energy
_FETCH, _MEMORY, _FETCHED = (10, 3000), (15_000, 1_000_000), (500, 5000)  # least and most


SERIES = tuple(
    (seed, tasks, engines)
    for engines in (2, 3)
    for seed, tasks in enumerate((150, 300, 600, 1200, 2500, 5000), start=1)
)
"""Seeds, least numbers of tasks, and engines of drawn problems."""


def drawn(seed: int, tasks: int, engines: int) -> dict[str, Any]:
    """A row of the same kind, of six networks and at least so many tasks."""
    draw = random.Random(seed)
    networks = []
    for number in range(6):
        options = []
        layers = draw.choice(_LAYERS)
        for _ in range(layers):
            work = draw.lognormvariate(*_CYCLES)
            options.append(
                [
                    [
                        engine,
                        max(1, round(work / draw.choice(_SPEEDS))),
                        round(draw.lognormvariate(*_PICOJOULES)),
                        draw.randint(*_FETCH),
                        draw.randint(*_MEMORY),
                        draw.randint(*_FETCHED),
                        f"f{engine}",
                    ]
                    for engine in range(engines)
                ]
            )
        edges = {(layer, layer + 1) for layer in range(layers - 1)}
        for _ in range(layers // 4):
            first, second = sorted(draw.sample(range(layers), 2))
            edges.add((first, second))
        networks.append({"name": f"n{number}", "options": options, "edges": sorted(edges)})
    runs = count = 0
    while count < tasks:
        count += len(networks[runs % len(networks)]["options"])
        runs += 1
    sizes = {"runs": runs, "engines": engines, "global_memory_bytes": 4 * 2**20}
    return {"seed": seed, "networks": networks, **sizes}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--problems", type=Path, default=_FILE)
    parser.add_argument("--processor", action="store_true", help="count seconds of the processor")
    parser.add_argument("--seeds", type=int, nargs="+", help="of problems that are drawn instead")
    parser.add_argument("--series", action="store_true", help="draw problems of several sizes instead")
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--engines", type=int, default=3)
    asked = parser.parse_args()
    asking = problems(asked.problems)
    if asked.seeds:
        asking = (problem_of(drawn(seed, asked.tasks, asked.engines)) for seed in asked.seeds)
    if asked.series:
        asking = (problem_of(drawn(*row)) for row in SERIES)
    clock = time.process_time if asked.processor else time.monotonic
    print("| tasks | runs | engines | Herald | best | bound (Mcycles) | gap |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for problem in asking:
        goal = ScheduleGoal(problem, ScheduleObjective.MAKESPAN)
        search = ScheduleSearch(goal, Limits(seconds=asked.seconds, threads=2, clock=clock))
        run_method(search, METHODS.make("cpsat"), "cpsat")
        result = search.result("cpsat", "")
        assert result.key is not None
        assert result.bound is not None
        early = (point.key for point in result.trace if point.source in ("herald", "greedy"))
        herald = min(key for key in early if key is not None)
        figures = (f"{float(key) / 1e6:,.2f}" for key in (herald, result.key, result.bound))
        print(
            f"| {len(problem.tasks):,} | {len(problem.instances)} | {len(problem.engines)} | "
            f"{' | '.join(figures)} | {100 * float(result.gap or 0):.2f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
