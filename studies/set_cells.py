"""Cells of the studies of resource allocation trees: one search by the closed form on one network, kept.

Networks of the released program have their names there, others are models of the catalog.  All searches of a
cell begin with SET's first tree (all layers one after the other), which is made before the clock starts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from studies.answers import AnswerStore
from studies.command import Work
from studies.set_searches import METHODS, Best
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.set.released.networks import PROGRAM_NETWORKS, program_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import (
    ClosedForm,
    engine_form,
    program_form,
)
from tilewright.formulation.scheduling.tiled.set.trees.rules import PUBLISHED, Rules
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.foundation.errors import one_line
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled import tree_kernels
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds
from tilewright.workloads.catalog import resolve_model

APPLICATION: Final = 0x546C5372  # "TlSr", SQLite's application_id


@dataclass(frozen=True, slots=True)
class TreeCell:
    """What is to be computed.

    Parameters
    ----------
    network : of the released program, or of the catalog
    part : layers of it by number; empty for all
    figures : costs of shares: ``program`` or ``engine``; ``rules``: ``paper`` or ``program``
    energy_power, delay_power : of the objective
    method : one of `METHODS`
    seconds : CPU seconds of the search
    """

    network: str
    part: tuple[int, ...]
    system: str
    figures: str
    rules: str
    batch: int
    energy_power: int
    delay_power: int
    method: str
    seed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TreeFound:
    """What a cell came to.

    Parameters
    ----------
    status : ``found``, ``proven`` (nothing better in the method's space), ``out of time``, ``nothing`` or
        ``error``
    value : of the objective; infinite without a tree
    energy, cycles, dram, hops : of the tree, in pJ, cycles, bytes, and bytes times links
    bound : that no tree undercuts, of a cell that asks for it or that ran out of time
    seconds : until the best tree, or the end of a proof
    """

    status: str
    value: float = float("inf")
    energy: float = 0.0
    cycles: int = 0
    dram: int = 0
    hops: int = 0
    bound: float = 0.0
    seconds: float = 0.0
    message: str = ""


def tree_store(path: Path) -> AnswerStore[TreeCell, TreeFound]:
    """The SQLite file of finished cells.

    Raises
    ------
    InputError : for a file of something else, or one that is damaged
    """
    return AnswerStore(path, TreeFound, APPLICATION, "cells of resource allocation trees")


def network_of(cell: TreeCell) -> SetNetwork:
    """The cell's network, or the part of it."""
    if cell.network in PROGRAM_NETWORKS:
        network = program_network(cell.network)
    else:
        model = resolve_model(cell.network, 1)
        network = set_network(units_of(model, fuse=True), model.name)
    return network.part(cell.part, f"part of {cell.network}") if cell.part else network


def form_of(cell: TreeCell) -> ClosedForm:
    """A closed form that knows nothing yet."""
    make = program_form if cell.figures == "program" else engine_form
    rules = PUBLISHED if cell.rules == "program" else Rules()
    machine = load_tiled_machine(cell.system)
    powers = {"energy": cell.energy_power, "delay": cell.delay_power}
    return make(network_of(cell), machine, cell.batch, rules, **powers)


def compute(cell: TreeCell) -> TreeFound:
    """Search, after a short search that has compiled everything."""
    try:
        _warm()
        form = form_of(cell)
        if cell.method == "bound":
            start = time.process_time()
            return TreeFound("found", bound=tree_bounds(form).value, seconds=time.process_time() - start)
        best = Best(form, cell.seconds)
        status = METHODS[cell.method](best, cell.seed)
        if best.tree is None:
            return TreeFound("nothing")
        cost = form.evaluate(best.tree)
        bound = max(tree_bounds(form).value, best.bound) if status == "out of time" else 0.0
        return TreeFound(status, best.value, cost.energy, cost.cycles, cost.dram, cost.hops, bound, best.when)
    except Exception as error:
        return TreeFound("error", message=f"{type(error).__name__}: {one_line(error)}")


def failed(message: str) -> TreeFound:
    """The answer of a worker that died."""
    return TreeFound("error", message=message)


def _reported(cell: TreeCell, answer: TreeFound) -> str:
    asked = f"{cell.network} {cell.part or ''} {cell.system} {cell.batch} {cell.method} {cell.seed}"
    return f"{asked}: {answer.status} {answer.value:.4g} {answer.message}"


@cache
def _warm() -> None:
    tree_kernels.TREES.calls()


TREES = Work(tree_store, compute, failed, _reported)
