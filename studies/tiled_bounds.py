"""Bounds of energy and cycles apart, and of both together, over all sizes of atoms.

    python -m studies.tiled_bounds resnet50 efficientnet-b0 bert-base

Seconds are those of the processor, of both bounds.  The column ``in turn`` is no bound: it has the least
cycles, and the copies that there were if layers had to run in turn, each on all engines at once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.copies import (
    beside_atoms,
    copies,
    energy_prices,
    merged,
    shared_layers,
)
from tilewright.solvers.scheduling.tiled.fitting_atoms import fitting_energy
from tilewright.solvers.scheduling.tiled.joint_bounds import least_keys
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds, whole_layers
from tilewright.workloads.catalog import resolve_model

HEAD = (
    "| network | system | objective | apart | together | more | in turn | s |\n"
    "|---|---|---|---:|---:|---:|---:|---:|"
)


def in_turn(problem: TiledProblem) -> float:
    """The key of the least cycles, with copies for all engines to share every layer."""
    bounds, whole, prices = size_bounds(problem), whole_layers(problem), energy_prices(problem.machine)
    engines, beside = np.array([float(problem.machine.engines)]), beside_atoms(prices, problem.machine.engine)
    fitting, shared = fitting_energy(problem, whole), 0.0
    for group in shared_layers(problem, whole):
        instead, added = (float(copies(merged(group), cost, engines)[0]) for cost in (prices, beside))
        shared += max(instead - sum(fitting[layer.unit] for layer in group), added)
    return float(problem.objective.key(Fraction(bounds.energy + shared), bounds.cycles))


def row(name: str, system: str, objective: str) -> str:
    """The bounds of one problem, as a line of a table."""
    machine = load_tiled_machine(system)
    problem = TiledProblem(resolve_model(name, 1), machine, tiled_objective(objective))
    begun = time.process_time()
    keys = list(least_keys(problem))
    took = time.process_time() - begun
    apart, together = float(keys[0]), float(max(keys))
    cells = (
        name,
        system,
        objective,
        f"{apart:.4g}",
        f"{together:.4g}",
        f"{100 * (together / apart - 1):.1f} %",
        f"{in_turn(problem):.4g}",
    )
    return f"| {' | '.join(cells)} | {took:.1f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute what the command line asks for, and print each row when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--systems", nargs="+", default=["atomic-8x8[link=16]"])
    parser.add_argument("--objective", default="edp")
    asked = parser.parse_args(arguments)
    print(HEAD, flush=True)
    for name in asked.networks:
        for system in asked.systems:
            print(row(name, system, asked.objective), flush=True)


if __name__ == "__main__":
    main()
