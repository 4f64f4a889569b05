"""Lower bounds on objectives of energy and cycles together, over all sizes of atoms.

No plan has the least energy and the least cycles at once: few cycles need many engines for a layer, and many
engines need copies.  For a number of cycles every layer has a *window*: what is left between the layers that
must be done before it begins and those that begin after it.  An engine's share of the layer fits in the
window, and what the share needs passes the engine's port in these cycles, so that many engines share the
layer, whose copies cost energy and pass all ports (`tilewright.solvers.scheduling.tiled.copies`,
`tilewright.solvers.scheduling.tiled.port_shares`).  Engines beside the DRAM's ports cannot do all work, so
that weights pass links (`tilewright.solvers.scheduling.tiled.weight_hops`).  Fewer cycles mean more of both,
so the least value over intervals of cycles, each with its first cycle and what its last one needs, is a
bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import TiledGoal
from tilewright.foundation.arrays import Floats
from tilewright.solvers.scheduling.tiled.barriers import barriers
from tilewright.solvers.scheduling.tiled.bounds import ROUNDING, Bounds, bound_key
from tilewright.solvers.scheduling.tiled.copies import (
    Prices,
    SharedLayer,
    array_reads,
    beside_atoms,
    copies,
    energy_prices,
    merged,
    shared_layers,
    source_of,
)
from tilewright.solvers.scheduling.tiled.fitting_atoms import fitting_energy
from tilewright.solvers.scheduling.tiled.layer_begins import layer_begins, layer_loads, leave_rate
from tilewright.solvers.scheduling.tiled.port_pairs import LayerPair, ports_suffice
from tilewright.solvers.scheduling.tiled.port_shares import least_entering
from tilewright.solvers.scheduling.tiled.size_bounds import (
    incoming_bytes,
    size_bounds,
    whole_cycles,
    whole_layers,
)
from tilewright.solvers.scheduling.tiled.weight_hops import link_bytes, weighing_layers

FINE = 1.0005
"""Each interval of cycles ends at that many times its first one."""

IN_BYTES = Prices(1.0, 1.0, 1.0)

_DIGITS = 1000
"""Parts of a pJ to which energies are rounded down, so that all processors agree."""


def least_key(problem: TiledProblem) -> Fraction:
    """The key that no plan of a problem undercuts, whatever its sizes of atoms."""
    return max(least_keys(problem))


def least_keys(problem: TiledProblem, limits: Limits | None = None) -> Iterator[Fraction]:
    """Keys that no plan undercuts: of energy and cycles apart, which is quick, and of both together.

    Tiles from machine files have the first alone.  Where limits strike there are no more.
    """
    with suppress(LimitReachedError):
        bounds = size_bounds(problem, limits)
        yield bound_key(TiledGoal(problem), bounds)
        machine = problem.machine
        if machine.engines > 1 and machine.engine.own is None and problem.objective.delay_power > 0:
            yield CopiesOverCycles(problem, bounds, limits).least_key()


class CopiesOverCycles:
    """What copies take of a problem's plans, by the cycles of the plan.

    Parameters
    ----------
    problem : the network and its machine
    bounds : of plans over all sizes of atoms, which count every byte once
    limits : within which they are to be computed

    Raises
    ------
    LimitReachedError : where limits strike on the way
    """

    def __init__(self, problem: TiledProblem, bounds: Bounds, limits: Limits | None = None) -> None:
        self._problem, self._bounds, self._limits = problem, bounds, limits
        self.prices = energy_prices(problem.machine)
        whole = whole_layers(problem)
        begins, behind = self._waiting(whole)
        groups = shared_layers(problem, whole)
        self._layers = [merged(group) for group in groups]
        fitting = fitting_energy(problem, whole)
        self._fitting = [sum(fitting[layer.unit] for layer in group) for group in groups]
        units = [[layer.unit for layer in group] for group in groups]
        self._outside = [float(begins[group].min() + behind[group].min()) for group in units]
        self._weighing = weighing_layers(problem)
        self._waits = [float(begins[layer.unit] + behind[layer.unit]) for layer in self._weighing]
        self._once = incoming_bytes(whole)
        self._pairs = self._read_in_turn(whole, itertools.chain.from_iterable(groups))

    def _waiting(self, whole: AtomicDag) -> tuple[Floats, Floats]:
        """Per layer, cycles of a plan before any of its atoms can run, and after all have run."""
        problem, machine = self._problem, self._problem.machine
        check(self._limits)
        loads = layer_loads(whole, whole_cycles(problem, 1), whole_cycles(problem, problem.batch))
        behind = np.zeros((2, len(problem.units)))
        for unit, others in enumerate(barriers(problem.units)):
            behind[0, list(others)] += loads.first[unit] / machine.engines
            behind[1, list(others)] += loads.leaving[unit] / problem.batch / leave_rate(machine)
        return layer_begins(whole, machine, loads), behind.max(axis=0)

    def _read_in_turn(self, whole: AtomicDag, layers: Iterable[SharedLayer]) -> list[LayerPair]:
        """Layers whose inputs come from DRAM, each with those that read its results."""
        makers = {layer.unit: layer for layer in layers if layer.outside and layer.weights}
        pairs = []
        for reader in self._layers:
            source = source_of(self._problem, reader.unit).producer
            maker = None if source is None else makers.get(source)
            if maker is not None and reader.weights and reader.inputs:
                pairs.append(LayerPair(maker, reader, int(whole.block_bytes[maker.unit])))
        return pairs

    def sums(self, cycles: Floats, prices: Prices) -> Floats:
        """What copies cost at least in a plan of so many cycles; infinite where there is no such plan.

        Parameters
        ----------
        cycles : of plans
        prices : of bytes
        """
        total: Floats = sum(self._per_layer(cycles, prices), np.zeros(len(cycles)))
        return total

    def _per_layer(self, cycles: Floats, prices: Prices) -> Iterator[Floats]:
        """The terms of `sums`."""
        port = self._problem.machine.port_rate * cycles
        for layer, outside in zip(self._layers, self._outside, strict=True):
            check(self._limits)
            window = cycles - outside
            shares = layer.work / np.maximum(window, 1e-300)
            # an engine's share of weights, and of inputs from DRAM, passes its port
            shares = np.maximum(shares, layer.coming / port)
            possible = (window > 0) & (shares <= self._problem.machine.engines * (1 + 1e-9))
            least = copies(layer, prices, np.where(possible, shares, 1.0))
            least = np.maximum(least, self._through(layer, prices, port, np.where(possible, 1 / shares, 1.0)))
            yield np.where(possible, least, math.inf)

    def _through(self, layer: SharedLayer, prices: Prices, port: Floats, share: Floats) -> Floats:
        """What copies of a layer cost at least where ports bring no engine more than so many bytes."""
        price = min(prices.weights, prices.inputs)
        if price <= 0:
            return np.zeros(len(port))
        first = layer.weights + (layer.read if layer.outside else 0)
        extra: Floats = price * (least_entering(layer, port, share, prices.sums / price) - first)
        return extra

    def energy(self, cycles: Floats) -> Floats:
        """pJ that copies and links take at least in a plan of so many cycles.

        A copy of weights is written, read, and passes a link.  Those links are among the ones that weights
        pass on their way to engines far from the ports, so that either all copies count, or all the way and
        what copies take in buffers.  The reads of a whole layer end with a whole byte, which saves no copies:
        atoms lie in a grid, so each of ``n`` blocks of pixels reads all weights, ``w`` bits, and beside ``f``
        bits of inputs ``(n w + f) /^ 8 >= (n - 1) (w // 8) + (w + f) /^ 8``.
        """
        machine, prices = self._problem.machine, self.prices
        written = replace(prices, weights=machine.engine.buffer_write_energy + array_reads(machine.engine))
        far = machine.hop_energy * self.link_bytes(cycles)
        copied: Floats = np.maximum(
            self._beyond_fitting(cycles, prices), self._beyond_fitting(cycles, written) + far
        )
        return copied

    def _beyond_fitting(self, cycles: Floats, prices: Prices) -> Floats:
        """What copies cost at least beyond what atoms that fit their buffers take.

        Those read the same weights and write the same sums, so that of each layer either all of its copies
        count in place of that, or what else they cost besides.
        """
        if not any(self._fitting):
            return self.sums(cycles, prices)
        beside = beside_atoms(prices, self._problem.machine.engine)
        total = np.zeros(len(cycles))
        instead, added = self._per_layer(cycles, prices), self._per_layer(cycles, beside)
        for fitting, all_of_it, rest in zip(self._fitting, instead, added, strict=True):
            total += np.maximum(all_of_it - fitting, rest)
        return total

    def link_bytes(self, cycles: Floats) -> Floats:
        """Bytes of weights times links that they pass at least in a plan of so many cycles."""
        windows = [np.maximum(0.0, cycles - wait) for wait in self._waits]
        return link_bytes(self._problem.machine, self._weighing, cycles, windows)

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
        if float(self.entering(np.array([float(cycles)]))[0]) * (1 - 1e-9) > cycles:
            return False
        machine = self._problem.machine
        for pair in self._pairs:
            others = self._once - pair.maker.weights - pair.maker.read - pair.reader.weights
            if not ports_suffice(pair, machine.engines, machine.port_rate * cycles, max(0, others)):
                return False
        return True

    def least_key(self) -> Fraction:
        """The key that no plan undercuts.

        Beyond some number of cycles even plans without copies are worse than the least of the fewest cycles.
        """
        begin = self.least_cycles()
        keys = [self._key(begin, float(self.energy(np.array([_next(begin)]))[0]))]
        begins = [begin := _next(begin)]
        while self._key(begin, 0.0) < keys[0]:
            begins.append(begin := _next(begin))
        extra = self.energy(np.array(begins[1:], dtype=np.float64))
        keys += map(self._key, begins, (*extra.tolist(), 0.0))
        return min(keys)

    def _key(self, cycles: int, extra: float) -> Fraction:
        """The key of so many cycles, with so many pJ beyond what every plan takes."""
        power = self._problem.machine.engine.static_power * self._problem.machine.engines
        energy = self._bounds.energy + power * (cycles - self._bounds.cycles) + extra
        exact = Fraction(math.floor(energy * (1 - float(ROUNDING)) * _DIGITS), _DIGITS)
        return self._problem.objective.key(exact, cycles)


def _next(cycles: int) -> int:
    """Where the interval that begins with so many cycles ends."""
    return int(cycles * FINE) + 1
