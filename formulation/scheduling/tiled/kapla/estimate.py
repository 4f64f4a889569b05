"""Validity and least cost of a segment before any layer's partition is known (KAPLA, section IV-B).

With ``e``, ``t`` and ``d`` the least energy, cycles and DRAM bytes of one run of each layer over its
partitions,

======== =============================================================================
energy   ``>= g sum e``
cycles   ``>= g sum t`` in turn, ``>= (g + stages) max t`` side by side
cycles   ``>= ceil(g sum d / rate)``
======== =============================================================================

Where layers pass on row stripes, ``g`` counts samples, and ``e`` and ``d`` are those of all stripes of a
sample.  In turn, ``t`` is the least sum over the stripes; side by side, every slot takes the least cycles of
its slowest stripe.

The scheme alone determines who passes on directly and which tiles a layer gets.  So results that cannot be
forwarded are charged with their way through DRAM, and a pipeline with the time to fill it.  A scheme is
rejected only where every choice of partitions overflows a buffer, or the closed form rejects its tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil
from typing import Protocol

from tilewright.formulation.scheduling.tiled.kapla.leaf_bounds import LeafBound, LeafBounds, LeafRun
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import stripe_borders
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.dataflow import DataFlow
from tilewright.formulation.scheduling.tiled.set.trees.striped import copies, slot_cycles
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit


@dataclass(frozen=True, slots=True)
class SegmentBound:
    """What a segment costs at least.

    Parameters
    ----------
    energy : pJ
    cycles : of the whole batch
    dram : bytes
    """

    energy: float
    cycles: int
    dram: int


class Estimates(Protocol):
    """Something that states what a scheme costs at least."""

    def lower_bound(self, scheme: SegmentScheme) -> SegmentBound | Unfit:
        """The least that a scheme can cost, or why no partition makes it legal."""
        ...


class Estimator:
    """Judges schemes before they are evaluated.

    Parameters
    ----------
    form : whose costs are bounded
    loads : samples for which weights are loaded once
    """

    def __init__(self, form: ClosedForm, loads: int) -> None:
        self.form, self.loads = form, loads
        self.lower_bounds = LeafBounds(form)
        self.capacity = form.capacity
        self.tiles = form.engine.grid.tiles
        self._start = -1
        self._dataflow = form.dataflow

    def lower_bound(self, scheme: SegmentScheme) -> SegmentBound | Unfit:
        """The least that a scheme can cost, or why no partition makes it legal."""
        if scheme.stripes > 1:
            return self._striped(scheme)
        if scheme.kind == "S":
            return self._spatial(scheme)
        return self._temporal(scheme)

    def _flows(self, start: int) -> DataFlow:
        """The data flow of schemes that begin at one state; only those are cached, as all are many."""
        if start != self._start:
            self._start = start
            self._dataflow = DataFlow(self.form.network, self.form.dataflow.times)
        return self._dataflow

    def _temporal(self, scheme: SegmentScheme) -> SegmentBound | Unfit:
        lower_bounds = self._leaves(scheme, [(0, self.tiles)] * len(scheme.layers), False)
        if isinstance(lower_bounds, Unfit):
            return lower_bounds
        overflow = self._full_in_turn(scheme, lower_bounds)
        if overflow is not None:
            return overflow
        return self._segment(
            scheme, lower_bounds, sum(bound.cycles for bound in lower_bounds) * scheme.groups
        )

    def _places(self, tree: Cut) -> list[tuple[int, int]] | Unfit:
        """The first tile and the number of tiles of every layer side by side."""
        given = self.form.allocation(tree, self.tiles)
        if isinstance(given, Unfit):
            return given
        return list(zip(accumulate((0, *given)), given, strict=False))

    def _striped(self, scheme: SegmentScheme) -> SegmentBound | Unfit:
        tree = scheme.tree
        assert isinstance(tree, Cut)
        form, spatial = self.form, scheme.kind == "S"
        borders = stripe_borders(form.network, scheme.layers, scheme.stripes)
        if borders is None:
            return Unfit(f"{self._names(scheme)}: its layers cannot run in bands of rows")
        places = self._places(tree) if spatial else [(0, self.tiles)] * len(scheme.layers)
        if isinstance(places, Unfit):
            return places
        dataflow = self._flows(scheme.start)
        direct, stored = dataflow.flow_bits(tree)
        lower_bounds = []
        for layer, (first, count) in zip(scheme.layers, places, strict=True):
            near = tuple(bool(direct >> read.number & 1) for read in dataflow.numbers(layer))
            to_dram, runs = bool(stored >> layer & 1), max(1, self.loads)
            run = LeafRun(
                layer=layer,
                batch=1,
                first=first,
                tiles=count,
                stored=to_dram,
                runs=runs,
                direct=near,
                apart=spatial,
                borders=borders[layer],
                copies=copies(tree),
            )
            bound = self.lower_bounds.lower_bound(run)
            if bound is None:
                return Unfit(f"{self._name(layer)}: no partition over {count} tiles fits their buffers")
            lower_bounds.append(bound)
        if spatial:
            stages = dataflow.stages(tree).of
            slots = slot_cycles([bound.turns for bound in lower_bounds], stages, scheme.groups)
            return self._segment(scheme, lower_bounds, int(sum(slots)))
        overflow = self._full_in_turn(scheme, lower_bounds)
        if overflow is not None:
            return overflow
        return self._segment(
            scheme, lower_bounds, sum(bound.cycles for bound in lower_bounds) * scheme.groups
        )

    def _spatial(self, scheme: SegmentScheme) -> SegmentBound | Unfit:
        tree = scheme.tree
        assert isinstance(tree, Cut)
        places = self._places(tree)
        if isinstance(places, Unfit):
            return places
        lower_bounds = self._leaves(scheme, places, True)
        if isinstance(lower_bounds, Unfit):
            return lower_bounds
        for layer, bound in zip(scheme.layers, lower_bounds, strict=True):
            if (bound.twice if scheme.groups > 1 else bound.once) > self.capacity:
                return Unfit(f"{self._name(layer)}: inputs of two subbatches do not fit its tiles")
        stages = self._flows(scheme.start).stages(tree).last
        return self._segment(
            scheme, lower_bounds, max(bound.cycles for bound in lower_bounds) * (scheme.groups + stages)
        )

    def _leaves(
        self, scheme: SegmentScheme, places: list[tuple[int, int]], apart: bool
    ) -> list[LeafBound] | Unfit:
        dataflow = self._flows(scheme.start)
        direct, stored = dataflow.flow_bits(scheme.tree)
        batch = scheme.batch // scheme.groups
        runs = max(1, self.loads // batch)
        lower_bounds = []
        for layer, (first, count) in zip(scheme.layers, places, strict=True):
            near = tuple(bool(direct >> read.number & 1) for read in dataflow.numbers(layer))
            to_dram = bool(stored >> layer & 1)
            bound = self.lower_bounds.lower_bound(
                LeafRun(layer, batch, first, count, to_dram, runs, near, apart)
            )
            if bound is None:
                return Unfit(f"{self._name(layer)}: no partition over {count} tiles fits their buffers")
            lower_bounds.append(bound)
        return lower_bounds

    def _full_in_turn(self, scheme: SegmentScheme, leaves: list[LeafBound]) -> Unfit | None:
        """Why all buffers together are too small for a temporal scheme; ``None`` where they may do."""
        runs = scheme.groups * scheme.stripes
        if len(leaves) == 1 and runs == 1:
            return None
        shift = runs == 1 and self.form.rules.weight_shift
        pinned = 0 if shift else sum(bound.weights for bound in leaves)
        capacity = self.capacity * self.tiles
        after = (*pairwise(leaves), (leaves[-1], leaves[0])) if runs > 1 else tuple(pairwise(leaves))
        for bound, following in after:
            held = bound.inputs + following.inputs + pinned
            if shift:
                held += bound.weights + following.weights
            if held > capacity:
                return Unfit(f"{self._names(scheme)}: data take {held} bytes, all buffers hold {capacity}")
        if pinned + max(bound.inputs for bound in leaves) > capacity:
            return Unfit(f"{self._names(scheme)}: weights take {pinned} bytes, all buffers hold {capacity}")
        return None

    def _segment(self, scheme: SegmentScheme, leaves: list[LeafBound], cycles: int) -> SegmentBound:
        dram = sum(bound.dram for bound in leaves) * scheme.groups
        energy = sum(bound.energy for bound in leaves) * scheme.groups
        return SegmentBound(energy, max(cycles, ceil(dram / self.form.machine.dram_rate)), dram)

    def _name(self, layer: int) -> str:
        return self.form.network.layers[layer].name

    def _names(self, scheme: SegmentScheme) -> str:
        return f"{self._name(scheme.layers[0])} to {self._name(scheme.layers[-1])}"
