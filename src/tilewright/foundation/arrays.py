"""Arrays of numbers, by what stands in them: one name for every width; and what numpy does slowly."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.intp]


def distinct(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Every value of an array once, ascending: `numpy.unique`, whose hashing takes ten times as long."""
    ascending = np.sort(values, axis=None)
    first = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return ascending[first]


def contained(values: npt.NDArray[Number], wanted: npt.NDArray[Number]) -> Bools:
    """Which values, shape (values,), are among others: `numpy.isin`, which takes longer to begin."""
    if not len(wanted):
        return np.zeros(len(values), dtype=np.bool_)
    ascending = np.sort(wanted)
    places = np.searchsorted(ascending, values)
    same: Bools = ascending.take(places, mode="clip") == values
    return same


def among(rows: Int64s, wanted: Int64s) -> Bools:
    """Which rows are among others."""
    codes = numbered(np.concatenate([wanted, rows]))
    return contained(codes[len(wanted) :], codes[: len(wanted)])


def distinct_rows(rows: Int64s) -> Int64s:
    """Every row of non-negative integers once, ascending: `numpy.unique` by rows, which takes longer."""
    codes = numbered(rows)
    order = np.argsort(codes, kind="stable")
    ascending = codes[order]
    first = np.ones(len(rows), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return rows[order[first]]


def numbered(rows: Int64s) -> Int64s:
    """A number for each row of non-negative integers, the same for equal ones, in the order of rows."""
    codes, most = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        size = int(column.max(initial=0)) + 1
        if most * size >= 1 << 62:  # number what there is
            _, codes = np.unique(codes, return_inverse=True)
            most = len(rows)
        codes, most = codes * size + column, most * size
    return codes
