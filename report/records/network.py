"""Networks as plain data and as tables for a terminal of 80 columns."""

from __future__ import annotations

import math
from typing import Any

from rich.table import Table

from tilewright.report.records.mapping.operator import shape_text
from tilewright.report.text.fitting import FittingTable
from tilewright.workloads.catalog import TRAINING
from tilewright.workloads.families import parameters_of
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Layer, Network

SHORT = {"conv2d": "conv", "transposed_conv2d": "tconv", "weight_update": "update"}
"""Kinds as layer texts write them."""


def touched_elements(operator: Operator) -> int:
    """Elements that the layer touches: every tensor once."""
    return sum(tensor.footprint(operator.bounds) for tensor in operator.tensors)


def layer_figures(layer: Layer) -> dict[str, Any]:
    """What a layer's line of a table holds.

    Returns
    -------
    ``activations`` are the elements of the result, ``intensity`` the multiply-accumulates per element where
    every tensor is moved once
    """
    operator = layer.operator
    return {
        "name": layer.name,
        "source": layer.source,
        "kind": operator.kind,
        "bounds": dict(operator.bounds),
        "macs": operator.macs,
        "parameters": layer.parameters,
        "activations": math.prod(axis.size for axis in operator.output.axes),
        "intensity": operator.macs / touched_elements(operator),
        "fused": list(layer.fused),
    }


def network_data(network: Network) -> dict[str, Any]:
    """A network: the parameters of its family if it has one, its layers, in order, and its totals."""
    layers = [layer_figures(layer) for layer in network.layers]
    macs = network.macs
    options = {
        parameter.name: parameter.value for parameter in parameters_of(network.name.removesuffix(TRAINING))
    }
    return {
        "model": network.name,
        "batch": network.batch,
        **({"options": options} if options else {}),
        "layers": layers,
        "totals": {
            "layers": len(network),
            "mac_layers": len(network.mac_layers),
            "distinct_mac_layers": len(network.distinct_layers(mac_only=True)),
            "macs": macs,
            "parameters": network.parameters,
            "activations": sum(layer["activations"] for layer in layers),
            "intensity": macs / sum(touched_elements(layer.operator) for layer in network.mac_layers)
            if network.mac_layers
            else 0.0,
        },
    }


def network_table(network: Network) -> Table:
    """One line per distinct layer, and the totals of all."""
    table = FittingTable(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("layer", overflow="fold")
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("operator", no_wrap=True, overflow="fold")
    for heading in ("MACs", "params", "results", "MAC/el"):
        table.add_column(heading, justify="right", no_wrap=True)
    for distinct in network.distinct_layers():
        operator, figures = distinct.layer.operator, layer_figures(distinct.layer)
        table.add_row(
            distinct.layer.name,
            str(distinct.count),
            f"{SHORT.get(operator.kind, operator.kind)} {shape_text(operator)}",
            *_numbers(figures, operator.is_mac),
        )
    totals = network_data(network)["totals"]
    table.add_section()
    table.add_row("total", str(len(network)), "", *_numbers(totals, bool(network.mac_layers)), style="bold")
    return table


def _numbers(figures: dict[str, Any], is_mac: bool) -> list[str]:
    return [
        _short(figures["macs"]) if is_mac else "-",
        _short(figures["parameters"]) if figures["parameters"] else "-",
        _short(figures["activations"]),
        _short(figures["intensity"]) if is_mac else "-",
    ]


def _short(number: float) -> str:
    """Three digits with an SI prefix, such as ``4.09G``; whole numbers below 1000 as they are."""
    if isinstance(number, int) and number < 1000:
        return str(number)
    rounded = float(f"{number:.3g}")
    power = min(5, max(0, math.floor(math.log10(rounded) / 3))) if rounded else 0
    size = rounded / 1000**power
    return f"{size:.{2 if size < 10 else 1 if size < 100 else 0}f}{' kMGTP'[power].strip()}"
