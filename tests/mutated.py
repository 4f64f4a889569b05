"""Documents with one leaf or container changed, and the changes that no check finds."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterator
from collections.abc import Mapping as MappingABC
from typing import Any

Path_ = tuple[str | int, ...]


def mutations(node: Any, path: Path_ = ()) -> Iterator[tuple[Path_, str, Any]]:
    """Where, how, and the changed value, of every leaf and every container."""
    for change, made in changed(node):
        yield path, change, made
    items: Any = ()
    if isinstance(node, dict):
        items = node.items()
    elif isinstance(node, list):
        items = enumerate(node)
    for key, value in items:
        yield from mutations(value, (*path, key))


def changed(node: Any) -> Iterator[tuple[str, Any]]:
    """Other values in the place of one."""
    match node:
        case bool():
            yield "turned", not node
        case int() | float():
            yield "more", node + 1
            yield "less", node - 1
            yield "null", None
        case str():
            yield "longer", node + "x"
            yield "empty", ""
            if node.isdigit():
                yield "more", str(int(node) + 1)
                yield "unreduced", f"{2 * int(node)}/2"
        case None:
            yield "zero", 0
            yield "text", "0"
        case list() if node:
            yield "shorter", node[:-1]
            yield "longer", [*node, copy.deepcopy(node[-1])]
            if len(node) > 1 and node[::-1] != node:
                yield "reversed", node[::-1]
        case dict():
            for key in node:
                yield f"without {key}", {name: value for name, value in node.items() if name != key}
            yield "with another", {**node, "zzz": 0}


def placed(data: Any, path: Path_, value: Any) -> Any:
    """A copy of the data with another value in one place; all else is shared."""
    if not path:
        return value
    made = copy.copy(data)
    made[path[0]] = placed(data[path[0]], path[1:], value)
    return made


def numberless(path: Path_) -> str:
    """A place, the same for all items of a list."""
    return re.sub(r"\.\d+", ".#", ".".join(map(str, path)))


def changes_of(data: Any) -> set[tuple[str, str]]:
    """Where a document can be changed and how, alike for all items of a list."""
    return {(numberless(path), change) for path, change, _ in mutations(data)}


def undetected(
    data: dict[str, Any],
    faults_of: Callable[[dict[str, Any]], list[str]],
    same: Callable[[dict[str, Any], dict[str, Any]], bool],
    unchecked: MappingABC[str, str],
    *,
    every: bool = False,
    only: set[str] | None = None,
    known: Collection[tuple[str, str]] = (),
) -> list[str]:
    """The mutations that no check finds, as ``path: change``.

    Of places that differ by their number in lists alone, only the last one is changed, unless all are asked
    for.

    Parameters
    ----------
    faults_of : everything that is wrong with a document
    same : whether two documents that can be read say the same
    unchecked : patterns of leaves, or of changes of them, that no check can judge, with the reason
    only : the places that are changed
    known : changes that are left out, as `changes_of` gives them
    """
    chosen: dict[tuple[str, str], list[tuple[Path_, Any]]] = {}
    skips = re.compile("|".join(f"(?:{pattern})" for pattern in unchecked)).fullmatch
    for path, change, value in mutations(data):
        place = ".".join(map(str, path))
        skipped = skips(place) or skips(f"{place}: {change}")
        if (only is None or place in only) and not skipped:
            chosen.setdefault((numberless(path), change), []).append((path, value))
    undetected = []
    for (place, change), several in chosen.items():
        if (place, change) in known:
            continue
        for path, value in several if every else several[-1:]:
            made = placed(data, path, value)
            if not faults_of(made) and not same(data, made):
                undetected.append(f"{'.'.join(map(str, path))}: {change}")
    return undetected
