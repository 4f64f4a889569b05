"""Trees on the platform and figures of SET's released program: annealing, search, LS, LP, bound.

python -m tilewright.benchmarks.studies.set_trees resnet darknet trans_cell --seconds 60 --seeds 3
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from random import Random

from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm, program_form
from tilewright.formulation.scheduling.tiled.set.program_networks import PROGRAM_NETWORKS, program_network
from tilewright.formulation.scheduling.tiled.set.rules import PUBLISHED, Rules
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.set.annealing import Cooling, anneal, first_tree
from tilewright.heuristics.scheduling.tiled.set.tree_search import Clock, TreeSearch
from tilewright.solvers.scheduling.tiled.set.bounds import tree_bounds
from tilewright.solvers.scheduling.tiled.set.exact import best_tree

Row = tuple[str, float, float, str]
"""Method, value, CPU seconds, and a word on the claim."""


def annealed(form: ClosedForm, seed: int, seconds: float, steps: int) -> tuple[float, float]:
    """Value and seconds of SET's annealing."""
    begun = first_tree(form)
    if begun is None:
        return float("inf"), 0.0
    start = time.process_time()
    stop = _after(start, seconds)
    found = anneal(form, begun, Cooling(steps=steps), Random(seed), stop, lambda tree, value: None)
    return found[1], time.process_time() - start


def searched(form: ClosedForm, seed: int, seconds: float) -> tuple[float, float]:
    """Value of the search for trees, and seconds until its last improvement."""
    start = time.process_time()
    last = [0.0]

    def told(tree: object, value: float) -> None:
        last[0] = time.process_time() - start

    clock = Clock(_after(start, seconds), lambda: (time.process_time() - start) / seconds)
    searching = TreeSearch(form, clock, Random(seed), told, shakes=10**7)
    searching.run()
    return searching.value, last[0]


def _after(start: float, seconds: float) -> Callable[[], bool]:
    return lambda: time.process_time() - start > seconds


def rows(name: str, args: argparse.Namespace) -> list[Row]:
    """Everything measured on one network."""
    machine = load_tiled_machine(args.system)
    rules = PUBLISHED if args.rules == "program" else Rules()

    def fresh() -> ClosedForm:
        return program_form(program_network(name), machine, args.batch, rules)

    found: list[Row] = []
    for seed in range(1, args.seeds + 1):
        value, spent = annealed(fresh(), seed, args.seconds, 100)
        found.append((f"annealing, beta 100, seed {seed}", value, spent, ""))
    for seed in range(1, args.seeds + 1):
        value, spent = annealed(fresh(), seed, args.seconds, 10**6)
        found.append((f"annealing for {args.seconds:g} s, seed {seed}", value, spent, ""))
    for seed in range(1, args.seeds + 1):
        value, spent = searched(fresh(), seed, args.seconds)
        found.append((f"set, seed {seed}", value, spent, ""))
    for space in ("ls", "lp"):
        start = time.process_time()
        best = best_tree(fresh(), space, _after(start, args.seconds))
        word = "proven" if best.proven else "not proven"
        found.append((space, best.value, time.process_time() - start, word))
    found.append(("bound", tree_bounds(fresh()).value, 0.0, ""))
    return found


def main(arguments: list[str]) -> int:
    """Print a table per network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="+", choices=list(PROGRAM_NETWORKS))
    parser.add_argument("--system", default="set-edge-4x4")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds per search")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rules", choices=("paper", "program"), default="program")
    args = parser.parse_args(arguments)
    for name in args.networks:
        table = rows(name, args)
        bound = table[-1][1]
        for method, value, spent, word in table:
            gap = (value - bound) / value
            print(f"| {name} | {method} | {value:.4g} | {gap:.1%} | {spent:.1f} | {word} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
