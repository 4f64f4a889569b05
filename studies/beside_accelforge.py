"""A comparison with AccelForge's mapper: products of matrices on a machine that both read from one file.

    python -m studies.beside_accelforge --python PEER/bin/python

``--python`` is an interpreter that has AccelForge.  The machine is written in its format and converted as
``tilewright convert`` does.  Seconds are those of the processor: of a process from its start to its end, and
of a second call inside a process.  Both search perfect factors, here with uneven storage and with a proof.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.exchange.bundle import Settings
from tilewright.report.exchange.convert import convert
from tilewright.solvers.mapping.program import await_compiled
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operators import gemm

HERE = Path(__file__).parent
MACHINE = HERE / "machines" / "nvdla.accelforge.yaml"
PRODUCTS = {
    "512 x 768 x 768": (512, 768, 768),
    "BERT-base, feed forward": (512, 3072, 768),
    "GPT-3, attention": (2048, 12288, 12288),
    "GPT-3, feed forward": (2048, 49152, 12288),
}
"""M, N and K."""
OBJECTIVES = ("energy", "edp")
TURNS = 3
COLUMNS = (
    "product",
    "objective",
    "AccelForge, its count",
    "counted here",
    "found here",
    "status",
    "process [CPU s]: AccelForge",
    "here",
    "times",
    "a call inside [CPU s]: AccelForge",
    "here",
    "times",
)


@dataclass(frozen=True, slots=True)
class Run:
    """What one program found.

    Parameters
    ----------
    value : of the objective, in pJ and for the product also cycles, by the program's own count
    counted : by this one's
    process : CPU seconds from the start of a process to its end
    call : CPU seconds of the quickest call after the first in one process
    status : of the proof
    """

    value: float
    counted: float
    process: float
    call: float
    status: str = ""


def children_seconds() -> float:
    """CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peer(python: str, machine: Path, engine: Engine, sizes: tuple[int, int, int], objective: str) -> Run:
    """AccelForge's answer, in one process with one call and in another with several.

    Raises
    ------
    subprocess.CalledProcessError : where it fails
    InputError : for a mapping that is not legal here
    """
    asked = [python, str(HERE / "beside_accelforge_runner.py"), str(machine), *map(str, sizes), objective]
    before = children_seconds()
    reported = json.loads(_output([*asked, "1"]))
    process = children_seconds() - before
    again = json.loads(_output([*asked, str(TURNS)]))
    delay = reported["delay"] * float(engine.clock_mhz) * 1e6
    value = reported["energy"] * (delay if objective == "edp" else 1)
    m, n, k = sizes
    mapping = Mapping.from_data(reported["nodes"], "AccelForge's mapping")
    evaluation = evaluate_mapping(gemm(m=m, n=n, k=k), engine, cost_model("hierarchy"), mapping)
    if evaluation.violations:
        raise InputError("AccelForge's mapping", None, "; ".join(evaluation.violations))
    counted = float(evaluation.energy) * (evaluation.cycles if objective == "edp" else 1)
    return Run(value, counted, process, min(again["turns"][1:]))


def _output(command: Sequence[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return ended.stdout.strip().splitlines()[-1]


def own(machine: Path, sizes: tuple[int, int, int], objective: str, seconds: float) -> Run:
    """The answer here, from the command line and by calls."""
    m, n, k = sizes
    command = [
        sys.executable,
        "-P",
        "-m",
        "tilewright.cli",
        "map",
        f"gemm:M={m},N={n},K={k}",
        "--arch",
        str(machine),
    ]
    command += ["--objective", objective, "--storage", "uneven", "--factors", "perfect"]
    command += ["--time-limit", str(seconds), "--format", "json"]
    before = children_seconds()
    layer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["layers"][
        0
    ]
    process = children_seconds() - before
    engine, goal = load_engine(str(machine)), parse_objective(objective)
    await_compiled(lambda: False)
    calls = []
    for _ in range(TURNS):
        begun = time.process_time()
        problem = layer_problem(gemm(m=m, n=n, k=k), engine, goal, storage="uneven", factors="perfect")
        result = solve(problem, "auto", Limits(seconds, threads=1))
        calls.append(time.process_time() - begun)
    value = float("nan") if result.key is None else float(goal.value(result.key))
    return Run(value, value, process, min(calls[1:]), layer["status"])


def rows(python: str, machine: Path, objectives: Sequence[str], seconds: float) -> Iterator[str]:
    """The table, line by line."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---|---|" + "---:|" * (len(COLUMNS) - 2)
    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder) / "machine.yaml"
        files = convert([str(machine)], "tilewright", settings=Settings(element_bits=8)).outputs
        converted.write_text(files[0].text)
        engine = load_engine(str(converted))
        for name, sizes in PRODUCTS.items():
            for objective in objectives:
                theirs = peer(python, machine, engine, sizes, objective)
                ours = own(converted, sizes, objective, seconds)
                yield (
                    f"| {name} | {objective} | {theirs.value:.6g} | {theirs.counted:.6g} "
                    f"| {ours.value:.6g} | {ours.status} "
                    f"| {theirs.process:.2f} | {ours.process:.2f} | {theirs.process / ours.process:.1f} "
                    f"| {theirs.call:.3f} | {ours.call:.3f} | {theirs.call / ours.call:.1f} |"
                )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each row when it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", required=True, help="an interpreter that has AccelForge")
    parser.add_argument("--machine", type=Path, default=MACHINE, help="in AccelForge's format")
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=OBJECTIVES)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each search here")
    asked = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"
    for line in rows(asked.python, asked.machine, asked.objectives, asked.seconds):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
