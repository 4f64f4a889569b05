"""Networks and operators as tables."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from tilewright.report.records.mapping.operator import index_text, statement_text
from tilewright.report.records.network import network_table
from tilewright.report.text.quantities import count_text, si_text
from tilewright.report.text.tables import head_text, plain_table
from tilewright.workloads.catalog import TRAINING
from tilewright.workloads.families import parameters_of
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network


def network_views(network: Network) -> list[RenderableType]:
    """A network as a table of its distinct layers, a single layer as its loops."""
    if len(network) == 1:
        return operator_views(network.layers[0].name, network.layers[0].operator)
    title = head_text(
        network.name,
        f"batch {network.batch}",
        f"{len(network)} layers",
        f"{len(network.mac_layers)} of them multiply and accumulate",
    )
    note = "of one of n equal layers; results in elements; MACs per element moved once"
    return [title, *_parameters(network), note, "", network_table(network)]


def _parameters(network: Network) -> list[RenderableType]:
    """The parameters of a network's family: their values, and what they mean; nothing for other networks."""
    parameters = parameters_of(network.name.removesuffix(TRAINING))
    if not parameters:
        return []
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for parameter in parameters:
        default = "" if parameter.value == parameter.default else f"; default {parameter.default}"
        table.add_row(f"{parameter.name}={parameter.value}", f"{parameter.about}{default}")
    return ["", table, ""]


def operator_views(name: str, operator: Operator) -> list[RenderableType]:
    """An operator's statement, its loops and its tensors."""
    loops = plain_table([("loop", "left"), ("bound", "right"), ("like", "left"), ("used by", "left")])
    for dimension in operator.dimensions:
        users = " ".join(tensor.name for tensor in operator.tensors if dimension.name in tensor.dims)
        loops.add_row(dimension.name, str(dimension.bound), dimension.like, users)
    tensors = plain_table(
        [
            ("tensor", "left"),
            ("role", "left"),
            ("elements", "right"),
            ("touched", "right"),
            ("reuse", "right"),
        ]
    )
    for tensor in operator.tensors:
        size = 1
        for axis in tensor.axes:
            size *= axis.size
        touched = tensor.footprint(operator.bounds)
        reuse = si_text(operator.iterations / touched)
        tensors.add_row(index_text(tensor), tensor.role.value, count_text(size), count_text(touched), reuse)
    what = "MACs" if operator.is_mac else "operations"
    title = head_text(name, operator.kind, f"{count_text(operator.iterations)} {what}")
    return [title, statement_text(operator), "", loops, "", tensors]
