"""What one run of a layer in a segment costs at least, whatever partition it gets (KAPLA, section IV-B)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.kapla import leaf_bound_kernel
from tilewright.formulation.scheduling.tiled.kapla.leaf_bound_kernel import (
    BYTES,
    CYCLES,
    ENERGY,
    INPUTS,
    ONCE,
    TWICE,
    WEIGHTS,
)
from tilewright.formulation.scheduling.tiled.set.leaf import stripe_kernel
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetLayer
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import Flow
from tilewright.formulation.scheduling.tiled.set.leaf.striped_leaf import Estimated
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm

Longs = npt.NDArray[np.int64]

ROUNDING = 1e-9
"""Part of an energy that is given away, as sums of floats depend on their order."""


@dataclass(frozen=True, slots=True)
class LeafBound:
    """The least of each over all partitions that fit the buffers; they need not be had together.

    Parameters
    ----------
    energy : pJ
    cycles : of array and DRAM
    dram : bytes
    inputs, weights : bytes in all buffers together
    once, twice : bytes in the fullest buffer with the inputs once and twice
    turns : where the layer runs in bands, cycles of every band; the others are of all of them then
    """

    energy: float
    cycles: int
    dram: int
    inputs: int
    weights: int
    once: int
    twice: int
    turns: tuple[int, ...] = ()


class LeafRun(NamedTuple):
    """One run of a layer in a segment, as far as its lower bound depends on it.

    Parameters
    ----------
    batch : samples; 1 where it runs in bands
    first, tiles : where it runs
    stored : whether results go to DRAM
    runs : runs that share one load of the weights
    direct : per producer, whether it passes its results on directly
    apart : whether producers have tiles of their own
    borders : of its bands; empty where it makes all rows at once
    copies : how often the inputs of a band lie in a buffer
    """

    layer: int
    batch: int
    first: int
    tiles: int
    stored: bool
    runs: int
    direct: tuple[bool, ...]
    apart: bool
    borders: tuple[int, ...] = ()
    copies: int = 1


class LeafBounds:
    """Lower bounds of the leaves of one closed form, kept once found."""

    def __init__(self, form: ClosedForm) -> None:
        self.form = form
        self.known: dict[LeafRun, LeafBound | None] = {}

    def floor(self, run: LeafRun) -> LeafBound | None:
        """The lower bound of one run, all bands of its sample together; ``None`` where no partition fits."""
        run = run._replace(layer=self.form.engine.shapes[run.layer])
        if run not in self.known:
            self.known[run] = self._striped(run) if run.borders else self._whole(run)
        return self.known[run]

    def _striped(self, run: LeafRun) -> LeafBound | None:
        striped, fixed = self.form.striped, self.form.partitions.get(run.layer)
        stated = striped.statement(run.layer, run.borders, run.first, run.tiles, fixed)
        estimated = Estimated(run.apart, self._reads_alike(run))
        for streamed, fetched, whole in self._flows(run):
            rows, cycles = striped.costs(stated, fetched, whole, streamed, run.copies, estimated)
            if len(rows):
                least = rows.min(axis=0)
                return LeafBound(
                    float(least[stripe_kernel.ENERGY]) * (1 - ROUNDING),
                    int(cycles.sum(axis=1).min()),
                    int(least[stripe_kernel.BYTES]),
                    int(least[stripe_kernel.INPUTS]),
                    int(least[stripe_kernel.WEIGHTS]),
                    0,
                    0,
                    tuple(int(turn) for turn in cycles.min(axis=0)),
                )
        return None

    def _whole(self, run: LeafRun) -> LeafBound | None:
        engine, rules = self.form.engine, self.form.rules
        leaf, mesh, menu, energy, cycles = engine.statement(run.layer, run.batch, run.first, run.tiles)
        for streamed, fetched, whole in self._flows(run):
            rows = leaf_bound_kernel.leaf_bound_rows(
                leaf=leaf,
                fetched=fetched,
                whole=whole,
                apart=run.apart,
                shared=self._reads_alike(run),
                mesh=mesh,
                prices=engine.prices,
                menu=menu,
                tile_energy=energy,
                tile_cycles=cycles,
                room=engine.room,
                result_room=rules.result_bytes,
                streamed=streamed,
            )
            if len(rows):
                least = rows.min(axis=0)
                return LeafBound(
                    float(least[ENERGY]) * (1 - ROUNDING),
                    int(least[CYCLES]),
                    int(least[BYTES]),
                    int(least[INPUTS]),
                    int(least[WEIGHTS]),
                    int(least[ONCE]),
                    int(least[TWICE]),
                )
        return None

    def _flows(self, run: LeafRun) -> Iterator[tuple[int, Flow, Flow]]:
        """Bytes of a buffer that weights are streamed through, first none; what comes from DRAM then, and the
        same with what comes from layers directly."""
        rules, layer = self.form.rules, self.form.network.layers[run.layer]
        counted = () if rules.free_concatenation else run.direct
        for streamed in (0, rules.streamed_bytes) if self.form.engine.may_stream(run.layer) else (0,):
            loads = 1 if streamed else run.runs
            fetched = _fetches(layer, run.direct, (), run.stored, loads)
            yield streamed, fetched, _fetches(layer, run.direct, counted, run.stored, loads)

    def _reads_alike(self, run: LeafRun) -> bool:
        """Whether the shares of channels all read the same of what comes directly."""
        producers = self.form.network.layers[run.layer].producers
        near = [producer for producer, passed in zip(producers, run.direct, strict=True) if passed]
        return all(producer.role == 0 and not producer.scattered for producer in near)


def _fetches(
    layer: SetLayer, direct: tuple[bool, ...], counted: tuple[bool, ...], stored: bool, runs: int
) -> Flow:
    """A layer's flow from DRAM, and those direct producers that are counted, as far as they pass on boxes."""
    rows = [
        (0, producer.offset, producer.channels, producer.role, producer.scattered, 0)
        for i, producer in enumerate(layer.producers)
        if not direct[i] or (counted and counted[i] and not producer.scattered)
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    return Flow(table, np.zeros(0, dtype=np.int64), stored, runs)
