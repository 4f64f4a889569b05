"""Resource allocation trees in files: the network, the machine, the batch and the tree's text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import PlanTree
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.released.networks import program_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import (
    ClosedForm,
    engine_form,
    program_form,
)
from tilewright.formulation.scheduling.tiled.set.trees.rules import DEFECTS, PUBLISHED, rules_with
from tilewright.formulation.scheduling.tiled.set.trees.tree import Node
from tilewright.formulation.scheduling.tiled.set.trees.tree_text import parse_tree
from tilewright.foundation.disk import check_writable, write_file
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.report.records.mapping.operator import Record
from tilewright.workloads.catalog import resolve_model

PROGRAM = "program:"
"""What the names of the released program's networks begin with."""


class SetTreeRecord(Record):
    """A tree as a file states it.

    Parameters
    ----------
    network : a model of the catalog, or ``program:NAME`` for a network of the released program
    figures : costs of shares: the machine's engine, or the program's tile
    defects : defects of the released program that the closed form has, or ``all``
    tree : as text
    """

    network: str
    system: str = "set-edge-4x4"
    batch: int = Field(default=1, ge=1)
    objective: str = "edp"
    figures: Literal["engine", "program"] = "engine"
    defects: list[str] | Literal["all"] = Field(default_factory=list)
    fuse: bool = True
    tree: str


@dataclass(frozen=True, slots=True)
class StatedTree:
    """A tree with what judges it; no problem for the released program's networks."""

    record: SetTreeRecord
    form: ClosedForm
    tree: Node
    problem: TiledProblem | None


def stated_tree(record: SetTreeRecord, where: str, objective: str | None = None) -> StatedTree:
    """The closed form and the tree that a record states.

    Raises
    ------
    InputError : for unknown names
    InvalidTreeError : for a text that is no tree of the network
    """
    goal = tiled_objective(objective) if objective else tiled_objective(record.objective, where, "objective")
    machine = load_tiled_machine(record.system)
    try:
        rules = PUBLISHED if record.defects == "all" else rules_with(*record.defects)
    except ValueError as error:
        raise InputError(where, "defects", f"{error}, or all of {len(DEFECTS)}") from None
    problem = None
    if record.network.startswith(PROGRAM):
        network = program_network(record.network.removeprefix(PROGRAM))
    else:
        model = resolve_model(record.network, 1)
        problem = TiledProblem(model, machine, goal, batch=record.batch, fuse=record.fuse)
        network = set_network(problem.units, model.name)
    make = engine_form if record.figures == "engine" else program_form
    energy, delay = float(goal.energy_power), float(goal.delay_power)
    form = make(network, machine, record.batch, rules, energy=energy, delay=delay)
    return StatedTree(record, form, parse_tree(record.tree, network, record.batch), problem)


def check_tree_file(path: Path) -> None:
    """Raise ``InputError`` for a name that no tree is written to."""
    if path.suffix not in (".yaml", ".yml"):
        raise InputError("--tree", None, f"expected a .yaml file, got {path}")
    check_writable(path)


def write_tree(path: Path, tree: PlanTree, network: str, system: str, batch: int, objective: str) -> None:
    """Write a plan's tree as a file that `stated_tree` reads; raises ``OutputError``."""
    stated = {
        "network": network,
        "system": system,
        "batch": batch,
        "objective": objective,
        "figures": "program" if tree.program_figures else "engine",
        "defects": "all" if tree.program_rules else [],
    }
    lines = [f"{field}: {json.dumps(value)}" for field, value in stated.items()]
    indented = (f"  {line}" for line in tree.text.replace("\t", "    ").splitlines())
    write_file(path, "\n".join([*lines, "tree: |", *indented]) + "\n")
