"""Machine code that eliminates variables of sums of costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.foundation.compiled import compiled


@compiled
def least_sums(first: Any, second: Any) -> Any:  # pragma: no cover
    """The least of the sums of two costs over the choices of a variable that both name.

    Parameters
    ----------
    first, second : shapes (choices, choices of others) and (choices, choices of still others)

    Returns
    -------
    Shape (choices of others, choices of still others)
    """
    least = np.full((first.shape[1], second.shape[1]), np.inf)
    for choice in range(first.shape[0]):
        for i in range(first.shape[1]):
            cost = first[choice, i]
            for j in range(second.shape[1]):
                total = cost + second[choice, j]
                least[i, j] = total if total < least[i, j] else least[i, j]
    return least


@compiled
def most_beyond(costs: Any, rivals: Any) -> Any:  # pragma: no cover
    """By how much some choices cost more than each choice at most, whatever others choose.

    Parameters
    ----------
    costs : shape (choices of others, choices)
    rivals : choices

    Returns
    -------
    Shape (rivals, choices)
    """
    most = np.full((len(rivals), costs.shape[1]), -np.inf)
    for r in range(len(rivals)):
        for j in range(costs.shape[0]):
            rival = costs[j, rivals[r]]
            for choice in range(costs.shape[1]):
                beyond = rival - costs[j, choice]
                most[r, choice] = beyond if beyond > most[r, choice] else most[r, choice]
    return most
