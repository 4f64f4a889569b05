"""Widths of terminals that are none, or hardly one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.report.text.rendering import make_console


@pytest.mark.parametrize("columns", ["20", "1", "0", "-5", "abc", "9" * 5000])
def test_any_width_is_drawn_in(columns: str, tmp_path: Path) -> None:
    """A table, and at two widths help and an error: whole words in all of them, and nothing unexpected."""
    environment = {**os.environ, "COLUMNS": columns}
    calls = [
        (["show", "tpu-edge"], 0, "DRAM"),
        (["list", "--help"], 0, "--format"),
        (["show", "nothing-of-that-name"], 2, "no such model"),
    ]
    for args, code, word in calls if columns in ("1", "abc") else calls[:1]:
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
