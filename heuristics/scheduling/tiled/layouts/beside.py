"""Layers beside others: a layer runs on engines that another one, its leader, leaves idle, in its turns.

Few shares of a small layer are as large as all engines could make them at once: 18 groups of channels by
three of pixels leave ten of 64 engines idle for as long as the layer takes.  A layer that neither reads its
results nor makes what it reads may run there meanwhile.  It then has fewer engines and takes longer, which
costs nothing while its leader takes as long, and fewer engines are sent copies of what it reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.heuristics.scheduling.tiled.layouts.candidates import (
    Candidates,
    Layout,
    Layouts,
    Shares,
    smallest_pieces,
)
from tilewright.heuristics.scheduling.tiled.layouts.choosing import LayoutChoice
from tilewright.heuristics.scheduling.tiled.layouts.grids import even_groups, grid_of
from tilewright.heuristics.scheduling.tiled.layouts.journeys import journeys
from tilewright.heuristics.scheduling.tiled.layouts.ways_kernel import ways
from tilewright.heuristics.scheduling.tiled.lists import zigzag

NEAR = 8
"""Turns of the order between a layer and its leader at most."""

LEADERS, SITES = 2, 2
"""Layouts of a leader that a layer may run beside, and those of all leaders that it is tried beside."""

ATOMS = 4
"""Atoms of an engine's share of a layer beside another one at most."""

TRIED = 5
"""Layouts of a layer beside each of them of which the ways of operands and results are counted."""


@dataclass(frozen=True)
class Beside:
    """A layer that may run beside another one.

    Parameters
    ----------
    gain : pJ that this is estimated to spare, with cycles at their price
    layouts : of both layers
    """

    gain: float
    layouts: dict[int, Layout]


def followers(problem: TiledProblem, layouts: Sequence[Layout], order: Sequence[int]) -> dict[int, list[int]]:
    """Per leader, the layers that can run beside it.

    A layer can where all that it reads is made before the leader's turns, all that read it follow them, and
    neither the leader nor others beside it have one of its engines.  All other layers have turns of their
    own.

    Parameters
    ----------
    layouts : of all layers
    order : in which layers run
    """
    beside: dict[int, list[int]] = {}
    asked = [unit for unit in order if layouts[unit].leader is not None]
    if not asked:
        return beside
    precedence = Precedence(problem.units, order)
    taken: dict[int, set[int]] = {}
    for unit in asked:
        leader = layouts[unit].leader
        assert leader is not None
        if layouts[leader].leader is not None or not precedence.allows(unit, leader):
            continue
        used = taken.setdefault(leader, _used(problem, leader, layouts[leader]))
        mine = _used(problem, unit, layouts[unit])
        if used.isdisjoint(mine):
            used |= mine
            precedence.place[unit] = precedence.place[leader]
            beside.setdefault(leader, []).append(unit)
    return beside


class Precedence:
    """Which layers may run in the turns of which other ones.

    Attributes
    ----------
    place : of every layer in the order
    """

    def __init__(self, units: Sequence[Unit], order: Sequence[int]) -> None:
        self.place = [0] * len(units)
        for at, unit in enumerate(order):
            self.place[unit] = at
        self._made = [
            {read.producer for read in unit.reads if read.producer is not None and read.producer != at}
            for at, unit in enumerate(units)
        ]
        self._readers: list[set[int]] = [set() for _ in units]
        for at, made in enumerate(self._made):
            for producer in made:
                self._readers[producer].add(at)

    def allows(self, unit: int, leader: int) -> bool:
        """Whether all that a layer reads comes before another one, and all that reads it after that."""
        now = self.place[leader]
        return all(self.place[made] < now for made in self._made[unit]) and all(
            self.place[reader] > now for reader in self._readers[unit]
        )


@dataclass(frozen=True)
class _Site:
    """Engines that a layout of a leader leaves idle.

    Parameters
    ----------
    hoped : pJ that a layer would spare there if its work was shared evenly
    leader, pick : the leader, and which of its layouts
    """

    hoped: float
    leader: int
    pick: int


@dataclass(frozen=True, eq=False)
class _Present:
    """Layouts that there are, and what is known of them.

    Parameters
    ----------
    layouts : of all layers
    price : pJ that a cycle is worth
    beside : as of `followers`
    picks : of every layer with turns of its own, which of its layouts it has, ``None`` if none of them
    costs : of these layers, what each layout is estimated to cost while all others stay
    """

    layouts: Layouts
    price: float
    beside: dict[int, list[int]]
    picks: dict[int, int | None]
    costs: dict[int, Floats]

    def more(self, leader: int) -> Floats:
        """What each layout of a leader is estimated to cost more than the present one."""
        pick = self.picks[leader]
        assert pick is not None
        more: Floats = self.costs[leader] - self.costs[leader][pick]
        return more


class Besides:
    """What may run beside what in plans of layouts.

    Parameters
    ----------
    choice : of all layers
    """

    def __init__(self, choice: LayoutChoice) -> None:
        self._choice, self._problem = choice, choice.problem
        self._along = zigzag(self._problem.machine).tolist()
        self._known: dict[object, Candidates] = {}
        self._engines = {id(of): _counts(self._problem, unit, of) for unit, of in enumerate(choice.of)}
        self._work = [float((of.cycles * self._engines[id(of)]).min()) for of in choice.of]

    def placed(self, layouts: Layouts, price: float, units: Sequence[int] | None = None) -> Layouts:
        """Layouts with all layers beside others that are estimated to gain there, those that gain most first.

        Parameters
        ----------
        layouts : of all layers
        price : pJ that a cycle is worth
        units : the layers that may move; by default all
        """
        changed, touched = list(layouts), set[int]()
        for offer in self.offers(layouts, price, units):
            if touched.isdisjoint(offer.layouts):
                touched.update(offer.layouts)
                for unit, layout in offer.layouts.items():
                    changed[unit] = layout
        return tuple(changed)

    def offers(self, layouts: Layouts, price: float, units: Sequence[int] | None = None) -> list[Beside]:
        """The best place of every layer that is estimated to gain beside another one, the most first.

        Parameters
        ----------
        layouts, price, units : as of `placed`
        """
        choice = self._choice
        beside = followers(self._problem, layouts, choice.order)
        precedence = Precedence(self._problem.units, choice.order)
        taken = {unit: leader for leader, others in beside.items() for unit in others}
        for unit, leader in taken.items():
            precedence.place[unit] = precedence.place[leader]
        order = [unit for unit in choice.order if unit not in taken]
        now = _Present(
            layouts,
            price,
            beside,
            {unit: choice.pick(unit, layouts[unit]) for unit in order},
            {unit: choice.among_others(layouts, unit, price) for unit in order},
        )
        made: list[Beside] = []
        for at, unit in enumerate(order):
            pick = now.picks[unit]
            if unit in beside or pick is None or (units is not None and unit not in units):
                continue
            spared = float(now.costs[unit][pick] - choice.among_others(layouts, unit, 0.0)[pick])
            sites: list[_Site] = []
            for leader in order[max(0, at - NEAR) : at + NEAR + 1]:
                if leader != unit and now.picks[leader] is not None and precedence.allows(unit, leader):
                    sites += self._sites(now, leader, unit, spared)
            sites.sort(key=lambda site: -site.hoped)
            offers = [self._offer(now, site, unit) for site in sites[:SITES]]
            best = max((offer for offer in offers if offer is not None), key=lambda of: of.gain, default=None)
            if best is not None:
                made.append(best)
        return sorted(made, key=lambda offer: -offer.gain)

    def _sites(self, now: _Present, leader: int, unit: int, spared: float) -> list[_Site]:
        """Layouts of a leader beside which a layer would spare the most, of what its cycles are worth."""
        of, at, others = self._choice.of[leader], now.picks[leader], now.beside.get(leader, [])
        assert at is not None
        taken = sum(len(_used(self._problem, other, now.layouts[other])) for other in others)
        idle = np.maximum(0, self._problem.machine.engines - taken - self._engines[id(of)])
        longer = np.maximum(0.0, self._work[unit] / np.maximum(idle, 1) - of.cycles) * self._problem.batch
        hoped = np.where(idle > 0, spared - now.more(leader) - now.price * longer, -1.0)
        picks = [at] if others else np.argsort(-hoped, kind="stable")[:LEADERS].tolist()
        return [_Site(float(hoped[pick]), leader, pick) for pick in picks if hoped[pick] > 0.0]

    def _offer(self, now: _Present, site: _Site, unit: int) -> Beside | None:
        """The best layout of a layer on idle engines; ``None`` where none gains."""
        leader, own = site.leader, now.picks[unit]
        of = self._choice.of[leader]
        layout = now.layouts[leader] if site.pick == now.picks[leader] else of.layouts[site.pick]
        used = _used(self._problem, leader, layout)
        for other in now.beside.get(leader, []):
            used |= _used(self._problem, other, now.layouts[other])
        mine = self._beside(unit, tuple(engine for engine in self._along if engine not in used), now.price)
        room = float(now.costs[unit][own] - now.more(leader)[site.pick])
        price, lasting, turns = now.price * self._problem.batch, float(of.cycles[site.pick]), _turns(layout)
        taken = mine.energy + price * _longer(lasting, turns, mine, mine.cycles)
        few = np.argsort(taken, kind="stable")[:TRIED]
        few = few[taken[few] < room]
        if not len(few):
            return None
        picked = mine.some(few)
        energy, arrival = self._ways(now.layouts, unit, picked.layouts)
        cost = picked.energy + energy + price * _longer(lasting, turns, picked, picked.cycles + arrival)
        best = int(np.argmin(cost))
        gain = room - float(cost[best])
        if gain <= 0.0:
            return None
        return Beside(gain, {leader: layout, unit: replace(picked.layouts[best], leader=leader)})

    def _ways(self, layouts: Layouts, unit: int, mine: Layouts) -> tuple[Floats, Floats]:
        """pJ of the ways of a layer's operands and results, and cycles until its operands have arrived."""
        energy, arrival = np.zeros(len(mine)), np.zeros(len(mine))
        batch, units = self._problem.batch, self._problem.units
        seen = set[object]()
        for read in units[unit].reads:
            if read.producer is None or read.producer == unit or (read.producer, read.way) in seen:
                continue
            seen.add((read.producer, read.way))
            ways_in = journeys(self._problem, unit, read, (layouts[read.producer],), mine)
            if ways_in is not None:
                energy += batch * ways_in.energy[0]
                arrival += ways_in.arrival[0]
        for reader, other in enumerate(units):
            for read in other.reads:
                if read.producer != unit or reader == unit:
                    continue
                ways_out = journeys(self._problem, reader, read, mine, (layouts[reader],))
                if ways_out is not None:
                    energy += batch * ways_out.energy[:, 0]
        return energy, arrival

    def _beside(self, unit: int, idle: tuple[int, ...], price: float) -> Candidates:
        """Layouts of a layer along some engines."""
        key = id(self._choice.of[unit]), idle
        if key not in self._known:
            self._known[key] = _along(
                self._problem, self._problem.units[unit], idle, self._choice.room, price
            )
        return self._known[key]


def _along(
    problem: TiledProblem, unit: Unit, along: tuple[int, ...], room: float, price: float
) -> Candidates:
    """Layouts of a layer along some engines, with estimates as of `candidates`."""
    machine, operator = problem.machine, unit.layer.operator
    full = machine.engine.columns * machine.engine.lanes if operator.is_mac else 1
    pieces = smallest_pieces(operator, machine, full)
    shape = shape_of(operator)
    blocks, rows, columns = (
        1 if summed else -(-shape.extent(axis) // piece)
        for axis, summed, piece in zip(shape.laid[:3], shape.summed[:3], pieces[:3], strict=True)
    )
    engines = len(along)
    groups = np.array(
        [
            (k, h, w, 1)
            for k in even_groups(blocks, engines)
            for h in even_groups(rows, engines // k)
            for w in even_groups(columns, engines // (k * h))
        ],
        dtype=np.int64,
    )
    shares = Shares(problem, unit, pieces, groups, room, price, ATOMS)
    grids = [(k, h, w, 1, 1, 1, 1, k > 1 and h * w > 1, 1, 1) for k, h, w, _ in groups.tolist()]
    made = np.array(grids, dtype=np.int64).reshape(-1, 10)
    ports = np.array(machine.dram_ports, dtype=np.int64).reshape(-1, 2)
    trees, _ = ways(made, machine.width, machine.height, ports)
    sent = machine.engine.buffer_write_energy * groups[:, 1:3].prod(axis=1) + machine.hop_energy * trees
    spent = problem.batch * shares.inside + (shares.weights * groups[:, 0] * sent)[:, None]
    picks = _front(shares.cycles, spent)
    layouts = tuple(
        Layout(grid_of(made[row]), tuple(shares.cuts[row, kind].tolist()), pieces, along)
        for row, kind in picks.tolist()
    )
    rows_of, kinds = picks.T
    cycles, place = shares.cycles[rows_of, kinds], np.zeros(len(picks), dtype=np.int64)
    energy = spent[rows_of, kinds]
    return Candidates(layouts, cycles, shares.weights[rows_of], shares.inputs[rows_of], energy, place)


def _front(cycles: Floats, energy: Floats) -> Int64s:
    """Indices, shape (picks, 2), of what is finite where nothing takes fewer cycles and less energy."""
    order = np.lexsort((energy.ravel(), cycles.ravel()))
    order = order[np.isfinite(cycles.ravel()[order])]
    least = np.minimum.accumulate(np.concatenate([[np.inf], energy.ravel()[order]]))
    front: Int64s = np.stack(np.unravel_index(order[np.diff(least) < 0.0], cycles.shape), axis=1)
    return front


def _counts(problem: TiledProblem, unit: int, of: Candidates) -> Int64s:
    """Engines of every layout that make anything of a layer."""
    shape = shape_of(problem.units[unit].layer.operator)
    sizes = np.array([shape.extent(axis) for axis in shape.laid])
    groups = np.array([layout.grid.groups for layout in of.layouts])
    pieces = -(-sizes // np.array([layout.units for layout in of.layouts]))
    counts: Int64s = np.minimum(groups, pieces).prod(axis=1)
    return counts


def _used(problem: TiledProblem, unit: int, layout: Layout) -> set[int]:
    """The engines that make anything of a layer."""
    borders = layout.borders(problem.units[unit].layer.operator)
    filled = [np.flatnonzero(np.diff(along)) for along in borders]
    return set(layout.engines(problem.machine.width)[np.ix_(*filled)].ravel().tolist())


def _turns(layout: Layout) -> int:
    """Turns of a layer."""
    boxes, parts = math.prod(layout.cuts[:3]), layout.grid.groups[3]
    return max(boxes, parts) * layout.cuts[3]


def _longer(lasting: float, turns: int, mine: Candidates, cycles: Floats) -> Floats:
    """Cycles by which layers that run in the turns of another one make these longer.

    Parameters
    ----------
    lasting, turns : of the other layer
    mine : layouts
    cycles : of each
    """
    own = np.array([_turns(layout) for layout in mine.layouts])
    both = np.minimum(turns, own)
    mean, mine_mean = lasting / turns, cycles / own
    taken = both * np.maximum(mean, mine_mean) + (own - both) * mine_mean + (turns - both) * mean
    longer: Floats = taken - lasting
    return longer
