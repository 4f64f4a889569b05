"""How ``map`` ends: layers on stdout as they are answered, and its exit code."""

from __future__ import annotations

import sys
from typing import Any

from tilewright.api.live import Listener, LiveDocument
from tilewright.cli.exits import reason
from tilewright.cli.searching import Printed
from tilewright.cli.terminal.console import error_line, note_line, standard, write
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.records import files
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument


class PrintedLayers(Listener):
    """Prints layers to stdout, a line each in their order, as soon as those before them are answered.

    Parameters
    ----------
    form : ``jsonl`` or ``csv``
    """

    def __init__(self, form: str) -> None:
        self._form = form
        self._layers: dict[int, LayerRecord] = {}
        self._closed: set[int] = set()
        self._printed = 0
        self._engine: Engine

    def begin(self, live: LiveDocument[Any]) -> None:
        document = live.so_far().record
        self._engine = document.arch.build(document.model)
        write(files.jsonl_head(document) if self._form == "jsonl" else files.csv_head(self._engine))

    def part(self, index: int, part: Any) -> None:
        self._layers[index] = part

    def answered(self, index: int, part: Any, is_open: bool) -> None:
        if not is_open:
            self._closed.add(index)
        while self._printed in self._closed:
            self._print(self._layers[self._printed])
            self._printed += 1

    def end(self, answer: Any) -> None:
        for index in sorted(self._layers):
            if index >= self._printed:  # the time is over
                self._print(self._layers[index])
        if self._form == "jsonl":
            write(files.jsonl_totals(answer.record))

    def _print(self, layer: LayerRecord) -> None:
        write(files.jsonl_layer(layer) if self._form == "jsonl" else files.csv_row(layer, self._engine))


class EndsWithStdout(Listener):
    """Ends a run whose results nobody sees any more: stdout is lost, and there is no file."""

    def answered(self, index: int, part: Any, is_open: bool) -> None:
        if not is_open and standard.failure is not None:
            raise standard.failure


def printed(form: str) -> Listener:
    """Who prints a document in a form."""
    return PrintedLayers(form) if form in ("jsonl", "csv") else Printed(form)


def streams_to_terminal(form: str) -> bool:
    """Whether results appear on a terminal while layers are solved."""
    return form in ("jsonl", "csv") and sys.stdout is not None and sys.stdout.isatty()


def tell_reasons(document: ResultDocument) -> None:
    """Why layers have no mapping or no proof, where no progress has shown it."""
    for layer in document.layers:
        solved = layer.mapping is not None
        if not solved or layer.status != "optimal":
            why = reason(layer.status, layer.message, solved=solved, gap=layer.gap)
            (error_line if layer.status == "error" else note_line)(f"{layer.name}: {why}")
