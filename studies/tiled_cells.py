"""Cells of the studies of tiled machines: one method on one network and machine, kept in an SQLite file.

A cell is committed the moment it ends; a study that is killed goes on where it was.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from studies.answers import AnswerStore
from studies.command import Work
from tilewright.benchmarks.arena.work import prepare
from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError, one_line
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.bounds import dag_bounds
from tilewright.solvers.scheduling.tiled.running import plan_run
from tilewright.workloads.catalog import resolve_model

APPLICATION: Final = 0x546C5474  # "TlTt", SQLite's application_id


@dataclass(frozen=True, slots=True)
class Cell:
    """What is to be computed.

    Parameters
    ----------
    network, system, method : by name, options in brackets
    batch : samples
    objective : as on the command line
    seconds : of the processor for the search, so that other programs do not change what it finds
    """

    network: str
    system: str
    method: str
    batch: int
    objective: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a cell came to; figures are those of `Evaluation`, 0 without a plan.

    Parameters
    ----------
    energy : pJ by component
    bound, own_bound : least cycles over all sizes, and of the plan's own atoms; 0 for other objectives
    seconds : of the processor until the best plan
    message : why there is none
    """

    status: str
    message: str = ""
    atoms: int = 0
    cycles: int = 0
    compute_cycles: int = 0
    unlinked_cycles: int = 0
    compute_utilization: float = 0.0
    atom_utilization: float = 0.0
    network_overhead: float = 0.0
    reuse: float = 0.0
    dram_bytes: int = 0
    energy: dict[str, float] | None = None
    bound: int = 0
    own_bound: int = 0
    seconds: float = 0.0

    @property
    def is_plan(self) -> bool:
        return self.cycles > 0

    @property
    def total_energy(self) -> float:
        """pJ."""
        return sum((self.energy or {}).values())


def compute(cell: Cell) -> Found:
    """Search, after everything has been loaded and compiled."""
    try:
        prepare(cell.method)
        machine, objective = load_tiled_machine(cell.system), tiled_objective(cell.objective)
        problem = TiledProblem(resolve_model(cell.network, 1), machine, objective, batch=cell.batch)
        limits = Limits(cell.seconds, clock=time.process_time)
        result = plan_run(lambda: problem, cell.method, limits).run()
    except InputError as error:
        return Found("error", str(error))
    except Exception as error:
        return Found("error", f"{type(error).__name__}: {one_line(error)}")
    if result.answer is None or result.evaluation is None:
        return Found(str(result.status), result.message)
    evaluation = result.evaluation
    return Found(
        status=str(result.status),
        message=result.message,
        atoms=result.answer.dag.tasks,
        cycles=evaluation.cycles,
        compute_cycles=evaluation.compute_cycles,
        unlinked_cycles=evaluation.unlinked_cycles,
        compute_utilization=evaluation.compute_utilization,
        atom_utilization=evaluation.atom_utilization,
        network_overhead=evaluation.network_overhead,
        reuse=evaluation.reuse,
        dram_bytes=evaluation.dram_read_bytes + evaluation.dram_write_bytes,
        energy={name: getattr(evaluation.energy, name) for name in evaluation.energy.__slots__},
        bound=int(result.bound or 0) if cell.objective == "makespan" else 0,
        own_bound=dag_bounds(result.answer.dag, problem.machine).cycles,
        seconds=max(point.seconds for point in result.trace if point.improved),
    )


def cell_store(path: Path) -> AnswerStore[Cell, Found]:
    """The SQLite file of finished cells.

    Raises
    ------
    InputError : for a file of something else, or one that is damaged
    """
    return AnswerStore(path, Found, APPLICATION, "cells of tiled machines")


def failed(message: str) -> Found:
    """The answer of a worker that died."""
    return Found("error", message)


def _reported(cell: Cell, plan: Found) -> str:
    what = f"{plan.cycles:,}" if plan.is_plan else f"{plan.status} {plan.message}"
    return f"{cell.network} {cell.system} {cell.method} {cell.batch}: {what}"


WORK = Work(cell_store, compute, failed, _reported, fresh=True)
