"""The tile of SET's released program (SET-ISCA2023, ``PolarMapper``): cycles and energy of one share of a
layer.

A tile has 4 x 4 PEs of 8 lanes x 8 multipliers, with input, weight and sum buffers in every PE and a unified
buffer (UL3).  A pair of dimensions is spread over rows and columns of PEs; ``H1 x W1`` results and ``K1``
groups of lanes stay in a PE, and the loops around are, outermost first, output channels, samples and rows,
columns.  Along rows or columns of PEs that share data, a *broadcast* passes inputs or weights on instead of
writing copies. The mapper tries every pair, the widest ``W1`` for every ``H1`` and every legal broadcast,
and selects the least energy times cycles.

Two doubtful counts of the program are retained, since this module reproduces its figures: the
halo of inputs is that of rows of results, whatever the stride, and a second level of weights that the tile
lacks shields UL3 in one branch.
"""

from __future__ import annotations

import numpy as np

from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled

ROWS, COLUMNS, LANES = 4, 4, 8
BUS_BYTES, UL3_BYTES = 16, 256
INPUT_BYTES, WEIGHT_BYTES, SUM_BYTES = 8192 // LANES, 4096 // LANES, 2048 // LANES
"""Bytes of a PE's buffers per vector, vector and lane."""

AL1_READ, AL1_WRITE = 0.0485625 * 8, 0.0411625 * 8
WL1_READ, WL1_WRITE = 0.0381625 * 8, 0.0308875 * 8
OL1_READ, OL1_WRITE = 0.0802 * 8, 0.0709 * 8
OL2_READ, OL2_WRITE = 0.07648125 * 8, 0.0989875 * 8
UL3_READ, UL3_WRITE = 0.1317125 * 8, 0.234025 * 8
BUS_ENERGY, MAC_ENERGY = 0.018, 0.018
"""pJ per byte of inputs', weights', sums' and unified buffers, per byte on the bus, per MAC."""

VECTOR_LANES, VECTOR_ENERGY = 64, 0.0873
"""Operations per cycle of the vector units, and pJ of each."""

_C, _K, _H, _W, _B = 0, 1, 2, 3, 4
_PAIRS = ((_C, _K), (_C, _B), (_B, _K), (_C, _W), (_H, _K), (_H, _W))


@compiled
def _up(a: int, b: int) -> int:
    return -(-a // b)


@compiled
def map_share(
    share: Int64s, energy_power: float, delay_power: float
) -> tuple[float, float, float, float, float]:
    """The best mapping of one share of a convolution.

    Parameters
    ----------
    share : samples, output channels, rows, columns, input channels, taps along rows and columns, strides
        along rows and columns, groups; channels are those of one group
    energy_power, delay_power : of the objective

    Returns
    -------
    cycles, and pJ at the unified buffer, at the PEs' buffers, on the bus and in the MACs
    """
    b, k, h, w, c = share[0], share[1], share[2], share[3], share[4]
    r, s, step_h, step_w, groups = share[5], share[6], share[7], share[8], share[9]
    weights, results = r * s * c * k, h * w * k * b
    operations = c * k * r * s * h * w * b
    copies, rounds = 1, groups
    if groups > 1:
        copies = min(LANES // c, LANES // k)
        if copies > 1:
            copies = min(copies, groups)
            rounds = _up(groups, copies)
        else:
            copies = max(copies, 1)
    mac = operations * MAC_ENERGY * groups
    best = (0.0, 0.0, 0.0, 0.0, mac)
    least = np.inf
    for first, second in _PAIRS:
        over = np.ones(5, dtype=np.int64)
        over[first] *= ROWS
        over[second] *= COLUMNS
        weight_copies, input_copies = over[_H] * over[_W] * over[_B], over[_K]
        trips_c, trips_k = _up(c, LANES * over[_C]), _up(k, LANES * over[_K])
        own_c, own_k = _up(c, over[_C]), _up(k, over[_K])
        trips_h, trips_w, trips_b = _up(h, over[_H]), _up(w, over[_W]), _up(b, over[_B])
        compute = trips_c * trips_k * trips_h * trips_w * trips_b * r * s
        reads_by_k = operations // k * trips_k * over[_K]
        writes_by_c = operations // c * trips_c * over[_C]
        capacity_inputs, capacity_k = INPUT_BYTES // trips_c, WEIGHT_BYTES // (r * s * trips_c)
        widest = capacity_inputs // r
        if SUM_BYTES == 0 or capacity_k == 0 or widest < s:
            continue
        widest = min((widest - s) // step_w + 1, SUM_BYTES, trips_w)
        k1 = min(trips_k, capacity_k)
        around_k = _up(trips_k, k1)
        pass_k = min(around_k, weight_copies)
        outer_k = _up(around_k, pass_k) if pass_k > 1 else around_k
        tile_weights = r * s * own_c * min(own_k, k1 * LANES)
        last = 0
        for w1 in range(widest, 0, -1):
            reach = (w1 - 1) * step_w + s
            h1 = min(SUM_BYTES // w1, (capacity_inputs // reach - r) // step_h + 1, trips_h)
            if h1 == last:
                continue
            last = h1
            around_h, around_w = _up(trips_h, h1), _up(trips_w, w1)
            tile_cycles = r * s * trips_c * k1 * h1 * w1
            several = trips_b > 1 or around_h > 1
            pass_w = min(around_w, input_copies)
            outer_w = _up(around_w, pass_w) if pass_w > 1 else around_w
            for option in range(5):
                passes_w = option == 2 or option == 3 or option == 4
                passes_k = option == 1 or option == 2 or option == 4
                second_level = option >= 3
                if option == 1 and not (several and around_w > 1 and pass_k > 1):
                    continue
                if option >= 2 and pass_w <= 1:
                    continue
                if option == 2 and not (pass_k > 1 and outer_k > 1):
                    continue
                if option == 3 and not (several and outer_w > 1 and around_k > 1):
                    continue
                if option == 4 and not (several and outer_w > 1 and pass_k > 1 and outer_k > 1):
                    continue
                k3 = outer_k if passes_k else around_k
                k2 = k3
                kb = around_k
                w3 = outer_w if passes_w else around_w
                wb = around_w
                all_b = wb * around_h * trips_b
                all_3 = w3 * around_h * trips_b
                strips = 1 if wb == 1 else around_h
                halo_h = h + (r - step_h) * (strips * over[_H] - 1)
                halo_w = w + (s - step_w) * ((w3 if passes_w else 1) * over[_W] - 1)
                column = halo_h * c * b
                fetched_1 = column * halo_w
                fetches_1 = k2 if passes_w else k3
                reads_w1 = all_b
                writes_w1 = all_b if passes_k else (all_3 if second_level else 1)
                strips_2 = 1 if w3 == 1 else around_h
                fetched_2 = (
                    (h + (r - step_h) * (strips_2 * over[_H] - 1))
                    * (w + (s - step_w) * (over[_W] - 1))
                    * c
                    * b
                )
                fetches_2 = 1 if (passes_k and passes_w and not second_level) else k3
                reads_w2 = all_3 if (passes_w or second_level) else 1
                extra, shared_a = 0, 0
                if passes_w:
                    left = ((input_copies - 1) * wb) % input_copies
                    extra = column * (s - step_w) * over[_W] * fetches_1
                    whole = wb - wb % input_copies
                    rest = w - (w1 * whole + step_w - s) * over[_W]
                    shared_a = (column * rest * fetches_1 + extra) * left
                    extra *= w3 * (input_copies - 1)
                shared_w = 0
                if passes_k:
                    whole = kb - kb % weight_copies
                    rest = k - k1 * LANES * over[_K] * whole
                    shared_w = (
                        (weights // k) * rest * writes_w1 * (((weight_copies - 1) * kb) % weight_copies)
                    )
                inputs_ul3 = fetched_2 * fetches_2
                weights_2 = weights * reads_w2
                weights_ul3 = weights if second_level else weights_2
                a_read, a_write = reads_by_k, fetched_1 * fetches_1 * input_copies + extra
                bus_a, bus_w = 0, 0
                if passes_w:
                    bus_a = a_write - inputs_ul3
                    a_read += bus_a - shared_a
                w_read, w_write = weights * reads_w1 * weight_copies, weights * writes_w1 * weight_copies
                if passes_k:
                    bus_w = w_write - weights_2
                    w_read += bus_w - shared_w
                ul3 = inputs_ul3 + weights_ul3
                ubuf = ul3 * UL3_READ + results * UL3_WRITE
                inner = (
                    a_read * AL1_READ
                    + a_write * AL1_WRITE
                    + w_read * WL1_READ
                    + w_write * WL1_WRITE
                    + (writes_by_c + over[_C] * results) * OL1_READ
                    + writes_by_c * OL1_WRITE
                    + results * OL2_READ
                    + results * OL2_WRITE
                )
                bus = bus_w * BUS_ENERGY + bus_a * BUS_ENERGY
                if passes_k and tile_cycles * BUS_BYTES < tile_weights * copies:
                    continue
                if passes_w:
                    cycles = pass_k * tile_cycles if passes_k else tile_cycles
                    if cycles * BUS_BYTES < (h1 + r - step_h) * w1 * own_c * copies:
                        continue
                time = max(compute, _up(ul3 * copies, UL3_BYTES))
                if second_level:
                    time = max(time, _up(weights_2 * copies, UL3_BYTES), _up(weights * copies, UL3_BYTES))
                total = (ubuf + inner + bus + operations * MAC_ENERGY) * groups
                cost = total**energy_power * float(time * rounds) ** delay_power
                if cost < least:
                    least = cost
                    best = (float(time * rounds), ubuf * groups, inner * groups, bus * groups, mac)
    return best
