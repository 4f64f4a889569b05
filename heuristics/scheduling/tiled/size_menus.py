"""Sizes of atoms that share every layer out over the engines and fit their buffers.

Menus are ranked by the time that a layer is estimated to take, or by the energy of its copies plus a price
for every cycle, so that sizes suit the objective: the price of an EDP is what a cycle is worth in energy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

import numpy as np
import numpy.typing as npt

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.coordinates import (
    ACROSS,
    CHANNEL,
    COLUMN,
    PART,
    ROW,
    inner_run,
    shape_of,
)
from tilewright.formulation.scheduling.tiled.costs import AtomShapes, atom_costs
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.formulation.scheduling.tiled.memo import Memo
from tilewright.formulation.scheduling.tiled.own_costs import LeastPrices
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, borders
from tilewright.formulation.scheduling.tiled.trips import axis_trips, operator_kind
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.formulation.scheduling.tiled.widths import in_bytes, tensor_bits
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.machine import TiledMachine, TileEngine
from tilewright.workloads.mapping.operator import Operator, Role

PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 56, 64)
"""Into how many parts channels and rows are cut; columns and sums into fewer."""
WIDTHS = PARTS[:8]
MANY = (96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Parts besides, of channels as long as each fills the array's columns, and of rows: a layer over words has
100,000 channels, one over tokens thousands of rows."""

SUMS = (1, 2, 4, 8, 16, 64, 256)

HANDOVER = 24
"""Cycles between one round and the next: ways through the network, and arrivals that are not even."""

HOPS = 2
"""Links that a copy is estimated to pass: most come from a neighbour that has it, some from a DRAM port."""

NARROW = 4
"""Where ports are the limit, atoms may have channels for one of so many parts of the array's columns."""

SUM_BYTES = 4
"""Bytes of an unfinished sum, which an engine writes and reads again between two parts."""


@dataclass(frozen=True, eq=False)
class SizeMenu:
    """All candidate sizes of a unit's atoms, flat; figures are those of the first atom, which none exceeds.

    Parameters
    ----------
    sizes : [rows, columns, inputs, outputs], shape (candidates, 4)
    atoms : atoms per sample
    need : bytes in the buffer while one runs (a bound), for one sample per atom
    fetch : of these, the bytes of operands that come from elsewhere
    weights : of these, the bytes of stored weights
    cycles : of one atom
    rank : the same number for sizes that are equally good by themselves; 0 in a menu that is not ranked
    """

    sizes: Int64s
    atoms: Int64s
    need: Int64s
    fetch: Int64s
    weights: Int64s
    cycles: Int64s
    rank: Int64s

    def size(self, at: int) -> AtomSize:
        """One of the sizes."""
        rows, columns, inputs, outputs = (int(side) for side in self.sizes[at])
        return AtomSize(rows, columns, inputs, outputs)

    def equal(self, at: int) -> list[AtomSize]:
        """All sizes that are as good by themselves as one of them, the best first."""
        return [self.size(int(other)) for other in np.flatnonzero(self.rank == self.rank[at])]

    def picked(self, which: npt.NDArray[np.generic]) -> SizeMenu:
        """Some of the sizes, by their numbers or by flags."""
        return SizeMenu(
            self.sizes[which],
            self.atoms[which],
            self.need[which],
            self.fetch[which],
            self.weights[which],
            self.cycles[which],
            self.rank[which],
        )


def balanced_sizes(
    problem: TiledProblem,
    *,
    room: float = 0.5,
    engines: Sequence[int] | None = None,
    handover: int = HANDOVER,
    price: float = inf,
    limits: Limits | None = None,
) -> tuple[AtomSize, ...]:
    """Per unit the size of atoms with the least estimate when the unit has its engines to itself.

    The estimate of time is the number of rounds over all engines times the longer of an atom's cycles and
    the cycles in which its operands pass the engine's port, and those of the first atom once more,
    which nothing hides; ties go to fewer bytes.

    Parameters
    ----------
    room : part of the buffer that an atom takes at most, so that the next one's operands can arrive
        meanwhile; where no atom takes as little, all of it
    engines : per unit how many it has; by default all
    handover : cycles that estimates count between one round and the next; more of them make larger atoms
    price : pJ that a cycle is worth; by default time alone counts

    Raises
    ------
    InputError : for a unit whose least atom fits no buffer
    LimitReachedError : where limits strike on the way
    """
    counts = [problem.machine.engines] * len(problem.units) if engines is None else engines
    sizes = []
    for unit, count in zip(problem.units, counts, strict=True):
        check(limits)
        sizes.append(balanced_size_list(problem, unit, count, room=room, handover=handover, price=price)[0])
    return tuple(sizes)


def streaming_sizes(problem: TiledProblem, engines: int, room: float) -> tuple[AtomSize, ...]:
    """Per unit the best size of atoms that make all channels of some pixels, so that readers can follow at
    once; where weights of all channels do not fit, the best size of all.

    Parameters
    ----------
    engines : that share each unit
    room : part of the buffer that an atom takes at most: those of several layers lie in it side by side
    """
    sizes = []
    for unit in problem.units:
        menu = balanced_menu(problem, unit, engines, room=room)
        shape = shape_of(unit.layer.operator)
        all_channels = (menu.sizes[:, 3] >= shape.sizes[0]) & (menu.sizes[:, 2] >= shape.parts)
        whole = np.flatnonzero(all_channels)
        sizes.append(menu.size(int(whole[0]) if len(whole) else 0))
    return tuple(sizes)


def balanced_size_list(
    problem: TiledProblem,
    unit: Unit,
    engines: int,
    *,
    room: float = 0.5,
    most: int = 1,
    handover: int = HANDOVER,
    price: float = inf,
) -> list[AtomSize]:
    """The sizes of least estimate, best first; see `balanced_sizes`.

    Parameters
    ----------
    problem, unit : the layer
    engines : that share its atoms
    room : part of the buffer that an atom may need; where none needs as little, all of it
    most : sizes at most
    handover : cycles that estimates count between one round and the next
    price : pJ that a cycle is worth
    """
    menu = balanced_menu(problem, unit, engines, room=room, handover=handover, price=price)
    return [menu.size(at) for at in range(min(most, len(menu.atoms)))]


def balanced_menu(
    problem: TiledProblem,
    unit: Unit,
    engines: int,
    *,
    room: float = 0.5,
    handover: int = HANDOVER,
    price: float = inf,
) -> SizeMenu:
    """All sizes that fit, those of least estimate first; see `balanced_sizes`.

    Parameters
    ----------
    problem, unit : the layer
    engines : that share its atoms
    room : part of the buffer that an atom may need; where none needs as little, all of it
    handover : cycles that estimates count between one round and the next
    price : pJ that a cycle is worth
    """

    def ranked() -> SizeMenu:
        menu = fitting_menu(problem, unit, room, narrow=True)
        keys = menu.atoms, menu.atoms * menu.need, _estimates(problem, unit, menu, engines, handover, price)
        # of equal ones that multiply, those with many channels: fewer groups of engines share their inputs
        wide = -menu.sizes[:, 3] * unit.layer.operator.is_mac
        order = np.lexsort((wide, *keys))
        differs = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
        return replace(menu.picked(order), rank=np.cumsum(np.concatenate([[0], differs])))

    late = sum(read.late for read in unit.reads)
    kind = problem.machine, problem.batch, unit.layer.stored_weights, late
    return _RANKED.get(unit.layer.operator, (*kind, engines, room, handover, price), ranked)


_RANKED: Memo[SizeMenu] = Memo(lambda menu: 10 * len(menu.atoms))


def _estimates(
    problem: TiledProblem, unit: Unit, menu: SizeMenu, engines: int, handover: int, price: float
) -> Floats:
    """What sizes are ranked by."""
    time = _time(problem, unit, menu, engines, handover)
    return time if price == inf else _copies(problem, unit, menu, engines) + price * time


def _time(problem: TiledProblem, unit: Unit, menu: SizeMenu, engines: int, handover: int) -> Floats:
    """Cycles that a unit takes."""
    # parts of a sum follow each other; only boxes of results run side by side
    parts = -(-shape_of(unit.layer.operator).parts // menu.sizes[:, 2])
    rounds = -(-(menu.atoms // parts) * problem.batch // engines) * parts
    fetch = menu.fetch / problem.machine.port_rate
    time: Floats = rounds * (np.maximum(menu.cycles, fetch) + handover) + fetch
    return time


def _copies(problem: TiledProblem, unit: Unit, menu: SizeMenu, engines: int) -> Floats:
    """pJ of what the engines are sent for a unit: each keeps what its next atom reads again.

    Atoms are dealt out pixel by pixel, one group of channels after the other.
    """
    engine, machine = problem.machine.engine, problem.machine
    shape = shape_of(unit.layer.operator)
    _channels, height, width = shape.sizes
    rows, columns, inputs, _outputs = menu.sizes.T
    pixels = -(-height // rows) * -(-width // columns) * problem.batch
    parts = -(-shape.parts // inputs)
    boxes = menu.atoms * problem.batch // parts
    waves = -(-boxes // engines)
    groups = np.where(engines >= pixels, waves, np.minimum(boxes // pixels, waves))
    areas = np.minimum(waves, pixels // np.gcd(pixels, engines))
    sent = np.minimum(boxes, engines) * parts * (groups * menu.weights + areas * (menu.fetch - menu.weights))
    results = rows * columns * _outputs
    sums = (parts - 1) * boxes * results * SUM_BYTES
    copy = engine.buffer_read_energy + engine.buffer_write_energy + HOPS * machine.hop_energy
    energy: Floats = sent * copy + sums * (engine.buffer_read_energy + engine.buffer_write_energy)
    return energy


def fitting_menu(problem: TiledProblem, unit: Unit, room: float, *, narrow: bool = False) -> SizeMenu:
    """The candidate sizes that take at most a part of the buffer; where none does, those that fit at all.

    Parameters
    ----------
    problem, unit, room : the layer, and the part of the buffer
    narrow : also those of few channels where ports are the limit, see `size_menu`

    Raises
    ------
    InputError : for a unit whose least atom fits no buffer
    """
    machine = problem.machine
    limit = machine.engine.buffer_bytes
    late = sum(read.late for read in unit.reads)
    asked = unit.layer.operator, machine.engine, unit.layer.stored_weights, late
    menu = size_menu(*asked)
    if narrow and port_bound(menu, machine):
        menu = size_menu(*asked, narrow=True)
    fits = menu.need <= limit
    if not fits.any():
        menu = size_menu(*asked, fine=True)
        fits = menu.need <= limit
    if not fits.any():
        raise InputError(
            machine.name,
            unit.name,
            f"its smallest atom needs {int(menu.need.min())} bytes, a buffer has {limit}",
        )
    roomy = menu.need <= room * limit
    kept = roomy if roomy.any() else fits
    return menu.picked(kept)


def port_bound(menu: SizeMenu, machine: TiledMachine) -> bool:
    """Whether a layer's operands pass an engine's port for longer than its array takes for the layer."""
    whole = menu.atoms == 1
    return bool((menu.fetch[whole] > machine.port_rate * menu.cycles[whole]).any())


@lru_cache(maxsize=1024)
def size_menu(
    operator: Operator,
    engine: TileEngine,
    stored_weights: bool,
    late: int,
    *,
    narrow: bool = False,
    fine: bool = False,
) -> SizeMenu:
    """The candidate sizes of atoms of an operator on an engine.

    Parameters
    ----------
    stored_weights : whether the weights are blocks of their own
    late : operands that only the finished sums meet
    narrow : with channels that fill a part of the array's columns, so that more engines share the weights
    fine : cut down to single rows, columns and channels, which leave parts of the array idle
    """
    shape = shape_of(operator)
    channels, rows, columns = shape.sizes
    halves = tuple(2**i for i in range(max(*shape.sizes, shape.parts).bit_length() + 1)) if fine else ()
    outputs, inputs = (1, 1) if fine else (engine.columns * engine.lanes, engine.rows * engine.lanes)
    if narrow:
        outputs = max(1, outputs // NARROW)
    many = tuple(n for n in MANY if channels >= n * outputs)
    sums = SUMS if operator.is_mac else SUMS[:1]  # all parts of a result are dealt to one engine
    tiles = (
        sorted({_multiple(-(-channels // n), outputs, channels) for n in (*PARTS, *many, *halves)}),
        sorted({-(-rows // n) for n in (*PARTS, *(n for n in MANY if rows >= n), *halves)}),
        sorted({-(-columns // n) for n in (*WIDTHS, *halves)}),
        sorted({_multiple(-(-shape.parts // n), inputs, shape.parts) for n in (*sums, *halves)}),
    )
    return tile_menu(operator, engine, stored_weights, late, tiles)


def tile_menu(
    operator: Operator,
    engine: TileEngine,
    stored_weights: bool,
    late: int,
    tiles: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]],
    along: tuple[int, int, int, int] = (CHANNEL, ROW, COLUMN, PART),
) -> SizeMenu:
    """The sizes of atoms that tiles along axes make together, those along the last axis in turn first.

    Parameters
    ----------
    operator, engine : what is divided, and what an atom runs on
    stored_weights : whether the weights are blocks of their own
    late : operands that only the finished sums meet
    tiles : sizes along four axes of a tiling, all others are whole
    along : these axes
    """
    shape = shape_of(operator)
    cuts = [
        [borders(shape.extent(axis), tile, inner_run(operator, axis)) for tile in menu]
        for axis, menu in zip(along, tiles, strict=True)
    ]
    grid = np.meshgrid(*(np.arange(len(menu)) for menu in tiles), indexing="ij")
    pick = [choices.ravel() for choices in grid]
    trips = [
        [axis_trips(operator, axis, 0, choices[1]) for choices in menu]
        for axis, menu in zip(along, cuts, strict=True)
    ]
    undivided = shape.across if ACROSS not in along else None
    covered = shape.covered - {undivided}
    rest = math.prod(bound for name, bound in operator.bounds.items() if name not in covered)

    def product(name: str, factor: int = 1) -> Int64s:
        boxes = np.full(pick[0].size, factor, dtype=np.int64)
        for axis, per_tile in enumerate(trips):
            boxes = (
                boxes * np.array([getattr(choice, name) for choice in per_tile], dtype=np.int64)[pick[axis]]
            )
        return boxes

    def span(axis: int) -> Int64s:
        if axis not in along:
            return np.full(pick[0].size, shape.extent(axis), dtype=np.int64)
        at = along.index(axis)
        return np.array([choice[1] for choice in cuts[at]], dtype=np.int64)[pick[at]]

    shapes = AtomShapes(
        kind=operator_kind(operator),
        samples=product("samples"),
        groups=product("groups"),
        outputs=product("outputs"),
        inputs=product("inputs"),
        rows=product("rows"),
        columns=product("columns"),
        taps=product("taps", rest),
        input_positions=product("positions"),
    )
    atoms = np.ones(pick[0].size, dtype=np.int64)
    for axis, menu in enumerate(cuts):
        atoms = atoms * np.array([len(choices) - 1 for choices in menu], dtype=np.int64)[pick[axis]]
    results = span(CHANNEL) * span(ROW) * span(COLUMN)
    divided = (span(PART) < shape.parts) | (span(ACROSS) < shape.strips)
    made = in_bytes(results * tensor_bits(operator.output, engine))
    held = np.where(divided, 8 * results, made)
    fetch = late * made
    weights = np.zeros_like(fetch)
    depth = shapes.inputs if operator.is_mac else shapes.outputs
    for tensor in operator.inputs:
        if tensor.role is Role.WEIGHT:
            elements = shapes.groups * shapes.outputs * shapes.inputs * (shapes.taps if stored_weights else 1)
            weights = weights + in_bytes(elements * tensor_bits(tensor, engine))
        else:
            elements = shapes.input_positions * shapes.groups * depth * shapes.samples
            if not operator.is_mac:  # axes that a pool reads as a whole
                whole = [axis for axis in tensor.axes if covered.isdisjoint(term.dim for term in axis.terms)]
                elements = elements * math.prod(axis.size for axis in whole)
        fetch = fetch + in_bytes(elements * tensor_bits(tensor, engine))
    boxes = np.stack([span(ROW), span(COLUMN), span(PART), span(CHANNEL)], axis=1)
    cycles = _cycles(engine, shapes)
    return SizeMenu(boxes, atoms, held + fetch, fetch, weights, cycles, np.zeros_like(atoms))


def _cycles(engine: TileEngine, shapes: AtomShapes) -> Int64s:
    """Cycles of atoms; if no PE were idle on a tile from a machine file, whose mappings take a search."""
    if engine.own is not None:
        engine = replace(engine, prices=LeastPrices())
    return atom_costs(engine, shapes).cycles


def _multiple(size: int, unit: int, whole: int) -> int:
    return min(whole, -(-size // unit) * unit)
