"""What one run of a layer in a segment costs at least, whatever partition it gets (KAPLA, section IV-B)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.kapla import floor_kernel
from tilewright.formulation.scheduling.tiled.kapla.floor_kernel import (
    BYTES,
    CYCLES,
    ENERGY,
    INPUTS,
    ONCE,
    TWICE,
    WEIGHTS,
)
from tilewright.formulation.scheduling.tiled.set import band_kernel
from tilewright.formulation.scheduling.tiled.set.band_kernel import band_costs
from tilewright.formulation.scheduling.tiled.set.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.layers import SetLayer
from tilewright.formulation.scheduling.tiled.set.leaf_kernel import Flow

Longs = npt.NDArray[np.int64]

ROUNDING = 1e-9
"""Part of an energy that is given away, as sums of floats depend on their order."""


@dataclass(frozen=True, slots=True)
class LeafFloor:
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


class LeafFloors:
    """Floors of the leaves of one closed form, kept once found."""

    def __init__(self, form: ClosedForm) -> None:
        self.form = form
        self.known: dict[tuple[object, ...], LeafFloor | None] = {}

    def leaf(
        self,
        layer: int,
        batch: int,
        first: int,
        tiles: int,
        stored: bool,
        runs: int,
        direct: tuple[bool, ...],
        apart: bool,
    ) -> LeafFloor | None:
        """The floor of one run; ``None`` where no partition fits the buffers.

        Parameters
        ----------
        stored : whether results go to DRAM
        runs : runs that share one load of the weights
        direct : per producer, whether it passes its results on directly
        apart : whether producers have tiles of their own
        """
        key = (self.form.engine.shapes[layer], batch, first, tiles, stored, runs, direct, apart)
        try:
            return self.known[key]
        except KeyError:
            found = self._leaf(layer, batch, first, tiles, stored, runs, direct, apart)
            self.known[key] = found
            return found

    def banded(
        self,
        layer: int,
        borders: tuple[int, ...],
        first: int,
        tiles: int,
        stored: bool,
        runs: int,
        direct: tuple[bool, ...],
        apart: bool,
        copies: int,
    ) -> LeafFloor | None:
        """The floor of all bands of a sample; ``None`` where no partition fits the buffers.

        Parameters
        ----------
        borders : of the bands
        copies : how often the inputs of a band lie in a buffer
        """
        shape = self.form.engine.shapes[layer]
        key = (shape, borders, first, tiles, stored, runs, direct, apart, copies)
        if key not in self.known:
            self.known[key] = self._banded(shape, borders, first, tiles, stored, runs, direct, apart, copies)
        return self.known[key]

    def _banded(
        self,
        layer: int,
        borders: tuple[int, ...],
        first: int,
        tiles: int,
        stored: bool,
        runs: int,
        direct: tuple[bool, ...],
        apart: bool,
        copies: int,
    ) -> LeafFloor | None:
        engine, rules = self.form.engine, self.form.rules
        stated = self.form.banded.statement(layer, borders, first, tiles, self.form.partitions.get(layer))
        for streamed, fetched, whole in self._flows(layer, direct, stored, runs):
            rows, cycles = band_costs(
                stated.leaf,
                stated.borders,
                stated.known,
                fetched,
                whole,
                True,
                apart,
                self._reads_alike(layer, direct),
                stated.mesh,
                engine.prices,
                stated.menu,
                stated.energy,
                stated.cycles,
                engine.room,
                rules.result_bytes,
                streamed,
                copies,
            )
            if len(rows):
                least = rows.min(axis=0)
                return LeafFloor(
                    float(least[band_kernel.ENERGY]) * (1 - ROUNDING),
                    int(cycles.sum(axis=1).min()),
                    int(least[band_kernel.BYTES]),
                    int(least[band_kernel.INPUTS]),
                    int(least[band_kernel.WEIGHTS]),
                    0,
                    0,
                    tuple(int(turn) for turn in cycles.min(axis=0)),
                )
        return None

    def _leaf(
        self,
        layer: int,
        batch: int,
        first: int,
        tiles: int,
        stored: bool,
        runs: int,
        direct: tuple[bool, ...],
        apart: bool,
    ) -> LeafFloor | None:
        engine, rules = self.form.engine, self.form.rules
        leaf, mesh, menu, energy, cycles = engine.statement(layer, batch, first, tiles)
        for streamed, fetched, whole in self._flows(layer, direct, stored, runs):
            rows = floor_kernel.floor_rows(
                leaf,
                fetched,
                whole,
                apart,
                self._reads_alike(layer, direct),
                mesh,
                engine.prices,
                menu,
                energy,
                cycles,
                engine.room,
                rules.result_bytes,
                streamed,
            )
            if len(rows):
                least = rows.min(axis=0)
                return LeafFloor(
                    float(least[ENERGY]) * (1 - ROUNDING),
                    int(least[CYCLES]),
                    int(least[BYTES]),
                    int(least[INPUTS]),
                    int(least[WEIGHTS]),
                    int(least[ONCE]),
                    int(least[TWICE]),
                )
        return None

    def _flows(
        self, layer: int, direct: tuple[bool, ...], stored: bool, runs: int
    ) -> Iterator[tuple[int, Flow, Flow]]:
        """Bytes of a buffer that weights are streamed through, first none; what comes from DRAM then, and the
        same with what comes from layers directly."""
        rules, one = self.form.rules, self.form.network.layers[layer]
        counted = () if rules.free_concatenation else direct
        for streamed in (0, rules.streamed_bytes) if self.form.engine.may_stream(layer) else (0,):
            loads = 1 if streamed else runs
            fetched = _fetches(one, direct, (), stored, loads)
            yield streamed, fetched, _fetches(one, direct, counted, stored, loads)

    def _reads_alike(self, layer: int, direct: tuple[bool, ...]) -> bool:
        """Whether the shares of channels all read the same of what comes directly."""
        producers = self.form.network.layers[layer].producers
        near = [one for one, passed in zip(producers, direct, strict=True) if passed]
        return all(one.role == 0 and not one.scattered for one in near)


def _fetches(
    layer: SetLayer, direct: tuple[bool, ...], counted: tuple[bool, ...], stored: bool, runs: int
) -> Flow:
    """A layer's flow from DRAM, and those direct producers that are counted, as far as they pass on boxes."""
    rows = [
        (0, one.offset, one.channels, one.role, one.scattered, 0)
        for i, one in enumerate(layer.producers)
        if not direct[i] or (counted and counted[i] and not one.scattered)
    ]
    found = np.array(rows, dtype=np.int64).reshape(-1, 6)
    return Flow(found, np.zeros(0, dtype=np.int64), stored, runs)
