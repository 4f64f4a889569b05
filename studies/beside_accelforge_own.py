"""Maps one layer here, as often as asked; run by `beside_accelforge` as AccelForge's runner is.

    python studies/beside_accelforge_own.py QUESTION.json

The question has the machine's file (`arch`), the layer's text, the objective, how often to map (`turns`) and
the CPU seconds that each search may take.  Prints JSON: value, status and gap, the mapping's nodes, and the
seconds of the processor that every turn took.  Uneven storage, perfect factors, one thread; a search that
ends without a proof is not repeated.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.compiled.program import await_compiled
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Map the layer."""
    objective, operator = parse_objective(question["objective"]), parse_layer(question["layer"])[1]
    await_compiled(lambda: False)
    turns: list[float] = []
    for _ in range(question["turns"]):
        begun = time.process_time()
        problem = layer_problem(
            operator, load_engine(question["arch"]), objective, storage="uneven", factors="perfect"
        )
        limits = Limits(question["seconds"], threads=1, started=begun, clock=time.process_time)
        result = solve(problem, "auto", limits)
        turns.append(time.process_time() - begun)
        if result.status is not Status.OPTIMAL:
            break
    return {
        "value": None if result.key is None else float(objective.value(result.key)),
        "status": str(result.status),
        "gap": result.gap,
        "nodes": None if result.answer is None else result.answer.to_data(),
        "turns": turns,
        "memory": result.effort.peak_memory_bytes,
    }


if __name__ == "__main__":
    print(json.dumps(answer(json.loads(Path(sys.argv[1]).read_text()))))
