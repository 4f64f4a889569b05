"""Lower bounds on objectives of energy and cycles together, over all sizes of atoms.

No plan has the least energy and the least cycles at once: few cycles need many engines for a layer, and many
engines need copies.  For a number of cycles every layer has a *window*: what is left between the layers that
must be done before it begins and those that begin after it.  An engine's share of the layer fits in the
window, so that many engines share it, whose copies cost energy and pass the engines' ports
(`tilewright.solvers.scheduling.tiled.copies`).  Fewer cycles mean more copies, so the least value over
intervals of cycles, each with its first cycle and the copies of its last, is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import TiledGoal
from tilewright.foundation.arrays import Floats
from tilewright.solvers.scheduling.tiled.barriers import barriers
from tilewright.solvers.scheduling.tiled.bounds import ROUNDING, Bounds, bound_key
from tilewright.solvers.scheduling.tiled.copies import Prices, copies, energy_prices, shared_layers
from tilewright.solvers.scheduling.tiled.size_bounds import (
    incoming_bytes,
    size_bounds,
    whole_cycles,
    whole_layers,
)

FINE = 1.004
"""Each interval of cycles ends at that many times its first one."""

IN_BYTES = Prices(1.0, 1.0, 1.0)

_DIGITS = 1000
"""Parts of a pJ to which energies are rounded down, so that all processors agree."""


def least_key(problem: TiledProblem) -> Fraction:
    """The key that no plan of a problem undercuts, whatever its sizes of atoms."""
    return max(least_keys(problem))


def least_keys(problem: TiledProblem) -> Iterator[Fraction]:
    """Keys that no plan undercuts: of energy and cycles apart, which is quick, and of both together.

    Tiles from machine files have the first alone.
    """
    bounds = size_bounds(problem)
    yield bound_key(TiledGoal(problem), bounds)
    machine = problem.machine
    if machine.engines > 1 and machine.engine.own is None and problem.objective.delay_power > 0:
        yield CopiesOverCycles(problem, bounds).least_key()


class CopiesOverCycles:
    """What copies take of a problem's plans, by the cycles of the plan.

    Parameters
    ----------
    problem : the network and its machine
    bounds : of plans over all sizes of atoms, which count every byte once
    """

    def __init__(self, problem: TiledProblem, bounds: Bounds) -> None:
        self._problem, self._bounds = problem, bounds
        self.prices = energy_prices(problem.machine)
        whole = whole_layers(problem)
        self._layers = shared_layers(problem, whole)
        outside = self._waiting()
        self._outside = [outside[layer.unit] for layer in self._layers]
        self._once = incoming_bytes(whole)

    def _waiting(self) -> list[float]:
        """Per layer, cycles of a plan in which none of its atoms can run."""
        problem = self._problem
        engines = problem.machine.engines
        work = whole_cycles(problem, 1)
        before = barriers(problem.units)
        waiting = [sum(work[other] for other in others) / engines for others in before]
        for unit, others in enumerate(before):
            for other in others:
                waiting[other] += work[unit] / engines
        return waiting

    def sums(self, cycles: Floats, prices: Prices) -> Floats:
        """What copies cost at least in a plan of so many cycles; infinite where there is no such plan.

        Parameters
        ----------
        cycles : of plans
        prices : of bytes
        """
        total = np.zeros(len(cycles))
        for layer, outside in zip(self._layers, self._outside, strict=True):
            window = cycles - outside
            shares = layer.work / np.maximum(window, 1e-300)
            # an engine's share of weights, and of inputs from DRAM, passes its port
            shares = np.maximum(shares, layer.coming / (self._problem.machine.port_rate * cycles))
            possible = (window > 0) & (shares <= self._problem.machine.engines * (1 + 1e-9))
            total += np.where(possible, copies(layer, prices, np.where(possible, shares, 1.0)), math.inf)
        return total

    def entering(self, cycles: Floats) -> Floats:
        """Cycles that all ports into engines take for what must enter them."""
        machine = self._problem.machine
        ports: Floats = (self._once + self.sums(cycles, IN_BYTES)) / (machine.port_rate * machine.engines)
        return ports

    def least_cycles(self) -> int:
        """Cycles that no plan undercuts."""
        low, high = self._bounds.cycles, max(1, self._bounds.cycles)
        while not self._can(high):
            high *= 2
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._can(middle) else (middle + 1, high)
        return low

    def _can(self, cycles: int) -> bool:
        return float(self.entering(np.array([float(cycles)]))[0]) * (1 - 1e-9) <= cycles

    def least_key(self) -> Fraction:
        """The key that no plan undercuts."""
        problem, machine = self._problem, self._problem.machine
        power = machine.engine.static_power * machine.engines
        begins = [self.least_cycles()]
        moved = self._bounds.energy - power * self._bounds.cycles
        layers = zip(self._layers, self._outside, strict=True)
        alone = max((max(at.work + wait, at.coming / machine.port_rate) for at, wait in layers), default=0.0)
        while begins[-1] < alone:
            begins.append(int(begins[-1] * FINE) + 1)
        firsts = np.array(begins, dtype=np.float64)
        ends = np.append(firsts[1:], math.inf)
        ends[-1] = max(alone, firsts[-1]) * 2
        energies = moved + self.sums(ends, self.prices) + power * firsts
        exact = [
            Fraction(math.floor(energy * (1 - float(ROUNDING)) * _DIGITS), _DIGITS) for energy in energies
        ]
        return min(
            problem.objective.key(energy, cycles) for energy, cycles in zip(exact, begins, strict=True)
        )
