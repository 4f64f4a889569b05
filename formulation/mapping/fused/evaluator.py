"""What a fused mapping costs: its turns by the evaluator of single layers, and what shared stores move.

A layer's turns of one shape cost the same, so each shape is evaluated once.  In it the layer is an ordinary
one on what the turn computes, whose tensors start where the innermost shared store around the leaf has them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tilewright.formulation.mapping.cost.base import CostModel, array_limits
from tilewright.formulation.mapping.evaluator import Evaluation, evaluation_of, exceeded, misplaced, nest_of
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.movement import Movement
from tilewright.formulation.mapping.fused.occupancy import HeldTile, Occupied, occupied
from tilewright.formulation.mapping.fused.shared_traffic import movements_of
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.formulation.mapping.fused.turns import LeafTurns, Turns, turns_of
from tilewright.formulation.mapping.fused.widths import at_widths
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.foundation.arrays import Int64s
from tilewright.foundation.errors import InputError, located_in
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Axis, Operator, Role

Shape = tuple[tuple[int, ...], bool]
"""Iterations per dimension of a turn, and whether it adds to sums that are there already."""


@dataclass(frozen=True)
class LayerCost:
    """What one layer's turns cost together.

    Parameters
    ----------
    turns : in which there is something to do
    shapes : different ones among them
    energy, cycles : of all turns, without what shared stores move
    accesses : per (level, tensor): reads, fills and updates within turns
    """

    layer: str
    turns: int
    shapes: int
    energy: Fraction
    cycles: int
    accesses: MappingABC[tuple[str, str], tuple[int, int, int]]


@dataclass(frozen=True)
class FusedEvaluation:
    """What a fused mapping costs.

    Parameters
    ----------
    energy : pJ, exact
    cycles : all turns one after the other, and the transfers of shared stores between them
    macs : multiply-accumulates, those of recomputed elements included
    components : pJ by component
    layers : what each layer's turns cost
    movements : what shared stores move
    occupied : what every level holds in every leaf's turns, at most
    turns : the turns themselves
    violations : constraints that the mapping breaks, empty for a legal one
    """

    energy: Fraction
    cycles: int
    macs: int
    components: MappingABC[str, Fraction]
    layers: tuple[LayerCost, ...]
    movements: tuple[Movement, ...]
    occupied: tuple[Occupied, ...]
    turns: Turns
    violations: tuple[str, ...]

    def elements_through(self, level: str) -> int:
        """Elements that a level hands out or takes in, in turns and between them."""
        inside = sum(
            sum(counts) for cost in self.layers for (at, _), counts in cost.accesses.items() if at == level
        )
        return inside + sum(
            move.elements + move.again for move in self.movements if level in (move.outer, move.inner)
        )


def evaluate_fused(
    group: FusedGroup, engine: Engine, model: CostModel, tree: Branch, where: str = "mapping"
) -> FusedEvaluation:
    """Evaluate a fused mapping, legal or not.

    Parameters
    ----------
    group, engine : the layers and the machine, which is taken with the widths that the layers state
    model : the cost model that counts the turns
    tree : what is evaluated
    where : what errors call the mapping

    Raises
    ------
    InputError : where the tree does not fit the group and the machine, or the model does not apply
    """
    if model.name != "hierarchy":
        raise InputError(where, "cost_model", f"fused mappings are counted by hierarchy, not by {model.name}")
    with located_in(where):
        group, engine = at_widths(group, engine)
    turns = turns_of(group, engine, tree, where)
    components: dict[str, Fraction] = {}
    layers: list[LayerCost] = []
    rooms: list[Occupied] = []
    violations: dict[str, None] = {}
    macs = 0
    for leaf in turns.leaves:
        count = _LeafCount(group, engine, model, turns, leaf, where)
        cost = count.cost()
        layers.append(cost)
        for component, energy in count.components.items():
            components[component] = components.get(component, Fraction(0)) + energy
        rooms += count.rooms
        macs += count.macs
        violations.update(dict.fromkeys(count.violations))
    movements = movements_of(group, engine, turns)
    for move in movements:
        for component, energy in move.energies.items():
            components[component] = components.get(component, Fraction(0)) + energy
    violations.update(dict.fromkeys(_unmet(group, engine, turns)))
    return FusedEvaluation(
        energy=sum(components.values(), Fraction(0)),
        cycles=sum(cost.cycles for cost in layers) + sum(move.cycles for move in movements),
        macs=macs,
        components=components,
        layers=tuple(layers),
        movements=movements,
        occupied=tuple(rooms),
        turns=turns,
        violations=tuple(violations),
    )


def _unmet(group: FusedGroup, engine: Engine, turns: Turns) -> list[str]:
    """What is missing of results that must be complete."""
    broken: list[str] = []
    outermost = engine.levels[0].name
    stored = {(p.store.layer, p.store.tensor) for leaf in turns.leaves for p in leaf.stores if p.level == 0}
    for layer, passing in turns.passings.items():
        output = group.operator(layer).output.name
        if layer in group.leaving and passing.home is not None and (layer, output) not in stored:
            broken.append(f"{layer}.{output} is needed outside the group and has no store in {outermost}")
        if (layer in group.leaving or passing.home is None) and not passing.covered:
            broken.append(f"parts of {layer}.{output} that its readers skip are never computed")
    return broken


class _LeafCount:
    """One leaf's turns, shape by shape."""

    def __init__(
        self, group: FusedGroup, engine: Engine, model: CostModel, turns: Turns, leaf: LeafTurns, where: str
    ) -> None:
        self.engine = engine
        self.model = model
        self.leaf = leaf
        self.where = where
        self.operator = group.operator(leaf.leaf.layer)
        self.components: dict[str, Fraction] = {}
        self.rooms: list[Occupied] = []
        self.macs = 0
        self.violations: list[str] = []
        self.chains = stored_around(group, leaf)
        names = [level.name for level in engine.levels]
        self.homes = tuple(
            Storage(tensor, names[levels[-1]]) for tensor, levels in self.chains.items() if levels
        )
        self.held = tuple(
            HeldTile(
                placed.store.name,
                placed.level,
                group.operator(placed.store.layer).tensor(placed.store.tensor).role,
                turns.tiles[placed.store],
            )
            for placed in leaf.stores
            if placed.level
        ) + tuple(
            HeldTile(f"{reader}.{operand} softmax", running.level, Role.OUTPUT, running.words)
            for reader, operand in leaf.softmaxes
            if (running := turns.softmaxes[reader, operand]).level
        )

    def cost(self) -> LayerCost:
        """Every shape of turn, as often as it occurs."""
        shapes = shapes_of(self.operator, self.leaf)
        dims = list(self.operator.bounds)
        leaf = self.leaf.leaf
        own = {sizes for sizes, _ in leaf.sized}
        common = [sizes for sizes, _ in shapes if sizes not in own]
        if common or not shapes:
            most = {dim: max((sizes[i] for sizes in common), default=1) for i, dim in enumerate(dims)}
            self._validate(sized(self.operator, most), leaf.mapping, "")
        for index, (sizes, mapping) in enumerate(leaf.sized):
            if len(sizes) != len(dims) or any(
                size > bound for size, bound in zip(sizes, self.operator.bounds.values(), strict=False)
            ):
                field = f"{self.leaf.field}.sized[{index}].sizes"
                raise InputError(self.where, field, f"expected at most {[*self.operator.bounds.values()]}")
            exact = sized(self.operator, dict(zip(dims, sizes, strict=True)))
            self._validate(exact, mapping, f"sized[{index}].")
        energy, cycles = Fraction(0), 0
        accesses: dict[tuple[str, str], list[int]] = {}
        for shape, number in shapes.items():
            operator = sized(self.operator, dict(zip(dims, shape[0], strict=True)))
            mapping = leaf.of(shape[0])
            evaluation = self._evaluate(replace(operator, continued=shape[1]), mapping)
            energy += number * evaluation.energy
            cycles += number * evaluation.cycles
            self.macs += number * evaluation.macs
            for name, part in evaluation.components.items():
                self.components[name] = self.components.get(name, Fraction(0)) + number * part
            for row in evaluation.accesses:
                counts = accesses.setdefault((row.level, row.tensor), [0, 0, 0])
                for place, count in enumerate((row.reads, row.fills, row.updates)):
                    counts[place] += number * count
        return LayerCost(
            self.leaf.leaf.layer,
            sum(shapes.values()),
            len(shapes),
            energy,
            cycles,
            {key: (counts[0], counts[1], counts[2]) for key, counts in accesses.items()},
        )

    def _validate(self, operator: Operator, mapping: Mapping, prefix: str) -> None:
        names = [level.name for level in self.engine.levels]
        # To an ordinary mapping an intermediate came through the levels outside its home.
        outside = [
            Storage(tensor, names[level])
            for tensor, levels in self.chains.items()
            if levels
            for level in ([0] if levels[0] else []) + levels
        ]
        mapping.validate(operator, self.engine, self.where, outside, f"{self.leaf.field}.{prefix}")
        passed = [
            Storage(tensor, names[level])
            for tensor, levels in self.chains.items()
            if levels
            for level in range(1, levels[-1])
            if level not in levels and levels[0]
        ]
        nodes = (*outside, *passed, *mapping.nodes)
        layer = self.leaf.leaf.layer
        self.violations += [f"{layer}: {text}" for text in misplaced(operator, self.engine, Mapping(nodes))]

    def _evaluate(self, operator: Operator, mapping: Mapping) -> Evaluation:
        mapping = clipped(mapping, operator)
        where = f"{self.where}: {self.leaf.field}"
        nest = nest_of(operator, self.engine, mapping, where, self.homes)
        layer = self.leaf.leaf.layer
        self.violations += [f"{layer}: {text}" for text in exceeded(array_limits(nest))]
        rooms = occupied(self.engine, nest, layer, self.held, {home.tensor for home in self.homes})
        self.rooms = _most(self.rooms, rooms)
        self.violations += [room.violation for room in rooms if room.violation]
        return evaluation_of(self.model.statement(nest), operator, self.engine, ())


def _most(rooms: Sequence[Occupied], others: Sequence[Occupied]) -> list[Occupied]:
    """Of each level, and of each partition that any turn uses, the fuller one."""
    fullest: dict[tuple[str, Role | None], Occupied] = {}
    for room in (*rooms, *others):
        place = room.level, room.part
        if place not in fullest or room.bits > fullest[place].bits:
            fullest[place] = room
    return list(fullest.values())


def stored_around(group: FusedGroup, leaf: LeafTurns) -> dict[str, list[int]]:
    """Per tensor of a leaf's layer, the levels of the shared stores that it has around the leaf."""
    layer = leaf.leaf.layer
    chains: dict[str, list[int]] = {}
    for tensor in group.operator(layer).tensors:
        reading = group.reading(layer, tensor.name)
        name = f"{layer}.{tensor.name}"
        if reading is not None:
            name = f"{reading.producer}.{group.operator(reading.producer).output.name}"
        levels = [placed.level for placed in leaf.stores if placed.store.name == name]
        passed_on = reading is not None or (tensor.is_output and bool(group.read_by(layer)))
        # A home on chip is where an intermediate starts; a copy in the outermost level takes no part.
        chains[tensor.name] = levels[-1:] if passed_on else levels
    return chains


def shapes_of(operator: Operator, leaf: LeafTurns) -> Counter[Shape]:
    """How many turns a leaf has of each shape, those with nothing to do left out."""
    boxes = leaf.boxes
    if not boxes.alive.any():
        return Counter()
    columns = [boxes.size[dim] for dim in operator.bounds] + [boxes.continued.astype(np.int64)]
    columns = [column[boxes.alive] for column in columns]
    # Most columns are constant, so that one number tells rows apart; sorting whole rows takes far longer.
    least = [int(column.min()) for column in columns]
    widths = [int(column.max()) - low + 1 for column, low in zip(columns, least, strict=True)]
    if math.prod(widths) >= 2**62:
        rows, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
        return Counter({_shape(row.tolist()): int(number) for row, number in zip(rows, counts, strict=True)})
    keys = np.zeros(len(columns[0]), np.int64)
    for column, low, width in zip(columns, least, widths, strict=True):
        if width > 1:
            keys = keys * width + (column - low)
    distinct, counts = np.unique(keys, return_counts=True) if math.prod(widths) > 2**20 else _counted(keys)
    shapes: Counter[Shape] = Counter()
    for key, number in zip(distinct.tolist(), counts.tolist(), strict=True):
        row: list[int] = []
        for low, width in zip(reversed(least), reversed(widths), strict=True):
            row.insert(0, low + key % width)
            key //= width
        shapes[_shape(row)] = number
    return shapes


def _counted(keys: Int64s) -> tuple[Int64s, Int64s]:
    """Small keys, and how often each occurs."""
    counts = np.bincount(keys)
    distinct = np.flatnonzero(counts)
    return distinct, counts[distinct]


def _shape(row: Sequence[int]) -> Shape:
    return tuple(row[:-1]), bool(row[-1])


def sized(operator: Operator, bounds: MappingABC[str, int]) -> Operator:
    """The operator on other bounds; itself where they are its own."""
    if dict(bounds) == operator.bounds:
        return operator
    dimensions = tuple(replace(dimension, bound=bounds[dimension.name]) for dimension in operator.dimensions)
    tensors = tuple(
        replace(tensor, axes=tuple(Axis(axis.terms, axis.extent(bounds)) for axis in tensor.axes))
        for tensor in operator.tensors
    )
    return replace(operator, dimensions=dimensions, tensors=tensors)


def clipped(mapping: Mapping, operator: Operator) -> Mapping:
    """The mapping with no tile larger than the one around it."""
    tile = dict(operator.bounds)
    nodes = []
    for node in mapping.nodes:
        if not isinstance(node, Storage):
            tile[node.dim] = min(node.tile, tile[node.dim])
            node = replace(node, tile=tile[node.dim])
        nodes.append(node)
    return Mapping(tuple(nodes))
