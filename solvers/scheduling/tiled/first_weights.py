"""Cycles in which engines idle because the weights of the first atoms are on their way.

A tile of ``o`` channels and ``i`` parts of a sum has ``f i o`` weights, for ``f`` taps, all of which have
passed its engine's port before its first atom begins.  Fine tiles arrive soon, but every tile of a layer
takes whole passes of the array, and tiles form a grid: with one of ``i`` parts of ``C`` there are at least
``i /^ X + (C - i) /^ X`` passes along the sum, likewise along channels, where ``a /^ b`` is rounded up.  So a
layer whose first atom begins before some cycle ``theta`` either has a tile that is that small, or more work
by a whole pass.  A layer that reads another's results begins behind it.  Of all layers that do not begin
before ``theta`` the work follows it, and of those that do, what engines cannot do between the first atom of
all and ``theta`` (docs/proofs.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import CHANNEL, shape_of
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.foundation.arrays import Floats
from tilewright.hardware.scheduling.tiled.machine import TileEngine
from tilewright.solvers.scheduling.tiled.ancestors import fetch_rate
from tilewright.solvers.scheduling.tiled.barriers import makers_before
from tilewright.solvers.scheduling.tiled.copies import shared_layer, work_and_weights

MOST_CYCLES = 64
"""Arrivals of first tiles that are tried, the latest ones; any choice is valid."""

WEIGHTS_OF_LATER = np.linspace(0.0, 1.0, 9)
"""Weights of the work that follows a cycle in means with what is too much before it; any is valid."""

_SLACK = 1e-6
"""Part of a cycle that the evaluator rounds down, too."""


@dataclass(frozen=True, slots=True)
class FirstTile:
    """The smallest tile of a layer that costs no more passes than this.

    Parameters
    ----------
    arrival : cycles before which no engine has its weights, and the inputs of one result
    more : cycles of all engines that a layer with such a tile takes beyond its least
    """

    arrival: float
    more: float


_AT_ONCE = (FirstTile(0.0, 0.0),)
"""Of layers without weights, or of which nothing is known."""


def waiting_cycles(problem: TiledProblem, whole: AtomicDag, work: Sequence[int], least: int) -> int:
    """Cycles that no plan undercuts, counting the wait for first weights; 0 if they are not above ``least``.

    Parameters
    ----------
    whole : of `whole_layers`
    work : cycles of each layer that no division undercuts
    """
    engines, makers = problem.machine.engines, makers_before(problem.units)
    tiles = [
        _tiles(problem, unit, cycles, _own_inputs(problem, whole, unit) if makers[unit] is None else 0.0)
        for unit, cycles in enumerate(work)
    ]
    latest = max((tile.arrival for own in tiles for tile in own), default=0.0)
    if latest + sum(work) / engines <= least:
        return 0
    end = math.ceil(least_end(engines, work, tiles, makers) - _SLACK)
    return end if end > least else 0


def least_end(
    engines: int, work: Sequence[int], tiles: Sequence[Sequence[FirstTile]], makers: Sequence[int | None]
) -> float:
    """Cycles in which engines do all work, whatever tiles layers begin with.

    Parameters
    ----------
    engines : that share all layers
    work : of each layer, cycles of all engines
    tiles : that each may begin with
    makers : of each, an earlier layer that has to begin before it
    """
    total, best = float(sum(work)), 0.0
    thetas = sorted({tile.arrival for own in tiles for tile in own}, reverse=True)[:MOST_CYCLES]
    more = np.array(
        [
            [min((t.more for t in own if t.arrival < theta), default=math.inf) for own in tiles]
            for theta in thetas
        ]
    )
    behind = _Behind(np.array(work, dtype=np.float64), more, makers)
    first = [(unit, tile) for unit, own in enumerate(tiles) if makers[unit] is None for tile in own]
    for at, theta in enumerate(thetas):
        after = total
        for unit, tile in first:
            if tile.arrival < theta:
                rest = total + tile.more - engines * (theta - tile.arrival)
                after = min(after, behind.least(at, unit, rest))
        best = max(best, theta + after / engines)
    return best


class _Behind:
    """The least work behind cycles: that of the layers that begin later, and what is too much before them.

    A layer that begins before a cycle does so behind its maker, which then begins before it, too.  For layers
    S that begin before, the work of all others, and ``rest`` and what S takes more.  The larger of both is no
    less than any weighted mean, of which the layers of each tree of makers and readers take their least part;
    and either no layer of S takes more, or one does.  Where none begins later nothing says that there is a
    later at all, and the result is negative where all is done before.

    Parameters
    ----------
    work : per layer
    more : per cycle and layer, what it takes more if it begins before; infinite where it cannot
    makers : per layer, an earlier one that begins before it
    """

    def __init__(self, work: Floats, more: Floats, makers: Sequence[int | None]) -> None:
        self._work, self._more = work, more
        later, possible = WEIGHTS_OF_LATER, np.isfinite(more)[:, :, None]
        early = np.full((*more.shape, len(later)), math.inf)
        np.multiply(1 - later, more[:, :, None], where=possible, out=early)
        # means of each layer and all behind it in its tree: where it begins later, and the least
        outside, self._least = work[:, None] * later, np.empty_like(early)
        self._readers = np.zeros_like(early)
        for unit in reversed(range(len(work))):
            self._least[:, unit] = np.minimum(outside[unit], early[:, unit] + self._readers[:, unit])
            maker = makers[unit]
            if maker is not None:
                outside[maker] += outside[unit]
                self._readers[:, maker] += self._least[:, unit]
        self._all = self._least[:, [unit for unit, maker in enumerate(makers) if maker is None]].sum(axis=1)
        # whether a layer takes more, or one that begins before it and is no root, and its root
        self._taking, self._roots = more > 0, np.arange(len(work))
        for unit, maker in enumerate(makers):
            if maker is not None:
                self._roots[unit] = self._roots[maker]
                if makers[maker] is not None:
                    self._taking[:, unit] |= self._taking[:, maker]

    def least(self, at: int, first: int, rest: float) -> float:
        """The least work behind a cycle.

        Parameters
        ----------
        at : the number of the cycle
        first : a layer without a maker that begins before it, whatever it takes more
        rest : work that is left where all layers begin early and take no more for it
        """
        more, others = self._more[at], np.arange(len(self._work)) != first
        taking = self._taking[at] | ((self._roots != first) & (more[self._roots] > 0))
        means = self._all[at] - self._least[at, first] + self._readers[at, first]
        means += (1 - WEIGHTS_OF_LATER) * rest
        least_more = float(more[others & (more > 0)].min(initial=math.inf))
        either = min(float(self._work[taking & others].sum()), rest + least_more)
        return min(rest + float(more[others].sum()), max(float(means.max()), either))


def _own_inputs(problem: TiledProblem, whole: AtomicDag, unit: int) -> float:
    """Bytes of inputs from DRAM that any result reads for a part of its sum."""
    layer = shared_layer(problem, whole, unit)
    if layer is None or not layer.outside:
        return 0.0
    shape = shape_of(problem.units[unit].layer.operator)
    return layer.inputs / (math.prod(shape.sizes[1:]) * problem.batch * shape.parts)


def _tiles(problem: TiledProblem, unit: int, work: int, inputs: float) -> Sequence[FirstTile]:
    """The smallest tiles of a layer, of its least passes and of one more along either axis or both.

    Parameters
    ----------
    work : cycles of the layer that no division undercuts
    inputs : bytes that any result reads for a part of its sum, and that no engine has made
    """
    machine, layer = problem.machine, problem.units[unit].layer
    weighed, passes = work_and_weights(problem, layer.operator), _passes(machine.engine)
    if weighed is None or passes is None or not layer.stored_weights:
        return _AT_ONCE
    shape = shape_of(layer.operator)
    channels, parts = shape.sizes[CHANNEL], shape.parts
    weight = weighed[1] / (channels * parts)
    rate = min(machine.port_rate, fetch_rate(machine))
    return [
        # layers' least cycles are rounded up
        FirstTile(i * (o * weight + inputs) / rate - _SLACK, max(0.0, (times - 1) * (work - 1) - 1))
        for i, o, times in _sides(parts, channels, passes)
    ]


def _passes(engine: TileEngine) -> tuple[int, int] | None:
    """Parts of a sum, and channels, of one pass; ``None`` where passes are along pixels."""
    if engine.dataflow == "kc":
        return engine.rows, engine.columns
    return (engine.lanes, engine.lanes) if engine.dataflow == "pairs" else None


def _sides(parts: int, channels: int, passes: tuple[int, int]) -> Iterator[tuple[int, int, float]]:
    """Sides of the smallest tiles without a further pass along either axis and with one, and how many times
    the least passes there are.
    """
    axes = zip((parts, channels), passes, strict=True)
    ways = [[((size - 1) % width + 1, 1.0), (1, 1 + 1 / -(-size // width))] for size, width in axes]
    for (i, across), (o, along) in itertools.product(*ways):
        yield i, o, across * along
