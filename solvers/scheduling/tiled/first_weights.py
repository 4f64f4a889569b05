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
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.trips import operator_kind
from tilewright.hardware.scheduling.tiled.machine import TileEngine
from tilewright.solvers.scheduling.tiled.ancestors import fetch_rate
from tilewright.solvers.scheduling.tiled.barriers import reads_results
from tilewright.solvers.scheduling.tiled.copies import shared_layer, weight_elements, work_and_weights

_SLACK = 1e-6
"""Part of a cycle that the evaluator rounds down, too."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """The smallest tile of a layer that costs no more passes than this.

    Parameters
    ----------
    arrival : cycles before which no engine has its weights, and the inputs of one result
    more : cycles of all engines that a layer with such a tile takes beyond its least
    """

    arrival: float
    more: float


_AT_ONCE = (_Tile(0.0, 0.0),)
"""Of layers without weights, or of which nothing is known."""


def waiting_cycles(problem: TiledProblem, whole: AtomicDag, work: Sequence[int], least: int) -> int:
    """Cycles that no plan undercuts, counting the wait for first weights; 0 if they are not above ``least``.

    Parameters
    ----------
    whole : of `whole_layers`
    work : cycles of each layer that no division undercuts
    """
    machine = problem.machine
    engines, total = machine.engines, float(sum(work))
    tiles = [_tiles(problem, whole, unit, cycles) for unit, cycles in enumerate(work)]
    arrivals = {tile.arrival for own in tiles for tile in own}
    if max(arrivals, default=0.0) + total / engines <= least:
        return 0
    first = [
        (unit, tile)
        for unit, reads in enumerate(reads_results(problem.units))
        if not reads
        for tile in tiles[unit]
    ]
    best = 0.0
    for theta in arrivals:
        early = [min((t.more for t in own if t.arrival < theta), default=math.inf) for own in tiles]
        after = total
        for unit, tile in first:
            if tile.arrival < theta:
                time = engines * (theta - tile.arrival)
                others = [(float(work[u]), more) for u, more in enumerate(early) if u != unit]
                after = min(after, _least_after(total + tile.more - time, others))
        best = max(best, theta + after / engines)
    return math.ceil(best - _SLACK) if best > least else 0


def _least_after(rest: float, others: Sequence[tuple[float, float]]) -> float:
    """The least work behind a cycle: that of the layers that begin later, and what is too much before it.

    For layers S that begin before, the work of all others, and ``rest`` and what S takes more.  The larger of
    both is no less than any weighted mean, of which each layer takes its least part.

    Parameters
    ----------
    rest : work that is left where all layers begin early and take no more for it
    others : per layer but the first, its work, and what it takes more if it begins early
    """
    weights = {0.0, 1.0} | {more / (cycles + more) for cycles, more in others if 0 < more < math.inf}
    return max(
        sum(min(later * cycles, math.inf if more == math.inf else (1 - later) * more) for cycles, more in others)
        + (1 - later) * rest
        for later in weights
    )


def _tiles(problem: TiledProblem, whole: AtomicDag, unit: int, work: int) -> Sequence[_Tile]:
    """The smallest tiles of a layer, of its least passes and of one more along either axis or both."""
    machine, layer = problem.machine, problem.units[unit].layer
    operator, engine = layer.operator, machine.engine
    elements, weighed = weight_elements(operator), work_and_weights(problem, operator)
    passing = _passing(engine)
    if elements is None or weighed is None or passing is None or not layer.stored_weights:
        return _AT_ONCE
    shape = shape_of(operator)
    parts, channels, pixels = shape.parts, shape.sizes[0], math.prod(shape.sizes[1:]) * problem.batch
    shared = shared_layer(problem, whole, unit)
    own = shared.inputs / (pixels * parts) if shared is not None and shared.outside else 0.0
    per_weight = weighed[1] / (parts * channels)
    rate = min(machine.port_rate, fetch_rate(machine))
    tiles = []
    for (i, across), (o, along) in itertools.product(_sides(parts, passing[0]), _sides(channels, passing[1])):
        more = (across * along - 1) * max(0, work - 1)
        tiles.append(_Tile(max(0.0, (i * o * per_weight + i * own) / rate - _SLACK), more))
    return tiles


def _passing(engine: TileEngine) -> tuple[int, int] | None:
    """Parts of a sum, and channels, of one pass; ``None`` where passes are along pixels."""
    if engine.dataflow == "kc":
        return engine.rows, engine.columns
    return (engine.lanes, engine.lanes) if engine.dataflow == "pairs" else None


def _sides(size: int, width: int) -> list[tuple[int, float]]:
    """The smallest side of a tile along an axis without a further pass and with one, and how many times the
    least passes there are.
    """
    passes = -(-size // width)
    return [((size - 1) % width + 1, 1.0), (1, 1 + 1 / passes)]
