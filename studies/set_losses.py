"""What SET's annealing, KAPLA's chains and Tangram lose against the best tree, over many small graphs.

    python -m studies.set_losses --graphs 110 --seconds 20 --store losses.sqlite

The graphs are parts of real networks, a few consecutive layers each, with 1, 2 or 4 samples (the largest ones
with one), on 4 x 4 tiles with the figures of the released program's tile and the paper's rules.  The best of
all trees is proven by the closed form (EDP); graphs whose proof takes longer than the time are counted and
left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from random import Random

from studies.answers import AnswerStore
from studies.command import run_study, study_parser
from studies.set_cells import TREES, TreeCell, TreeFound
from tilewright.formulation.scheduling.tiled.set.released.networks import program_network
from tilewright.foundation.errors import InputError

NETWORKS = ("resnet", "goog", "darknet", "ires", "vgg", "trans_cell")
SIZES = (3, 4, 5)
BATCHES = (1, 2, 4)
METHODS = {"sa": "SET's annealing (beta 100)", "kapla": "KAPLA (k = 4)", "tangram": "Tangram", "set": "set"}

Graph = tuple[str, tuple[int, ...], int]
"""Network, layers, samples."""

HEAD = (
    "| method | batch | graphs | best found | mean loss | median | 90th of 100 | most |\n|---|---:|"
    + "---:|" * 6
)


def graphs(count: int) -> list[Graph]:
    """Parts drawn at random, each once; those whose borders cut through what a layer reads are not drawn."""
    random = Random(1)
    drawn: dict[Graph, None] = {}
    while len(drawn) < count:
        name, size = random.choice(NETWORKS), random.choice(SIZES)
        network = program_network(name)
        first = random.randrange(len(network) - size + 1)
        layers = tuple(range(first, first + size))
        try:
            network.part(layers, "part")
        except InputError:
            continue
        drawn[name, layers, random.choice(BATCHES) if size < max(SIZES) else 1] = None
    return list(drawn)


def cell(graph: Graph, method: str, seconds: float) -> TreeCell:
    """One search on one graph."""
    name, layers, batch = graph
    return TreeCell(
        network=name,
        part=layers,
        system="set-edge-4x4",
        figures="program",
        rules="paper",
        batch=batch,
        energy_power=1,
        delay_power=1,
        method=method,
        seed=1,
        seconds=seconds,
    )


def table(every: Sequence[Graph], store: AnswerStore[TreeCell, TreeFound], seconds: float) -> list[str]:
    """Losses by method and number of samples, and over all."""
    proven: dict[Graph, TreeFound] = {}
    for graph in every:
        best = store.get(cell(graph, "all", seconds))
        if best is not None and best.status == "proven" and best.cycles:
            proven[graph] = best
    lines = [f"{len(every)} graphs, {len(proven)} of them proven", "", HEAD]
    for method, name in METHODS.items():
        for batch in (*BATCHES, 0):
            losses = []
            for graph, best in proven.items():
                run = store.get(cell(graph, method, seconds))
                if batch in (0, graph[2]) and run is not None and run.cycles:
                    losses.append(run.value / best.value - 1)
            if losses:
                lines.append(f"| {name} | {batch or 'all'} | {_figures(losses)} |")
    return lines


def _figures(losses: Sequence[float]) -> str:
    ranked = sorted(losses)
    exact = sum(loss < 1e-9 for loss in ranked)
    shown = (statistics.fmean(ranked), statistics.median(ranked), ranked[len(ranked) * 9 // 10], ranked[-1])
    return " | ".join([str(len(ranked)), str(exact), *(f"{100 * quantile:.2f} %" for quantile in shown)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, then print the table."""
    parser = study_parser(__doc__, "losses.sqlite", 20.0)
    parser.add_argument("--graphs", type=int, default=110)
    asked = parser.parse_args(arguments)
    every = graphs(asked.graphs)
    asked_cells = [cell(graph, method, asked.seconds) for graph in every for method in ("all", *METHODS)]
    return run_study(asked, TREES, asked_cells, lambda store: table(every, store, asked.seconds))


if __name__ == "__main__":
    raise SystemExit(main())
