"""Climbing over cuts, orders and places of small networks, with whole plans judged.

Where layers take some hundred cycles, what counts is how far arrivals, work and departures of several layers
overlap, which no estimate of a layer by itself knows.  So a move cuts one or two layers into more or fewer
parts along an axis or two, or orders or places the atoms otherwise, and stays if the whole plan is not worse.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, atom_count
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.heuristics.scheduling.tiled.refining import Sizes
from tilewright.heuristics.scheduling.tiled.regions import whole
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes
from tilewright.heuristics.scheduling.tiled.stages import BAND_ORDER, ORDERS, Stages
from tilewright.heuristics.scheduling.tiled.starts import Start

Choice = tuple[str, Sizes, str, str]
"""A region's name, sizes per layer, an order and a mapping: the plan of equal ones is the same again."""

MOST_ATOMS = 1000
"""Atoms of a plan that is made in some hundredths of a second."""

FACTORS = (2.0, 2.0, 3.0, 1 / 2, 1 / 2, 1 / 3)
"""By which parts along an axis are multiplied, drawn from these."""

BOTH = 0.4
"""How often parts along another axis are divided by as much."""

TOGETHER = (1, 1, 2)
"""Layers that are cut otherwise together, drawn from these."""

REORDERED, PLACED, CUT = 0.2, 0.2, 0.9
"""How often a move takes another order, other places, and other cuts."""

QUICK_MAPPINGS = ("zigzag", "matching", "nearest")
"""Ways to place that take little time."""

FRUITLESS = 300
"""Moves in a row without a gain, after which a climb ends."""

WORSE = Fraction(8, 5)
"""A plan that is that many times as bad before it is smoothed is left."""


def climbed(start: Start, stages: Stages, numbers: random.Random, within: Limits, most: int) -> Start:
    """The best start that moves lead to until a limit strikes, or many in a row gain nothing.

    A start on a region of the machine takes turns with one on all of it, for half of the time.

    Parameters
    ----------
    stages : what makes plans
    numbers : which draw the moves
    within : limits after which no further plan is begun
    most : moves at most
    """
    half, fruitless = within.share(0.5), 0
    with suppress(LimitReachedError):
        climbers = [start, *_spread(start, stages)]
        tried = {(own.region.name, own.sizes, own.order, own.mapping) for own in climbers}
        for count in range(most):
            if fruitless > FRUITLESS or within.expired or stages.search.done:
                break
            if half.expired or 2 * fruitless > FRUITLESS:
                climbers = [min(climbers, key=_key)]
            at = count % len(climbers)
            moved = varied(climbers[at], stages, numbers, f"{stages.name} cuts", tried)
            better = moved is not None and _key(moved) < _key(climbers[at])
            fruitless = 0 if better else fruitless + 1
            if moved is not None and _key(moved) <= _key(climbers[at]):
                climbers[at] = moved
            start = min(climbers, key=_key)
    return start


def _key(start: Start) -> Fraction:
    return start.judged[0]


def _spread(start: Start, stages: Stages) -> Iterator[Start]:
    """Balanced sizes on all engines where a start is on a region of them."""
    problem = stages.search.problem.problem
    everywhere = whole(problem.machine)
    if start.region.name != everywhere.name:
        sizes, order, mapping = balanced_sizes(problem), ORDERS[0], QUICK_MAPPINGS[0]
        judged = stages.of_sizes(sizes, order, mapping, f"{stages.name} cuts")
        if judged is not None:
            yield replace(start, judged=judged, sizes=sizes, order=order, mapping=mapping, region=everywhere)


def varied(
    start: Start, stages: Stages, numbers: random.Random, source: str, tried: set[Choice]
) -> Start | None:
    """A start after one move; ``None`` where that was tried before, or an atom fits no buffer.

    Parameters
    ----------
    start : where the move begins
    stages : what makes plans
    numbers : which draw the move
    source : what the trace calls the plan
    tried : choices of which plans were made, the start's among them; the move's is added
    """
    problem, chance = stages.search.problem.problem, numbers.random()
    sizes, order, mapping = start.sizes, start.order, start.mapping
    if chance < REORDERED:
        order = numbers.choice((*ORDERS[:3], ORDERS[4], BAND_ORDER))
    if not PLACED / 2 <= chance < 1 - PLACED / 2:
        mapping = numbers.choice(QUICK_MAPPINGS)
    if chance >= 1 - CUT:
        sizes = recut(problem, sizes, numbers)
    choice = start.region.name, sizes, order, mapping
    if choice in tried:
        return None
    tried.add(choice)
    if sum(atom_count(*pair, problem.batch) for pair in zip(problem.units, sizes, strict=True)) > MOST_ATOMS:
        return None
    stages = replace(stages, region=start.region)
    judged = stages.of_sizes(sizes, order, mapping, source, most=WORSE * start.judged[0])
    if judged is None:
        return None
    return replace(start, judged=judged, sizes=sizes, order=order, mapping=mapping)


def recut(problem: TiledProblem, sizes: Sizes, numbers: random.Random) -> Sizes:
    """Sizes with one or two layers in more or fewer parts along an axis, or two."""
    changed = list(sizes)
    together = min(len(sizes), numbers.choice(TOGETHER))
    for at in numbers.sample(range(len(sizes)), together):
        changed[at] = _recut(problem.units[at], problem.batch, sizes[at], numbers)
    return tuple(changed)


def _recut(unit: Unit, batch: int, size: AtomSize, numbers: random.Random) -> AtomSize:
    """Another size of one layer's atoms."""
    shape = shape_of(unit.layer.operator)
    channels, rows, columns = shape.sizes
    whole = {"rows": rows, "columns": columns, "outputs": channels, "inputs": shape.parts, "samples": batch}
    if not unit.layer.operator.is_mac:
        del whole["inputs"]
    axes = [axis for axis, extent in whole.items() if extent > 1]
    sides: dict[str, int] = {}
    factor = numbers.choice(FACTORS)
    for power in (1, -1) if numbers.random() < BOTH else (1,):
        axis = numbers.choice(axes or ["rows"])
        extent = whole[axis]
        parts = -(-extent // min(extent, getattr(size, axis)))
        parts = min(extent, max(1, round(parts * factor**power)))
        sides[axis] = -(-extent // parts)
    return replace(size, **sides)
