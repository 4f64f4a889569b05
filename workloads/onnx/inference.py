"""Shape inference of the onnx package, in a process of its own.

The inference is compiled code that folds constants and opens functions without limits of its own, and that
cannot be stopped.  The process has a limit of memory and of time; the caller continues in any case.
It loads nothing but the compiled module, which takes some 30 ms: Python begins isolated from environment,
current folder and installed packages, so that it looks for no module anywhere but in its own library.
"""

from __future__ import annotations

import signal
import subprocess
from math import ceil

import onnx
from onnx import onnx_cpp2py_export as compiled
from onnx import shape_inference

from tilewright.foundation.disk import size_text
from tilewright.foundation.errors import BudgetError, InputError, one_line
from tilewright.foundation.interpreter import isolated_command
from tilewright.foundation.loading import remaining, too_slow
from tilewright.workloads.onnx import inference_process
from tilewright.workloads.onnx.budgets import check_axes, check_sizes
from tilewright.workloads.onnx.inference_process import FAILED, FULL, INFERRED

MEMORY = 2**29
"""Bytes that the inference may take, besides `SHARE` for each byte of the model without its weights."""
SHARE = 16
SECONDS = 60.0
"""How long it may take where the call has no limit of its own."""

Shapes = dict[str, tuple[int, ...]]


def infer_shapes(model: onnx.ModelProto, where: str, *, strict: bool = True, bounded: bool = True) -> Shapes:
    """Axes of every tensor that can be inferred.

    Parameters
    ----------
    model : its own shapes of inner tensors and results are dropped
    where : the file, for messages
    strict : whether a node that is not understood is an error
    bounded : in a process of its own; without, for models that this package makes itself

    Raises
    ------
    InputError : naming what the inference stumbled over, and where it takes too much memory or time
    """
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    if bounded:
        inferred = _bounded(model, where, strict=strict)
    else:
        inferred = shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict, data_prop=True)
    shapes: Shapes = {}
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        if value.type.tensor_type.HasField("shape"):
            axes = value.type.tensor_type.shape.dim
            check_axes(where, f"tensor {value.name!r}", len(axes))
            if all(axis.HasField("dim_value") for axis in axes):
                shapes[value.name] = tuple(axis.dim_value for axis in axes)
    for tensor in model.graph.initializer:
        shapes[tensor.name] = tuple(tensor.dims)
    check_sizes(where, shapes)
    return shapes


def _bounded(model: onnx.ModelProto, where: str, *, strict: bool) -> onnx.ModelProto:
    content = model.SerializeToString()
    memory = MEMORY + SHARE * len(content)
    seconds = min(SECONDS, max(0.0, remaining()))
    settings = str(compiled.__file__), str(memory), str(ceil(seconds) + 1), "strict" if strict else "lenient"
    pipe = subprocess.PIPE
    try:
        command = isolated_command(inference_process.__file__, *settings)
        started = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    except OSError as error:
        raise InputError(where, None, f"{_NOT}: no process can be started: {one_line(error)}") from None
    with started as process:
        try:
            answer, _ = process.communicate(content, timeout=seconds)
        except subprocess.TimeoutExpired:
            if remaining() <= 0:
                raise too_slow(where) from None
            raise BudgetError(where, None, f"{_NOT}: it takes longer than {SECONDS:g} s") from None
        finally:
            process.kill()
    kind, reported = answer[:1], answer[1:]
    if kind == INFERRED:
        inferred: onnx.ModelProto = onnx.ModelProto.FromString(reported)
        return inferred
    if kind == FAILED:
        raise InputError(where, None, f"{_NOT}: {one_line(ValueError(reported.decode(errors='replace')))}")
    if kind == FULL or process.returncode in (-signal.SIGABRT, -signal.SIGKILL):
        most = size_text(MEMORY)
        raise BudgetError(
            where, None, f"{_NOT}: it needs more than {most} of memory, or more than the machine has"
        )
    raise InputError(where, None, f"{_NOT}: the inference ended with {_end(process.returncode)}")


def _end(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


_NOT = "shapes cannot be inferred"
