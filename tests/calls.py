"""The command line as a user calls it: in this process for speed, in a process of its own for signals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilewright.cli.main import run

SMALL = "gemm:M=8,N=4,K=8"
"""A layer that is solved at once."""

HARD = "conv:N=64,K=512,C=512,P=56,Q=56,R=3,S=3,pad=1"
"""A layer whose proof takes minutes on eyeriss-168; a first mapping is found within seconds."""

TIGHT = """\
clock_mhz: 100
compute: {mac_energy: 1, element_bits: 8}
levels:
  - {name: DRAM, energy: 100}
  - {name: GLB, energy: 5, elements: 64}
  - {name: RF, energy: 1, elements: 2}
"""
"""A machine whose innermost level holds two elements."""

TWO_LAYERS = """\
- gemm:M=8,N=4,K=8,name=first
- gemm:M=4,N=8,K=8,name=second
- gemm:M=8,N=4,K=8,name=third
"""


@dataclass(frozen=True)
class Outcome:
    """What a call left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Call = Callable[..., Outcome]


STARTED: list[subprocess.Popen[str]] = []
"""Processes of the running test; none outlives it."""


def start(folder: Path, *args: object, before: str = "") -> subprocess.Popen[str]:
    """The command line in a process of its own; ``before`` is code that runs there first."""
    run = f"import sys\n{before}\nfrom tilewright.cli.main import main\nmain(sys.argv[1:])"
    entry = ["-c", run] if before else ["-m", "tilewright.cli"]
    command = [sys.executable, *entry, *(str(arg) for arg in args)]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80", "PYTHONUNBUFFERED": "1"},
    )
    STARTED.append(process)
    return process


def end_started() -> None:
    """Kill whatever a test has started and not finished."""
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()
            process.communicate()


def children_of(process: int) -> list[int]:
    """Processes that a process has started and that have not been waited for."""
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for children in lists for child in children.read_text().split()]


def caller(capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls the command line in this process, in the folder that it is in."""

    def call_it(*args: object) -> Outcome:
        capsys.readouterr()
        code = run([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Outcome(int(code), captured.out, captured.err)

    return call_it


def finish(process: subprocess.Popen[str]) -> Outcome:
    """Wait for a process."""
    out, err = process.communicate()
    return Outcome(process.returncode, out, err)
