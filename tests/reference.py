"""Reference figures under ``tests/data`` as operators, engines and mappings."""

from __future__ import annotations

import json
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d

DIMS = "NKCPQRS"
DATA = Path(__file__).parent / "data"

TIMELOOP = Engine(
    "timeloop",
    "hierarchy",
    16,
    Fraction(1),
    Fraction(500),
    (
        MemoryLevel("DRAM", None, Fraction(200), Fraction(200)),
        MemoryLevel(
            "SPM",
            32768,
            Fraction("4.19"),
            Fraction("4.19"),
            sliding_window=True,
            fanout=Fanout((ArrayAxis("pe", 256),)),
        ),
        MemoryLevel("RF", 256, Fraction(1), Fraction(1), sliding_window=True),
    ),
)


def load(name: str, rows: str) -> Any:
    """The rows of a data file."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))[rows]


def convolution(row: MappingABC[str, Any]) -> Operator:
    """The convolution of a row of dMazeRunner's figures."""
    n, k, c, p, q, r, s = row["bounds"]
    side = row["input"]
    return conv2d(n=n, k=k, c=c, p=p, q=q, r=r, s=s, h=side, w=side, stride=row["stride"], pad=row["padding"])


def mapping(
    operator: Operator, tiling: MappingABC[str, Sequence[int]], orders: MappingABC[str, str]
) -> Mapping:
    """An even mapping on DRAM, SPM, an array ``pe`` and RF; loop orders are outermost first."""
    tile = dict(operator.bounds)
    nodes: list[Node] = []
    for site in ("DRAM", "SPM", "Spatial", "RF"):
        if site != "Spatial":
            nodes += [Storage(tensor.name, site) for tensor in operator.tensors]
        factors = dict(zip(DIMS, tiling[site], strict=True))
        for dim in orders.get(site, DIMS):
            if factors[dim] > 1:
                tile[dim] //= factors[dim]
                inner = tile[dim]
                nodes.append(Spatial(dim, inner, "pe") if site == "Spatial" else Temporal(dim, inner))
    return Mapping(tuple(nodes))
