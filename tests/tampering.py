"""Files changed behind the program's back: rows with seals that fit again, and single bytes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tilewright.foundation.store import seal


def tampered(path: Path, statement: str, *, table: str = "", keys: int = 1) -> None:
    """Change an SQLite file; where a table is named, all its rows are sealed anew as their writer would."""
    base = sqlite3.connect(path)
    with base:
        base.execute(statement)
        if table:
            names = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
            names.remove("seal")
            chosen = " AND ".join(f"{name} = ?" for name in names[:keys])
            for row in base.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall():
                base.execute(f"UPDATE {table} SET seal = ? WHERE {chosen}", (seal(row), *row[:keys]))
    base.close()


def flipped(path: Path, place: int) -> None:
    """Turn the lowest bits of one byte round."""
    data = bytearray(path.read_bytes())
    data[place] ^= 0x15
    path.write_bytes(bytes(data))
