"""Bounds on what a leaf takes by the tiles that it gets, before the tree around it is known.

The bound is exact where no producer passes results on directly and it is known whether the leaf's own results
are stored: energy, cycles and bytes of DRAM then follow from its tiles alone, and the closed form gives them.
Otherwise the leaf may choose any partition that fits.  Each partition is charged with all traffic that is
known; direct results are charged with one link for every tile after the first that receives a byte of them,
and not with their hops.  The minimum is taken of energy, cycles and bytes separately, so that more traffic
through DRAM never lowers any of them.

On machines with many tiles (`places.MOST_TILES`) the per-layer lower bounds by number of tiles are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import CONVOLUTION
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import DRAM
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.foundation.arrays import Floats
from tilewright.solvers.scheduling.tiled.set.leaf.layer_bounds import LayerBounds
from tilewright.solvers.scheduling.tiled.set.leaf.leaf_figures_kernel import least_of_rows
from tilewright.solvers.scheduling.tiled.set.trees.places import Places

Given = tuple[tuple[int, int], ...]
"""Direct reads by number, with the number of the layout in which the results that they read lie."""


class Taken(NamedTuple):
    """By place: pJ of the whole batch, cycles of one run, bytes of DRAM in one run."""

    energy: Floats
    cycles: Floats
    moved: Floats


class LeafFigures:
    """Bounds on leaves of one network, cached.

    Parameters
    ----------
    loads : samples for which weights are loaded once
    """

    def __init__(self, form: ClosedForm, lower_bounds: LayerBounds, places: Places, loads: int) -> None:
        self.form, self.lower_bounds, self.places, self.loads = form, lower_bounds, places, loads
        self._known: dict[tuple[int, int, bool, tuple[int, ...], tuple[int, ...], bool], Taken] = {}
        self._least: dict[tuple[int, bool, tuple[int, ...], tuple[int, ...]], tuple[float, float]] = {}

    def of(
        self, layer: int, batch: int, stored: bool, fetched: int, settled: bool, given: Given = ()
    ) -> Taken:
        """Bounds on a leaf by its place.

        Parameters
        ----------
        layer : its number in the network
        batch : samples of one run
        stored : whether its results go to DRAM
        fetched : those of its reads that come from there, as a set of bits
        settled : whether nothing else is stored or fetched in the trees that are bounded
        given : direct reads of which the layout is known
        """
        away, direct = self._away(layer, fetched), self.direct(layer, given)
        known = len(away) + sum(number >= 0 for number in direct)
        exact = known == len(direct) and (stored or settled)
        key = self.form.engine.shapes[layer], batch, stored, away, direct, exact
        figures = self._known.get(key)
        if figures is None:
            if not self.places.apart:
                figures = self._by_number(layer, batch, stored, fetched)
            elif exact:
                figures = self._exact(layer, batch, stored, direct)
            else:
                figures = self._bounded(layer, batch, stored, away, direct)
            self._known[key] = figures
        return figures

    def least(self, layer: int, stored: bool, fetched: int, given: Given = ()) -> tuple[float, float]:
        """The least pJ and bytes of DRAM of a layer for the whole batch, over all batches and places.

        Parameters
        ----------
        layer : its number in the network
        stored : whether its results go to DRAM
        fetched : those of its reads that come from there, as a set of bits
        given : direct reads of which the layout is known
        """
        away, direct = self._away(layer, fetched), self.direct(layer, given)
        key = self.form.engine.shapes[layer], stored, away, direct
        least = self._least.get(key)
        if least is None:
            energy = moved = math.inf
            for batch in self.lower_bounds.batches:
                if batch <= self.loads:
                    taken, runs = (
                        self.of(layer, batch, stored, fetched, False, given),
                        self.form.batch // batch,
                    )
                    energy = min(energy, float(taken.energy.min()))
                    moved = min(moved, float(taken.moved.min()) * runs)
            least = self._least[key] = energy, moved
        return least

    def _away(self, layer: int, fetched: int) -> tuple[int, ...]:
        """Places among its producers of a layer's reads that are not direct."""
        reads = self.form.dataflow.numbers(layer)
        return tuple(read.place for read in reads if fetched >> read.number & 1)

    def direct(self, layer: int, given: Given) -> tuple[int, ...]:
        """Per producer of a layer, the number of its layout where that is given, or -1."""
        known = dict(given)
        return tuple(known.get(number.number, -1) for number in self.form.dataflow.numbers(layer))

    def _empty(self) -> Taken:
        infinite = np.full((3, len(self.places)), math.inf)
        return Taken(infinite[0], infinite[1], infinite[2])

    def _exact(self, layer: int, batch: int, stored: bool, direct: tuple[int, ...]) -> Taken:
        form, figures, runs = self.form, self._empty(), self.form.batch // batch
        at = 0
        for tiles in range(1, self.places.total + 1):
            for first in range(self.places.total - tiles + 1):
                cost = form.engine.leaf(
                    layer, batch, first, tiles, stored, max(1, self.loads // batch), direct
                )
                if cost is not None:
                    cycles = cost.cycles
                    if not form.rules.segment_bounds_only:
                        cycles = form.bounded(cycles, cost.counts)
                    figures.energy[at], figures.cycles[at] = cost.energy * runs, cycles
                    figures.moved[at] = int(cost.counts[DRAM])
                at += 1
        return figures

    def _bounded(
        self, layer: int, batch: int, stored: bool, away: tuple[int, ...], direct: tuple[int, ...]
    ) -> Taken:
        form, figures = self.form, self._empty()
        engine, runs = form.engine, form.batch // batch
        bounded = form.network.layers[layer]
        late = batch * bounded.late_operands * bounded.output_bytes
        known = [place for place, layout in enumerate(direct) if layout >= 0 or place in away]
        part, once = self._copied(layer, known)
        rounding = len(bounded.producers) * form.machine.hop_energy
        # only the tiles differ from place to place
        flows = []
        for streamed in engine.stream_bytes(layer):
            loads = 1 if streamed else max(1, self.loads // batch)
            whole = engine.flow(layer, stored, loads, direct)
            flows.append((streamed, whole._replace(producers=whole.producers[known])))
        at = 0
        for tiles in range(1, self.places.total + 1):
            for first in range(self.places.total - tiles + 1):
                stated = engine.statement(layer, batch, first, tiles)
                for streamed, flow in flows:
                    energy, cycles, moved = least_of_rows(
                        late=late,
                        direct_part=part,
                        direct_bytes=float(batch * once),
                        **engine.row_arguments(stated, flow, streamed),
                    )
                    if energy < math.inf:
                        figures.energy[at] = runs * (energy - rounding)
                        figures.cycles[at], figures.moved[at] = cycles, moved
                        break
                at += 1
        return figures

    def _copied(self, layer: int, known: Sequence[int]) -> tuple[float, int]:
        """The part of a layer's inputs that is read directly and whole by all that receive them, and its
        bytes of one sample.

        Parameters
        ----------
        known : places among its producers of the reads whose traffic is counted, which are not in it
        """
        form, copied = self.form, self.form.network.layers[layer]
        reads = [read for place, read in enumerate(copied.producers) if place not in known]
        data = [read for read in copied.producers if not read.weights and not read.late]
        plain = copied.window == CONVOLUTION and copied.operands == 1 and not copied.makes_weights
        plain = plain and not any(read.scattered for read in data)
        if not plain or (form.rules.free_concatenation and len(data) > 1):
            return 0.0, 0
        channels = sum(read.channels for read in reads if not read.late)
        return channels / copied.inputs, channels * copied.input_rows * copied.input_columns

    def _by_number(self, layer: int, batch: int, stored: bool, fetched: int) -> Taken:
        """The same by the per-layer lower bounds, for each number of tiles."""
        lower_bounds, runs = self.lower_bounds, self.form.batch // batch
        energy, cycles = lower_bounds.leaf_figures(layer, batch, lower_bounds.fetched_bytes(layer, fetched))
        moved = lower_bounds.moved(layer, batch, stored, fetched)
        energy = energy + moved * runs * lower_bounds.byte_energy - (1 + 3 * runs) * lower_bounds.rounding
        through = max(0.0, moved - 1)
        cycles = np.maximum(cycles, through / self.form.machine.dram_rate)
        return Taken(energy[1:], cycles[1:], np.full(len(self.places), through))
