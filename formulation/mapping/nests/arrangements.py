"""Arrangements: in which sequence the tensors of a level begin to live, and which loops stand between.

In an *even* nest all tensors of a level begin to live at one point.  In an *uneven* one every tensor has its
own point, and loops stand between the points.  An arrangement fixes, for every level, the sequence of these
points (*slots*) and the dimensions that may have a loop after each; a nest over an arrangement has one block
of temporal loops per slot. The uneven space is the union over all arrangements, and the capacity of a level
is shared by its slots.

Most loops after a slot are useless: one that moves the slot's tensor could stand outside its store, and its
tile would be smaller.  ``docs/uneven.md`` shows when that loses nothing (:func:`useful_dims`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import combinations, pairwise

from tilewright.formulation.mapping.nests.orders import sliding_dims
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Tensor

EVEN, UNEVEN = STORAGES = ("even", "uneven")


class Reduction(Enum):
    """What is left out of the uneven space when it is searched."""

    NONE = "none"
    LOOPS = "loops"
    """Loops after a slot over dimensions that :func:`useful_dims` does not name, and repeated points."""
    FORMS = "forms"
    """Those, and orders that repeat others; for perfect factors, where nothing is lost."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A point at which tensors begin to live in a level, and what may stand between it and the next one.

    Parameters
    ----------
    level : index of the memory level
    tensors : names of those that begin to live here, unless they bypass the level
    dims : dimensions that may have a loop after this point, before the next one or an array
    leads : whether it belongs to the first point after an array: loops outside may leave its tiles in place
    """

    level: int
    tensors: tuple[str, ...]
    dims: frozenset[str]
    leads: bool = False


Arrangement = tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """Levels with no array between them: their points of storage may stand in any sequence.

    Parameters
    ----------
    levels : indices
    fed : whether an array feeds it
    """

    levels: range
    fed: bool

    def items(self, operator: Operator, engine: Engine) -> list[tuple[int, str]]:
        """What may be stored: level and tensor, level by level."""
        return [(level, name) for level in self.levels for name in _kept(operator, engine, level)]


def segments(engine: Engine) -> tuple[Segment, ...]:
    """The segments of an engine, outermost first; the first one is its outermost level alone."""
    return _divided(tuple([level.fanout is not None for level in engine.levels]))


@lru_cache(maxsize=1 << 10)
def _divided(feeds: tuple[bool, ...]) -> tuple[Segment, ...]:
    """The segments of levels of which some feed arrays."""
    fed = (False, *feeds)
    # The outermost level holds whole tensors, so it is a segment of its own.
    starts = [index for index in range(len(feeds)) if index < 2 or fed[index]]
    return tuple(
        Segment(range(start, end), fed[start])
        for start, end in zip(starts, [*starts[1:], len(feeds)], strict=True)
    )


def even_arrangement(operator: Operator, engine: Engine) -> Arrangement:
    """One slot per level."""
    dims = frozenset(operator.bounds)
    return tuple(
        Slot(index, _kept(operator, engine, index), dims, leads=True) for index in range(len(engine.levels))
    )


def arrangements(operator: Operator, engine: Engine, reduction: Reduction) -> Iterator[Arrangement]:
    """Arrangements of the uneven space, outermost slot first; the even one belongs to the space besides.

    One after the other, so that whoever asks may stop: there may be very many.
    """
    parts = segments(engine)
    known: list[list[Arrangement]] = [[] for _ in parts]  # of each segment, once all have been made

    def inside(first: int) -> Iterator[Arrangement]:
        if first == len(parts):
            yield ()
            return
        made: list[Arrangement] = []
        for slots in known[first] or of_segment(operator, engine, parts[first], reduction):
            made.append(slots)
            for inner in inside(first + 1):
                yield (*slots, *inner)
        known[first] = made

    yield from inside(0)


def _kept(operator: Operator, engine: Engine, level: int) -> tuple[str, ...]:
    keeps = engine.levels[level].keeps
    return tuple(tensor.name for tensor in operator.tensors if tensor.role in keeps)


def of_segment(
    operator: Operator, engine: Engine, segment: Segment, reduction: Reduction
) -> Iterator[Arrangement]:
    """The sequences of slots of one segment.

    Parameters
    ----------
    operator, engine : the layer and the machine
    segment : consecutive levels between two arrays, whose points of storage are independent of all others
    reduction : which sequences of slots that cannot beat another one are left out
    """
    items, every = segment.items(operator, engine), frozenset(operator.bounds)
    # Nothing can be rearranged where all is stored outside the loops, or nothing at all.
    if segment.levels[0] == 0 or not items:
        yield leading(operator, engine, segment, items)
        return
    if reduction is Reduction.NONE:
        for order in _sequences(items):
            yield tuple(Slot(level, (name,), every) for level, name in order)
        if segment.fed:
            yield leading(operator, engine, segment, items)
        return
    # Only behind an array does it matter which stores stand at the first point: loops outside the array may
    # leave their tiles in place.
    firsts = [tuple[tuple[int, str], ...]()]
    if segment.fed:
        firsts = [
            subset
            for n in range(1, len(items) + 1)
            for subset in combinations(items, n)
            if _closed(subset, items)
        ]
    fixed = is_fixed(operator, engine, segment)
    for first in firsts:
        lead = leading(operator, engine, segment, first) if first else ()
        for order in _sequences([item for item in items if item not in first]):
            points = list(lead)
            for index, (level, name) in enumerate(order):
                before = {*first, *order[:index]}
                dims = useful_dims(operator, engine, segment, (level, name), before)
                points.append(Slot(level, (name,), dims))
            settled = _settled(operator, points) if fixed else points
            if not (fixed and _repeats(operator, settled)):
                yield tuple(settled)


def leading(
    operator: Operator, engine: Engine, segment: Segment, items: Sequence[tuple[int, str]]
) -> Arrangement:
    """Slots at one point, one per level; any loops after the last.

    Parameters
    ----------
    operator, engine : the layer and the machine
    segment : whose innermost level takes the loops if nothing is stored
    items : (level, tensor) that are stored here
    """
    levels = [level for level in segment.levels if any(item[0] == level for item in items)]
    levels = levels or [segment.levels[-1]]
    every = frozenset(operator.bounds)
    return tuple(
        Slot(
            level,
            tuple(name for at, name in items if at == level),
            every if level == levels[-1] else frozenset(),
            leads=True,
        )
        for level in levels
    )


def _sequences(items: Sequence[tuple[int, str]]) -> Iterator[tuple[tuple[int, str], ...]]:
    """All sequences in which every tensor's levels follow each other inwards."""
    if not items:
        yield ()
    for item in items:
        # A tensor reaches an inner level through its outer one, so the outer store comes first.
        if not any(other[1] == item[1] and other[0] < item[0] for other in items):
            for rest in _sequences([other for other in items if other != item]):
                yield (item, *rest)


def _closed(chosen: Collection[tuple[int, str]], items: Sequence[tuple[int, str]]) -> bool:
    """Whether with every store the outer ones of its tensor are chosen, too."""
    return all(
        outer in chosen for level, name in chosen for outer in items if outer[1] == name and outer[0] < level
    )


def useful_dims(
    operator: Operator,
    engine: Engine,
    segment: Segment,
    item: tuple[int, str],
    before: Collection[tuple[int, str]],
) -> frozenset[str]:
    """Dimensions whose loops may be worth having just inside a tensor's store (``docs/uneven.md``).

    Those are all but the ones that move the tensor and would cost nothing outside its store: along which its
    tiles do not overlap, with no tensor inside that such a loop leaves in place or whose window it slides.

    Parameters
    ----------
    item : level and tensor
    before : levels and tensors that begin to live at this point or outside it, in this segment
    """
    tensor = operator.tensor(item[1])
    return frozenset(
        dim
        for dim in operator.bounds
        if not _moves_plainly(operator, tensor, dim)
        or any(
            (other is not tensor and _stays_inside(engine, segment, other, dim, before))
            or _slides(operator, engine, segment, other, dim)
            for other in operator.tensors
        )
    )


def _moves_plainly(operator: Operator, tensor: Tensor, dim: str) -> bool:
    """Whether a loop moves a tensor so that all tiles together are no more than the tile around them."""
    axes = [axis for axis in tensor.axes if any(term.dim == dim for term in axis.terms)]
    # A dimension in two axes moves the tile diagonally; tiles then cover less than the box around them.
    if len(axes) != 1:
        return False
    [axis] = axes
    # Another loop along the same axis makes tiles overlap, so that elements are fetched twice.
    if any(operator.bounds[term.dim] > 1 for term in axis.terms if term.dim != dim):
        return False
    stride = next(term.stride for term in axis.terms if term.dim == dim)
    # Partial sums are counted element by element: gaps and overlaps change what is read again.
    return not tensor.is_output or (stride == 1 and not axis.is_compound)


def _stays_inside(
    engine: Engine, segment: Segment, other: Tensor, dim: str, before: Collection[tuple[int, str]]
) -> bool:
    """Whether a loop may leave a tensor in place beyond an array, with none of its stores here in between."""
    # Reuse across an array needs a store beyond it.
    deeper = engine.levels[segment.levels[-1] + 1 :]
    if dim in other.dims or not any(other.role in level.keeps for level in deeper):
        return False
    return all(
        (level, other.name) in before or other.role in engine.levels[level].may_bypass
        for level in segment.levels
        if other.role in engine.levels[level].keeps
    )


def _slides(operator: Operator, engine: Engine, segment: Segment, other: Tensor, dim: str) -> bool:
    """Whether a loop may slide a tensor's window in this segment or further inside."""
    stores = engine.levels[segment.levels[0] :]
    return any(m.sliding_window and other.role in m.keeps for m in stores) and dim in sliding_dims(
        operator, other
    )


def is_mandatory(operator: Operator, engine: Engine, slot: Slot) -> bool:
    """Whether a slot's tensors must live in its level."""
    return all(
        operator.tensor(name).role not in engine.levels[slot.level].may_bypass for name in slot.tensors
    )


def place_in_point(operator: Operator, slot: Slot) -> tuple[int, int]:
    """Slots at one point stand level by level, tensors in the operator's sequence."""
    return slot.level, [tensor.name for tensor in operator.tensors].index(slot.tensors[0])


def is_spread(engine: Engine, slots: Arrangement) -> bool:
    """Whether there may be loops between points of one segment; otherwise all nests are even."""
    return any(True for _ in neighbouring_slots(engine, slots))


def neighbouring_slots(engine: Engine, slots: Arrangement) -> Iterator[tuple[int, Slot, Slot, Segment]]:
    """Slots that follow each other in one segment, past its leading point, with the first one's index."""
    of = {level: segment for segment in segments(engine) for level in segment.levels}
    for index, (slot, inner) in enumerate(pairwise(slots)):
        if not inner.leads and of[slot.level] is of[inner.level]:
            yield index, slot, inner, of[slot.level]


def _settled(operator: Operator, points: Sequence[Slot]) -> list[Slot]:
    """Points of a segment without loops after one where none of them could move the next one's tensor."""
    settled = [*points]
    for index, (slot, inner) in enumerate(pairwise(points)):
        moving = slot.dims & operator.tensor(inner.tensors[0]).dims
        if slot.dims and not inner.leads and all(operator.bounds[dim] == 1 for dim in moving):
            settled[index] = replace(slot, dims=frozenset())
    return settled


def _repeats(operator: Operator, points: Sequence[Slot]) -> bool:
    """Whether two points of a segment are one for sure that another arrangement has, too."""
    return any(
        not slot.dims and not inner.leads and stand_apart(operator, slot, inner)
        for slot, inner in pairwise(points)
    )


def is_fixed(operator: Operator, engine: Engine, segment: Segment) -> bool:
    """Whether nothing may bypass a segment's levels: then arrangements differ in their points alone."""
    return all(
        operator.tensor(name).role not in engine.levels[level].may_bypass
        for level, name in segment.items(operator, engine)
    )


def stand_apart(operator: Operator, slot: Slot, inner: Slot) -> bool:
    """Whether two slots in this sequence must be different points."""
    return slot.leads or place_in_point(operator, slot) > place_in_point(operator, inner)
