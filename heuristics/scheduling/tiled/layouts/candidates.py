"""Candidates: grids of one layer with cuts of every engine's share, and what they are estimated to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import inf, prod

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import Shape, inner_run, shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import Tiling
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.layouts.cuts_kernel import best_cuts
from tilewright.heuristics.scheduling.tiled.layouts.grids import SPARE, Grid, grid_of, grids, shared, sides
from tilewright.heuristics.scheduling.tiled.layouts.ways_kernel import ways
from tilewright.heuristics.scheduling.tiled.size_menus import SUM_BYTES, tile_menu
from tilewright.workloads.mapping.operator import Operator

CUTS = ((1, 2, 4), (1, 2, 3, 4, 7, 8), (1, 2, 4), (1, 2, 4, 8, 16))
"""Parts into which an engine cuts its share along channels, rows, columns and the sum over inputs."""

WINDOW_CUTS = ((1, 2, 4, 8, 16, 32), (1, 2, 4), (1, 2), (1,))
"""The same of pools whose windows are divided: one engine combines the sums of each tile of channels."""

FINER = 4
"""Times as many atoms as others' an engine's share of such a pool may have: pools are few, and the last sums
arrive when nothing hides them."""


Tiles = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Borders of the tiles along an axis, the share that each is of, and its number within that."""

WHOLE: Tiles = (0, 1), (0,), (0,)
"""Those of an axis along which there is one position."""


@lru_cache(maxsize=4096)
def _borders(size: int, groups: int, unit: int) -> tuple[int, ...]:
    """Borders of shares along an axis."""
    return tuple(min(size, unit * at) for at in shared(-(-size // unit), groups))


def _tile_units(shape: Shape, units: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Smallest pieces of tiles: those of shares, or of a pool whose window is divided single channels."""
    return (1, *units[1:]) if shape.is_window else units


@dataclass(frozen=True, slots=True)
class Layout:
    """How a layer is laid out, along the axes of `Shape.laid`.

    Where a pool has one row of results, rows are those of its window, and so are columns where there is one
    column of results, too: an engine combines what it has of a map, and one engine each combines the sums of
    some channels.

    Parameters
    ----------
    grid : which engine makes which share
    cuts : into how many parts a share is cut along channels, rows, columns and the sum over inputs
    units : smallest pieces along channels, rows, columns and the sum over inputs
    along : engines along which a grid that winds lies; by default the zig-zag through all
    leader : the layer in whose turns this one runs, on engines that it leaves idle; by default none
    """

    grid: Grid
    cuts: tuple[int, int, int, int]
    units: tuple[int, int, int, int]
    along: tuple[int, ...] = ()
    leader: int | None = None

    @property
    def shares(self) -> tuple[Grid, tuple[int, int, int, int], tuple[int, ...]]:
        """What the shares and their engines follow from."""
        return self.grid, self.units, self.along

    def engines(self, width: int) -> Int64s:
        """The engine of every group, shape as of the grid's groups, on a machine so many engines wide."""
        if not self.along:
            return self.grid.engines(width)
        return np.array(self.along, dtype=np.int64)[self.grid.engines(len(self.along))]

    def borders(self, operator: Operator) -> tuple[tuple[int, ...], ...]:
        """Borders of shares along channels, rows, columns and the sum; empty shares repeat them."""
        shape = shape_of(operator)
        return tuple(map(_borders, map(shape.extent, shape.laid), self.grid.groups, self.units))

    def tiles(self, operator: Operator) -> list[Tiles]:
        """The tiles of shares along channels, rows, columns and the sum, each as of `tiles_of`."""
        units = _tile_units(shape_of(operator), self.units)
        return [tiles_of(*along) for along in zip(self.borders(operator), self.cuts, units, strict=True)]


Layouts = tuple[Layout, ...]
"""Those of all layers."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Layouts of one layer and their estimates, one entry per layout.

    Parameters
    ----------
    layouts : each a grid with cuts
    cycles : that the busiest engine computes for one sample, and hands over
    weights, inputs : bytes of weights and of other operands that one engine is sent
    energy : pJ of weights that are sent and read, and of unfinished sums
    place : of the grid among those for a price of a cycle, 0 for the best, where it is best
    """

    layouts: tuple[Layout, ...]
    cycles: Floats
    weights: Floats
    inputs: Floats
    energy: Floats
    place: Int64s

    def beside(self, others: Candidates) -> Candidates:
        """These and others."""
        return Candidates(
            self.layouts + others.layouts,
            np.concatenate([self.cycles, others.cycles]),
            np.concatenate([self.weights, others.weights]),
            np.concatenate([self.inputs, others.inputs]),
            np.concatenate([self.energy, others.energy]),
            np.concatenate([self.place, others.place]),
        )

    def fewer(self, places: int) -> Candidates:
        """Those of so many places."""
        return self.some(np.flatnonzero(self.place < places))

    def some(self, which: Int64s) -> Candidates:
        """Some of the layouts, by their numbers."""
        return Candidates(
            tuple(self.layouts[at] for at in which.tolist()),
            self.cycles[which],
            self.weights[which],
            self.inputs[which],
            self.energy[which],
            self.place[which],
        )


def cut_menu(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Parts into which an engine may cut its share along the axes of `Shape.laid`."""
    return WINDOW_CUTS if shape.is_window else CUTS


def candidates(
    problem: TiledProblem,
    unit: Unit,
    *,
    room: float,
    prices: Sequence[float],
    most: int,
    atoms: int,
    near: Sequence[Grid] = (),
) -> Candidates:
    """The layouts of a layer that are best for any of some prices of a cycle.

    Parameters
    ----------
    room : part of the buffer that an atom may need
    prices : pJ that a cycle is worth; the cuts suit the first
    most : layouts for each price
    atoms : of an engine's share at most
    near : grids of the map that a pool reads, which its window may have, too

    Returns
    -------
    No layouts where none fits.
    """
    full = problem.machine.engine.columns * problem.machine.engine.lanes
    offers = _of_pieces(problem, unit, full, room, prices, most, atoms, near)
    if offers.layouts and unit.layer.operator.is_mac:
        return offers
    # vector units are as fast on single channels, and a pool over a large map may fit for these alone
    return offers.beside(_of_pieces(problem, unit, 1, room, prices, most, atoms, near))


def _of_pieces(
    problem: TiledProblem,
    unit: Unit,
    channels: int,
    room: float,
    prices: Sequence[float],
    most: int,
    atoms: int,
    near: Sequence[Grid],
) -> Candidates:
    """As `candidates`, of shares of so many channels or of multiples."""
    machine, operator = problem.machine, unit.layer.operator
    units = smallest_pieces(operator, machine, channels)
    shape = shape_of(operator)
    pieces = [-(-shape.extent(axis) // piece) for axis, piece in zip(shape.laid, units, strict=True)]
    if shape.is_window:
        made, groups, trees, links = _window_ways(machine, shape, pieces, near)
    else:
        made, groups, trees, links = _ways(machine, *pieces)
    every, which = _distinct(groups)
    shares = Shares(problem, unit, units, every, room, prices[0], atoms)
    engine, batch = machine.engine, problem.batch
    sent = shares.weights[which] * every[which, 0] * every[which, 3]
    sent *= engine.buffer_write_energy * every[which, 1:3].prod(axis=1) + machine.hop_energy * trees
    passed = engine.buffer_read_energy + engine.buffer_write_energy + machine.hop_energy * links
    sent += batch * shares.passed[which] * passed
    copies = batch * shares.again[which] * (engine.buffer_write_energy + machine.hop_energy)
    cycles, inside = shares.cycles[which], shares.inside[which]
    # one row per grid, one column per kind of cuts
    possible = cycles < inf
    taken = np.where(possible, np.maximum(cycles, shares.weights[which][:, None] / machine.port_rate), 0.0)
    kept: dict[int, int] = {}
    parts = every[which][:, shape.summed].prod(axis=1)
    # a pool may have all grids of what it reads: the ways of that choose
    kinds = [(parts == 1, most), (parts > 1, most // 2 if operator.is_mac else max(1, len(near)))]
    for price in prices:
        rank = np.where(possible, batch * inside + price * taken, inf).min(axis=1) + sent + copies
        for kind, count in kinds:
            ranked = np.flatnonzero(kind)[np.argsort(rank[kind], kind="stable")]
            for at_place, i in enumerate(ranked[:count].tolist()):
                kept[i] = min(kept.get(i, most), at_place * most // count)
    layouts, rows_of, columns_of = [], [], []
    for i in kept:
        grid = grid_of(made[i])
        for kind in np.flatnonzero(possible[i]).tolist():
            layouts.append(Layout(grid, tuple(shares.cuts[which[i], kind].tolist()), units))
            rows_of.append(i)
            columns_of.append(kind)
    at = np.array(rows_of, dtype=np.int64), np.array(columns_of, dtype=np.int64)
    energy = batch * inside[at] + sent[at[0]]
    share = which[at[0]]
    place = np.array([kept[i] for i in rows_of], dtype=np.int64)
    return Candidates(tuple(layouts), cycles[at], shares.weights[share], shares.inputs[share], energy, place)


def _distinct(groups: Int64s) -> tuple[Int64s, Int64s]:
    """Different rows in ascending order, and which of them every row is."""
    base = groups.max(axis=0) + 1
    key = np.ravel_multi_index(tuple(groups.T), tuple(base))
    distinct, which = np.unique(key, return_inverse=True)
    return np.stack(np.unravel_index(distinct, tuple(base)), axis=1), which


class Shares:
    """Shares of a layer by the numbers of groups, with the best cuts.

    Parameters
    ----------
    problem, unit : the layer
    units : smallest pieces along every axis of a tiling
    groups : of channels, rows, columns and the sum, shape (shares, 4)
    room : part of the buffer that an atom may need
    price : pJ that a cycle is worth
    atoms : of a share at most

    Attributes
    ----------
    cuts : the best ones of each of `KINDS`, shape (shares, `KINDS`, 4)
    cycles, inside : that an engine takes for its share, infinite where no cuts fit; and pJ of unfinished
        sums and of weights that every atom reads, shape (shares, `KINDS`)
    weights, inputs : bytes of a share's weights and of its other operands
    again : bytes of inputs that engines are sent beyond one copy of all
    passed : bytes of unfinished sums that engines pass on
    """

    def __init__(
        self,
        problem: TiledProblem,
        unit: Unit,
        units: tuple[int, int, int, int],
        groups: Int64s,
        room: float,
        price: float,
        atoms: int,
    ) -> None:
        machine, shape = problem.machine, shape_of(unit.layer.operator)
        port = machine.port_rate
        sizes = tuple(map(shape.extent, shape.laid))
        most = FINER * atoms if shape.is_window else atoms
        cuts = np.array([cut for cut in product(*cut_menu(shape)) if prod(cut) <= most], dtype=np.int64)
        tiles = []
        # few shares and cuts differ along an axis, so that sizes are told apart in small tables
        cut_of, share_of = np.empty_like(cuts), np.empty_like(groups)
        tables = np.zeros((4, len(groups), len(cuts)), dtype=np.int64)
        filled = np.ones(tables.shape)
        fine = _tile_units(shape, units)
        for axis, (size, share_piece, piece) in enumerate(zip(sizes, units, fine, strict=True)):
            pieces = -(-size // share_piece)
            largest_shares = -(-pieces // groups[:, axis]) * (share_piece // piece)
            shares, share_of[:, axis] = np.unique(largest_shares, return_inverse=True)
            kinds, cut_of[:, axis] = np.unique(cuts[:, axis], return_inverse=True)
            largest = -(-shares[:, None] // kinds)
            tile = np.minimum(size, piece * largest)
            values, number = np.unique(tile, return_inverse=True)
            tiles.append(values.tolist())
            tables[axis, : len(shares), : len(kinds)] = number.reshape(tile.shape)
            filled[axis, : len(shares), : len(kinds)] = shares[:, None] / (kinds * largest)
        late = sum(read.late for read in unit.reads)
        menu = tile_menu(
            unit.layer.operator, machine.engine, unit.layer.stored_weights, late, (*tiles,), shape.laid
        )
        counts = np.array([len(values) for values in tiles], dtype=np.int64)
        engine = machine.engine
        whole, best, busy, inside = best_cuts(
            groups,
            cuts,
            share_of,
            cut_of,
            tables,
            filled,
            counts,
            (menu.sizes, menu.cycles, menu.fetch, menu.weights, menu.need),
            room * engine.buffer_bytes,
            np.array(shape.summed),
            problem.partial_sums == "chain" and unit.layer.operator.is_mac,
            shape.is_window,
            np.array(
                [
                    port,
                    machine.dram_rate if reads_outside(unit) else inf,
                    price,
                    engine.buffer_read_energy,
                    engine.buffer_write_energy,
                ]
            ),
        )
        inputs, results = menu.fetch[whole], menu.sizes[whole][:, [0, 1, 3]].prod(axis=1)
        self.cuts = cuts[best]
        self.cycles, self.inside = busy, inside
        self.weights = menu.weights[whole].astype(np.float64)
        chain = groups[:, shape.summed].prod(axis=1)
        sums = groups.prod(axis=1) // chain * (chain - 1)
        self.passed = (results * SUM_BYTES * sums).astype(np.float64)
        self.inputs = (inputs - menu.weights[whole]).astype(np.float64)
        shared = self.inputs * groups.prod(axis=1)
        self.again = np.maximum(0.0, shared - float((menu.fetch - menu.weights).max()))


def reads_outside(unit: Unit) -> bool:
    """Whether a layer waits for an operand from outside of the network."""
    return any(read.producer is None for read in unit.reads)


def smallest_pieces(operator: Operator, machine: TiledMachine, channels: int) -> tuple[int, int, int, int]:
    """Smallest pieces along every axis of a tiling: so many channels, or whole runs."""
    shape = shape_of(operator)
    units = []
    for axis, smallest in zip(shape.laid[:3], (channels, 1, 1), strict=True):
        run, size = inner_run(operator, axis), shape.extent(axis)
        plain = run in (1, size) or smallest % run == 0
        units.append(min(size, smallest if plain else run))
    together = machine.engine.rows * machine.engine.lanes if operator.is_mac else 1
    return units[0], units[1], units[2], min(shape.extent(shape.laid[3]), together)


@lru_cache(maxsize=256)
def _ways(
    machine: TiledMachine, blocks: int, rows: int, columns: int, parts: int
) -> tuple[Int64s, Int64s, Floats, Floats]:
    """The grids of a layer as of `sides`, their groups, shape (grids, 4), links of the multicast of a group's
    weights from the nearest port, and from one engine of a sum to the next, on average over the groups.
    """
    made = grids(machine.width, machine.height, blocks, rows, columns, parts)
    ports = np.array(machine.dram_ports, dtype=np.int64).reshape(-1, 2)
    trees, links = ways(made, machine.width, machine.height, ports)
    k, h, w, ky, hy, p, py = made[:, :7].T
    return made, np.stack([k * ky, h * hy, w, p * py], axis=1), trees, links


def _window_ways(
    machine: TiledMachine, shape: Shape, pieces: Sequence[int], near: Sequence[Grid]
) -> tuple[Int64s, Int64s, Floats, Floats]:
    """As `_ways`, of a pool whose window is whole, or divided as the map that it reads, on grids of that.

    There are no weights; links are those between two engines that share a window, on average over all pairs.
    Of n in a row they are `(n - 1/n) / 3`; along the zig-zag no more than between any two of the machine.
    """
    blocks, rows, columns, _ = pieces
    own, groups, _, _ = _ways(machine, blocks, 1, 1 if shape.summed[2] else columns, 1)
    shared = [
        grid
        for grid in near
        if grid.groups[1] * (grid.groups[2] if shape.summed[2] else 1) > 1
        and grid.groups[3] == 1
        and grid.groups[0] <= SPARE * blocks
        and grid.groups[1] <= rows
        and grid.groups[2] <= columns
    ]
    made = np.concatenate([own, sides(shared)])
    groups = np.concatenate([groups, np.array([grid.groups for grid in shared]).reshape(-1, 4)])
    k, h, w, ky, hy = made[:, :5].T
    inside, across, down = made[:, 7] == 1, h * w, hy
    links = np.where(inside, k, 1) * (across - 1 / across) + np.where(inside, ky, 1) * (down - 1 / down)
    links = np.minimum(links, machine.width + machine.height) / 3
    return made, groups.astype(np.int64), np.zeros(len(made)), links


def tiling_of(
    operator: Operator, layout: Layout, batch: int
) -> tuple[Tiling, tuple[Int64s, ...], tuple[Int64s, ...]]:
    """The borders of a layout's atoms; per axis of the tiling every tile's group, and its number in that."""
    cut = dict(zip(shape_of(operator).laid, layout.tiles(operator), strict=True))
    every = [cut.get(axis, WHOLE) for axis in range(5)]
    channels, rows, columns, parts, across = (tiles for tiles, _, _ in every)
    tiling = Tiling(
        tuple(range(batch + 1)), channels, rows, columns, parts, across if len(across) > 2 else ()
    )
    group, number = (tuple(np.array(along[i], dtype=np.int64) for along in every) for i in (1, 2))
    return tiling, group, number


@lru_cache(maxsize=4096)
def tiles_of(borders: tuple[int, ...], cut: int, unit: int) -> Tiles:
    """Borders of the tiles of shares along an axis, the share of each, and its number within it.

    Parameters
    ----------
    borders : of the shares
    cut : into how many tiles each is cut at most
    unit : smallest pieces
    """
    tiles, groups, numbers = [0], list[int](), list[int]()
    for i, (low, high) in enumerate(pairwise(borders)):
        for n in range(cut):
            end = min(high, low + unit * (-(-(high - low) // unit) * (n + 1) // cut))
            if end > tiles[-1]:
                tiles.append(end)
                groups.append(i)
                numbers.append(n)
    return tuple(tiles), tuple(groups), tuple(numbers)
