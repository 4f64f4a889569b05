"""Drawings of mappings, for notebooks and files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from tilewright.formulation.mapping.cost.registry import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.tree import tree_from_data
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.foundation.yaml_file import with_line_numbers
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.files import parse_kind, read_data
from tilewright.report.records.mapping.build import metrics_record
from tilewright.report.records.mapping.fused_document import FusedDocument
from tilewright.report.records.mapping.fused_file import (
    StoredFusedMapping,
    is_fused_mapping,
    parse_fused_mapping,
    recorded_group,
)
from tilewright.report.records.mapping.mapping_file import StoredMapping
from tilewright.report.records.mapping.picture import fused_picture, picture_of
from tilewright.report.records.mapping.stored_mappings import mappings_in
from tilewright.report.svg.mapping.drawing import (
    MappingDrawing,
    check_drawing_file,
    mapping_drawing,
    write_drawing,
)


class Drawing:
    """A drawing of a mapping, which notebooks show as a picture."""

    def __init__(self, drawing: MappingDrawing) -> None:
        self._drawing = drawing

    def svg(self) -> str:
        """The drawing as text."""
        return self._drawing.svg()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an SVG file.

        Raises
        ------
        InputError : where the suffix is another, or the file cannot be written to
        """
        check_drawing_file(Path(path))
        write_drawing(Path(path), self._drawing)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"Drawing({self._drawing.title!r})"


def layer_drawing(stored: StoredMapping, where: str) -> Drawing:
    """The drawing of a mapping with its layer and machine, counted anew by the evaluator.

    Parameters
    ----------
    stored : the mapping
    where : what errors call it

    Raises
    ------
    InputError : where the layer or the machine is missing, or the mapping does not fit them
    """
    operator, engine = stored.operator, stored.engine
    if operator is None or engine is None:
        missing = "layer" if operator is None else "arch"
        raise InputError(where, missing, "missing, so the mapping cannot be drawn")
    stored.mapping.validate(operator, engine, where)
    problem = layer_problem(operator, engine, parse_objective("edp"), stored.cost_model)
    metrics = metrics_record(problem.evaluate(stored.mapping, stored.name), engine)
    return Drawing(mapping_drawing(picture_of(stored.name, operator, engine, stored.mapping, metrics)))


def fused_drawing(stored: StoredFusedMapping, engine: Engine, where: str) -> Drawing:
    """The drawing of a fused mapping: the shared loops and stores, and inside them the layers' turns.

    Parameters
    ----------
    stored : the mapping
    engine : the machine
    where : what errors call it
    """
    model = cost_model(stored.cost_model or engine.cost_model)
    evaluation = evaluate_fused(stored.group, engine, model, stored.tree, where)
    return Drawing(mapping_drawing(fused_picture(stored.name, stored.group, engine, stored.tree, evaluation)))


def drawings_in(path: Path, arch: str | None = None) -> dict[str, Callable[[], Drawing]]:
    """What makes the drawing of every mapping of a file, by the names of layers and groups.

    Parameters
    ----------
    path : result document, mapping file, or those of fused layers
    arch : machine, instead of the file's

    Raises
    ------
    InputError : for a file that holds no mapping
    """
    data, engine = read_data(path), None if arch is None else load_engine(arch)
    where = str(path)
    if FusedDocument.is_kind_of(data):
        return _of_groups(parse_kind(data, where, FusedDocument), engine, where)
    if is_fused_mapping(data):
        with with_line_numbers(path):
            fused = parse_fused_mapping(data, where, path.parent)
        machine = engine or fused.engine
        if machine is None:
            raise InputError(where, "arch", "missing, expected one in the file or as --arch")
        return {fused.name: partial(fused_drawing, fused, machine, where)}
    stored = (replace(mapping, engine=engine or mapping.engine) for mapping in mappings_in(data, path))
    return {mapping.name: partial(layer_drawing, mapping, where) for mapping in stored}


def _of_groups(
    document: FusedDocument, engine: Engine | None, where: str
) -> dict[str, Callable[[], Drawing]]:
    machine = engine or document.arch.engine.build()
    drawings: dict[str, Callable[[], Drawing]] = {}
    for record in document.groups:
        if record.tree is not None:
            group = recorded_group(document, record, where)
            name = " + ".join(group.names)
            stored = StoredFusedMapping(
                name, group, tree_from_data(record.tree), cost_model=document.cost_model
            )
            drawings[name] = partial(fused_drawing, stored, machine, where)
    return drawings
