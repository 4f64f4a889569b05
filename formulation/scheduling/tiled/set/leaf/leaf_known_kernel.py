"""What is known of a leaf's operands and results before its tiles are: bytes, multicasts and their kinds."""

from __future__ import annotations

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SUMMED
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import Flow, Leaf, Mesh, Shares
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_traffic_kernel import (
    Operand,
    fetched_bytes,
    has_operand,
    needed_box,
    operand_of,
    result_shares,
)
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import (
    LAYOUT_BORDERS,
    LAYOUT_SHARES,
    SAMPLES_FROM,
    SAMPLES_TO,
)
from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled

MANY = 1 << 62

KINDS = 3
"""Kinds of multicasts: to all shares of K, to all of H and W, to all of B, H and W."""

BYTES, SUM, LEAST, COUNT, KIND, RATIO = range(6)
"""What is known of an operand before tiles are: bytes of DRAM; of its multicasts the bytes from every port,
of all together and of the smallest one, their number, their kind, and the runs that share them.
"""

APART, KNOWN = KINDS, KINDS + 1
"""Instead of a kind: every tile has its own; ``SUM`` are bytes times links."""


@compiled
def _has_empty(shares: Shares) -> bool:
    """Whether there are shares of nothing."""
    for borders in (shares.k, shares.b, shares.h, shares.w):
        for i in range(len(borders) - 1):
            if borders[i] == borders[i + 1]:
                return True
    return False


@compiled
def _passed_bytes(operand: Operand, flow: Flow, need: Int64s) -> int:
    """Bytes of a box that a producer's tiles have."""
    layout = flow.layouts[operand.start :]
    passed: int = need[SAMPLES_TO] - need[SAMPLES_FROM]
    at = LAYOUT_BORDERS
    for axis in (0, 2, 4, 6):
        at += layout[LAYOUT_SHARES + axis // 2]
        if axis != 2:
            low = need[axis] - (operand.offset if axis == 0 else 0)
            high = need[axis + 1] - (operand.offset if axis == 0 else 0)
            passed *= max(0, min(high, layout[at]) - max(low, 0))
        at += 1
    return passed


@compiled(inline=True)
def _add_size(known: Int64s, size: int, ports: int) -> None:
    """One more multicast."""
    known[BYTES] += size
    known[SUM] += size // ports
    known[LEAST] = min(known[LEAST], size // ports)
    known[COUNT] += 1


@compiled
def know_results(known: Int64s, leaf: Leaf, flow: Flow, mesh: Mesh, shares: Shares) -> None:
    """Fill in what is known of the results that one run stores.

    Parameters
    ----------
    known : ``BYTES`` to ``RATIO``, shape (6,); overwritten
    leaf, flow : what runs, and whether its results go to DRAM
    mesh : for its number of ports
    shares : how the results are divided
    """
    known[:] = 0
    known[LEAST], known[KIND], known[RATIO] = MANY, APART, flow.runs if leaf.window == SUMMED else 1
    if not flow.stored:
        known[LEAST] = 0
        return
    sizes, _ = result_shares(leaf, shares)
    for share in range(len(sizes)):
        _add_size(known, sizes[share], len(mesh.ports.at))
    known[BYTES] //= known[RATIO]


@compiled
def know_operand(known: Int64s, leaf: Leaf, flow: Flow, mesh: Mesh, shares: Shares, which: int) -> None:
    """Fill in what is known of one operand.

    Parameters
    ----------
    known : ``BYTES`` to ``RATIO``, shape (6,); overwritten
    leaf, flow : what runs, and where its data comes from
    mesh : for its ports and its defects
    shares : how the results are divided
    which : producer from 0 on, -1 for inputs of DRAM, -2 for weights of DRAM
    """
    known[:] = 0
    known[KIND], known[RATIO] = KNOWN, 1
    if not has_operand(leaf, which):
        return
    operand, empty = operand_of(leaf, flow, which), _has_empty(shares)
    if operand.direct and (operand.scattered or mesh.free_concatenation or empty):
        return
    over_k, over_b, over_hw = operand.over_k, operand.over_b, operand.over_hw
    pk, pb, ph, pw = len(shares.k) - 1, len(shares.b) - 1, len(shares.h) - 1, len(shares.w) - 1
    if not operand.direct:
        known[KIND] = 0 if over_k else 2 if over_b else 1 if over_hw else APART
        known[LEAST], known[RATIO] = MANY, operand.ratio
    further = (pk if over_k else 1) * (pb if over_b else 1) * (ph * pw if over_hw else 1) - 1
    need, ports = np.zeros(8, dtype=np.int64), len(mesh.ports.at)
    for k in range(1 if over_k else pk):
        k0, k1 = shares.k[k], shares.k[k + 1]
        for b in range(1 if over_b else pb):
            b0, b1 = shares.b[b], shares.b[b + 1]
            for h in range(1 if over_hw else ph):
                h0, h1 = shares.h[h], shares.h[h + 1]
                for w in range(1 if over_hw else pw):
                    w0, w1 = shares.w[w], shares.w[w + 1]
                    if k1 <= k0 or b1 <= b0 or h1 <= h0 or w1 <= w0:
                        continue
                    needed_box(leaf, operand, need, (k0, k1), (b0, b1), (h0, h1), (w0, w1))
                    if operand.direct:
                        known[SUM] += _passed_bytes(operand, flow, need) * further
                    else:
                        _add_size(known, fetched_bytes(operand, need), ports)
    known[BYTES] //= operand.ratio
    if empty:
        known[LEAST] = 0


@compiled
def producer_bytes(leaf: Leaf, flow: Flow, mesh: Mesh, shares: Shares) -> int:
    """Bytes that one run reads of all producers of a flow whose results come from DRAM.

    Parameters
    ----------
    leaf : or a stripe of one
    flow : its producers
    mesh : for its ports and its defects
    shares : how the results are divided
    """
    known, size = np.zeros(6, dtype=np.int64), 0
    for which in range(len(flow.producers)):
        know_operand(known, leaf, flow, mesh, shares, which)
        size += known[BYTES]
    return size
