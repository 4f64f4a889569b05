"""``tilewright convert``: what it writes, what it refuses, what it tells, and the same from Python."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from calls import Call, caller

import tilewright as tw
from tilewright.report.exchange import registry

DATA = Path(__file__).parents[1] / "data" / "convert"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the command line in a folder with the samples."""
    for path in DATA.glob("*.yaml"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return caller(capsys)


def test_refused_rather_than_wrong(call: Call, tmp_path: Path) -> None:
    """What changes an answer is listed and nothing is written but the report; ``--lossy`` writes it."""
    given = ["convert", "eyeriss.arch.yaml", "--to", "tilewright", "--out", "m.yaml", "--report", "r.json"]
    outcome = call(*given)
    assert outcome.code == 2
    assert not (tmp_path / "m.yaml").exists()
    assert "eyeriss.arch.yaml:17: architecture.nodes[3]: this file lacks its energy" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("tilewright: error: eyeriss.arch.yaml: 7 losses")
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["schema"], report["complete"], report["written"]) == (
        "tilewright.conversion/1",
        False,
        False,
    )
    lost = [loss for loss in report["losses"] if loss["effect"] == "cost"]
    assert [loss["line"] for loss in lost][:2] == [9, 17]
    (tmp_path / "folder").mkdir()
    assert call(*given[:4], "--lossy", "--out", "folder", "--report", "r.json").code == 0
    assert json.loads((tmp_path / "r.json").read_text())["written"] is True
    assert tw.machine(tmp_path / "folder" / "machine.yaml").pes == 168


def test_import_map_and_export(call: Call, tmp_path: Path) -> None:
    """Three files in, a proven mapping under the imported constraints, and that mapping out again."""
    files = ["tpu.accelerator.yaml", "tpu.workload.yaml", "tpu.mapping.yaml"]
    assert call("convert", *files, "--to", "tilewright", "--lossy", "--out", "own", "-q").err == ""
    mapped = call(
        *["map", "own/layers.yaml", "-a", "own/machine.yaml", "--factors", "perfect", "-o", "energy"],
        *["--constraint", "@own/constraints.txt", "--require-optimal", "--out", "r.json", "-q"],
    )
    assert mapped.code == 0
    assert call("convert", "r.json", "--to", "timeloop", "--lossy", "--out", "peer").code == 0
    names = {path.name for path in (tmp_path / "peer").iterdir()}
    assert names == {"arch.yaml", "ert.yaml", "problem.yaml", "mapping.yaml"}
    assert call("convert", "r.json", "--to", "zigzag", "--lossy").out.count("---") == 2


def test_what_is_no_file_of_a_peer(call: Call, tmp_path: Path) -> None:
    """Unknown targets, files that hold nothing known, templates and broken YAML are one line each."""
    (tmp_path / "odd.yaml").write_text("a: 1\n")
    (tmp_path / "template.yaml").write_text("# one\narch: {% if x %}\n")
    (tmp_path / "broken.yaml").write_text("architecture:\n  nodes: [\n")
    (tmp_path / "old.yaml").write_text("architecture: {version: 0.3, subtree: []}\n")
    for args, reported in [
        (("eyeriss.arch.yaml", "--to", "zigzig"), "--to: unknown name 'zigzig', did you mean 'zigzag'?"),
        (("odd.yaml", "--to", "tilewright"), "odd.yaml: has no known content of another program"),
        (("template.yaml", "--to", "tilewright"), "template.yaml:2: its template cannot be rendered"),
        (("broken.yaml", "--to", "tilewright"), "broken.yaml:3: column 1: not valid YAML"),
        (("old.yaml", "--to", "tilewright"), "old.yaml:1: architecture.subtree: an architecture before"),
        (("nowhere.yaml", "--to", "tilewright"), "nowhere.yaml: cannot be read"),
        (("nvdla-256", "--to", "accelforge"), "--to: unknown name 'accelforge'"),
        (("nvdla.arch.yaml", "--to", "tilewright", "--energy", "DRAM"), "--energy: DRAM: expected a level"),
    ]:
        outcome = call("convert", *args)
        assert outcome.code == 2
        assert reported in outcome.err.splitlines()[-1]


def test_one_part_goes_into_a_folder_too(call: Call, tmp_path: Path) -> None:
    """A name without a suffix is a folder however many parts there are, and what stands in it is named."""
    outcome = call("convert", "nvdla.arch.yaml", "--to", "tilewright", "--lossy", "--out", "own")
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["machine.yaml"]
    assert outcome.err.splitlines()[0] == f"tilewright: {Path('own') / 'machine.yaml'}"


def test_files_of_other_programs_are_known(call: Call) -> None:
    """Other verbs say of a file of another program which program's it is, and what reads it."""
    layer = "gemm:M=4,N=4,K=4"
    for args, told in [
        (("map", layer, "-a", "eyeriss.arch.yaml"), "a file of timeloop: `convert eyeriss.arch.yaml --to"),
        (("show", "tpu.accelerator.yaml"), "a file of zigzag: `convert tpu.accelerator.yaml --to"),
        (("map", "small.problem.yaml", "-a", "nvdla-256"), "a file of timeloop"),
    ]:
        outcome = call(*args)
        assert outcome.code == 2
        assert told in outcome.err.splitlines()[-1]


def test_repeated_keys_are_told(call: Call, tmp_path: Path) -> None:
    """Of a key that stands twice the last counts; that is a loss, with its line."""
    text = (DATA / "nvdla.arch.yaml").read_text().replace("size: 1024*16*8", "size: 8\n    size: 1024*16*8")
    (tmp_path / "twice.yaml").write_text(text)
    outcome = call("convert", "twice.yaml", "--to", "tilewright", "--lossy")
    assert "elements: 16384" in outcome.out
    assert "[cost] twice.yaml:18: size: appears more than once" in outcome.err


def test_constraints_alone_need_their_machine(call: Call, tmp_path: Path) -> None:
    """Constraints name levels: without an architecture they are refused, with ``--arch`` they are stated."""
    (tmp_path / "c.yaml").write_text(
        "constraints:\n  targets:\n"
        "  - {target: CBUF, type: temporal, factors: [C=0, K<=4], permutation: [C, K]}\n"
        "  - {target: k, type: spatial, factors: [K=16]}\n"
        "  - {target: CBUF, type: dataspace, keep: [Weights]}\n"
    )
    alone = call("convert", "c.yaml", "--to", "tilewright")
    assert "c.yaml:3: constraints.targets[0]: expected an architecture" in alone.err
    layer = "conv:K=8,C=4,P=3,Q=3,R=1,S=1"
    outcome = call("convert", "c.yaml", "--to", "tilewright", "-a", "nvdla-256", "--layer", layer, "--lossy")
    assert outcome.out.splitlines() == ["trips(C@CBUF)=4", "trips(K@CBUF)<=4", "spatial(K@k)=16"]
    assert (
        "[space] c.yaml:5: constraints.targets[2]: the machine file states what a level stores" in outcome.err
    )


def test_from_python() -> None:
    """A conversion has texts, losses with their lines, and the machine."""
    conversion = tw.convert([DATA / "nvdla.arch.yaml"], "tilewright")
    assert conversion.machine is not None
    assert conversion.machine.pes == 128
    assert [loss.line for loss in conversion.losses if loss.effect == "space"] == [28]
    assert not conversion.complete
    back = tw.convert(conversion.machine, "timeloop")
    assert set(back.texts) == {"arch.yaml", "ert.yaml"}
    [layer] = tw.convert(DATA / "small.problem.yaml", "tilewright").layers
    assert layer.macs == 192
    assert tw.solve(layer.on("nvdla-256", "cycles")).status == "optimal"


def test_every_format_says_what_it_is() -> None:
    """The registry's modules have their protocol's names, and each program has one."""
    assert {reader.PEER for reader in registry.readers()} == {"timeloop", "zigzag", "accelforge", "gemmini"}
    assert all(isinstance(reader.TOPS, tuple) and callable(reader.read) for reader in registry.readers())
    assert registry.targets() == ["tilewright", "timeloop", "zigzag"]
    assert all(callable(writer.write) for peer in registry.targets() for writer in registry.writers(peer))
