"""Bodies of branches and loops as nodes of the graph around them, with names of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx


def graph_of(node: onnx.NodeProto, attribute: str) -> onnx.GraphProto | None:
    """A graph that a node holds."""
    return next((held.g for held in node.attribute if held.name == attribute and held.HasField("g")), None)


def opened(
    body: onnx.GraphProto, prefix: str, bound: Mapping[str, str], taken: Mapping[str, object], turn: str = ""
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto], list[str]]:
    """The nodes of a body, to stand in the graph that the body was in.

    Parameters
    ----------
    body : of a branch, or of one round of a loop
    prefix : before names of tensors that would be there twice
    bound : what the body's inputs are in the graph around it
    taken : names of tensors that are there already
    turn : behind the names of nodes, which a loop would have several times

    Returns
    -------
    Nodes, stored tensors, and the names of the body's results
    """
    names = dict(bound)
    stored = []
    for tensor in body.initializer:
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        copy.name = names[tensor.name] = _free(tensor.name, prefix, taken)
        stored.append(copy)
    for node in body.node:
        for name in node.output:
            if name:
                names[name] = _free(name, prefix, taken)
    renamed = {old: new for old, new in names.items() if old != new}
    nodes = [_renamed(node, renamed, turn) for node in body.node] if renamed or turn else list(body.node)
    results = [names.get(value.name, value.name) for value in body.output]
    return nodes, stored, results


def _free(name: str, prefix: str, taken: Mapping[str, object]) -> str:
    return f"{prefix}/{name}" if name in taken else name


def _renamed(node: onnx.NodeProto, names: Mapping[str, str], turn: str) -> onnx.NodeProto:
    """A copy with other names of tensors, inside the graphs that it holds too."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name += turn if copy.name else ""
    _rename(copy, names)
    return copy


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    for field in (node.input, node.output):
        for i, name in enumerate(field):
            if name in names:
                field[i] = names[name]
    for inner in _graphs(node):
        own = {value.name for value in inner.input} | {tensor.name for tensor in inner.initializer}
        own.update(name for step in inner.node for name in step.output)
        outside = {old: new for old, new in names.items() if old not in own}
        if outside:
            for step in inner.node:
                _rename(step, outside)
            for value in inner.output:
                value.name = outside.get(value.name, value.name)


def captured(node: onnx.NodeProto) -> list[str]:
    """Tensors of the graph around a node that the bodies inside it read, each once."""
    names: dict[str, None] = {}
    for inner in _graphs(node):
        own = {value.name for value in inner.input} | {tensor.name for tensor in inner.initializer}
        own.update(name for step in inner.node for name in step.output)
        read = (name for step in inner.node for name in (*step.input, *captured(step)))
        names.update(dict.fromkeys(name for name in read if name and name not in own))
        names.update(dict.fromkeys(value.name for value in inner.output if value.name not in own))
    return list(names)


def _graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
