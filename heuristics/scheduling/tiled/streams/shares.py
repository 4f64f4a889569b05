"""Streams: layers that are read channel by channel run tile by tile, each stream on as many engines as pay.

A *stream* is a run of layers of which each reads the one before it channel by channel, as what expands,
normalises, scales, and moves windows over its channels do.  It is cut into tiles of channels, and each tile
passes all layers of the stream before the next one begins, so that wide results never lie in buffers as a
whole.  Engines have *bands* of samples, rows and columns, and engines that share a band have *groups* of
channels.  A first plan has as few bands as hold what lives beside each stream.  Then the numbers of bands and
groups are changed as long as that lowers the objective, many streams in one plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.coordinates import CHANNEL, COLUMN, ROW, inner_run, shape_of
from tilewright.formulation.scheduling.tiled.dag import WEIGHTS, AtomicDag
from tilewright.formulation.scheduling.tiled.memo import Memo
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.reading import axes_along, made_by
from tilewright.formulation.scheduling.tiled.tiling import Borders, Tiling
from tilewright.formulation.scheduling.tiled.trips import whole_tiling
from tilewright.foundation.arrays import Int32s, Int64s
from tilewright.heuristics.scheduling.tiled.coarsening import affordable
from tilewright.heuristics.scheduling.tiled.lists import grid_of_engines, to_and_fro

FEW = 16
"""Bands of a stream in the first plan, at most, where a buffer takes its atoms."""

FILLED, ALIVE, ATOM, FULL = 1 / 3, 0.75, 0.5, 0.9
"""Parts of a buffer: for a tile of channels, for results that live beside a stream, for an atom of a pool,
and for one of weights with its inputs."""

NARROW, WIDE = 16, 64
"""Channels of a tile, at least and at most."""

TURNS = 16
"""Atoms of a tile that run on one engine in turn, at most, where no larger ones fit."""


@dataclass(frozen=True)
class Share:
    """How a stream is shared out.

    Parameters
    ----------
    bands : of samples, then rows, then columns
    groups : of tiles of channels, each on an engine of its own in every band
    finer : the power of two by which tiles are more than a buffer asks for
    """

    bands: int
    groups: int = 1
    finer: int = 0


Shares = tuple[Share, ...]


def even(size: int, count: int, run: int | None = None) -> Borders:
    """Borders of at most so many shares that are as equal as they can be.

    Parameters
    ----------
    run : results of the innermost loop along the axis: shares are whole runs, or lie within one
    """
    inner = size if run is None or size % run else run
    runs = size // inner
    if count <= runs:
        return tuple(inner * cut for cut in sorted({-(-runs * at // count) for at in range(count + 1)}))
    count //= runs
    within = {-(-inner * at // count) for at in range(count + 1)}
    return tuple(sorted({first + cut for first in range(0, size, inner) for cut in within}))


@dataclass(frozen=True, eq=False)
class _Laid:
    """Where and when the atoms of a stream run.

    Parameters
    ----------
    tilings : per layer
    engine, step, run : per layer, of its atoms; steps count from the first one of a run of samples
    steps : of the stream in one run
    """

    tilings: list[Tiling]
    engine: list[Int32s]
    step: list[Int64s]
    run: list[Int64s]
    steps: int


_LAID: Memo[_Laid] = Memo(lambda laid: 3 * sum(len(engine) for engine in laid.engine))


class Streams:
    """The streams of a problem.

    Parameters
    ----------
    problem : a network on a machine
    limits : of what is asked of whole layers
    samples : that pass all streams together; by default the whole batch
    """

    def __init__(
        self, problem: TiledProblem, limits: Limits | None = None, samples: int | None = None
    ) -> None:
        self.problem = problem
        self.samples = problem.batch if samples is None else samples
        self._along = to_and_fro(grid_of_engines(problem.machine).T)  # from the first column on
        whole = problem.unchecked_dag(
            [whole_tiling(unit.layer.operator, self.samples) for unit in problem.units],
            limits,
            samples=self.samples,
        )
        self._shapes = [shape_of(unit.layer.operator) for unit in problem.units]
        self._results = [int(size) for size in whole.block_bytes[: len(problem.units)]]
        read = [whole.reads_of(unit) for unit in range(len(problem.units))]
        stored = [whole.block_kind[blocks] == WEIGHTS for blocks in read]
        sizes = [whole.block_bytes[blocks] for blocks in read]
        self._weights = [int(size[mine].sum()) for size, mine in zip(sizes, stored, strict=True)]
        self._inputs = [int(size[~mine].sum()) for size, mine in zip(sizes, stored, strict=True)]
        self.streams: list[range] = []
        for unit in range(len(problem.units)):
            if self._follows(unit):
                self.streams[-1] = range(self.streams[-1].start, unit + 1)
            else:
                self.streams.append(range(unit, unit + 1))

    def _follows(self, unit: int) -> bool:
        """Whether a layer reads the one before it channel by channel."""
        if unit == 0 or self._shapes[unit].sizes[CHANNEL] != self._shapes[unit - 1].sizes[CHANNEL]:
            return False
        if self._run(unit) != self._run(unit - 1):
            return False
        for read in self.problem.units[unit].reads:
            if read.producer == unit - 1 and not read.late:
                origin = made_by(self.problem.units[unit - 1], read.link, ((), (), (), ()))
                along = axes_along(read.layer.operator, read.operand, origin)
                return along is not None and not along[1] and along[0][CHANNEL].depends == (CHANNEL,)
        return False

    def _run(self, unit: int, axis: int = CHANNEL) -> int:
        """Results of a layer that no share along an axis may hold in part with others beside them."""
        run, size = inner_run(self.problem.units[unit].layer.operator, axis), self._shapes[unit].sizes[axis]
        return size if run == 1 else run

    @cached_property
    def most(self) -> Shares:
        """Per stream, the most bands and groups that it can be cut into."""
        extents = [self._extent(stream) for stream in self.streams]
        return tuple(Share(self.samples * rows * columns, channels) for channels, rows, columns in extents)

    def _extent(self, stream: range) -> tuple[int, ...]:
        """Channels, rows and columns of a stream, the most of its layers."""
        sizes = [self._shapes[unit].sizes for unit in stream]
        return tuple(max(along) for along in zip(*sizes, strict=True))

    def fewest(self, limits: Limits | None = None) -> Shares:
        """Per stream, as few bands as have buffers that hold what lives beside it, and take its atoms.

        Raises
        ------
        InputError : for a layer of which no atom fits a buffer
        LimitReachedError : where limits strike on the way
        """
        last = list(range(len(self._results)))
        for unit, layer in enumerate(self.problem.units):
            for read in layer.reads:
                if read.producer is not None:
                    last[read.producer] = unit
        room = int(ALIVE * self.problem.machine.engine.buffer_bytes)
        bands = []
        for stream in self.streams:
            first, end = stream[0], stream[-1]
            living = [unit for unit in range(end + 1) if last[unit] > end or unit < first <= last[unit]]
            alive = sum(self._results[unit] for unit in living)
            if all(read.producer is None for read in self.problem.units[first].reads):
                alive += self._inputs[first]
            bands.append(min(FEW, max(1, -(-alive // max(1, room)))))
        return self.fitting(bands, limits)

    def fitting(self, bands: Sequence[int], limits: Limits | None = None) -> Shares:
        """Shares of so many bands, with more of them where atoms fit no buffer.

        Raises
        ------
        InputError : for a layer of which no atom fits a buffer
        LimitReachedError : where limits strike on the way
        """
        while True:
            shares = tuple(self._shared(at, count) for at, count in enumerate(bands))
            tight = {at for at in self._crowded(shares, limits) if bands[at] < self._most(at)}
            if not tight:
                self.problem.dag(self.tilings(shares), limits)
                return shares
            bands = [count + (at in tight) * max(1, count // 4) for at, count in enumerate(bands)]

    def _most(self, at: int) -> int:
        """Engines' shares that a stream is cut into at most."""
        most = self.most[at]
        return min(most.bands * most.groups, TURNS * len(self._along))

    def _crowded(self, shares: Shares, limits: Limits | None) -> set[int]:
        """Streams of which an atom fits no buffer."""
        dag = self._dag(shares, limits)
        of = np.repeat(np.arange(len(self.streams)), [len(stream) for stream in self.streams])
        large = dag.needs > self.problem.machine.engine.buffer_bytes
        return {int(at) for at in of[dag.unit[large]]}

    def _dag(self, shares: Shares, limits: Limits | None) -> AtomicDag:
        """Atoms, some of which may need more than a buffer has.

        Raises
        ------
        LimitReachedError : where they are too many for the time, or limits strike on the way
        """
        tilings, most = self.tilings(shares), affordable(limits)
        atoms = sum(
            math.prod(len(cut) - 1 for cut in (tiling.samples, *tiling.axes[:3])) for tiling in tilings
        )
        if atoms > most:
            raise LimitReachedError(
                f"{atoms:,} atoms of streams: too many for a plan in the time that is left"
            )
        return self.problem.unchecked_dag(tilings, limits)

    def _shared(self, at: int, bands: int) -> Share:
        """A stream on so many engines: bands, or, for a layer with many weights, groups of channels too, so
        that weights need no copies.
        """
        stream, room = self.streams[at], self.problem.machine.engine.buffer_bytes
        first, most = stream[0], self.most[at]
        weights, inputs = self._weights[first], self._inputs[first]
        if len(stream) > 1 or most.groups == 1 or weights <= inputs + self._results[first]:
            return Share(min(bands, most.bands))
        rest = FULL * room - NARROW * weights / most.groups
        rows = min(bands, max(-(-inputs // max(1, int(rest))), -(-bands // most.groups)), most.bands)
        return Share(rows, max(1, min(bands // rows, most.groups)))

    def tilings(self, shares: Shares) -> list[Tiling]:
        """Per layer."""
        return [tiling for at, share in enumerate(shares) for tiling in self._lay(at, share).tilings]

    def arranged(self, shares: Shares, limits: Limits | None = None) -> tuple[AtomicDag, Int32s, Int64s]:
        """Atoms, and an engine and a step for each.

        Raises
        ------
        InputError : where an atom fits no buffer
        LimitReachedError : where limits strike on the way
        """
        dag = self.problem.dag(self.tilings(shares), limits)
        laid = [self._lay(at, share) for at, share in enumerate(shares)]
        total, first = sum(stream.steps for stream in laid), 0
        engines, steps = [], []
        for stream in laid:
            engines += stream.engine
            steps += [run * total + first + step for run, step in zip(stream.run, stream.step, strict=True)]
            first += stream.steps
        return dag, np.concatenate(engines), np.concatenate(steps)

    def legal(self, at: int, share: Share, before: Share) -> Share:
        """A stream's share; the one before where it is no share, or needs more engines than there are."""
        most = self.most[at]
        possible = 1 <= share.bands <= most.bands and 1 <= share.groups <= most.groups
        return share if possible and share.bands * share.groups <= len(self._along) else before

    def without_crowded(self, shares: Shares, before: Shares, limits: Limits | None = None) -> Shares:
        """Shares, or those before where an atom fits no buffer."""
        crowded = self._crowded(shares, limits)
        return tuple(
            old if at in crowded else new for at, (new, old) in enumerate(zip(shares, before, strict=True))
        )

    def _lay(self, at: int, share: Share) -> _Laid:
        """How the layers of a stream are cut, and where and when their atoms run."""
        return _LAID.recall(self, (at, share), partial(self._laid_out, self.streams[at], share))

    def _laid_out(self, stream: range, share: Share) -> _Laid:
        tiles, cuts = self._cuts(stream, share)
        groups, count, engines = share.groups, len(tiles) - 1, len(self._along)
        starts = np.array(tiles[:-1], dtype=np.int64)
        keys, places, runs = [], [], []
        together, high, wide = self._bands(stream, share)
        waves = 1 + (together * high * wide * groups - 1) // engines
        for position, tiling in enumerate(cuts):
            axes = (tiling.samples, *tiling.axes[:3])
            sample, piece, row, column = np.ix_(*(np.arange(len(cut) - 1) for cut in axes))
            channel = np.array(tiling.channels[:-1], dtype=np.int64)[piece]
            tile = np.searchsorted(starts, channel, side="right") - 1
            group = tile * groups // count
            heights, widths = len(tiling.rows) - 1, len(tiling.columns) - 1
            if position and together * heights * widths == 1:
                band = piece % share.bands + 0 * sample
            else:
                band = (sample % together * heights + row) * widths + column
            place, turn = band * groups + group, tile - -(-group * count // groups)
            key = (turn * len(cuts) + position) * waves + place // engines
            key = key * (tiles[-1] + 1) + channel - starts[tile]
            shape = np.broadcast_shapes(place.shape, key.shape, row.shape, column.shape, sample.shape)
            keys.append(np.broadcast_to(key, shape).ravel())
            places.append(np.broadcast_to(self._along[place % engines], shape).ravel())
            runs.append(np.broadcast_to(sample // together, shape).ravel())
        values, steps = np.unique(np.concatenate(keys), return_inverse=True)
        ends = np.cumsum([len(key) for key in keys])[:-1]
        return _Laid(cuts, places, np.split(steps, ends), runs, len(values))

    def _bands(self, stream: range, share: Share) -> tuple[int, int, int]:
        """Bands of samples, of rows and of columns."""
        _, rows, columns = self._extent(stream)
        samples = min(self.samples, share.bands)
        high = min(rows, -(-share.bands // samples))
        return samples, high, min(columns, -(-share.bands // (samples * high)))

    def _cuts(self, stream: range, share: Share) -> tuple[Borders, list[Tiling]]:
        """Borders of a stream's tiles of channels, and how its layers are cut."""
        room, batch = self.problem.machine.engine.buffer_bytes, self.problem.batch
        channels = self._shapes[stream[0]].sizes[CHANNEL]
        samples, high, wide = self._bands(stream, share)
        sizes = [self._shapes[unit].sizes for unit in stream]
        bands = [samples * min(high, size[ROW]) * min(wide, size[COLUMN]) for size in sizes]
        held = [
            (self._weights[unit] + min(len(stream), 2) * self._results[unit] / count) / channels
            for unit, count in zip(stream, bands, strict=True)
        ]
        # the array's columns are full where as many channels fit
        fits = int(FULL * room / max(*held, 1.0))
        width = max(min(NARROW, fits), int(FILLED * room / max(*held, 1.0)) // NARROW * NARROW, 1)
        count = -(-channels // min(WIDE, width, -(-channels // share.groups)))
        count = min(channels, max(1, math.ceil(count * 2.0**share.finer)))
        run = self._run(stream[0])
        tiles = even(channels, -(-count // share.groups) * share.groups, run)
        runs = pairwise([*range(0, batch, self.samples), batch])
        cut = sorted({low + at for low, end in runs for at in even(end - low, samples)})
        made = []
        for position, (unit, size, pieces) in enumerate(zip(stream, sizes, bands, strict=True)):
            need = (self._inputs[unit] + self._results[unit]) / pieces / (len(tiles) - 1)
            parts = -(-int(need) // int(ATOM * room)) if position and need > ATOM * room else 1
            inner = {low + part for low, end in pairwise(tiles) for part in even(end - low, parts, run)}
            made.append(
                Tiling(
                    tuple(cut),
                    tuple(sorted(inner)),
                    even(size[ROW], min(high, size[ROW]), self._run(unit, ROW)),
                    even(size[COLUMN], min(wide, size[COLUMN]), self._run(unit, COLUMN)),
                    (0, self._shapes[unit].parts),
                )
            )
        return tiles, made
