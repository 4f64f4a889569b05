"""The channel-activation size ratio: how deep and how small what a layer reads is (Herald, table I)."""

from __future__ import annotations

import math

from tilewright.workloads.network import Layer, Network


def channel_activation_ratio(network: Network, layer: Layer) -> float:
    """Input channels over input rows.

    Rows that are not as many as columns count as the root of their product; a fully connected layer reads one
    row per sample, a product of sequences as many as there are tokens.

    Parameters
    ----------
    network : whose links determine the size of the input without padding
    layer : a layer that multiplies and accumulates

    Raises
    ------
    ValueError : for a layer that does not
    """
    operator = layer.operator
    if not operator.is_mac:
        raise ValueError(f"{layer.name} does not multiply and accumulate")
    bounds = operator.bounds
    data = operator.inputs[0]
    if operator.kind in ("gemm", "matmul") or len(data.axes) < 4:
        rows = bounds.get("M", network.batch) / (network.batch if "B" not in bounds else 1)
        return bounds.get("K", 1) / max(1.0, rows)
    channels = math.prod(axis.size for axis in data.axes[1:-2])
    linked = sum(link.elements for link in network.reads(layer.name) if link.operand == data.name)
    pixels = linked / (data.axes[0].size * channels) if linked else math.prod(a.size for a in data.axes[-2:])
    return channels / math.sqrt(pixels)
