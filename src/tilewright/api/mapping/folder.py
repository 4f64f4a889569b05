"""A folder with one mapping file per layer, each written as soon as its layer has a mapping."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.api.mapping.question import LayersOnMachine
from tilewright.api.saving import FileListener
from tilewright.formulation.mapping.demands.constraints import applicable
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.foundation.disk import check_writable
from tilewright.foundation.errors import InputError
from tilewright.report.records.mapping.document import LayerRecord
from tilewright.report.records.mapping.mapping_file import StoredMapping, render_mapping

_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 200


class MappingFolder(FileListener):
    """Writes the mappings of a question's layers.

    Parameters
    ----------
    folder : made where it is missing

    Raises
    ------
    InputError : where it cannot be written to
    """

    def __init__(self, folder: Path, question: LayersOnMachine) -> None:
        super().__init__()
        self._folder = folder
        self._stated = question.stated
        self._names = _file_names([layer.name for layer in self._stated.layers])
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise InputError(str(folder), None, f"cannot be made: {reason or error}") from None
        check_writable(folder / "mapping.yaml")

    def part(self, index: int, part: Any) -> None:
        if part.mapping is not None:
            self.write(self._folder / self._names[index], self._text(index, part))

    def _text(self, index: int, layer: LayerRecord) -> str:
        assert layer.mapping is not None
        stated, operator, space = self._stated, self._stated.layers[index].operator, layer.space
        return render_mapping(
            StoredMapping(
                name=layer.name,
                mapping=Mapping.from_data(layer.mapping.nodes, layer.name),
                operator=operator,
                engine=stated.engine,
                cost_model=stated.cost_model,
                objective=str(stated.objective),
                constraints=applicable(layer.constraints, operator, stated.engine),
                factors=layer.factors,
                storage=None if space is None else space.asked_storage,
                tiles=None if space is None else space.asked_tiles,
            )
        )


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
