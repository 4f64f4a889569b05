"""Lower bounds on one run of a layer in a segment, over all its partitions (KAPLA, section IV-B)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import CONVOLUTION, SetLayer
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import Flow
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.foundation.arrays import Int64s

ROUNDING = 1e-9
"""Relative slack of an energy, as sums of floats depend on their order."""


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
    turns : cycles of every stripe; the others are of all of them
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
    batch : samples; 1 where it runs in row stripes
    first, tiles : where it runs
    stored : whether results go to DRAM
    runs : runs that share one load of the weights
    direct : per producer, whether it passes its results on directly
    apart : whether producers have tiles of their own
    borders : of its row stripes; empty where it makes all rows at once
    copies : how often the inputs of a stripe lie in a buffer
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
    """Lower bounds of the leaves of one closed form, cached."""

    def __init__(self, form: ClosedForm) -> None:
        self.form = form
        self.known: dict[LeafRun, LeafBound | None] = {}

    def lower_bound(self, run: LeafRun) -> LeafBound | None:
        """The least of one run, all stripes of its sample together; ``None`` where no partition fits."""
        run = run._replace(layer=self.form.engine.shapes[run.layer])
        if run not in self.known:
            self.known[run] = self._least(run)
        return self.known[run]

    def _least(self, run: LeafRun) -> LeafBound | None:
        engine = self.form.engine
        fixed = self.form.partitions.get(run.layer) if run.borders else None
        stated = engine.statement(run.layer, run.batch, run.first, run.tiles, run.borders, fixed)
        for streamed, fetched, passed in self._flows(run):
            rows = engine.rows(stated, fetched, streamed, run.copies, passed)
            if len(rows.row):
                energy = rows.energy(engine.prices, self._links(run, stated.menu.rows[rows.row, 0]))
                return LeafBound(
                    float(energy.min()) * (1 - ROUNDING),
                    int(rows.cycles.sum(axis=1).min()),
                    int(rows.moved.sum(axis=1).min()),
                    int(rows.inputs.min()),
                    int(rows.weights.min()),
                    int(rows.once.min()),
                    int(rows.twice.min()),
                    tuple(int(turn) for turn in rows.cycles.min(axis=0)),
                )
        return None

    def _links(self, run: LeafRun, parts: Int64s) -> Int64s:
        """Links that a byte passes at least that comes from a layer directly, by the shares of channels.

        A byte that ``m`` tiles need passes ``m - 1``, and one more where the tile that made it is none of
        these.
        """
        layer = self.form.network.layers[run.layer]
        alike = layer.window == CONVOLUTION and self._reads_alike(run)
        targets = np.minimum(parts, layer.channels) if alike else np.ones_like(parts)
        return targets - 1 + run.apart

    def _flows(self, run: LeafRun) -> Iterator[tuple[int, Flow, Flow]]:
        """Bytes of a buffer that weights are streamed through, first none; what comes from DRAM then, and
        what comes from layers directly as if it came from DRAM.
        """
        layer, engine = self.form.network.layers[run.layer], self.form.engine
        fetched = [not direct for direct in run.direct]
        passed = [
            direct and not producer.scattered and not self.form.rules.free_concatenation
            for producer, direct in zip(layer.producers, run.direct, strict=True)
        ]
        for streamed in engine.stream_bytes(run.layer):
            loads = 1 if streamed else run.runs
            yield (
                streamed,
                _fetches(layer, fetched, run.stored, loads),
                _fetches(layer, passed, run.stored, loads),
            )

    def _reads_alike(self, run: LeafRun) -> bool:
        """Whether the shares of channels all read the same of what comes directly."""
        producers = self.form.network.layers[run.layer].producers
        near = [producer for producer, passed in zip(producers, run.direct, strict=True) if passed]
        return all(producer.role == 0 and not producer.scattered for producer in near)


def _fetches(layer: SetLayer, chosen: Sequence[bool], stored: bool, runs: int) -> Flow:
    """A layer's flow from DRAM, of some of its producers."""
    rows = [
        (0, producer.offset, producer.channels, producer.role, producer.scattered, 0)
        for producer, is_chosen in zip(layer.producers, chosen, strict=True)
        if is_chosen
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    return Flow(table, np.zeros(0, dtype=np.int64), stored, runs)
