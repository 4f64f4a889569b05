"""The six layers of the paper on its machine, proven under demands, and what previous techniques make of "
"them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright.benchmarks.suites import suite
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator

MACHINE: Final = "dmazerunner-256"
LAYERS: Final = ("conv1", "conv2_2", "conv3_2", "conv4_2", "conv5_1", "conv5_2")
LOOPS: Final = {"N": "N", "K": "M", "C": "C", "P": "Oy", "Q": "Ox", "R": "Fy", "S": "Fx"}
"""Our names of a convolution's loops, and the paper's."""
WORD: Final = 2
"""Bytes of an element."""
COMPONENTS: Final = ("MAC", "RF", "network", "SPM", "DRAM")


def operator(layer: str) -> Operator:
    """A layer of the paper by name."""
    return next(case.operator for case in suite("dmazerunner") if case.name == layer)


def problem(layer: str, objective: str, demands: Sequence[str] = ()) -> LayerProblem:
    """The mapping problem of a layer with perfect factors, as the paper's tool has it."""
    return layer_problem(
        operator(layer), load_engine(MACHINE), parse_objective(objective), constraints=demands
    )


def mechanism(loops: str) -> list[str]:
    """Demands of a dataflow mechanism such as ``P|Q``: both loops are spread, others may be."""
    return [f"spatial({loop})>=2" for loop in loops.split("|")]


def solved(
    layer: str, objective: str, method: str, demands: Sequence[str] = (), seed: int = 1
) -> dict[str, Any]:
    """What a method comes to on a layer; no key where it has no mapping.

    Parameters
    ----------
    layer : by name
    objective : ``edp``, ``energy`` or ``cycles``
    method : a solver or heuristic with its options
    demands : further conditions
    seed : of random methods
    """
    result = solve(problem(layer, objective, demands), method, Limits(seed=seed))
    row: dict[str, Any] = {
        "status": str(result.status),
        "bound": None if result.bound is None else float(result.bound),
    }
    if result.evaluation is not None:
        evaluation = result.evaluation
        energy, cycles = float(evaluation.energy), evaluation.cycles
        row |= {"energy": energy, "cycles": cycles, "edp": energy * cycles}
        row["components"] = {name: float(part) for name, part in evaluation.components.items()}
        row["dram_bytes"] = {
            access.tensor: WORD * (access.reads + access.updates)
            for access in evaluation.accesses
            if access.level == "DRAM"
        }
    return row
