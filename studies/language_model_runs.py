"""Every family of networks on three machines, each pass in a run of its own, and the tables of all.

    python -m studies.language_model_runs runs
    python -m studies.language_model_runs runs --machines ethos-u65 --networks 'llama3*'

Language models read a prompt of 2,048 tokens, and add a token for each of 32 sequences behind 8,191 cached
ones; the others run once.  A run is a process with one thread that has so many seconds of the processor, so
that figures do not depend on what else the computer does.  Documents stand in the folder; a run that is there
is not done again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

import tilewright as tw
from studies.language_models import tables
from tilewright.api.arguments import SearchRequest, read_budget
from tilewright.api.mapping.network import NetworkOnMachine
from tilewright.formulation.limits import Limits
from tilewright.formulation.stopping import Seconds
from tilewright.foundation.disk import write_file
from tilewright.foundation.pool import Call, computed
from tilewright.solvers.mapping.compiled.program import await_compiled
from tilewright.workloads.families import with_parameters

MACHINES = ("tpu-v4i", "a100", "ethos-u65")
DECODERS = (
    "deepseek-v3",
    "gpt2[size=small]",
    "gpt3[size=6.7B]",
    "gpt3[size=175B]",
    "llama3[size=8B]",
    "llama3[size=70B]",
    "mamba[size=2.8B]",
    "mixtral[size=8x7B]",
    "mixtral[size=8x22B]",
    "qwen3[size=8B]",
    "qwen3[size=30B-A3B]",
    "t5[size=base]",
    "whisper[size=small]",
)
OTHERS = (
    "bert[size=base]",
    "clip[size=B32]",
    "convnext[size=T]",
    "mobilenet-v3[size=large]",
    "stable-diffusion",
    "vit[size=B]",
    "vit[size=L]",
)
PREFILL = {"phase": "prefill", "tokens": 2048, "batch": 1}
DECODE = {"phase": "decode", "cached": 8191, "batch": 32}


@dataclass(frozen=True, slots=True)
class Cell:
    """One pass of a network on a machine."""

    machine: str
    network: str

    @property
    def file(self) -> str:
        """Of its document."""
        return re.sub(r"[^\w.-]+", "-", f"{self.machine}-{self.network}").strip("-") + ".json"


@dataclass(frozen=True)
class Processor(SearchRequest):
    """A request whose seconds are those of the processor."""

    def limits(self, *, gap: float | None = None) -> Limits:
        """Those of `SearchRequest`, by the other clock."""
        return replace(super().limits(gap=gap), clock=time.process_time, started=time.process_time())


def cells(machines: list[str], patterns: list[str]) -> Iterator[Cell]:
    """The runs that are asked for, machine by machine."""
    passes = [with_parameters(name, phase) for name in DECODERS for phase in (PREFILL, DECODE)]
    for machine in machines:
        for network in sorted([*passes, *OTHERS]):
            if any(fnmatchcase(network, pattern) for pattern in patterns):
                yield Cell(machine, network)


def mapped(cell: Cell, seconds: float) -> str:
    """The document of a cell, least energy-delay product of each layer, in so many seconds at most."""
    question = tw.network(cell.network).on(cell.machine, "edp")
    assert isinstance(question, NetworkOnMachine)
    request = Processor(None, read_budget(Seconds(seconds), 1, 0), Event())
    return question.answer(request).to_text("json")


def run(
    folder: Annotated[Path, typer.Argument(help="of the documents")],
    machines: Annotated[str, typer.Option(help="comma-separated")] = ",".join(MACHINES),
    networks: Annotated[str, typer.Option(help="comma-separated glob patterns")] = "*",
    seconds: Annotated[float, typer.Option(help="of the processor, for each run")] = 120.0,
) -> None:
    """Run what is missing, and print the tables of what is asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = [*cells(machines.split(","), networks.split(","))]
    await_compiled(lambda: False)
    waiting = iter([cell for cell in asked if not (folder / cell.file).exists()])

    def call() -> Call[Cell] | None:
        cell = next(waiting, None)
        return None if cell is None else Call(cell, (cell, seconds))

    for cell, future in computed(mapped, call, 1, lambda: False, fresh=True):
        write_file(folder / cell.file, future.result())
        typer.echo(f"{cell.machine} {cell.network}", err=True)
    print("\n".join(tables([folder / cell.file for cell in asked])))


if __name__ == "__main__":
    typer.run(run)
