"""Every leaf of a document is changed in every way that there is; what carries a claim never passes ``check``."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from tilewright.report.checks.mapping.document import check_document, totals_faults
from tilewright.report.checks.scheduling.herald.codesign import check_codesign
from tilewright.report.checks.scheduling.herald.schedule import check_schedule
from tilewright.report.records.files import parse_document
from tilewright.report.records.scheduling.herald.document import ScheduleDocument
from tilewright.report.records.scheduling.herald.files import is_schedule, parse_schedule
from tilewright.workloads.errors import InputError

Path_ = tuple[str | int, ...]

UNCHECKED = {r"versions\..*": "text: what else ran"}
"""Leaves that no check can judge, and why; ``docs/cli.md`` lists them."""


def faults_of(data: dict[str, Any]) -> list[str]:
    """Everything that ``check`` has to say about a document."""
    try:
        if not is_schedule(data):
            document = parse_document(data, "document")
            found = [fault for check in check_document(document, "document") for fault in check.faults]
            return [*found, *totals_faults(document, "document")]
        parsed = parse_schedule(data, "document")
        if isinstance(parsed, ScheduleDocument):
            return [*check_schedule(parsed, "document").faults]
        return [*check_codesign(parsed, "document").faults]
    except InputError as error:
        return [str(error)]


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


def passing(data: dict[str, Any], *, every: bool = False) -> list[str]:
    """The mutations that no check finds, as ``path: change``.

    Of places that differ by their number in lists alone, only the first and the last are changed, unless all
    are asked for.
    """
    chosen: dict[tuple[str, str], list[tuple[Path_, Any]]] = {}
    for path, change, value in mutations(data):
        place = ".".join(map(str, path))
        if not any(re.fullmatch(pattern, place) for pattern in UNCHECKED):
            chosen.setdefault((re.sub(r"\.\d+", ".#", place), change), []).append((path, value))
    found = []
    for (_, change), several in chosen.items():
        for path, value in several if every or len(several) < 3 else (several[0], several[-1]):
            if not faults_of(placed(data, path, value)):
                found.append(f"{'.'.join(map(str, path))}: {change}")
    return found
