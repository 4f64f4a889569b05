"""Homes of layers: runs of engines within the machine, on which alone the layers' atoms run."""

from __future__ import annotations

import random

import numpy as np
import pytest
from effort import effort
from tiled_plans import random_network

from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.homes import allowed, drawn_homes, everywhere, rehoused
from tilewright.heuristics.scheduling.tiled.lists import list_order, zigzag
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes


@pytest.mark.parametrize("seed", range(effort(20)))
def test_homes_stay_within_the_machine(seed: int) -> None:
    """However many moves follow each other, every layer has engines of the machine."""
    numbers = random.Random(seed)
    layers, engines = numbers.randint(2, 7), numbers.randint(2, 16)
    homes, along = drawn_homes(layers, engines, numbers), np.arange(engines, dtype=np.int32)
    for _ in range(100):
        assert len(homes) == layers
        assert all(first >= 0 and count >= 1 and first + count <= engines for first, count in homes)
        table = allowed(homes, along, engines)
        assert table.sum(axis=1).tolist() == [count for _, count in homes]
        homes = rehoused(homes, engines, numbers)
    assert allowed(everywhere(layers, engines), along, engines).all()


@pytest.mark.parametrize("seed", range(effort(6)))
def test_atoms_run_on_the_homes_of_their_layers(seed: int) -> None:
    """Lists keep to homes, and their plans are legal."""
    numbers = random.Random(seed)
    machine = load_tiled_machine("atomic-8x8[engines=3x2,link=4]")
    problem = TiledProblem(random_network(numbers, 4), machine, tiled_objective("edp"))
    dag = problem.dag(balanced_sizes(problem))
    homes = drawn_homes(len(problem.units), machine.engines, numbers)
    table = allowed(homes, zigzag(machine), machine.engines)
    engine, step = list_order(dag, machine, homes=table)
    assert table[dag.unit, engine].all()
    assert problem.evaluate(dag, complete(dag, machine, engine, step)).cycles > 0
