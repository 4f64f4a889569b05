"""Training graphs: an inference network extended by error propagation and weight updates (KAPLA, II-A).

Going backwards through the network, every layer whose input depends on something learned gets a layer
``NAME.error`` that propagates the gradient of its result to its input, and every layer with stored weights a
layer ``NAME.update`` that computes the gradient of its weights.  Where several layers read a result, a layer
``NAME.error_sum`` adds up what they send back.

- Sums pass gradients on unchanged and need no layer; so do reshaping, joining and cutting, which become part
  of the links as in the forward direction.
- The derivatives of fused operations (activations, normalisation) are element-wise factors on the gradient
  that arrives, applied where it is made; those of layers of their own are layers again.
- What the forward pass computed and the backward pass reads again (activations) arrives by links from the
  forward layers, so that a schedule sees how long it has to be kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.gradients import gradient
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import elementwise, reduction
from tilewright.workloads.network import Layer, Link, Network

SUMS = frozenset({"Add", "Sum"})
LOOKUP = "Gather"


@dataclass(frozen=True, slots=True)
class _Flow:
    """A gradient on its way back: who makes it, how many elements of it count, and what lies between."""

    producer: str | None
    tensor: str
    elements: int
    moves: tuple[str, ...] = ()

    def link(self, consumer: str, operand: str) -> Link:
        return Link(
            self.producer,
            consumer,
            operand,
            self.tensor,
            self.elements,
            None if self.moves else 0,
            self.moves,
        )


def training_network(forward: Network) -> Network:
    """The forward layers, and behind them those of the backward pass.

    Raises
    ------
    InputError : for a network in which nothing is learned, for one that is a training graph already, and for
        one that states widths
    """
    if any(layer.operator.kind == "weight_update" for layer in forward.layers):
        raise InputError(forward.name, None, "is a training graph already, expected a forward network")
    forward.expect_machine_widths("training graphs")
    return _Backward(forward).network()


class _Backward:
    def __init__(self, forward: Network) -> None:
        self.forward = forward
        self.layers: list[Layer] = []
        self.links: list[Link] = []
        self.updates: list[str] = []
        self.arriving: dict[str, list[_Flow]] = {}
        self.trained = _trained(forward)

    def network(self) -> Network:
        for layer in reversed(self.forward.layers):
            if layer.name not in self.trained:
                continue
            flows = self.arrived(layer)
            if not flows:
                continue
            if layer.operator.is_mac:
                self.multiply(layer, flows)
            else:
                self.combine(layer, flows)
        if not self.updates:
            raise InputError(self.forward.name, None, "it has no learned parameters, so it cannot be trained")
        return Network(
            f"{self.forward.name}:training",
            (*self.forward.layers, *self.layers),
            (*self.forward.links, *self.links),
            batch=self.forward.batch,
            outputs=(*self.forward.outputs, *self.updates),
            tables=self.forward.tables,
        )

    def arrived(self, layer: Layer) -> list[_Flow]:
        """The gradient of a layer's result: from the loss, from its reader, or the sum over its readers."""
        shape = tuple(axis.size for axis in layer.operator.output.axes)
        size = math.prod(shape)
        flows = list(self.arriving.get(layer.name, ()))
        if layer.name in self.forward.outputs:
            flows.append(_Flow(None, f"d{layer.name}", size))
        whole = [flow for flow in flows if flow.elements >= size]
        parts = [flow for flow in flows if flow.elements < size]
        addends = [[flow] for flow in whole] + ([parts] if parts else [])
        if len(addends) < 2:
            return flows
        name = f"{layer.name}.error_sum"
        self.add(name, elementwise(shape=shape, operands=len(addends)), "Sum", layer)
        for i, addend in enumerate(addends):
            self.links.extend(flow.link(name, f"I{i}") for flow in addend)
        return [_Flow(name, f"d{layer.name}", size)]

    def multiply(self, layer: Layer, flows: Sequence[_Flow]) -> None:
        """Error propagation and weight update of a layer that multiplies and accumulates."""
        stored = {t.name for t in layer.operator.inputs if t.role is Role.WEIGHT and layer.stored_weights}
        for tensor in layer.operator.inputs:
            if tensor.name in stored:
                name = f"{layer.name}.update"
                self.add(name, gradient(layer.operator, tensor.name), "Update", layer)
                self.updates.append(name)
                self.connect(layer, name, tensor.name, flows)
            else:
                self.propagate(layer, tensor.name, flows)

    def combine(self, layer: Layer, flows: Sequence[_Flow]) -> None:
        """Backward pass of pooling, element-wise and normalising layers."""
        for tensor in layer.operator.inputs:
            if layer.source in SUMS and tensor.dims == layer.operator.output.dims:
                for link in self.learning(layer, tensor.name):
                    self.send(link, [replace(f, elements=min(f.elements, link.elements)) for f in flows])
            else:
                self.propagate(layer, tensor.name, flows)

    def propagate(self, layer: Layer, operand: str, flows: Sequence[_Flow]) -> None:
        """A layer for the gradient of one operand, sent back to all who made the operand."""
        links = self.learning(layer, operand)
        if not links:
            return
        several = len([t for t in layer.operator.inputs if self.learning(layer, t.name)]) > 1
        name = f"{layer.name}.error_{operand}" if several else f"{layer.name}.error"
        total = sum(link.elements for link in self.forward.reads(layer.name) if link.operand == operand)
        operator = self.error_operator(layer, operand, total)
        self.add(name, operator, "Error", layer)
        self.connect(layer, name, operand, flows)
        for link in links:
            moves = ("Slice",) if link.elements < total else ()
            self.send(link, [_Flow(name, f"d{link.tensor}", link.elements, moves)])

    def error_operator(self, layer: Layer, operand: str, elements: int) -> Operator:
        forward = layer.operator
        if forward.is_mac or forward.kind == "pool":
            return gradient(forward, operand, elements)
        target = forward.tensor(operand)
        if layer.source in SUMS:  # an operand that was repeated along some axes gets the sum along them
            shape = [forward.bounds[d.name] for d in forward.dimensions]
            gone = [i for i, d in enumerate(forward.dimensions) if d.name not in target.dims]
            made = reduction(shape=shape, over=gone)
            return replace(
                made,
                tensors=(replace(made.tensors[0], name="dO"), replace(made.tensors[1], name=f"d{operand}")),
            )
        made = gradient(forward, operand)
        if len(forward.inputs) > 1:
            return made
        saved = replace(target, name=operand)  # the derivative of a function needs what it was applied to
        return replace(made, tensors=(made.tensors[0], saved, made.tensors[-1]))

    def connect(self, layer: Layer, name: str, operand: str, flows: Sequence[_Flow]) -> None:
        """Link the gradient that arrives, and whatever else of the forward pass the backward layer reads."""
        made = self.layers[-1].operator
        arriving = f"d{layer.operator.output.name}"
        self.links.extend(flow.link(name, arriving) for flow in flows)
        kept = {tensor.name for tensor in made.inputs} - {arriving}
        self.links.extend(
            replace(link, consumer=name) for link in self.forward.reads(layer.name) if link.operand in kept
        )

    def learning(self, layer: Layer, operand: str) -> list[Link]:
        """Links of an operand whose data depends on something learned."""
        return [
            link
            for link in self.forward.reads(layer.name)
            if link.operand == operand and (link.producer in self.trained or LOOKUP in link.moves)
        ]

    def send(self, link: Link, flows: Sequence[_Flow]) -> None:
        """Gradients for the layer that made what a link carries; those of a table of vectors end there."""
        if link.producer is not None:
            back = tuple(reversed(link.moves))
            self.arriving.setdefault(link.producer, []).extend(
                replace(flow, moves=(*flow.moves, *back)) for flow in flows
            )

    def add(self, name: str, operator: Operator, source: str, layer: Layer) -> None:
        reads_weights = operator.is_mac and source == "Error" and layer.stored_weights
        learned = layer.learned if reads_weights and layer.learned is not None else ()
        self.layers.append(Layer(name, operator, source, stored_weights=reads_weights, learned=learned))


def _trained(network: Network) -> frozenset[str]:
    """Layers whose results depend on something learned."""
    trained: set[str] = set()
    for layer in network.layers:
        reads = network.reads(layer.name)
        if layer.parameters or any(link.producer in trained or LOOKUP in link.moves for link in reads):
            trained.add(layer.name)
    return frozenset(trained)
