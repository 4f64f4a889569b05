"""The best partition of a leaf, in machine code; lower bounds decide which rows of a menu are counted.

DRAM bytes are known exactly without looking at tiles.  Links have lower bounds:

* Of what tiles fetch, every multicast takes at least ``size // n`` bytes from each of ``n`` ports.  The links
  of all multicasts of a kind with one byte from every port depend on the partition and the mesh only, so they
  are counted once and cached.  All multicasts have at least the bytes of the smallest, and bytes beyond that
  travel at least to the nearest tile.
* Of what comes directly from other tiles, bytes for ``m`` tiles pass at least ``m - 1`` links.
"""

from __future__ import annotations

import numpy as np

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
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_known_kernel import (
    BYTES,
    COUNT,
    KIND,
    KINDS,
    KNOWN,
    LEAST,
    MANY,
    RATIO,
    SUM,
    know_operand,
    know_results,
)
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_rows_kernel import equal_parts
from tilewright.formulation.scheduling.tiled.set.leaf.leaf_traffic_kernel import (
    add_operand,
    add_results,
    aim_at_shares,
)
from tilewright.formulation.scheduling.tiled.set.leaf.traffic_kernel import HOPS, fetch, no_targets
from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.compiled import compiled


@compiled
def _links(mesh: Mesh, parts: Int64s, steps: Int64s, kind: int) -> int:
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
def _least_links(
    known: Int64s, mesh: Mesh, links: Int32s, parts: Int64s, steps: Int64s, tile_links: tuple[int, int]
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
    # what multicasts have beyond the smallest one's bytes reaches at least the tile nearest to the ports
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
    # the objective solved for energy; the slack keeps rounding from rejecting a row of equal cost
    energy = (least / cycles**prices.delay_power) ** (1 / prices.energy_power) * (1 + 1e-9)
    most: float = (energy - base - dram * prices.dram) / prices.hop + 1
    return most


@compiled
def search(
    leaf: Leaf,
    flow: Flow,
    mesh: Mesh,
    prices: Prices,
    menu: Int64s,
    rows: Int64s,
    links: Int32s,
    tile_energy: Floats,
    tile_cycles: Floats,
    capacity: int,
    result_bytes: int,
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
    capacity, result_bytes : bytes of a buffer, and of it for results
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
        # everything but links is the same in every order of equal shares, so it is counted for the first one
        if equal_parts(menu, row):
            first[row] = first[row - 1]
        else:
            first[row] = row
            usage(leaf, parts, mesh.idle_receive, inputs, weights)
            most_inputs, most_weights = fullest(inputs, weights, streamed)
            fits = result_bytes + most_inputs + most_weights <= capacity and tile_cycles[row] > 0
            if fits:
                outside = buffer_energy(leaf, inputs, weights, flow.runs, prices)
                bases[row] = tile_energy[row] * tiles + outside
                shares = divided(leaf, parts, steps)
                know_results(known[row, 0], leaf, flow, mesh, shares)
                for place in range(1, operands):
                    know_operand(known[row, place], leaf, flow, mesh, shares, place - 3)
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
    # by increasing bounds: once a bound is beyond the best row, so are all that follow
    for row in np.argsort(bounds):
        if bounds[row] > least or bounds[row] == np.inf:
            break
        parts, steps, at = menu[row, :4], menu[row, 4:], first[row]
        shares = divided(leaf, parts, steps)
        # ``rest`` bounds the links of the operands that have not been counted yet
        rest, dram = 0, 0
        for place in range(operands):
            rest += _least_links(known[at, place], mesh, links[rows[row]], parts, steps, tile_links)
            dram += known[at, place, BYTES]
        most = _most_links(bases[at], tile_cycles[row], dram, least, prices)
        counts[:] = 0
        cost = bounds[row]
        for place in range(operands):
            rest -= _least_links(known[at, place], mesh, links[rows[row]], parts, steps, tile_links)
            # what has been counted replaces its bound, so the cost only grows from operand to operand
            if place == 0:
                add_results(counts, part, leaf, flow, mesh, shares, targets, False)
            else:
                # an operand that takes more links than this already decides against the row
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
        # rows come in the order of their bounds; of equal costs the menu's first one wins all the same
        if cost < least or (cost == least and row < best):
            best, least = row, cost
    return best
