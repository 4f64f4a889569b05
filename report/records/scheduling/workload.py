"""Workloads of several networks as plain data and as tables for a terminal of 80 columns."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from tilewright.report.text.quantities import si_text
from tilewright.report.text.tables import plain_table
from tilewright.workloads.scheduling.workload import Workload


def workload_data(workload: Workload) -> dict[str, Any]:
    """A workload: its networks and their totals."""
    return {
        "workload": workload.name,
        "description": workload.description,
        "networks": [
            {
                "name": part.name,
                "model": part.network.name,
                "batch": part.network.batch,
                "batches": part.batches,
                "mac_layers": len(part.network.mac_layers),
                "layers": len(part.network),
                "macs": part.network.macs,
                "parameters": part.network.parameters,
            }
            for part in workload.parts
        ],
        "totals": {
            "runs": sum(part.batches for part in workload.parts),
            "mac_layers": workload.layer_count(),
            "layers": workload.layer_count(mac_only=False),
            "macs": workload.macs,
            "parameters": workload.parameters,
        },
    }


def workload_table(workload: Workload) -> Table:
    """One line per network, and the totals of all runs."""
    table = plain_table(
        [
            ("network", "left"),
            ("batch", "right"),
            ("runs", "right"),
            ("MAC layers", "right"),
            ("MACs", "right"),
            ("parameters", "right"),
        ]
    )
    for part in workload.parts:
        network = part.network
        table.add_row(
            part.name,
            str(network.batch),
            str(part.batches),
            str(len(network.mac_layers)),
            si_text(network.macs),
            si_text(network.parameters),
        )
    totals = workload_data(workload)["totals"]
    table.add_section()
    table.add_row(
        "all runs",
        "",
        str(totals["runs"]),
        str(totals["mac_layers"]),
        si_text(totals["macs"]),
        si_text(totals["parameters"]),
        style="bold",
    )
    return table
