"""The SQLite file of proofs of an exploration, from which another call can continue.

A row is written the moment that a cell is proven; killing the process loses none.  Explorations of different
spaces may share a file: a cell is identified by the hash of all that its answer depends on.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from tilewright.foundation.database import check_database
from tilewright.foundation.store import Column, Layout, SealedStore, Table, Values
from tilewright.solvers.mapping.explore.cells import ABOVE, Cell, Reported


def _reported(row: Values) -> Reported:
    key, energy = (None if row[name] is None else Fraction(row[name]) for name in ("value", "energy"))
    return Reported(
        row["status"],
        None if row["status"] == ABOVE else key,
        key,
        energy,
        None if row["cycles"] is None else int(row["cycles"]),
        None if row["mapping"] is None else tuple(json.loads(row["mapping"])),
        row["wall_s"],
    )


_CELL = Table(
    "cell",
    (
        Column("key", "TEXT NOT NULL", "content hash of all that the answer depends on"),
        Column("status", "TEXT NOT NULL", "optimal, infeasible, or above: no key below the value"),
        Column("value", "TEXT", "exact objective key, a fraction"),
        Column("energy", "TEXT", "pJ, a fraction"),
        Column("cycles", "TEXT", "integer"),
        Column("mapping", "TEXT", "nodes, outermost first, JSON"),
        Column("wall_s", "REAL NOT NULL"),
        Column("about", "TEXT NOT NULL", "kind and bounds of the layer, for people"),
    ),
    _reported,
)
_LAYOUT = Layout(application=0x546C4578, version=1, tables=(_CELL,), name="a store of explore")  # "TlEx"


class ExploreStore(SealedStore):
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
        super().__init__(path, _LAYOUT)

    def get(self, key: str) -> Reported | None:
        """The proven answer of a cell; ``None`` where there is none.

        Raises
        ------
        DamagedError : for a row that is not what was written
        """
        return self.find(_CELL, key=key)

    def put(self, cell: Cell, reported: Reported) -> None:
        """Store a proven cell; if the file cannot be written it stays in memory, and `failure` says why."""
        figure = reported.bound if reported.status == ABOVE else reported.value
        self.add(
            _CELL,
            {
                "key": cell.key,
                "status": reported.status,
                "value": None if figure is None else str(figure),
                "energy": None if reported.energy is None else str(reported.energy),
                "cycles": None if reported.cycles is None else str(reported.cycles),
                "mapping": None if reported.mapping is None else json.dumps(reported.mapping),
                "wall_s": float(reported.wall_s),
                "about": f"{cell.operator.kind} {json.dumps(cell.operator.bounds)}",
            },
        )

    def __len__(self) -> int:
        return self.count(_CELL)
