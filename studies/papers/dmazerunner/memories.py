"""The grid of scratchpads and register files of table 4 and figure 12."""

from __future__ import annotations

from typing import Any, Final

import tilewright as tw
from studies.figures import ROOT
from studies.papers.dmazerunner.layers import MACHINE, operator
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.solvers.mapping.solve import solve

REGISTERS: Final = ("16 B", "32 B", "64 B", "128 B", "256 B", "512 B", "1 kB")
SCRATCHPADS: Final = ("16 kB", "32 kB", "64 kB", "128 kB", "256 kB", "512 kB", "1 MB")
FILE: Final = str(ROOT / "examples" / "dmazerunner_layers.yaml")


def explored(registers: list[str], scratchpads: list[str], layers: list[str]) -> dict[str, Any]:
    """The least sum of the layers' EDPs on every design of a grid, and the best design of every layer."""
    vary = {"levels.SPM.capacity": list(scratchpads), "levels.RF.capacity": list(registers)}
    exploration = tw.explore(
        FILE, MACHINE, vary, "sum-edp", layers=layers, each_layer=True, values=True, jobs=1
    )
    document = exploration.to_dict()
    designs = [
        {
            "scratchpad": design["fields"]["levels.SPM.capacity"],
            "registers": design["fields"]["levels.RF.capacity"],
            "value": design["value"],
            "bound": design["bound"],
            "status": design["status"],
        }
        for design in document["designs"]
    ]
    bests = [
        {"layer": best["layer"], "value": best["value"], "optimal": best["optimal"], **best["fields"]}
        for best in document["layer_bests"]
    ]
    return {"designs": designs, "layers": bests, "complete": document["complete"]}


def on_design(layer: str, registers: str, scratchpad: str, method: str) -> float:
    """EDP of a layer on a design by a method."""
    machine = tw.machine(MACHINE).with_({"levels.SPM.capacity": scratchpad, "levels.RF.capacity": registers})
    stated = layer_problem(operator(layer), machine.engine, parse_objective("edp"))
    result = solve(stated, method)
    assert result.key is not None
    return float(result.key)
