"""The least energy of a fused group by trying everything: trees, homes, residents, and mappings of turns.

Trees and mappings are listed here; what they cost is counted by the evaluator, which the walker judges.  Two
facts are used: what a shared store moves does not depend on other stores, and turns share nothing but room.
Energy is a sum of accesses times prices, so that a listing, once made, is priced for many machines that
differ in prices and rooms alone: one number holds all counts, as digits of a large base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import nest_of
from tilewright.formulation.mapping.fused.evaluator import shapes_of, sized, stored_around
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.movement import Movement
from tilewright.formulation.mapping.fused.occupancy import occupied
from tilewright.formulation.mapping.fused.shared_traffic import movements_of
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedNode, SharedStore
from tilewright.formulation.mapping.fused.turns import LeafTurns, Turns, turns_of
from tilewright.formulation.mapping.mapping import Mapping, Node, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Role

HIERARCHY = cost_model("hierarchy")
EMPTY = Mapping(())
BASE = 2**24
"""More than any count of accesses here."""

Homes = tuple[tuple[str, str], ...]
Numbers = tuple[tuple[bool, int], ...]


LeafRow = tuple[str, dict[str, str], list[tuple[int, Role, int]], list[int]]
"""A layer, homes of its tensors, what homes hold in its turns, and the turns by their numbers."""


@dataclass(frozen=True)
class TreeRow:
    """A tree, what its shared stores move, the ways of every tensor from outside, and its leaves' turns."""

    tree: Branch
    fixed: Any
    placements: list[list[Placed]]
    leaves: list[LeafRow]


class Listing:
    """All trees of a group, for machines that differ in energies and rooms only.

    Parameters
    ----------
    perfect : whether tiles divide
    """

    def __init__(self, group: FusedGroup, engine: Engine, perfect: bool = True) -> None:
        PERFECT[:] = [perfect]
        self.group, self.perfect = group, perfect
        self.linear = not engine.leak
        self.engine = counting(engine) if self.linear else engine
        self.tables: dict[object, Table] = {}
        self.turns: list[tuple[Operator, Numbers]] = []
        self.numbers: dict[tuple[Operator, Numbers], int] = {}
        self.trees: list[TreeRow] = []
        names = list(group.operators)
        tiles = {rank: group.operator(n).bounds[d] for (n, d), rank in group.ranks.items()}
        for tree in branches(group, engine, names, tiles, root=True):
            try:
                turns_of(group, engine, tree)
            except InputError:
                continue
            row = self.row(tree)
            if row is not None:
                self.trees.append(row)

    def row(self, tree: Branch) -> TreeRow | None:
        """What there is to know of a tree; ``None`` where a result that leaves is not made whole."""
        group, engine = self.group, self.engine
        outermost = engine.levels[0].name
        copies = [
            SharedStore(n, group.operator(n).output.name, outermost)
            for n in group.leaving
            if group.read_by(n)
        ]
        bare_tree, tree = tree, Branch((*copies, *tree.nodes), tree.children)
        bare = turns_of(group, engine, tree)
        if any(n in group.leaving and not p.covered for n, p in bare.passings.items()):
            return None
        placements: list[list[Placed]] = []
        for layer, operator in group.layers:
            for tensor in operator.tensors:
                passed = tensor.is_output and bool(group.read_by(layer))
                if group.reading(layer, tensor.name) is None and not passed:
                    placements.append(self.placed(tree, layer, tensor.name))
        leaves: list[LeafRow] = []
        for leaf in bare.leaves:
            homes, held, by_size = homes_and_turns(group, engine, bare, leaf)
            leaves.append((leaf.leaf.layer, homes, held, [self.numbered(turns) for turns in by_size]))
        placed = {f"{ways[0].layer}.{ways[0].tensor}" for ways in placements}
        moves = [move for move in movements_of(group, engine, bare) if move.tensor not in placed]
        return TreeRow(bare_tree, energy_of(moves), placements, leaves)

    def numbered(self, turns: tuple[Operator, Numbers]) -> int:
        """The number by which some turns are known."""
        if turns not in self.numbers:
            self.numbers[turns] = len(self.turns)
            self.turns.append(turns)
        return self.numbers[turns]

    def placed(self, tree: Branch, layer: str, name: str) -> list[Placed]:
        """Every way of a tensor from outside to its layer's turns."""
        engine, tensor = self.engine, self.group.operator(layer).tensor(name)
        outermost = engine.levels[0].name
        full = f"{layer}.{name}"
        # Sums that a softmax scales are scaled outside where they are streamed.
        bare = movements_of(self.group, engine, turns_of(self.group, engine, tree))
        own = {Placed(energy_of(m for m in bare if m.tensor == full), layer, name, "", ())}
        for index, level in enumerate(engine.levels[1:], 1):
            skipped = [outer for outer in engine.levels[1:index] if tensor.role in outer.keeps]
            if tensor.role not in level.keeps or any(
                tensor.role not in outer.may_bypass for outer in skipped
            ):
                continue
            for resident in residents(tree, layer, name, level.name):
                first = SharedStore(layer, name, outermost)
                turns = turns_of(self.group, engine, Branch((first, *resident.nodes), resident.children))
                moved = energy_of(m for m in movements_of(self.group, engine, turns) if m.tensor == full)
                around = []
                for leaf in turns.leaves:
                    for store in leaf.stores:
                        if store.level and store.store.name == full:
                            size = turns.tiles[store.store]
                            around.append((leaf.leaf.layer, (store.level, tensor.role, size)))
                own.add(Placed(moved, layer, name, level.name, tuple(around)))
        return list(own)

    def table(self, turns: int, homes: Homes) -> Table:
        """All mappings of some turns."""
        key = turns, homes
        if key not in self.tables:
            PERFECT[:] = [self.perfect]
            operator, numbers = self.turns[turns]
            self.tables[key] = Table.of(operator, self.engine, homes, numbers)
        return self.tables[key]


def counting(engine: Engine) -> Engine:
    """The machine with a power of the base as every energy."""
    units = iter(Fraction(BASE**place) for place in range(2 * len(engine.levels) + 1))
    mac = next(units)
    levels = tuple(
        replace(level, read_energy=next(units), write_energy=next(units)) for level in engine.levels
    )
    return replace(engine, mac_energy=mac, levels=levels)


def digits(code: int | Fraction, number: int) -> list[int]:
    """The counts that a number holds."""
    assert code.denominator == 1
    return [int(code) // BASE**place % BASE for place in range(number)]


def number_of(energy: Fraction) -> Any:
    """The same number, as an integer where it is whole."""
    return int(energy) if energy.denominator == 1 else energy


@dataclass(frozen=True)
class Table:
    """All mappings of some turns: counts or energies, and elements of tiles per level and tensor."""

    costs: np.ndarray[Any, Any]
    tiles: dict[tuple[int, Role], list[np.ndarray[Any, Any]]]

    @classmethod
    def of(cls, operator: Operator, engine: Engine, homes: Homes, numbers: Numbers) -> Table:
        outside = tuple(Storage(tensor, level) for tensor, level in homes)
        names = [level.name for level in engine.levels]
        roles = {tensor.name: tensor.role for tensor in operator.tensors}
        costs: list[Fraction] = []
        held: list[dict[tuple[int, str], int]] = []
        for mapping in mappings(operator, engine, dict(homes)):
            nest = nest_of(operator, engine, mapping, "brute", outside)
            rooms = occupied(engine, nest, "", (), {tensor for tensor, _ in homes})
            held.append(
                {
                    (names.index(room.level), name.lstrip(".")): size
                    for room in rooms
                    for name, size in room.tiles
                }
            )
            total = Fraction(0)
            for continued, number in numbers:
                own = replace(operator, continued=continued)
                statement = HIERARCHY.statement(nest_of(own, engine, mapping, "brute", outside))
                total += number * Fraction(evaluate(statement.energy, {}), statement.energy_scale)
            costs.append(total)
        if engine.leak:
            table = np.array([[cost] for cost in costs], object).reshape(-1, 1)
        else:
            width = 2 * len(names) + 1
            table = np.array([digits(cost, width) for cost in costs], np.int64).reshape(-1, width)
        tiles: dict[tuple[int, Role], list[np.ndarray[Any, Any]]] = {}
        for level, name in sorted({place for own in held for place in own}):
            sizes = np.array([own.get((level, name), 0) for own in held], np.int64)
            tiles.setdefault((level, roles[name]), []).append(sizes)
        return cls(table, tiles)


def branches(
    group: FusedGroup, engine: Engine, layers: list[str], tiles: dict[int, int], root: bool = False
) -> Iterator[Branch]:
    """All branches over some layers with all homes inside them, legal or not."""
    shared = {group.ranks[n, d] for n in layers for d in moved_between(group, n, layers)}
    options = [tiles_of(tiles[rank]) for rank in sorted(shared)]
    for chosen in product(*options):
        cut = {r: t for r, t in zip(sorted(shared), chosen, strict=True) if t < tiles[r]}
        if not cut and not root:
            continue
        for order in permutations(cut):
            loops = [SharedLoop(*named(group, layers, rank), cut[rank]) for rank in order]
            for parts in divided(layers):
                yield from filled(group, engine, loops, parts, tiles | cut)


def moved_between(group: FusedGroup, layer: str, layers: list[str]) -> set[str]:
    """Dimensions of a layer along which it reads or makes what another of the layers makes or reads."""
    operator = group.operator(layer)
    dims: set[str] = set()
    for reading in group.readings:
        if reading.reader in layers and reading.producer in layers:
            if reading.reader == layer:
                dims |= operator.tensor(reading.operand).dims
            if reading.producer == layer:
                dims |= operator.output.dims
    return dims


def named(group: FusedGroup, layers: list[str], rank: int) -> tuple[str, str]:
    """The last layer's dimension of a rank, by which a loop may be called."""
    return [loop for loop, other in group.ranks.items() if other == rank and loop[0] in layers][-1]


def divided(layers: list[str]) -> Iterator[list[list[str]]]:
    for cuts in product((False, True), repeat=len(layers) - 1):
        if any(cuts):
            places = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(layers)]
            yield [layers[a:b] for a, b in pairwise(places)]


def filled(
    group: FusedGroup, engine: Engine, loops: list[SharedLoop], parts: list[list[str]], tiles: dict[int, int]
) -> Iterator[Branch]:
    """Homes at every place, level and halo; children of every kind."""
    child_of = {layer: i for i, part in enumerate(parts) for layer in part}
    here = [
        layer
        for layer in child_of
        if any(child_of.get(r.reader, child_of[layer]) != child_of[layer] for r in group.read_by(layer))
    ]
    homes = [
        [
            (place, SharedStore(layer, group.operator(layer).output.name, level.name, halo))
            for level in engine.levels[1:]
            for place in range(len(loops) + 1)
            for halo in ("retained", "recomputed")
        ]
        for layer in here
    ]
    children: list[list[Any]] = [
        [Leaf(part[0], EMPTY)] if len(part) == 1 else list(branches(group, engine, part, tiles))
        for part in parts
    ]
    for stores in product(*homes):
        nodes: list[SharedNode] = []
        for place in range(len(loops) + 1):
            nodes += [store for at, store in stores if at == place]
            nodes += loops[place : place + 1]
        for below in product(*children):
            yield Branch(tuple(nodes), tuple(below))


@dataclass(frozen=True)
class Placed:
    """A place of a tensor from outside: what its tiles cost to move, and whom it takes room from."""

    moved: Any
    layer: str
    tensor: str
    level: str
    around: tuple[tuple[str, tuple[int, Role, int]], ...]


def energy_of(moves: Iterable[Movement]) -> Any:
    return number_of(sum((sum(move.energies.values(), Fraction(0)) for move in moves), Fraction(0)))


def homes_and_turns(
    group: FusedGroup, engine: Engine, turns: Turns, leaf: LeafTurns
) -> tuple[dict[str, str], list[tuple[int, Role, int]], list[tuple[Operator, Numbers]]]:
    """A leaf's intermediates by their homes, what homes around it hold, and its turns by size."""
    operator = group.operator(leaf.leaf.layer)
    homes = {
        tensor: engine.levels[levels[-1]].name
        for tensor, levels in stored_around(group, leaf).items()
        if levels and levels[-1]
    }
    held = []
    for placed in leaf.stores:
        if placed.level:
            role = group.operator(placed.store.layer).tensor(placed.store.tensor).role
            held.append((placed.level, role, turns.tiles[placed.store]))
    for key in leaf.softmaxes:
        running = turns.softmaxes[key]
        held += [(running.level, Role.OUTPUT, running.words)] if running.level else []
    by_size: dict[tuple[int, ...], list[tuple[bool, int]]] = {}
    for (sizes, continued), number in shapes_of(operator, leaf).items():
        by_size.setdefault(sizes, []).append((continued, number))
    return (
        homes,
        held,
        [
            (sized(operator, dict(zip(operator.bounds, sizes, strict=True))), tuple(sorted(numbers)))
            for sizes, numbers in by_size.items()
        ],
    )


def residents(branch: Branch, layer: str, tensor: str, level: str) -> Iterator[Branch]:
    """The tree with one more store, at every place around a layer that is behind a loop or outside all."""
    if layer not in branch.layers():
        return
    store = SharedStore(layer, tensor, level)
    for place in range(len(branch.nodes) + 1):
        yield Branch((*branch.nodes[:place], store, *branch.nodes[place:]), branch.children)
    for index, child in enumerate(branch.children):
        if isinstance(child, Branch):
            for below in residents(child, layer, tensor, level):
                yield Branch(branch.nodes, (*branch.children[:index], below, *branch.children[index + 1 :]))


PERFECT = [True]
"""Whether tiles divide."""


def mappings(operator: Operator, engine: Engine, homes: dict[str, str]) -> Iterator[Mapping]:
    """All even mappings on levels without arrays."""
    names = [level.name for level in engine.levels]
    chains = [list(tile_chains(bound, len(names) - 1)) for bound in operator.bounds.values()]
    stores: list[list[tuple[Storage, ...]]] = []
    for index, level in enumerate(engine.levels):
        free = [t for t in operator.tensors if t.role in level.keeps]
        free = [t for t in free if t.name not in homes or names.index(homes[t.name]) < index]
        optional = [t for t in free if t.role in level.may_bypass]
        options = []
        for kept in product((True, False), repeat=len(optional)):
            gone = {t.name for t, keep in zip(optional, kept, strict=True) if not keep}
            options.append(tuple(Storage(t.name, level.name) for t in free if t.name not in gone))
        stores.append(options)
    for chain in product(*chains):
        sizes = [dict(zip(operator.bounds, row, strict=True)) for row in zip(*chain, strict=True)]
        edges = [dict(operator.bounds), *sizes, dict.fromkeys(operator.bounds, 1)]
        loops = [[d for d in operator.bounds if edges[i][d] != edges[i + 1][d]] for i in range(len(names))]
        orders = [list(permutations(own)) for own in loops[:-1]] + [[tuple(loops[-1])]]
        for order in product(*orders):
            for held in product(*stores):
                nodes: list[Node] = []
                for index in range(len(names)):
                    nodes += held[index]
                    nodes += [Temporal(dim, edges[index + 1][dim]) for dim in order[index]]
                yield Mapping(tuple(nodes))


def tiles_of(size: int) -> list[int]:
    """Tiles of a loop over so many iterations."""
    if PERFECT[0]:
        return [tile for tile in range(1, size + 1) if size % tile == 0]
    return [
        tile for tile in range(1, size + 1) if all(-(-size // t) != -(-size // tile) for t in range(1, tile))
    ]


def tile_chains(bound: int, levels: int) -> Iterator[tuple[int, ...]]:
    """Tiles per level."""
    if not levels:
        yield ()
        return
    for tile in tiles_of(bound):
        for rest in tile_chains(tile, levels - 1):
            yield (tile, *rest)
