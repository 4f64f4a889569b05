"""Traffic and cycles of fused products in RTL, beside the evaluator of fused mappings.

    python -m studies.fused_rtl fused_rtl.json

The file has rows of TileFlow's validation (MICRO 2023, figure 7 c and d): two products whose intermediate
stays in the buffer, their tiles, and what the RTL moved (in bits, 16 an element) and took (cycles).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, tree_from_data
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.mapping.fused_file import group_from_data

MACHINE = Path(__file__).parent / "machines" / "tileflow.yaml"
BITS = 16
SIDE = 16
"""Of the array."""
MEASURED = ("mem_to_buf", "buf_to_mem", "buf_to_reg", "reg_to_buf")


@dataclass(frozen=True)
class Counted:
    """A row as the evaluator counts it.

    Parameters
    ----------
    traffic : elements from memory to the buffer, back, from the buffer to the registers, and back
    cycles : of the evaluator, turns one after the other
    bus_cycles : of memory's port alone
    violations : rules of the machine that the mapping breaks
    """

    traffic: tuple[int, ...]
    cycles: int
    bus_cycles: float
    violations: tuple[str, ...]


def fused_mapping(row: Mapping[str, int]) -> tuple[FusedGroup, Branch]:
    """The row's layers and tree.

    ``micro_M`` rows of the intermediate stay in the buffer (the shared loop).  Inside, ``micro_K`` and
    ``micro_N`` are the tiles in which the right operand comes from memory; 16 x 16 parts of the left one stay
    in the registers while all columns stream past.  Between the products every element of the
    intermediate is read and written once more.
    """
    entries = [
        {"name": "first", "layer": f"gemm:M={row['M1']},N={row['N1']},K={row['K1']}"},
        {
            "name": "between",
            "layer": f"nest:P[m,l] += S[m,l] : m={row['M1']},l={row['N1']}",
            "reads": {"S": "first"},
        },
        {
            "name": "second",
            "layer": f"gemm:M={row['M2']},N={row['N2']},K={row['K2']}",
            "reads": {"A": "between"},
        },
    ]
    shared: list[dict[str, Any]] = [
        {"store": "first.A", "level": "MainMemory"},
        {"store": "second.C", "level": "MainMemory"},
        {"temporal": "second.M", "tile": row["micro_M2"]},
        *({"store": name, "level": "Cache"} for name in ("first.A", "second.C", "first.C", "between.P")),
    ]
    elements = {
        "layer": "between",
        "nodes": [
            {"temporal": "m", "tile": 1},
            {"temporal": "l", "tile": 1},
            {"store": "S", "level": "RegFile"},
            {"store": "P", "level": "RegFile"},
        ],
    }
    children = [_product("first", row, "1"), elements, _product("second", row, "2")]
    group = group_from_data(entries, None, "row")
    return group, tree_from_data([*shared, {"sequence": children}], "row")


def _product(layer: str, row: Mapping[str, int], number: str) -> dict[str, Any]:
    """The turns of one product, its left operand stationary in the array."""
    return {
        "layer": layer,
        "nodes": [
            {"store": "B", "level": "MainMemory"},
            {"temporal": "K", "tile": row[f"micro_K{number}"]},
            {"temporal": "N", "tile": row[f"micro_N{number}"]},
            {"store": "B", "level": "Cache"},
            {"temporal": "K", "tile": SIDE},
            {"temporal": "M", "tile": SIDE},
            {"temporal": "N", "tile": 1},
            {"spatial": "M", "tile": 1, "axis": "x"},
            {"spatial": "K", "tile": 1, "axis": "y"},
            *({"store": tensor, "level": "RegFile"} for tensor in "ABC"),
        ],
    }


def count(row: Mapping[str, int]) -> Counted:
    """What the evaluator says of a row.

    The array adds to sums in the buffer from its first block on, so the buffer reads every sum once more than
    the evaluator counts, which starts sums at zero.
    """
    engine = load_engine(str(MACHINE))
    group, tree = fused_mapping(row)
    evaluation = evaluate_fused(group, engine, cost_model("hierarchy"), tree)
    first_reads = row["M1"] * row["N1"] + row["M2"] * row["N2"]
    traffic = (
        _elements(evaluation, "MainMemory", "reads"),
        _elements(evaluation, "MainMemory", "updates"),
        _elements(evaluation, "Cache", "reads") + first_reads,
        _elements(evaluation, "Cache", "updates"),
    )
    rate = engine.level("MainMemory").read_bandwidth
    assert rate is not None
    return Counted(traffic, evaluation.cycles, (traffic[0] + traffic[1]) / float(rate), evaluation.violations)


def _elements(evaluation: FusedEvaluation, level: str, kind: str) -> int:
    place = ("reads", "fills", "updates").index(kind)
    turns = sum(
        counts[place]
        for cost in evaluation.layers
        for (at, _), counts in cost.accesses.items()
        if at == level
    )
    return turns + sum(move.accesses.get((level, kind), 0) for move in evaluation.movements)


def measured(row: Mapping[str, int]) -> tuple[int, ...]:
    """What the RTL moved, in elements."""
    return tuple(row[name] // BITS for name in MEASURED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how many rows are met, and how far cycles are off."""
    parser = argparse.ArgumentParser(prog="python -m studies.fused_rtl", description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path, help="rows of runs in RTL (JSON)")
    rows = json.loads(parser.parse_args(arguments).file.read_text("utf-8"))["rows"]
    counted = [count(row) for row in rows]
    met = sum(own.traffic == measured(row) for own, row in zip(counted, rows, strict=True))
    print(f"traffic: {met} of {len(rows)} rows met in all of {', '.join(MEASURED)}")
    for name, cycles in (
        ("memory's port", [own.bus_cycles for own in counted]),
        ("evaluator, turns one after the other", [float(own.cycles) for own in counted]),
    ):
        ratios = np.array(cycles) / np.array([row["cycles"] for row in rows])
        least, median, most = np.quantile(ratios, [0, 0.5, 1])
        print(f"cycles of {name} / RTL: median {median:.3f}, {least:.2f} to {most:.2f}")
    return 0 if met == len(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
