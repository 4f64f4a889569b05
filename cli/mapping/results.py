"""Where results go while layers finish: stdout, the ``--out`` file, the folder of mappings."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.cli.terminal.console import show, standard, write
from tilewright.formulation.mapping.constraints import applicable
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.disk import check_writable, is_stream, write_file
from tilewright.foundation.errors import InputError, OutputError
from tilewright.report.records import files
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument
from tilewright.report.records.mapping.growing import GrowingDocument
from tilewright.report.records.mapping.mapping_file import StoredMapping, render_mapping
from tilewright.workloads.mapping.operator import Operator

_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 200


class Results:
    """Where the growing result document of one call goes.

    Parameters
    ----------
    growing : the document
    form : what goes to stdout
    out : file that always holds the document so far
    folder : folder for one mapping file per layer
    has_files : whether results go to any file; otherwise a lost stdout ends the run

    Attributes
    ----------
    failures : by file, why it could not be written in the end
    """

    def __init__(
        self, growing: GrowingDocument, *, form: str, out: Path | None, folder: Path | None, has_files: bool
    ) -> None:
        self.failures: dict[Path, str] = {}
        self._growing = growing
        self._engine = growing.network.engine
        self._form = form
        self._out = out
        self._folder = folder
        self._has_files = has_files
        self._files = _file_names([layer.name for layer in growing.network.layers])

    def begin(self) -> None:
        """What comes before the first layer."""
        if self._form == "jsonl":
            write(files.jsonl_head(self._growing.document(ended=False)))
        elif self._form == "csv":
            write(files.csv_head())
        self._save(ended=False)

    def keep(self, index: int, layer: LayerRecord) -> None:
        """The layer at that place has been solved: every file holds it from now on."""
        self._growing.add(index, layer)
        self._save(ended=False)
        if self._folder is not None and layer.mapping is not None:
            operator = self._growing.network.layers[index].operator
            self._write(self._folder / self._files[index], self._mapping_text(layer, operator))

    def print(self, layer: LayerRecord) -> None:
        """Print a layer that has been kept, once those before it are printed."""
        if self._form == "jsonl":
            write(files.jsonl_layer(layer))
        elif self._form == "csv":
            write(files.csv_row(layer))
        if standard.failure is not None and not self._has_files:
            raise standard.failure  # nobody would see what is still to be found

    def end(self, seconds: float) -> ResultDocument:
        """Print what is printed at the end, and complete the file."""
        document = self._growing.document()
        self._save(ended=True)
        match self._form:
            case "json":
                write(files.render(document, "json"))
            case "jsonl":
                write(files.jsonl_totals(document))
            case "table":
                from tilewright.report.text.mapping.documents import document_views

                show(*document_views(document, seconds))
        return document

    def _save(self, *, ended: bool) -> None:
        if self._out is None or (is_stream(self._out) and not ended):
            return
        form = files.output_format(self._out, self._form)
        self._write(self._out, files.render(self._growing.document(ended=ended), form))

    def _write(self, path: Path, text: str) -> None:
        """Write a file; where that fails the run continues, and what it found still reaches stdout."""
        try:
            write_file(path, text)
        except OutputError as error:
            self.failures[path] = str(error)
        else:
            self.failures.pop(path, None)

    def _mapping_text(self, layer: LayerRecord, operator: Operator) -> str:
        assert layer.mapping is not None
        stored = StoredMapping(
            name=layer.name,
            mapping=Mapping.from_data(layer.mapping.nodes, layer.name),
            operator=operator,
            engine=self._engine,
            cost_model=self._growing.network.cost_model,
            objective=str(self._growing.network.objective),
            constraints=applicable(layer.constraints, operator, self._engine),
            factors=layer.factors,
            storage=None if layer.space is None else layer.space.asked_storage,
            tiles=None if layer.space is None else layer.space.asked_tiles,
        )
        return render_mapping(stored)


def _file_names(layers: Sequence[str]) -> list[str]:
    """A file name for each layer, all different."""
    taken: list[str] = []
    for layer in layers:
        stem = _FILE_NAME.sub("_", layer).strip("._")[:_LONGEST_NAME] or "layer"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.append(name)
    return [f"{name}.yaml" for name in taken]


def streams_to_terminal(form: str) -> bool:
    """Whether results appear on a terminal while layers are solved."""
    return form in ("jsonl", "csv") and sys.stdout is not None and sys.stdout.isatty()


def prepare_folder(folder: Path) -> None:
    """Make a folder; raises ``InputError`` where it cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError(str(folder), None, f"cannot be made: {reason or error}") from None
    check_writable(folder / "mapping.yaml")
