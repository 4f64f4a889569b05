"""How many valid tilings there are, without listing them.

Perfect tile sizes form a lattice: exponents of primes, dimension by dimension.  The number of ways to
complete a tiling inside a tile is a function on that lattice, built from the innermost boundary outwards:
a block of temporal loops adds up all smaller tiles (running sums along every axis of the lattice), a spatial
block those whose quotient fits the array (shifted copies), and a memory level keeps the tiles that fit.  A
thousand million tilings take a fraction of a second.
"""

from __future__ import annotations

from itertools import product as cartesian
from math import prod

import numpy as np

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.foundation.arrays import Bools, Floats, Int64s
from tilewright.heuristics.mapping.dmazerunner.prunings import (
    Prunings,
    conditions,
    minor_dims,
    summing_blocks,
)


def count_tilings(problem: LayerProblem, prunings: Prunings) -> int:
    """Number of perfect tilings that satisfy capacities, array and prunings.

    For problems without user constraints, bypasses and buffer sharing whose PE array has one axis.

    Raises
    ------
    ValueError : for any other problem
    """
    nest = problem.space.nest
    if problem.constraints.texts or len(nest.spatial) > 1 or not nest.perfect:
        raise ValueError("tilings are counted for perfect factors, one array axis and no constraints")
    if any(isinstance(residency.selector, Variable) for residency in nest.residency.values()):
        raise ValueError("tilings are counted for machines without bypasses")
    if any(level.fanout is not None and level.fanout.sharing for level in nest.engine.levels):
        raise ValueError("tilings are counted for machines without buffer sharing")
    lattice = _Lattice(problem.operator.bounds)
    counts = lattice.ones() * _allowed(nest, lattice, prunings, len(nest.blocks) - 1)
    for boundary in range(len(nest.blocks) - 2, -1, -1):
        block = nest.blocks[boundary]
        counts = (
            lattice.sums(counts) if block.is_temporal else _spread(nest, lattice, prunings, counts, boundary)
        )
        if boundary:
            counts = counts * _allowed(nest, lattice, prunings, boundary)
    return int(counts[lattice.top])


class _Lattice:
    """Divisors of every dimension's bound as one array: an axis per dimension and prime."""

    def __init__(self, bounds: dict[str, int]) -> None:
        self.axes = [(dim, p, e) for dim, bound in bounds.items() for p, e in _primes(bound)]
        self.shape = tuple(exponent + 1 for _, _, exponent in self.axes)
        self.top = tuple(exponent for _, _, exponent in self.axes)
        self.dims = tuple(bounds)

    def ones(self) -> Int64s:
        return np.ones(self.shape, dtype=np.int64)

    def tile(self, dim: str) -> Int64s:
        """A dimension's size at every point, of a shape that broadcasts."""
        result = np.ones((1,) * len(self.axes), dtype=np.int64)
        for position, (own, prime, exponent) in enumerate(self.axes):
            if own == dim:
                shape = [1] * len(self.axes)
                shape[position] = exponent + 1
                result = result * (prime ** np.arange(exponent + 1)).reshape(shape)
        return result

    def sums(self, counts: Int64s) -> Int64s:
        """At every point the sum over all its divisors."""
        for axis in range(len(self.axes)):
            counts = np.cumsum(counts, axis=axis)
        return counts


def _primes(number: int) -> list[tuple[int, int]]:
    powers: dict[int, int] = {}
    prime = 2
    while number > 1:
        while number % prime == 0:
            powers[prime] = powers.get(prime, 0) + 1
            number //= prime
        prime += 1
    return sorted(powers.items())


def _allowed(nest: Nest, lattice: _Lattice, prunings: Prunings, boundary: int) -> Bools:
    """Which tiles may stand at a boundary."""
    values: dict[Variable, Floats | int] = {}
    allowed = np.ones(lattice.shape, dtype=bool)
    for dim, expr in nest.boundaries[boundary].items():
        tile = lattice.tile(dim)
        if isinstance(expr, Variable):
            values[expr] = tile.astype(np.float64)
        if 2 in prunings.opts and boundary == 1 and dim in minor_dims(nest.operator):
            allowed &= tile == nest.operator.bounds[dim]
    reader = BatchReader(values)
    for condition in conditions(nest, prunings):
        if condition.expr.support <= set(values):
            size = reader.read(condition.expr)
            allowed &= (condition.least <= size) & (size <= condition.most)
    return allowed


def _spread(nest: Nest, lattice: _Lattice, prunings: Prunings, counts: Int64s, block: int) -> Int64s:
    """Sum over all quotients that the array takes: one shifted copy for each."""
    axis = nest.blocks[block].axis
    assert axis is not None
    least = prunings.pe * nest.engine.instances if 1 in prunings.opts else 0
    still = 3 in prunings.opts and block in summing_blocks(nest)
    free = [
        nest.boundaries[block][dim] is not nest.boundaries[block + 1][dim]
        and not (still and dim not in nest.operator.output.dims)
        for dim, _, _ in lattice.axes
    ]
    result = np.zeros(lattice.shape, dtype=np.int64)
    ranges = [range(e + 1 if able else 1) for (_, _, e), able in zip(lattice.axes, free, strict=True)]
    for shift in cartesian(*ranges):
        used = prod(prime**step for (_, prime, _), step in zip(lattice.axes, shift, strict=True))
        if least <= used <= axis.size:
            target = tuple(slice(step, None) for step in shift)
            source = tuple(slice(None, size - step) for size, step in zip(lattice.shape, shift, strict=True))
            result[target] += counts[source]
    return result
