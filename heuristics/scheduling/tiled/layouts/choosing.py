"""The choice of a layout for every layer of a network together, by estimates of energy and cycles.

A choice costs what its layers take, and what it takes to bring results from one layer's engines to the
next one's.  For a price of a cycle the sum is least over all choices (`least_choice`), on networks whose
skips leave its tables small.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.units import Read, Unit
from tilewright.foundation.arrays import Floats
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.layouts.candidates import (
    Candidates,
    Layout,
    Layouts,
    candidates,
    cut_menu,
    reads_outside,
)
from tilewright.heuristics.scheduling.tiled.layouts.elimination import least_choice
from tilewright.heuristics.scheduling.tiled.layouts.flows import last_waits
from tilewright.heuristics.scheduling.tiled.layouts.grids import Grid
from tilewright.heuristics.scheduling.tiled.layouts.journeys import journeys
from tilewright.heuristics.scheduling.tiled.layouts.orders import order_apart
from tilewright.heuristics.scheduling.tiled.layouts.rings import chain_fill
from tilewright.heuristics.scheduling.tiled.layouts.siblings import Operand, kept, siblings

PRICES = (1.0, 4.0, 0.25)
"""Multiples of the price of a cycle by which layouts of a layer are ranked."""

MOST = 12
"""Layouts of a layer for each of them."""

SHARE = 64
"""Atoms of an engine's share at most."""

EARLY = 0.7
"""Part of a layer's weights that arrives before it begins."""

CROWDING = 0.2
"""Part of the time in which weights pass a port that other bytes lose by it, however early they come.  Where
cycles alone count, plans are longer with it."""

FILLS = 2.0
"""Times the fill of a chain that engines which share sums take longer, where estimates are wary of rings;
once where cycles alone count."""

LATE = 0.25
"""Part of the arrival of an operand that only finished sums meet which nothing hides."""

KEPT = 1.0
"""Part of what a layer leaves in buffers that is still there when its next sibling reads it."""

PLANNED = 3.5
"""Times as long as all ways of operands it takes to a first plan, where a way takes as long as the layouts of
a kind of layers (1.7 to 3.5 on four networks)."""

FEW, SOONER = 6, 1.5
"""Layouts of a layer for each price where there is less time than that, and as of `PLANNED` for these."""


class _Way(NamedTuple):
    """What the way of an operand takes, each of shape (producer's layouts, reader's).

    Parameters
    ----------
    energy : pJ
    flowing, whole : cycles, with results that arrive while others are made, and without
    """

    energy: Floats
    flowing: Floats
    whole: Floats


class LayoutChoice:
    """Layouts that the layers of a network may have, and what they take alone and in pairs.

    What hides the wait of a pair of layers is the work of those that run between them in an order.

    Parameters
    ----------
    price : pJ that a cycle is worth, about
    room : part of the buffer that an atom may need
    most : atoms of an engine's share at most; where none fits, more of them up to `SHARE`
    limits : where they strike, there is no choice
    hasty : whether there are fewer layouts where the limits are expected to strike before a plan is there,
        and no choice where they are all the same

    Attributes
    ----------
    problem, room : as given
    of : the layouts of every layer
    order : in which layers run, by default the network's
    wary_of_rings : whether engines that share sums are estimated to take longer, see `wary`

    Raises
    ------
    InputError : for a layer of which no share fits a buffer
    LimitReachedError : where limits strike on the way, or are expected to
    """

    def __init__(
        self,
        problem: TiledProblem,
        price: float,
        *,
        room: float,
        most: int,
        limits: Limits | None = None,
        hasty: bool = False,
    ) -> None:
        self.problem, self.room, self._limits = problem, room, limits
        begun = limits.clock() if limits is not None else 0.0
        known: dict[object, Candidates] = {}
        self.of: list[Candidates] = []
        prices = tuple(price * multiple for multiple in PRICES)
        for unit in problem.units:
            check(limits)
            late, outside = sum(read.late for read in unit.reads), reads_outside(unit)
            near = self._beside(unit)
            key = unit.layer.operator, unit.layer.stored_weights, late, outside, near
            if key not in known:
                known[key] = _fitting(problem, unit, room, prices, most, near)
            if not known[key].layouts:
                raise InputError(problem.machine.name, unit.name, "no share of it fits a buffer")
            self.of.append(known[key])
        inner = [
            (index, read)
            for index, unit in enumerate(problem.units)
            for read in unit.reads
            if read.producer is not None and read.producer != index
        ]
        if hasty and limits is not None and limits.remaining is not None:
            kind = (limits.clock() - begun) / len(known)
            ways = len({self._way(index, read) for index, read in inner})
            if limits.remaining < SOONER * kind * ways:
                raise LimitReachedError("too little time for what layers take in pairs")
            if limits.remaining < PLANNED * kind * ways:
                fewer = {id(of): of.fewer(FEW) for of in known.values()}
                self.of = [fewer[id(of)] for of in self.of]
        self.wary_of_rings = False
        self._energy: dict[tuple[int, int], Floats] = {}
        self._flowing: dict[tuple[int, int], Floats] = {}
        self._whole: dict[tuple[int, int], Floats] = {}
        told: dict[object, _Way | None] = {}
        before: dict[object, list[_Way]] = {}
        for index, read in inner:
            check(limits)
            alike = self._way(index, read)
            if alike not in told:
                told[alike] = self._told(index, read)
            way = told[alike]
            if way is None:
                continue
            sent = before.setdefault((index, read.producer, read.way), [])
            # operands that are read alike are sent once
            if not any(np.array_equal(way.energy, other.energy) for other in sent):
                sent.append(way)
                assert read.producer is not None
                self._add((read.producer, index), way)
        self._parts: dict[object, Floats | None] = {}
        self._run_in(tuple(range(len(self.of))))

    def _beside(self, unit: Unit) -> tuple[Grid, ...]:
        """The grids of the map that a pool reads whose window may be divided."""
        makers = [read.producer for read in unit.reads if read.producer is not None]
        if not shape_of(unit.layer.operator).is_window or not makers:
            return ()
        return tuple({layout.grid: None for layout in self.of[makers[0]].layouts})

    def _ends(self, index: int, read: Read) -> tuple[Candidates, Candidates]:
        """The layouts of the layer that makes an operand, and of the one that reads it."""
        assert read.producer is not None
        return self.of[read.producer], self.of[index]

    def _way(self, index: int, read: Read) -> object:
        """What operands have in common whose ways take the same."""
        made, wanted = self._ends(index, read)
        return id(made), id(wanted), read.operand, read.late, read.way

    def _told(self, index: int, read: Read) -> _Way | None:
        """What an operand's way takes for one sample; ``None`` where coordinates mix on it."""
        made, wanted = self._ends(index, read)
        ways = journeys(self.problem, index, read, made.layouts, wanted.layouts)
        if ways is None:
            return None
        if read.late:
            late = LATE * ways.arrival
            return _Way(ways.energy, late, late)
        ahead = self._waits(wanted)
        busy = np.maximum(wanted.cycles, ahead)
        beyond = np.maximum(0.0, ahead + ways.arrival - busy)
        first = ways.arrival * np.array([1.0 / math.prod(layout.cuts[1:]) for layout in wanted.layouts])
        flowing = beyond + last_waits(self.problem, index, read, made, wanted, first)
        return _Way(ways.energy, flowing, beyond + first)

    def _add(self, pair: tuple[int, int], way: _Way) -> None:
        """Add what an operand's way takes to the costs of its pair of layers."""
        for table, more in zip((self._energy, self._flowing, self._whole), way, strict=True):
            table[pair] = table.get(pair, 0.0) + self.problem.batch * more

    def waiting(self) -> LayoutChoice:
        """The same choice where no results arrive while others are made."""
        choice = copy(self)
        choice._flowing = self._whole
        choice._cycles = choice._beyond_others(self._whole)
        return choice

    def wary(self, *, of_rings: bool = True) -> LayoutChoice:
        """The same choice where engines that share sums take the fill of a chain longer, or `FILLS` of them.

        Where turns are short, sums and other operands crowd ports for longer than estimates of rings tell.
        """
        choice = copy(self)
        choice.wary_of_rings = of_rings
        return choice

    def apart(self) -> LayoutChoice:
        """The same choice in the order of `order_apart`."""
        choice = copy(self)
        choice._run_in(order_apart(self.problem.units))
        return choice

    def _run_in(self, order: tuple[int, ...]) -> None:
        """Have layers run in an order, from which follows what hides waits, and what siblings keep."""
        self.order = order
        self._cycles = self._beyond_others(self._flowing)
        self._kept = self._kept_by_siblings()
        self._near: list[list[tuple[int, int]]] = [[] for _ in self.of]
        for pair in {**self._energy, **self._kept}:
            for end in pair:
                self._near[end].append(pair)

    def _kept_by_siblings(self) -> dict[tuple[int, int], Floats]:
        """pJ that pairs of layers take less since the first one left what both read in buffers.

        A part that is there need not be sent, whatever the way of its producer's layout would be; of these
        ways the least is counted.  The part is that of the largest operand where siblings share several.
        """
        common: dict[tuple[int, int], list[tuple[Operand, Operand]]] = {}
        for first, second in siblings(self.problem.units, self.order):
            if (second[1].producer, second[0]) in self._energy:
                common.setdefault((first[0], second[0]), []).append((first, second))
        saved: dict[tuple[int, int], Floats] = {}
        for pair, operands in common.items():
            check(self._limits)
            producers = [second[1].producer for _, second in operands if second[1].producer is not None]
            ways = [self._energy[producer, pair[1]].min(axis=0) for producer in producers]
            first, second = operands[int(np.argmax([way.max() for way in ways]))]
            before, after = self.of[pair[0]], self.of[pair[1]]
            key = id(before), id(after), first[1].operand, second[1].operand, first[1].way, second[1].way
            if key not in self._parts:
                self._parts[key] = kept(self.problem, first, second, before.layouts, after.layouts)
            part = self._parts[key]
            if part is not None:
                saved[pair] = -KEPT * part * np.sum(ways, axis=0)
        return saved

    def _together(self, pair: tuple[int, int], price: float) -> Floats:
        """What a pair of layers takes beyond what each takes by itself, shape as of its layouts."""
        table = self._energy[pair] + price * self._cycles[pair] if pair in self._energy else np.zeros(())
        return table + self._kept.get(pair, 0.0)

    def _beyond_others(self, cycles: Mapping[tuple[int, int], Floats]) -> dict[tuple[int, int], Floats]:
        """What is left of the waits of pairs of layers beyond the work of the layers between them."""
        work = [float(self.of[unit].cycles.min()) * self.problem.batch for unit in self.order]
        ends = np.concatenate([[0.0], np.cumsum(work)])
        at = {unit: place for place, unit in enumerate(self.order)}
        return {
            (first, second): np.maximum(0.0, waits - (ends[at[second]] - ends[at[first] + 1]))
            for (first, second), waits in cycles.items()
        }

    def _waits(self, wanted: Candidates) -> Floats:
        """Cycles in which weights pass a port that do not come before their layer begins."""
        waits: Floats = (1.0 - EARLY) * wanted.weights / self.problem.machine.port_rate
        return waits

    def _own(self, unit: int, price: float) -> Floats:
        of = self.of[unit]
        cycles = of.cycles * self.problem.batch
        waits = np.maximum(0.0, self._waits(of) - cycles)
        if self.problem.objective.energy_power:
            waits += CROWDING * of.weights / self.problem.machine.port_rate
        if reads_outside(self.problem.units[unit]):
            waits = waits + _outside(of, self.problem.machine)
        costs: Floats = of.energy + price * (cycles + waits)
        chained = self.problem.partial_sums == "chain" and self.problem.units[unit].layer.operator.is_mac
        if self.wary_of_rings and chained:
            fills = FILLS if self.problem.objective.energy_power else 1.0
            boxes, parts = np.array(
                [(math.prod(each.cuts[:3]), each.grid.groups[3]) for each in of.layouts]
            ).T
            costs += price * fills * chain_fill(boxes, parts) * cycles
        return costs

    def best(self, price: float) -> Layouts:
        """The layouts of least estimate; raises `LimitReachedError` where limits strike before."""
        own = [self._own(unit, price) for unit in range(len(self.of))]
        pairs = {pair: self._together(pair, price) for pair in {**self._energy, **self._kept}}
        picks, _ = least_choice(own, pairs, limits=self._limits)
        return tuple(of.layouts[pick] for of, pick in zip(self.of, picks, strict=True))

    def rechosen(
        self,
        layouts: Layouts,
        units: Sequence[int],
        price: float,
        numbers: random.Random,
        spread: float = 0.0,
    ) -> Layouts:
        """The layouts of least estimate of some layers, while all others stay.

        Parameters
        ----------
        layouts : of all layers
        units : the layers that are chosen anew
        price : pJ that a cycle is worth
        numbers : what is drawn comes from these
        spread : part of itself by which an estimate is raised at most, drawn for each
        """
        draw = np.random.default_rng(numbers.randrange(1 << 30))

        def raised(costs: Floats) -> Floats:
            return costs * (1.0 + spread * draw.random(costs.shape))

        at = {unit: i for i, unit in enumerate(units)}
        own = [raised(self._own(unit, price)) for unit in units]
        pairs: dict[tuple[int, int], Floats] = {}
        for pair in {pair: None for unit in units for pair in self._near[unit]}:
            table = raised(self._together(pair, price))
            first, second = pair
            if first in at and second in at:
                pairs[at[first], at[second]] = table
                continue
            pick = self.pick(second if first in at else first, layouts[second if first in at else first])
            if pick is not None and first in at:
                own[at[first]] = own[at[first]] + table[:, pick]
            elif pick is not None:
                own[at[second]] = own[at[second]] + table[pick]
        picks, _ = least_choice(own, pairs)
        changed = list(layouts)
        for unit, pick in zip(units, picks, strict=True):
            changed[unit] = self.of[unit].layouts[pick]
        return tuple(changed)

    def recut(self, unit: int, layout: Layout, numbers: random.Random) -> Layout:
        """The same grid of a layer with more or fewer parts along one axis."""
        axis = numbers.randrange(4)
        menu = cut_menu(shape_of(self.problem.units[unit].layer.operator))[axis]
        at = menu.index(layout.cuts[axis]) + numbers.choice((-1, 1))
        if not 0 <= at < len(menu):
            return layout
        channels, rows, columns, parts = (menu[at] if i == axis else cut for i, cut in enumerate(layout.cuts))
        return replace(layout, cuts=(channels, rows, columns, parts))

    def among_others(self, layouts: Layouts, unit: int, price: float) -> Floats:
        """What each layout of one layer is estimated to cost while all others stay.

        What lies between it and layers that run beside others is not counted.

        Parameters
        ----------
        layouts : of all layers
        unit : the layer
        price : pJ that a cycle is worth
        """
        costs = self._own(unit, price).copy()
        for pair in self._near[unit]:
            first, second = pair
            other = second if first == unit else first
            pick = self.pick(other, layouts[other])
            if pick is not None:
                table = self._together(pair, price)
                costs += table[:, pick] if first == unit else table[pick]
        return costs

    def pick(self, unit: int, layout: Layout) -> int | None:
        """Which of a layer's layouts this one is, or else one with the same shares."""
        layouts = self.of[unit].layouts
        with suppress(ValueError):
            return layouts.index(layout)
        return next((i for i, of in enumerate(layouts) if of.shares == layout.shares), None)


def _fitting(
    problem: TiledProblem, unit: Unit, room: float, prices: Sequence[float], most: int, near: Sequence[Grid]
) -> Candidates:
    """Layouts of a layer, with as few more atoms than wanted as fit a buffer; none where none fits."""
    atoms = most
    while True:
        of = candidates(problem, unit, room=room, prices=prices, most=MOST, atoms=atoms, near=near)
        if of.layouts or atoms >= SHARE:
            return of
        atoms = min(SHARE, 2 * atoms)


def _outside(of: Candidates, machine: TiledMachine) -> Floats:
    """Cycles that the first atoms wait for operands from outside of the network, which DRAM sends once for
    all groups of channels.
    """
    pixels = np.array([math.prod(layout.grid.groups[1:]) for layout in of.layouts])
    atoms = np.array([math.prod(layout.cuts[1:]) for layout in of.layouts])
    slowest = np.maximum(1.0 / machine.port_rate, pixels / machine.dram_rate)
    waits: Floats = of.inputs * slowest / atoms
    return waits
