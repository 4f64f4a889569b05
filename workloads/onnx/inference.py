"""Shape inference of the onnx package, in a process of its own.

The inference is compiled code that folds constants and opens functions without limits of its own, and that
cannot be stopped.  The process has a limit of memory and of time; the caller continues in any case.
It loads nothing but the compiled module, which takes some 30 ms: Python begins isolated from environment,
current folder and installed packages, so that it looks for no module anywhere but in its own library.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from math import ceil

import onnx
from onnx import onnx_cpp2py_export as compiled
from onnx import shape_inference

from tilewright.foundation.disk import size_text
from tilewright.foundation.errors import BudgetError, InputError, one_line
from tilewright.foundation.interpreter import isolated_command, python_command, python_environment
from tilewright.foundation.loading import remaining, too_slow
from tilewright.workloads.onnx import inference_process
from tilewright.workloads.onnx.budgets import check_axes, check_sizes
from tilewright.workloads.onnx.inference_process import FAILED, FULL, INFERRED, MANY
from tilewright.workloads.onnx.unfolding import opening
from tilewright.workloads.onnx.unfolding import process as unfolding_process
from tilewright.workloads.onnx.unfolding.choices import Choices, TooManyNodesError

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
    for value in inferred.graph.value_info:  # what elements are stays with the model, which had it cleared
        kind = onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=value.type.tensor_type.elem_type))
        model.graph.value_info.append(onnx.ValueInfoProto(name=value.name, type=kind))
    return read_shapes(inferred, where)


def open_model(
    model: onnx.ModelProto, where: str, choices: Choices, *, bounded: bool = True
) -> onnx.ModelProto:
    """A model without functions, branches and loops, its constants computed, with the types of its tensors.

    Parameters
    ----------
    model : with a size for each axis of its inputs, large weights dropped
    where : the file, for messages
    choices : of the user
    bounded : in a process of its own; without, for models that this package makes itself

    Returns
    -------
    What `tilewright.workloads.onnx.unfolding.opening.open_model` returns

    Raises
    ------
    InputError : where the onnx package fails, and where it takes too much memory, nodes or time
    """
    try:
        if not bounded:
            return opening.open_model(model, choices)
        script = unfolding_process.__file__
        return _answered(
            model, where, lambda *limits: python_command(script, *limits, json.dumps(asdict(choices)))
        )
    except TooManyNodesError as error:
        message = f"expected at most {choices.most:,} nodes in a model, rounds of loops opened"
        raise BudgetError(where, f"node {error}", message) from None


def read_shapes(model: onnx.ModelProto, where: str) -> Shapes:
    """Axes of every tensor of which a model states them all.

    Raises
    ------
    BudgetError : for more axes or elements than a tensor may have
    """
    shapes: Shapes = {}
    for value in (*model.graph.input, *model.graph.value_info, *model.graph.output):
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
    settings = "strict" if strict else "lenient"
    script, library = inference_process.__file__, str(compiled.__file__)
    return _answered(model, where, lambda *limits: isolated_command(script, library, *limits, settings))


def _answered(
    model: onnx.ModelProto, where: str, command: Callable[[str, str], list[str]]
) -> onnx.ModelProto:
    """What a process makes of a model; the command is that for its bytes and seconds."""
    content = model.SerializeToString()
    memory = MEMORY + SHARE * len(content)
    seconds = min(SECONDS, max(0.0, remaining()))
    pipe = subprocess.PIPE
    try:
        started = subprocess.Popen(
            command(str(memory), str(ceil(seconds) + 1)),
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env={**python_environment(), "OPENBLAS_NUM_THREADS": "1"},
        )
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
    if kind == MANY:
        raise TooManyNodesError(reported.decode(errors="replace"))
    if kind == FAILED:
        raise InputError(where, None, f"{_NOT}: {one_line(ValueError(reported.decode(errors='replace')))}")
    if kind == FULL or process.returncode in (-signal.SIGABRT, -signal.SIGKILL):
        most = size_text(MEMORY)
        raise BudgetError(
            where, None, f"{_NOT}: it needs more than {most} of memory, or more than the machine has"
        )
    if process.returncode == -signal.SIGXCPU:
        raise BudgetError(where, None, f"{_NOT}: it takes longer than {SECONDS:g} s")
    raise InputError(where, None, f"{_NOT}: the inference ended with {_end(process.returncode)}")


def _end(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


_NOT = "shapes cannot be inferred"
