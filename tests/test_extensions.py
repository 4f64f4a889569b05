"""Extensions as users have them: installed packages with entry points, and files that calls import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from calls import caller

from tilewright.foundation.extensions import GROUPS, VARIABLE

MODULE = """
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.formulation.expression import maximum
from tilewright.formulation.mapping.cost.hierarchy import Hierarchy
from tilewright.heuristics.mapping.random_search import RandomSearch
from tilewright.workloads.blueprint import Blueprint

HERE = Path(__file__).parent
STRIP, PAIR, WORK = HERE / "strip.yaml", HERE / "pair.yaml", HERE / "work.yaml"
NUMBER = 7


@dataclass(frozen=True)
class Steady(Hierarchy):
    name = "steady"

    def statement(self, nest):
        stated = super().statement(nest)
        times = [time for what, time in stated.details.items() if "cycles" in what]
        return replace(stated, cycles=maximum(times))


@dataclass(frozen=True)
class Guessing(RandomSearch):
    name = "guessing"


def lenet(batch):
    net = Blueprint("lenet", batch)
    net.dense(net.flatten(net.conv(net.image(1, 8), 6, 5)), 10)
    return net
"""
ENTRY_POINTS = """
[tilewright.cost_models]
steady = own_tiles:Steady
hierarchy = own_tiles:Steady
[tilewright.heuristics]
guessing = own_tiles:Guessing
[tilewright.machines]
strip = own_tiles:STRIP
number = own_tiles:NUMBER
[tilewright.systems]
pair = own_tiles:PAIR
[tilewright.workloads]
work = own_tiles:WORK
[tilewright.networks]
lenet = own_tiles:lenet
broken = own_tiles_that_is_not_there:lenet
"""
STRIP = """
cost_model: steady
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 8}
levels:
  - {name: DRAM, energy: 200, bandwidth: 4 GB/s}
  - {name: GLB, capacity: 16 kB, energy: 6, bandwidth: 16 B/cycle}
"""
PAIR = """
memory: 16 kB
dram_bandwidth: 16 GB/s
sub_accelerators:
  - {name: deep, dataflow: nvdla, pes: 16, bandwidth: 4 GB/s}
  - {name: wide, dataflow: shidiannao, pes: 16, bandwidth: 12 GB/s}
"""
WORK = "networks: [{model: lenet}]\n"
FILE = """
from dataclasses import dataclass

from tilewright.foundation.registry import Entry
from tilewright.heuristics.mapping.random_search import RandomSearch
from tilewright.heuristics.mapping.registry import HEURISTICS


@dataclass(frozen=True)
class Throwing(RandomSearch):
    name = "throwing"


HEURISTICS.add("throwing", Entry(__name__, "Throwing", "random search by another name"))
"""
Ended = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with one that has entry points."""
    site = tmp_path_factory.mktemp("site")
    metadata = site / "own_tiles-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own-tiles\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    files = {"own_tiles.py": MODULE, "strip.yaml": STRIP, "pair.yaml": PAIR, "work.yaml": WORK}
    for name, text in files.items():
        (site / name).write_text(text)
    return site


def call(line: str, site: Path | None = None, folder: Path | None = None) -> Ended:
    """The program in a process of its own, with a folder of packages on its path."""
    return started(["-m", "tilewright", *line.split()], site, folder)


def started(words: list[str], site: Path | None = None, folder: Path | None = None) -> Ended:
    """A process of Python, with a folder of packages on its path."""
    environment = {key: value for key, value in os.environ.items() if key not in (VARIABLE, "PYTHONPATH")}
    if site is not None:
        environment["PYTHONPATH"] = str(site)
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)


def test_a_package_brings_machine_cost_model_network_and_method(installed: Path) -> None:
    """One call uses all four by name, and the document names them."""
    ended = call("map lenet -a strip --solver guessing -t 2 -q --format json", installed)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert (document["arch"]["name"], document["cost_model"]) == ("strip", "steady")
    assert {layer["solver"] for layer in document["layers"]} == {"guessing"}


LISTING = """
import sys
from tilewright.cli.main import run
for what in ("archs", "systems", "workloads", "methods", "models"):
    print(f"== {what}", file=sys.stderr)
    assert run(["list", what, "--format", "json"]) == 0
"""


def test_what_a_package_brings_is_listed(installed: Path) -> None:
    """The lists show it; what does not load is left out with a line that says so."""
    ended = started(["-c", LISTING], installed)
    assert ended.returncode == 0, ended.stderr
    for name in ("strip", "pair", "work", "guessing", "lenet"):
        assert f'"{name}"' in ended.stdout
    told = [line.split(": ")[1] if ": " in line else line for line in ended.stderr.splitlines()]
    lists = ("== archs", "number", "== systems", "== workloads", "== methods", "== models", "broken")
    assert told == [*lists]


def test_a_package_that_does_not_load_is_named(installed: Path) -> None:
    """What refers to nothing, and a machine that is no path, are one line with the package."""
    faults = {"broken": "own-tiles 1.0 does not load", "number": "own-tiles 1.0 to name a path, got 7"}
    for name, fault in faults.items():
        ended = call(f"show {name}", installed)
        assert ended.returncode == 2, ended.stderr
        assert fault in ended.stderr
        assert ended.stderr.count("\n") == 1
    assert call("show lenet", installed).returncode == 0


def test_names_that_ship_stay_what_they_are(installed: Path) -> None:
    """A package cannot replace the cost model ``hierarchy``."""
    line = "map gemm:M=4,N=4,K=4 -a tpu-edge -o cycles -q --format json"
    with_package, alone = (json.loads(call(line, site).stdout) for site in (installed, None))
    assert with_package["layers"][0]["value"] == alone["layers"][0]["value"]


def test_an_imported_file_serves_workers(tmp_path: Path) -> None:
    """``--import`` adds a method that worker processes of a benchmark know."""
    (tmp_path / "throwing.py").write_text(FILE)
    flags = "--arch tpu-edge --method throwing --import throwing.py --seeds 1 -t 1 --jobs 2 --format json"
    ended = call(f"bench gemm:M=4,N=4,K=4 {flags}", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "throwing" in ended.stdout
    assert "error" not in ended.stderr


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("missing.py", None, "missing.py: no such file"),
        ("notes.txt", "", "notes.txt: expected a Python file such as steady.py"),
        ("sub/types.py", "", "'types' is the name of another module"),
        ("crooked.py", "x = (", "crooked.py:1: SyntaxError: "),
        ("failing.py", "\nraise ValueError('no')", "failing.py:2: ValueError: no"),
        ("twice.py", FILE.replace('"throwing", Entry', '"annealing", Entry'), "'annealing' is registered"),
    ],
)
def test_a_faulty_file_is_one_line(
    tmp_path: Path,
    name: str,
    text: str | None,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line names the file and the reason, and the exit code is that of bad input."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    if text is not None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    ended = caller(capsys)("list", "suites", "--import", name)
    assert ended.code == 2, ended.err
    assert fault in ended.err
    assert ended.err.count("\n") == 1


def test_every_group_is_described() -> None:
    """The page on extensions names each group of entry points."""
    page = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    assert all(f"`tilewright.{group}`" in page for group in GROUPS)
