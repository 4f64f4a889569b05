"""What a drawing of a mapping shows: boxes by level with every tensor's tile, loops, the array, first moves.

Tiles are those of the evaluator's records; forms (SVG) read this and add no figure of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, shapes_of, sized
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop
from tilewright.formulation.mapping.fused.turns import LeafTurns
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.breakdown import bits_of
from tilewright.report.records.mapping.document import MetricsRecord
from tilewright.report.records.mapping.operator import statement_text
from tilewright.workloads.mapping.operator import Operator, Tensor

FIRST_STEPS = 8
"""Steps that a drawing shows."""


@dataclass(frozen=True, slots=True)
class TileShown:
    """What one instance of a level holds of a tensor.

    Parameters
    ----------
    elements, bits : of the tile, and of one element
    """

    tensor: str
    elements: int
    bits: int


@dataclass(frozen=True, slots=True)
class LoopShown:
    """A loop.

    Parameters
    ----------
    trips : how often it runs; ``None`` where that differs from turn to turn
    tile, last : iterations of a trip, and of the last one
    axis : of the array, for a loop in space
    """

    dim: str
    trips: int | None
    tile: int
    last: int
    axis: str | None = None


@dataclass
class BoxShown:
    """A level with its tiles and what lies inside, or the turn of a layer, whose title names it."""

    title: str
    tiles: list[TileShown] = field(default_factory=list)
    inside: list[LoopShown | BoxShown | str] = field(default_factory=list)
    is_turn: bool = False


@dataclass(frozen=True, slots=True)
class AxisShown:
    """An axis of the array behind a level, and the loops that are spread along it."""

    level: str
    name: str
    size: int
    loops: tuple[tuple[str, int], ...]

    @property
    def used(self) -> int:
        """Instances along the axis that work."""
        return math.prod(trips for _, trips in self.loops)


@dataclass(frozen=True, slots=True)
class MoveShown:
    """What a step does with a tensor.

    Parameters
    ----------
    level : where the tile lives
    index, count : place of the tile among all that the loops outside visit
    is_new : whether the evaluator counts the tile as brought in this round
    elements : of the tile at this step
    """

    tensor: str
    level: str
    is_output: bool
    index: int
    count: int
    is_new: bool
    elements: int
    bits: int


@dataclass(frozen=True, slots=True)
class StepShown:
    """One round of the loops outside the first inner stores: its indices, and every tensor's move."""

    indices: tuple[tuple[str, int, int], ...]
    moves: tuple[MoveShown, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A mapping as a drawing shows it.

    Parameters
    ----------
    steps, rounds : the first steps, and how many trips the loops outside have in all
    """

    name: str
    machine: str
    boxes: tuple[BoxShown | LoopShown | str, ...]
    axes: tuple[AxisShown, ...]
    steps: tuple[StepShown, ...] = ()
    rounds: int = 0


def picture_of(
    name: str, operator: Operator, engine: Engine, mapping: Mapping, metrics: MetricsRecord
) -> Picture:
    """The picture of a layer's mapping.

    Parameters
    ----------
    name : of the layer
    operator, engine, mapping : that fit each other
    metrics : the evaluator's records of the mapping
    """
    tiles = {(row.level, row.tensor): row.tile for row in metrics.accesses}
    boxes = _nested(operator, engine, mapping, tiles)
    steps = tuple(itertools.islice(steps_of(operator, engine, mapping), FIRST_STEPS))
    rounds = math.prod(trips for _, _, trips in steps[0].indices) if steps else 0
    return Picture(name, engine.name, tuple(boxes), axes_of(operator, engine, mapping), steps, rounds)


def _nested(
    operator: Operator, engine: Engine, mapping: Mapping, tiles: dict[tuple[str, str], int]
) -> list[LoopShown | BoxShown | str]:
    """Boxes and loops; stores that follow each other in one level share a box."""
    outermost: list[LoopShown | BoxShown | str] = []
    inside, tile = outermost, dict(operator.bounds)
    box: BoxShown | None = None
    for node in mapping.nodes:
        if isinstance(node, Storage):
            if box is None or box.title != node.level:
                box = BoxShown(node.level)
                inside.append(box)
                inside = box.inside
            elements = tiles.get((node.level, node.tensor), operator.tensor(node.tensor).footprint(tile))
            bits = bits_of(engine, operator, node.level, node.tensor)
            box.tiles.append(TileShown(node.tensor, elements, bits))
            continue
        box, outer = None, tile[node.dim]
        trips = -(-outer // node.tile)
        axis = node.axis if isinstance(node, Spatial) else None
        inside.append(LoopShown(node.dim, trips, node.tile, outer - (trips - 1) * node.tile, axis))
        tile[node.dim] = node.tile
    inside.append(statement_text(operator))
    return outermost


def axes_of(operator: Operator, engine: Engine, mapping: Mapping) -> tuple[AxisShown, ...]:
    """The machine's axes of more than one instance, with what is spread along each."""
    spread: dict[str, list[tuple[str, int]]] = {}
    for step in mapping.loops(operator):
        if isinstance(step.node, Spatial):
            spread.setdefault(step.node.axis, []).append((step.node.dim, step.trip))
    return tuple(
        AxisShown(level.name, axis.name, axis.size, tuple(spread.get(axis.name, ())))
        for level in engine.levels
        if level.fanout
        for axis in level.fanout.axes
        if axis.size > 1
    )


def steps_of(operator: Operator, engine: Engine, mapping: Mapping) -> Iterator[StepShown]:
    """All rounds of the loops around the first inner store of every tensor, in the order of the run.

    Of loops in space the first instance is followed.  A tensor that lives in one level alone has no move.
    """
    stores: dict[str, list[int]] = {}
    for place, node in enumerate(mapping.nodes):
        if isinstance(node, Storage):
            stores.setdefault(node.tensor, []).append(place)
    inner = {tensor: places[1] for tensor, places in stores.items() if len(places) > 1}
    around = [
        (place, step.node, step.trip)
        for (place, _), step in zip(
            ((place, node) for place, node in enumerate(mapping.nodes) if not isinstance(node, Storage)),
            mapping.loops(operator),
            strict=True,
        )
        if place < max(inner.values(), default=0)
    ]
    temporal = [loop for loop in around if isinstance(loop[1], Temporal)]
    before: dict[str, tuple[int, ...]] = {}
    for indices in itertools.product(*(range(trips) for _, _, trips in temporal)):
        at = {place: index for (place, _, _), index in zip(temporal, indices, strict=True)}
        moves = []
        for tensor, store in inner.items():
            extents = _extents(operator, [loop for loop in around if loop[0] < store], at)
            if extents is None:
                break
            moves.append(_move(operator, engine, mapping, tensor, store, (around, at, extents), before))
        else:
            rounds = ((node.dim, at[place], trips) for place, node, trips in temporal)
            yield StepShown(tuple(rounds), tuple(moves))


Around = list[tuple[int, Temporal | Spatial, int]]


def _extents(operator: Operator, around: Around, at: dict[int, int]) -> dict[str, int] | None:
    """Iterations per dimension that are left inside loops at some indices; ``None`` where there are none."""
    extents = dict(operator.bounds)
    for place, node, _ in around:
        extents[node.dim] = min(node.tile, extents[node.dim] - at.get(place, 0) * node.tile)
        if extents[node.dim] <= 0:
            return None
    return extents


def _move(
    operator: Operator,
    engine: Engine,
    mapping: Mapping,
    name: str,
    store: int,
    turn: tuple[Around, dict[int, int], dict[str, int]],
    before: dict[str, tuple[int, ...]],
) -> MoveShown:
    """The move of a tensor; what it held is kept in ``before``."""
    around, at, extents = turn
    tensor = operator.tensor(name)
    own = _dims(tensor)
    index, count = 0, 1
    for place, node, trips in around:
        if place < store and isinstance(node, Temporal) and node.dim in own:
            index, count = index * trips + at[place], count * trips
    # As the evaluator counts: a round of an outer loop brings a tile anew if a loop inside it moves the tile.
    innermost = max(
        (
            place
            for place, node, trips in around
            if place < store and trips > 1 and node.dim in own and place in at
        ),
        default=-1,
    )
    held = tuple(at[place] for place, _, _ in around if place in at and place <= innermost)
    is_new = before.get(name) != held
    before[name] = held
    place_of = mapping.nodes[store]
    assert isinstance(place_of, Storage)
    bits = bits_of(engine, operator, place_of.level, name)
    elements = tensor.footprint(extents)
    return MoveShown(name, place_of.level, tensor.is_output, index, count, is_new, elements, bits)


def _dims(tensor: Tensor) -> set[str]:
    return {term.dim for axis in tensor.axes for term in axis.terms}


def fused_picture(
    name: str, group: FusedGroup, engine: Engine, tree: Branch, evaluation: FusedEvaluation
) -> Picture:
    """The picture of a fused mapping: shared loops and stores, and inside them the layers' turns.

    Parameters
    ----------
    name : of the group
    group, engine : the layers and the machine
    tree, evaluation : the fused mapping and what the evaluator says of it
    """
    boxes = _branch(group, engine, tree, evaluation)
    return Picture(name, engine.name, tuple(boxes), ())


def _branch(
    group: FusedGroup, engine: Engine, branch: Branch, evaluation: FusedEvaluation
) -> list[LoopShown | BoxShown | str]:
    outermost: list[LoopShown | BoxShown | str] = []
    inside, box = outermost, None
    for node in branch.nodes:
        if isinstance(node, SharedLoop):
            inside.append(LoopShown(node.name, None, node.tile, node.tile))
            box = None
            continue
        if box is None or box.title != node.level:
            box = BoxShown(node.level)
            inside.append(box)
            inside = box.inside
        operator = group.operator(node.layer)
        tensor = operator.tensor(node.tensor)
        elements = evaluation.turns.tiles.get(node, tensor.footprint(operator.bounds))
        box.tiles.append(TileShown(node.name, elements, engine.width(engine.level(node.level), tensor.role)))
    for child in branch.children:
        if isinstance(child, Leaf):
            turns = next(leaf for leaf in evaluation.turns.leaves if leaf.leaf.layer == child.layer)
            inside.append(_turn(group, engine, turns))
        else:
            turn = BoxShown("in turn", is_turn=True)
            turn.inside += _branch(group, engine, child, evaluation)
            inside.append(turn)
    return outermost


def _turn(group: FusedGroup, engine: Engine, turns: LeafTurns) -> BoxShown:
    """A layer's turn of the largest size."""
    layer = turns.leaf.layer
    operator = group.operator(layer)
    shapes = shapes_of(operator, turns)
    if not shapes:
        return BoxShown(f"{layer}: nothing to do", is_turn=True)
    most = {dim: max(shape[0][i] for shape in shapes) for i, dim in enumerate(operator.bounds)}
    number = sum(shapes.values())
    box = BoxShown(f"{layer}, {number:,} turn{'s' * (number > 1)}", is_turn=True)
    box.inside += _nested(sized(operator, most), engine, turns.leaf.mapping, {})
    return box
