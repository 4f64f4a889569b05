"""Workloads by name or from a YAML file.

A file names its networks, by anything that `tilewright map` takes for a model::

    description: Two cameras and a microphone.
    networks:
      - {model: resnet50, batches: 2}
      - {model: own/detector.onnx, name: detector, batch: 4}
      - {model: gnmt}

``batches`` runs of a network are independent of each other; ``batch`` is the number of samples of one run.
Paths are relative to the file.  For an ONNX file, ``dims`` gives sizes of open axes of its inputs,
``branches`` and ``trips`` say what its conditions and loops do, ``skip`` leaves out unsupported nodes, and
``stored_widths`` lets layers state the bits of elements that a quantised model stores::

      - {model: own/speech.onnx, dims: {frames: 100, state.1: 1}, branches: {If_0: then}, trips: {loop: 8}}
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tilewright.foundation.errors import BudgetError, InputError, did_you_mean, unknown_name
from tilewright.foundation.named_files import NamedFiles
from tilewright.foundation.validation import from_validation
from tilewright.foundation.yaml_file import read_yaml
from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.mapping.layer_text import unique_name
from tilewright.workloads.onnx.options import OnnxOptions
from tilewright.workloads.scheduling.workload import Part, Workload

WORKLOADS = NamedFiles(Path(__file__).parent / "multi", "workloads")
_FILES = (".onnx", ".yaml", ".yml")
_Size = Annotated[int, Field(strict=True, ge=1, lt=10**9)]
_FIELDS = {
    "--dim": "dims",
    "--skip-unsupported": "skip",
    "--branch": "branches",
    "--trip": "trips",
    "--stored-widths": "stored_widths",
}
_Count = Annotated[int, Field(strict=True, ge=1, le=4096)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: str = Field(min_length=1)
    name: str | None = Field(default=None, min_length=1)
    batches: _Count = 1
    batch: _Count | None = None
    dims: dict[str, _Size] = Field(default_factory=dict)
    skip: Annotated[bool, Field(strict=True)] = False
    branches: dict[str, Literal["then", "else"]] = Field(default_factory=dict)
    trips: dict[str, _Size] = Field(default_factory=dict)
    stored_widths: Annotated[bool, Field(strict=True)] = False

    @property
    def onnx(self) -> OnnxOptions:
        """How its model is imported, if that is an ONNX file."""
        branches = dict(self.branches)
        return OnnxOptions(self.dims, self.skip, branches, self.trips, "fields", self.stored_widths)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(default=None, min_length=1)
    description: str = ""
    networks: Annotated[list[_Entry], Field(min_length=1, max_length=256)]


def list_workloads() -> tuple[str, ...]:
    """Names of the workloads that come with the package or with installed ones."""
    return tuple(WORKLOADS.names())


def is_workload(content: Any) -> bool:
    """Whether what a YAML file holds is meant as a workload."""
    return isinstance(content, dict) and "networks" in content


def find_workload(text: str) -> Workload | None:
    """The workload that a text names, or whose file it is; nothing where it is something else."""
    path = Path(text)
    is_file = path.suffix.lower() in (".yaml", ".yml")
    if text in WORKLOADS or (is_file and os.path.isfile(path) and is_workload(read_yaml(path))):
        return load_workload(text)
    return None


def load_workload(text: str | Path) -> Workload:
    """A workload by its name or from a YAML file.

    Raises
    ------
    InputError : for a name that is not known, with the nearest one, and for any fault of the file, naming it
        and the field
    """
    path = Path(text)
    if path.suffix.lower() not in (".yaml", ".yml"):
        if str(text) not in WORKLOADS:
            raise InputError("workload", None, unknown_name(str(text), list_workloads()))
        path = WORKLOADS.path(str(text))
    where, content = str(path), read_yaml(path)
    if not isinstance(content, dict):
        raise InputError(where, None, "expected a mapping with the field networks")
    try:
        file = _File.model_validate(content)
    except ValidationError as error:
        known = {*_File.model_fields, *_Entry.model_fields}
        raise from_validation(where, error, known) from None
    taken: set[str] = set()
    parts = [_part(where, path.parent, i, entry, taken) for i, entry in enumerate(file.networks)]
    return Workload(file.name or path.stem, tuple(parts), " ".join(file.description.split()))


def resolve_workload(text: str, batch: int | None = None, options: OnnxOptions | None = None) -> Workload:
    """A workload by name or file, or a model as a workload of its own.

    Parameters
    ----------
    batch : samples of a run of a model; a workload states its own
    options : how an ONNX model is imported; a workload states that, too

    Raises
    ------
    InputError : for anything else, with the nearest name, and for what a workload states itself
    """
    path = Path(text)
    is_file = path.suffix.lower() in (".yaml", ".yml") and os.path.isfile(path)
    if text in WORKLOADS or (is_file and is_workload(read_yaml(path))):
        given = options.given if options is not None else None
        if given is not None or batch is not None:
            raise InputError(given or "--batch", None, "is for a model; a workload states its own")
        return load_workload(text)
    try:
        network = resolve_model(text, batch, options or OnnxOptions(asker="fields"))
    except InputError as error:
        nearest = did_you_mean(text, list_workloads())
        if nearest and "no such model" in error.message:
            raise InputError(text, None, f"no such workload or model{nearest}") from None
        raise error
    return Workload(network.name, (Part(network.name, network),))


def _part(where: str, folder: Path, position: int, entry: _Entry, taken: set[str]) -> Part:
    is_file = Path(entry.model).suffix.lower() in _FILES
    try:
        network = resolve_model(
            str(folder / entry.model) if is_file else entry.model, entry.batch, entry.onnx
        )
    except BudgetError as error:  # a limit, which exit codes tell from bad input
        raise type(error)(where, f"networks.{position}.model", str(error)) from None
    except InputError as error:
        if error.where in _FIELDS:
            place = ".".join(filter(None, (_FIELDS[error.where], error.field)))
            raise InputError(where, f"networks.{position}.{place}", error.message) from None
        raise InputError(where, f"networks.{position}.model", str(error)) from None
    return Part(unique_name(entry.name or network.name, taken), network, entry.batches)
