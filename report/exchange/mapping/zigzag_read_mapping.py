"""ZigZag's mappings: spatial mappings as constraints.

A mapping file fixes what is spread over the array, and may fix the order of loops; which loop belongs to
which memory ZigZag decides by itself.  What is fixed of the array becomes constraints, the order is searched.
"""

from __future__ import annotations

import re

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.source import Field

PEER = "zigzag"
TOPS: tuple[str, ...] = ()

_MARKS = ("spatial_mapping", "temporal_ordering", "memory_operand_links", "spatial_mapping_hint")
_UNROLLED = re.compile(r"([A-Z]+\d*)\s*,\s*(\d+)")
_LINKS = {"O": "O", "W": "I2", "I": "I1"}


def recognises(data: object) -> bool:
    """Whether a file is a list of mappings of layers."""
    return isinstance(data, list) and any(
        isinstance(entry, dict) and set(_MARKS) & set(entry) for entry in data
    )


def read(top: Field, bundle: Bundle) -> None:
    """State the mapping of the one layer, or the default."""
    entries = top.entries()
    names = [entry.at("name").text("a layer, an operator type or default") for entry in entries]
    wanted = bundle.layers[0][0] if len(bundle.layers) == 1 else "default"
    chosen = wanted if wanted in names else "default"
    if chosen not in names:
        raise top.error(f"has no mapping named default, got: {', '.join(names)}")
    for name, entry in zip(names, entries, strict=True):
        if name == chosen:
            _demand(entry, bundle)
        else:
            message = (
                f"applies to {name} only: constraints apply to all layers of a call, here those of {chosen}"
            )
            entry.lose(bundle.ledger, Effect.SPACE, message)


def _demand(entry: Field, bundle: Bundle) -> None:
    for key, link in entry.at("memory_operand_links").fields().items():
        if _LINKS.get(key) != link.value:
            raise link.error(
                f"{key} in {link.value} cannot be stated, expected {_LINKS.get(key, 'O, W or I')}"
            )
    spread: dict[str, dict[str, int]] = {}
    for axis, unrolled in entry.at("spatial_mapping").fields().items():
        spread[axis] = {}
        for unrolling in unrolled.entries():
            match = _UNROLLED.fullmatch(unrolling.text("such as K, 32"))
            if match is None or int(match[2]) < 1:
                raise unrolling.error("expected a dimension and how far it is unrolled, such as K, 32")
            if bundle.operator is not None and match[1] not in bundle.operator.bounds:
                unrolling.lose(bundle.ledger, Effect.NONE, f"the layer has no dimension {match[1]}")
            else:
                spread[axis][match[1]] = int(match[2])
    _demand_spread(spread, bundle)
    for key in ("temporal_ordering", "spatial_mapping_hint"):
        if entry.at(key).value:
            message = "the order of loops is searched" if key[0] == "t" else "no hint is taken"
            entry.at(key).lose(bundle.ledger, Effect.SPACE, message)


def _demand_spread(spread: dict[str, dict[str, int]], bundle: Bundle) -> None:
    """Every dimension on every axis, where the layer states which there are."""
    operator = bundle.operator
    for axis, dims in spread.items():
        for dim, count in dims.items():
            most = count if operator is None else min(count, operator.bounds[dim])
            bundle.demand(f"spatial({dim}@{axis})={most}")
        for dim in operator.bounds if operator is not None else ():
            if dim not in dims:
                bundle.demand(f"spatial({dim}@{axis})=1")
    if operator is None and spread:
        named = sorted({dim for dims in spread.values() for dim in dims})
        bundle.demand(f"spatial={','.join(named)}")
