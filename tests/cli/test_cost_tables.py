"""The file of cost tables: nothing in it is believed, and no lock of it holds up a call."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from clocks import delay
from systems import LAYERS, SYSTEM
from tampering import flipped, tampered

from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.herald import classes
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.solvers.scheduling.herald.cost_tables.store import CostStore

SCHEDULE = ("schedule", "model.yaml", "--system", "system.yaml", "-o", "edp", "--threads", 1, "-f", "json")
CODESIGN = ("codesign", "model.yaml", "--class", "edge", "-o", "edp", "--gap", "0.5", "--threads", 1, "-q")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tables will be, beside a small model and system."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "costs"))
    monkeypatch.setitem(classes.CLASSES, "edge", AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2))
    (tmp_path / "model.yaml").write_text(LAYERS)
    (tmp_path / "system.yaml").write_text(SYSTEM)
    return tmp_path / "costs" / "costs-3.sqlite"


@dataclass(frozen=True)
class Filled:
    """A call's document, and the table that it left."""

    document: dict[str, Any]
    table: bytes


FILLED: list[Filled] = []
"""Of the first call, which several tests begin with."""


@pytest.fixture
def first(call: Call, table: Path) -> dict[str, Any]:
    """The document of a call that filled the table."""
    if not FILLED:
        FILLED.append(Filled(call(*SCHEDULE).document, table.read_bytes()))
    # The folder is as the call leaves it: nobody else may write there.
    table.parent.mkdir(mode=0o700, exist_ok=True)
    table.write_bytes(FILLED[0].table)
    table.chmod(0o600)
    return FILLED[0].document


def _forged(path: Path, statement: str) -> None:
    """Change costs and seal them again, in the sequence of columns in which rows are sealed."""
    tampered(path, statement, table="costs", keys=5)


CHANGES = {
    "cheaper": "UPDATE costs SET energy = '1', cycles = 1 WHERE metric = 'edp'",
    "nothing fits": "UPDATE costs SET energy = NULL, cycles = NULL, memory = NULL, weights = NULL,"
    " mapping = NULL",
    "not a number": "UPDATE costs SET energy = '1/0' WHERE metric = 'edp'",
    "smaller": "UPDATE costs SET memory = 1, weights = 0",
    "another mapping": "UPDATE costs SET mapping = (SELECT min(hash) FROM mappings)",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("forged", [False, True], ids=["seals do not fit", "seals fit"])
def test_a_changed_row_is_not_believed(
    call: Call, table: Path, first: dict[str, Any], change: str, forged: bool
) -> None:
    """The answer is that of a fresh table; where seals do not fit, a line says so."""
    (_forged if forged else tampered)(table, change)
    outcome = call(*SCHEDULE)
    assert outcome.code == 0
    again = outcome.document
    for field in ("status", "value_exact", "bound_exact", "problem", "input_hash"):
        assert again[field] == first[field]
    if not forged:
        assert str(table) in outcome.err.replace("\n", "")
        assert "computed again" in outcome.err.replace("\n", " ")
        assert "computed again" not in call(*SCHEDULE).err.replace("\n", " ")


def test_lost_mappings_are_found_again(call: Call, table: Path, first: dict[str, Any]) -> None:
    """Rows whose mappings are gone are computed again."""
    tampered(table, "DELETE FROM mappings")
    assert call(*SCHEDULE).document["problem"] == first["problem"]


def test_a_forged_table_makes_no_codesign(call: Call, table: Path) -> None:
    """Costs with seals that fit are counted again where the answer uses them: no document at first."""
    assert call(*CODESIGN, "--out", "first.json").code == 0
    _forged(table, CHANGES["cheaper"])
    outcome = call(*CODESIGN, "--out", "second.json")
    assert outcome.code == 2
    assert "cached cost tables disagree with their mappings" in outcome.err
    tampered(table, CHANGES["cheaper"])
    assert call(*CODESIGN, "--out", "third.json").code == 0
    first, third = (json.loads(Path(name).read_text()) for name in ("first.json", "third.json"))
    assert third["points"] == first["points"]


def test_a_damaged_file_is_set_aside(call: Call, table: Path, first: dict[str, Any]) -> None:
    """A text, and a table with a flipped byte: the true answer at once, and a sound file after it."""
    whole = table.read_bytes()
    aside = table.with_name(f"{table.name}.damaged")
    for place in (0, 18, 100, 4096, 8200):
        table.write_bytes(whole)
        flipped(table, place)
        for _ in range(2):
            outcome = call(*SCHEDULE)
            assert (outcome.code, outcome.document["problem"]) == (0, first["problem"]), (place, outcome.err)
        assert "set aside" not in outcome.err
        aside.unlink(missing_ok=True)
    table.write_text("this is no database, and long enough to have a header" * 9)
    outcome = call(*SCHEDULE)
    reported = " ".join(outcome.err.split())
    assert outcome.code == 0
    assert f"{table}: not an SQLite file, set aside as {aside.name}" in reported
    assert aside.read_text().startswith("this is no database")
    assert call(*SCHEDULE, "-q").err == ""


def test_a_full_disk_stops_no_search(
    call: Call, table: Path, first: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Costs that cannot be kept are computed, with a line; the answer is the same."""
    table.unlink()

    def full(*_: object) -> None:
        raise InputError(str(table), None, "cannot be used: database or disk is full")

    monkeypatch.setattr(CostStore, "write", full)
    outcome = call(*SCHEDULE)
    assert (outcome.code, outcome.document["problem"]) == (0, first["problem"])
    assert "disk is full, costs are computed and not cached" in " ".join(outcome.err.split())


HOLD = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute("CREATE TABLE IF NOT EXISTS held (x)")
base.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_locked_table_does_not_hold_up_a_call(call: Call, table: Path) -> None:
    """While another program holds the file, a limit of three seconds is kept and the answer is there."""
    table.parent.mkdir()
    sqlite3.connect(table).close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(table)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        began = time.monotonic()
        outcome = call(*SCHEDULE, "-t", "3")
        assert time.monotonic() - began < 3 + delay()
    finally:
        holder.communicate()
    assert outcome.code == 0
    assert outcome.document["value"] is not None
    assert "locked by another program" in outcome.err.replace("\n", " ")
