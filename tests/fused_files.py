"""A fused mapping of two products as the plain data of its file, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, evaluate_fused
from tilewright.report.records.mapping.fused_file import parse_fused_mapping

HIERARCHY = cost_model("hierarchy")
PORTS = """\
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 8}
levels:
  - {name: DRAM, energy: 100, bandwidth: {read: 0.25 elements/cycle, write: 0.25 elements/cycle}}
  - {name: BUF, elements: 12, energy: 2, double_buffered: true}
"""
"""A buffer of a few elements behind a slow port."""

LEAF = [
    {"store": "B", "level": "DRAM"},
    {"store": "B", "level": "GBUF"},
    {"temporal": "N", "tile": 4},
    {"store": "C", "level": "ACC"},
    {"temporal": "K", "tile": 4},
    {"spatial": "K", "tile": 1, "axis": "c"},
    {"spatial": "N", "tile": 1, "axis": "k"},
    {"store": "B", "level": "REG"},
    {"temporal": "M", "tile": 1},
]
PAIR: dict[str, Any] = {
    "arch": "tpu-edge",
    "layers": [
        {"name": "qk", "layer": "gemm:M=16,N=16,K=8"},
        {"name": "av", "layer": "gemm:M=16,N=8,K=16", "reads": {"A": "qk"}},
    ],
    "nodes": [
        {"store": "qk.A", "level": "DRAM"},
        {"store": "av.C", "level": "DRAM"},
        {"temporal": "av.M", "tile": 8},
        {"store": "qk.A", "level": "GBUF"},
        {"store": "av.C", "level": "GBUF"},
        {"temporal": "av.K", "tile": 8},
        {"store": "qk.C", "level": "GBUF"},
        {"sequence": [{"layer": "qk", "nodes": LEAF}, {"layer": "av", "nodes": LEAF}]},
    ],
}


def evaluated(data: dict[str, Any]) -> FusedEvaluation:
    stored = parse_fused_mapping(data, "pair.yaml", Path())
    assert stored.engine is not None
    return evaluate_fused(stored.group, stored.engine, HIERARCHY, stored.tree, "pair.yaml")
