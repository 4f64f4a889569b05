"""A network without the layers that nobody maps, where results pass through them element by element."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tilewright.workloads.alignment import passed_through
from tilewright.workloads.network import LINEAR, Layer, Link, Network


def without_passed(network: Network, kept: Collection[str]) -> Network:
    """The network without layers that work on one result element by element and are not kept.

    An activation or a softmax that is left out is applied in place: its reader reads the result before it,
    and the link says along which axes all elements are needed.  A layer that reads several results, such as a
    sum, cannot be applied in place; it stays.

    Parameters
    ----------
    network : with its links
    kept : names of layers that stay
    """
    chosen = frozenset(kept)
    arriving: dict[str, list[Link]] = {}
    passed: dict[str, Link] = {}
    links: list[Link] = []
    for layer in network.layers:
        own = [_resolved(network, link, passed) for link in network.reads(layer.name)]
        arriving[layer.name] = own
        if layer.name not in chosen and _is_passed(layer, own):
            passed[layer.name] = own[0]
        else:
            links += own
    outputs = {_origin(name, passed) for name in network.outputs}
    return Network(
        network.name,
        [layer for layer in network.layers if layer.name not in passed],
        links,
        batch=network.batch,
        outputs=outputs,
        tables=network.tables,
        left_out=network.left_out,
        every_layer=network.every_layer,
    )


def _resolved(network: Network, link: Link, passed: dict[str, Link]) -> Link:
    """The link from the last layer that stays."""
    if link.producer not in passed:
        return link
    earlier = passed[link.producer]
    assert earlier.producer is not None
    between = network.layer(link.producer)
    joined = passed_through(link, earlier, network.layer(earlier.producer).operator, between.rows)
    softmax = between.is_softmax and not earlier.rows
    if not between.rows:
        softmax = earlier.softmax and (
            not earlier.rows or LINEAR.issuperset((between.source, *between.fused))
        )
    moves = (*earlier.moves, between.source, *link.moves)
    return replace(joined, moves=moves, channel=None, softmax=softmax)


def _is_passed(layer: Layer, arriving: list[Link]) -> bool:
    """Whether a layer works element by element on one result of another layer."""
    if layer.operator.is_mac or layer.operator.kind != "elementwise" or not arriving:
        return False
    first = arriving[0]
    shape = tuple(axis.size for axis in layer.operator.output.axes)
    return (
        first.producer is not None
        and first.view is not None
        and first.view.shape == shape
        and len(arriving) == len(layer.operator.inputs)
        and all((link.producer, link.view) == (first.producer, first.view) for link in arriving)
    )


def _origin(name: str, passed: dict[str, Link]) -> str:
    """The layer whose result it is that a layer left out would have returned."""
    earlier = passed.get(name)
    return name if earlier is None or earlier.producer is None else earlier.producer
