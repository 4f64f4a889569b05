"""The best partition of a leaf, in machine code: what each row of a menu costs at least decides which are
counted.

Bytes of DRAM are known exactly without looking at tiles.  Links are known at least:

* Of what tiles fetch, every multicast takes ``size // n`` bytes from each of ``n`` ports at least.  Links of
  all multicasts of a kind with one byte from every port depend on nothing but the partition and the mesh, so
  they are counted once and kept.  All multicasts have at least the smallest one's bytes, and what others have
  beyond that goes to some tile.
* Of what comes straight from other tiles, bytes for ``m`` tiles pass ``m - 1`` links at least.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SUMMED
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_kernel import (
    Flow,
    Leaf,
    Mesh,
    Prices,
    Shares,
    buffer_energy,
    divided,
    fullest,
    usage,
)
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_traffic_kernel import (
    Operand,
    add_operand,
    add_results,
    aim_at_shares,
    fetched_bytes,
    has_operand,
    needed_box,
    operand_of,
)
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import HOPS, fetch, no_targets
from tilewright.foundation.compiled import compiled

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

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
def _links(mesh: Mesh, parts: Longs, steps: Longs, kind: int) -> int:
    """Links of all multicasts of a kind with one byte from every port."""
    shares = Shares(
        np.arange(parts[0] + 1),
        np.arange(parts[1] + 1),
        np.arange(parts[2] + 1),
        np.arange(parts[3] + 1),
        steps,
    )
    counts, targets = np.zeros(2, dtype=np.int64), no_targets(mesh.width, mesh.height)
    over_k, over_b, over_hw = kind == 0, kind == 2, kind >= 1
    for k in range(1 if over_k else parts[0]):
        for b in range(1 if over_b else parts[1]):
            for h in range(1 if over_hw else parts[2]):
                for w in range(1 if over_hw else parts[3]):
                    aim_at_shares(
                        targets,
                        mesh,
                        shares,
                        (0, parts[0]) if over_k else (k, k + 1),
                        (0, parts[1]) if over_b else (b, b + 1),
                        (0, parts[2]) if over_hw else (h, h + 1),
                        (0, parts[3]) if over_hw else (w, w + 1),
                    )
                    fetch(counts, mesh.ports, targets, len(mesh.ports.at), False)
    links: int = counts[HOPS]
    return links


@compiled
def _tile_links(mesh: Mesh) -> tuple[int, int]:
    """Links of one byte from every port to a tile: the least, and the sum over all tiles."""
    n, least, every = len(mesh.ports.at), MANY, 0
    for x, y in zip(mesh.x, mesh.y):  # noqa: B905 - not in machine code
        links = mesh.ports.across[x, x, n] + mesh.ports.along[y, y, n]
        least, every = min(least, links), every + links
    return least, every


@compiled
def _has_empty(shares: Shares) -> bool:
    """Whether there are shares of nothing."""
    for borders in (shares.k, shares.b, shares.h, shares.w):
        for i in range(len(borders) - 1):
            if borders[i] == borders[i + 1]:
                return True
    return False


@compiled
def _passed_bytes(operand: Operand, flow: Flow, need: Longs) -> int:
    """Bytes of a box that a producer's tiles have."""
    layout = flow.layouts[operand.start :]
    passed: int = need[3] - need[2]
    at = 5
    for axis in (0, 2, 4, 6):
        at += layout[1 + axis // 2]
        if axis != 2:
            low = need[axis] - (operand.offset if axis == 0 else 0)
            high = need[axis + 1] - (operand.offset if axis == 0 else 0)
            passed *= max(0, min(high, layout[at]) - max(low, 0))
        at += 1
    return passed


@compiled(inline=True)
def _add_size(found: Longs, size: int, ports: int) -> None:
    """One more multicast."""
    found[BYTES] += size
    found[SUM] += size // ports
    found[LEAST] = min(found[LEAST], size // ports)
    found[COUNT] += 1


@compiled
def _know_results(found: Longs, leaf: Leaf, flow: Flow, mesh: Mesh, shares: Shares) -> None:
    """Fill in what is known of the results that one run stores."""
    summed = leaf.window == SUMMED
    found[:] = 0
    found[LEAST], found[KIND], found[RATIO] = MANY, APART, flow.runs if summed else 1
    if not flow.stored:
        found[LEAST] = 0
        return
    for k in range(len(shares.k) - 1):
        ck = shares.k[k + 1] - shares.k[k]
        for b in range(len(shares.b) - 1):
            cb = 1 if summed else shares.b[b + 1] - shares.b[b]
            for h in range(len(shares.h) - 1):
                ch = shares.h[h + 1] - shares.h[h]
                for w in range(len(shares.w) - 1):
                    size = ck * cb * ch * (shares.w[w + 1] - shares.w[w])
                    _add_size(found, size, len(mesh.ports.at))
    found[BYTES] //= found[RATIO]


@compiled
def _know_operand(found: Longs, leaf: Leaf, flow: Flow, mesh: Mesh, shares: Shares, which: int) -> None:
    """Fill in what is known of one operand."""
    found[:] = 0
    found[KIND], found[RATIO] = KNOWN, 1
    if not has_operand(leaf, which):
        return
    operand, empty = operand_of(leaf, flow, which), _has_empty(shares)
    if operand.direct and (operand.scattered or mesh.free_concatenation or empty):
        return
    over_k, over_b, over_hw = operand.over_k, operand.over_b, operand.over_hw
    pk, pb, ph, pw = len(shares.k) - 1, len(shares.b) - 1, len(shares.h) - 1, len(shares.w) - 1
    if not operand.direct:
        found[KIND] = 0 if over_k else 2 if over_b else 1 if over_hw else APART
        found[LEAST], found[RATIO] = MANY, operand.ratio
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
                        found[SUM] += _passed_bytes(operand, flow, need) * further
                    else:
                        _add_size(found, fetched_bytes(operand, need), ports)
    found[BYTES] //= operand.ratio
    if empty:
        found[LEAST] = 0


@compiled
def _least_links(
    known: Longs, mesh: Mesh, links: Ints, parts: Longs, steps: Longs, tile_links: tuple[int, int]
) -> int:
    """Bytes times links that an operand takes at least; ``links`` are those of the row's multicasts by kind,
    -1 where they have not been counted.
    """
    kind, nearest, links_sum = known[KIND], tile_links[0], int(known[SUM])
    if kind == KNOWN:
        return links_sum
    every = tile_links[1]
    if kind < KINDS:
        if links[kind] < 0:
            links[kind] = _links(mesh, parts, steps, kind)
        every = links[kind]
    beyond = links_sum - known[LEAST] * known[COUNT]
    return int((known[LEAST] * every + beyond * nearest) // known[RATIO])


@compiled
def _cost(base: float, tile_cycles: float, hops: int, dram: int, prices: Prices) -> float:
    """The objective of a leaf."""
    energy = base + (hops * prices.hop + dram * prices.dram)
    cycles = max(tile_cycles, np.ceil(dram / prices.rate))
    cost: float = energy**prices.energy_power * cycles**prices.delay_power
    return cost


@compiled
def _most_links(base: float, tile_cycles: float, dram: int, least: float, prices: Prices) -> float:
    """More bytes times links than a leaf moves that costs no more than another; infinite where any may be."""
    if prices.energy_power == 0 or least == np.inf or prices.hop == 0:
        return np.inf
    cycles = max(tile_cycles, np.ceil(dram / prices.rate))
    energy = (least / cycles**prices.delay_power) ** (1 / prices.energy_power) * (1 + 1e-9)
    most: float = (energy - base - dram * prices.dram) / prices.hop + 1
    return most


@compiled
def search(
    leaf: Leaf,
    flow: Flow,
    mesh: Mesh,
    prices: Prices,
    menu: Longs,
    rows: Longs,
    links: Ints,
    tile_energy: Floats,
    tile_cycles: Floats,
    room: int,
    result_room: int,
    streamed: int,
) -> int:
    """The row of a menu of partitions that costs the leaf least, or -1 where none fits the buffers.

    Of equal ones the first.  Rows are counted by their least costs, operand by operand, until a row must cost
    more than the best one.

    Parameters
    ----------
    menu : shares and steps per dimension, shape (rows, 8); rows of equal shares follow each other
    rows : where the links of a row's multicasts stand in ``links``, shape (partitions, 3), which are counted
        where they are -1
    tile_energy, tile_cycles : per row, of the largest share on its tile; no number where it cannot be mapped
    room, result_room : bytes of a buffer, and of it for results
    streamed : bytes of a buffer through which weights are streamed, 0 where they have to fit
    """
    tiles, operands = len(mesh.x), len(flow.producers) + 3
    tile_links = _tile_links(mesh)
    inputs, weights = np.zeros(tiles, dtype=np.int64), np.zeros(tiles, dtype=np.int64)
    bases, bounds = np.zeros(len(menu)), np.full(len(menu), np.inf)
    known = np.zeros((len(menu), operands, 6), dtype=np.int64)
    first, fits = np.zeros(len(menu), dtype=np.int64), False
    for row in range(len(menu)):
        parts, steps = menu[row, :4], menu[row, 4:]
        again = row > 0
        for i in range(4):
            again = again and parts[i] == menu[row - 1, i]
        if again:
            first[row] = first[row - 1]
        else:
            first[row] = row
            usage(leaf, parts, mesh.idle_receive, inputs, weights)
            most_inputs, most_weights = fullest(inputs, weights, streamed)
            fits = result_room + most_inputs + most_weights <= room and tile_cycles[row] > 0
            if fits:
                outside = buffer_energy(leaf, inputs, weights, flow.runs, prices)
                bases[row] = tile_energy[row] * tiles + outside
                shares = divided(leaf, parts, steps)
                _know_results(known[row, 0], leaf, flow, mesh, shares)
                for place in range(1, operands):
                    _know_operand(known[row, place], leaf, flow, mesh, shares, place - 3)
        if fits:
            at, hops, dram = first[row], 0, 0
            for place in range(operands):
                hops += _least_links(known[at, place], mesh, links[rows[row]], parts, steps, tile_links)
                dram += known[at, place, BYTES]
            bounds[row] = _cost(bases[at], tile_cycles[row], hops, dram, prices)
    counts = np.zeros(2, dtype=np.int64)
    part = np.empty_like(counts)
    targets = no_targets(mesh.width, mesh.height)
    best, least = -1, np.inf
    for row in np.argsort(bounds):
        if bounds[row] > least or bounds[row] == np.inf:
            break
        parts, steps, at = menu[row, :4], menu[row, 4:], first[row]
        shares = divided(leaf, parts, steps)
        rest, dram = 0, 0
        for place in range(operands):
            rest += _least_links(known[at, place], mesh, links[rows[row]], parts, steps, tile_links)
            dram += known[at, place, BYTES]
        most = _most_links(bases[at], tile_cycles[row], dram, least, prices)
        counts[:] = 0
        cost = bounds[row]
        for place in range(operands):
            rest -= _least_links(known[at, place], mesh, links[rows[row]], parts, steps, tile_links)
            if place == 0:
                add_results(counts, part, leaf, flow, mesh, shares, targets, False)
            else:
                enough = most - counts[HOPS] - rest
                add_operand(
                    counts=counts,
                    part=part,
                    leaf=leaf,
                    flow=flow,
                    mesh=mesh,
                    shares=shares,
                    which=place - 3,
                    targets=targets,
                    loads=False,
                    enough=enough,
                )
            cost = _cost(bases[at], tile_cycles[row], counts[HOPS] + rest, dram, prices)
            if cost > least:
                break
        if cost < least or (cost == least and row < best):
            best, least = row, cost
    return best
