"""Mappings of a result as code or tile sizes."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tilewright.foundation.errors import InputError, located_in, unknown_name
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.code.mapping.fused_loops import fused_numpy_loops
from tilewright.report.code.mapping.gemmini_call import gemmini_call
from tilewright.report.code.mapping.mlir_transform import mlir_module
from tilewright.report.code.mapping.numpy_loops import numpy_loops
from tilewright.report.code.mapping.tiles import SCHEMA, tiles_of
from tilewright.report.records.files import read_data
from tilewright.report.records.mapping.fused_file import StoredFusedMapping, is_fused_mapping
from tilewright.report.records.mapping.mapping_file import StoredMapping
from tilewright.report.records.mapping.stored_fused_mappings import fused_mappings_in
from tilewright.report.records.mapping.stored_mappings import mappings_in
from tilewright.workloads.mapping.operator import Operator

TARGETS = ("python", "json", "gemmini", "mlir")


def emitted(path: Path, target: str, layers: Sequence[str] | None = None) -> str:
    """The mappings of a result document or mapping file, written for a target.

    Parameters
    ----------
    path : of the document
    target : ``python`` (NumPy loops), ``json`` (tiles and loops), ``gemmini`` (a call of its library) or
        ``mlir`` (a linalg op and a transform script)
    layers : names or patterns of the layers that are written; all by default

    Raises
    ------
    InputError : for an unknown target, a file without mappings, or one that the target cannot express
    """
    if target not in TARGETS:
        raise InputError("--to", target, unknown_name(target, TARGETS))
    data = read_data(path)
    if is_fused_mapping(data) or (isinstance(data, dict) and data.get("schema") == "tilewright.fused/1"):
        return _fused_text(fused_mappings_in(data, path), target, layers, path)
    chosen = [
        stored
        for stored in mappings_in(data, path)
        if layers is None or any(fnmatchcase(stored.name, pattern) for pattern in layers)
    ]
    if not chosen:
        wanted = "a mapping" if layers is None else f"a mapping of {', '.join(layers)}"
        raise InputError(str(path), None, f"expected {wanted}, got none")
    with located_in(str(path), {"--to"}):
        for stored in chosen:
            if stored.operator is None:
                raise InputError(stored.name, "layer", "missing, expected the layer that the mapping is of")
            stored.mapping.validate(stored.operator, _engine(stored), stored.name)
        if target == "json":
            entries = [{"name": each.name, **tiles_of(_operator(each), each.mapping)} for each in chosen]
            return json.dumps({"schema": SCHEMA, "layers": entries}, indent=2) + "\n"
        names = _names(chosen)
        return "\n".join(_text(each, target, names[index]) for index, each in enumerate(chosen))


def _fused_text(
    fused: Sequence[StoredFusedMapping], target: str, layers: Sequence[str] | None, path: Path
) -> str:
    """Groups of fused layers, those with a layer that is asked for."""
    chosen = [
        stored
        for stored in fused
        if layers is None
        or any(fnmatchcase(name, pattern) for name in stored.group.names for pattern in layers)
    ]
    if not chosen:
        raise InputError(str(path), None, f"expected a mapping of {', '.join(layers or ())}, got none")
    if target == "json":
        groups = [{"name": stored.name, "nodes": stored.tree.to_data()} for stored in chosen]
        return json.dumps({"schema": SCHEMA, "groups": groups}, indent=2) + "\n"
    if target != "python":
        raise InputError(str(path), "--to", f"{target} is for single layers, expected python or json")
    with located_in(str(path), {"--to"}):
        texts = []
        for stored, name in zip(chosen, _names(chosen), strict=True):
            if stored.engine is None:
                raise InputError(stored.name, "arch", "missing, expected the machine that the mapping is for")
            texts.append(fused_numpy_loops(stored.group, stored.engine, stored.tree, name, stored.name))
    return "\n".join(texts)


def _text(stored: StoredMapping, target: str, name: str) -> str:
    operator = _operator(stored)
    if target == "python":
        return numpy_loops(operator, stored.mapping, name, stored.name)
    if target == "mlir":
        return mlir_module(operator, stored.mapping, name)
    return gemmini_call(operator, stored.mapping, _engine(stored), name)


def _operator(stored: StoredMapping) -> Operator:
    assert stored.operator is not None
    return stored.operator


def _engine(stored: StoredMapping) -> Engine:
    if stored.engine is None:
        raise InputError(stored.name, "arch", "missing, expected the machine that the mapping is for")
    return stored.engine


def _names(chosen: Sequence[StoredMapping | StoredFusedMapping]) -> list[str]:
    """A name for every layer's function, each once."""
    names: list[str] = []
    for stored in chosen:
        plain = re.sub(r"\W", "_", stored.name, flags=re.ASCII) or "layer"
        plain = f"layer_{plain}" if plain[0].isdigit() or keyword.iskeyword(plain) else plain
        number = 1
        while (name := plain if number == 1 else f"{plain}_{number}") in names:
            number += 1
        names.append(name)
    return names
