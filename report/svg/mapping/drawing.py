"""The whole drawing of a mapping: nest, arrays and first steps, for a page and as one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.foundation.disk import check_writable, suffix_error, write_file
from tilewright.report.records.mapping.picture import Picture
from tilewright.report.svg.canvas import Panel, side_by_side
from tilewright.report.svg.mapping.array import array_panel
from tilewright.report.svg.mapping.nest import nest_panel
from tilewright.report.svg.mapping.steps import step_panels

SUFFIXES = (".svg",)


@dataclass(frozen=True)
class MappingDrawing:
    """What stays, and a panel per step."""

    title: str
    still: Sequence[Panel]
    steps: Sequence[Panel]

    def svg(self) -> str:
        """All panels on one sheet: the nest, the arrays, the steps one below the other."""
        nest, *arrays = self.still
        columns = [column for column in ([nest], arrays, self.steps) if column]
        return side_by_side(self.title, columns).svg()


def mapping_drawing(picture: Picture) -> MappingDrawing:
    """The drawing of a picture."""
    array = array_panel(picture)
    still = [nest_panel(picture), *([] if array is None else [array])]
    return MappingDrawing(f"{picture.name} on {picture.machine}", still, step_panels(picture))


def check_drawing_file(path: Path) -> None:
    """Raise ``InputError`` for a suffix other than ``.svg``, or a file that cannot be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise suffix_error(path, SUFFIXES)
    check_writable(path)


def write_drawing(path: Path, drawing: MappingDrawing) -> None:
    """Write the sheet; raises ``OutputError`` where the file cannot be written."""
    write_file(path, drawing.svg() + "\n")
