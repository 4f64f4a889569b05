"""``tilewright show`` on networks and workloads: tables, data, ONNX files, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import show, write
from tilewright.workloads.errors import InputError

if TYPE_CHECKING:
    from tilewright.workloads.mapping.operator import Operator
    from tilewright.workloads.network import Network
    from tilewright.workloads.scheduling.workload import Workload


def show_network(network: Network) -> int:
    """A network as a table of its distinct layers, a single layer as its loops."""
    from tilewright.report.records.network import network_table
    from tilewright.report.text.tables import head_text

    if len(network) == 1:
        return _show_operator(network.layers[0].name, network.layers[0].operator)
    title = head_text(
        network.name,
        f"batch {network.batch}",
        f"{len(network)} layers",
        f"{len(network.mac_layers)} of them multiply and accumulate",
    )
    note = "of one of n equal layers; results in elements; MACs per element moved once"
    show(title, note, "", network_table(network))
    return Exit.OK


def show_workload(workload: Workload) -> int:
    """A workload as a table of its networks."""
    from tilewright.report.records.scheduling.workload import workload_table
    from tilewright.report.text.tables import head_text

    show(head_text(workload.name), workload.description, "", workload_table(workload))
    return Exit.OK


def show_network_as(
    thing: str, batch: int | None, form: str, onnx_file: Path | None, picture: Path | None
) -> int:
    """A network as data, as an ONNX file or as a picture; a workload as data."""
    import json

    from tilewright.report.plots.network import plot_network
    from tilewright.report.records.network import network_data
    from tilewright.report.records.scheduling.workload import workload_data
    from tilewright.workloads.catalog import builtin_onnx, resolve_model
    from tilewright.workloads.onnx.file import write_onnx
    from tilewright.workloads.scheduling.workload_file import find_workload

    if onnx_file is not None:
        model = builtin_onnx(thing, batch)
        write_onnx(model, onnx_file)
        write(f"{onnx_file}: {len(model.graph.node)} nodes, {onnx_file.stat().st_size:,} bytes\n")
        if picture is None and form == "table":
            return Exit.OK
    workload = find_workload(thing)
    if workload is not None and picture is not None:
        raise InputError("--plot", None, "expected one network, not a workload of several")
    network = None if workload is not None else resolve_model(thing, batch)
    if network is not None and picture is not None:
        plot_network(network, picture)
        if form == "table":
            write(f"{picture}: {len(network)} layers\n")
    if form == "json":
        data = workload_data(workload) if workload is not None else network_data(network)  # type: ignore[arg-type]
        write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return Exit.OK


def _show_operator(name: str, operator: Operator) -> int:
    from tilewright.report.records.mapping.operator import index_text, statement_text
    from tilewright.report.text.quantities import count_text, si_text
    from tilewright.report.text.tables import head_text, plain_table

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
    show(title, statement_text(operator), "", loops, "", tensors)
    return Exit.OK
