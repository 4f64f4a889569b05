"""Fused mappings from files: mapping files and result documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright.formulation.mapping.fused.tree import tree_from_data
from tilewright.foundation.errors import InputError
from tilewright.foundation.yaml_file import with_line_numbers
from tilewright.report.records.files import parse_kind
from tilewright.report.records.mapping.fused_document import FusedDocument
from tilewright.report.records.mapping.fused_file import (
    StoredFusedMapping,
    is_fused_mapping,
    parse_fused_mapping,
    recorded_group,
)


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
