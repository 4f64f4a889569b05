"""Networks from layers of a file that say which operands are results of others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.workloads.mapping.layer_reads import Reading
from tilewright.workloads.mapping.layer_text import NamedOperator
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.network import Layer, Link, Network
from tilewright.workloads.views import View


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
    links = [_link(read, operators[read.reader], operators[read.producer]) for read in reads]
    own = [op.bounds["N"] for _, op in layers if op.kind not in ("gemm", "matmul", "nest")]
    return Network(name, made, links, batch=batch or max(own, default=1))


def _link(read: Reading, reader: Operator, producer: Operator) -> Link:
    """The link of an operand, with the axes that the file says, and which element stands where."""
    turned = read.axes != tuple(range(len(read.axes)))
    return Link(
        read.producer,
        read.reader,
        read.operand,
        f"{read.producer}.{producer.output.name}",
        math.prod(axis.size for axis in producer.output.axes),
        channel=None if turned else 0,
        moves=("Transpose",) if turned else (),
        axes=read.axes,
        offsets=read.offsets,
        rows=read.rows,
        softmax=read.softmax,
        view=_view(read, reader, producer),
    )


def _view(read: Reading, reader: Operator, producer: Operator) -> View | None:
    """Which element of the result stands where in the operand; ``None`` for results made in strides."""
    view = View.of(producer.output)
    if view is None:
        return None
    view = view.transposed(read.axes)
    for place, (axis, start) in enumerate(zip(reader.tensor(read.operand).axes, read.offsets, strict=True)):
        if start + view.shape[place] > axis.size:  # a stride leaves the last elements unused
            part = view.sliced(place, 0, axis.size - start)
            if part is None:
                return None
            view = part
        view = view.placed(place, start, axis.size)
    return view
