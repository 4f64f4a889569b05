"""Remembered parts of atomic DAGs: a search builds the same layers in the same sizes again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from tilewright.workloads.mapping.operator import Operator

Value = TypeVar("Value")

MOST_ENTRIES = 50_000
MOST_NUMBERS = 16_000_000
"""Array entries that one memo holds (128 MB of 64-bit numbers); beyond either it starts again."""

_EQUAL: dict[int, tuple[Operator, Operator]] = {}
_FIRST: dict[Operator, Operator] = {}


def first_equal(operator: Operator) -> Operator:
    """The first operator that was equal to this one.

    Hashing an operator takes long, so that it is done once per object; layers that compute the same thing
    share what is remembered.
    """
    known = _EQUAL.get(id(operator))
    if known is None or known[0] is not operator:
        if len(_EQUAL) >= MOST_ENTRIES:
            _EQUAL.clear()
            _FIRST.clear()
        known = operator, _FIRST.setdefault(operator, operator)
        _EQUAL[id(operator)] = known
    return known[1]


class Memo(Generic[Value]):
    """Values by an operator, or another object, and a key.

    Parameters
    ----------
    size : array entries that a value holds
    """

    def __init__(self, size: Callable[[Value], int]) -> None:
        self._size = size
        self._known: dict[tuple[int, Hashable], tuple[object, Value]] = {}
        self._numbers = 0

    def get(self, operator: Operator, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value that was made for an equal operator and key, or a new one."""
        return self.recall(first_equal(operator), key, make)

    def recall(self, owner: object, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value that was made for this very object and a key, or a new one."""
        at: tuple[int, Any] = (id(owner), key)
        known = self._known.get(at)
        if known is not None and known[0] is owner:
            return known[1]
        value = make()
        self._numbers += self._size(value)
        if len(self._known) >= MOST_ENTRIES or self._numbers > MOST_NUMBERS:
            self._known.clear()
            self._numbers = self._size(value)
        self._known[at] = owner, value
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._numbers = 0
