"""What is tiled: the layers of a network, element-wise ones fused into the layer before where asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Layer, Link, Network
from tilewright.workloads.views import View


@dataclass(frozen=True)
class Read:
    """One operand of a unit.

    Parameters
    ----------
    layer, operand : whose operand it is (of the main layer or of one fused into it)
    link : where it comes from; ``None`` for an operand that is read from DRAM without a link
    producer : the unit that makes it; ``None`` for DRAM
    late : whether only the finished sum meets it, as an operand of a fused layer
    """

    layer: Layer
    operand: str
    link: Link | None
    producer: int | None
    late: bool

    @property
    def source(self) -> int | str:
        """The unit that makes it, or the name of the tensor that comes from outside of the network."""
        if self.producer is not None:
            return self.producer
        return self.link.tensor if self.link is not None else f"{self.layer.name}.{self.operand}"

    @property
    def way(self) -> tuple[object, ...] | None:
        """How the operand lies along its source: all that differs between links of equal layers."""
        link = self.link
        return None if link is None else (link.channel, link.moves, link.rows, link.view)


@dataclass(frozen=True)
class Unit:
    """A layer that is cut into atoms, with the element-wise layers that ride on its results.

    Parameters
    ----------
    layer : the main layer
    fused : element-wise layers done on each result on its way out
    reads : operands other than stored weights
    is_output : whether the results leave the network
    """

    layer: Layer
    fused: tuple[Layer, ...]
    reads: tuple[Read, ...]
    is_output: bool

    @property
    def name(self) -> str:
        return self.layer.name

    def maker(self, link: Link | None) -> Operator:
        """The operator whose result a link carries: the main layer's, or of one that rides on it."""
        name = None if link is None else link.producer
        return next((layer for layer in self.fused if layer.name == name), self.layer).operator


def units_of(network: Network, *, fuse: bool = True) -> tuple[Unit, ...]:
    """The units of a network of batch 1, in a topological order.

    Parameters
    ----------
    fuse : do element-wise layers on the way out of the layer that they follow, where nobody else reads that
        layer and the shapes agree; otherwise each is a unit

    Raises
    ------
    InputError : for a network that was built for several samples; the samples are atoms' own
    """
    if network.batch != 1:
        raise InputError(network.name, "batch", f"expected a network of batch 1, got {network.batch}")
    host: dict[str, str] = {}
    riders: dict[str, list[str]] = {layer.name: [] for layer in network.layers}
    position = {layer.name: i for i, layer in enumerate(network.layers)}
    readers: dict[str | None, set[str]] = {}
    for link in network.links:
        readers.setdefault(link.producer, set()).add(link.consumer)
    for layer in network.layers if fuse else ():
        if layer.operator.kind != "elementwise":
            continue
        links = [link for link in network.reads(layer.name) if link.producer is not None]
        tails = [
            link for link in links if len(readers[link.producer]) == 1 and _may_host(network, layer, link)
        ]
        if not tails:
            continue
        chosen = max(tails, key=lambda link: position[host.get(str(link.producer), str(link.producer))])
        root = host.get(str(chosen.producer), str(chosen.producer))
        if any(position[host.get(str(o.producer), str(o.producer))] > position[root] for o in links):
            continue
        host[layer.name] = root
        riders[root].append(layer.name)
    mains = [layer for layer in network.layers if layer.name not in host]
    index = {layer.name: i for i, layer in enumerate(mains)}
    units = []
    for layer in mains:
        fused = tuple(network.layer(name) for name in riders[layer.name])
        inside = {layer.name, *riders[layer.name]}
        reads: list[Read] = []
        for member in (layer, *fused):
            linked = network.reads(member.name)
            for link in linked:
                if link.producer in inside:
                    continue
                made = None if link.producer is None else index[host.get(link.producer, link.producer)]
                reads.append(Read(member, link.operand, _viewed(network, link), made, member is not layer))
            for tensor in member.operator.inputs:
                stored = tensor.role.value == "weights" and member.stored_weights
                if not stored and not any(link.operand == tensor.name for link in linked):
                    reads.append(Read(member, tensor.name, None, None, member is not layer))
        units.append(Unit(layer, fused, tuple(reads), bool(inside & network.outputs)))
    return tuple(units)


def _viewed(network: Network, link: Link) -> Link:
    """A link with the view that follows where nothing but reshaping lies between.

    Without it axes would be told by the kinds of their loops alone, by which columns of a product lie along
    channels, and those of a softmax do not.
    """
    if link.view is not None or link.producer is None or not _RESHAPING.issuperset(link.moves):
        return link
    view = View.of(network.layer(link.producer).operator.output)
    sizes = [axis.size for axis in network.layer(link.consumer).operator.tensor(link.operand).axes]
    if view is None or math.prod(sizes) != math.prod(view.shape):
        return link
    return replace(link, view=view.reshaped(sizes))


_RESHAPING = frozenset(("Flatten", "Reshape"))


def _may_host(network: Network, layer: Layer, link: Link) -> bool:
    """Whether a layer may ride on the layer that makes this operand, which nobody else reads."""
    producer = str(link.producer)
    if producer in network.outputs:
        return False
    same = shape_of(network.layer(producer).operator).sizes == shape_of(layer.operator).sizes
    return same and not link.moves and link.channel == 0
