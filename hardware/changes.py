"""Descriptions of machines and systems with some fields changed.

A path leads from the top of a file to a field, its steps joined by dots.  In a list, a step is the name of an
entry or its position: ``levels.GLB.capacity``, ``levels.1.fanout.axes.x.size``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.foundation.units import exact

_BOTH = ("read", "write")


def changed(data: object, changes: Mapping[str, object], where: str) -> Any:
    """A copy of a description with other values at some paths.

    Parameters
    ----------
    data : as the YAML file holds it
    changes : by path, the new value as the file would hold it; ``None`` leaves the field out
    where : what errors call the file

    Raises
    ------
    InputError : for a path that leads nowhere; whether values fit is the schema's affair
    """
    copied = copy.deepcopy(data)
    for path, value in changes.items():
        _set(copied, path, plain(value), where)
    return copied


def plain(value: object) -> object:
    """A Python value as a YAML file would hold it: numbers exact, sequences as lists."""
    if isinstance(value, bool | Decimal | str) or value is None:
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Fraction):
        return exact(value)
    if isinstance(value, Real):
        return Decimal(repr(float(value)))
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value


def _set(data: Any, path: str, value: object, where: str) -> None:
    steps = path.split(".")
    if not all(steps):
        raise InputError(where, path or None, "expected the way to a field, such as levels.GLB.capacity")
    node = data
    while steps:
        holder, key, steps = _step(node, steps, path, where)
        if not steps:
            if value is None:
                _leave_out(holder, key)
            else:
                holder[key] = value
        else:
            node = _inside(holder, key, steps[0], path, where)


def _step(node: Any, steps: list[str], path: str, where: str) -> tuple[Any, Any, list[str]]:
    """The container, the key of the next step in it, and the steps behind that."""
    if isinstance(node, dict):
        return node, steps[0], steps[1:]
    names = [str(entry["name"]) for entry in node if isinstance(entry, dict) and "name" in entry]
    for length in range(len(steps), 0, -1):  # names may have dots in them
        name = ".".join(steps[:length])
        if name in names:
            return node, names.index(name), steps[length:]
    if steps[0].isdecimal() and int(steps[0]) < len(node):
        return node, int(steps[0]), steps[1:]
    raise InputError(where, path, unknown_name(steps[0], names))


def _inside(holder: Any, key: Any, following: str, path: str, where: str) -> Any:
    """The container behind a key, made where there is none."""
    inner = holder.get(key) if isinstance(holder, dict) else holder[key]
    if isinstance(inner, dict | list):
        return inner
    if inner is None:
        inner = {}
    elif following in _BOTH:  # one figure stands for both
        inner = dict.fromkeys(_BOTH, inner)
    else:
        raise InputError(where, path, f"{key} is {inner}, which has no field {following!r}")
    holder[key] = inner
    return inner


def _leave_out(holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder.pop(key, None)
    else:
        del holder[key]
