"""PE utilization without memory delay, overhead of the network and reuse on chip, batch 20; three link "
"widths."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from studies.papers.atomic.cells import OPTIONS, asked, label, rows_of
from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Verdict
from studies.papers.study import Study, number
from studies.tiled_cells import Cell
from studies.tiled_figures import NETWORKS, OVERHEAD, REUSE, UTILIZATION, WORK

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = {"ls [%]": "ls", "cnn-p [%]": "cnn-p", "il-pipe [%]": "il-pipe", "atomic [%]": "atomic"}


def measure(study: Study) -> Data:
    """A row per network, and the overhead of atomic at other link widths."""
    rows: list[Row] = []
    for own in rows_of(study, "table2"):
        row: Row = {"network": label(own["network"])}
        for column in (*COLUMNS, "NoC overhead [%]", "reuse [%]"):
            row[column] = number(own[column])
            row[f"printed {column}"] = number(own[column].split("(")[-1])
        rows.append(row)
    return {"rows": rows, "links": _links(study, study.values.get("links", ()))}


def _links(study: Study, widths: Sequence[int]) -> list[Row]:
    """Overhead and reuse of atomic at link widths, on the first network."""
    values = asked(study, "table2")
    cells = [
        Cell(values.networks[0], f"atomic-8x8[link={width}]", "atomic", 20, "makespan", values.seconds)
        for width in widths
    ]
    answers = study.cells(WORK, "tiled.sqlite", cells)
    place = list(NETWORKS).index(values.networks[0]) if values.networks[0] in NETWORKS else None
    return [
        {
            "B/cycle": width,
            "utilization [%]": 100 * answer.compute_utilization,
            "NoC overhead [%]": 100 * answer.network_overhead,
            "reuse [%]": 100 * answer.reuse,
            "printed": ""
            if place is None
            else f"{UTILIZATION['atomic'][place]}, {OVERHEAD[place]}, {REUSE[place]}",
        }
        for width, answer in zip(widths, answers, strict=True)
    ]


def judge(data: Data) -> Verdict:
    """Every printed number."""
    compared: list[Compared] = [
        Number(f"{row['network']}: {column}", row[f"printed {column}"], row[column], "{:.1f}")
        for row in data["rows"]
        for column in (*COLUMNS, "NoC overhead [%]", "reuse [%]")
        if isfinite(row[f"printed {column}"])
    ]
    differs = "Utilization is over all multiply-accumulates here and over layers in the paper."
    if data["links"]:
        spread = [row["NoC overhead [%]"] for row in data["links"]]
        printed = data["rows"][0]["printed NoC overhead [%]"]
        nearest = min(data["links"], key=lambda row: abs(row["NoC overhead [%]"] - printed))
        differs += (
            f"  Changing the width of links alone, from {data['links'][0]['B/cycle']} to "
            f"{data['links'][-1]['B/cycle']} "
            f"B/cycle, takes the overhead from {spread[0]:.1f} to {spread[-1]:.1f} %; {nearest['B/cycle']} "
            "B/cycle comes "
            "nearest to the printed one."
        )
    return Verdict(compared, differs=differs, needed="The width of links and the paper's LS would be needed.")


FIGURE = PaperFigure(
    title="PE utilization, overhead of the network, reuse on chip",
    claim="Atomic Dataflow has 78.8 to 95.0 % utilization, 9.4 to 17.6 % overhead, 54.1 to 90.8 % reuse.",
    sizes={"smoke": {"networks": ("mlp",), "seconds": 0.2}, "short": {}, "full": {"links": (8, 16, 32)}},
    measure=measure,
    judge=judge,
    options=OPTIONS,
    shown=("links",),
)
