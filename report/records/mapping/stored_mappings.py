"""Mappings from files: mapping files and result documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import located_in
from tilewright.foundation.yaml_file import with_line_numbers
from tilewright.report.records.files import is_result, parse_document, read_data
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.records.mapping.mapping_file import StoredMapping, parse_mapping
from tilewright.workloads.mapping.operator import Operator


def read_mappings(path: Path) -> list[StoredMapping]:
    """All mappings of a file; raises ``InputError``, which names it, for one that holds none."""
    with located_in(str(path)):
        return mappings_in(read_data(path), path)


def mappings_in(data: Any, path: Path) -> list[StoredMapping]:
    """All mappings of what a file holds; raises ``InputError`` for one that holds none."""
    if is_result(data):
        return mappings_of(parse_document(data, str(path)), str(path))
    with with_line_numbers(path):
        return [parse_mapping(data, str(path), path.parent)]


def mappings_of(document: ResultDocument, where: str) -> list[StoredMapping]:
    """The mappings of a document's layers; layers without one are left out."""
    engine = document.arch.build(where)
    parse_objective(document.objective)
    return [
        StoredMapping(
            name=layer.name,
            mapping=Mapping.from_data(layer.mapping.nodes, f"{where}: layers[{index}]"),
            operator=layer.operator.build(where),
            engine=engine,
            cost_model=document.cost_model,
            objective=document.objective,
            constraints=tuple(layer.constraints),
            count=layer.count,
            factors=layer.factors,
            storage=None if layer.space is None else layer.space.asked_storage,
            tiles=None if layer.space is None else layer.space.asked_tiles,
        )
        for index, layer in enumerate(document.layers)
        if layer.mapping is not None
    ]


def fitting(stored: list[StoredMapping], operator: Operator) -> list[Mapping]:
    """Those that were made for an operator, or do not say for which."""
    return [entry.mapping for entry in stored if entry.operator is None or entry.operator == operator]
