"""A table of language models from result documents: seconds, joules, proofs, and where the time goes.

    tilewright map 'llama3[phase=decode]' -a tpu-v4i -o edp --out decode.json
    python -m studies.language_models decode.json

Seconds and joules are of one pass: of a prompt in prefill, of one more token for every sequence in decode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tilewright.report.records.mapping.layer_kinds import KINDS, OTHERS, kind_of


def shares(document: Mapping[str, Any]) -> dict[str, float]:
    """The share of the cycles that each kind of layers has; layers without a mapping have none."""
    cycles = dict.fromkeys([*KINDS, OTHERS], 0)
    for layer in document["layers"]:
        if layer["metrics"] is not None:
            for name in layer["names"]:
                cycles[kind_of(name)] += layer["metrics"]["cycles"]
    whole = sum(cycles.values()) or 1
    return {kind: count / whole for kind, count in cycles.items()}


def proven(document: Mapping[str, Any]) -> tuple[int, int]:
    """Layers whose mapping is proven optimal, and all that were asked for."""
    counts = [(layer["count"], layer["status"] == "optimal") for layer in document["layers"]]
    asked = sum(count for count, _ in counts) + len(document["missing"])
    return sum(count for count, done in counts if done), asked


def proven_value(document: Mapping[str, Any]) -> float:
    """The share of the layers' values, each as often as its layer is there, that is proven optimal."""
    values = [
        (layer["count"] * (layer["value"] or 0), layer["status"] == "optimal") for layer in document["layers"]
    ]
    whole = sum(value for value, _ in values) or 1
    return float(sum(value for value, done in values if done) / whole)


def short(amount: float | None) -> str:
    """Three digits; a dash for what layers without a mapping leave open."""
    return "–" if amount is None else f"{amount:.3g}"


HEADS = ("network", "pass", "batch", "proven", "of the value", "s", "J per sequence", *KINDS, OTHERS, "CPU s")


def row(document: Mapping[str, Any]) -> list[str]:
    """The cells of one document."""
    done, asked = proven(document)
    totals, batch = document["totals"], document["batch"]
    passed = re.search(r"phase=(\w+)", document["model"])
    size = re.search(r"size=([\w.-]+)", document["model"])
    energy = totals["energy_pj"]
    return [
        f"{document['model'].partition('[')[0]} {size[1] if size else ''}".strip(),
        passed[1] if passed else "one pass",
        str(batch),
        f"{done} of {asked}",
        f"{100 * proven_value(document):.1f} %",
        short(totals["time_s"]),
        short(None if energy is None else energy * 1e-12 / batch),
        *(f"{100 * share:.0f} %" for share in shares(document).values()),
        f"{sum(layer['wall_s'] for layer in document['layers']):.0f}",
    ]


def tables(files: Iterable[Path]) -> Iterator[str]:
    """Lines of a Markdown table for each machine, from result documents."""
    rows: dict[str, list[list[str]]] = {}
    for file in files:
        document = json.loads(file.read_text(encoding="utf-8"))
        rows.setdefault(document["arch"]["name"], []).append(row(document))
    for machine, own in rows.items():
        yield f"On {machine}:\n"
        yield f"| {' | '.join(HEADS)} |\n|---|---|{'---:|' * (len(HEADS) - 2)}"
        yield from (f"| {' | '.join(parts)} |" for parts in own)
        yield ""


def run(files: Annotated[list[Path], typer.Argument(help="result documents of `tilewright map`")]) -> None:
    """Read and print a table for each machine."""
    print("\n".join(tables(files)))


if __name__ == "__main__":
    typer.run(run)
