"""Rows of Gemmini's public measurements: one mapping text with its layer, and the machine that it names.

A file has one row as a mapping of columns to values (``mapping.mapping``, ``prob.*``, ``arch.*``); what was
measured is not read.
"""

from __future__ import annotations

from tilewright.formulation.mapping.gemmini.row import COLUMNS, Row, read_row
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.source import Field
from tilewright.report.records.mapping.mapping_file import StoredMapping

PEER = "gemmini"
_MAPPING = "mapping.mapping"
TOPS: tuple[str, ...] = (_MAPPING, *COLUMNS)


def recognises(data: object) -> bool:
    """Whether a file has a row with a mapping text."""
    return isinstance(data, dict) and _MAPPING in data


def read(top: Field, bundle: Bundle) -> None:
    """Add the row's layer and mapping, on the machine that is known or the row's own."""
    row = read_row(top.value, top.where)
    if bundle.engine is None:
        bundle.engine = load_engine(machine_of(row))
    operator = row.operator
    if not bundle.layers:
        bundle.layers.append(("layer", operator))
    mapping = row.mapping()
    mapping.validate(operator, bundle.engine, top.where)
    bundle.mappings.append(StoredMapping(bundle.layers[0][0], mapping, operator, bundle.engine))


def machine_of(row: Row) -> str:
    """The preset with the row's array and memories, with both of their buffers."""
    side = row.array or 16
    stated = [f"array={side}"]
    if row.scratchpad is not None:
        stated.append(f"scratchpad={max(1, 2 * row.scratchpad // 1024)}kB")
    if row.accumulator is not None:
        stated.append(f"accumulator={max(1, 2 * 4 * side * row.accumulator // 1024)}kB")
    return f"gemmini[{','.join(stated)}]"
