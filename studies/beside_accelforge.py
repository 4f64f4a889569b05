"""A comparison with AccelForge's mapper on machines that both programs read from one file.

    python -m studies.beside_accelforge --python PEER/bin/python

``--python`` is an interpreter that has AccelForge.  Machines are written in its format and converted as
``tilewright convert`` does.  Both programs count both mappings, where the other one's rules allow them.
Seconds are those of the processor: of a process from its start to the end of its first call, and of a second
call inside it.  Both search perfect factors, here with uneven storage and a proof.  The cases are in
`beside_accelforge_cases`; ``--cases`` chooses some by their numbers, from 1 on.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies.beside_accelforge_cases import CASES, Case, containers_of, workload_text
from studies.beside_accelforge_nodes import from_peer, to_peer
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.exchange.bundle import Settings
from tilewright.report.exchange.convert import convert

HERE = Path(__file__).parent
COLUMNS = (
    "kind",
    "layer",
    "machine",
    "objective",
    "AccelForge's mapping: its count",
    "counted here",
    "mapping found here: AccelForge's count",
    "counted here",
    "proof",
    "process [CPU s]: AccelForge",
    "here",
    "times",
    "second call [CPU s]: AccelForge",
    "here",
    "times",
)
_NAMES = 4  # columns of names


@dataclass(frozen=True, slots=True)
class Run:
    """What one program found.

    Parameters
    ----------
    theirs, ours : the objective's value by AccelForge's and by this program's count, in pJ, cycles, or both
        multiplied; ``None`` where there is no mapping, or the program calls it illegal
    process : CPU seconds from the start of a process to the end of its first call
    call : CPU seconds of the second call in it; of the first where there was no second
    proof : ``optimal``, or the gap
    """

    theirs: float | None
    ours: float | None
    process: float
    call: float
    proof: str = ""


def _asked(command: Sequence[str], question: dict[str, Any], folder: Path) -> tuple[dict[str, Any], float]:
    """What a program answers, and the CPU seconds that its process took.

    Raises
    ------
    subprocess.CalledProcessError : where it fails
    """
    file = folder / "question.json"
    file.write_text(json.dumps(question))
    before = _children_seconds()
    ended = subprocess.run([*command, str(file)], capture_output=True, text=True, check=True)
    return json.loads(ended.stdout.strip().splitlines()[-1]), _children_seconds() - before


def _children_seconds() -> float:
    """CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True, slots=True)
class Comparison:
    """One case, and where its questions are answered.

    Parameters
    ----------
    python : the interpreter that has AccelForge
    machine : the machine's file here, converted
    engine : what that file says
    folder : for questions
    seconds : for each search here
    """

    case: Case
    python: str
    machine: Path
    engine: Engine
    folder: Path
    seconds: float

    def peer(self) -> Run:
        """AccelForge's answer."""
        question = self._question() | {"objective": self.case.objective, "turns": 2}
        answer, seconds = self._ask_peer(question)
        second = answer["turns"][1]
        return Run(self._value(answer), self._counted(answer["nodes"]), seconds - second, second)

    def own(self) -> Run:
        """The answer here."""
        question = {
            "arch": str(self.machine),
            "layer": self.case.layer,
            "objective": self.case.objective,
            "turns": 2,
            "seconds": self.seconds,
        }
        answer, seconds = _asked(
            [sys.executable, str(HERE / "beside_accelforge_own.py")], question, self.folder
        )
        turns, gap = answer["turns"], answer["gap"]
        proof = answer["status"] if answer["status"] != "feasible" else f"gap {100 * gap:.1f} %"
        theirs = None if answer["nodes"] is None else self._counted_by_peer(answer["nodes"])
        return Run(theirs, answer["value"], seconds - sum(turns[1:]), turns[-1], proof)

    def _question(self) -> dict[str, Any]:
        return {"arch": str(self.case.file), "workload": workload_text(self.case.operator)}

    def _ask_peer(self, question: dict[str, Any]) -> tuple[dict[str, Any], float]:
        return _asked([self.python, str(HERE / "beside_accelforge_runner.py")], question, self.folder)

    def _value(self, answer: dict[str, Any]) -> float:
        """The objective of what AccelForge counts."""
        cycles = answer["delay"] * float(self.engine.clock_mhz) * 1e6
        return _objective(self.case, answer["energy"], cycles)

    def _counted(self, nodes: Sequence[dict[str, Any]]) -> float | None:
        """The objective of AccelForge's mapping, counted here; ``None`` if no reading of it is legal."""
        operator, model = self.case.operator, cost_model("hierarchy")
        values: list[float] = []
        violations: list[str] = []
        for reading in from_peer(nodes, operator):
            mapping = Mapping.from_data(reading, "AccelForge's mapping")
            evaluation = evaluate_mapping(operator, self.engine, model, mapping)
            violations += evaluation.violations
            if not evaluation.violations:
                values.append(_objective(self.case, float(evaluation.energy), evaluation.cycles))
        if not values:
            print(f"{self.case}: illegal here: {violations[0]}", file=sys.stderr)
        return min(values, default=None)

    def _counted_by_peer(self, nodes: list[dict[str, Any]]) -> float | None:
        """The objective of a mapping, counted by AccelForge; ``None`` if it refuses every reading of it."""
        containers, compute = containers_of(self.case.file)
        values, failures = [], []
        for reading in to_peer(nodes, self.case.operator):
            question = self._question() | {"nodes": reading, "containers": containers, "compute": compute}
            try:
                values.append(self._value(self._ask_peer(question)[0]))
            except subprocess.CalledProcessError as failure:
                failures.append(failure.stderr.strip()[-300:])
        if not values:
            print(f"{self.case}: refused by AccelForge: {failures[0]}", file=sys.stderr)
        return min(values, default=None)


def _objective(case: Case, energy: float, cycles: float) -> float:
    return {"energy": energy, "cycles": cycles, "edp": energy * cycles}[case.objective]


def converted(case: Case, folder: Path) -> Path:
    """The case's machine in this program's format; raises ``InputError`` for a loss that changes answers."""
    conversion = convert([str(case.file)], "tilewright", settings=Settings(element_bits=8))
    if conversion.grave:
        raise InputError(str(case.file), None, str(conversion.grave[0]))
    file = folder / f"{case.machine}.yaml"
    file.write_text(conversion.outputs[0].text)
    return file


def rows(python: str, cases: Sequence[Case], seconds: float) -> Iterator[str]:
    """The table, line by line."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * _NAMES + "|" + "---:|" * (len(COLUMNS) - _NAMES)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            machine = converted(case, Path(folder))
            engine = load_engine(str(machine))
            comparison = Comparison(case, python, machine, engine, Path(folder), seconds)
            theirs, ours = comparison.peer(), comparison.own()
            counts = (theirs.theirs, theirs.ours, ours.theirs, ours.ours)
            yield (
                f"| {case.about} | `{case.layer}` | {case.machine} | {case.objective} "
                f"| {' | '.join(map(_shown, counts))} "
                f"| {ours.proof} "
                f"| {theirs.process:.2f} | {ours.process:.2f} | {theirs.process / ours.process:.1f} "
                f"| {theirs.call:.2f} | {ours.call:.2f} | {theirs.call / ours.call:.1f} |"
            )


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.5g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each row when it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", required=True, help="an interpreter that has AccelForge")
    parser.add_argument("--cases", nargs="+", type=int, choices=range(1, len(CASES) + 1), metavar="NUMBER")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the processor, for each search here")
    asked = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"
    cases = CASES if asked.cases is None else [CASES[number - 1] for number in asked.cases]
    for line in rows(asked.python, cases, asked.seconds):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
