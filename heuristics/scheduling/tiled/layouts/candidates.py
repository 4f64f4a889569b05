"""Candidates: grids of one layer with cuts of every engine's share, and what they are estimated to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import inf, prod

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import inner_run, shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.tiling import Tiling
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.arrays import Floats, Int64s, distinct
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.layouts.cuts_kernel import best_cuts
from tilewright.heuristics.scheduling.tiled.layouts.grids import Grid, grid_of, grids, shared
from tilewright.heuristics.scheduling.tiled.layouts.ways_kernel import ways
from tilewright.heuristics.scheduling.tiled.size_menus import SUM_BYTES, tile_menu
from tilewright.workloads.mapping.operator import Operator

CUTS = ((1, 2, 4), (1, 2, 3, 4, 7, 8), (1, 2, 4), (1, 2, 4, 8, 16))
"""Parts into which an engine cuts its share along channels, rows, columns and the sum over inputs."""


Tiles = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Borders of the tiles along an axis, the share that each is of, and its number within that."""


@lru_cache(maxsize=4096)
def _borders(size: int, groups: int, unit: int) -> tuple[int, ...]:
    """Borders of shares along an axis."""
    return tuple(min(size, unit * at) for at in shared(-(-size // unit), groups))


@dataclass(frozen=True, slots=True)
class Layout:
    """How a layer is laid out.

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
        sizes = (*shape.sizes, shape.parts)
        return tuple(map(_borders, sizes, self.grid.groups, self.units))

    def tiles(self, operator: Operator) -> list[Tiles]:
        """The tiles of shares along channels, rows, columns and the sum, each as of `tiles_of`."""
        return [tiles_of(*along) for along in zip(self.borders(operator), self.cuts, self.units, strict=True)]


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
        kept = np.flatnonzero(self.place < places)
        return Candidates(
            tuple(self.layouts[at] for at in kept.tolist()),
            self.cycles[kept],
            self.weights[kept],
            self.inputs[kept],
            self.energy[kept],
            self.place[kept],
        )


def candidates(
    problem: TiledProblem, unit: Unit, *, room: float, prices: Sequence[float], most: int, atoms: int
) -> Candidates:
    """The layouts of a layer that are best for any of some prices of a cycle.

    Parameters
    ----------
    room : part of the buffer that an atom may need
    prices : pJ that a cycle is worth; the cuts suit the first
    most : layouts for each price
    atoms : of an engine's share at most

    Returns
    -------
    No layouts where none fits.
    """
    full = problem.machine.engine.columns * problem.machine.engine.lanes
    offers = _of_pieces(problem, unit, full, room, prices, most, atoms)
    if offers.layouts and unit.layer.operator.is_mac:
        return offers
    # vector units are as fast on single channels, and a pool over a large map may fit for these alone
    return offers.beside(_of_pieces(problem, unit, 1, room, prices, most, atoms))


def _of_pieces(
    problem: TiledProblem,
    unit: Unit,
    channels: int,
    room: float,
    prices: Sequence[float],
    most: int,
    atoms: int,
) -> Candidates:
    """As `candidates`, of shares of so many channels or of multiples."""
    machine, operator = problem.machine, unit.layer.operator
    units = smallest_pieces(operator, machine, channels)
    shape = shape_of(operator)
    sizes = (*shape.sizes, shape.parts)
    pieces = [-(-size // unit) for size, unit in zip(sizes, units, strict=True)]
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
    parts = every[which, 3]
    kinds = [(parts == 1, most)]
    if operator.is_mac:
        kinds.append((parts > 1, most // 2))
    else:  # windows are divided for the ways of what they read, which choose how
        kinds += [(parts == n, most // 4) for n in distinct(every[:, 3]).tolist() if n > 1]
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
    cuts : the best ones without cuts of pixels and sums, with cuts of pixels, and with cuts of sums, shape
        (shares, 3, 4)
    cycles, inside : that an engine takes for its share, infinite where no cuts fit; and pJ of unfinished
        sums and of weights that every atom reads, shape (shares, 3)
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
        sizes = (*shape.sizes, shape.parts)
        cuts = np.array([cut for cut in product(*CUTS) if prod(cut) <= atoms], dtype=np.int64)
        tiles = []
        # few shares and cuts differ along an axis, so that sizes are told apart in small tables
        cut_of, share_of = np.empty_like(cuts), np.empty_like(groups)
        tables = np.zeros((4, len(groups), len(cuts)), dtype=np.int64)
        filled = np.ones(tables.shape)
        for axis, (size, piece) in enumerate(zip(sizes, units, strict=True)):
            pieces = -(-size // piece)
            shares, share_of[:, axis] = np.unique(-(-pieces // groups[:, axis]), return_inverse=True)
            kinds, cut_of[:, axis] = np.unique(cuts[:, axis], return_inverse=True)
            largest = -(-shares[:, None] // kinds)
            tile = np.minimum(size, piece * largest)
            values, number = np.unique(tile, return_inverse=True)
            tiles.append(values.tolist())
            tables[axis, : len(shares), : len(kinds)] = number.reshape(tile.shape)
            filled[axis, : len(shares), : len(kinds)] = shares[:, None] / (kinds * largest)
        late = sum(read.late for read in unit.reads)
        menu = tile_menu(unit.layer.operator, machine.engine, unit.layer.stored_weights, late, (*tiles,))
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
            problem.partial_sums == "chain" and unit.layer.operator.is_mac,
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
        self.passed = (results * SUM_BYTES * groups[:, :3].prod(axis=1) * (groups[:, 3] - 1)).astype(
            np.float64
        )
        self.inputs = (inputs - menu.weights[whole]).astype(np.float64)
        shared = self.inputs * groups.prod(axis=1)
        self.again = np.maximum(0.0, shared - float((menu.fetch - menu.weights).max()))


def reads_outside(unit: Unit) -> bool:
    """Whether a layer waits for an operand from outside of the network."""
    return any(read.producer is None for read in unit.reads)


def smallest_pieces(operator: Operator, machine: TiledMachine, channels: int) -> tuple[int, int, int, int]:
    """Smallest pieces along every axis of a tiling: so many channels, or whole runs."""
    sizes = shape_of(operator).sizes
    units = []
    for axis, smallest in enumerate((channels, 1, 1)):
        run = inner_run(operator, axis)
        plain = run in (1, sizes[axis]) or smallest % run == 0
        units.append(min(sizes[axis], smallest if plain else run))
    parts = shape_of(operator).parts
    together = machine.engine.rows * machine.engine.lanes if operator.is_mac else 1
    return units[0], units[1], units[2], min(parts, together)


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


def tiling_of(
    operator: Operator, layout: Layout, batch: int
) -> tuple[Tiling, tuple[Int64s, ...], tuple[Int64s, ...]]:
    """The borders of a layout's atoms; per axis the group of every tile, and its number within the group."""
    cut = layout.tiles(operator)
    channels, rows, columns, parts = (tiles for tiles, _, _ in cut)
    tiling = Tiling(tuple(range(batch + 1)), channels, rows, columns, parts)
    group, number = (tuple(np.array(along[i], dtype=np.int64) for along in cut) for i in (1, 2))
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
