"""How large a graph the exact method proves on 2 x 2 engines, as a table.

    python -m studies.tiled_proofs --seconds 60
    python -m studies.tiled_proofs --seconds 60 --networks real --objective edp

Every case is run with a network that costs nothing and with hops and link loads.  Energies are in pJ.
Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from fractions import Fraction

from studies.tiled_graphs import (
    BLOCKS,
    MACHINE,
    SmallGraph,
    block,
    machine_of,
    rows_of_layers,
    unequal_layers,
)
from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.problem import tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.scheduling.tiled.exact.incumbent import first_plans
from tilewright.solvers.scheduling.tiled.exact.priced_proof import proof_of
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace

ROWS = ((10, 4), (5, 4), (4, 6), (2, 6), (5, 6), (3, 5), (4, 8))
"""Layers and their width."""

HEAD = (
    "| graph | network | atoms | heuristics | {} | bound | status | s |\n"
    "|---|---|---:|---:|---:|---:|---|---:|"
)

COLUMNS = {"makespan": "cycles", "energy": "energy", "edp": "EDP"}
"""What a column of values is called, by objective."""


def proven(graph: SmallGraph, seconds: float, threads: int = 2) -> TiledSearch:
    """A search that the exact method has ended, heuristics' plans included in the time."""
    space = RoundSpace(graph.problem, graph.dag)
    search: TiledSearch = TiledSearch(space, Limits(seconds, threads=threads, clock=time.process_time))
    for plan in first_plans(graph.problem, graph.dag, Limits()):
        search.offer(AtomicPlan(graph.dag, plan), "heuristics", Origin.HEURISTIC)
    proof_of(search, space).run()
    return search


def written(key: Fraction | None) -> str:
    """A value as it stands in the table: whole up to nine digits, then with six digits."""
    if key is None:
        return "-"
    return f"{int(key):,}" if key < 10**9 else f"{float(key):.6g}"


def line(graph: SmallGraph, network: str, seconds: float, threads: int) -> str:
    """One row of the table."""
    search = proven(graph, seconds, threads)
    begun = [point.key for point in search.trace if point.source == "heuristics" and point.key is not None]
    cells = (
        graph.name,
        network,
        str(graph.dag.tasks),
        *(written(key) for key in (begun[-1] if begun else None, search.key, search.bound)),
        "proven" if search.proven else "open" if search.gap is None else f"gap {100 * search.gap:.2f} %",
        f"{search.limits.elapsed:.1f}",
    )
    return f"| {' | '.join(cells)} |"


def graphs(machine: TiledMachine, most: int) -> Iterator[SmallGraph]:
    """All cases."""
    for layers, width in ROWS:
        yield rows_of_layers(layers, width, machine)
    for seed in range(3):
        yield unequal_layers(20, seed, machine)
    for name in BLOCKS:
        yield block(name, machine, most)
    for name in BLOCKS:
        if name.startswith("inception"):
            yield block(name, machine, most * 3 // 5)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each case")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--atoms", type=int, default=40, help="of parts of real networks, at most")
    parser.add_argument("--machine", default=MACHINE)
    parser.add_argument("--graphs", default="*", help="a pattern of their names, such as 'inception*'")
    parser.add_argument("--objective", choices=tuple(COLUMNS), default="makespan")
    parser.add_argument("--networks", nargs="+", choices=("free", "real"), default=["free", "real"])
    asked = parser.parse_args(arguments)
    print(HEAD.format(COLUMNS[asked.objective]), flush=True)
    objective = tiled_objective(asked.objective)
    for network in asked.networks:
        for graph in graphs(machine_of(asked.machine, free=network == "free"), asked.atoms):
            if not fnmatchcase(graph.name, asked.graphs):
                continue
            graph = replace(graph, problem=replace(graph.problem, objective=objective))
            print(line(graph, network, asked.seconds, asked.threads), flush=True)


if __name__ == "__main__":
    main()
