"""Tables of `studies.tiled_figures` as figures of the paper read them, and bounds beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from studies.papers.figure import Row
from studies.papers.study import Study
from studies.tiled_cells import cell_store
from studies.tiled_figures import FIGURES, NETWORKS, WORK, table
from studies.tiled_figures import Study as Asked
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds
from tilewright.workloads.catalog import resolve_model

STORE: Final = "tiled.sqlite"
SMOKE: Final = {"networks": ("mlp",), "seconds": 0.2}
SIZES: Final = {"smoke": SMOKE, "short": {}, "full": {}}
"""Short and full runs have the values of the manual's page."""
OPTIONS: Final = {"dataflow": ("kc", "yx"), "link": ()}


def asked(study: Study, name: str) -> Asked:
    """What the manual's table of this size asks for, and the command line instead."""
    values = study.parameters("tiled-figures", name) | dict(study.values)
    networks = values["networks"].split() if isinstance(values["networks"], str) else values["networks"]
    flow = values.get("dataflow", "kc")
    options = "" if flow == "kc" else f"dataflow={flow}"
    return Asked(networks, [int(values.get("link", 16))], float(values["seconds"]), options, 1)


def rows_of(study: Study, name: str) -> list[Row]:
    """The rows of a table of the manual."""

    def run() -> str:
        own, figure = asked(study, name), FIGURES[name]
        study.cells(WORK, STORE, [cell for _, row in figure.rows(own) for cell in row])
        with contextlib.closing(cell_store(study.folder / STORE)) as store:
            return table(figure, own, store)

    return study.manual("tiled-figures", name, run)


def least(network: str, batch: int, link: int, options: str) -> dict[str, float]:
    """Cycles and pJ that no plan of a network undercuts, whatever its atoms."""
    brackets = ",".join(part for part in (f"link={link}", options) if part)
    machine = load_tiled_machine(f"atomic-8x8[{brackets}]")
    problem = TiledProblem(resolve_model(network, 1), machine, tiled_objective("makespan"), batch=batch)
    bounds = size_bounds(problem)
    return {"cycles": bounds.cycles, "energy": bounds.energy}


def bounds_of(study: Study, name: str, rows: Sequence[Row], batch: int) -> list[dict[str, float]]:
    """The bounds of every row's network."""
    own = asked(study, name)
    return [
        study.cell(
            "bound over all sizes",
            least,
            network=row["network"],
            batch=batch,
            link=own.links[0],
            options=own.options,
        )
        for row in rows
    ]


def label(network: str) -> str:
    """The paper's name of a network."""
    return NETWORKS.get(network, network)
