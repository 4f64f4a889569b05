"""What the onnx package says of one node: the types of its results, and their values where they are small."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper, shape_inference

MOST_VALUES = 2**16
"""Elements of a constant whose values are kept; larger ones are weights or masks, no sizes."""
OWN_DOMAINS = ("", "ai.onnx")
_RANDOM = (
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)
_NEVER = frozenset((*_RANDOM, "ImageDecoder", "RegexFullMatch", "StringSplit", "StringNormalizer"))
_SHORTENING = frozenset(("Compress", "NonZero", "Unique"))
"""Results whose sizes depend on the values, but are no larger than the operands."""

Types = Mapping[str, onnx.TypeProto]
_FAILURES = (shape_inference.InferenceError, defs.SchemaError, onnx.checker.ValidationError)


def shape_of(kind: onnx.TypeProto | None) -> tuple[int, ...] | None:
    """Axes of a tensor type; nothing where one is open, or where it is no tensor."""
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    axes = kind.tensor_type.shape.dim
    if not all(axis.HasField("dim_value") and axis.dim_value >= 0 for axis in axes):
        return None
    return tuple(axis.dim_value for axis in axes)


def tensor_type(element: int, shape: Sequence[int]) -> onnx.TypeProto:
    """The type of a tensor of known axes."""
    made: onnx.TypeProto = helper.make_tensor_type_proto(element, list(shape))
    return made


def stored_values(tensor: onnx.TensorProto) -> np.ndarray | None:
    """Values of a stored tensor; nothing for a large one, and for one whose values were left behind."""
    if math.prod(tensor.dims) > MOST_VALUES or onnx.external_data_helper.uses_external_data(tensor):
        return None
    try:
        values = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return values if values.shape == tuple(tensor.dims) and values.dtype.kind in "biufc" else None


def constant_value(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """What a node ``Constant`` holds, as a tensor; nothing for texts and sparse tensors."""
    for attribute in node.attribute:
        if attribute.name == "value":
            held: onnx.TensorProto = attribute.t
            return held
        if attribute.name in ("value_int", "value_float"):
            number = attribute.i if attribute.name == "value_int" else attribute.f
            kind = np.int64 if attribute.name == "value_int" else np.float32
            return numpy_helper.from_array(np.array(number, kind))
        if attribute.name == "value_ints":
            return numpy_helper.from_array(np.array(attribute.ints, np.int64))
        if attribute.name == "value_floats":
            return numpy_helper.from_array(np.array(attribute.floats, np.float32))
    return None


def inferred_types(
    node: onnx.NodeProto, types: Types, values: Mapping[str, onnx.TensorProto], model: onnx.ModelProto
) -> dict[str, onnx.TypeProto]:
    """Types of a node's results.

    Parameters
    ----------
    node : of an operation of ONNX itself
    types : by tensor, those of all operands
    values : by tensor, those of some operands
    model : whose versions of operations count

    Raises
    ------
    ValueError : with the inference's reason
    """
    version = next((o.version for o in model.opset_import if o.domain in OWN_DOMAINS), None)
    try:
        schema = defs.get_schema(node.op_type, version or defs.onnx_opset_version(), "")
        return shape_inference.infer_node_outputs(
            schema,
            node,
            {name: types[name] for name in node.input if name},
            {name: values[name] for name in node.input if name in values},
            opset_imports=list(model.opset_import),
        )
    except (*_FAILURES, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise ValueError(_plain(str(error))) from None


def _plain(reason: str) -> str:
    """A reason of the onnx package without its place in that package's code."""
    return (
        re.sub(r"^(\[\w+\] *|\(op_type:[^)]*\):? *|\S+\.(cc|h):\d+:\S* *)+", "", " ".join(reason.split()))
        or "is refused"
    )


def evaluated(
    node: onnx.NodeProto,
    values: Mapping[str, np.ndarray],
    shapes: Sequence[tuple[int, ...] | None],
    model: onnx.ModelProto,
) -> list[np.ndarray] | None:
    """A node's results by the onnx package's reference evaluator; nothing where they are large or fail.

    Parameters
    ----------
    node : of an operation of ONNX itself, without graphs
    values : by tensor, those of all operands
    shapes : axes of each result, as inferred
    model : whose versions of operations count
    """
    if node.op_type in _NEVER or any(a.HasField("g") or a.graphs for a in node.attribute):
        return None
    for shape in shapes:
        if shape is None and node.op_type not in _SHORTENING:
            return None
        if shape is not None and math.prod(shape) > MOST_VALUES:
            return None
    results = [name for name in node.output if name]
    return calculation([node], {name: values[name] for name in node.input if name}, results, model)()


def calculation(
    nodes: Sequence[onnx.NodeProto],
    given: Mapping[str, np.ndarray],
    results: Sequence[str],
    model: onnx.ModelProto,
) -> Callable[[], list[np.ndarray] | None]:
    """Some nodes, to be computed by the onnx package's reference evaluator as often as is asked.

    Parameters
    ----------
    nodes : of operations of ONNX itself, without graphs
    given : values by tensor, those of all operands that no node makes; each call reads them anew
    results : tensors that are asked for
    model : whose versions of operations count

    Returns
    -------
    Computes the values of the results; nothing where the evaluator fails, and where one is no number
    """
    from onnx.reference import ReferenceEvaluator  # most models need none

    kinds = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    ends = [onnx.ValueInfoProto(name=name) for name in results]
    graph = helper.make_graph(nodes, "nodes", kinds, ends)
    evaluator: list[ReferenceEvaluator] = []

    def compute() -> list[np.ndarray] | None:
        try:
            if not evaluator:
                evaluator.append(
                    ReferenceEvaluator(helper.make_model(graph, opset_imports=list(model.opset_import)))
                )
            with np.errstate(all="ignore"):
                made = list(evaluator[0].run(None, dict(given)))
        except MemoryError:
            raise
        except Exception:  # the evaluator is another's code and raises anything
            return None
        if all(isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc" for value in made):
            return [np.asarray(value) for value in made]
        return None

    return compute
