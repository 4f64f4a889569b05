"""How long methods on a tiled machine take to their first plan, on networks of the catalog.

    python -m studies.tiled_first_plans --methods ls auto set

Seconds are those of the processor, with machine code compiled; a run ends with its first plan.  Each network
has a process of its own, and so has what follows a run that did not end in time, which would go on beside it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import TracePoint
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import plan_run, prepare
from tilewright.workloads.catalog import list_models, resolve_model


@dataclass(frozen=True, slots=True)
class Row:
    """When a method had a plan.

    Parameters
    ----------
    seconds : of the processor; ``None`` where there was none within the limit
    message : why there was none
    """

    network: str
    batch: int
    method: str
    seconds: float | None
    message: str

    def text(self) -> str:
        """As a line of a table."""
        seconds = "–" if self.seconds is None else f"{self.seconds:.2f}"
        return f"| {self.network} | {self.batch} | {self.method} | {seconds} | {self.message} |"


HEAD = "| network | batch | method | s | why not |\n|---|---:|---|---:|---|"


def first_plan(name: str, system: str, batch: int, method: str, seconds: float) -> Row:
    """Run a method until its first plan.

    Parameters
    ----------
    name, system, batch : of the problem
    method, seconds : what searches, and for how long at most
    """
    network, machine = resolve_model(name, 1), load_tiled_machine(system)
    limits = Limits(seconds, threads=1, clock=time.process_time)

    def reported(point: TracePoint) -> None:
        if point.improved:
            limits.stop.set()

    limits = replace(limits, started=limits.clock())
    problem = TiledProblem(network, machine, tiled_objective("edp"), batch=batch)
    try:
        result = plan_run(lambda: problem, method, limits, reported).run()
    except InputError as error:
        return Row(name, batch, method, None, str(error))
    first = next((point.seconds for point in result.trace if point.improved), None)
    return Row(name, batch, method, first, "" if first is not None else f"{result.status}: {result.message}")


def measure(name: str, asked: argparse.Namespace) -> None:
    """Print a row per method, up to the first run that does not end in time."""
    for method in asked.methods:
        prepare(method)
    for method in asked.methods:
        row = first_plan(name, asked.system, asked.batch, method, asked.seconds)
        print(row.text(), flush=True)
        if "left behind" in row.message:
            os._exit(0)


def rows(name: str, asked: argparse.Namespace) -> Iterator[str]:
    """A row per method on a network, from processes of their own."""
    left = [*asked.methods]
    figures = ["--system", asked.system, "--batch", str(asked.batch), "--seconds", str(asked.seconds)]
    while left:
        command = [sys.executable, "-m", "studies.tiled_first_plans", name, "--here", *figures]
        run = subprocess.run([*command, "--methods", *left], stdout=subprocess.PIPE, text=True, check=True)
        lines = run.stdout.splitlines()
        yield from lines
        left = left[len(lines) :]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for, and print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("networks", nargs="*", help="by default all of the catalog that are of batch 1")
    parser.add_argument("--system", default="atomic-8x8")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of the processor, for each run")
    parser.add_argument("--methods", nargs="+", default=METHODS.names())
    parser.add_argument("--here", action="store_true", help="rows alone, of one network, in this process")
    asked = parser.parse_args(arguments)
    if asked.here:
        measure(asked.networks[0], asked)
        return
    print(HEAD, flush=True)
    for name in asked.networks or [name for name in list_models() if ":" not in name]:
        for row in rows(name, asked):
            print(row, flush=True)


if __name__ == "__main__":
    main()
