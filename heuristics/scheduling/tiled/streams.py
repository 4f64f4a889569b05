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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.coordinates import CHANNEL, shape_of
from tilewright.formulation.scheduling.tiled.dag import WEIGHTS, AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.reading import axes_along, made_by
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.formulation.scheduling.tiled.tiling import Borders, Tiling
from tilewright.formulation.scheduling.tiled.trips import whole_tiling
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.errors import InputError
from tilewright.foundation.options import option
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.layouts.accounts import layer_accounts, layers_beside, more_taken
from tilewright.heuristics.scheduling.tiled.planning import PlanHeuristic
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.stages import Stages

FEW = 16
"""Bands of a stream in the first plan, at most, where a buffer takes its atoms."""

FILLED, ALIVE, ATOM, FULL = 1 / 3, 0.75, 0.5, 0.9
"""Parts of a buffer: for a tile of channels, for results that live beside a stream, for an atom of a pool,
and for one of weights with its inputs."""

NARROW, WIDE = 16, 64
"""Channels of a tile, at least and at most."""

TURNS = 16
"""Atoms of a tile that run on one engine in turn, at most, where no larger ones fit."""

AHEAD = 8
"""Steps before its use in which data may arrive where cycles count."""

MARGIN = 1e-7
"""Part of the objective by which a change must gain to be kept from a plan of several."""

APART = 3
"""Every so many streams are changed in one plan."""


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

_CHANGES: tuple[Callable[[Share], Share], ...] = (
    *(lambda share, by=by: replace(share, bands=share.bands + by) for by in (-1, 1, -2, 2, 4, -4)),
    *(lambda share, by=by: replace(share, groups=share.groups + by) for by in (-1, 1, -2, 2)),
    lambda share: replace(share, bands=2 * share.bands),
    lambda share: replace(share, groups=2 * share.groups),
    lambda share: replace(share, bands=share.bands // 2),
    lambda share: replace(share, groups=share.groups // 2),
    lambda share: replace(share, bands=2 * share.bands, groups=share.groups // 2),
    lambda share: replace(share, bands=share.bands // 2, groups=2 * share.groups),
    lambda share: replace(share, finer=share.finer + 1),
    lambda share: replace(share, finer=share.finer - 1),
)
"""Changes of a share that are tried."""


def even(size: int, count: int) -> Borders:
    """Borders of so many shares that are as equal as they can be."""
    return tuple(sorted({-(-size * at // count) for at in range(count + 1)}))


def by_columns(machine: TiledMachine) -> Int32s:
    """The engines of the first columns, downwards and upwards in turn."""
    columns = np.arange(machine.engines, dtype=np.int32).reshape(machine.height, machine.width).T.copy()
    columns[1::2] = columns[1::2, ::-1]
    return columns.ravel()


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


class Streams:
    """The streams of a problem.

    Parameters
    ----------
    problem : a network on a machine
    limits : of the search
    samples : that pass all streams together; by default the whole batch
    """

    def __init__(
        self, problem: TiledProblem, limits: Limits | None = None, samples: int | None = None
    ) -> None:
        self.problem, self._limits = problem, limits
        self.samples = problem.batch if samples is None else samples
        self._along = by_columns(problem.machine)
        self._laid: dict[tuple[int, Share], _Laid] = {}
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
        for read in self.problem.units[unit].reads:
            if read.producer == unit - 1 and not read.late:
                origin = made_by(self.problem.units[unit - 1], read.link, ((), (), (), ()))
                along = axes_along(read.layer.operator, read.operand, origin)
                return along is not None and not along[1] and along[0][CHANNEL].depends == (CHANNEL,)
        return False

    @cached_property
    def most(self) -> Shares:
        """Per stream, the most bands and groups that it can be cut into."""
        extents = [self._extent(stream) for stream in self.streams]
        return tuple(Share(self.samples * rows * columns, channels) for channels, rows, columns in extents)

    def _extent(self, stream: range) -> tuple[int, ...]:
        """Channels, rows and columns of a stream, the most of its layers."""
        sizes = [self._shapes[unit].sizes for unit in stream]
        return tuple(max(along) for along in zip(*sizes, strict=True))

    def fewest(self) -> Shares:
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
        return self.fitting(bands)

    def fitting(self, bands: Sequence[int]) -> Shares:
        """Shares of so many bands, with more of them where atoms fit no buffer.

        Raises
        ------
        InputError : for a layer of which no atom fits a buffer
        LimitReachedError : where limits strike on the way
        """
        while True:
            shares = tuple(self._shared(at, count) for at, count in enumerate(bands))
            dag = self.problem.unchecked_dag(self.tilings(shares), self._limits)
            tight = {at for at in self._crowded(dag) if bands[at] < self._most(at)}
            if not tight:
                self.problem.dag(self.tilings(shares), self._limits)
                return shares
            bands = [count + (at in tight) * max(1, count // 4) for at, count in enumerate(bands)]

    def _most(self, at: int) -> int:
        """Engines' shares that a stream is cut into at most."""
        most = self.most[at]
        return min(most.bands * most.groups, TURNS * len(self._along))

    def _crowded(self, dag: AtomicDag) -> set[int]:
        """Streams of which an atom fits no buffer."""
        of = np.repeat(np.arange(len(self.streams)), [len(stream) for stream in self.streams])
        large = dag.needs > self.problem.machine.engine.buffer_bytes
        return {int(at) for at in of[dag.unit[large]]}

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

    def arranged(self, shares: Shares) -> tuple[AtomicDag, Int32s, Int64s]:
        """Atoms, and an engine and a step for each.

        Raises
        ------
        InputError : where an atom fits no buffer
        LimitReachedError : where limits strike on the way
        """
        dag = self.problem.dag(self.tilings(shares), self._limits)
        laid = [self._lay(at, share) for at, share in enumerate(shares)]
        total, first = sum(stream.steps for stream in laid), 0
        engines, steps = [], []
        for stream in laid:
            engines += stream.engine
            steps += [run * total + first + step for run, step in zip(stream.run, stream.step, strict=True)]
            first += stream.steps
        return dag, np.concatenate(engines), np.concatenate(steps)

    def without_crowded(self, shares: Shares, before: Shares) -> Shares:
        """Shares, or those before where an atom fits no buffer."""
        crowded = self._crowded(self.problem.unchecked_dag(self.tilings(shares), self._limits))
        return tuple(
            old if at in crowded else new for at, (new, old) in enumerate(zip(shares, before, strict=True))
        )

    def _lay(self, at: int, share: Share) -> _Laid:
        """How the layers of a stream are cut, and where and when their atoms run."""
        known = self._laid.get((at, share))
        if known is None:
            known = self._laid[at, share] = self._laid_out(self.streams[at], share)
        return known

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
        bands = [samples * min(high, size[1]) * min(wide, size[2]) for size in sizes]
        held = [
            (self._weights[unit] + min(len(stream), 2) * self._results[unit] / count) / channels
            for unit, count in zip(stream, bands, strict=True)
        ]
        # the array's columns are full where as many channels fit
        fits = int(FULL * room / max(*held, 1.0))
        width = max(min(NARROW, fits), int(FILLED * room / max(*held, 1.0)) // NARROW * NARROW, 1)
        count = -(-channels // min(WIDE, width, -(-channels // share.groups)))
        count = min(channels, max(1, math.ceil(count * 2.0**share.finer)))
        tiles = even(channels, -(-count // share.groups) * share.groups)
        runs = pairwise([*range(0, batch, self.samples), batch])
        cut = sorted({low + at for low, end in runs for at in even(end - low, samples)})
        made = []
        for position, (unit, size, pieces) in enumerate(zip(stream, sizes, bands, strict=True)):
            need = (self._inputs[unit] + self._results[unit]) / pieces / (len(tiles) - 1)
            parts = -(-int(need) // int(ATOM * room)) if position and need > ATOM * room else 1
            inner = {low + part for low, end in pairwise(tiles) for part in even(end - low, parts)}
            made.append(
                Tiling(
                    tuple(cut),
                    tuple(sorted(inner)),
                    even(size[1], min(high, size[1])),
                    even(size[2], min(wide, size[2])),
                    (0, self._shapes[unit].parts),
                )
            )
        return tiles, made


class StreamClimb:
    """Changes of shares that lower the objective.

    Parameters
    ----------
    streams : whose
    stages : what judges plans
    shares, judged : the best so far, and its plan
    """

    def __init__(self, streams: Streams, stages: Stages, shares: Shares, judged: Judged) -> None:
        self.streams, self._stages = streams, stages
        self.shares, self.judged = shares, judged
        self._accounts: Floats | None = None
        self._tried: set[tuple[int, Shares, Share]] = set()

    def climb(self, passes: int) -> None:
        """Try every change of every stream so many times at most, or as long as that gains."""
        for _ in range(passes):
            before = self.judged[0]
            for change in _CHANGES:
                for first in range(APART):
                    if self._stages.search.done:
                        return
                    self._try(change, first)
            if self.judged[0] == before:
                break

    def _try(self, change: Callable[[Share], Share], first: int) -> None:
        """Change many streams, and keep those changes that gained."""
        search, streams, source = self._stages.search, self.streams, f"{self._stages.name} climbing"
        moved = list(self.shares)
        for at in range(first, len(moved), APART):
            share, most = change(moved[at]), streams.most[at]
            context = self.shares[max(0, at - 1) : at + 2]
            if (
                1 <= share.bands <= most.bands
                and 1 <= share.groups <= most.groups
                and share.bands * share.groups <= search.problem.problem.machine.engines
                and (at, context, share) not in self._tried
            ):
                self._tried.add((at, context, share))
                moved[at] = share
        shares = tuple(moved)
        if shares == self.shares:
            return
        try:
            judged = planned(self._stages, streams, shares, source)
        except InputError:
            shares = streams.without_crowded(shares, self.shares)
            if shares == self.shares:
                return
            judged = planned(self._stages, streams, shares, source)
        problem = search.problem.problem
        if self._accounts is None:
            self._accounts = layer_accounts(problem, self.judged[1])
        accounts = layer_accounts(problem, judged[1])
        more = more_taken(problem.objective, self._accounts, accounts)
        changed = [at for at, pair in enumerate(zip(shares, self.shares, strict=True)) if pair[0] != pair[1]]
        parts = layers_beside([streams.streams[at] for at in changed], len(problem.units))
        gains = {at: float(more[part].sum()) for at, part in zip(changed, parts, strict=True)}
        gained = [at for at in changed if gains[at] < -MARGIN]
        tries = [(shares, judged)]
        before = self.shares
        if gained and gained != changed:
            kept = tuple(shares[at] if at in gained else share for at, share in enumerate(before))
            tries.append((kept, planned(self._stages, streams, kept, source)))
        best, judged = min(tries, key=lambda tried: tried[1][0])
        if judged[0] < self.judged[0]:
            self.shares, self.judged, self._accounts = best, judged, None


def planned(stages: Stages, streams: Streams, shares: Shares, source: str) -> Judged:
    """The plan of shares, offered.

    Parameters
    ----------
    stages : what judges plans
    streams, shares : of the problem
    source : what the trace calls the plan

    Raises
    ------
    InputError : where an atom fits no buffer
    LimitReachedError : where limits strike on the way
    """
    search = stages.search
    problem = search.problem.problem
    dag, engine, step = streams.arranged(shares)
    # where energy counts alone, what arrives early only takes room
    ahead = AHEAD if problem.objective.delay_power else 1
    plan = complete(dag, problem.machine, engine, step, ahead=ahead, limits=search.limits)
    return stages.offered(dag, plan, source)


def begun(search: TiledSearch, stages: Stages) -> StreamClimb:
    """The best first plan: of streams that few engines run; where cycles count of more engines, too; and of
    a batch that passes all streams in one run, or in several.

    Parameters
    ----------
    search : what judges plans
    stages : what makes them

    Raises
    ------
    InputError : for a layer of which no atom fits a buffer
    LimitReachedError : where limits strike before any
    """
    problem, limits = search.problem.problem, search.limits
    climbs: list[StreamClimb] = []
    samples = problem.batch
    fault: InputError | None = None
    while samples:
        try:
            streams = Streams(problem, limits, samples)
            fewest = streams.fewest()
            starts, count = [fewest], 1
            while problem.objective.delay_power and count < problem.machine.engines:
                count = min(problem.machine.engines, 2 * count)
                starts.append(streams.fitting([max(count, share.bands * share.groups) for share in fewest]))
            for shares in starts:
                judged = planned(stages, streams, shares, stages.name)
                climbs.append(StreamClimb(streams, stages, shares, judged))
                if search.done:
                    break
        except InputError as failure:
            fault = failure
        except LimitReachedError:
            if not climbs:
                raise
            break
        samples //= 2
    if not climbs:
        assert fault is not None
        raise fault
    return min(climbs, key=lambda climb: climb.judged[0])


@dataclass(frozen=True)
class StreamPlans(PlanHeuristic):
    """Streams of layers, tile of channels by tile, each on as many engines as pay."""

    passes: int = option(4, "times that every change of every stream is tried at most", low=0, high=1000)
    level: bool = option(True, "whether the best plan's transfers are moved between steps and sources")

    name = "streams"

    def offer(self, search: TiledSearch) -> None:
        """Begin with few engines, then change the shares of streams."""
        stages = Stages(search, self.name, level=self.level)
        climb = begun(search, stages)
        climb.climb(self.passes)
        stages.settled(climb.judged)
