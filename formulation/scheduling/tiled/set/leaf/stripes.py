"""Row stripes: parts of a sample in which the layers of a segment run and pass on their results.

If no layer of the segment reads a layer, its stripes are equal.  Otherwise each stripe ends where the
readers' stripes of the same number stop reading: a window of three rows moves the border of its producer one
row on, one of stride 2 doubles it.  So a stripe never needs later stripes; what it needs of earlier ones is
the halo; and no row is computed twice.

A weight update, alone in its segment, runs in equal stripes of the rows of the arriving gradient, and adds
them up.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tilewright.formulation.scheduling.tiled.set.leaf.layers import (
    CONVOLUTION,
    GROUPED,
    SAMPLING,
    SetLayer,
    SetNetwork,
    shares,
)

Borders = tuple[int, ...]


def reach(layer: SetLayer, rows: int) -> int:
    """The row after the last input row that the first ``rows`` rows of the results read.

    Of a weight update, ``rows`` are rows of the gradient.
    """
    if rows <= 0:
        return 0
    if layer.spread:
        return min(layer.input_rows, (rows - 1) // layer.stride_rows + 1)
    if layer.is_summed:
        return max(0, min(layer.input_rows, (rows - 1) * layer.hop_rows + layer.stride_rows - layer.pad_rows))
    last = (rows - 1) * layer.stride_rows + layer.taps_rows - layer.pad_rows
    return max(0, min(layer.input_rows, last))


def stripe_borders(network: SetNetwork, layers: Sequence[int], stripes: int) -> dict[int, Borders] | None:
    """Per layer of a segment, the borders of its row stripes; ``None`` where it cannot run in so many.

    It cannot where a stripe of some layer would be empty, where a layer mixes rows with channels or needs all
    results of another as its weights, and where results are reshaped between two layers.

    Parameters
    ----------
    layers : in the order of the segment
    stripes : number of stripes
    """
    first = network.layers[layers[0]]
    if first.is_summed and len(layers) == 1:
        return {layers[0]: shares(first.taps_rows, stripes)} if stripes <= first.taps_rows else None
    inside = set(layers)
    reads: dict[int, list[tuple[SetLayer, Borders, bool]]] = {read: [] for read in layers}
    borders_of: dict[int, Borders] = {}
    for number in reversed(layers):
        layer = network.layers[number]
        if layer.window not in (CONVOLUTION, GROUPED, SAMPLING) or layer.makes_weights:
            return None
        borders = shares(layer.rows, stripes)
        if reads[number]:
            ends = [0] * (stripes - 1)
            for reader, theirs, late in reads[number]:
                for at in range(1, stripes):
                    end = theirs[at] if late else reach(reader, theirs[at])
                    ends[at - 1] = max(ends[at - 1], end)
            borders = (0, *ends, layer.rows)
        if any(low >= high for low, high in itertools.pairwise(borders)):
            return None
        borders_of[number] = borders
        for read in layer.producers:
            if read.layer in inside:
                if read.scattered:
                    return None
                reads[read.layer].append((layer, borders, read.late))
    return borders_of


def known_rows(layer: SetLayer, borders: Borders) -> tuple[int, ...]:
    """Per row stripe, the first input row that the stripe before it has not read completely."""
    return tuple(reach(layer, low) for low in borders[:-1])


def stripe_parts(borders: Borders, parts: int) -> Borders:
    """Borders of the shares of all row stripes; every stripe is divided among ``parts`` tiles."""
    ends = [0]
    for low, high in itertools.pairwise(borders):
        ends += [low + border for border in shares(high - low, parts)[1:]]
    return tuple(ends)
