"""Networks from layers of a file that say which operands are results of others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.workloads.mapping.layer_reads import Reading
from tilewright.workloads.mapping.layer_text import NamedOperator
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.network import Layer, Link, Network


def linked_network(
    name: str, layers: Sequence[NamedOperator], reads: Sequence[Reading], batch: int | None = None
) -> Network:
    """Layers and the links between them; operands that no layer makes come from outside.

    Parameters
    ----------
    name : of the network
    layers : names and operators
    reads : which operands are results of others
    batch : samples; by default as the layers say

    Raises
    ------
    InputError : where the layers read each other in a circle
    """
    made: list[Layer] = []
    for title, operator in layers:
        read = {link.operand for link in reads if link.reader == title}
        weights = [tensor.name for tensor in operator.tensors if tensor.role is Role.WEIGHT]
        stored = operator.kind != "matmul" and not read & set(weights)
        made.append(Layer(title, operator, operator.kind, stored_weights=stored))
    operators = dict(layers)
    links = [
        Link(
            read.producer,
            read.reader,
            read.operand,
            f"{read.producer}.{operators[read.producer].output.name}",
            math.prod(axis.size for axis in operators[read.producer].output.axes),
            axes=read.axes,
            offsets=read.offsets,
            rows=read.rows,
            softmax=read.softmax,
        )
        for read in reads
    ]
    own = [op.bounds["N"] for _, op in layers if op.kind not in ("gemm", "matmul", "nest")]
    return Network(name, made, links, batch=batch or max(own, default=1))
