"""Nodes held against what ONNX says of their operation: kinds of attributes, numbers of operands."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from functools import cache
from typing import Any

import onnx
from onnx import defs


def opset_versions(model: onnx.ModelProto) -> dict[str, int]:
    """Versions of the operations by domain; that of ONNX itself has no name."""
    return {
        ("" if opset.domain == "ai.onnx" else opset.domain): opset.version for opset in model.opset_import
    }


def schema_fault(node: onnx.NodeProto, versions: MappingABC[str, int]) -> str | None:
    """What keeps a node of an ONNX operation from being one; ``None`` where nothing does."""
    schema = _schema(node.op_type, versions.get("", defs.onnx_opset_version()))
    if schema is None:
        return f"the operation {node.op_type} is not in the model's version of ONNX"
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return f"{attribute.name}: refers to an attribute of a function, outside of one"
        known = schema.attributes.get(attribute.name)
        if known is not None and int(known.type.value) != attribute.type:
            return f"{attribute.name}: expected {_kind(int(known.type.value))}, got {_kind(attribute.type)}"
    if not schema.min_input <= len(node.input) <= schema.max_input:
        return f"has {len(node.input)} inputs, expected {_range(schema.min_input, schema.max_input)}"
    for position, formal in enumerate(schema.inputs[: schema.min_input]):
        if formal.option == defs.OpSchema.FormalParameterOption.Single and not node.input[position]:
            return f"input {position} ({formal.name}) is left out"
    if not schema.min_output <= len(node.output) <= schema.max_output:
        return f"has {len(node.output)} outputs, expected {_range(schema.min_output, schema.max_output)}"
    return None


def known_attributes(node: onnx.NodeProto, versions: MappingABC[str, int]) -> dict[str, onnx.AttributeProto]:
    """Attributes that the operation has, by name; others mean nothing."""
    if node.domain not in ("", "ai.onnx"):
        return {a.name: a for a in node.attribute if not a.ref_attr_name}
    schema = _schema(node.op_type, versions.get("", defs.onnx_opset_version()))
    if schema is None:
        return {}
    known = schema.attributes
    return {a.name: a for a in node.attribute if a.name in known and not a.ref_attr_name}


@cache
def _schema(operation: str, version: int) -> Any:
    try:
        return defs.get_schema(operation, version, "")
    except (defs.SchemaError, TypeError, ValueError, OverflowError):
        return None


def _kind(number: int) -> str:
    try:
        return str(onnx.AttributeProto.AttributeType.Name(number))
    except ValueError:
        return f"kind {number}"


def _range(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}" if most < 2**31 - 1 else f"at least {least}"
