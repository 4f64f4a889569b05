"""The SQLite file in which an exploration keeps what it has proven, so that another call goes on from there.

A row is written the moment that a cell is proven; a process that is killed loses none.  Explorations of
different spaces may share a file: a cell is known by the hash of all that its answer depends on.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from tilewright.foundation.database import Database, Layout, Row, check_database, seal
from tilewright.foundation.errors import OutputError
from tilewright.solvers.mapping.explore.cells import ABOVE, Cell, Reported

_COLUMNS = ("key", "status", "value", "energy", "cycles", "mapping", "wall_s", "about")
_TABLE = """
CREATE TABLE cell (
    key TEXT PRIMARY KEY,      -- content hash of all that the answer depends on
    status TEXT NOT NULL,      -- optimal, infeasible, or above: no key below the value
    value TEXT,                -- exact objective key, a fraction
    energy TEXT,               -- pJ, a fraction
    cycles TEXT,               -- integer
    mapping TEXT,              -- nodes, outermost first, JSON
    wall_s REAL NOT NULL,
    about TEXT NOT NULL,       -- kind and bounds of the layer, for people
    seal TEXT NOT NULL         -- SHA-256 of the row's other columns
) WITHOUT ROWID"""
_LAYOUT = Layout(application=0x546C4578, version=1, tables=(_TABLE,), name="a store of explore")  # "TlEx"


class ExploreStore:
    """An open store of proven cells.

    Parameters
    ----------
    path : made where there is none

    Raises
    ------
    InputError : for a file that cannot be used, is another program's, or is damaged
    """

    def __init__(self, path: Path) -> None:
        check_database(path)
        self._base = Database(path)
        try:
            self._base.adopt(_LAYOUT)
        except BaseException:
            self._base.close()
            raise

    def get(self, key: str) -> Reported | None:
        """What was proven of a cell; ``None`` where nothing was.

        Raises
        ------
        DamagedError : for a row that is not what was written
        """
        rows = self._base.rows(f"SELECT {', '.join(_COLUMNS)}, seal FROM cell WHERE key = ?", (key,))
        return self._reported(rows[0]) if rows else None

    def put(self, cell: Cell, reported: Reported) -> None:
        """Keep a proven cell; where the file takes none it stays in memory, and `failure` says why."""
        figure = reported.bound if reported.status == ABOVE else reported.value
        values: tuple[Any, ...] = (
            cell.key,
            reported.status,
            None if figure is None else str(figure),
            None if reported.energy is None else str(reported.energy),
            None if reported.cycles is None else str(reported.cycles),
            None if reported.mapping is None else json.dumps(reported.mapping),
            float(reported.wall_s),
            f"{cell.operator.kind} {json.dumps(cell.operator.bounds)}",
        )
        marks = ", ".join("?" * (len(_COLUMNS) + 1))
        self._base.keep(f"INSERT OR REPLACE INTO cell VALUES ({marks})", (*values, seal(values)))

    @property
    def failure(self) -> OutputError | None:
        """Why cells are in memory alone; ``None`` where the file has all of them."""
        return self._base.failure

    def __len__(self) -> int:
        return int(self._base.rows("SELECT count(*) FROM cell")[0][0])

    def close(self) -> None:
        """Close the file; what was stored stays."""
        self._base.close()

    def __enter__(self) -> ExploreStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reported(self, row: Row) -> Reported:
        if row[-1] != seal(row[:-1]):
            raise self._base.damaged(f"cell {str(row[0])[:12]} does not match its hash")
        with self._base.reading(f"cell {str(row[0])[:12]}"):
            _, status, value, energy, cycles, mapping, wall, _, _ = row
            key = None if value is None else Fraction(value)
            return Reported(
                status,
                None if status == ABOVE else key,
                key,
                None if energy is None else Fraction(energy),
                None if cycles is None else int(cycles),
                None if mapping is None else tuple(json.loads(mapping)),
                wall,
            )
