"""What one run of a leaf moves, operand by operand, in machine code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.formulation.scheduling.tiled.set.leaf.layers import CONVOLUTION, SUMMED
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import (
    CHANNELS,
    DIRECT,
    OFFSET,
    ROLE,
    SCATTERED,
    START,
    Flow,
    Leaf,
    Mesh,
    Shares,
    divided,
    input_box,
    volume,
)
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import (
    CHANNELS_FROM,
    CHANNELS_TO,
    COLUMNS_FROM,
    COLUMNS_TO,
    HOPS,
    LAYOUT_BATCH,
    ROWS_FROM,
    ROWS_TO,
    SAMPLES_FROM,
    SAMPLES_TO,
    Targets,
    aim,
    fetch,
    forget,
    measure,
    no_targets,
    receive,
    store,
)
from tilewright.foundation.arrays import Int64s
from tilewright.foundation.compiled import compiled


@compiled(inline=True)
def aim_at_shares(
    targets: Targets,
    mesh: Mesh,
    shares: Shares,
    k: tuple[int, int],
    b: tuple[int, int],
    h: tuple[int, int],
    w: tuple[int, int],
) -> None:
    """Make the tiles of a box of shares the targets; those of empty shares only if they receive data too.

    Parameters
    ----------
    targets : overwritten
    mesh : tiles of the leaf
    shares : their borders and steps
    k, b, h, w : of each dimension, the first share of the box and the one after the last
    """
    forget(targets)
    steps, idle = shares.steps, mesh.idle_receive
    for k2 in range(k[0], k[1]):
        if shares.k[k2] == shares.k[k2 + 1] and not idle:
            continue
        for b2 in range(b[0], b[1]):
            if shares.b[b2] == shares.b[b2 + 1] and not idle:
                continue
            for h2 in range(h[0], h[1]):
                if shares.h[h2] == shares.h[h2 + 1] and not idle:
                    continue
                for w2 in range(w[0], w[1]):
                    if shares.w[w2] == shares.w[w2 + 1] and not idle:
                        continue
                    at = steps[0] * k2 + steps[1] * b2 + steps[2] * h2 + steps[3] * w2
                    aim(targets, mesh.x[at], mesh.y[at])


class Operand(NamedTuple):
    """What the tiles of a leaf read from one place.

    Parameters
    ----------
    direct : whether it comes straight from the tiles that made it; ``start``: where their layout begins
    offset, channels : of the leaf's operand
    weights, late : what it stands for; both false for inputs
    scattered : whether every tile reads its share of every part
    over_k, over_b, over_hw : whether shares that differ in nothing but that dimension read the same
    ratio : runs that share what is counted
    """

    direct: bool
    start: int
    offset: int
    channels: int
    weights: bool
    late: bool
    scattered: bool
    over_k: bool
    over_b: bool
    over_hw: bool
    ratio: int


@compiled
def has_operand(leaf: Leaf, which: int) -> bool:
    """Whether anything is read: of a producer always, of DRAM's inputs (-1) or weights (-2) not always."""
    if which == -2:
        return leaf.weighs and not leaf.made
    return which >= 0 or leaf.external > 0


@compiled
def operand_of(leaf: Leaf, flow: Flow, which: int) -> Operand:
    """Producer ``which`` of a leaf, or DRAM's inputs (-1), or weights (-2)."""
    direct, start, offset, channels, scattered, ratio = False, 0, 0, leaf.external, False, 1
    weights, late, summed = which == -2, False, leaf.window == SUMMED
    if which >= 0:
        row = flow.producers[which]
        direct, offset, channels, start = row[DIRECT] != 0, row[OFFSET], row[CHANNELS], row[START]
        weights, late, scattered = row[ROLE] == 1, row[ROLE] == 2, row[SCATTERED] != 0
        # a whole run of the producer is counted, which serves several runs where it has more samples
        if direct and not scattered:
            ratio = max(1, flow.layouts[start + LAYOUT_BATCH] // leaf.batch)
    elif which == -2:
        channels = leaf.channels
        ratio = 1 if summed else flow.runs
    over_k = leaf.window == CONVOLUTION and not weights and not late
    # weights that other layers make differ from sample to sample, stored ones do not
    over_b = weights and not leaf.made and not summed
    return Operand(
        direct=direct,
        start=start,
        offset=offset,
        channels=channels,
        weights=weights,
        late=late,
        scattered=scattered,
        over_k=over_k,
        over_b=over_b,
        over_hw=weights,
        ratio=ratio,
    )


@compiled
def needed_box(
    leaf: Leaf,
    operand: Operand,
    need: Int64s,
    k: tuple[int, int],
    b: tuple[int, int],
    h: tuple[int, int],
    w: tuple[int, int],
) -> None:
    """Fill in the box of an operand that a box of results reads.

    Parameters
    ----------
    leaf : or a stripe of one
    operand : inputs, weights or an operand of a fused layer
    need : begin and end of channels, samples, rows and columns, shape (8,); overwritten
    k, b, h, w : begin and end of the box of results in each dimension
    """
    if operand.weights:
        summed = leaf.window == SUMMED
        need[CHANNELS_FROM], need[CHANNELS_TO] = k
        need[SAMPLES_FROM], need[SAMPLES_TO] = b if leaf.made or summed else (0, 1)
        need[ROWS_FROM], need[ROWS_TO] = 0, 1 if summed else leaf.inputs // leaf.groups
        need[COLUMNS_FROM], need[COLUMNS_TO] = 0, leaf.taps_rows * leaf.taps_columns
        if summed:
            need[ROWS_TO], need[COLUMNS_TO] = leaf.taps_rows, leaf.taps_columns
    elif operand.late:
        need[CHANNELS_FROM], need[CHANNELS_TO], need[SAMPLES_FROM], need[SAMPLES_TO] = k[0], k[1], b[0], b[1]
        need[ROWS_FROM], need[ROWS_TO] = leaf.first_row + h[0], leaf.first_row + h[1]
        need[COLUMNS_FROM], need[COLUMNS_TO] = w
    else:
        input_box(
            leaf=leaf, need=need, k0=k[0], k1=k[1], b0=b[0], b1=b[1], h0=h[0], h1=h[1], w0=w[0], w1=w[1]
        )


@compiled
def fetched_bytes(operand: Operand, need: Int64s) -> int:
    """Bytes of a box that DRAM has; the box is cut to the channels of the operand."""
    if not operand.scattered:
        need[CHANNELS_FROM] = max(need[CHANNELS_FROM], operand.offset)
        need[CHANNELS_TO] = max(
            need[CHANNELS_FROM], min(need[CHANNELS_TO], operand.offset + operand.channels)
        )
    return volume(need)


@compiled
def _receive_parts(
    counts: Int64s,
    leaf: Leaf,
    operand: Operand,
    flow: Flow,
    mesh: Mesh,
    shares: Shares,
    targets: Targets,
    loads: bool,
    enough: float,
) -> None:
    """Count what all tiles read of one operand, until more than ``enough`` bytes times links are counted."""
    pk, pb, ph, pw = len(shares.k) - 1, len(shares.b) - 1, len(shares.h) - 1, len(shares.w) - 1
    need = np.zeros(8, dtype=np.int64)
    direct, over_k, over_b, over_hw = operand.direct, operand.over_k, operand.over_b, operand.over_hw
    # along a dimension in which all shares read the same, one multicast serves them all
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
                    # the caller only asks whether the row is beyond its limit; the rest need not be known
                    if counts[HOPS] > enough:
                        return
                    needed_box(leaf, operand, need, (k0, k1), (b0, b1), (h0, h1), (w0, w1))
                    aim_at_shares(
                        targets,
                        mesh,
                        shares,
                        (0, pk) if over_k else (k, k + 1),
                        (0, pb) if over_b else (b, b + 1),
                        (0, ph) if over_hw else (h, h + 1),
                        (0, pw) if over_hw else (w, w + 1),
                    )
                    # links of fetches stand in tables; only sources inside the mesh need the tree itself
                    if direct or loads:
                        measure(targets)
                    if direct:
                        layout, free = flow.layouts[operand.start :], mesh.free_concatenation
                        offset, scattered = operand.offset, operand.scattered
                        receive(
                            counts=counts,
                            layout=layout,
                            need=need,
                            batch=leaf.batch,
                            offset=offset,
                            scattered=scattered,
                            targets=targets,
                            loads=loads,
                            free_concatenation=free,
                        )
                    else:
                        size = fetched_bytes(operand, need)
                        if size > 0:
                            fetch(counts, mesh.ports, targets, size, loads)


@compiled
def add_operand(
    counts: Int64s,
    part: Int64s,
    leaf: Leaf,
    flow: Flow,
    mesh: Mesh,
    shares: Shares,
    which: int,
    targets: Targets,
    loads: bool,
    enough: float = np.inf,
) -> None:
    """Add what one run moves of one operand.

    Parameters
    ----------
    counts : bytes times links, bytes of DRAM and, where asked for, of every link; added to
    part : scratch space of the same shape
    leaf, flow : what runs, and where its data comes from
    mesh, shares : its tiles, and how its results are divided
    which : producer from 0 on, -1 for inputs of DRAM, -2 for weights of DRAM
    targets : scratch space
    loads : whether bytes of every link are counted
    enough : bytes times links; counting may end once there are more, and then adds less than all
    """
    if not has_operand(leaf, which):
        return
    operand = operand_of(leaf, flow, which)
    # counts of one operand are divided by its runs, so they are apart from those of the others
    part[:] = 0
    _receive_parts(
        counts=part,
        leaf=leaf,
        operand=operand,
        flow=flow,
        mesh=mesh,
        shares=shares,
        targets=targets,
        loads=loads,
        enough=(enough + 1) * operand.ratio,  # as the division below rounds down
    )
    for i in range(len(counts)):
        counts[i] += part[i] // operand.ratio


@compiled
def result_shares(leaf: Leaf, shares: Shares) -> tuple[Int64s, Int64s]:
    """Per share, the bytes of results (of a weight update, of sums over all samples) and the tile."""
    pk, pb, ph, pw = len(shares.k) - 1, len(shares.b) - 1, len(shares.h) - 1, len(shares.w) - 1
    sizes, tiles = np.empty(pk * pb * ph * pw, dtype=np.int64), np.empty(pk * pb * ph * pw, dtype=np.int64)
    steps, share = shares.steps, 0
    for k in range(pk):
        ck = shares.k[k + 1] - shares.k[k]
        for b in range(pb):
            cb = 1 if leaf.window == SUMMED else shares.b[b + 1] - shares.b[b]
            for h in range(ph):
                ch = shares.h[h + 1] - shares.h[h]
                for w in range(pw):
                    sizes[share] = ck * cb * ch * (shares.w[w + 1] - shares.w[w])
                    tiles[share] = steps[0] * k + steps[1] * b + steps[2] * h + steps[3] * w
                    share += 1
    return sizes, tiles


@compiled
def add_results(
    counts: Int64s,
    part: Int64s,
    leaf: Leaf,
    flow: Flow,
    mesh: Mesh,
    shares: Shares,
    targets: Targets,
    loads: bool,
) -> None:
    """Add what one run stores in DRAM.

    Parameters
    ----------
    counts : bytes times links, bytes of DRAM and, where asked for, of every link; added to
    part : scratch space of the same shape
    leaf, flow : what runs, and whether its results go to DRAM
    mesh, shares : its tiles, and how its results are divided
    targets : scratch space
    loads : whether bytes of every link are counted
    """
    if not flow.stored:
        return
    part[:] = 0
    # a weight update is summed up over all runs before it is stored
    ratio = flow.runs if leaf.window == SUMMED else 1
    sizes, tiles = result_shares(leaf, shares)
    for share in range(len(sizes)):
        if sizes[share] > 0:
            at = tiles[share]
            store(part, mesh.ports, mesh.x[at], mesh.y[at], targets, sizes[share], loads)
    for i in range(len(counts)):
        counts[i] += part[i] // ratio


@compiled
def traffic(
    counts: Int64s, leaf: Leaf, flow: Flow, mesh: Mesh, parts: Int64s, steps: Int64s, loads: bool
) -> None:
    """Count everything that one run of a leaf moves.

    Parameters
    ----------
    counts : bytes times links, bytes of DRAM and, where asked for, of every link; overwritten
    leaf, flow : what runs, and where its data comes from and goes to
    mesh : its tiles
    parts, steps : numbers of shares along K, B, H and W, and steps between their tiles, shape (4,) each
    loads : whether bytes of every link are counted
    """
    counts[:] = 0
    part = np.empty_like(counts)
    shares = divided(leaf, parts, steps)
    targets = no_targets(mesh.width, mesh.height)
    for which in range(-2, len(flow.producers)):
        add_operand(
            counts=counts,
            part=part,
            leaf=leaf,
            flow=flow,
            mesh=mesh,
            shares=shares,
            which=which,
            targets=targets,
            loads=loads,
        )
    add_results(counts, part, leaf, flow, mesh, shares, targets, loads)
