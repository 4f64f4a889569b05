"""How fast atomic DAGs are built, plans completed and evaluated, in atoms per CPU second of one core.

    python -m studies.tiled_speed resnet50 vgg19

Best of several runs.  ``first`` builds while nothing is remembered, ``again`` when a search has built the
same layers before.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from tilewright.formulation.scheduling.tiled import atoms, reading
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.lists import layer_sequential
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes
from tilewright.workloads.catalog import resolve_model

FINE = AtomSize(7, 14, 64, 16)
Answer = TypeVar("Answer")


def timed(work: Callable[[], Answer], runs: int = 3) -> tuple[Answer, float]:
    """What it gives, and its least CPU seconds."""
    answer, least = work(), float("inf")  # the first run compiles
    for _ in range(runs):
        begun = time.process_time()
        answer = work()
        least = min(least, time.process_time() - begun)
    return answer, least


def forget() -> None:
    """Forget all layers that were built."""
    for memo in (atoms.LAYERS, atoms.WEIGHTS, reading.CROSSINGS):
        memo.clear()


def row(problem: TiledProblem, name: str, sizes: Sequence[AtomSize]) -> str:
    """A line of the table."""

    def first() -> None:
        forget()
        problem.dag(sizes)

    machine = problem.machine
    _, anew = timed(first)
    dag, again = timed(lambda: problem.dag(sizes))
    engine, step = layer_sequential(dag, machine)
    plan, completing = timed(lambda: complete(dag, machine, engine, step))
    _, judging = timed(lambda: problem.evaluate(dag, plan))
    per_second = (f"{dag.tasks / seconds:,.0f}" for seconds in (anew, again, completing, judging))
    return f"| {name} | {dag.tasks:,} | {len(dag.reads) / dag.tasks:.1f} | {' | '.join(per_second)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--system", default="atomic-8x8[link=16]")
    asked = parser.parse_args(arguments)
    print("| | atoms | reads per atom | building, first | again | completion | evaluation |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for network in asked.networks:
        machine = load_tiled_machine(asked.system)
        problem = TiledProblem(resolve_model(network, 1), machine, tiled_objective("makespan"))
        print(row(problem, f"{network}, shares", balanced_sizes(problem)), flush=True)
        print(row(problem, f"{network}, fine", (FINE,) * len(problem.units)), flush=True)


if __name__ == "__main__":
    main()
