"""How long methods on a tiled machine take to their first plan, on networks of the catalog.

    python -m studies.tiled_first_plans --methods ls auto set --store first_plans.sqlite

Seconds are those of the processor, with machine code compiled; a run ends with its first plan.  Each network
has a process of its own, and so has what follows a run that goes on behind its end.
``llama3/block1`` is the part of a network whose layers begin with that name, all else it reads being its
input.  What the store has is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from studies.answers import AnswerStore
from tilewright.formulation.limits import Limits
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import plan_run, prepare
from tilewright.workloads.catalog import list_models, resolve_model
from tilewright.workloads.network import Network

APPLICATION: Final = 0x54466C50  # "TFlP", SQLite's application_id

BLOCKS: Final = {
    "deepseek-v3": ("block1", "block4"),
    **dict.fromkeys(("gpt3", "llama3", "mamba", "mixtral", "qwen3"), ("block1",)),
}
"""Networks of more than 10^9 parameters, and the first of each kind of their blocks."""

PATIENCE: Final = 5.0
"""Seconds that what is left of a run has to end, before another process goes on."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is measured.

    Parameters
    ----------
    network : by name; with a part of it behind a slash
    seconds : of the processor, at most
    """

    network: str
    system: str
    batch: int
    method: str
    seconds: float


@dataclass(frozen=True, slots=True)
class First:
    """When a method had a plan.

    Parameters
    ----------
    status : of the run; ``refused`` where the method names what does not fit or is not for it
    seconds : of the processor; ``None`` where there was none within the limit
    message : why there was none
    cycles : of the best plan, evaluated once more
    """

    status: str
    seconds: float | None = None
    message: str = ""
    cycles: int = 0


HEAD = "| network | batch | method | s | why not |\n|---|---:|---|---:|---|"
SUMMARY = (
    "| method | networks | planned | median s | longest s | of | not planned |\n"
    "|---|---:|---:|---:|---:|---|---|"
)


def part_of(name: str) -> Network:
    """A network of the catalog, or the part that a name with a slash asks for."""
    whole, slash, prefix = name.partition("/")
    network = resolve_model(whole, 1)
    if not slash:
        return network
    inside = {layer.name for layer in network.layers if layer.name.startswith(f"{prefix}.")}
    links = [link for link in network.links if link.consumer in inside and link.producer in inside]
    read = {link.producer for link in network.links if link.consumer in inside}
    leaving = {link.producer for link in network.links if link.consumer not in inside} | (inside - read)
    layers = [layer for layer in network.layers if layer.name in inside]
    return Network(name, layers, links, outputs=[layer for layer in leaving & inside if layer is not None])


def first_plan(cell: Cell) -> First:
    """Run a method until its first plan."""
    network, machine = part_of(cell.network), load_tiled_machine(cell.system)
    limits = Limits(cell.seconds, threads=1, clock=time.process_time)

    def reported(point: TracePoint) -> None:
        if point.improved:
            limits.stop.set()

    limits = replace(limits, started=limits.clock())
    problem = TiledProblem(network, machine, tiled_objective("edp"), batch=cell.batch)
    try:
        result = plan_run(lambda: problem, cell.method, limits, reported).run()
    except InputError as error:
        return First("refused", message=str(error))
    if result.answer is None:
        return First(str(result.status), message=result.message or "no reason is given")
    seconds = next(point.seconds for point in result.trace if point.improved)
    cycles = problem.evaluate(result.answer.dag, result.answer.plan).cycles
    return First(str(result.status), seconds, result.message, cycles)


def measure(cells: Sequence[Cell]) -> None:
    """Print an answer per cell, up to the first run that does not end."""
    for cell in cells:
        prepare(cell.method)
    for cell in cells:
        print(json.dumps(asdict(first_plan(cell))), flush=True)
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join(PATIENCE)
        if threading.active_count() > 1:
            os._exit(0)


def measured(cells: Sequence[Cell]) -> Iterator[First]:
    """The answers to cells of a network, from processes of their own."""
    left = [asdict(cell) for cell in cells]
    while left:
        command = [sys.executable, "-m", "studies.tiled_first_plans", "--here", json.dumps(left)]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        lines = run.stdout.splitlines()
        yield from (First(**json.loads(line)) for line in lines)
        if run.returncode:
            yield First("error", message=f"the process ended with {run.returncode}")
        left = left[len(lines) + bool(run.returncode) :]


def row(cell: Cell, first: First) -> str:
    """As a line of the table of all runs."""
    seconds = "–" if first.seconds is None else f"{first.seconds:.2f}"
    reason = first.message if first.seconds is None else ""
    return f"| {cell.network} | {cell.batch} | {cell.method} | {seconds} | {reason} |"


def summary(method: str, firsts: Sequence[tuple[Cell, First]]) -> str:
    """One method over all networks, as a line."""
    planned = [(first.seconds, cell.network) for cell, first in firsts if first.seconds is not None]
    longest, of = max(planned, default=(0.0, "–"))
    middle = statistics.median(seconds for seconds, _ in planned) if planned else 0.0
    missing = ", ".join(cell.network for cell, first in firsts if first.seconds is None)
    return (
        f"| `{method}` | {len(firsts)} | {len(planned)} | {middle:.2f} | {longest:.2f} | {of} | {missing} |"
    )


def every_network() -> list[str]:
    """All of the catalog without a file, the largest of them block by block."""
    names = [name for name in list_models() if ":" not in name]
    return [part for name in names for part in ([f"{name}/{b}" for b in BLOCKS.get(name, ())] or [name])]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for and the store lacks; print each row, then a line per method."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", help="by default all of the catalog")
    parser.add_argument("--system", default="atomic-8x8")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of the processor, for each run")
    parser.add_argument("--methods", nargs="+", default=METHODS.names())
    parser.add_argument(
        "--store", type=Path, default=Path("first_plans.sqlite"), help="what is known; added to"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no network begins")
    parser.add_argument("--here", type=json.loads, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.here is not None:
        measure([Cell(**fields) for fields in asked.here])
        return
    store: AnswerStore[Cell, First] = AnswerStore(asked.store, First, APPLICATION, "first plans")
    cells = {
        name: [Cell(name, asked.system, asked.batch, method, asked.seconds) for method in asked.methods]
        for name in asked.networks or every_network()
    }
    end = time.monotonic() + 60 * asked.minutes
    print(HEAD, flush=True)
    for named in cells.values():
        missing = [cell for cell in named if store.get(cell) is None and time.monotonic() < end]
        for cell, first in zip(missing, measured(missing), strict=True):
            store.put(cell, first)
        for cell in named:
            known = store.get(cell)
            if known is not None:
                print(row(cell, known), flush=True)
    print(f"\n{SUMMARY}")
    for method in asked.methods:
        kept = [
            (cell, store.get(cell)) for named in cells.values() for cell in named if cell.method == method
        ]
        print(summary(method, [(cell, first) for cell, first in kept if first is not None]), flush=True)
    store.close()


if __name__ == "__main__":
    main()
