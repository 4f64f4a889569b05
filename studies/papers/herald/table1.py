"""Ratios of channels to activation size along the networks of AR and VR."""

from __future__ import annotations

import contextlib
import io

from studies.papers.figure import Compared, Data, Number, PaperFigure, Row, Statement, Verdict, every_size
from studies.papers.study import Study, number
from studies.zoo_table import HERALD_RATIOS, print_ratios
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.shape_ratio import channel_activation_ratio

COLUMNS = ("min", "median", "max")


def printed_table() -> str:
    """The table that the manual has of these networks."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_ratios({name: resolve_model(name) for name in HERALD_RATIOS})
    return text.getvalue()


def most_of_convolutions(network: str) -> float:
    """The largest ratio of layers with a window or several output columns: fully connected ones left out."""
    built = resolve_model(network)
    return max(
        channel_activation_ratio(built, layer)
        for layer in built.mac_layers
        if layer.operator.bounds.get("Q", 1) > 1
    )


def measure(study: Study) -> Data:
    """A row per network."""
    rows: list[Row] = []
    for own in study.manual(
        "networks", "ratios", lambda: str(study.cell("ratios of channels", printed_table))
    ):
        row: Row = {"network": own["network"]}
        for name, printed in zip(COLUMNS, HERALD_RATIOS[own["network"]], strict=True):
            row |= {name: number(own[name]), f"printed {name}": number(printed)}
        row["max of convolutions"] = study.cell(
            "most of convolutions", most_of_convolutions, network=own["network"]
        )
        rows.append(row)
    return {"rows": rows}


def judge(data: Data) -> Verdict:
    """Least, median and most ratio of every network."""
    compared: list[Compared] = [
        Number(f"{row['network']}: {name}", row[f"printed {name}"], row[name], "{:.3f}")
        for row in data["rows"]
        for name in COLUMNS
    ]
    least, most = min(row["min"] for row in data["rows"]), max(row["max"] for row in data["rows"])
    compared.append(
        Statement(
            "ratios differ by five orders of magnitude", f"{most / least:,.0f} times", most / least > 1e5
        )
    )
    row = next(row for row in data["rows"] if row["network"] == "resnet50")
    return Verdict(
        compared,
        differs="Leaving out fully connected layers alone takes the largest ratio of ResNet-50 from "
        f"{row['max']:,.0f} to {row['max of convolutions']:.1f}, which is the printed one; others of these "
        "layers are "
        "counted by the paper in another way, which it does not say.",
        needed="The paper's lists of layers would be needed.",
        explained=["resnet50: max"] if f"{row['max of convolutions']:.1f}" == "292.6" else (),
    )


FIGURE = PaperFigure(
    title="Ratios of channels to activation size",
    claim="Five networks from 0.002 to 4,096.",
    sizes=every_size(),
    measure=measure,
    judge=judge,
    shown=("rows",),
)
