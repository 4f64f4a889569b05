"""Maps one layer with AccelForge, or counts a mapping; run by its own interpreter, see `beside_accelforge`.

    PYTHON beside_accelforge_runner.py QUESTION.json

The question has the machine's file (`arch`), the workload as AccelForge's YAML (`workload`), the objective,
and either how often to map (`turns`) or the nodes of a mapping to count (`nodes`).  Prints JSON: pJ and
seconds, the nodes of the best mapping, and the seconds of the processor that importing it and every turn
took.  AccelForge's component models are a package of their own; where it is missing, machines that state
every energy do without.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

OBJECTIVES = {"energy": "ENERGY", "cycles": "LATENCY", "edp": "ENERGY_DELAY_PRODUCT"}
"""Objectives here, and AccelForge's metrics."""


def without_component_models() -> None:
    """Stand in for the package of component models, which is asked for when AccelForge is imported."""
    try:
        __import__("hwcomponents")
    except ImportError:
        module: Any = ModuleType("hwcomponents")
        module.ComponentModel = type("ComponentModel", (), {})
        module.get_models = lambda *_, **__: []
        module.get_model = module.get_action_cost = None
        sys.modules["hwcomponents"] = module


def without_drawing() -> None:
    """Let it not draw its mappings, which takes time and Graphviz."""
    from accelforge.frontend.mapping.mapping import Mapping  # type: ignore[import-not-found]

    Mapping.render = lambda *_, **__: ""


def nodes_of(mapping: Any) -> list[dict[str, Any]]:
    """A mapping as Tilewright's files write it; AccelForge's word for a dimension is a rank variable."""
    rows: list[dict[str, Any]] = []
    for node in mapping.nodes:
        kind = type(node).__name__
        if kind == "Storage":
            rows += [{"store": str(name), "level": str(node.component)} for name in node.tensors]
        elif kind == "Temporal":
            rows.append({"temporal": str(node.rank_variable).upper(), "tile": int(node.tile_shape)})
        elif kind == "Spatial":
            dim, tile = str(node.rank_variable).upper(), int(node.tile_shape)
            rows.append({"spatial": dim, "tile": tile, "axis": str(node.name)})
    return rows


def mapping_text(nodes: Sequence[dict[str, Any]], containers: dict[str, str], compute: str) -> str:
    """A mapping of Tilewright as AccelForge's YAML.

    Parameters
    ----------
    nodes : as Tilewright's files write them, outermost first
    containers : by array axis, the component that has it
    compute : the component that computes
    """
    lines = ["mapping:", "  nodes:"]
    for node in nodes:
        if "store" in node:
            lines.append(f"  - !Storage {{tensors: [{node['store']}], component: {node['level']}}}")
        elif "temporal" in node:
            dim = node["temporal"].lower()
            lines.append(f"  - !Temporal {{rank_variable: {dim}, tile_shape: {node['tile']}}}")
        else:
            dim, axis = node["spatial"].lower(), node["axis"]
            place = f"name: {axis}, component: {containers[axis]}"
            lines.append(f"  - !Spatial {{rank_variable: {dim}, tile_shape: {node['tile']}, {place}}}")
    lines.append(f"  - !Compute {{einsum: Layer, component: {compute}}}")
    return "\n".join(lines) + "\n"


def totals(mappings: Any) -> dict[str, float]:
    """Energy in pJ and delay in seconds of the best of some mappings."""
    data = mappings.data
    total = {
        name.split(">")[1]: float(min(data[name]))
        for name in data.columns
        if name.startswith("Total<SEP>") and "mapping" not in name
    }
    return {"energy": total["energy"] * 1e12, "delay": total["latency"]}


def mapped(accelforge: Any, question: dict[str, Any]) -> dict[str, Any]:
    """What AccelForge finds, as often as asked."""
    wanted = getattr(accelforge.Metrics, OBJECTIVES[question["objective"]])
    seconds: list[float] = []
    for _ in range(question["turns"]):
        begun = time.process_time()
        spec = accelforge.Spec.from_yaml(question["arch"], "workload.yaml")
        spec.mapper.metrics = wanted
        mappings = spec.map_workload_to_arch(print_progress=False)
        seconds.append(time.process_time() - begun)
    nodes = nodes_of(mappings.data["Total<SEP>mapping"].iloc[0]())
    return {**totals(mappings), "turns": seconds, "nodes": nodes}


def counted(accelforge: Any, question: dict[str, Any]) -> dict[str, Any]:
    """What AccelForge counts of a mapping."""
    text = mapping_text(question["nodes"], question["containers"], question["compute"])
    Path("mapping.yaml").write_text(text)
    spec = accelforge.Spec.from_yaml(question["arch"], "workload.yaml", "mapping.yaml")
    return totals(spec.evaluate_mapping())


def main() -> None:
    """Answer the question."""
    question = json.loads(Path(sys.argv[1]).read_text())
    question["arch"] = str(Path(question["arch"]).resolve())
    begun = time.process_time()
    without_component_models()
    import accelforge  # type: ignore[import-not-found]

    accelforge.set_n_parallel_jobs(1)
    without_drawing()
    imported = time.process_time() - begun
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # it draws its mapping into the folder that it runs in
        Path("workload.yaml").write_text(question["workload"])
        answer = counted(accelforge, question) if "nodes" in question else mapped(accelforge, question)
        os.chdir("/")
    print(json.dumps({**answer, "imported": imported}))


if __name__ == "__main__":
    main()
