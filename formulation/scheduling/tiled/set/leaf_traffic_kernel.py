"""What one run of a leaf moves, and its best partition, in machine code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilewright.formulation.compiled import compiled
from tilewright.formulation.scheduling.tiled.set.layers import CONVOLUTION, SUMMED
from tilewright.formulation.scheduling.tiled.set.leaf_kernel import (
    Flow,
    Leaf,
    Mesh,
    Prices,
    Shares,
    buffer_energy,
    divided,
    fullest,
    input_box,
    usage,
    volume,
)
from tilewright.formulation.scheduling.tiled.set.traffic_kernel import (
    DRAM,
    HOPS,
    LINKS,
    Targets,
    aim,
    fetch,
    forget,
    measure,
    no_targets,
    receive,
    store,
)

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@compiled(inline=True)
def _aim_at_shares(
    targets: Targets,
    mesh: Mesh,
    shares: Shares,
    k: tuple[int, int],
    b: tuple[int, int],
    h: tuple[int, int],
    w: tuple[int, int],
) -> None:
    """The tiles of a box of shares as targets, those with an empty share only where these receive, too."""
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


@compiled
def _receive_parts(
    counts: Longs,
    leaf: Leaf,
    flow: Flow,
    mesh: Mesh,
    shares: Shares,
    which: int,
    targets: Targets,
    loads: bool,
) -> None:
    """Count what all tiles read of one operand: producer ``which``, or DRAM's inputs (-1), or weights
    (-2).
    """
    pk, pb, ph, pw = len(shares.k) - 1, len(shares.b) - 1, len(shares.h) - 1, len(shares.w) - 1
    need = np.zeros(8, dtype=np.int64)
    direct, offset, channels, weights, scattered, start = 0, 0, leaf.external, which == -2, False, 0
    late = False
    if which >= 0:
        row = flow.producers[which]
        direct, offset, channels, start = row[0], row[1], row[2], row[5]
        weights, late, scattered = row[3] == 1, row[3] == 2, row[4] != 0
    elif which == -2:
        channels = leaf.channels
    summed = leaf.window == SUMMED
    per_group = 1 if summed else leaf.inputs // leaf.groups
    over_k = leaf.window == CONVOLUTION and not weights and not late
    over_b = weights and not leaf.made and not summed
    over_hw = weights
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
                    if weights:
                        need[0], need[1] = k0, k1
                        need[2], need[3] = (b0, b1) if leaf.made or summed else (0, 1)
                        need[4], need[5] = 0, per_group
                        need[6], need[7] = 0, leaf.taps_rows * leaf.taps_columns
                        if summed:
                            need[5], need[7] = leaf.taps_rows, leaf.taps_columns
                    elif late:
                        need[0], need[1], need[2], need[3] = k0, k1, b0, b1
                        need[4], need[5] = leaf.first_row + h0, leaf.first_row + h1
                        need[6], need[7] = w0, w1
                    else:
                        input_box(leaf, need, k0, k1, b0, b1, h0, h1, w0, w1)
                    _aim_at_shares(
                        targets,
                        mesh,
                        shares,
                        (0, pk) if over_k else (k, k + 1),
                        (0, pb) if over_b else (b, b + 1),
                        (0, ph) if over_hw else (h, h + 1),
                        (0, pw) if over_hw else (w, w + 1),
                    )
                    if direct or loads:
                        measure(targets)
                    if direct:
                        layout = flow.layouts[start:]
                        free = mesh.free_concatenation
                        receive(counts, layout, need, leaf.batch, offset, scattered, targets, loads, free)
                    else:
                        if not scattered:
                            need[0] = max(need[0], offset)
                            need[1] = max(need[0], min(need[1], offset + channels))
                        size = volume(need)
                        if size > 0:
                            fetch(counts, mesh.ports, targets, size, loads)


@compiled
def _add_operand(
    counts: Longs,
    part: Longs,
    leaf: Leaf,
    flow: Flow,
    mesh: Mesh,
    shares: Shares,
    which: int,
    targets: Targets,
    loads: bool,
) -> None:
    """Add what one run moves of one operand, as in `_receive_parts`; ``part`` is room for counts."""
    ratio, whole_links = 1, False
    if which == -2:
        if not leaf.weighs or leaf.made:
            return
        ratio = 1 if leaf.window == SUMMED else flow.runs
    elif which == -1:
        if leaf.external == 0:
            return
    elif flow.producers[which, 0] and not flow.producers[which, 4]:
        batch = flow.layouts[flow.producers[which, 5]]
        ratio = max(1, batch // leaf.batch)
        whole_links = mesh.undivided_links
    part[:] = 0
    _receive_parts(part, leaf, flow, mesh, shares, which, targets, loads)
    for i in range(len(counts)):
        counts[i] += part[i] if ratio == 1 or (whole_links and i >= LINKS) else part[i] // ratio


@compiled
def _add_results(
    counts: Longs,
    part: Longs,
    leaf: Leaf,
    flow: Flow,
    mesh: Mesh,
    shares: Shares,
    targets: Targets,
    loads: bool,
) -> None:
    """Add what one run stores in DRAM."""
    if not flow.stored:
        return
    part[:] = 0
    summed = leaf.window == SUMMED
    ratio = flow.runs if summed else 1
    steps = shares.steps
    for k in range(len(shares.k) - 1):
        ck = shares.k[k + 1] - shares.k[k]
        for b in range(len(shares.b) - 1):
            cb = 1 if summed else shares.b[b + 1] - shares.b[b]
            for h in range(len(shares.h) - 1):
                ch = shares.h[h + 1] - shares.h[h]
                for w in range(len(shares.w) - 1):
                    size = ck * cb * ch * (shares.w[w + 1] - shares.w[w])
                    if size > 0:
                        at = steps[0] * k + steps[1] * b + steps[2] * h + steps[3] * w
                        store(part, mesh.ports, mesh.x[at], mesh.y[at], targets, size, loads)
    for i in range(len(counts)):
        counts[i] += part[i] // ratio


@compiled
def traffic(
    counts: Longs, leaf: Leaf, flow: Flow, mesh: Mesh, parts: Longs, steps: Longs, loads: bool
) -> None:
    """Count everything that one run of a leaf moves; link loads only where asked for."""
    counts[:] = 0
    part = np.empty_like(counts)
    shares = divided(leaf, parts, steps)
    targets = no_targets(mesh.width, mesh.height)
    for which in range(-2, len(flow.producers)):
        _add_operand(counts, part, leaf, flow, mesh, shares, which, targets, loads)
    _add_results(counts, part, leaf, flow, mesh, shares, targets, loads)


@compiled
def _cost(base: float, tile_cycles: float, hops: int, dram: int, prices: Prices) -> float:
    """The objective of a leaf."""
    energy = base + (hops * prices.hop + dram * prices.dram)
    cycles = max(tile_cycles, np.ceil(dram / prices.rate))
    found: float = energy**prices.energy_power * cycles**prices.delay_power
    return found


@compiled
def search(
    leaf: Leaf,
    flow: Flow,
    mesh: Mesh,
    prices: Prices,
    menu: Longs,
    tile_energy: Floats,
    tile_cycles: Floats,
    room: int,
    result_room: int,
    streamed: int,
) -> int:
    """The row of a menu of partitions that costs the leaf least, or -1 where none fits the buffers.

    Of equal ones the first.  What moves is counted for the most promising rows first, operand by operand,
    until a row costs more than the best one.

    Parameters
    ----------
    menu : shares and steps per dimension, shape (rows, 8); rows of equal shares follow each other
    tile_energy, tile_cycles : per row, of the largest share on its tile; no number where it cannot be mapped
    room, result_room : bytes of a buffer, and of it for results
    streamed : bytes of a buffer through which weights are streamed, 0 where they have to fit
    """
    tiles = len(mesh.x)
    counts = np.zeros(2, dtype=np.int64)
    inputs, weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    bases, bounds = np.zeros(len(menu)), np.full(len(menu), np.inf)
    for row in range(len(menu)):
        parts = menu[row, :4]
        again = row > 0
        for i in range(4):
            again = again and parts[i] == menu[row - 1, i]
        if again:
            bases[row], bounds[row] = bases[row - 1], bounds[row - 1]
            continue
        usage(leaf, parts, mesh.idle_receive, inputs, weights)
        most_inputs, most_weights = fullest(inputs, weights, streamed)
        bases[row] = tile_energy[row] * tiles + buffer_energy(leaf, inputs, weights, flow.runs, prices)
        if result_room + most_inputs + most_weights <= room and tile_cycles[row] > 0:
            bounds[row] = bases[row] ** prices.energy_power * tile_cycles[row] ** prices.delay_power
    part = np.empty_like(counts)
    targets = no_targets(mesh.width, mesh.height)
    best, least = -1, np.inf
    for row in np.argsort(bounds):
        if bounds[row] > least or bounds[row] == np.inf:
            break
        shares = divided(leaf, menu[row, :4], menu[row, 4:])
        counts[:] = 0
        _add_results(counts, part, leaf, flow, mesh, shares, targets, False)
        cost = 0.0
        for which in range(-2, len(flow.producers)):
            _add_operand(counts, part, leaf, flow, mesh, shares, which, targets, False)
            cost = _cost(bases[row], tile_cycles[row], counts[HOPS], counts[DRAM], prices)
            if cost > least:
                break
        if cost < least or (cost == least and row < best):
            best, least = row, cost
    return best
