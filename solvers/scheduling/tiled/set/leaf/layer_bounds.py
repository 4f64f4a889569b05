"""Per-layer lower bounds by the closed form of trees, whatever tree holds the layer.

They hold over every number of tiles, every batch that divides the whole one and every candidate partition
that fits the buffers:

====== =====================================================================================================
energy what the tiles spend on all samples (inputs and weights written and results read included), DRAM and
       hops of its weights, and hops of inputs
work   cycles times tiles
time   the slowest of array and weights through DRAM, in one run
====== =====================================================================================================

A byte that ``m`` tiles receive passes at least ``m - 1`` links, as many as a tree over them has; a byte of
DRAM at least the mean distance from its ports to the best tile, if that is more.  A partition is charged with
both together, so that few hops and cheap shares are combined only where one partition has both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.scheduling.tiled.set.leaf import leaf_kernel
from tilewright.formulation.scheduling.tiled.set.leaf.layers import CONVOLUTION, SUMMED, SWAPPED, SetLayer
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.solvers.scheduling.tiled.set.trees.frontier import Point, lower_hull


@dataclass(frozen=True, slots=True)
class Options:
    """What a layer may be on any number of tiles, an entry for every partition that fits the buffers.

    Parameters
    ----------
    tiles : that it takes
    cycles, time : of one run, by the array and by weights through DRAM too
    energy : pJ of the whole batch, without hops of inputs
    copies : hops of inputs, all samples, wherever they come from
    """

    tiles: Int64s
    cycles: Floats
    time: Floats
    energy: Floats
    copies: Floats


class LayerBounds:
    """What every layer takes at least, by the closed form.

    Parameters
    ----------
    form : the closed form, with network, machine and batch
    stop : whether the time is up; what is not known by then raises `LimitReachedError`
    """

    def __init__(self, form: ClosedForm, stop: Callable[[], bool] = lambda: False) -> None:
        self.form, self.stop = form, stop
        self._options: dict[tuple[int, int], Options] = {}
        self._hulls: dict[int, list[Point]] = {}
        self._leaves: dict[tuple[int, int, int], tuple[Floats, Floats]] = {}
        self.batches = [divisor for divisor in range(1, form.batch + 1) if form.batch % divisor == 0]

    @cached_property
    def reach(self) -> float:
        """Hops of a byte from DRAM to the nearest tile, on average over the ports."""
        grid = self.form.engine.grid
        away = np.abs(grid.x[:, None] - grid.ports[None, :, 0]) + np.abs(
            grid.y[:, None] - grid.ports[None, :, 1]
        )
        return float(away.mean(axis=1).min())

    @property
    def byte_energy(self) -> float:
        """pJ of a byte that passes DRAM."""
        machine = self.form.machine
        return machine.dram_energy + self.reach * machine.hop_energy

    @property
    def rounding(self) -> float:
        """pJ that rounding over the ports may save in one run of a layer, operand by operand.

        Each multicast gives every port its part rounded up or down, less than a byte of difference, and
        neighbouring ports' trees differ by no more links than there are columns.
        """
        grid = self.form.engine.grid
        return grid.tiles * len(grid.ports) * grid.width * self.form.machine.hop_energy

    @cached_property
    def _all(self) -> tuple[tuple[float, float], ...]:
        shapes = self.form.engine.shapes
        known: dict[int, tuple[float, float]] = {}
        for layer in dict.fromkeys(shapes):
            known[layer] = self._layer(layer)
        return tuple(known[shape] for shape in shapes)

    @cached_property
    def tile_energy(self) -> tuple[float, ...]:
        """Per layer, pJ inside tiles for the whole batch, with hops beyond those in `byte_energy`."""
        return tuple(figures[0] for figures in self._all)

    @cached_property
    def work(self) -> tuple[float, ...]:
        """Per layer, cycles times tiles for the whole batch."""
        return tuple(figures[1] for figures in self._all)

    def options(self, layer: int, batch: int) -> Options:
        """Everything that is tried of a layer with that batch and fits the buffers."""
        key = self.form.engine.shapes[layer], batch
        options = self._options.get(key)
        if options is None:
            rows = []
            for tiles in range(1, self.form.engine.grid.tiles + 1):
                if self.stop():
                    raise LimitReachedError("a limit struck before all layers were bounded")
                here = self._partitions(key[0], batch, tiles, streamed=False)
                if not here and self.form.engine.may_stream(layer):
                    here = self._partitions(key[0], batch, tiles, streamed=True)
                rows.extend(here)
            columns = np.array(rows, dtype=np.float64).reshape(-1, 5).T
            options = self._options[key] = Options(columns[0].astype(np.int64), *columns[1:])
        return options

    def energies(self, layer: int, batch: int, fetched: int = 0) -> Floats:
        """By option, pJ of the whole batch but for the bytes that pass DRAM (`byte_energy`).

        Parameters
        ----------
        fetched : bytes of one sample's inputs from DRAM besides those from outside the network
        """
        options = self.options(layer, batch)
        passed = self.form.batch * (self.external_bytes(layer) + fetched) * self.reach
        return options.energy + np.maximum(0.0, options.copies - passed) * self.form.machine.hop_energy

    def leaf_figures(self, layer: int, batch: int, fetched: int = 0) -> tuple[Floats, Floats]:
        """By number of tiles, from none on: pJ of a layer in `energies`, and cycles of one run."""
        key = self.form.engine.shapes[layer], batch, fetched
        figures = self._leaves.get(key)
        if figures is None:
            options = self.options(layer, batch)
            least, fastest = (np.full(self.form.engine.grid.tiles + 1, math.inf) for _ in range(2))
            np.minimum.at(least, options.tiles, self.energies(layer, batch, fetched))
            np.minimum.at(fastest, options.tiles, options.time)
            figures = self._leaves[key] = least, fastest
        return figures

    def hull(self, layer: int) -> list[Point]:
        """What a layer adds to a path against its energy in `tile_energy`, over everything tried.

        These are the cycles of one run, and of all other runs as large a part as it has of all tiles.
        """
        assert self.work
        return self._hulls[self.form.engine.shapes[layer]]

    @cached_property
    def path(self) -> tuple[int, ...]:
        """Layers of the longest path by the fastest runs of each."""
        ends: list[tuple[float, int]] = []
        for layer, before in enumerate(self.form.network.before):
            last = max(((ends[place][0], place) for place in before), default=(0.0, -1))
            ends.append((last[0] + self.hull(layer)[0][0], last[1]))
        at = max(range(len(ends)), key=lambda place: ends[place][0])
        layers = [at]
        while ends[at][1] >= 0:
            at = ends[at][1]
            layers.append(at)
        return tuple(reversed(layers))

    def _layer(self, layer: int) -> tuple[float, float]:
        work = math.inf
        points: list[Point] = []
        for batch in self.batches:
            runs, options = self.form.batch // batch, self.options(layer, batch)
            if not len(options.tiles):
                continue
            work = min(work, float((runs * options.cycles * options.tiles).min()))
            part = options.tiles / self.form.engine.grid.tiles
            times = options.time * (1 + (runs - 1) * part)
            points.extend(zip(times.tolist(), self.energies(layer, batch).tolist(), strict=True))
        self._hulls[layer] = lower_hull(points) or [(math.inf, math.inf)]
        return self._hulls[layer][-1][1], work

    def _partitions(
        self, layer: int, batch: int, tiles: int, *, streamed: bool
    ) -> list[tuple[float, float, float, float, float]]:
        """Of every partition that fits the buffers, the fields of `Options`.

        Parameters
        ----------
        streamed : whether weights are loaded at every run, and occupy no more than their stream
        """
        engine, form, rules = self.form.engine, self.form, self.form.rules
        runs = form.batch // batch
        leaf, held = engine.numbers(layer, batch), self.weight_bytes(layer)
        loads = runs if streamed else 1
        loading = held * loads // runs / form.machine.dram_rate
        sizes = np.array([leaf.channels, batch, leaf.rows, leaf.columns], dtype=np.int64)
        rows = []
        for parts in dict.fromkeys(partition.parts for partition in engine.menu(layer, batch, tiles)):
            cycles, each = engine.share_cost(layer, batch, parts)
            if not cycles:
                continue
            inputs, weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
            shares = np.array(parts, dtype=np.int64)
            leaf_kernel.usage(leaf, shares, rules.idle_tiles_receive, inputs, weights)
            resident = int(weights.max())
            resident = min(resident, rules.streamed_bytes) if streamed else resident
            if rules.result_bytes + int(inputs.max()) + resident > engine.capacity:
                continue
            outside = leaf_kernel.buffer_energy(leaf, inputs, weights, runs // loads, engine.prices)
            spent = runs * (float(each.sum()) * tiles + outside) + (loads - 1) * held * self.byte_energy
            copies = float(np.minimum(shares, sizes)[1:].prod())
            spent += loads * held * max(0.0, copies - 1 - self.reach) * form.machine.hop_energy
            hops = float(runs * self._copied(layer, batch, inputs))
            rows.append((float(tiles), cycles, max(cycles, loading), spent, hops))
        return rows

    def _copied(self, layer: int, batch: int, inputs: Int64s) -> int:
        """Bytes of inputs of one run that tiles receive beyond the first one that does.

        Shares that need the same inputs get them in one multicast, others by their own; the tile that has
        them, or the port, is in one of these at most.
        """
        form, copied = self.form, self.form.network.layers[layer]
        data = [read for read in copied.producers if not read.weights and not read.late]
        covered = copied.external + sum(read.channels for read in data) == copied.inputs * copied.operands
        plain = not any(read.scattered for read in data)
        plain = plain and not (form.rules.free_concatenation and len(data) > 1)
        if copied.window != CONVOLUTION or not covered or not plain or copied.makes_weights:
            return 0
        late = copied.output_bytes * copied.late_operands
        return max(0, int(inputs.sum()) - batch * (late + copied.input_bytes))

    def weight_bytes(self, layer: int) -> int:
        """Stored weights of a layer."""
        layer_shape = self.form.network.layers[layer]
        return 0 if layer_shape.makes_weights or layer_shape.is_summed else layer_shape.weight_bytes

    def loaded_bytes(self, layer: int) -> int:
        """Stored weights that pass DRAM for the whole batch at least: of runs that share a load each counts a
        part, rounded down.
        """
        held, batch = self.weight_bytes(layer), self.form.batch
        return min(batch // divisor * (held // (batch // divisor)) for divisor in self.batches)

    def rounded_bytes(self, layer: int) -> int:
        """Bytes times links that rounding down saves at most, where runs share a load or a producer's run."""
        return self.form.batch * (len(self.form.network.layers[layer].producers) + 1)

    @cached_property
    def read_bytes(self) -> tuple[int, ...]:
        """Per read of the network, bytes of one sample that pass DRAM at least where it is not direct.

        Strides that leave gaps may leave results unread, and scattered ones or weights are not counted.
        """
        sizes = []
        for reader in self.form.network.layers:
            for read in reader.producers:
                counted = not (self._gaps(reader) or read.scattered or read.weights)
                positions = reader.rows * reader.columns if read.late else self._used(reader)
                sizes.append(read.channels * positions if counted else 0)
        return tuple(sizes)

    def fetched_bytes(self, layer: int, reads: int) -> int:
        """Inputs of one sample that some reads bring from DRAM.

        Parameters
        ----------
        reads : as a set of bits
        """
        numbers = (read.number for read in self.form.dataflow.numbers(layer))
        return sum(self.read_bytes[number] for number in numbers if reads >> number & 1)

    @staticmethod
    def _used(layer: SetLayer) -> int:
        """Positions of the inputs up to the last that a window reaches."""
        if layer.spread or layer.window in (SWAPPED, SUMMED):
            return layer.input_rows * layer.input_columns
        rows = (layer.rows - 1) * layer.stride_rows + layer.taps_rows - layer.pad_rows
        columns = (layer.columns - 1) * layer.stride_columns + layer.taps_columns - layer.pad_columns
        return min(layer.input_rows, rows) * min(layer.input_columns, columns)

    @staticmethod
    def _gaps(layer: SetLayer) -> bool:
        return layer.stride_rows > layer.taps_rows or layer.stride_columns > layer.taps_columns

    def external_bytes(self, layer: int) -> int:
        """Inputs of one sample from outside the network, but for those with gaps."""
        layer_shape = self.form.network.layers[layer]
        return 0 if self._gaps(layer_shape) else layer_shape.external * self._used(layer_shape)

    @cached_property
    def compulsory(self) -> tuple[int, ...]:
        """Per layer, bytes of the whole batch that pass DRAM in every tree: weights, inputs and outputs."""
        batch = self.form.batch
        sizes = []
        for layer, layer_shape in enumerate(self.form.network.layers):
            results = layer_shape.stored_bytes(batch) if layer_shape.is_output else 0
            sizes.append(self.loaded_bytes(layer) + batch * self.external_bytes(layer) + results)
        return tuple(sizes)

    def moved(self, layer: int, batch: int, stored: bool, reads: int) -> int:
        """Bytes that one run of a leaf reads from DRAM and writes there at least.

        Parameters
        ----------
        stored : whether its results go to DRAM
        reads : those of its reads that come from there, as a set of bits
        """
        form, layer_shape = self.form, self.form.network.layers[layer]
        runs = form.batch // batch
        moved = self.weight_bytes(layer) // runs + batch * self.external_bytes(layer)
        if stored:
            moved += layer_shape.stored_bytes(batch) // (runs if layer_shape.is_summed else 1)
        return moved + batch * self.fetched_bytes(layer, reads)
