"""How long things take as ratios to a reference loop, and what has grown since an earlier run.

    python -m studies.speed --out speed.json
    python -m studies.speed --against speed.json

Seconds are those of the processor, of this process and of those that it starts, so that neighbours on the
machine count for little.  What is left of the machine's mood cancels, because the reference loop runs before
and after every single measurement.  Exit code 1 where something has grown by more than noise.
"""

from __future__ import annotations

import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy
import typer
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from tilewright import __version__
from tilewright.benchmarks.suites import suite
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.disk import write_file
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.files import read_data
from tilewright.solvers.mapping.solve import solve

TimedWork = Callable[[], object]

ARCH, SUITE, OBJECTIVE = "dmazerunner-256", "dmazerunner", "edp"
EVALUATIONS = 50
"""Evaluations of one mapping that are measured together."""

NOISE = 0.10
"""Growth that is never reported, however steady both runs were."""

Ratio = Annotated[FiniteFloat, Field(gt=0)]


class Measure(BaseModel):
    """Ratios of a task's time to the reference's: median and quartiles of all repetitions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    median: Ratio
    low: Ratio
    high: Ratio


class SpeedFile(BaseModel):
    """What one run measured, as it stands in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["tilewright.speed/1"] = Field("tilewright.speed/1", alias="schema")
    tilewright: str
    python: str
    machine: str
    repetitions: int
    ratios: dict[str, Measure]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One task now and in an earlier run."""

    name: str
    now: Measure
    then: Measure | None

    @property
    def growth(self) -> float | None:
        """The relative change of the medians; negative for what became faster."""
        return None if self.then is None else self.now.median / self.then.median - 1

    @property
    def has_grown(self) -> bool:
        """Whether the lower quartile lies above the upper one of then, and growth is more than noise."""
        return (
            self.then is not None
            and self.growth is not None
            and self.growth > NOISE
            and self.now.low > self.then.high
        )


def processor_seconds() -> float:
    """Processor time of this process, its threads, and the children that it has waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def reference() -> None:
    """A fixed loop, half in Python and half in numpy, that no change of this program touches."""
    counts: dict[int, int] = {}
    for number in range(120_000):
        key = number * 31 % 977
        counts[key] = counts.get(key, 0) + number // 7
    numbers = numpy.arange(200_000, dtype=numpy.int64)
    for factor in range(1, 16):
        numpy.unique(numbers * factor % 1009)


def measure(
    tasks: MappingABC[str, TimedWork],
    repetitions: int,
    clock: Callable[[], float] = processor_seconds,
    loop: TimedWork = reference,
) -> dict[str, Measure]:
    """Time every task between two reference loops, all tasks in turn, as often as wanted.

    Parameters
    ----------
    repetitions : at least 3, or there are no quartiles to speak of
    clock : seconds
    loop : what the times are divided by
    """

    def seconds(task: TimedWork) -> float:
        began = clock()
        task()
        return clock() - began

    for task in (loop, *tasks.values()):  # the first run compiles and fills caches
        task()
    ratios: dict[str, list[float]] = {name: [] for name in tasks}
    before = seconds(loop)
    for _ in range(repetitions):
        for name, task in tasks.items():
            taken, after = seconds(task), seconds(loop)
            ratios[name].append(2 * taken / (before + after))
            before = after
    return {name: quartiles(samples) for name, samples in ratios.items()}


def quartiles(ratios: Sequence[float]) -> Measure:
    """Median and quartiles of some ratios."""
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Measure(median=median, low=low, high=high)


def compare(now: MappingABC[str, Measure], then: MappingABC[str, Measure]) -> list[Comparison]:
    """Every task of now with what it was then."""
    return [Comparison(name, quarters, then.get(name)) for name, quarters in now.items()]


def read_speed(path: Path) -> SpeedFile:
    """An earlier run; raises ``InputError`` for a file that is not one."""
    try:
        return SpeedFile.model_validate(read_data(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or None
        raise InputError(str(path), place, first["msg"]) from None


def all_tasks() -> dict[str, TimedWork]:
    """What is measured: proofs of small layers, evaluations, and starts of the command line."""
    engine, objective = load_engine(ARCH), parse_objective(OBJECTIVE)
    tasks: dict[str, TimedWork] = {}
    cases = suite(SUITE)

    def proof(index: int) -> TimedWork:
        def task() -> None:
            problem = layer_problem(cases[index].operator, engine, objective)
            result = solve(problem, "branch", Limits(threads=1))
            if result.status is not Status.OPTIMAL:
                raise RuntimeError(f"{cases[index].name}: {result.status}: {result.message}")

        return task

    for index, case in enumerate(cases):
        tasks[f"proof of {case.name}"] = proof(index)
    problem = layer_problem(cases[0].operator, engine, objective)
    mapping = solve(problem, "branch", Limits(threads=1)).answer
    if mapping is None:
        raise RuntimeError(f"{cases[0].name}: no mapping")

    def evaluations() -> None:
        for _ in range(EVALUATIONS):
            evaluate_mapping(problem.operator, engine, problem.model, mapping)

    tasks[f"{EVALUATIONS} evaluations"] = evaluations

    def start(*args: str) -> TimedWork:
        return lambda: subprocess.run([sys.executable, "-P", *args], stdout=subprocess.DEVNULL, check=True)

    tasks["start of Python"] = start("-c", "pass")
    tasks["import tilewright"] = start("-c", "import tilewright")
    small = ("map", "gemm:M=4,N=4,K=4", "--arch", ARCH)
    for words in (("--version",), ("--help",), ("map", "--help"), ("list", "archs"), small):
        tasks[f"tilewright {' '.join(words)}"] = start("-m", "tilewright.cli", *words)
    return tasks


def table(comparisons: Sequence[Comparison]) -> str:
    """All tasks as a Markdown table."""
    lines = [
        "| task | times the reference loop | quartiles | before | change | |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for comparison in comparisons:
        then = "–" if comparison.then is None else f"{comparison.then.median:.3f}"
        growth = "–" if comparison.growth is None else f"{100 * comparison.growth:+.1f} %"
        mark = "has grown" if comparison.has_grown else ""
        quarter = f"{comparison.now.low:.3f} to {comparison.now.high:.3f}"
        lines.append(
            f"| {comparison.name} | {comparison.now.median:.3f} | {quarter} | {then} | {growth} | {mark} |"
        )
    return "\n".join(lines)


def run(
    against: Annotated[Path | None, typer.Option(help="an earlier run's file to compare with")] = None,
    out: Annotated[Path | None, typer.Option(help="write this run's file")] = None,
    repetitions: Annotated[int, typer.Option(min=3, help="measurements of every task")] = 9,
) -> None:
    """Measure, print a table, and report what has grown."""
    try:
        earlier = None if against is None else read_speed(against)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    began = time.monotonic()
    ratios = measure(all_tasks(), repetitions)
    comparisons = compare(ratios, {} if earlier is None else earlier.ratios)
    print(table(comparisons))
    elapsed = time.monotonic() - began
    print(f"\n{repetitions} repetitions, Python {platform.python_version()}, {elapsed:.0f} s.")
    if earlier is not None:
        for name in sorted(earlier.ratios.keys() - ratios.keys()):
            print(f"No longer measured: {name}.")
    if out is not None:
        content = SpeedFile(
            schema="tilewright.speed/1",
            tilewright=__version__,
            python=platform.python_version(),
            machine=platform.machine(),
            repetitions=repetitions,
            ratios=ratios,
        )
        write_file(out, content.model_dump_json(indent=2, by_alias=True) + "\n")
    grown = [comparison.name for comparison in comparisons if comparison.has_grown]
    if grown:
        print(f"Grown by more than noise: {', '.join(grown)}.", file=sys.stderr)
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(run)
