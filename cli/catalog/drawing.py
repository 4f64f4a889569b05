"""``tilewright show --plot`` on files: a mapping as SVG, kinds of layers, designs and curves."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import write
from tilewright.foundation.errors import InputError, did_you_mean, unverified


def has_mapping(path: Path) -> bool:
    """Whether a file holds mappings: a result document, a mapping file, or those of fused layers."""
    from tilewright.report.records.files import is_result, read_data
    from tilewright.report.records.mapping.fused_document import FusedDocument
    from tilewright.report.records.mapping.fused_file import is_fused_mapping
    from tilewright.report.records.mapping.mapping_file import is_mapping

    data = read_data(path)
    kinds = (is_result, is_mapping, is_fused_mapping, FusedDocument.is_kind_of)
    return any(is_kind(data) for is_kind in kinds)


def is_drawn_whole(path: Path, picture: Path) -> bool:
    """Whether a picture shows a whole document: what ``explore`` wrote, or kinds of layers of a result.

    A result's picture as SVG shows one mapping.
    """
    from tilewright.report.records.files import is_result, read_data
    from tilewright.report.records.mapping.explore import ExploreDocument
    from tilewright.report.records.mapping.sweep import SweepDocument

    data = read_data(path)
    if is_result(data):
        return picture.suffix.lower() in (".png", ".pdf")
    return ExploreDocument.is_kind_of(data) or SweepDocument.is_kind_of(data)


def draw_whole(path: Path, picture: Path) -> int:
    """Draw the designs of a document, its curves, or its kinds of layers."""
    from tilewright.api.documents import load
    from tilewright.api.mapping.designs_document import DesignsDocument
    from tilewright.api.mapping.result import MappingDocument

    document = load(path)
    assert isinstance(document, DesignsDocument | MappingDocument)
    with unverified(str(path)):
        document.save_plot(picture)
    return Exit.OK


def draw_mapping(path: Path, arch: str | None, patterns: list[str], picture: Path, form: str) -> int:
    """Draw the one mapping of a file, or the one that a pattern chooses.

    Parameters
    ----------
    path : of the file
    arch : machine, where the file does not name one
    patterns : of layers' names
    picture : where the drawing goes
    form : of the output, which a drawing has none of but ``table``
    """
    from tilewright.api.mapping.drawing import drawings_in
    from tilewright.report.svg.mapping.drawing import check_drawing_file

    check_drawing_file(picture)
    if form != "table":
        raise InputError("--format", None, "expected table with --plot of a mapping")
    drawings = drawings_in(path, arch)
    chosen = [name for name in drawings if not patterns or any(fnmatchcase(name, p) for p in patterns)]
    if not chosen:
        hint = did_you_mean(patterns[0], [*drawings]) if patterns else ""
        what = f"no mapping of a layer {patterns[0]!r}{hint}" if patterns else "no layer has a mapping"
        raise InputError(str(path), "--layers" if patterns else None, what)
    if len(chosen) > 1:
        names = ", ".join(chosen[:5]) + (", …" if len(chosen) > 5 else "")
        raise InputError(str(path), "--layers", f"a drawing shows one mapping, expected one of {names}")
    drawings[chosen[0]]().save(picture)
    write(f"{picture}: {chosen[0]}\n")
    return Exit.OK
