"""Widths of terminals that are none, or hardly one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from calls import Call

from tilewright.cli.terminal.beginning import _mend_width
from tilewright.report.text.rendering import make_console

CALLS = [
    (["show", "tpu-edge"], 0, "DRAM"),
    (["list", "--help"], 0, "--format"),
    (["show", "nothing-of-that-name"], 2, "no such model"),
]


@pytest.mark.parametrize("columns", ["20", "1", "0", "-5", "9" * 5000])
def test_any_width_is_drawn_in(call: Call, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table, help and an error: whole words in all of them, and nothing unexpected."""
    monkeypatch.setenv("COLUMNS", columns)
    _mend_width()  # as a process begins
    for args, code, word in CALLS:
        outcome = call(*args)
        assert outcome.code == code, outcome.err
        assert word in outcome.out + outcome.err
        assert "-v shows the traceback" not in outcome.err


def test_a_process_begins_with_any_width(tmp_path: Path) -> None:
    """The same of a program that has its width from its caller's environment."""
    environment = {**os.environ, "COLUMNS": "abc"}
    for args, code, word in CALLS:
        command = [sys.executable, "-m", "tilewright.cli", *args]
        completed = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert completed.returncode == code, completed.stderr
        assert word in completed.stdout + completed.stderr
        assert "-v shows the traceback" not in completed.stderr


@pytest.mark.parametrize("columns", ["0", "1", "20"])
def test_no_table_is_narrower_than_its_words(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console of a program that sets the width itself has room, too."""
    monkeypatch.setenv("COLUMNS", columns)
    assert make_console(force_terminal=True).width >= 40
