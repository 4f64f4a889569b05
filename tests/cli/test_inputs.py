"""Inputs that are no files, names that no file can have, figures and texts without end: one short line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from calls import SMALL, Call
from clocks import delay

from tilewright.foundation.disk import read_bytes
from tilewright.foundation.errors import InputError, shortened

ARCH = ("-a", "tpu-edge")


@pytest.mark.parametrize("name", ["f.onnx", "f.yaml"])
def test_a_pipe_without_a_writer_heeds_the_limit(call: Call, tmp_path: Path, name: str) -> None:
    """Nobody writes: the call ends with its limit and names the pipe."""
    os.mkfifo(tmp_path / name)
    began = time.monotonic()
    outcome = call("map", name, *ARCH, "-t", "1", "-q")
    assert time.monotonic() - began < 1 + delay()
    assert (outcome.code, outcome.err.count("\n")) == (4, 1)
    assert f"{name}: takes longer to read than the time limit of 1 s" in outcome.err


def test_a_pipe_with_a_late_writer_is_read(call: Call, tmp_path: Path) -> None:
    """What is written in pieces, after a while, is the file."""
    os.mkfifo(tmp_path / "f.yaml")

    def write() -> None:
        time.sleep(0.5)
        with (tmp_path / "f.yaml").open("w") as stream:
            for part in ("- gemm:M=8,", "N=4,", "K=8\n"):
                stream.write(part)
                stream.flush()
                time.sleep(0.3)

    writer = threading.Thread(target=write)
    writer.start()
    outcome = call("map", "f.yaml", *ARCH, "-q", "-t", "20")
    writer.join()
    assert outcome.code == 0


def test_a_pipe_without_a_limit_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit a writer has some seconds to come."""
    monkeypatch.setattr("tilewright.foundation.pipes.PATIENCE", 0.2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        InputError, match=r"pipe: cannot be read: a pipe that nobody has written to for 0\.2 s"
    ):
        read_bytes(tmp_path / "pipe", 100, "anything")


def test_standard_input_and_substitutions_are_read(tmp_path: Path) -> None:
    """``/dev/stdin`` and ``<(…)`` are pipes with a writer."""
    script = f"""
    cd {tmp_path}
    run() {{ {sys.executable} -m tilewright.cli map {SMALL} -q -t 20 "$@"; }}
    run -a tpu-edge --constraint @/dev/stdin <<< 'cycles<=1e6' || exit 1
    run -a tpu-edge --constraint @<(echo 'cycles<=1e6')
    """
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (completed.returncode, completed.stderr) == (0, "")


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ".yaml", "x" * 300 + ".json", "x" * 20_000])
def test_names_without_end_are_told_in_every_verb(call: Call, name: str) -> None:
    """A name that no file can have is refused by each verb in one line, in which it is shortened."""
    for args in (
        ("map", name, *ARCH),
        ("map", SMALL, "-a", name),
        ("map", SMALL, *ARCH, "--warm-start", name),
        ("schedule", name, "--system", "fda-edge-nvdla"),
        ("schedule", SMALL, "--system", name),
        ("codesign", name, "--class", "edge"),
        ("bench", name, *ARCH),
        ("bench", SMALL, *ARCH, "--out", name),
        ("compare", name, "--system", "atomic-8x8"),
        ("explore", name, *ARCH, "--vary", "clock_mhz=100,200"),
        ("evaluate", name),
        ("check", name),
        ("runs", name),
        ("show", name),
        ("convert", name, "--to", "timeloop"),
        ("list", name),
    ):
        outcome = call(*args)
        assert outcome.code == 2, (args[0], outcome.err)
        assert outcome.err.count("\n") == 1
        assert len(outcome.err) < 2000
        assert "shows the traceback" not in outcome.err


@pytest.mark.parametrize("text", ["x" * 20_000, "x y " * 5000, "'" + "z" * 20_000 + "'", "a=" + "9" * 20_000])
def test_texts_are_shortened_in_one_place(call: Call, text: str) -> None:
    """Whatever is quoted, by this program or by the parser of the command line, is cut in the middle."""
    for args in (
        ("map", SMALL, *ARCH, "--constraint", text),
        ("map", SMALL, *ARCH, "--objective", text),
        ("map", SMALL, *ARCH, "--batch", text),
        ("map", "gemm:" + text, *ARCH),
        ("map", SMALL, *ARCH, "--" + text),
        ("explore", SMALL, *ARCH, "--vary", text),
        (text,),
    ):
        outcome = call(*args)
        assert outcome.code == 2
        assert len(outcome.err) < 6000, args[0]
    assert len(str(InputError(text, text, text))) < 6000
    assert shortened("short 'text'") == "short 'text'"


@pytest.mark.parametrize("digits", [1001, 5000, 20_000])
def test_figures_without_end_are_refused(call: Call, result: Path, tmp_path: Path, digits: int) -> None:
    """An exact figure of thousands of digits is one line that names the file and the field."""
    document = json.loads(result.read_text())
    document["layers"][0]["metrics"]["energy_pj_exact"] = "9" * digits
    (tmp_path / "long.json").write_text(json.dumps(document))
    for verb in ("check", "show", "evaluate"):
        outcome = call(verb, "long.json")
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert "long.json: layers" in outcome.err
        assert "energy_pj_exact" in outcome.err


def test_errors_in_trees_and_explored_documents_name_the_file(call: Call, tmp_path: Path) -> None:
    """What a file names and does not exist is told of the file."""
    explored = ("explore", SMALL, *ARCH, "-q", "--vary", "clock_mhz=100,200", "--out", "e.json")
    assert call(*explored).code == 0
    document = json.loads((tmp_path / "e.json").read_text())
    document["objective"] = "speed"
    (tmp_path / "e.json").write_text(json.dumps(document))
    tree = "network: nothing\nsystem: set-edge-4x4\nbatch: 1\ntree: x\n"
    (tmp_path / "t.yaml").write_text(tree)
    for verb, name in (("check", "e.json"), ("check", "t.yaml"), ("evaluate", "t.yaml"), ("show", "t.yaml")):
        outcome = call(verb, name)
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert outcome.err.startswith(f"tilewright: error: {name}: "), outcome.err


def test_no_empty_folder_is_left(tmp_path: Path) -> None:
    """Without a home, what is made in the temporary folder and stays empty is gone with the call."""
    environment = {
        **os.environ,
        "HOME": "/proc/none",
        "TMPDIR": str(tmp_path),
        "XDG_CACHE_HOME": "/proc/none",
    }
    environment.pop("TILEWRIGHT_CACHE", None)
    code = "from tilewright.foundation.caches import cache_folder; print(cache_folder().is_dir())"
    run = f"{code}\nfrom tilewright.cli.main import main\nmain(['list', 'archs'])"
    completed = subprocess.run([sys.executable, "-c", run], env=environment, capture_output=True, text=True)
    assert completed.stdout.startswith("True\n"), completed.stderr
    assert list(tmp_path.iterdir()) == []
