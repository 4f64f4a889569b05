"""Mappings as ZigZag's: what is spread over the array, and the order of the loops in time."""

from __future__ import annotations

from typing import Any

from tilewright.formulation.mapping.mapping import Spatial
from tilewright.foundation.errors import InputError
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect, Ledger
from tilewright.report.exchange.mapping.machine_text import yaml_text
from tilewright.report.exchange.mapping.zigzag_write_accelerator import dimensions
from tilewright.report.exchange.mapping.zigzag_write_workload import names_of
from tilewright.report.exchange.outputs import NotStatedError, Output
from tilewright.report.records.mapping.mapping_file import StoredMapping

PEER = "zigzag"


def write(bundle: Bundle) -> list[Output]:
    """All mappings in one file; the last is the default too, which ZigZag demands."""
    entries = []
    for stored in bundle.mappings:
        try:
            entries.append(_entry(stored, bundle))
        except NotStatedError as error:
            raise InputError(stored.name, "mapping", f"{error}, which ZigZag's mappings cannot say") from None
        message = "in which memory a tile begins to live is ZigZag's to decide: its counts may differ"
        bundle.ledger.reported(stored.name, Effect.COST, message, "nodes")
    if entries and entries[-1]["name"] != "default":
        entries.append(entries[-1] | {"name": "default"})
    return [Output("mapping", "mapping.yaml", yaml_text(entries))] if entries else []


def _entry(stored: StoredMapping, bundle: Bundle) -> dict[str, Any]:
    operator, engine = stored.operator, stored.engine
    assert operator is not None
    assert engine is not None
    names, axes = names_of(operator), dimensions(engine, Bundle("", bundle.settings, Ledger()))
    spread: dict[str, dict[str, int]] = {}
    order: list[list[Any]] = []
    trips = dict.fromkeys(operator.bounds, 1)
    for step in stored.mapping.loops(operator):
        trips[step.node.dim] *= step.trip
        if step.trip == 1:
            continue
        if isinstance(step.node, Spatial):
            loops = spread.setdefault(axes[step.node.axis], {})
            loops[names[step.node.dim]] = loops.get(names[step.node.dim], 1) * step.trip
        else:
            order.append([names[step.node.dim], step.trip])
    uneven = [dim for dim, bound in operator.bounds.items() if trips[dim] != bound]
    if uneven:
        raise NotStatedError(f"tiles of {', '.join(uneven)} that do not divide each other")
    entry: dict[str, Any] = {"name": stored.name}
    entry["spatial_mapping"] = {
        axis: [f"{dim}, {count}" for dim, count in spread[axis].items()]
        for axis in axes.values()
        if axis in spread
    }
    entry["temporal_ordering"] = order[::-1]
    entry["memory_operand_links"] = {"O": "O", "W": "I2", "I": "I1"}
    return entry
