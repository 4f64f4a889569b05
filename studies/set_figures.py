"""Tables to compare with figures 8 and 9 of SET (Cai et al., ISCA 2023): LS, LP, Tangram, annealing, search.

    python -m studies.set_figures --seconds 5 --store set.sqlite
    python -m studies.set_figures --platforms edge --batches 1 4 --seeds 3 --only-print

ResNet-50, GoogLeNet, Inception-ResNet-v1 and Transformer are the released program's networks, PNASNet is the
catalog's; shares cost what the released program's tile takes, trees what the paper's rules say.  The edge
platform is judged by E^2 D, the cloud by E D^2 (section 5.1.1).  Cells that the store lacks are computed.  Of
several seeds, the tree of the median is shown, and behind the last column the least and most over the seeds
of `set`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from studies.answers import AnswerStore
from studies.command import run_study, study_parser
from studies.set_cells import TREES, TreeCell, TreeFound

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

STOCHASTIC = ("set", "sa")
"""Those of which every seed is a search of its own."""

PAPER = {"lp-chains": (1.90, 21.7), "ls-chains": (1.68, 21.5), "tangram": (1.78, 13.2)}
"""How many times SET is faster, and percent of energy that it saves, over all cells (5.2.2 and 5.3.1)."""

HEAD = (
    "| network | batch | "
    + " | ".join(f"{name}: D / E" for name in list(METHODS.values())[:-1])
    + " | annealing: cycles | mJ | set's objective over it |\n|---|---:|"
    + "---:|" * (len(METHODS) + 2)
)


def cells(
    networks: Sequence[str], platform: str, batches: Sequence[int], seconds: float, seeds: int = 1
) -> list[TreeCell]:
    """All cells of a platform's table, those of a network and batch one after the other."""
    system, energy, delay = PLATFORMS[platform]
    return [
        TreeCell(
            network=network,
            part=(),
            system=system,
            figures="program",
            rules="paper",
            batch=batch,
            energy_power=energy,
            delay_power=delay,
            method=method,
            seed=seed,
            seconds=seconds,
        )
        for batch in batches
        for network in networks
        for method in METHODS
        for seed in (range(1, seeds + 1) if method in STOCHASTIC else (1,))
    ]


def table(asked: Sequence[TreeCell], store: AnswerStore[TreeCell, TreeFound], platform: str) -> list[str]:
    """Rows of a platform: every method's cycles and energy over those of SET's annealing."""
    lines = [
        f"{platform}, {PLATFORMS[platform][0]}, E^{PLATFORMS[platform][1]} D^{PLATFORMS[platform][2]}",
        "",
        HEAD,
    ]
    ratios: dict[str, list[tuple[float, float]]] = {}
    rows: dict[tuple[str, int], dict[str, list[TreeFound]]] = {}
    for cell in asked:
        runs = rows.setdefault((cell.network, cell.batch), {}).setdefault(cell.method, [])
        run = store.get(cell)
        if run is not None:
            runs.append(run)
    lines.extend(_row(*place, runs, ratios) for place, runs in rows.items())
    for method, pairs in ratios.items():
        faster, saved = (_mean([pair[i] for pair in pairs]) for i in (0, 1))
        words = f"annealing against {METHODS[method]}: {faster:.2f} times as fast, "
        words += f"{100 * (1 - 1 / saved):.1f} % less energy"
        if method in PAPER:
            words += f" (paper's SET: {PAPER[method][0]:.2f}, {PAPER[method][1]:.1f} %)"
        lines.append(f"{words}; {len(pairs)} cells")
    return lines


def _row(
    network: str,
    batch: int,
    by_method: dict[str, list[TreeFound]],
    ratios: dict[str, list[tuple[float, float]]],
) -> str:
    medians = {method: _median(ones) for method, ones in by_method.items()}
    best = medians.pop("sa")
    shown = [NETWORKS.get(network, network), str(batch)]
    for method, run in medians.items():
        if run is None or best is None or not run.cycles or not best.cycles:
            shown.append("-" if run is None else run.status)
            continue
        slower, dearer = run.cycles / best.cycles, run.energy / best.energy
        ratios.setdefault(method, []).append((slower, dearer))
        late = "*" if run.status == "out of time" else ""
        shown.append(f"{slower:.2f} / {dearer:.2f}{late}")
    if best is None or not best.cycles:
        return f"| {' | '.join([*shown, '-', '-', '-'])} |"
    own = medians["set"]
    gain = "-" if own is None else f"{_over(own, best)} %"
    if own is not None and len(by_method["set"]) > 1:
        ranked = sorted(by_method["set"], key=lambda run: run.value)
        gain += f" ({_over(ranked[0], best)} to {_over(ranked[-1], best)})"
    return f"| {' | '.join([*shown, f'{best.cycles:,}', f'{best.energy / 1e9:.3f}', gain])} |"


def _median(runs: Sequence[TreeFound]) -> TreeFound | None:
    """The tree of the median value, of an even number the lower one; ``None`` of none."""
    return sorted(runs, key=lambda run: run.value)[(len(runs) - 1) // 2] if runs else None


def _over(ours: TreeFound, other: TreeFound) -> str:
    """Percent by which an objective is above another."""
    return f"{100 * (ours.value / other.value - 1):+.1f}"


def _mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(math.log(ratio) for ratio in values) / len(values))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, then print the tables."""
    parser = study_parser(__doc__, "set.sqlite", 5.0)
    parser.add_argument("--platforms", nargs="+", default=list(PLATFORMS), choices=list(PLATFORMS))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--batches", nargs="+", type=int, default=list(BATCHES))
    parser.add_argument("--seeds", type=int, default=1, help="of annealing and our search")
    asked = parser.parse_args(arguments)
    tables = {
        platform: cells(asked.networks, platform, asked.batches, asked.seconds, asked.seeds)
        for platform in asked.platforms
    }
    return run_study(
        asked,
        TREES,
        [cell for platform in tables.values() for cell in platform],
        lambda store: [line for name, row in tables.items() for line in (*table(row, store, name), "")],
    )


if __name__ == "__main__":
    raise SystemExit(main())
