"""ONNX files written: checked first, and whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import onnx

from tilewright.workloads.errors import InputError


def write_onnx(model: onnx.ModelProto, path: Path) -> None:
    """Write a model that the onnx checker accepts, shapes included.

    Raises
    ------
    InputError : for a file name with another ending, and for a place that cannot be written
    """
    if path.suffix.lower() != ".onnx":
        raise InputError(str(path), None, "expected a file that ends in .onnx")
    onnx.checker.check_model(model, full_check=True)
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".onnx", delete=False) as file:
            file.write(model.SerializeToString())
        os.replace(file.name, path)
    except OSError as error:
        raise InputError(str(path), None, f"cannot be written: {error.strerror or error}") from None
