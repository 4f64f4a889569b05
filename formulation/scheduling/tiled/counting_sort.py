"""Sorting by small whole numbers, in time that grows with how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.foundation.compiled import compiled


@compiled
def counting_sort(
    keys: npt.NDArray[np.integer], values: npt.NDArray[np.integer], bound: int
) -> Any:  # pragma: no cover
    """Values in order of their keys, those of equal keys as they came.

    Parameters
    ----------
    keys : from 0 to ``bound - 1``, one of each value

    Returns
    -------
    starts : where the values of each key begin, shape (bound + 1,)
    found : the values, of the type that they came in
    """
    starts = np.zeros(bound + 1, dtype=np.int64)
    for key in keys:
        starts[key + 1] += 1
    for i in range(bound):
        starts[i + 1] += starts[i]
    at = starts[:-1].copy()
    ordered = np.empty(len(values), dtype=values.dtype)
    for i in range(len(keys)):
        ordered[at[keys[i]]] = values[i]
        at[keys[i]] += 1
    return starts, ordered
