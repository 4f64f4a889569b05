"""Markdown tables of what `tilewright.benchmarks.herald` has measured.

python -m tilewright.benchmarks.herald_tables schedules.jsonl
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from math import exp, log
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def schedule_table(rows: list[Row]) -> str:
    """Gap, Herald's gap and time, the greedy scheduler's distance."""
    lines = [
        "| workload, class | objective | layers | value | gap | after 10 s "
        "| Herald's gap | Herald, ms per layer | greedy over Herald |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        unit, scale = ("Mcycles", 1e6) if row["objective"] == "makespan" else ("EJ·cycle", 1e30)
        early = row.get("gap_10")
        lines.append(
            f"| {row['workload']}, {row['class']} | {row['objective']} | {row['tasks']} | "
            f"{_value(row, scale)} {unit} | {_percent(row['gap'])} | {_percent(early)} | "
            f"{_percent(row['herald_gap'])} | {1000 * row['herald_s'] / row['tasks']:.2f} | "
            f"{100 * (row['greedy_value'] / row['herald_value'] - 1):+.1f} % |"
        )
    return "\n".join(lines)


def style_table(rows: list[Row]) -> str:
    """Latency, energy and energy-delay product of every style, and the best FDA's over Maelstrom's."""
    lines = [
        "| workload, class | system | latency, Mcycles | energy, mJ | EDP to the best FDA | gap |",
        "|---|---|---:|---:|---:|---:|",
    ]
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["workload"], row["class"]].append(row)
    for (workload, size), own in groups.items():
        best = min(row["cpsat_value"] for row in own if row["system"].startswith("fda"))
        for row in own:
            lines.append(
                f"| {workload}, {size} | {row['system']} "
                f"| {row['cycles'] / 1e6:,.2f} | {row['energy'] * 1e-9:,.1f} "
                f"| {100 * (row['cpsat_value'] / best - 1):+.1f} % | {_percent(row['gap'])} |"
            )
    return "\n".join(lines)


def codesign_table(rows: list[Row]) -> str:
    """The best partition of every grid."""
    lines = [
        "| workload, class | best PEs | GB/s | gap | partitions "
        "| discarded | scheduled | tables, s | all, s |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        pes = " / ".join(f"{part['pes']:g}" for part in row["partition"])
        rates = " / ".join(f"{part['bytes_per_cycle']:g}" for part in row["partition"])
        lines.append(
            f"| {row['workload']}, {row['class']} | {pes} | {rates} | {_percent(row['gap'])} | "
            f"{row['partitions']} | {row['discarded']} | {row['scheduled']} | "
            f"{row['tables_s']:.0f} | {row['wall_s']:.0f} |"
        )
    return "\n".join(lines)


def greedy_mean(rows: list[Row]) -> str:
    """How much less the energy-delay product is than the greedy scheduler's, in the geometric mean."""
    own = [row for row in rows if row["objective"] == "edp"]
    means = {
        name: 1 - exp(sum(log(row[f"{name}_value"] / row["greedy_value"]) for row in own) / len(own))
        for name in ("herald", "cpsat")
    }
    return ", ".join(f"{name}: {100 * mean:.1f} % less EDP than greedy" for name, mean in means.items())


def _value(row: Row, scale: float) -> str:
    return (
        f"{row['cpsat_value'] / scale:,.4g}" if row["objective"] == "edp" else f"{row['cycles'] / scale:,.2f}"
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"


def main() -> None:
    """Print the table that fits the rows."""
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    if "partition" in rows[0]:
        print(codesign_table(rows))
    elif any(not row["system"].startswith("hda") for row in rows):
        print(style_table(rows))
    else:
        print(schedule_table(rows))
        print()
        print(greedy_mean(rows))


if __name__ == "__main__":
    main()
