"""``evaluate``, ``show``, ``list``, ``doctor``, and the program itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from calls import SMALL, Call, finish, start
from clocks import delay

from tilewright.cli.catalog.listing import KINDS, Listing
from tilewright.hardware.mapping.load import list_presets
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.workloads.catalog import list_models

MAPPING = """\
tilewright: mapping/1
layer: gemm:M=4,N=2,K=8,name=tiny
arch: eyeriss-168
nodes:
  - {store: A, level: DRAM}
  - {store: B, level: DRAM}
  - {store: C, level: DRAM}
  - {temporal: M, tile: 2}
  - {store: A, level: GLB}
  - {store: C, level: GLB}
  - {spatial: K, tile: 2, axis: y}
  - {store: A, level: RF}
  - {store: B, level: RF}
  - {store: C, level: RF}
  - {temporal: M, tile: 1}
  - {temporal: N, tile: 1}
  - {temporal: K, tile: 1}
"""


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    """A legal mapping file, written by hand."""
    path = tmp_path / "tiny.yaml"
    path.write_text(MAPPING)
    return path


def test_evaluate_a_handwritten_mapping(call: Call, mapping: Path) -> None:
    """A mapping file evaluates to its metrics, as a table and as JSON."""
    outcome = call("evaluate", mapping)
    assert outcome.code == 0
    assert outcome.out.splitlines()[2:4] == [
        "legal",
        "inside the searched space: even storage, imperfect factors, tiles ceil(outer/n)",
    ]
    (layer,) = call("evaluate", mapping, "-f", "json").document["layers"]
    assert (layer["name"], layer["legal"], layer["metrics"]["macs"]) == ("tiny", True, 64)
    assert layer["value"] == layer["metrics"]["edp"]


def test_evaluate_lists_violations(call: Call, mapping: Path) -> None:
    """An illegal mapping is evaluated all the same; what it breaks is listed, with exit code 5."""
    mapping.write_text(MAPPING.replace("gemm:M=4,N=2,K=8", "gemm:M=4,N=2,K=8192"))
    outcome = call("evaluate", mapping, "--constraint", "cycles<=10")
    assert outcome.code == 5
    assert outcome.out.splitlines()[2] == "illegal: axis y of GLB: 4096 over 12"
    assert "illegal: constraint cycles<=10" in outcome.out
    layer = call("evaluate", mapping, "-f", "json").document["layers"][0]
    assert layer["legal"] is False
    assert layer["violations"]


@pytest.mark.parametrize("verb", ["evaluate", "show"])
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("  - {temporal: M, tile: 99}", "nodes[0] (line 5): tile 99 of M, expected 1 to 4"),
        ("  - {temporal: M, tile: x}", "nodes[0].tile (line 5): expected int, got 'x'"),
        ("  - {temporal: M}", "nodes[0] (line 5): expected {temporal, tile}"),
    ],
)
def test_errors_of_mappings_tell_the_line(call: Call, mapping: Path, verb: str, line: str, told: str) -> None:
    """What does not fit is told with its node and the line of the file, whoever reads it."""
    before, after = MAPPING.split("nodes:\n")
    mapping.write_text(f"{before}nodes:\n{line}\n{after}")
    outcome = call(verb, mapping)
    assert outcome.code == 2
    number = before.count("\n") + 2
    assert f"{mapping}: {told.replace('line 5', f'line {number}')}" in outcome.err


def test_evaluate_on_another_layer_and_machine(call: Call, mapping: Path) -> None:
    """--layer, --arch and --objective replace what the file says."""
    mapping.write_text(
        MAPPING.replace("arch: eyeriss-168\n", "").replace("layer: gemm:M=4,N=2,K=8,name=tiny\n", "")
    )
    args = ("--layer", "gemm:M=4,N=2,K=8", "-a", "eyeriss-256", "-o", "cycles", "-f", "json")
    (layer,) = call("evaluate", mapping, *args).document["layers"]
    assert (layer["arch"], layer["objective"]) == ("eyeriss-256", "cycles")
    assert layer["value"] == layer["metrics"]["cycles"]


def test_evaluate_layers_of_a_result(call: Call, result: Path) -> None:
    """A result document is evaluated layer by layer, or only the chosen ones."""
    assert len(call("evaluate", result, "-f", "json").document["layers"]) == 2
    chosen = call("evaluate", result, "--layers", "sec*", "-f", "json").document["layers"]
    assert [layer["name"] for layer in chosen] == ["second"]


def test_machine_beside_the_mapping(call: Call, tmp_path: Path, mapping: Path) -> None:
    """A machine file is looked for beside the mapping, and a saved mapping carries such a machine in full."""
    machine = tmp_path / "sub" / "own.yaml"
    machine.parent.mkdir()
    machine.write_text(
        "clock_mhz: 100\ncompute: {mac_energy: 1, element_bits: 8}\nlevels:\n"
        "  - {name: DRAM, energy: 100}\n  - {name: RF, energy: 1, elements: 64}\n"
    )
    (tmp_path / "sub" / "m.yaml").write_text(
        "tilewright: mapping/1\nlayer: gemm:M=2,N=1,K=1\narch: own.yaml\nnodes:\n"
        + "".join(f"  - {{store: {tensor}, level: DRAM}}\n" for tensor in "ABC")
        + "  - {temporal: M, tile: 1}\n"
        + "".join(f"  - {{store: {tensor}, level: RF}}\n" for tensor in "ABC")
    )
    assert call("evaluate", "sub/m.yaml").code == 0
    assert call("map", SMALL, "-a", machine, "-q", "--save-mappings", "maps").code == 0
    machine.unlink()
    assert yaml.safe_load(Path("maps/gemm.yaml").read_text())["arch"]["clock_mhz"] == "100"
    assert call("evaluate", "maps/gemm.yaml").code == 0


@pytest.mark.parametrize(
    "thing", ["tpu-edge", "onnx:squeezenet", SMALL, "tiny.yaml", "result.json", "net.yaml"]
)
def test_show_fits_80_columns(call: Call, mapping: Path, result: Path, network: Path, thing: str) -> None:
    """Machines, models, layers, mappings and results are shown in 80 columns."""
    (network.parent / "net.yaml").write_text(network.read_text())
    outcome = call("show", thing)
    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_show_tells_what_a_thing_is(call: Call, mapping: Path, result: Path) -> None:
    """A machine is a tree, a model a table, a layer its loops, a mapping a nest, a result all nests."""
    assert "└─ GBUF" in call("show", "tpu-edge").out
    assert "fire2/squeeze1x1" in call("show", "onnx:squeezenet").out
    assert "C[m, n] += A[m, k] * B[k, n]" in call("show", SMALL).out
    assert "par K in 4 (tile 2) on y" in call("show", mapping).out
    assert call("show", result).out.count("loop nest") == 2
    assert call("show", result, "--layers", "second").out.count("loop nest") == 1
    assert "batch 4" in call("show", "onnx:alexnet", "--batch", "4").out


def test_show_a_machine_file(call: Call, tmp_path: Path) -> None:
    """A YAML file with levels is a machine."""
    text = "clock_mhz: 1\ncompute: {mac_energy: 1, element_bits: 8}\nlevels:\n"
    levels = "  - {name: DRAM, energy: 1}\n  - {name: RF, energy: 1, elements: 8}\n"
    (tmp_path / "own.yaml").write_text(text + levels)
    assert call("show", "own.yaml").out.startswith("own\n")


def test_show_formulas(call: Call) -> None:
    """--formula prints named terms in 80 columns, cut unless -v is given."""
    short = call("show", SMALL, "--formula", "-a", "tpu-edge").out
    full = call("show", SMALL, "--formula", "-a", "tpu-edge", "-v").out
    assert "tile(A@GBUF) = K@GBUF * M@GBUF" in short
    assert "characters in all" in short
    assert "characters in all" not in full
    assert max(map(len, short.splitlines())) <= 80
    assert len(full) > len(short)


@pytest.mark.parametrize(
    ("what", "names"), [("archs", list_presets()), ("models", list_models()), ("solvers", SOLVERS.names())]
)
def test_list_names_everything(call: Call, what: str, names: list[str]) -> None:
    """Each list has every name, in every format."""
    table = call("list", what)
    assert table.code == 0
    assert max(map(len, table.out.splitlines())) <= 80
    for name in names:
        assert name in table.out
    key = what.removesuffix("s")
    if what != "models":  # each list of models builds all of them
        assert [row[key] for row in call("list", what, "-f", "json").document] == list(names)
        assert len(call("list", what, "-f", "csv").out.splitlines()) == len(names) + 1
        assert len(call("list", what, "-f", "jsonl").out.splitlines()) == len(names)


def test_list_of_nothing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of which there is nothing says so."""
    monkeypatch.setitem(KINDS, "systems", lambda: Listing(("system",), ()))
    outcome = call("list", "systems")
    assert (outcome.code, outcome.out) == (0, "no systems found\n")
    assert call("list", "systems", "-f", "json").document == []


def test_doctor(call: Call) -> None:
    """The doctor finds every package and times a proof; it complains where something is missing."""
    findings = {row["name"]: row for row in call("doctor", "-f", "json").document}
    for name in (
        "python",
        "machine",
        "tilewright",
        "ortools",
        "machines",
        "models",
        "proof",
        "schedule",
        "plan",
    ):
        assert findings[name]["ok"], findings[name]
    outcome = call("doctor")
    assert outcome.code == (0 if all(row["ok"] for row in findings.values()) else 1)
    assert "optimal in" in " ".join(outcome.out.split())


def test_doctor_tells_what_is_missing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is not there is named, with exit code 1."""
    monkeypatch.setattr("tilewright.cli.doctor._PACKAGES", ("numpy", "no-such-package"))
    outcome = call("doctor")
    assert outcome.code == 1
    assert "no-such-package" in outcome.out


def test_help_and_version_are_fast(tmp_path: Path) -> None:
    """Help loads neither numpy nor onnx nor a solver, and so takes well under half a second."""
    code = (
        "import sys, tilewright.cli.main as m; code = m.run(['--help']); "
        "print(sorted({'numpy', 'onnx', 'ortools', 'networkx', 'pydantic'} & set(sys.modules)), code)"
    )
    env = {**os.environ, "TERM": "dumb"}
    outcome = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
    )
    loaded, _, exit_code = outcome.stdout.splitlines()[-1].rpartition(" ")
    assert exit_code == "0"
    assert json.loads(loaded.replace("'", '"')) in ([], ["pydantic"])
    began = time.monotonic()
    assert finish(start(tmp_path, "--version")).out.startswith("tilewright ")
    assert time.monotonic() - began < 1 + delay()


def test_program_without_a_verb_shows_help(tmp_path: Path) -> None:
    """Without arguments the help is shown, as a usage error."""
    outcome = finish(start(tmp_path))
    assert outcome.code == 2
    assert "Usage: tilewright" in outcome.out + outcome.err


def test_unexpected_exception_is_one_line(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the program itself is one line and exit code 1; -v adds the traceback."""

    def broken(*_: object) -> None:
        raise RuntimeError("out of\nluck")

    monkeypatch.setattr("tilewright.api.mapping.machine.load_engine", broken)
    outcome = call("show", "tpu-edge")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "tilewright: error: RuntimeError: out of luck (-v shows the traceback)\n"
    assert "Traceback" in call("show", "tpu-edge", "-v").err


def test_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    """A reader that goes away ends the program quietly."""
    command = f"{sys.executable} -m tilewright.cli list models | head -1"
    outcome = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert outcome.stdout.startswith("model")
    assert outcome.stderr == ""
