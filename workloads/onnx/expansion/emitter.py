"""Nodes that take the place of another node, with the shapes of what they make."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tilewright.foundation.errors import InputError
from tilewright.workloads.onnx.graph import Node, OnnxGraph


class Emitter:
    """Writes the nodes that one node stands for.

    Parameters
    ----------
    graph : what is read of the model; shapes and stored tensors of what is made are added to it
    activations : tensors that depend on the inputs; results are added
    """

    def __init__(self, graph: OnnxGraph, activations: set[str]) -> None:
        self.graph = graph
        self.activations = activations
        self.nodes: list[Node] = []
        self.states: list[str] = []
        self.origin: Node

    def begin(self, node: Node) -> None:
        """What is written from here on stands for this node."""
        self.origin, self.nodes = node, []

    def error(self, message: str) -> InputError:
        """An error that names the node."""
        return InputError(self.graph.where, self.origin.label, message)

    def has(self, position: int) -> bool:
        """Whether an optional input is there."""
        return len(self.origin.inputs) > position and bool(self.origin.inputs[position])

    def input(self, position: int) -> str:
        """The tensor at a position; an empty text where none is."""
        return self.origin.inputs[position] if self.has(position) else ""

    def shape(self, tensor: str, axes: int | None = None) -> tuple[int, ...]:
        """Axes of a tensor; raises ``InputError`` for another number of them."""
        shape = self.graph.shape(self.origin, tensor)
        if axes is not None and len(shape) != axes:
            raise self.error(f"expected {axes} axes, got shape {list(shape)}")
        return shape

    def number(self, attribute: str, default: int = 0) -> int:
        """An attribute that is a number."""
        return int(self.origin.attributes.get(attribute, default))

    def stored(self, tensor: str, shape: Sequence[int], root: str | None = None) -> str:
        """A constant of the model by another name or shape; `root` is the stored tensor behind it."""
        self.graph.shapes[tensor] = tuple(shape)
        self.graph.stored[tensor] = root or tensor
        return tensor

    def state(self, tensor: str, shape: Sequence[int]) -> str:
        """What a recurrence begins with, as an input of the network: so all of its steps are alike."""
        self.graph.shapes[tensor] = tuple(shape)
        self.activations.add(tensor)
        self.states.append(tensor)
        return tensor

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        shape: Sequence[int],
        part: str,
        output: str | None = None,
        **attributes: Any,
    ) -> str:
        """One node with one result.

        Parameters
        ----------
        op : one of ONNX's own operations
        inputs : tensors by position, an empty text for one that is left out
        shape : axes of the result
        part : its name behind the original node's
        output : the result's name, where it is one of the original node's
        """
        base = self.origin.name or self.origin.outputs[0]
        made = output or f"{base}/{part}"
        self.graph.shapes[made] = tuple(shape)
        data = tuple(dict.fromkeys(name for name in inputs if name in self.activations))
        if data:
            self.activations.add(made)
            name = f"{base}/{part}" if part else self.origin.name
            self.nodes.append(
                replace(
                    self.origin,
                    op=op,
                    name=name,
                    inputs=tuple(inputs),
                    data=data,
                    outputs=(made,),
                    attributes=dict(attributes),
                    domain="",
                )
            )
        return made

    def rewritten(self, op: str, inputs: Sequence[str], **attributes: Any) -> None:
        """The node itself as another operation, or with other inputs; its results stay."""
        data = tuple(dict.fromkeys(name for name in inputs if name in self.activations))
        kept = {**self.origin.attributes, **attributes}
        self.nodes.append(
            replace(self.origin, op=op, inputs=tuple(inputs), data=data, attributes=kept, domain="")
        )

    def alias(self, source: str, output: str) -> None:
        """A result of the original node that is a tensor of those that were written."""
        if output:
            self.node("Identity", [source], self.graph.shapes[source], "", output)

    def row(self, tensor: str, number: int, shape: Sequence[int], part: str) -> str:
        """A part of a tensor: one step of a sequence, one of several joined tensors.

        Parameters
        ----------
        tensor : what is cut
        number : which part, counted from 0
        shape : axes of the part
        part : name of the parts
        """
        return self.node("Slice", [tensor], shape, f"{part}{number}")


Rewriter = Callable[[Emitter], None]


def elements(shape: Sequence[int]) -> int:
    """Elements of a tensor."""
    return math.prod(shape)
