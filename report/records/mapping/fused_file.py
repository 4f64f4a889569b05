"""Fused mapping files: a mapping file of several layers whose nodes end with a ``sequence``.

::

    tilewright: mapping/1
    arch: tpu-edge
    online_softmax: true                 # shared loops may cut rows of a softmax; by default they may not
    layers:                              # as in a file of layers, or {name, operator, reads}
      - {name: qk, layer: "gemm:M=512,N=512,K=64"}
      - {name: av, layer: "gemm:M=512,N=64,K=512", reads: {A: qk}}
    nodes:
      - {store: av.C, level: DRAM}
      - {temporal: av.M, tile: 64}
      - {store: qk.C, level: GBUF}       # the home of an intermediate; halo: recomputed beside it
      - sequence:
          - {layer: qk, nodes: [...]}    # an ordinary mapping of what one turn computes
          - {layer: av, nodes: [...]}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from tilewright.formulation.mapping.fused.group import FusedGroup, group_of
from tilewright.formulation.mapping.fused.tree import Branch, tree_from_data
from tilewright.foundation.errors import InputError
from tilewright.foundation.validation import from_validation
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records.mapping.engine import EngineRecord
from tilewright.report.records.mapping.fused_document import FusedBeside, FusedDocument, FusedGroupRecord
from tilewright.report.records.mapping.mapping_file import (
    HEAD,
    arch_data,
    engine_of,
    mapping_dumper,
    written_in_one_line,
)
from tilewright.report.records.mapping.operator import OperatorRecord, Record
from tilewright.workloads.linked_layers import linked_network
from tilewright.workloads.mapping.layer_reads import Reading, reads_of
from tilewright.workloads.mapping.layer_text import NamedOperator, linked_layers
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True)
class StoredFusedMapping:
    """A fused mapping with whatever its file says of its problem.

    Parameters
    ----------
    name : the file's, or what it calls itself
    group, tree : the layers, and how they run
    engine, cost_model, objective : ``None`` where the file does not say
    """

    name: str
    group: FusedGroup
    tree: Branch
    engine: Engine | None = None
    cost_model: str | None = None
    objective: str | None = None


class _FusedMappingFile(Record):
    tilewright: str
    name: str | None = None
    arch: str | EngineRecord | None = None
    cost_model: str | None = None
    objective: str | None = None
    online_softmax: bool = False
    layers: list[Any] = Field(min_length=1)
    leaving: list[str] | None = None
    nodes: list[Any]


def is_fused_mapping(data: object) -> bool:
    """Whether data look like a fused mapping file."""
    if not isinstance(data, dict) or "schema" in data:
        return False
    nodes = data.get("nodes")
    ends = isinstance(nodes, list) and any(isinstance(node, dict) and "sequence" in node for node in nodes)
    return ends or ("nodes" in data and "layers" in data)


def parse_fused_mapping(data: object, where: str, folder: Path) -> StoredFusedMapping:
    """The fused mapping that plain data hold.

    Parameters
    ----------
    data : the content of a file
    where : what errors call it
    folder : in which its machine file is looked for

    Raises
    ------
    InputError : naming the field that is wrong
    """
    if not isinstance(data, dict) or "layers" not in data:
        raise InputError(where, "layers", "missing, expected the layers that the sequence runs")
    data = {"tilewright": HEAD, **data}
    if data["tilewright"] != HEAD:
        raise InputError(where, "tilewright", f"expected {HEAD}, got {data['tilewright']!r}")
    try:
        content = _FusedMappingFile.model_validate(data)
    except ValidationError as error:
        raise from_validation(where, error, _FusedMappingFile.model_fields) from None
    group = group_from_data(content.layers, content.leaving, where, online_softmax=content.online_softmax)
    return StoredFusedMapping(
        name=content.name or Path(where).stem,
        group=group,
        tree=tree_from_data(content.nodes, where),
        engine=engine_of(content.arch, folder),
        cost_model=content.cost_model,
        objective=content.objective,
    )


def recorded_group(document: FusedDocument, group: FusedGroupRecord | FusedBeside, where: str) -> FusedGroup:
    """A group of a document; raises ``InputError`` for layers that do not fit each other."""
    entries = [layer.stated() for layer in group.layers]
    return group_from_data(entries, group.leaving, where, online_softmax=document.space.online_softmax)


def group_from_data(
    entries: list[Any], leaving: list[str] | None, where: str, *, online_softmax: bool = False
) -> FusedGroup:
    """The group that the entries of a file describe.

    Parameters
    ----------
    entries : plain data, one for each layer
    leaving : layers whose results are needed outside; by default those that nobody reads
    where : what errors call the file
    online_softmax : whether shared loops may cut rows of a softmax
    """
    if any(isinstance(entry, dict) and "operator" in entry for entry in entries):
        layers, reads = _recorded(entries, where)
    else:
        layers, reads = linked_layers(entries, where, None, f"{where}: layers[{{}}]")
    try:
        group = group_of(linked_network(where, layers, reads), online_softmax=online_softmax)
    except InputError as error:
        raise InputError(where, f"layers: {error.where}: {error.field}", error.message) from None
    for name in leaving or ():
        if name not in group.operators:
            raise InputError(where, "leaving", f"unknown layer {name!r}, expected one of {group.names}")
    along = {
        (entry["name"], axis)
        for entry in entries
        if isinstance(entry, dict) and entry.get("rows")
        for axis in _axes_of_result(entry["rows"], group.operator(entry["name"]), entry["name"], where)
    }
    others = {entry["name"] for entry in entries if isinstance(entry, dict) and entry.get("softmax") is False}
    return replace(
        group,
        leaving=group.leaving | frozenset(leaving or ()),
        rows=frozenset(along),
        softmaxes=frozenset({name for name, _ in along} - others),
    )


def _axes_of_result(rows: Any, operator: Operator, layer: str, where: str) -> list[int]:
    """The ``rows`` of an entry, checked."""
    number = len(operator.output.axes)
    if not isinstance(rows, list) or not all(type(row) is int and 0 <= row < number for row in rows):
        raise InputError(where, f"{layer}: rows", f"expected axes from 0 to {number - 1}, got {rows!r}")
    return rows


def _recorded(entries: list[Any], where: str) -> tuple[tuple[NamedOperator, ...], tuple[Reading, ...]]:
    """Entries ``{name, operator, reads}``, as documents have them."""
    layers: list[NamedOperator] = []
    reads: list[tuple[str, Reading]] = []
    for index, entry in enumerate(entries):
        at = f"{where}: layers[{index + 1}]"
        fields = set(entry) if isinstance(entry, dict) else set()
        if not {"name", "operator"} <= fields <= {"name", "operator", "reads", "rows", "softmax"}:
            raise InputError(at, None, "expected {name, operator} or {name, operator, reads}, as elsewhere")
        name = entry["name"]
        if not isinstance(name, str) or not name or any(name == other for other, _ in layers):
            raise InputError(at, "name", f"expected a name that no other layer has, got {name!r}")
        try:
            operator = OperatorRecord.model_validate(entry["operator"]).build(at)
        except ValidationError as error:
            raise from_validation(at, error, OperatorRecord.model_fields) from None
        layers.append((name, operator))
        reads += [(at, read) for read in reads_of(at, entry.get("reads", {}), layers[-1], (0, 0))]
    operators = dict(layers)
    for at, read in reads:
        if read.producer not in operators:
            raise InputError(at, f"reads.{read.operand}", f"unknown layer {read.producer!r}")
        read.check(at, operators[read.producer])
    return tuple(layers), tuple(read.ordered(operators[read.producer]) for _, read in reads)


def group_data(group: FusedGroup) -> list[dict[str, Any]]:
    """A group's layers as plain data, with what they read."""
    rows: list[dict[str, Any]] = []
    for name, operator in group.layers:
        row: dict[str, Any] = {"name": name, "operator": OperatorRecord.of(operator).model_dump()}
        reads = {
            reading.operand: {
                "layer": reading.producer,
                "axes": list(reading.axes),
                "offsets": list(reading.offsets),
            }
            | ({"rows": list(reading.rows)} if reading.rows else {})
            | ({"softmax": False} if reading.rows and not reading.softmax else {})
            for reading in group.readings
            if reading.reader == name
        }
        along = sorted(axis for layer, axis in group.rows if layer == name)
        own = {"rows": along} | ({} if name in group.softmaxes else {"softmax": False})
        rows.append(row | ({"reads": reads} if reads else {}) | (own if along else {}))
    return rows


def render_fused_mapping(stored: StoredFusedMapping) -> str:
    """The text of a fused mapping file."""
    data: dict[str, Any] = {"tilewright": HEAD, "name": stored.name}
    if stored.engine is not None:
        data["arch"] = arch_data(stored.engine)
    data |= {"cost_model": stored.cost_model, "objective": stored.objective}
    if stored.group.online_softmax:
        data["online_softmax"] = True
    data["layers"] = [
        row
        | {
            "operator": row["operator"]
            | {
                field: [written_in_one_line(entry) for entry in row["operator"][field]]
                for field in ("dimensions", "tensors")
            }
        }
        for row in group_data(stored.group)
    ]
    data["leaving"] = sorted(stored.group.leaving)
    data["nodes"] = _lines(stored.tree.to_data())
    data = {key: value for key, value in data.items() if value is not None}
    return str(yaml.dump(data, Dumper=mapping_dumper(), sort_keys=False, allow_unicode=True, width=110))


def _lines(rows: list[dict[str, Any]]) -> list[Any]:
    lines: list[Any] = []
    for row in rows:
        if "sequence" in row:
            lines.append({"sequence": [_child_lines(child) for child in row["sequence"]]})
        else:
            lines.append(written_in_one_line(row))
    return lines


def _child_lines(child: dict[str, Any]) -> dict[str, Any]:
    lines = child | {"nodes": _lines(child["nodes"])}
    if "sized" in child:
        lines["sized"] = [own | {"nodes": _lines(own["nodes"])} for own in child["sized"]]
    return lines
