"""Cycles in which engines idle because the weights of the first atoms are on their way.

A tile of ``o`` channels and ``i`` parts of a sum has ``f i o`` weights, for ``f`` taps, all of which have
passed its engine's port before its first atom begins.  Fine tiles arrive soon, but every tile of a layer
takes whole passes of the array, and tiles form a grid: with one of ``i`` parts of ``C`` there are at least
``i /^ X + (C - i) /^ X`` passes along the sum, likewise along channels, where ``a /^ b`` is rounded up.  So a
layer whose first atom begins before some cycle ``theta`` either has a tile that is that small, or more work
by a whole pass.  Of all layers that do not begin before ``theta`` the work follows it, and of those that do,
what engines cannot do between the first atom of all and ``theta`` (docs/tiled-methods.md).
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
from tilewright.solvers.scheduling.tiled.barriers import reads_results
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
    engines, behind = problem.machine.engines, reads_results(problem.units)
    tiles = [
        _tiles(problem, unit, cycles, 0.0 if behind[unit] else _own_inputs(problem, whole, unit))
        for unit, cycles in enumerate(work)
    ]
    latest = max((tile.arrival for own in tiles for tile in own), default=0.0)
    if latest + sum(work) / engines <= least:
        return 0
    end = math.ceil(least_end(engines, work, tiles, behind) - _SLACK)
    return end if end > least else 0


def least_end(
    engines: int, work: Sequence[int], tiles: Sequence[Sequence[FirstTile]], behind: Sequence[bool]
) -> float:
    """Cycles in which engines do all work, whatever tiles layers begin with.

    Parameters
    ----------
    engines : that share all layers
    work : of each layer, cycles of all engines
    tiles : that each may begin with
    behind : of each, whether another layer has to begin before it
    """
    total, best, cycles = float(sum(work)), 0.0, np.array(work, dtype=np.float64)
    first = [(unit, tile) for unit, own in enumerate(tiles) if not behind[unit] for tile in own]
    for theta in sorted({tile.arrival for own in tiles for tile in own}, reverse=True)[:MOST_CYCLES]:
        early = [min((tile.more for tile in own if tile.arrival < theta), default=math.inf) for own in tiles]
        after = total
        for unit, tile in first:
            if tile.arrival < theta:
                rest = total + tile.more - engines * (theta - tile.arrival)
                others = [at for at in range(len(work)) if at != unit]
                after = min(after, _least_after(rest, cycles[others], np.array(early)[others]))
        best = max(best, theta + after / engines)
    return best


def _least_after(rest: float, work: Floats, more: Floats) -> float:
    """The least work behind a cycle: that of the layers that begin later, and what is too much before it.

    For layers S that begin before, the work of all others, and ``rest`` and what S takes more.  The larger of
    both is no less than any weighted mean, of which each layer takes its least part; and either no layer of S
    takes more, or one does.  Where none begins later nothing says that there is a later at all, and the
    result is negative where all is done before.

    Parameters
    ----------
    rest : work that is left where all layers begin early and take no more for it
    work, more : per layer but the first, its work, and what it takes more if it begins early
    """
    later = WEIGHTS_OF_LATER[:, None]
    early = np.multiply(
        1 - later, more, where=np.isfinite(more), out=np.full((len(later), len(more)), math.inf)
    )
    means = (1 - later[:, 0]) * rest + np.minimum(later * work, early).sum(axis=1)
    taking = more > 0
    either = min(float(work[taking].sum()), rest + float(more[taking].min(initial=math.inf)))
    return min(rest + float(more.sum()), max(float(means.max()), either))


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
