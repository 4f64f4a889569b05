"""Markdown tables of what `studies.herald` has measured.

    python -m studies.herald_tables schedules.jsonl

Rows of styles give figures by style and scenario, gains as in table VI, scheduling times as in table VII.
Rows of different parts stand in files of their own; those of schedules may stand beside those of co-design.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from math import exp, log
from pathlib import Path
from typing import Any

from tilewright.hardware.scheduling.herald.classes import TABLE_V

Row = dict[str, Any]


def schedule_table(rows: list[Row]) -> str:
    """Gap, Herald's gap and time, the greedy scheduler's distance."""
    lines = [
        "| workload, class | objective | layers | value | gap "
        "| s | Herald's gap | Herald, ms per layer | greedy over Herald |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        unit, scale = ("Mcycles", 1e6) if row["objective"] == "makespan" else ("GJ·cycle", 1e21)
        lines.append(
            f"| {row['workload']}, {row['class']} | {row['objective']} | {row['tasks']} | "
            f"{_value(row, scale)} {unit} | {_percent(row['gap'])} | {row['seconds']:.0f} | "
            f"{_percent(row['herald_gap'])} | {1000 * row['herald_s'] / row['tasks']:.2f} | "
            f"{100 * (row['greedy_value'] / row['herald_value'] - 1):+.1f} % |"
        )
    return "\n".join(lines)


def style_tables(rows: list[Row]) -> str:
    """EDP against the best FDA's, latency and energy of every style in every scenario, and the gaps."""
    scenarios = _scenarios(rows)
    best = {
        scenario: min(row["cpsat_value"] for row in own if row["system"].startswith("fda"))
        for scenario, own in scenarios.items()
    }
    figures: dict[str, Callable[[Row], str]] = {
        "EDP, over that of the best FDA": lambda row: (
            f"{row['cpsat_value'] / best[row['workload'], row['class']]:.3g}"
        ),
        "Latency, Mcycles": lambda row: f"{row['cycles'] / 1e6:,.1f}",
        "Energy, mJ": lambda row: f"{row['energy'] * 1e-9:,.0f}",
        "Gap of the EDP": lambda row: _percent(row["gap"]),
    }
    return "\n\n".join(_by_style(scenarios, title, figure) for title, figure in figures.items())


def _by_style(scenarios: dict[tuple[str, str], list[Row]], title: str, figure: Callable[[Row], str]) -> str:
    lines = [
        f"| {title} | {' | '.join(', '.join(scenario) for scenario in scenarios)} |",
        "|---|" + "---:|" * len(scenarios),
    ]
    cells: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for scenario, own in scenarios.items():
        for row in own:
            cells[_style(row)][scenario] = figure(row)
    for style in sorted(cells, key=lambda name: (_STYLES.index(name.partition(" ")[0]), name)):
        lines.append(f"| {style} | {' | '.join(cells[style].get(column, '-') for column in scenarios)} |")
    return "\n".join(lines)


_STYLES = ("FDA", "SM-FDA", "RDA", "HDA", "Maelstrom")


def _style(row: Row) -> str:
    """The style without class, as table III names it."""
    kind, _, *flows = row["system"].split("-")
    if "maelstrom" in flows:
        return "Maelstrom (table V)"
    return " ".join([{"smfda": "SM-FDA"}.get(kind, kind.upper()), " + ".join(flows)]).strip()


def codesign_table(rows: list[Row], schedules: list[Row]) -> str:
    """The best partition of every grid, compared with that of table V.

    Parameters
    ----------
    schedules : rows of schedules, where table V's partition may have a better one than in the grid's search
    """
    lines = [
        "| workload, class | best PEs | GB/s | EDP, GJ·cycle | gap | table V over it | partitions "
        "| discarded | scheduled | s |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        if row["partition"] is None:
            lines.append(f"| {row['workload']}, {row['class']} | - | | | | | {row['partitions']} | | | |")
            continue
        pes = " / ".join(f"{part['pes']:g}" for part in row["partition"])
        rates = " / ".join(f"{part['bytes_per_cycle']:g}" for part in row["partition"])
        published = _published(row, schedules)
        times = "-" if published is None else f"{published / row['value']:.2f} times"
        lines.append(
            f"| {row['workload']}, {row['class']} | {pes} | {rates} | {row['value'] / 1e21:,.4g} "
            f"| {_percent(row['gap'])} | {times} | {row['partitions']} "
            f"| {row['discarded']} | {row['scheduled']} | {row['wall_s']:.0f} |"
        )
    return "\n".join(lines)


def _published(row: Row, schedules: list[Row]) -> float | None:
    """The least value known of table V's partition; ``None`` for a workload that it does not have."""
    place = row["class"], row["workload"].partition("-1")[0].partition("-8")[0]
    if place not in TABLE_V:
        return None
    rates, pes = TABLE_V[place]
    parts = [{"pes": p, "bytes_per_cycle": float(rate)} for p, rate in zip(pes, rates, strict=True)]
    values = [point["value"] for point in row["points"] if point["partition"] == parts]
    for other in schedules:
        if "maelstrom" in other["system"] and other["objective"] == row["objective"] and _same(other, row):
            values.append(other["cpsat_value"])
    return min(map(float, values))


def _same(row: Row, other: Row) -> bool:
    """Whether two rows are of one scenario."""
    return bool((row["workload"], row["class"]) == (other["workload"], other["class"]))


def gain_table(rows: list[Row], partitions: list[Row]) -> str:
    """Table VI: latency and energy that Maelstrom saves against the FDA of least EDP and the RDA.

    Parameters
    ----------
    rows, partitions : of styles, and of co-design, whose best partition is a second Maelstrom
    """
    lines = [
        "| class | workload | partition | latency gain, vs FDA / vs RDA | energy gain | EDP gain |",
        "|---|---|---|---:|---:|---:|",
    ]
    for (workload, size), own in sorted(_scenarios(rows).items(), key=lambda item: item[0][::-1]):
        fda = min((r for r in own if r["system"].startswith("fda")), key=lambda r: float(r["cpsat_value"]))
        rda = next(r for r in own if r["system"].startswith("rda"))
        chosen = {"table V": next(r for r in own if "maelstrom" in r["system"])}
        for row in partitions:
            if _same(row, own[0]):
                best = min(row["points"], key=lambda point: float(point["value"]))
                chosen["best"] = {"cycles": best["cycles"], "energy": best["energy_pj"]}
        for name, hda in chosen.items():
            latency, energy, product = (
                " / ".join(f"{100 * (1 - figure(hda) / figure(other)):+.1f} %" for other in (fda, rda))
                for figure in _FIGURES
            )
            lines.append(f"| {size} | {workload} | {name} | {latency} | {energy} | {product} |")
    return "\n".join(lines)


_FIGURES: tuple[Callable[[Row], float], ...] = (
    lambda row: row["cycles"],
    lambda row: row["energy"],
    lambda row: row["cycles"] * row["energy"],
)


def time_table(rows: list[Row]) -> str:
    """Table VII: seconds of Herald's scheduler, both orders, on systems of two and of three."""
    lines = ["| workload | layers | sub-accelerators | time, s |", "|---|---:|---:|---:|"]
    groups: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for row in rows:
        if row["system"].startswith("hda"):
            count = 3 if row["system"].count("-") > 3 else 2
            groups[row["workload"], row["tasks"], count].append(row["herald_wall_s"])
    for (workload, tasks, count), seconds in sorted(groups.items()):
        lines.append(f"| {workload} | {tasks} | {count} | {sum(seconds) / len(seconds):.2f} |")
    return "\n".join(lines)


def _scenarios(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["workload"], row["class"]].append(row)
    return groups


def greedy_mean(rows: list[Row]) -> str:
    """How much less the energy-delay product is than the greedy scheduler's, in the geometric mean."""
    own = [row for row in rows if row["objective"] == "edp"]
    if not own:
        return ""
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


def simple_table(rows: list[Row], heads: dict[str, str]) -> str:
    """A row per workload and class; ``heads`` are those of shares, by their key."""
    lines = [f"| workload, class | {' | '.join(heads.values())} |", "|---|" + "---:|" * len(heads)]
    for row in rows:
        shares = " | ".join(_percent(row[key]) for key in heads)
        lines.append(f"| {row['workload']}, {row['class']} | {shares} |")
    return "\n".join(lines)


SHARES = (
    {"utilization": "utilization of FDA nvdla", "largest_gain": "most that any machine could gain"},
    {"saved": "energy saved", "saved_without_limit": "if all that fits stayed"},
)
"""Columns of utilization and of results that stay, by the keys of their rows."""


def main() -> None:
    """Print the tables that fit the rows."""
    rows = [json.loads(line) for name in sys.argv[1:] for line in Path(name).read_text().splitlines()]
    for heads in SHARES:
        if rows and heads.keys() <= rows[0].keys():
            print(simple_table(rows, heads))
            return
    partitions = [row for row in rows if "partition" in row]
    schedules = [row for row in rows if "partition" not in row]
    tables = []
    if any(not row["system"].startswith("hda") for row in schedules):
        tables += [style_tables(schedules), gain_table(schedules, partitions), time_table(schedules)]
    elif schedules:
        tables += [schedule_table(schedules), greedy_mean(schedules)]
    if partitions:
        tables.append(codesign_table(partitions, schedules))
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
