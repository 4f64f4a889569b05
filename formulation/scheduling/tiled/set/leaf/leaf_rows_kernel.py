"""What a leaf moves and spends with every partition of a menu, stripe by stripe, in machine code.

A leaf runs in row stripes of its results; a whole leaf has a single stripe.  All stripes share one partition,
applied to their own rows; the stripes of a weight update are rows of the gradient.  Where tiles do not divide
the rows, the rows that a stripe shares with the one before are in the buffers already and do not travel
again.  Weights are loaded for the first stripe only, unless they are streamed.

What passes on directly from layers whose tiles are not known is reported separately: its bytes are counted,
and the caller bounds its links.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SUMMED
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import (
    Flow,
    Leaf,
    Mesh,
    Prices,
    buffer_energy,
    divided,
    fullest,
    usage,
)
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_known_kernel import producer_bytes
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_traffic_kernel import traffic
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import DRAM, HOPS
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled

NEVER = 1 << 40
"""Runs that share one load of weights, where a stripe finds them loaded."""


class LeafRows(NamedTuple):
    """One row per partition of a menu that fits the buffers.

    Parameters
    ----------
    row : of the menu
    inputs, weights : bytes in all buffers together, inputs of the largest stripe
    once, twice : bytes in the fullest buffer that holds its inputs once, or twice
    inside : per stripe, pJ in the tiles and at their buffers
    hops, moved : per stripe, bytes times links, and bytes of DRAM
    passed : per stripe, bytes that pass on directly; neither ``hops`` nor ``moved`` has them
    cycles : per stripe, of the slowest of array and DRAM
    """

    row: Int64s
    inputs: Int64s
    weights: Int64s
    once: Int64s
    twice: Int64s
    inside: Floats
    hops: Int64s
    moved: Int64s
    passed: Int64s
    cycles: Floats

    def energy(self, prices: Prices, links: Int64s | int = 0) -> Floats:
        """pJ of every row, all stripes together.

        Parameters
        ----------
        links : per row, the least number of links that a directly passed byte takes
        """
        energy = np.zeros(len(self.row))
        for inside, hops, moved, passed in zip(
            self.inside.T, self.hops.T, self.moved.T, self.passed.T, strict=True
        ):
            energy += inside
            energy += (hops + passed * links) * prices.hop + moved * prices.dram
        return energy


@compiled
def stripe_of(leaf: Leaf, low: int, high: int, known: int) -> Leaf:
    """One row stripe of a leaf.

    Parameters
    ----------
    leaf : the whole
    low, high : first row of the results and the one after the last; of a weight update, rows of the gradient
    known : rows of the inputs before it lie in the buffers already and do not travel
    """
    rows, taps = high - low, leaf.taps_rows
    if leaf.window == SUMMED:
        rows, taps = leaf.rows, high - low
    return Leaf(
        window=leaf.window,
        channels=leaf.channels,
        rows=rows,
        columns=leaf.columns,
        inputs=leaf.inputs,
        taps_rows=taps,
        taps_columns=leaf.taps_columns,
        stride_rows=leaf.stride_rows,
        stride_columns=leaf.stride_columns,
        pad_rows=leaf.pad_rows,
        pad_columns=leaf.pad_columns,
        input_rows=leaf.input_rows,
        input_columns=leaf.input_columns,
        groups=leaf.groups,
        spread=leaf.spread,
        operands=leaf.operands,
        late=leaf.late,
        weighs=leaf.weighs,
        made=leaf.made,
        external=leaf.external,
        batch=leaf.batch,
        first_row=low,
        known_row=known,
        hop_rows=leaf.hop_rows,
    )


@compiled
def largest_shares(
    leaf: Leaf, borders: Int64s, parts: Int64s, idle: bool, inputs: Int64s, weights: Int64s
) -> None:
    """Fill in, per share, the largest inputs and the largest weights of any stripe.

    Parameters
    ----------
    leaf : the whole
    borders : rows between which its stripes lie, shape (stripes + 1,)
    parts : numbers of shares along K, B, H and W, shape (4,)
    idle : a defect: tiles whose share is empty receive data too
    inputs, weights : bytes per share, shape (shares,); overwritten
    """
    stripe_in, stripe_weights = np.zeros_like(inputs), np.zeros_like(weights)
    inputs[:], weights[:] = 0, 0
    for j in range(len(borders) - 1):
        usage(stripe_of(leaf, borders[j], borders[j + 1], 0), parts, idle, stripe_in, stripe_weights)
        for i in range(len(inputs)):
            inputs[i], weights[i] = max(inputs[i], stripe_in[i]), max(weights[i], stripe_weights[i])


@compiled
def equal_parts(menu: Int64s, row: int) -> bool:
    """Whether a row of a menu has the shares of the row before, and only another order."""
    equal = row > 0
    for i in range(4):
        equal = equal and menu[row, i] == menu[row - 1, i]
    return equal


@compiled
def leaf_rows(
    leaf: Leaf,
    borders: Int64s,
    known: Int64s,
    flow: Flow,
    passed: Flow,
    mesh: Mesh,
    prices: Prices,
    menu: Int64s,
    tile_energy: Floats,
    tile_cycles: Floats,
    capacity: int,
    result_bytes: int,
    streamed: int,
    copies: int,
) -> Any:
    """The fields of `LeafRows`.

    Parameters
    ----------
    borders, known : of the stripes, and the rows of inputs that each finds in the buffers
    flow : what comes from DRAM, and from layers whose tiles are known
    passed : what comes directly from layers whose tiles are not known, as if it came from DRAM
    menu : shares and steps per dimension, shape (rows, 8); rows of equal shares follow each other
    tile_energy, tile_cycles : of the largest share on its tile, shape (rows, stripes); no cycles where it
        cannot be mapped
    capacity, result_bytes : bytes of a buffer, and of it for results
    streamed : bytes of a buffer through which weights are streamed, 0 where they have to fit
    copies : how often the inputs of a stripe lie in a buffer
    """
    tiles, stripes, rows = len(mesh.x), len(borders) - 1, len(menu)
    counts = np.zeros(2, dtype=np.int64)
    inputs, weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    most, pinned = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    row_of, once, twice = (
        np.empty(rows, dtype=np.int64),
        np.empty(rows, dtype=np.int64),
        np.empty(rows, dtype=np.int64),
    )
    all_inputs, all_weights = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    inside, cycles = np.empty((rows, stripes), dtype=np.float64), np.empty((rows, stripes), dtype=np.float64)
    hops, moved = np.empty((rows, stripes), dtype=np.int64), np.empty((rows, stripes), dtype=np.int64)
    direct = np.empty((rows, stripes), dtype=np.int64)
    at_buffers, directly = np.zeros(stripes), np.zeros(stripes, dtype=np.int64)
    later = Flow(flow.producers, flow.layouts, flow.stored, NEVER)
    count, fits = 0, False
    for row in range(rows):
        parts, steps = menu[row, :4], menu[row, 4:]
        # shares, and so all but the links, are the same in every order of the dimensions
        again = equal_parts(menu, row)
        if not again:
            largest_shares(leaf, borders, parts, mesh.idle_receive, most, pinned)
            most_inputs, most_weights = fullest(most, pinned, streamed)
            fits = result_bytes + copies * most_inputs + most_weights <= capacity
            for j in range(stripes):
                fits = fits and tile_cycles[row, j] > 0
        if not fits:
            continue
        for j in range(stripes):
            # only tiles that see all rows meet again what they have read for the stripe before
            before = known[j] if parts[2] == 1 or leaf.window == SUMMED else 0
            stripe = stripe_of(leaf, borders[j], borders[j + 1], before)
            now = later if j > 0 and streamed == 0 else flow
            if not again:
                usage(stripe, parts, mesh.idle_receive, inputs, weights)
                at_buffers[j] = buffer_energy(stripe, inputs, weights, now.runs, prices)
                directly[j] = 0
                if len(passed.producers) > 0:
                    directly[j] = producer_bytes(stripe, passed, mesh, divided(stripe, parts, steps))
            traffic(counts, stripe, now, mesh, parts, steps, False)
            inside[count, j] = tile_energy[row, j] * tiles + at_buffers[j]
            hops[count, j], moved[count, j], direct[count, j] = counts[HOPS], counts[DRAM], directly[j]
            cycles[count, j] = max(tile_cycles[row, j], np.ceil(counts[DRAM] / prices.rate))
        row_of[count], all_inputs[count], all_weights[count] = row, 0, 0
        once[count], twice[count] = 0, 0
        for i in range(tiles):
            arriving, staying = most[i], pinned[i] if streamed == 0 else min(pinned[i], streamed)
            if leaf.made:  # weights that other layers make arrive as inputs do
                arriving, staying = arriving + staying, 0
            all_inputs[count] += arriving
            all_weights[count] += staying
            filled = arriving + staying + (result_bytes if arriving > 0 else 0)
            once[count], twice[count] = max(once[count], filled), max(twice[count], filled + arriving)
        count += 1
    return (
        row_of[:count],
        all_inputs[:count],
        all_weights[:count],
        once[:count],
        twice[:count],
        inside[:count],
        hops[:count],
        moved[:count],
        direct[:count],
        cycles[:count],
    )
