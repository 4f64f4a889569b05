"""Sizes of atoms by simulated annealing (Atomic Dataflow, section IV-A, algorithm 1), as printed and
repaired.

The state is a number of cycles that every atom should take.  As printed, each layer takes the size whose
cycles are nearest to it, and the energy is the variance of the layers' cycles.  Variance is not free of
scale, so that tiny atoms win, and nearness alone ignores how well an atom fills the array.  Repaired, the
energy is the coefficient of variation over all atoms, and each layer takes, of the sizes within 30 % of the
state, the one of least work and traffic.

The paper prints no parameters.  Here temperatures are multiples of the first energy and the length of a move
is a multiple of the first state.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.formulation.scheduling.tiled.memo import first_equal
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.heuristics.scheduling.tiled.size_menus import fitting_menu

NEAR = 0.3
"""Part of the state within which the repaired choice may take any size."""


@dataclass(frozen=True, slots=True)
class Annealing:
    """Parameters of algorithm 1.

    Parameters
    ----------
    printed : as the paper prints it; otherwise repaired
    iterations : at most (``ite_max``)
    length : of a move, as a multiple of the first state (``Len``)
    temperature : as a multiple of the first energy (``Temp``)
    cooling : factor per iteration (``lambda``)
    enough : energy at which to stop, as a multiple of the first (``epsilon``)
    """

    printed: bool = False
    iterations: int = 400
    length: float = 0.5
    temperature: float = 0.5
    cooling: float = 0.98
    enough: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class SizedLayer:
    """Sizes that a layer may take, by ascending cycles: how many atoms, and what they cost together.

    ``steps`` are the cycles once more, as a list, in which single numbers are found faster.
    """

    sizes: Int64s
    cycles: Int64s
    atoms: Int64s
    cost: Floats
    steps: list[int]

    def nearest(self, state: float) -> int:
        """The size whose cycles are nearest to so many."""
        right = bisect_left(self.steps, state)
        left = max(0, right - 1)
        right = min(right, len(self.steps) - 1)
        return left if abs(self.steps[left] - state) <= abs(self.steps[right] - state) else right

    def cheapest_near(self, state: float) -> int:
        """The size of least work and traffic whose cycles are near so many."""
        low = bisect_left(self.steps, state * (1 - NEAR))
        high = bisect_right(self.steps, state * (1 + NEAR))
        return self.nearest(state) if low == high else low + int(self.cost[low:high].argmin())


def annealed_sizes(
    problem: TiledProblem,
    random_numbers: random.Random,
    rules: Annealing,
    *,
    room: float = 0.5,
    limits: Limits | None = None,
) -> tuple[AtomSize, ...]:
    """Per layer the size of atoms that algorithm 1 ends with.

    Parameters
    ----------
    room : part of the buffer's capacity that an atom may need; where none needs as little, all of it

    Raises
    ------
    InputError : for a layer whose least atom fits no buffer
    LimitReachedError : where limits strike on the way
    """
    layers = sized_layers(problem, room, limits)
    picks = [random_numbers.randrange(len(layer.cycles)) for layer in layers]
    state = sum(int(layer.cycles[i]) for layer, i in zip(layers, picks, strict=True)) / len(layers)
    energy = energy_of(layers, picks, rules.printed)
    scale, length = max(energy, 1e-12), rules.length * state
    temperature = rules.temperature * scale
    for _ in range(rules.iterations):
        check(limits)
        moved_state = max(1.0, state + random_numbers.uniform(-1, 1) * length)
        picked = {
            id(layer): layer.nearest(moved_state) if rules.printed else layer.cheapest_near(moved_state)
            for layer in {id(layer): layer for layer in layers}.values()
        }
        moved = [picked[id(layer)] for layer in layers]
        moved_energy = energy_of(layers, moved, rules.printed)
        temperature *= rules.cooling
        heat = max(rules.cooling * temperature, 1e-300)
        if random_numbers.random() <= math.exp(min(0.0, (energy - moved_energy) / heat)):
            state, energy, picks = moved_state, moved_energy, moved
        if energy <= rules.enough * scale:
            break
    return tuple(size_of(layer, i) for layer, i in zip(layers, picks, strict=True))


def sized_layers(problem: TiledProblem, room: float, limits: Limits | None = None) -> list[SizedLayer]:
    """The sizes that every unit may take; units that compute and read alike share them.

    Raises
    ------
    LimitReachedError : where limits strike on the way
    """
    known: dict[object, SizedLayer] = {}
    menus = []
    for index, unit in enumerate(problem.units):
        check(limits)
        late = sum(read.late for read in unit.reads)
        alike = (id(first_equal(unit.layer.operator)), unit.layer.stored_weights, late)
        if alike not in known:
            known[alike] = sized_layer(problem, index, room)
        menus.append(known[alike])
    return menus


def sized_layer(problem: TiledProblem, unit: int, room: float) -> SizedLayer:
    """The sizes that a unit may take, by ascending cycles."""
    menu = fitting_menu(problem, problem.units[unit], room)
    order = np.argsort(menu.cycles, kind="stable")
    each = np.maximum(menu.cycles, menu.need / problem.machine.port_rate)
    cost: Floats = (menu.atoms * each)[order].astype(np.float64)
    cycles = menu.cycles[order]
    return SizedLayer(menu.sizes[order], cycles, menu.atoms[order], cost, cycles.tolist())


def energy_of(layers: list[SizedLayer], picks: list[int], printed: bool) -> float:
    """Variance of the layers' cycles, or coefficient of variation over all atoms."""
    cycles = np.array([layer.cycles[i] for layer, i in zip(layers, picks, strict=True)], dtype=np.float64)
    if printed:
        return float(cycles.var())
    atoms = np.array([layer.atoms[i] for layer, i in zip(layers, picks, strict=True)], dtype=np.float64)
    mean = float(np.average(cycles, weights=atoms))
    return math.sqrt(float(np.average((cycles - mean) ** 2, weights=atoms))) / mean


def size_of(layer: SizedLayer, pick: int) -> AtomSize:
    """The size of a number."""
    rows, columns, inputs, outputs = (int(side) for side in layer.sizes[pick])
    return AtomSize(rows, columns, inputs, outputs)
