"""Which atoms of a layer read which parts of one operand, as a product over coordinates; remembered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tilewright.formulation.scheduling.tiled.coordinates import ACROSS, CHANNEL, COLUMN, PART, ROW, shape_of
from tilewright.formulation.scheduling.tiled.memo import Memo
from tilewright.formulation.scheduling.tiled.moved import Moved, moved, moved_axes
from tilewright.formulation.scheduling.tiled.overlap import (
    Entries,
    OperandAxes,
    entries,
    flat_entries,
    flatten_axes,
    operand_axes,
    sample_entries,
)
from tilewright.formulation.scheduling.tiled.tiling import Borders, Tiling
from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.arrays import Int64s
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Link

Cuts = tuple[Borders, Borders, Borders, Borders]


@dataclass(frozen=True)
class Origin:
    """Where an operand comes from.

    Parameters
    ----------
    sizes : (channels, rows, columns) of what makes it, or of an input of the network
    centred : per coordinate, whether surplus positions are cropped evenly
    channel : where its channels begin on the operand's channel axis; ``None`` behind other movement
    flattened : whether that movement is a flattening of something that the network makes
    moved : how the operand lies along what the network makes by its link's view; ``None`` where not known
    outside : whether it is an input of the network
    cuts : its borders by samples, channels, rows and columns
    """

    sizes: tuple[int, int, int]
    centred: tuple[bool, ...]
    channel: int | None
    flattened: bool
    moved: Moved | None
    outside: bool
    cuts: Cuts


def made_by(unit: Unit, link: Link | None, cuts: Cuts) -> Origin:
    """Where an operand comes from that a unit of the network makes."""
    shape = shape_of(unit.layer.operator)
    return Origin(
        shape.sizes,
        tuple(axis is not None for axis in shape.scattered),
        link.channel if link is not None else 0,
        link is not None and set(link.moves) <= {"Flatten", "Reshape"},
        moved(unit.maker(link), link),
        False,
        cuts,
    )


def from_outside(sizes: tuple[int, int, int], link: Link | None, cuts: Cuts) -> Origin:
    """Where an operand comes from that is an input of the network, of `input_sizes`."""
    channel = link.channel if link is not None else 0
    return Origin(sizes, (False, False, False), channel, False, None, True, cuts)


def input_sizes(operator: Operator, operand: str, link: Link | None) -> tuple[int, int, int]:
    """(channels, rows, columns) of an input of the network: the operand's, less padding, and less channels of
    other tensors beside it, that its number of elements betrays.

    Padding on both sides of a window, of rows and columns each, is taken before padding on one side of both.
    """
    like = {dimension.name: dimension.like for dimension in operator.dimensions}
    sizes = [1, 1, 1]
    padded = [False, False, False]
    reach = [0, 0, 0]
    for axis in operator.tensor(operand).axes:
        if not axis.terms:
            continue
        name = like[axis.terms[0].dim]
        coordinate = CHANNEL if name in "KGC" else COLUMN if name in "QS" else ROW
        sizes[coordinate] *= axis.size
        padded[coordinate] |= axis.is_compound
        inside = (term.stride * (operator.bounds[term.dim] - 1) for term in axis.terms[1:])
        reach[coordinate] = max(reach[coordinate], *inside, 0)
    channels, rows, columns = sizes
    if link is None:
        return channels, rows, columns
    beside = link.channel if "Concat" in link.moves else None
    joined = beside is not None
    both = padded[ROW] and padded[COLUMN]
    pads = [(pad, pad) for pad in range(min(rows, columns) if both else 1)]
    if joined:  # padding that keeps the size is the most likely
        pads.sort(key=lambda pad: pad[0] != max(reach))
    elif both and channels * rows * columns != link.elements:
        down, along = (range(0, min(2 * reach[at] + 1, sizes[at]), 2) for at in (ROW, COLUMN))
        pads = [*sorted(product(down, along), key=sum), *pads]
    for above, left in pads:
        area = (rows - above) * (columns - left)
        mine = link.elements // area if joined else channels
        if mine * area == link.elements and mine + (beside or 0) <= channels:
            return mine, rows - above, columns - left
    return channels, rows, columns


def axes_along(
    operator: Operator, operand: str, origin: Origin, *, mixed: bool = False
) -> tuple[tuple[OperandAxes, ...], bool] | None:
    """How each coordinate of an origin appears in an operand, and whether behind a flattening.

    Parameters
    ----------
    mixed : whether an axis of the operand may run along several coordinates, see `Moved`

    Returns
    -------
    ``None`` where coordinates mix on the way
    """
    tensor = operator.tensor(operand)
    lies = None if origin.moved is None or (origin.moved.mixed and not mixed) else origin.moved
    plain = None
    if origin.channel is not None:
        plain = operand_axes(operator, tensor, origin.sizes, origin.channel, centred=origin.centred)
        if plain is not None and (lies is None or _is_clear(plain, origin)):
            mapped = None if lies is None else moved_axes(operator, tensor, lies)
            return (plain if mapped is None or _begin_alike(plain, mapped) else mapped), False
    elif origin.flattened:
        flat = flatten_axes(operator, tensor, origin.sizes)
        if flat is not None:
            return flat, True
    if lies is not None:
        mapped = moved_axes(operator, tensor, lies)
        if mapped is not None:
            return mapped, False
    if plain is not None:
        return plain, False
    if origin.outside:
        mapped = operand_axes(operator, tensor, origin.sizes, 0, centred=origin.centred)
        if mapped is not None:
            return mapped, False
    return None


def _is_clear(axes_of: Sequence[OperandAxes], origin: Origin) -> bool:
    """Whether loops of a convolution's kind say all: not those of a matrix product along rows or columns of
    what it reads, or of a layer that has columns where its producer has more channels.
    """
    channels = math.prod(axis.size for axis in axes_of[CHANNEL].axes)
    return channels >= origin.sizes[CHANNEL] and all(
        axes.axes or size == 1 for axes, size in zip(axes_of, origin.sizes, strict=True)
    )


def _begin_alike(plain: Sequence[OperandAxes], mapped: Sequence[OperandAxes]) -> bool:
    """Whether rows and columns begin behind half of the padding, as the link says."""
    return all(half.before == told.before for half, told in zip(plain[ROW:], mapped[ROW:], strict=True))


@dataclass(frozen=True)
class Crossing:
    """Reads of an operand by some atoms: all products of entries along samples, channels, rows and columns.

    Parameters
    ----------
    along : per coordinate
    free : offsets of the atoms, beside those of the entries, that read the same
    """

    along: tuple[Entries, Entries, Entries, Entries]
    free: Int64s


def crossings(
    operator: Operator, operand: str, tiling: Tiling, slots: int, late: bool, origin: Origin
) -> tuple[Crossing, ...] | None:
    """The reads of an operand by all atoms of a layer.

    Where several coordinates move along one axis of the tiling, as the channels and rows of the keys of
    attention do along heads and tokens, each of its tiles has reads of its own.

    Parameters
    ----------
    tiling, slots : how the layer is cut, and its atoms per box of results
    late : whether only the last of them reads

    Returns
    -------
    ``None`` where coordinates mix on the way
    """
    key = (operand, tiling, slots, late, origin)
    return CROSSINGS.get(operator, key, lambda: _crossings(operator, operand, tiling, slots, late, origin))


def _size(value: tuple[Crossing, ...] | None) -> int:
    return 1 + sum(
        len(each.free) + sum(4 * len(along.consumer) for along in each.along) for each in value or ()
    )


CROSSINGS: Memo[tuple[Crossing, ...] | None] = Memo(_size)


def _crossings(
    operator: Operator, operand: str, tiling: Tiling, slots: int, late: bool, origin: Origin
) -> tuple[Crossing, ...] | None:
    found_axes = axes_along(operator, operand, origin, mixed=True)
    if found_axes is None:
        return None
    mapped, flat = found_axes
    shape = shape_of(operator)
    tiles = tiling.every(operator)
    counts = [len(cuts) - 1 for cuts in tiles]
    strides = [counts[ROW] * counts[COLUMN] * slots, counts[COLUMN] * slots, slots, counts[ACROSS], 1]
    if late:
        tiles = *tiles[:3], (0, shape.parts), (0, shape.strips)
    used = {axis for axes in mapped for axis in axes.depends}
    shared = [axis for axis in sorted(used) if sum(axis in axes.depends for axes in mapped) > 1]
    free = np.array([slots - 1 if late else 0], dtype=np.int64)
    for axis, count in enumerate(counts):
        if axis not in used and not (axis >= PART and late):
            free = np.add.outer(free, np.arange(count) * strides[axis]).ravel()
    samples = sample_entries(tiling.samples, counts[CHANNEL] * strides[CHANNEL], origin.cuts[0])

    def along(coordinate: int, tiles: Sequence[Borders]) -> Entries:
        axes, cuts = mapped[coordinate], origin.cuts[coordinate + 1]
        if flat and coordinate == CHANNEL:
            return flat_entries(axes, tiles[PART], strides[PART], cuts)
        return entries(operator, axes, origin.sizes[coordinate], tiles, strides, cuts)

    alike = [
        along(at, tiles) if not set(axes.depends) & set(shared) else None for at, axes in enumerate(mapped)
    ]
    made = []
    for places in product(*(range(len(tiles[axis]) - 1) for axis in shared)):
        chosen = list(tiles)
        for axis, tile in zip(shared, places, strict=True):
            chosen[axis] = tiles[axis][tile : tile + 2]
        offset = sum(tile * strides[axis] for axis, tile in zip(shared, places, strict=True))
        channels, rows, columns = (known or along(at, chosen) for at, known in enumerate(alike))
        made.append(Crossing((samples, channels, rows, columns), free + offset))
    return tuple(made)
