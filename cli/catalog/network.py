"""``tilewright show`` on networks and workloads: tables, data, ONNX files, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.cli import models
from tilewright.cli.exits import Exit
from tilewright.cli.terminal.console import write
from tilewright.foundation.errors import InputError

if TYPE_CHECKING:
    from tilewright.workloads.onnx.options import OnnxOptions


def show_network_as(
    name: str,
    batch: int | None,
    form: str,
    onnx_file: Path | None,
    picture: Path | None,
    asked_onnx: OnnxOptions,
) -> int:
    """A network as data, as an ONNX file or as a picture; a workload as data.

    Parameters
    ----------
    name : name of a network or of a workload
    batch : samples; ``None`` for the network's own
    form : ``table`` or ``json``
    onnx_file : where to write the network as a model; not at all by default
    picture : where to draw the network; not at all by default
    asked_onnx : what the user says of an ONNX file
    """
    import json

    from tilewright.report.plots.network import plot_network
    from tilewright.report.records.network import network_data
    from tilewright.report.records.scheduling.workload import workload_data
    from tilewright.workloads.catalog import builtin_onnx
    from tilewright.workloads.onnx.file import write_onnx
    from tilewright.workloads.scheduling.workload_file import find_workload

    if onnx_file is not None:
        model = builtin_onnx(name, batch)
        write_onnx(model, onnx_file)
        write(f"{onnx_file}: {len(model.graph.node)} nodes, {onnx_file.stat().st_size:,} bytes\n")
        if picture is None and form == "table":
            return Exit.OK
    workload = find_workload(name)
    if workload is not None and picture is not None:
        raise InputError("--plot", None, "expected one network, not a workload of several")
    network = None if workload is not None else models.loaded(name, batch, asked_onnx).graph
    if network is not None and picture is not None:
        plot_network(network, picture)
        if form == "table":
            write(f"{picture}: {len(network)} layers\n")
    if form == "json":
        data = workload_data(workload) if workload is not None else network_data(network)  # type: ignore[arg-type]
        write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return Exit.OK
