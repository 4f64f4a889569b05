"""The loose estimate that KAPLA describes (section IV-B): everything still undecided is assumed at its best.

A segment uses the capacity of all tiles and buffers together; work spreads evenly over tiles; every layer
inside forwards to every other; each byte is read and written once, of strided windows only the rows and
columns they touch; pipelines need no time to fill.  Like `Estimator` it is a lower bound, and far from the
costs where pipelines are short.
"""

from __future__ import annotations

from math import ceil

from tilewright.formulation.scheduling.tiled.kapla.estimate import SegmentBound
from tilewright.formulation.scheduling.tiled.kapla.leaf_bounds import ROUNDING
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SUM_BYTES, Producer, SetLayer
from tilewright.formulation.scheduling.tiled.set.leaf.stripes import reach, stripe_borders
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit


class AggregateEstimator:
    """Judges schemes by aggregate resources.

    Parameters
    ----------
    form : whose costs are bounded
    loads : samples for which weights are loaded once
    """

    def __init__(self, form: ClosedForm, loads: int) -> None:
        self.form, self.loads = form, loads
        self.tiles = form.engine.grid.tiles
        self.known: dict[tuple[object, ...], tuple[float, float] | None] = {}

    def lower_bound(self, scheme: SegmentScheme) -> SegmentBound | Unfit:
        """The least that a scheme can cost, or why no partition makes it legal."""
        form = self.form
        prices, network = form.engine.prices, form.network
        batch = scheme.batch // scheme.groups
        runs = max(1, self.loads // batch)
        inside = scheme.end & ~scheme.start
        borders: dict[int, tuple[int, ...]] = {}
        if scheme.stripes > 1:
            borders = stripe_borders(network, scheme.layers, scheme.stripes) or {}
            if not borders:
                return Unfit(f"{network.layers[scheme.layers[0]].name}: cannot run in bands of rows")
        work, energy, dram = 0.0, 0.0, 0
        held, most, pinned = 0, 0, 0
        for number in scheme.layers:
            layer = network.layers[number]
            share = self._share(number, batch, borders.get(number, ()))
            if share is None:
                return Unfit(f"{layer.name}: with no partition its inputs fit the buffers")
            weights = 0 if layer.is_summed else min(layer.weight_bytes, _weights(layer))
            reads = [_bytes(layer, producer) * batch for producer in layer.producers]
            outside = _external(layer) * batch
            inputs = sum(reads) + outside
            moved = weights // runs + outside
            moved += sum(
                size
                for size, producer in zip(reads, layer.producers, strict=True)
                if not inside >> producer.layer & 1
            )
            results = layer.stored_bytes(batch) // (runs if layer.is_summed else 1)
            if network.masks[number][1] & ~inside or layer.is_output:
                moved += results
            stored = inputs * prices.write + weights * prices.write / runs
            work, energy = work + share[0], energy + share[1] + stored
            energy += results * prices.read
            dram += moved
            largest = -(-inputs // scheme.stripes)  # of equal stripes; of others it is more
            held += largest * (2 if scheme.groups * scheme.stripes > 1 else 1)
            most = max(most, largest)
            streamed = form.rules.streamed_bytes
            pinned += min(weights, streamed) if streamed else weights
            if layer.is_summed and not streamed:
                pinned += layer.output_bytes * SUM_BYTES
        groups, capacity = scheme.groups, form.capacity * self.tiles
        needed = (
            held + pinned if scheme.kind == "S" else most + (pinned if groups * scheme.stripes > 1 else 0)
        )
        if needed > capacity:
            return Unfit(
                f"{network.layers[scheme.layers[0]].name}: {needed} bytes, all buffers hold {capacity}"
            )
        dram *= groups
        energy = (energy * groups + dram * prices.dram) * (1 - ROUNDING)
        cycles = max(ceil(work * groups / self.tiles * (1 - ROUNDING)), ceil(dram / form.machine.dram_rate))
        return SegmentBound(energy, cycles, dram)

    def _share(self, layer: int, batch: int, borders: tuple[int, ...]) -> tuple[float, float] | None:
        """The least cycles times tiles and the least pJ in tiles of one run, over all numbers of tiles."""
        key = (self.form.engine.shapes[layer], batch, borders)
        if key not in self.known:
            work, energy = [], []
            for tiles in range(1, self.tiles + 1):
                menu = self.form.engine.statement(layer, batch, 0, tiles, borders).menu
                each, cycles = menu.energy.sum(axis=1), menu.cycles.sum(axis=1)
                mapped = cycles > 0
                if mapped.any():
                    work.append(float(cycles[mapped].min()) * tiles)
                    energy.append(float(each[mapped].min()) * tiles)
            self.known[key] = (min(work), min(energy)) if work else None
        return self.known[key]


def _weights(layer: SetLayer) -> int:
    """Bytes of stored weights that shares of output channels add up to."""
    if layer.makes_weights:
        return 0
    return layer.channels * (layer.inputs // layer.groups) * layer.taps_rows * layer.taps_columns


def _touched(results: int, taps: int, stride: int, pad: int, exist: int) -> int:
    """Positions along an axis that windows touch at least."""
    return max(0, min(results * min(taps, stride), exist, (results - 1) * stride + taps - pad))


def _positions(layer: SetLayer) -> int:
    if layer.is_summed:
        return reach(layer, layer.taps_rows) * layer.input_columns
    if layer.spread:
        high = min((layer.rows - 1) // layer.stride_rows + 1, layer.input_rows)
        return high * min((layer.columns - 1) // layer.stride_columns + 1, layer.input_columns)
    rows = _touched(layer.rows, layer.taps_rows, layer.stride_rows, layer.pad_rows, layer.input_rows)
    columns = _touched(
        layer.columns, layer.taps_columns, layer.stride_columns, layer.pad_columns, layer.input_columns
    )
    return rows * columns


def _external(layer: SetLayer) -> int:
    """Bytes of one sample that come from outside of the network at least."""
    return min(layer.external, layer.inputs) * _positions(layer)


def _bytes(layer: SetLayer, producer: Producer) -> int:
    """Bytes of one sample that a layer reads of a producer at least."""
    if producer.weights or producer.scattered:
        return 0
    if producer.late:
        return min(producer.channels, layer.channels) * layer.rows * layer.columns
    return min(producer.channels, layer.inputs) * _positions(layer)
