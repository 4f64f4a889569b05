"""What ten seconds of one processor prove of twenty-five combinations of machine, layer and objective.

    python -m studies.ordinary_combinations --store combinations.jsonl

They are chosen, not drawn as those of :mod:`studies.ordinary_machines`: most presets, and machines of three
to six levels, with layers of all kinds, and among them those that were hard in earlier versions.  Default
factors; a run adds to its store and prints what it has, the worst combinations first.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from studies.layer_proofs import Cell, default_factors
from studies.ordinary_machines import measured, table
from tilewright.formulation.mapping.problem import IMPERFECT

HIERARCHY = "hierarchy"
CHOSEN = (
    ("eyeriss-168", "7x7, 224x224, stride 2, batch 8", "edp", "even"),
    ("eyeriss-168", "3x3 256, 14x14", "energy", "uneven"),
    ("eyeriss-256", "1x1 512 to 2048, 7x7", "energy", "uneven"),
    ("nvdla-256", "product of primes", "edp", "even"),
    ("nvdla-256", "3x3 256, 14x14", "edp", "uneven"),
    ("tpu-edge", "scores of attention", "edp", "even"),
    ("tpu-edge", "depthwise 3x3, stride 2", "energy", "even"),
    ("simba", "product of primes", "edp", "even"),
    ("simba", "3x3 256, 14x14", "energy", "even"),
    ("a100", "7x7, 224x224, stride 2, batch 8", "energy", "even"),
    ("a100", "values of attention", "cycles", "even"),
    ("tpu-v4i", "product", "edp", "even"),
    ("shidiannao-256", "dilated 3x3", "energy", "even"),
    ("dmazerunner-256", "3x3 256, 14x14", "edp", "even", HIERARCHY),
    ("ethos-u65", "1x1 512 to 2048, 7x7", "edp", "even"),
    ("gemmini", "product of primes", "cycles", "even"),
    ("free-3-levels", "3x3 256, 14x14", "edp", "even"),
    ("free-4-levels-bypass", "product", "energy", "even"),
    ("free-4-levels", "7x7, 224x224, stride 2, batch 8", "edp", "even"),
    ("free-5-levels-bypass", "3x3 256, 14x14", "energy", "even"),
    ("free-5-levels-bypass", "dilated 3x3", "edp", "even"),
    ("free-6-levels-bypass", "product", "edp", "even"),
    ("free-6-levels", "convolution of primes", "energy", "even"),
    ("free-64x64", "product", "edp", "even"),
    ("peer-eyeriss", "product", "edp", "uneven"),
)
"""Machine, layer, objective, storage, and the cost model where it is not the machine's."""


def chosen() -> list[Cell]:
    """The combinations, with the default factors of their machine and cost model."""
    return [
        Cell(machine, "ordinary", layer, objective, storage, IMPERFECT, *model)
        if model
        else Cell(machine, "ordinary", layer, objective, storage, default_factors(machine))
        for machine, layer, objective, storage, *model in CHOSEN
    ]


def run(
    store: Annotated[Path, typer.Option(help="file of outcomes, one a line; read and added to")],
    cpu: Annotated[float, typer.Option(help="CPU seconds per combination")] = 10.0,
    cells: Annotated[int, typer.Option(help="the first ones, so many")] = len(CHOSEN),
    minutes: Annotated[
        float, typer.Option(help="begin no combination after that; 0 prints the tables alone")
    ] = math.inf,
) -> None:
    """Solve what is not in the store yet, and print the tables of all that is."""
    print("\n".join(table(measured(chosen()[:cells], store, cpu, minutes))))


if __name__ == "__main__":
    typer.run(run)
