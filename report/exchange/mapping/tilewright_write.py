"""What was read, as files of this project: a machine, layers, constraints, mappings."""

from __future__ import annotations

from typing import Any

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.mapping.machine_text import yaml_text
from tilewright.report.exchange.outputs import Output
from tilewright.report.records.mapping.mapping_file import render_mapping
from tilewright.report.records.mapping.operator import AxisRecord, OperatorRecord
from tilewright.workloads.mapping.operator import Operator

PEER = "tilewright"


def write(bundle: Bundle) -> list[Output]:
    """A file for each thing that was read; layers and constraints also stand in the file of a mapping."""
    outputs: list[Output] = []
    if bundle.machine is not None:
        outputs.append(Output("machine", "machine.yaml", yaml_text(bundle.machine)))
    if bundle.layers and not bundle.mappings and not bundle.layers_given:
        entries = [{"name": name, "kind": "nest", "text": nest_text(item)} for name, item in bundle.layers]
        outputs.append(Output("layers", "layers.yaml", yaml_text(entries)))
    if bundle.constraints:
        outputs.append(
            Output("constraints", "constraints.txt", "".join(f"{item}\n" for item in bundle.constraints))
        )
    for stored in bundle.mappings:
        prefix = f"{stored.name}." if len(bundle.mappings) > 1 else ""
        outputs.append(Output("mapping", f"{prefix}mapping.yaml", render_mapping(stored)))
    return outputs


def nest_text(operator: Operator) -> str:
    """A line of index notation that gives the operator."""
    record = OperatorRecord.of(operator)

    def index(axis: AxisRecord) -> str:
        return "+".join(term.dim if term.stride == 1 else f"{term.stride}*{term.dim}" for term in axis.terms)

    texts: list[Any] = [
        f"{tensor.name}[{','.join(index(axis) for axis in tensor.axes)}]" for tensor in record.tensors
    ]
    bounds = ", ".join(
        f"{dimension.name}={dimension.bound} as {dimension.like}" for dimension in operator.dimensions
    )
    sign = "+=" if operator.is_mac or operator.reduction_dims else "="
    return f"{texts[-1]} {sign} {' * '.join(texts[:-1])} : {bounds}"
