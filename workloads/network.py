"""Networks: directed acyclic graphs of layers, with the tensors that flow between them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.views import View

if TYPE_CHECKING:
    import networkx as nx


LINEAR = frozenset(("Cast", "Dropout", "Identity"))
"""Operations behind a softmax after which its rows are still proportional to exponentials."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A learned tensor; where layers share one, it has the same name in each."""

    name: str
    elements: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One operator at one place of a network.

    Parameters
    ----------
    name : unique in its network
    operator : what it computes
    source : the operation it was made from, such as the ONNX operation ``Conv`` or the kind of a layer text
    fused : operations applied to each result on its way out, in order (activation, normalisation)
    nodes : names of the source's nodes that the layer covers, its own and the fused ones
    stored_weights : whether the weight tensor is a parameter, rather than another layer's result
    learned : its parameters where they are known in full: weights, biases, and the scales and shifts of
        fused normalisation; ``None`` for the operator's weight tensors alone
    rows : axes of the result along which every element needs all others, as in softmax and normalisation
    """

    name: str
    operator: Operator
    source: str
    fused: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    stored_weights: bool = True
    learned: tuple[Parameter, ...] | None = None
    rows: tuple[int, ...] = ()

    @property
    def is_softmax(self) -> bool:
        """Whether it is a softmax along one axis, whose result nothing changes but its scale or its type."""
        return self.source == "Softmax" and len(self.rows) == 1 and LINEAR.issuperset(self.fused)

    @property
    def parameters(self) -> int:
        """Elements of all parameters."""
        if self.learned is not None:
            return sum(parameter.elements for parameter in self.learned)
        if not self.stored_weights:
            return 0
        weights = (tensor for tensor in self.operator.tensors if tensor.role is Role.WEIGHT)
        return sum(math.prod(axis.size for axis in tensor.axes) for tensor in weights)


@dataclass(frozen=True, slots=True)
class Link:
    """A tensor on its way from where it is made to one operand of one layer.

    Parameters
    ----------
    producer : the layer that makes it; ``None`` for an input of the network
    consumer, operand : the layer that reads it, and as which of its operator's tensors
    tensor : the tensor's name in the source
    elements : how many of its elements the consumer reads (an upper bound behind a slice)
    channel : the first channel of the operand that the tensor fills, 0 unless it was concatenated with
        others; ``None`` where reshaping, transposing or slicing lies between
    moves : data movement on the way, in order, such as ``("Transpose", "Concat")``
    axes : per axis of the operand, the axis of the producer's result that it is; ``None`` where that is not
        known, or where the operand is not the whole result, element by element
    offsets : with ``axes``, per axis of the operand, elements of padding before the result's first one
    rows : axes of the operand along which a layer in between, which is passed through, needs all elements
    softmax : whether that layer is a softmax, where there are rows
    view : which element of the result stands where in the operand, where that is known
    unknown : why ``axes`` are not known
    """

    producer: str | None
    consumer: str
    operand: str
    tensor: str
    elements: int
    channel: int | None = 0
    moves: tuple[str, ...] = ()
    axes: tuple[int, ...] | None = None
    offsets: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    softmax: bool = True
    view: View | None = field(default=None, compare=False)
    unknown: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class DistinctLayer:
    """Layers of a network that compute the same thing.

    Parameters
    ----------
    layer : the first of them
    count : how many they are
    names : all their names, in the network's order
    """

    layer: Layer
    count: int
    names: tuple[str, ...]


class Network:
    """Layers in a topological order, and the links between them.

    Parameters
    ----------
    name : for tables and results
    layers : in any order; where the links leave a choice, this order is kept
    links : tensors read by the layers; an operand without links is read from memory
    batch : samples that the operators' bounds stand for
    outputs : layers whose results leave the network; by default those that nobody reads
    tables : parameters that no layer computes with, such as a table of word vectors
    left_out : what of its source is missing, each with its reason
    every_layer : whether layers that multiply nothing are searched as the others are, without being asked for

    Raises
    ------
    InputError : for no layers, a repeated name, a link to an unknown layer or operand, or a cycle
    """

    def __init__(
        self,
        name: str,
        layers: Iterable[Layer],
        links: Iterable[Link] = (),
        *,
        batch: int = 1,
        outputs: Iterable[str] | None = None,
        tables: Iterable[Parameter] = (),
        left_out: Iterable[str] = (),
        every_layer: bool = False,
    ) -> None:
        self.name = name
        self.batch = batch
        self.tables = tuple(tables)
        self.left_out = tuple(left_out)
        self.every_layer = every_layer
        self.links = tuple(links)
        self._reads: dict[str, list[Link]] = {}
        self._named: dict[str, Layer] = {}
        for layer in layers:
            if layer.name in self._named:
                raise InputError(name, layer.name, "two layers have this name")
            self._named[layer.name] = layer
        if not self._named:
            raise InputError(name, None, "expected at least one layer")
        for link in self.links:
            _check_link(name, self._named, link)
            self._reads.setdefault(link.consumer, []).append(link)
        self.layers = self._ordered()
        leaving = set(self._named if outputs is None else outputs)
        if outputs is None:
            leaving -= {link.producer for link in self.links if link.producer is not None}
        unknown = leaving - set(self._named)
        if unknown:
            raise InputError(name, min(unknown), "an output that is no layer")
        self.outputs = frozenset(leaving)

    def __repr__(self) -> str:
        return f"Network({self.name!r}, {len(self)} layers, batch {self.batch}, {self.macs} MACs)"

    def __len__(self) -> int:
        return len(self.layers)

    @cached_property
    def graph(self) -> nx.DiGraph[str]:
        """Frozen graph over layer names.

        A node carries ``layer``, an edge carries ``links`` (a tuple of `Link`) and ``elements`` (their sum).
        """
        import networkx as nx  # large, and single layers need none of it

        graph: nx.DiGraph[str] = nx.DiGraph()
        for name, layer in self._named.items():
            graph.add_node(name, layer=layer)
        for link in self.links:
            if link.producer is not None:
                between = (graph.get_edge_data(link.producer, link.consumer) or {"links": ()})["links"]
                both = (*between, link)
                elements = sum(tensor.elements for tensor in both)
                graph.add_edge(link.producer, link.consumer, links=both, elements=elements)
        frozen: nx.DiGraph[str] = nx.freeze(graph)
        return frozen

    def _ordered(self) -> tuple[Layer, ...]:
        """Layers with producers before consumers, otherwise in the order in which they were given."""
        position = {layer: i for i, layer in enumerate(self._named)}
        edges = ((link.producer, link.consumer) for link in self.links if link.producer is not None)
        if all(position[producer] < position[consumer] for producer, consumer in edges):
            return tuple(self._named.values())
        import networkx as nx

        if not nx.is_directed_acyclic_graph(self.graph):
            raise InputError(self.name, None, "the layers form a cycle")
        order = nx.lexicographical_topological_sort(self.graph, key=position.__getitem__)
        return tuple(self._named[layer] for layer in order)

    def layer(self, name: str) -> Layer:
        """The layer of that name; raises ``KeyError``."""
        return self._named[name]

    def reads(self, consumer: str) -> tuple[Link, ...]:
        """Everything that a layer reads from other layers and from the network's inputs."""
        return tuple(self._reads.get(consumer, ()))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole batch."""
        return sum(layer.operator.macs for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Elements of all parameters, those that layers share counted once."""
        shared = {parameter.name: parameter.elements for parameter in self.tables}
        for layer in self.layers:
            shared.update((parameter.name, parameter.elements) for parameter in layer.learned or ())
        return sum(shared.values()) + sum(layer.parameters for layer in self.layers if layer.learned is None)

    @property
    def mac_layers(self) -> tuple[Layer, ...]:
        """The layers that multiply and accumulate, in order."""
        return tuple(layer for layer in self.layers if layer.operator.is_mac)

    @property
    def stated_widths(self) -> tuple[tuple[int | None, ...], ...]:
        """Per layer the bits of elements and sums of its tensors; empty where no layer states any."""
        if not any(layer.operator.states_widths for layer in self.layers):
            return ()
        return tuple(
            tuple(bits for tensor in layer.operator.tensors for bits in (tensor.bits, tensor.sum_bits))
            for layer in self.layers
        )

    def expect_machine_widths(self, what: str) -> None:
        """Raise ``InputError`` where a layer states the widths of its elements.

        Parameters
        ----------
        what : what knows the machine's widths only, such as ``tiled machines``
        """
        if self.stated_widths:
            message = f"{what} know no widths of a model, expected widths=machine"
            raise InputError(self.name, "widths", message)

    def distinct_layers(self, *, mac_only: bool = False) -> tuple[DistinctLayer, ...]:
        """Layers with equal operators taken together, in the order of their first appearance.

        Parameters
        ----------
        mac_only : leave out pooling and element-wise layers
        """
        groups: dict[Operator, list[Layer]] = {}
        for layer in self.mac_layers if mac_only else self.layers:
            groups.setdefault(layer.operator, []).append(layer)
        return tuple(
            DistinctLayer(same[0], len(same), tuple(layer.name for layer in same)) for same in groups.values()
        )


def _check_link(name: str, layers: dict[str, Layer], link: Link) -> None:
    for layer in (link.producer, link.consumer):
        if layer is not None and layer not in layers:
            raise InputError(name, link.tensor, f"links the unknown layer {layer}")
    operands = [tensor.name for tensor in layers[link.consumer].operator.inputs]
    if link.operand not in operands:
        raise InputError(name, link.consumer, f"has no operand {link.operand}, expected one of {operands}")
