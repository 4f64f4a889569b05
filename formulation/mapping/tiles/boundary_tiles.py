"""Tiles at some boundaries of a space: what they are, and the space over some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilewright.formulation.expression import Expr
from tilewright.formulation.mapping.nests.arrangements import Arrangement
from tilewright.formulation.mapping.space import MapSpace
from tilewright.formulation.mapping.tiles.chains import AxisGroup
from tilewright.foundation.arrays import Indices, Int64s, among, contained, distinct_rows, numbered

Tiles = dict[str, Int64s]
"""Tile sizes of each axis group's dimensions at some boundaries, one combination per row."""


def tiles_at(space: MapSpace, edges: Sequence[int], group: AxisGroup) -> Int64s:
    """Tile sizes of a group's dimensions at some boundaries, one row for every row of the group."""
    columns = [group.sizes(tile) for tile in boundary_tiles(space, edges, group)]
    return np.column_stack(columns) if columns else np.zeros((len(group), 0), dtype=np.int64)


def restricted(space: MapSpace, edges: Sequence[int], tiles: Tiles) -> MapSpace:
    """The space over some combinations of tiles at some boundaries."""
    groups = []
    for group in space.groups:
        kept = _rows_with(space, edges, group, tiles[group.name])
        groups.append(group if len(kept) == len(group) else group.having(group.rows[kept]))
    return replace(space, groups=tuple(groups))


def standing_around(space: MapSpace, near: Arrangement, inside: Sequence[Tiles]) -> MapSpace:
    """The space of a part outside, over what may stand around any of some tiles inside.

    Parameters
    ----------
    near : slots of the part
    inside : tiles at the boundaries of :func:`within`, of several sequences of points
    """
    groups = []
    for group in space.groups:
        number = len(group.dims)
        outermost = [tiles[group.name][:, :: tiles[group.name].shape[1] // number] for tiles in inside]
        own = tiles_at(space, [len(near) - 1], group)
        if number == 1:
            holds = own[:, 0] >= min(int(tiles.min()) for tiles in outermost)
        else:
            wanted = distinct_rows(np.concatenate(outermost))
            _, first, places = np.unique(numbered(own), return_index=True, return_inverse=True)
            holds = np.array([bool((wanted <= tile).all(axis=1).any()) for tile in own[first]])[places]
        groups.append(group if holds.all() else group.having(group.rows[holds]))
    return replace(space, groups=tuple(groups))


def _rows_with(space: MapSpace, edges: Sequence[int], group: AxisGroup, wanted: Int64s) -> Indices:
    """The rows of a group whose tiles at some boundaries are among those wanted."""
    kept = np.arange(len(group))
    # Most rows of a large group have a size that none of those wanted has; only the rest is compared whole.
    for tile, sizes in zip(boundary_tiles(space, edges, group), wanted.T, strict=True):
        kept = kept[contained(group.sizes(tile)[kept], sizes)]
    left = group.having(group.rows[kept])
    return kept[among(tiles_at(space, edges, left), wanted)]


def boundary_tiles(space: MapSpace, edges: Sequence[int], group: AxisGroup) -> list[Expr]:
    """Tiles of a group's dimensions at some boundaries."""
    return [space.nest.boundaries[edge][dim] for dim in group.dims for edge in edges]
