"""Mappings from files: mapping files and result documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.formulation.mapping.fused.tree import tree_from_data
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError, located_in
from tilewright.foundation.yaml_file import with_line_numbers
from tilewright.report.records.files import is_result, parse_document, parse_kind, read_data
from tilewright.report.records.mapping.document import ResultDocument
from tilewright.report.records.mapping.fused_document import FusedDocument
from tilewright.report.records.mapping.fused_file import (
    StoredFusedMapping,
    is_fused_mapping,
    parse_fused_mapping,
    recorded_group,
)
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


def fused_mappings_in(data: Any, path: Path) -> list[StoredFusedMapping]:
    """The fused mappings of a mapping file or of a document's groups; groups without one are left out.

    Parameters
    ----------
    data, path : what the file holds, and where it is

    Raises
    ------
    InputError : naming the field that is wrong, or a file that holds no mapping
    """
    where = str(path)
    if is_fused_mapping(data):
        with with_line_numbers(path):
            return [parse_fused_mapping(data, where, path.parent)]
    document = parse_kind(data, where, FusedDocument)
    engine = document.arch.build(where)
    stored = [
        StoredFusedMapping(
            name=" + ".join(layer.name for layer in group.layers),
            group=recorded_group(document, group, where),
            tree=tree_from_data(group.tree, where, f"groups[{index}].tree"),
            engine=engine,
            cost_model=document.cost_model,
            objective=document.objective,
        )
        for index, group in enumerate(document.groups)
        if group.tree is not None
    ]
    if not stored:
        raise InputError(where, "groups", "none has a mapping")
    return stored


def fitting(stored: list[StoredMapping], operator: Operator) -> list[Mapping]:
    """Those that were made for an operator, or do not say for which."""
    return [entry.mapping for entry in stored if entry.operator is None or entry.operator == operator]
