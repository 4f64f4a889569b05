"""Widths of terminals that are none, or hardly one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.report.text.rendering import make_console


CALLS = (
    (("list", "--help"), 0, "--format"),
    (("show", "tpu-edge"), 0, "DRAM"),
    (("show", "nothing-of-that-name"), 2, "no such model"),
)
SCRIPT = """\
import sys
from tilewright.cli.main import run
for args in sys.argv[1:]:
    print(f"code {run(args.split())}", flush=True)
    print("end", file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize("columns", ["20", "1", "0", "-5", "abc", "9" * 5000])
def test_any_width_is_drawn_in(columns: str, tmp_path: Path) -> None:
    """Help, a table and an error: whole words in all of them, and nothing unexpected."""
    environment = {**os.environ, "COLUMNS": columns}
    command = [sys.executable, "-c", SCRIPT, *(" ".join(args) for args, _, _ in CALLS)]
    completed = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    assert "-v shows the traceback" not in completed.stderr
    printed = re.split(r"^code (\d+)$", completed.stdout, flags=re.MULTILINE)
    told = completed.stderr.split("end\n")
    for place, (args, code, word) in enumerate(CALLS):
        assert int(printed[2 * place + 1]) == code, args
        assert word in printed[2 * place] + told[place], args


@pytest.mark.parametrize("columns", ["0", "1", "20"])
def test_no_table_is_narrower_than_its_words(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console of a program that sets the width itself has room, too."""
    monkeypatch.setenv("COLUMNS", columns)
    assert make_console(force_terminal=True).width >= 40
