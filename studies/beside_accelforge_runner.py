"""Maps one product of matrices with AccelForge; run by its own interpreter, see `beside_accelforge`.

    PYTHON beside_accelforge_runner.py ARCH.yaml M N K energy|edp TURNS

Prints JSON: pJ and seconds of the best mapping, its nodes, and the seconds of the processor that importing it
and every turn took.  AccelForge's component models are a package of their own; where it is missing, machines
that state every energy do without.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

WORKLOAD = """
workload:
  iteration_space_shape:
    m: 0 <= m < {m}
    k: 0 <= k < {k}
    n: 0 <= n < {n}
  bits_per_value: {{All: 8}}
  einsums:
  - name: Product
    tensor_accesses:
    - {{name: A, projection: [m, k]}}
    - {{name: W, projection: [k, n]}}
    - {{name: Z, projection: [m, n], output: True}}
    renames: {{weight: W, input: A, output: Z}}
"""


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


TENSORS = {"A": "A", "W": "B", "Z": "C"}
"""AccelForge's names of this workload's tensors, and Tilewright's."""


def nodes_of(mapping: Any) -> list[dict[str, Any]]:
    """A mapping as Tilewright's files write it; AccelForge's word for a dimension is a rank variable."""
    rows: list[dict[str, Any]] = []
    for node in mapping.nodes:
        kind = type(node).__name__
        if kind == "Storage":
            rows += [{"store": TENSORS[str(name)], "level": str(node.component)} for name in node.tensors]
        elif kind == "Temporal":
            rows.append({"temporal": str(node.rank_variable).upper(), "tile": int(node.tile_shape)})
        elif kind == "Spatial":
            dim, tile = str(node.rank_variable).upper(), int(node.tile_shape)
            rows.append({"spatial": dim, "tile": tile, "axis": str(node.name)})
    return rows


def main() -> None:
    """Map the product as often as asked."""
    arch, m, n, k, objective, turns = sys.argv[1:]
    arch = str(Path(arch).resolve())
    begun = time.process_time()
    without_component_models()
    import accelforge  # type: ignore[import-not-found]

    accelforge.set_n_parallel_jobs(1)
    imported = time.process_time() - begun
    metrics = accelforge.Metrics
    wanted = {"energy": metrics.ENERGY, "edp": metrics.ENERGY_DELAY_PRODUCT}[objective]
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # it draws its mapping into the folder that it runs in
        Path("workload.yaml").write_text(WORKLOAD.format(m=m, n=n, k=k))
        for _ in range(int(turns)):
            begun = time.process_time()
            spec = accelforge.Spec.from_yaml(arch, "workload.yaml")
            spec.mapper.metrics = wanted
            mappings = spec.map_workload_to_arch(print_progress=False)
            seconds.append(time.process_time() - begun)
        os.chdir("/")
    total = {
        name.split(">")[1]: float(min(mappings.data[name]))
        for name in mappings.data.columns
        if name.startswith("Total<SEP>") and "mapping" not in name
    }
    reported = {
        "energy": total["energy"] * 1e12,
        "delay": total["latency"],
        "imported": imported,
        "turns": seconds,
        "nodes": nodes_of(mappings.data["Total<SEP>mapping"].iloc[0]()),
    }
    print(json.dumps(reported))


if __name__ == "__main__":
    main()
