"""Execution time over the number of engines, all PEs and buffers together being the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

from studies.papers.atomic.cells import OPTIONS, SCALED, cycles, places, plans, setting_of
from studies.papers.atomic.pictures import BOUND, curves
from studies.papers.figure import Compared, Data, PaperFigure, Row, Statement, Verdict, between
from studies.papers.study import Study

GRIDS = {
    "2x2": "engines=2x2,array=64x64,buffer=2048",
    "4x4": "engines=4x4,array=32x32,buffer=512",
    "8x8": "engines=8x8,array=16x16,buffer=128",
    "16x16": "engines=16x16,array=8x8,buffer=32",
}
"""16,384 PEs and 8 MB in all."""
LINKS = {"2x2": 64, "4x4": 32, "8x8": 16, "16x16": 8}
"""B/cycle of a link where all grids have as many bytes per cycle across their middle."""
ON_4X4 = ("VGG-19", "ResNet-152", "NasNet")


def scaled(study: Study, machines: Mapping[str, str]) -> list[Row]:
    """Mcycles of ``atomic`` at batch 1 on variants of the machine, given by their options."""
    rows = []
    for place in places(study):
        row = setting_of(*place)
        for name, more in machines.items():
            run = plans(study, place, ["atomic"], 1, more)[0]
            row |= {name: cycles(run) / 1e6, BOUND.format(name): run.bound / 1e6}
        rows.append(row)
    return rows


def without_bounds(rows: Sequence[Row]) -> list[Row]:
    """The rows as the page prints them."""
    hidden = BOUND.format("")
    return [{name: own for name, own in row.items() if not name.startswith(hidden)} for row in rows]


def over_bounds(rows: Sequence[Row], names: Sequence[str]) -> str:
    """How far plans are from what no plan undercuts, in words."""
    ratios = [row[name] / row[BOUND.format(name)] for row in rows for name in names if row[name] == row[name]]
    return f"No plan has less than the bound, of which the plans here take {between(ratios)} times."


def measure(study: Study) -> Data:
    """Cycles by network and grid."""
    rows = scaled(study, GRIDS)
    if study["alike"] and {"dataflow", "link"}.isdisjoint(study.values):
        for row, (network, flow, _) in zip(rows, places(study), strict=True):
            for name, more in GRIDS.items():
                run = plans(study, (network, flow, LINKS[name]), ["atomic"], 1, more)[0]
                row[f"{name}, {LINKS[name]} B/cycle"] = cycles(run) / 1e6
    return {"rows": rows, "shown": without_bounds(rows)}


def judge(data: Data) -> Verdict:
    """U-shaped curves; three networks are fastest on 4x4."""
    names = list(GRIDS)
    compared: list[Compared] = []
    explained = []
    alike = []
    for row in data["rows"]:
        best = min(names, key=lambda name: row[name])
        said = f"{row['network']}: the curve is U-shaped"
        compared.append(Statement(said, f"least at {best}", best not in (names[0], names[-1])))
        same = [(row.get(f"{name}, {LINKS[name]} B/cycle", nan), name) for name in names]
        same = [own for own in same if own[0] == own[0]]
        if same:
            alike.append(f"{row['network']} at {min(same)[1]}")
            explained += [said] * (min(same)[1] not in (names[0], names[-1]))
        if row["network"] in ON_4X4:
            compared.append(Statement(f"{row['network']} is fastest on 4x4", f"on {best}", best == "4x4"))
    moved = (
        "  With as many bytes per cycle across every grid's middle, which changes links alone, the least is "
        f"{', '.join(alike)}."
        if alike
        else ""
    )
    return Verdict(
        compared,
        differs=f"Links keep their width here, so that few engines have few bytes per cycle in all.{moved}",
        needed="The paper's links of every grid would be needed.",
        explained=explained,
        best=over_bounds(data["rows"], names),
    )


FIGURE = PaperFigure(
    title="Scaling the number of engines, Mcycles",
    claim="Curves are U-shaped; VGG-19, ResNet-152 and NasNet are fastest on 4 x 4 engines.",
    sizes={size: {**own, "alike": size != "smoke"} for size, own in SCALED.items()},
    measure=measure,
    judge=judge,
    draw=curves(list(GRIDS), "engines at 16,384 PEs and 8 MB"),
    options=OPTIONS,
    shown=("shown",),
)
