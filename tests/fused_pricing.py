"""Listings of fused mappings priced on one machine: the least energy of all trees, residents and mappings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from fused_brute import Homes, Listing, Placed, Table, TreeRow, digits

from tilewright.formulation.mapping.fused.occupancy import bits_of_tile
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Role


def least_fused(listing: Listing, engine: Engine, most: Fraction | None = None) -> Fraction | None:
    """The least energy of all trees on a machine; ``None`` where there is none of at most ``most``."""
    best, pricing = most, Pricing(listing, engine)
    least: Fraction | None = None
    for row in listing.trees:
        value = pricing.least_of(row, best)
        if value is not None:
            best = least = value
    return least


def least_of_trees(listing: Listing, engine: Engine) -> Iterator[tuple[Branch, Fraction | None]]:
    """Every tree with its least energy on a machine."""
    pricing = Pricing(listing, engine)
    for row in listing.trees:
        yield row.tree, pricing.least_of(row, None)


class Pricing:
    """A listing on one machine."""

    def __init__(self, listing: Listing, engine: Engine) -> None:
        self.listing, self.engine = listing, engine
        self.rooms = {
            index: level.capacity * engine.capacity_element_bits(level)
            for index, level in enumerate(engine.levels)
            if index and level.capacity is not None
        }
        prices = [Fraction(1)]
        if listing.linear:
            prices = [engine.mac_energy]
            for level in engine.levels:
                prices += [level.read_energy, level.write_energy]
        self.scale = math.lcm(*(price.denominator for price in prices))
        self.prices = [int(price * self.scale) for price in prices]
        self.known: dict[object, list[tuple[Any, dict[int, int]]]] = {}
        self.found: dict[object, Any] = {}
        self.sums: dict[Any, Any] = {}

    def priced(self, code: Any) -> Any:
        """What some accesses cost, times the scale."""
        if not self.listing.linear:
            return code
        if code not in self.sums:
            counts = digits(code, len(self.prices))
            self.sums[code] = sum(count * price for count, price in zip(counts, self.prices, strict=True))
        return self.sums[code]

    def bits(self, level: int, role: Role, size: int) -> int:
        return bits_of_tile(self.engine, self.engine.levels[level], role, size)

    def least_turns(self, turns: int, homes: Homes, held: dict[int, int]) -> Any:
        """The least energy of some turns with one mapping, of all that fit beside what is held."""
        key = turns, homes
        options = self.known.get(key)
        if options is None:
            options = self.known[key] = self.options(self.listing.table(*key))
        at = key, tuple(sorted(held.items()))
        if at not in self.found:
            self.found[at] = next(
                (
                    cost
                    for cost, own in options
                    if all(own.get(i, 0) + held.get(i, 0) <= room for i, room in self.rooms.items())
                ),
                None,
            )
        return self.found[at]

    def options(self, table: Table) -> list[tuple[Any, dict[int, int]]]:
        """Energies and bits per level of mappings, the cheapest first, without those that others replace."""
        costs = table.costs @ np.array(self.prices, table.costs.dtype)
        bits = {index: np.zeros(len(costs), np.int64) for index in self.rooms}
        for (level, role), columns in table.tiles.items():
            for sizes in columns:
                if level in bits:
                    values, places = np.unique(sizes, return_inverse=True)
                    each = np.array([self.bits(level, role, int(size)) for size in values], np.int64)
                    bits[level] += each[places]
        rows: dict[tuple[int, ...], Any] = {}
        for cost, *taken in zip(costs.tolist(), *(own.tolist() for own in bits.values()), strict=True):
            place = tuple(taken)
            if place not in rows or cost < rows[place]:
                rows[place] = cost
        options = [(cost, dict(zip(bits, place, strict=True))) for place, cost in rows.items()]
        return sorted(options, key=lambda option: option[0])

    def least_of(self, row: TreeRow, most: Fraction | None) -> Fraction | None:
        """The least energy over all residents and mappings of turns; ``None`` where it is above a limit."""
        fixed = self.priced(row.fixed)
        if most is not None:
            most *= self.scale
        # With no residents around, every layer takes no more; most trees need no closer look.
        ways: list[list[tuple[Any, tuple[Placed, ...]]]] = []
        for layer, homes, held, turns in row.leaves:
            mine = [options for options in row.placements if options[0].layer == layer]
            own: list[tuple[Any, tuple[Placed, ...]]] = []
            for chosen in product(*mine):
                if not self.start_alike(layer, homes, chosen):
                    continue
                cost = self.layer_cost(homes, chosen, turns, self.held(held, chosen, layer))
                if cost is not None:
                    own.append((cost + sum(self.priced(p.moved) for p in chosen), chosen))
            if not own:
                return None
            ways.append(sorted(own, key=lambda way: way[0]))
        rest: list[Any] = [0]
        for options in reversed(ways):
            rest.insert(0, rest[0] + options[0][0])
        best: Any = None

        def further(at: int, least: Any, chosen: tuple[Placed, ...]) -> None:
            nonlocal best
            if at == len(ways):
                total = fixed + sum(self.priced(p.moved) for p in chosen)
                for layer, homes, held, turns in row.leaves:
                    own = tuple(p for p in chosen if p.layer == layer)
                    cost = self.layer_cost(homes, own, turns, self.held(held, chosen, layer))
                    if cost is None:
                        return
                    total += cost
                if (most is None or total <= most) and (best is None or total < best):
                    best = total
                return
            for cost, own in ways[at]:
                hopeful = least + cost + rest[at + 1]
                if (most is not None and hopeful > most) or (best is not None and hopeful >= best):
                    return
                further(at + 1, least + cost, (*chosen, *own))

        further(0, fixed, ())
        return None if best is None else Fraction(best) / self.scale

    def start_alike(self, layer: str, homes: dict[str, str], chosen: Iterable[Placed]) -> bool:
        """Whether tensors of one role in a layer start in one level."""
        starts = homes | {placed.tensor: placed.level for placed in chosen if placed.level}
        tensors = self.listing.group.operator(layer).tensors
        levels = {(tensor.role, starts.get(tensor.name)) for tensor in tensors}
        return len(levels) == len({tensor.role for tensor in tensors})

    def held(
        self, homes: Sequence[tuple[int, Role, int]], chosen: Iterable[Placed], layer: str = ""
    ) -> dict[int, int]:
        """Bits per level that homes and residents take in a layer's turns."""
        tiles = [*homes, *(tile for placed in chosen for name, tile in placed.around if name == layer)]
        taken: dict[int, int] = {}
        for level, role, size in tiles:
            taken[level] = taken.get(level, 0) + self.bits(level, role, size)
        return taken

    def layer_cost(
        self, homes: dict[str, str], chosen: Sequence[Placed], turns: Sequence[int], held: dict[int, int]
    ) -> Any:
        """The least energy of a layer's turns of all sizes; ``None`` where they do not fit."""
        starts = homes | {placed.tensor: placed.level for placed in chosen if placed.level}
        total: Any = 0
        for number in turns:
            cost = self.least_turns(number, tuple(sorted(starts.items())), held)
            if cost is None:
                return None
            total += cost
        return total
