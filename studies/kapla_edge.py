"""A table to compare with KAPLA's figure 10: energy of inference on a small edge device, layer by layer.

    python -m studies.kapla_edge --networks alexnet mlp --seconds 5 --store edge.sqlite

On one node nothing is pipelined, so that every layer stands alone: B is its proven mapping (``auto``), K is
KAPLA's algorithm 1, R the random search (the median of five seeds), A annealing in place of the learned one.
Sums are over the layers that multiply and accumulate, batch 1; seconds are those of the processor, for each
layer.  Cells that the store lacks are computed, each kept as it ends.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low

from studies.answers import AnswerStore
from studies.command import Work, run_study, study_parser
from studies.kapla_tables import NETWORKS, SEEDS
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.catalog import resolve_model

WAYS = {"B": "auto", "R": "random", "A": "annealing", "K": "kapla"}
"""Methods by the letters of the table."""

DRAWN = ("R", "A")
"""Those that run once per seed."""


@dataclass(frozen=True, slots=True)
class EdgeCell:
    """One method on all layers of a network; ``seconds`` are for each layer."""

    network: str
    arch: str
    way: str
    seed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class EdgeFound:
    """Sums over a network's layers.

    Parameters
    ----------
    status : ``found``, or ``none`` where a layer has no mapping
    energy, bound : pJ of what was found and of what is proven; 0 where a layer has no mapping
    proven, layers : distinct layers whose mapping is proven, and all
    seconds : of the processor
    """

    status: str
    energy: float
    bound: float
    proven: int
    layers: int
    seconds: float
    message: str = ""


def edge_store(path: Path) -> AnswerStore[EdgeCell, EdgeFound]:
    """The file of finished cells."""
    return AnswerStore(path, EdgeFound, 0x546C4B65, "cells of KAPLA's edge device")  # "TlKe"


def compute(cell: EdgeCell) -> EdgeFound:
    """Map every distinct layer, and add up what all of them take."""
    engine, goal = load_engine(cell.arch), parse_objective("energy")
    energy = bound = 0.0
    proven = layers = 0
    complete, started = True, time.process_time()
    for distinct in resolve_model(cell.network, 1).distinct_layers(mac_only=True):
        problem = layer_problem(distinct.layer.operator, engine, goal, factors="perfect")
        limits = Limits(cell.seconds, threads=1, seed=cell.seed, clock=time.process_time)
        result = solve(problem, WAYS[cell.way], limits)
        layers += 1
        proven += str(result.status) == "optimal"
        complete = complete and result.key is not None
        energy += distinct.count * float(goal.value(result.key) if result.key is not None else 0)
        bound += distinct.count * float(goal.value(result.bound) if result.bound is not None else 0)
    seconds = time.process_time() - started
    return EdgeFound(
        "found" if complete else "none", energy if complete else 0.0, bound, proven, layers, seconds
    )


def cells(network: str, arch: str, seconds: float) -> list[EdgeCell]:
    """All searches of one network."""
    return [
        EdgeCell(network, arch, way, seed, seconds)
        for way in WAYS
        for seed in range(SEEDS if way in DRAWN else 1)
    ]


def table(networks: Sequence[str], arch: str, seconds: float, store: AnswerStore[EdgeCell, EdgeFound]) -> str:
    """The table as Markdown."""
    heads = (
        "network",
        "layers",
        "proven",
        "B [mJ]",
        "gap [%]",
        *(f"{way} [%]" for way in WAYS if way != "B"),
    )
    heads += tuple(f"{way} [s]" for way in WAYS)
    lines = [
        "Energy of inference on one node.  Paper: K 1.9 % above B on average, 10 % on ResNet; R 3.8 %.",
        "",
        f"| {' | '.join(heads)} |",
        "|---|" + "---:|" * (len(heads) - 1),
    ]
    for network in networks:
        by_way: dict[str, list[EdgeFound]] = {way: [] for way in WAYS}
        for cell in cells(network, arch, seconds):
            answer = store.get(cell)
            if answer is not None:
                by_way[cell.way].append(answer)
        if not by_way["B"] or by_way["B"][0].energy <= 0:
            lines.append(f"| {network} | not run |")
            continue
        best = by_way["B"][0]
        row = [network, str(best.layers), str(best.proven), f"{best.energy / 1e9:.4g}"]
        row.append(f"{100 * (1 - best.bound / best.energy):.1f}")
        for way in list(WAYS)[1:]:
            whole = len(by_way[way]) == (SEEDS if way in DRAWN else 1)
            there = [answer.energy for answer in by_way[way] if answer.energy > 0]
            complete = whole and len(there) == len(by_way[way])
            row.append(f"{100 * (median_low(there) / best.energy - 1):+.1f}" if complete else "-")
        row += [f"{median_low([o.seconds for o in by_way[w]]):.1f}" if by_way[w] else "-" for w in WAYS]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _reported(cell: EdgeCell, found: EdgeFound) -> str:
    return f"{cell.network} {cell.way} {cell.seed}: {found.status} {found.energy:.4g} pJ {found.message}"


WORK = Work(
    edge_store, compute, lambda message: EdgeFound("error", 0.0, 0.0, 0, 0, 0.0, message=message), _reported
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, and print the table."""
    parser = study_parser(__doc__, "kapla-edge.sqlite", 5.0)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--arch", default="tpu-edge")
    asked = parser.parse_args(arguments)
    wanted = [cell for name in asked.networks for cell in cells(name, asked.arch, asked.seconds)]
    return run_study(
        asked, WORK, wanted, lambda store: [table(asked.networks, asked.arch, asked.seconds, store)]
    )


if __name__ == "__main__":
    raise SystemExit(main())
