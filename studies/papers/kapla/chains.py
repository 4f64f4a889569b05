"""Tables of `studies.kapla_tables` as figures of the paper read them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from studies.kapla_cells import ChainCell, ChainFound, chain_store
from studies.kapla_tables import DEFAULT_KEPT, NETWORKS, SYSTEM, TABLES, WORK, table
from studies.kapla_tables import Study as Asked
from studies.papers.figure import Data, Row
from studies.papers.pictures import grouped_bars, legend
from studies.papers.study import Study, number
from tilewright.report.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STORE: Final = "kapla.sqlite"
WAYS: Final = ("B", "S", "R", "T", "K")
SMOKE: Final = {"networks": ("mlp",), "seconds": 2.0}
SIZES: Final = {"smoke": SMOKE, "short": {}, "full": {}}
"""Short and full runs have the values of the manual's page."""


def asked(study: Study, mark: str) -> Asked:
    """What the manual's table of this size asks for."""
    values = study.parameters("kapla-segments", mark) | dict(study.values)
    networks = values.get("networks", NETWORKS)
    names = networks.split() if isinstance(networks, str) else networks
    return Asked(names, SYSTEM, int(values.get("batch", 4)), 4, 4, float(values["seconds"]))


def printed(study: Study, name: str, own: Asked) -> str:
    """A table of `studies.kapla_tables` with all of its cells in the store."""
    study.cells(WORK, STORE, [cell for network in own.networks for cell in TABLES[name].cells(own, network)])
    with contextlib.closing(chain_store(study.folder / STORE)) as store:
        return table(name, own, store)


def rows_of(study: Study, name: str, mark: str) -> list[Row]:
    """The rows of a table that stands in the manual under a mark."""
    return study.manual("kapla-segments", mark, lambda: printed(study, name, asked(study, mark)))


def contest(study: Study, name: str, mark: str) -> Data:
    """A contest of all ways: percent above the least by network."""
    rows: list[Row] = []
    for own in rows_of(study, name, mark):
        row: Row = {
            "network": own["network"],
            "least": number(own["least"]),
            "state": own.get("column 2", ""),
        }
        row |= {way: number(own[way]) for way in WAYS[:-1]}
        rows.append({**row, "K": number(own["K [% above the least]"])})
    losses = loosely(study, mark, ":training" if name == "figure7" else "")
    for row, loss in zip(rows, losses, strict=True):
        row["K, loose estimate"] = loss
    return {"rows": rows}


def loosely(study: Study, mark: str, kind: str) -> list[float]:
    """What K loses by the estimate as the paper describes it, in percent above the proven best.

    Parameters
    ----------
    mark : of the manual's table, for networks and limits
    kind : ``:training`` or nothing, behind the network's name
    """
    own, losses = asked(study, mark), []
    for network in own.networks:
        cells = [
            own.cell(f"{network}{kind}", "energy", *way)
            for way in (("proven", 0), ("kapla-printed", DEFAULT_KEPT))
        ]
        best, printed_one = study.cells(WORK, STORE, cells)
        fits = best.value > 0 and printed_one.value > 0
        losses.append(100 * (printed_one.value / best.value - 1) if fits else float("nan"))
    return losses


def known(values: Sequence[float]) -> list[float]:
    """Those that are numbers."""
    return [value for value in values if value == value]


def mean(values: Sequence[float]) -> float:
    """Of the numbers among the values; not a number where there is none."""
    there = known(values)
    return sum(there) / len(there) if there else float("nan")


def proven(data: Data) -> str:
    """How many of the networks have a proven best chain."""
    count = sum(row["state"] == "proven" for row in data["rows"])
    return f"B is proven on {count} of {len(data['rows'])} networks: no chain of these segments is better."


def bars(data: Data, label: str) -> Figure:
    """Every way's value over the least, by network, as in the paper."""
    figure, axes = canvas(1, 2.8)
    ways = (*WAYS, "K, loose estimate") if "K, loose estimate" in data["rows"][0] else WAYS
    series = {way: [1 + row[way] / 100 for row in data["rows"]] for way in ways}
    grouped_bars(axes[0], [row["network"] for row in data["rows"]], series)
    axes[0].set_ylim(0.9)
    axes[0].set_ylabel(label)
    legend(axes[0], 6)
    return figure


def on_system(study: Study, cell: ChainCell, system: str, rooms: str = "set") -> ChainFound:
    """The cell on another machine."""
    changed: dict[str, Any] = {"system": system, "rooms": rooms}
    return study.cells(WORK, STORE, [replace(cell, **changed)])[0]
