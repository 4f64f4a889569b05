"""Climbing over cuts, orders, places and homes of small networks, with whole plans judged.

Where layers take some hundred cycles, what counts is how far arrivals, work and departures of several layers
overlap, which no estimate of a layer by itself knows.  So a move cuts one or two layers into more or fewer
parts along an axis or two, or orders or places the atoms otherwise, or gives layers other homes
(`tilewright.heuristics.scheduling.tiled.homes`), and stays if the whole plan is not worse.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, atom_count
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.errors import InputError
from tilewright.heuristics.scheduling.tiled.homes import Homes, drawn_homes, everywhere, rehoused
from tilewright.heuristics.scheduling.tiled.refining import Sizes
from tilewright.heuristics.scheduling.tiled.regions import whole
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes
from tilewright.heuristics.scheduling.tiled.stages import BAND_ORDER, ORDERS, Stages
from tilewright.heuristics.scheduling.tiled.starts import Start

Choice = tuple[str, Sizes, str, str, Homes | None]
"""A region's name, sizes per layer, an order, a mapping, homes: the plan of equal ones is the same again."""

MOST_ATOMS = 1000
"""Atoms of a plan that is made in some hundredths of a second."""

FACTORS = (2.0, 2.0, 3.0, 3 / 2, 3 / 2, 1 / 2, 1 / 2, 1 / 3, 2 / 3, 2 / 3)
"""By which parts along an axis are multiplied, drawn from these."""

BOTH = 0.4
"""How often parts along another axis are divided by as much."""

TOGETHER = (1, 1, 2)
"""Layers that are cut otherwise together, drawn from these."""

ALIKE = 0.15
"""How often several layers in a row, at times all, are cut otherwise along the same axes."""

REORDERED, PLACED, CUT = 0.2, 0.2, 0.9
"""How often a move takes another order, other places or homes, and other cuts."""

RELISTED, REHOUSED, CUT_AT_HOME = 0.12, 0.35, 0.7
"""How often a move of a start with homes takes another order, other homes, and other cuts."""

LISTED = ("lists", "depth", "layers")
"""Orders of the lists of atoms that run on the homes of their layers."""

DRAWN = 2
"""Homes that are drawn for each order of the first lists."""

QUICK_MAPPINGS = ("zigzag", "matching", "nearest")
"""Ways to place that take little time."""

FRUITLESS = 300
"""Moves in a row without a gain after which a climb ends; after half of them only the better start moves."""

WORSE = Fraction(8, 5)
"""How many times as bad the first plan may have been before it was smoothed."""

ROUGHER = Fraction(9, 8)
"""A plan that is that many times as bad as the best one was before it was smoothed is left."""

SHARED = 0.8
"""Part of the time in which two starts take turns at most."""


class Climb:
    """The best start that moves lead to; two starts take turns.

    One is given, with all layers on its engines, the other has homes for each layer.

    Parameters
    ----------
    start : where the climb begins
    stages : what makes plans
    numbers : which draw the moves
    """

    def __init__(self, start: Start, stages: Stages, numbers: random.Random) -> None:
        self._stages, self._numbers = stages, numbers
        self._climbers = [Climber(start, WORSE * _key(start))]
        self._tried = {_choice(start)}
        self._housed, self._fruitless, self._turn = False, 0, 0

    @property
    def best(self) -> Start:
        """The best start so far."""
        return min((climber.start for climber in self._climbers), key=_key)

    def go_on(self, within: Limits, most: int) -> None:
        """Move on until a limit strikes, or many moves in a row gain nothing.

        Parameters
        ----------
        within : limits after which no further plan is begun; the better start has the last part of the time
        most : moves at most
        """
        shared, vain = within.share(SHARED), 0
        with suppress(LimitReachedError):
            if not (self._housed or within.expired):
                self._housed = True
                self._climbers += _at_home(self.best, self._stages, self._numbers)
                self._tried |= {_choice(climber.start) for climber in self._climbers}
            for _ in range(most):
                if vain > FRUITLESS or within.expired or self._stages.search.done:
                    break
                if shared.expired or 2 * self._fruitless > FRUITLESS:
                    self._climbers = [min(self._climbers, key=lambda climber: _key(climber.start))]
                vain = 0 if self._move() else vain + 1

    def _move(self) -> bool:
        """One move of the start whose turn it is; whether that gains anything."""
        turn = self._turn % len(self._climbers)
        self._turn += 1
        before = self._climbers[turn]
        moved = varied(before, self._stages, self._numbers, f"{self._stages.name} cuts", self._tried)
        better = moved is not None and _key(moved.start) < _key(before.start)
        self._fruitless = 0 if better else self._fruitless + 1
        if moved is not None and _key(moved.start) <= _key(before.start):
            self._climbers[turn] = moved
        return better


@dataclass(frozen=True)
class Climber:
    """A start from which moves begin.

    Parameters
    ----------
    start : its plan is smoothed
    rough : the key of that plan before, or of the worst one that is worth smoothing
    """

    start: Start
    rough: Fraction


def _key(start: Start) -> Fraction:
    return start.judged[0]


def _choice(start: Start) -> Choice:
    return start.region.name, start.sizes, start.order, start.mapping, start.homes


def _at_home(start: Start, stages: Stages, numbers: random.Random) -> Iterator[Climber]:
    """The best of some starts whose layers are at home on all engines, or on some that are drawn."""
    problem = stages.search.problem.problem
    layers, engines = len(problem.units), problem.machine.engines
    if min(layers, engines) == 1:
        return
    best: Climber | None = None
    for sizes in (balanced_sizes(problem), start.sizes):
        homes = [everywhere(layers, engines), *(drawn_homes(layers, engines, numbers) for _ in range(DRAWN))]
        for order, home in itertools.product(LISTED, homes):
            blank = replace(start, sizes=sizes, order=order, region=whole(problem.machine), homes=home)
            made = _made(blank, stages, f"{stages.name} homes", best)
            if made is not None and (best is None or _key(made.start) < _key(best.start)):
                best = made
    if best is not None:
        yield best


def _made(start: Start, stages: Stages, source: str, before: Climber | None) -> Climber | None:
    """A start with the plan of its choices; ``None`` where that is too bad to be smoothed, atoms are too
    many, or one fits no buffer.

    Parameters
    ----------
    start : its plan is replaced
    stages : what makes plans
    source : what the trace calls the plan
    before : the best one before, if there is one
    """
    problem = stages.search.problem.problem
    pairs = zip(problem.units, start.sizes, strict=True)
    if sum(atom_count(unit, size, problem.batch) for unit, size in pairs) > MOST_ATOMS:
        return None
    stages = replace(stages, region=start.region, homes=start.homes)
    if before is not None and before.start.sizes == start.sizes:
        dag = before.start.judged[1].dag
    else:
        try:
            dag = problem.dag(start.sizes, stages.search.limits)
        except InputError:
            return None
    rough = stages.rough(dag, start.order, start.mapping, source)
    if before is not None and rough[0] > ROUGHER * before.rough:
        return None
    return Climber(replace(start, judged=stages.smoothed(rough, source)), rough[0])


def varied(
    climber: Climber, stages: Stages, numbers: random.Random, source: str, tried: set[Choice]
) -> Climber | None:
    """A start after one move; ``None`` where it was tried before, or its plan is far worse.

    Parameters
    ----------
    climber : where the move begins
    stages : what makes plans
    numbers : which draw the move
    source : what the trace calls the plan
    tried : choices of which plans were made, the start's among them; the move's is added
    """
    problem, chance, start = stages.search.problem.problem, numbers.random(), climber.start
    sizes, order, mapping, homes = start.sizes, start.order, start.mapping, start.homes
    if homes is None:
        if chance < REORDERED:
            order = numbers.choice((*ORDERS[:3], ORDERS[4], BAND_ORDER))
        if not PLACED / 2 <= chance < 1 - PLACED / 2:
            mapping = numbers.choice(QUICK_MAPPINGS)
    else:
        if numbers.random() < RELISTED:
            order = numbers.choice(LISTED)
        if chance < REHOUSED:
            homes = rehoused(homes, problem.machine.engines, numbers)
    if chance >= 1 - (CUT if homes is None else CUT_AT_HOME):
        sizes = recut(problem, sizes, numbers)
    moved = replace(start, sizes=sizes, order=order, mapping=mapping, homes=homes)
    if _choice(moved) in tried:
        return None
    tried.add(_choice(moved))
    return _made(moved, stages, source, climber)


def recut(problem: TiledProblem, sizes: Sizes, numbers: random.Random) -> Sizes:
    """Sizes with one or two layers, or a run of them alike, in more or fewer parts along an axis, or two."""
    changed = list(sizes)
    if numbers.random() < ALIKE:
        first, last = sorted((numbers.randrange(len(sizes)), numbers.randrange(len(sizes))))
        if numbers.random() < 0.5:
            first, last = 0, len(sizes) - 1
        state = numbers.getrandbits(32)
        for at in range(first, last + 1):
            changed[at] = _recut(problem.units[at], problem.batch, sizes[at], random.Random(state))
        return tuple(changed)
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
