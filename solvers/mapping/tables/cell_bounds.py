"""Least and greatest values of nested cells of rows, in one compiled pass from the finest cells outwards."""

from __future__ import annotations

from tilewright.foundation.arrays import Floats, Int32s, Int64s
from tilewright.foundation.compiled import compiled


@compiled
def bound_cells(
    values: Floats, classes: Int32s, edges: Int32s, levels: Int64s, low: bool, bounds: Floats
) -> None:  # pragma: no cover
    """Write the least or greatest value of every cell of every level.

    Parameters
    ----------
    values : of the rows or of their classes, none of which is not a number; there is at least one
    classes : of the rows, shape (rows,); empty where values are those of rows
    edges : the first cell of the next level in every cell, of the last level the first row, with an end
        marker; of the coarsest level first, one level after the other
    levels : where the cells of each level begin in ``bounds``, and how many these are, shape (2, levels)
    low : whether the least values are asked for
    bounds : is overwritten in these places
    """
    inner, end = values, len(edges)
    for level in range(levels.shape[1] - 1, -1, -1):
        place, count = levels[0, level], levels[1, level]
        first = end - count - 1
        begins, cells = edges[first:end], bounds[place : place + count]
        if level == levels.shape[1] - 1 and len(classes) > 0:
            for cell in range(count):
                bound = values[classes[begins[cell]]]
                for k in range(begins[cell] + 1, begins[cell + 1]):
                    value = values[classes[k]]
                    bound = min(bound, value) if low else max(bound, value)
                cells[cell] = bound
            inner, end = cells, first
            continue
        for cell in range(count):
            bound = inner[begins[cell]]
            for k in range(begins[cell] + 1, begins[cell + 1]):
                bound = min(bound, inner[k]) if low else max(bound, inner[k])
            cells[cell] = bound
        inner, end = cells, first
