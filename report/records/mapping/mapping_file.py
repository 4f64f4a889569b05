"""Mapping files: one mapping as YAML, with the operator and the machine that it belongs to.

::

    tilewright: mapping/1
    layer: conv:K=64,C=64,P=56,Q=56,R=3,S=3,pad=1    # or operator: {...}
    arch: eyeriss-168                                # a preset, a YAML file beside this one, or engine data
    nodes:
      - {store: I, level: DRAM}
      - {temporal: K, tile: 16}                      # level: SPM beside it where nothing is stored in SPM
      - {spatial: C, tile: 4, axis: y}

``name``, ``cost_model``, ``objective``, ``constraints``, ``factors``, ``storage`` and ``tiles`` may stand
beside them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.errors import InputError
from tilewright.foundation.validation import from_validation
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import engine_hash, engine_to_dict, list_presets, load_engine
from tilewright.report.records.mapping.document import FactorsName, StorageName, TilesAsked
from tilewright.report.records.mapping.engine import EngineRecord
from tilewright.report.records.mapping.operator import OperatorRecord, Record
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator

HEAD = "mapping/1"


@dataclass(frozen=True)
class StoredMapping:
    """A mapping with whatever its file says of the problem that it solves."""

    name: str
    mapping: Mapping
    operator: Operator | None = None
    engine: Engine | None = None
    cost_model: str | None = None
    objective: str | None = None
    constraints: tuple[str, ...] = ()
    count: int = 1
    factors: str | None = None
    storage: str | None = None
    tiles: str | None = None


class _Line(dict[str, Any]):
    """A mapping that is written in one line."""


class _Dumper(yaml.SafeDumper):
    """Writes lines as lines, and no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_line(dumper: yaml.SafeDumper, line: _Line) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", line, flow_style=True)


_Dumper.add_representer(_Line, _represent_line)


class _MappingFile(Record):
    tilewright: str
    name: str | None = None
    layer: str | None = None
    operator: OperatorRecord | None = None
    arch: str | EngineRecord | None = None
    cost_model: str | None = None
    objective: str | None = None
    constraints: list[str] = Field(default_factory=list)
    factors: FactorsName | None = None
    storage: StorageName | None = None
    tiles: TilesAsked | None = None
    nodes: list[Any]


def is_mapping(data: object) -> bool:
    """Whether data look like a mapping file."""
    return isinstance(data, dict) and ("tilewright" in data or "nodes" in data)


def render_mapping(stored: StoredMapping) -> str:
    """The text of a mapping file."""
    data: dict[str, Any] = {"tilewright": HEAD, "name": stored.name}
    if stored.operator is not None:
        record = OperatorRecord.of(stored.operator).model_dump()
        lines = {field: [_Line(entry) for entry in record[field]] for field in ("dimensions", "tensors")}
        data["operator"] = record | lines
    if stored.engine is not None:
        data["arch"] = arch_data(stored.engine)
    data |= {"cost_model": stored.cost_model, "objective": stored.objective}
    if stored.constraints:
        data["constraints"] = list(stored.constraints)
    data |= {"factors": stored.factors, "storage": stored.storage, "tiles": stored.tiles}
    data["nodes"] = [_Line(node) for node in stored.mapping.to_data()]
    data = {key: value for key, value in data.items() if value is not None}
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))


def mapping_dumper() -> type[yaml.SafeDumper]:
    """What writes mapping files: lines as lines, and no references."""
    return _Dumper


def written_in_one_line(row: dict[str, Any]) -> dict[str, Any]:
    """The same, to be written in one line."""
    return _Line(row)


def arch_data(engine: Engine) -> str | dict[str, Any]:
    """A preset by its name, any other machine in full."""
    if engine.name in list_presets() and engine_hash(load_engine(engine.name)) == engine_hash(engine):
        return engine.name
    return engine_to_dict(engine)


def parse_mapping(data: object, where: str, folder: Path) -> StoredMapping:
    """The mapping that plain data hold; machine files are looked for in ``folder``."""
    if not isinstance(data, dict) or "nodes" not in data:
        raise InputError(where, "nodes", "missing, expected a mapping file with a list of nodes")
    data = {"tilewright": HEAD, **data}
    if data["tilewright"] != HEAD:
        raise InputError(where, "tilewright", f"expected {HEAD}, got {data['tilewright']!r}")
    try:
        content = _MappingFile.model_validate(data)
    except ValidationError as error:
        raise from_validation(where, error, _MappingFile.model_fields) from None
    if content.layer is not None and content.operator is not None:
        raise InputError(where, "layer", "expected either layer or operator, got both")
    name, operator = content.name, None
    if content.layer is not None:
        try:
            title, operator = parse_layer(content.layer)
        except InputError as error:
            raise InputError(where, error.field or "layer", error.message) from None
        name = name or title
    elif content.operator is not None:
        operator = content.operator.build(where)
    return StoredMapping(
        name=name or Path(where).stem,
        mapping=Mapping.from_data(content.nodes, where),
        operator=operator,
        engine=engine_of(content.arch, folder),
        cost_model=content.cost_model,
        objective=content.objective,
        constraints=tuple(content.constraints),
        factors=content.factors,
        storage=content.storage,
        tiles=content.tiles,
    )


def engine_of(arch: str | EngineRecord | None, folder: Path) -> Engine | None:
    """The machine that a file names, a preset or a file in the folder, or has in full."""
    if arch is None:
        return None
    if isinstance(arch, EngineRecord):
        return arch.build()
    local = folder / arch
    return load_engine(local if arch not in list_presets() and os.path.isfile(local) else arch)
