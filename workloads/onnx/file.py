"""ONNX files written: checked first, and whole or not at all."""

from __future__ import annotations

from pathlib import Path

import onnx

from tilewright.foundation.disk import check_writable, suffix_error, write_file


def write_onnx(model: onnx.ModelProto, path: Path) -> None:
    """Write a model that the onnx checker accepts, shapes included.

    Raises
    ------
    InputError : for a file name with another ending, and for a place that cannot be written
    OutputError : where writing fails
    """
    if path.suffix.lower() != ".onnx":
        raise suffix_error(path, (".onnx",))
    check_writable(path)
    onnx.checker.check_model(model, full_check=True)
    write_file(path, model.SerializeToString())
