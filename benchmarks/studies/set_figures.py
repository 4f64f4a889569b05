"""Tables beside figures 8 and 9 of SET (Cai et al., ISCA 2023): LS, LP, Tangram, annealing and our search.

    python -m tilewright.benchmarks.studies.set_figures --seconds 5 --store set.sqlite
    python -m tilewright.benchmarks.studies.set_figures --platforms edge --batches 1 4 --only-print

ResNet-50, GoogLeNet, Inception-ResNet-v1 and Transformer are the released program's networks, PNASNet is the
catalog's; shares cost what the released program's tile takes, trees what the paper's rules say.  The edge
platform is judged by E^2 D, the cloud by E D^2 (section 5.1.1).  Cells that the store lacks are computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.benchmarks.studies.answers import AnswerStore
from tilewright.benchmarks.studies.command import run_study, study_parser
from tilewright.benchmarks.studies.set_cells import TREES, TreeCell, TreeFound

NETWORKS = {
    "resnet": "ResNet-50",
    "goog": "GoogLeNet",
    "ires": "Inception-ResNet-v1",
    "pnasnet-5-large": "PNASNet",
    "trans": "Transformer",
}
PLATFORMS = {"edge": ("set-edge-4x4", 2, 1), "cloud": ("set-cloud-12x12", 1, 2)}
"""System, and powers of energy and delay."""

BATCHES = (1, 4, 16, 64)
METHODS = {"ls-chains": "LS", "lp-chains": "LP", "tangram": "Tangram", "set": "set", "sa": "annealing"}
"""The last one is SET as published, which the others are held against."""

PAPER = {"lp-chains": (1.90, 21.7), "ls-chains": (1.68, 21.5), "tangram": (1.78, 13.2)}
"""How many times SET is faster, and percent of energy that it saves, over all cells (5.2.2 and 5.3.1)."""

HEAD = (
    "| network | batch | "
    + " | ".join(f"{name}: D / E" for name in list(METHODS.values())[:-1])
    + " | annealing: cycles | mJ | set's objective over it |\n|---|---:|"
    + "---:|" * (len(METHODS) + 2)
)


def cells(networks: Sequence[str], platform: str, batches: Sequence[int], seconds: float) -> list[TreeCell]:
    """All cells of a platform's table."""
    system, energy, delay = PLATFORMS[platform]
    return [
        TreeCell(network, (), system, "program", "paper", batch, energy, delay, method, 1, seconds)
        for batch in batches
        for network in networks
        for method in METHODS
    ]


def table(asked: Sequence[TreeCell], store: AnswerStore[TreeCell, TreeFound], platform: str) -> list[str]:
    """Rows of a platform: every method's cycles and energy over those of SET's annealing."""
    lines = [
        f"{platform}, {PLATFORMS[platform][0]}, E^{PLATFORMS[platform][1]} D^{PLATFORMS[platform][2]}",
        "",
        HEAD,
    ]
    ratios: dict[str, list[tuple[float, float]]] = {}
    for first in range(0, len(asked), len(METHODS)):
        row = asked[first : first + len(METHODS)]
        found = [store.get(cell) for cell in row]
        lines.append(_row(row, found, ratios))
    for method, pairs in ratios.items():
        faster, saved = (_mean([pair[i] for pair in pairs]) for i in (0, 1))
        words = f"annealing against {METHODS[method]}: {faster:.2f} times as fast, "
        words += f"{100 * (1 - 1 / saved):.1f} % less energy"
        if method in PAPER:
            words += f" (paper's SET: {PAPER[method][0]:.2f}, {PAPER[method][1]:.1f} %)"
        lines.append(f"{words}; {len(pairs)} cells")
    return lines


def _row(
    row: Sequence[TreeCell], found: Sequence[TreeFound | None], ratios: dict[str, list[tuple[float, float]]]
) -> str:
    best = found[-1]
    shown = [NETWORKS.get(row[0].network, row[0].network), str(row[0].batch)]
    own = None
    for cell, one in zip(row[:-1], found[:-1], strict=True):
        if one is None or best is None or not one.cycles or not best.cycles:
            shown.append("-" if one is None else one.status)
            continue
        slower, dearer = one.cycles / best.cycles, one.energy / best.energy
        ratios.setdefault(cell.method, []).append((slower, dearer))
        late = "*" if one.status == "out of time" else ""
        shown.append(f"{slower:.2f} / {dearer:.2f}{late}")
        own = one.value if cell.method == "set" else own
    if best is None or not best.cycles:
        return f"| {' | '.join([*shown, '-', '-', '-'])} |"
    gain = "-" if own is None else f"{100 * (own / best.value - 1):+.1f} %"
    return f"| {' | '.join([*shown, f'{best.cycles:,}', f'{best.energy / 1e9:.3f}', gain])} |"


def _mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(math.log(one) for one in values) / len(values))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, then print the tables."""
    parser = study_parser(__doc__, "set.sqlite", 5.0)
    parser.add_argument("--platforms", nargs="+", default=list(PLATFORMS), choices=list(PLATFORMS))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--batches", nargs="+", type=int, default=list(BATCHES))
    asked = parser.parse_args(arguments)
    tables = {one: cells(asked.networks, one, asked.batches, asked.seconds) for one in asked.platforms}
    return run_study(
        asked,
        TREES,
        [cell for one in tables.values() for cell in one],
        lambda store: [line for name, row in tables.items() for line in (*table(row, store, name), "")],
    )


if __name__ == "__main__":
    raise SystemExit(main())
