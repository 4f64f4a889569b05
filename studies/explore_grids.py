"""How much of a grid of machines is searched until the best one is proven, as a table.

    python -m studies.explore_grids "six layers" "conv5_2"

Every row is one call of `tilewright explore` on `dmazerunner-256` with one worker: the scratch-pads and
register files of dMazeRunner's experiment, 16 kB to 1 MB and 16 B to 1 kB, and for ResNet-50 also the number
of PEs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.time_to_proof import worked

LAYERS = str(Path(__file__).parents[1] / "examples" / "dmazerunner_layers.yaml")
REGISTERS = ("--vary", "levels.RF.capacity=16B..1kB*2")
SCRATCHPADS = ("--vary", "levels.SPM.capacity=16kB..1MB*2")
PES = ("--vary", "levels.SPM.fanout.axes.pe.size=64..1344+64")
CALLS: dict[str, tuple[str, ...]] = {
    "six layers, `sum-edp`": (LAYERS, "-o", "sum-edp", *SCRATCHPADS, *REGISTERS),
    "six layers, `edp`": (LAYERS, "-o", "edp", *SCRATCHPADS, *REGISTERS),
    "conv5_2, `edp`, `--values`": (LAYERS, "--layers=conv5_2", "-oedp", *SCRATCHPADS, *REGISTERS, "--values"),
    "conv5_2, `edp`, `--every`": (LAYERS, "--layers=conv5_2", "-oedp", *SCRATCHPADS, *REGISTERS, "--every"),
    "conv2_2, `edp`, `--values`": (LAYERS, "--layers=conv2_2", "-oedp", *SCRATCHPADS, *REGISTERS, "--values"),
    "conv2_2, `edp`, `--every`": (LAYERS, "--layers=conv2_2", "-oedp", *SCRATCHPADS, *REGISTERS, "--every"),
    "ResNet-50, five register files, `edp`": ("resnet50", "-oedp", "--vary=levels.RF.capacity=64B..1kB*2"),
    "ResNet-50, and 64 to 1,344 PEs, `sum-edp`": ("resnet50", "-osum-edp", *SCRATCHPADS, *REGISTERS, *PES),
}
HEAD = (
    "| what | designs | solved | discarded | without any search | layers searched | of | best design "
    "| value, J·cycle | gap | CPU s |\n|---|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|"
)


def row(name: str, more: Sequence[str]) -> str:
    """One exploration."""
    call = [sys.executable, "-m", "tilewright", "explore", *CALLS[name], "-a", "dmazerunner-256", "-q"]
    before = worked()
    ended = subprocess.run(
        [*call, "--jobs", "1", "--format", "json", *more], capture_output=True, text=True, check=True
    )
    spent = worked() - before
    document: dict[str, Any] = json.loads(ended.stdout)
    totals, best = document["totals"], document["best"]
    statuses = totals["statuses"]
    cells = (
        f"{totals['designs']:,}",
        statuses.get("solved", 0),
        f"{statuses.get('discarded', 0):,}",
        totals["unsearched"],
        totals["cells"]["searched"],
        f"{totals['designs'] * len(document['layers']):,}",
        ", ".join(map(str, best["fields"].values())),
        f"{float(best['value']) / 1e12:,.4g}",
        f"{100 * best['gap']:.2f} %",
        f"{spent:.0f}",
    )
    return f"| {name} | {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each row when it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", help="words of the rows' names; all rows by default")
    parser.add_argument("--time-limit", help="of a call, such as 20s")
    asked = parser.parse_args(arguments)
    more = ("--time-limit", asked.time_limit) if asked.time_limit else ()
    print(HEAD, flush=True)
    for name in CALLS:
        if not asked.rows or any(word in name for word in asked.rows):
            print(row(name, more), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
