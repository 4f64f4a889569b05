"""Layers and parameters of the eight networks."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

from studies.papers.figure import Compared, Data, Number, PaperFigure, Verdict, every_size
from studies.papers.study import Study, number
from studies.zoo_table import atomic_counts, print_atomic
from tilewright.workloads.catalog import resolve_model

NETWORKS = tuple(atomic_counts())


def printed_table(networks: Sequence[str]) -> str:
    """The table that the manual has, of some networks."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_atomic({name: resolve_model(name) for name in networks})
    return text.getvalue()


def measure(study: Study) -> Data:
    """A row per network; both columns of ours are named alike, so that the second one stays."""
    rows = study.manual(
        "networks",
        "atomic-dataflow",
        lambda: str(study.cell("layers and parameters", printed_table, networks=list(study["networks"]))),
    )
    counts = atomic_counts()
    return {
        "rows": [
            {
                "network": row["network"],
                "layers, printed": number(row["layers, table I"]),
                "layers": len(resolve_model(row["network"])),
                "parameters, printed [M]": float(counts[row["network"]]["parameters"]) / 1e6,
                "parameters [M]": number(row["ours"].replace("M", "")),
                "note": counts[row["network"]]["note"],
            }
            for row in rows
        ]
    }


def judge(data: Data) -> Verdict:
    """Layers and parameters, network by network."""
    compared: list[Compared] = []
    for row in data["rows"]:
        compared.append(Number(f"{row['network']}: layers", row["layers, printed"], row["layers"], "{:.0f}"))
        compared.append(
            Number(
                f"{row['network']}: parameters [M]",
                row["parameters, printed [M]"],
                row["parameters [M]"],
                "{:.1f}",
            )
        )
    return Verdict(
        compared,
        differs="What the paper counts as a layer differs from network to network; the notes in "
        "[networks](networks.md) tell what makes its number where that is known.",
        needed="The paper's own graphs would be needed.",
    )


FIGURE = PaperFigure(
    title="Layers and parameters of the networks",
    claim="Eight networks of 23 to 1,329 layers and 2 to 850 million parameters.",
    sizes=every_size(networks=NETWORKS) | {"smoke": {"networks": NETWORKS[:2]}},
    measure=measure,
    judge=judge,
)
