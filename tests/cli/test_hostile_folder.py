"""Calls from a folder full of modules that must not run, each named like one that is imported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from tilewright.cli.main import VERBS

MARKS = "executed"
HOSTILE = f"open({MARKS!r}, 'a').write(__name__ + chr(10))\nraise ImportError('hostile')\n"

PROGRAM = "from tilewright.cli.__main__ import main\nmain()\n"
"""What an installation puts into its folder of programs."""

LAYER, ARCH, MAZE = "gemm:M=8,N=4,K=8", "eyeriss-168", "dmazerunner-256"
SYSTEM = "hda-edge-maelstrom"
Calls = dict[str, list[tuple[str, ...]]]
QUICK: Calls = {
    "map": [(LAYER, "-a", ARCH, "-f", "json", "--out", "r.json", "--save-mappings", "m")],
    "evaluate": [("mapping.yaml", "--layer", LAYER, "-a", ARCH, "-f", "json")],
    "check": [("r.json", "-f", "json")],
    "emit": [("r.json", "--to", target) for target in ("python", "json")],
    "convert": [(ARCH, "--to", "timeloop", "--lossy")],
    "list": [("archs",), ("models",), ("methods",)],
    "show": [(ARCH,)],
    "explore": [
        (
            LAYER,
            "-a",
            "dmazerunner-256",
            "--vary",
            "levels.RF.capacity=64B,128B",
            "-j",
            "2",
            "-o",
            "edp",
            "-f",
            "json",
        )
    ],
    "bench": [("tiny", "-a", "tpu-edge", "--layers", "000*", "-m", "kapla", "-j", "2", "-f", "json")],
    "runs": [("-f", "json")],
}
"""Calls of one verb after the other in one folder."""
LONG: Calls = {
    "map": [
        (LAYER, "-a", ARCH, "--solver", solver, "-t", "20", "-f", "json")
        for solver in ("branch", "cpsat", "highs", "cbc", "exhaustive", "annealing", "dmazerunner")
    ],
    "schedule": [
        ("ar-vr-a", "--system", SYSTEM, "-t", "8", "-f", "json"),
        ("alexnet", "--system", "atomic-2x2", "-m", "ls", "-t", "8", "-f", "json"),
    ],
    "codesign": [("ar-vr-a", "--class", "edge", "-t", "8", "-f", "json")],
    "compare": [
        ("alexnet", "--system", "atomic-2x2", "--methods", "ls,set", "-t", "8", "-j", "2", "-f", "json")
    ],
    "doctor": [("-f", "json")],
}
"""Calls that take longer: solvers in processes of their own, cost tables, compiling."""
PASSING = re.compile(
    r"wall|trace|second|took|time|version|date|gap|bound|history|_s$|memory|host|machine|command|inputs|store|path|integral|ended"
)
"""Fields that differ between two runs of one call."""


@dataclass(frozen=True)
class Reported:
    """What a series of calls left behind."""

    codes: list[int]
    outputs: list[Any]
    marks: str


def modules() -> set[str]:
    """Everything that might be imported: the standard library and all that is installed."""
    names = {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize"}
    return {name for name in names if name.isidentifier()}


def first_of_python() -> set[str]:
    """What ``python -m`` loads with the current folder before all others, ahead of any program."""
    program = "import sys, runpy, pkgutil\nprint(*(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-S", "-P", "-c", program], capture_output=True, text=True)
    return set(done.stdout.split())


def hostile(folder: Path, names: Iterable[str]) -> Path:
    """A folder in which all of these are modules."""
    folder.mkdir()
    for number, name in enumerate(sorted(names)):
        if number % 3:
            (folder / f"{name}.py").write_text(HOSTILE)
        else:
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text(HOSTILE)
    return folder


def clean(folder: Path) -> Path:
    """An empty folder."""
    folder.mkdir()
    return folder


def essence(output: str) -> Any:
    """What two runs of one call have in common."""
    try:
        return _kept(json.loads(output))
    except ValueError:
        return re.sub(r"\d+(\.\d+)? (ms|s|min)\b", "…", output)


def _kept(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _kept(value) for key, value in data.items() if not PASSING.search(key)}
    return [_kept(value) for value in data] if isinstance(data, list) else data


def called(folder: Path, entry: list[str], calls: Calls) -> Reported:
    """Make calls in a folder, one after the other."""
    codes, outputs = [], []
    for verb, all_words in calls.items():
        for words in all_words:
            if verb == "evaluate":
                shutil.copy(next((folder / "m").iterdir()), folder / "mapping.yaml")
            done = subprocess.run(
                [sys.executable, *entry, verb, *words], cwd=folder, capture_output=True, text=True
            )
            assert "Traceback" not in done.stderr, done.stderr
            codes.append(done.returncode)
            outputs.append((verb, words, essence(done.stdout), done.stderr if done.returncode else ""))
    marks = folder / MARKS
    return Reported(codes, outputs, marks.read_text() if marks.exists() else "")


def compared(tmp_path: Path, calls: Calls, way: str, *, exact: bool = True) -> list[int]:
    """The same calls from a clean and from a hostile folder: nothing runs, and the answers are the same."""
    program = clean(tmp_path / "programs") / "tilewright"
    program.write_text(PROGRAM)
    entry = {"program": [str(program)], "module": ["-m", "tilewright"], "cli": ["-m", "tilewright.cli"]}[way]
    names = modules() if way == "program" else modules() - first_of_python()
    reported = called(hostile(tmp_path / "hostile", names), entry, calls)
    assert reported.marks == ""
    if exact:
        without = called(clean(tmp_path / "clean"), entry, calls)
        assert reported.codes == [0] * len(reported.codes) == without.codes, reported.outputs
        assert reported.outputs == without.outputs
    return reported.codes


def test_every_verb_is_called() -> None:
    """No verb is left out of the calls below."""
    assert {*QUICK, *LONG} == set(VERBS)


def test_the_planted_modules_would_run(tmp_path: Path) -> None:
    """What the tests below rest on: a program that looks in the folder runs what lies there."""
    folder = hostile(tmp_path / "hostile", {"graphlib", "tilewright"})
    for name in ("graphlib", "tilewright"):
        program = f"import contextlib\nwith contextlib.suppress(ImportError): import {name}"
        subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
    assert (folder / MARKS).read_text().split() == ["graphlib", "tilewright"]


@pytest.mark.parametrize(("way", "verb"), [("program", "bench"), ("cli", "explore")])
def test_no_worker_runs_anything_of_the_folder(tmp_path: Path, way: str, verb: str) -> None:
    """Pools of workers; ``python -m`` looks in the folder, which the program leaves before it imports."""
    codes = compared(tmp_path, {verb: QUICK[verb]}, way, exact=(way, verb) == ("cli", "explore"))
    assert set(codes) == {0}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["program", "module", "cli"])
def test_quick_verbs_run_nothing_of_the_folder(tmp_path: Path, way: str) -> None:
    """Neither the program nor its workers."""
    compared(tmp_path, QUICK, way)


@pytest.mark.slow
@pytest.mark.parametrize("verb", LONG)
@pytest.mark.parametrize("way", ["program", "cli"])
def test_long_verbs_run_nothing_of_the_folder(tmp_path: Path, verb: str, way: str) -> None:
    """Solvers in processes of their own, pools, cost tables, compiled code: what a limit cuts may differ."""
    codes = compared(tmp_path, {verb: LONG[verb]}, way, exact=False)
    expected = {0, 1} if verb == "doctor" else {0, 4}  # on a busy machine a limit strikes before an answer
    assert {*codes} <= expected


WORKER_CALLS = """
import tilewright as tw

layer = tw.layer("gemm:M=8,N=4,K=8")
machine = tw.machine("eyeriss-168")
sizes = {"levels.RF.capacity": "64B,128B"}
explored = tw.explore(layer, "dmazerunner-256", sizes, jobs=2, stop=tw.seconds(60))
print(explored.to_dict()["best"] is not None)
"""
INTERFACE = """
import tilewright as tw

layer = tw.layer("gemm:M=8,N=4,K=8")
machine = tw.machine("eyeriss-168")
question = layer.on(machine, objective="edp")
found = tw.solve(question, stop=tw.seconds(30))
print(found.status, found.key)
print(tw.solve(question, method="cpsat", stop=tw.seconds(30)).key)
print(tw.solve(question, method="highs", stop=tw.seconds(60)).key)
print(tw.evaluate(found.mapping, question).key)
print(tw.check(found, prove=True, stop=tw.seconds(30)).holds)
print(tw.map_network("gemm:M=8,N=4,K=8", machine, objective="edp", stop=tw.seconds(30)).to_dict()["totals"])
sizes = {"levels.RF.capacity": "64B,128B"}
explored = tw.explore(layer, "dmazerunner-256", sizes, jobs=2, stop=tw.seconds(60))
print(explored.to_dict()["best"] is not None)
"""
SCHEDULES = """
import tilewright as tw

layer = tw.layer("gemm:M=8,N=4,K=8")
plan = tw.solve(tw.workload("ar-vr-a").on(tw.system("hda-edge-maelstrom")), stop=tw.seconds(8))
ended = ("optimal", "feasible", "unknown")  # the last: on a busy machine the limit strikes before an answer
print(plan.status in ended)
grid = tw.tiled_machine("atomic-2x2")
print(tw.solve(tw.workload("alexnet").on(grid), method="ls", stop=tw.seconds(8)).status in ended)
print(tw.codesign("ar-vr-a", "edge", stop=tw.seconds(8)).status in ended)
"""
WAYS = {"script": [], "-c": ["-P", "-c"], "input": ["-P", "-"]}


def interface(tmp_path: Path, text: str, way: str, printed: str | None = None) -> None:
    """A program without a guard, called in a hostile folder, and in a clean one if its output is unknown."""
    program = clean(tmp_path / "programs") / "program.py"
    program.write_text(text)
    results = [printed] if printed is not None else []
    for folder in (clean(tmp_path / "clean"), hostile(tmp_path / "hostile", modules()))[len(results) :]:
        words = [*WAYS[way], *({"script": [str(program)], "-c": [text]}.get(way, []))]
        done = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            input=text if way == "input" else None,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert not (folder / MARKS).exists()
        results.append(done.stdout)
    assert results[0] == results[1]


def test_workers_of_the_interface_run_nothing_of_the_folder(tmp_path: Path) -> None:
    """Nor do they run the program again, which has no guard."""
    interface(tmp_path, WORKER_CALLS, "script", "True\n")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", [INTERFACE, SCHEDULES], ids=["mappings", "schedules"])
def test_the_interface_runs_nothing_of_the_folder(tmp_path: Path, way: str, text: str) -> None:
    """Calls of every kind from a file, a text and standard input: proofs, cost tables, plans, a chip."""
    interface(tmp_path, text, way)
