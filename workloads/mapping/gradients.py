"""Operators of training: the gradient of a layer with respect to one of its operands.

The gradients of a multiply-accumulate nest ``O += I * W`` are the same nest, ``I' += O' * W`` and
``W' += O' * I``: the same loops, the same projections, and another tensor as the result (KAPLA, section II-A,
models backward layers like forward ones with other layouts).  Strides, dilations and groups need nothing
more: behind a strided convolution the result of ``I'`` has the compound index ``P * stride + R * dilation``,
which is a transposed convolution.

What changes is which convolution loop each loop corresponds to, for machines whose dataflow is in these
terms: in ``I'`` output channels are summed over, in ``W'`` samples and positions are.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright.workloads.mapping.operator import Axis, Dimension, Operator, Role, Tensor, Term

ERROR_LIKE = {"K": "C", "C": "K"}
"""Error propagation: the channels change places."""
UPDATE_LIKE = {"N": "C", "C": "N", "P": "R", "R": "P", "Q": "S", "S": "Q"}
"""Weight update of a convolution: itself one, in which samples are input channels, positions are taps, input
channels are samples, and taps are positions."""
MATRIX_UPDATE_LIKE = {"P": "C", "C": "P"}
"""Weight update of a product: rows are summed over."""


def gradient(operator: Operator, operand: str, elements: int | None = None) -> Operator:
    """The nest that computes the gradient of one operand from that of the result.

    Loops keep their names; a gradient is named after its tensor with ``d`` before it.  In error propagation
    the gradient that arrives is the input and the other operand keeps its role; in a weight update the
    forward input stays the input and the gradient that arrives takes the place of the weights.

    Parameters
    ----------
    operator : the forward layer
    operand : the input whose gradient is wanted
    elements : how many elements the operand has without padding, where known

    Returns
    -------
    An operator over the same loops, or (for error propagation through a convolution that keeps the number of
    rows and columns) the same work in gather form, see `gathered`.  Its kind is that of its form, or
    ``weight_update`` where a convolution's weights are the result
    """
    target = operator.tensor(operand)
    is_weight = target.role is Role.WEIGHT
    gathering = None if is_weight else gathered(operator, elements)
    if gathering is not None:
        return gathering
    others = [tensor for tensor in operator.inputs if tensor.name != operand]
    arriving = replace(operator.output, name=f"d{operator.output.name}", role=Role.INPUT)
    operands = (*others, replace(arriving, role=Role.WEIGHT)) if is_weight else (arriving, *others)
    result = replace(target, name=f"d{operand}", role=Role.OUTPUT)
    like = _likes(operator, is_weight)
    loops = tuple(
        replace(dimension, like=like.get(dimension.like, dimension.like)) for dimension in operator.dimensions
    )
    return Operator(_kind(operator, is_weight), loops, (*operands, result), operator.is_mac)


def _likes(operator: Operator, is_weight: bool) -> dict[str, str]:
    """The loops that stand for another convolution loop in the gradient."""
    if not operator.is_mac:
        return {}
    if not is_weight:
        return ERROR_LIKE
    return MATRIX_UPDATE_LIKE if operator.kind in ("gemm", "matmul") else UPDATE_LIKE


def _kind(operator: Operator, is_weight: bool) -> str:
    """What the gradient's nest is."""
    if operator.kind in ("gemm", "matmul") or not operator.is_mac:
        return operator.kind
    if is_weight:
        return "weight_update"
    return {"conv2d": "transposed_conv2d", "transposed_conv2d": "conv2d"}.get(operator.kind, operator.kind)


def gathered(operator: Operator, elements: int | None) -> Operator | None:
    """Error propagation through a convolution in gather form: a convolution with turned filters.

    ``I'[h] += O'[h + pad - r * dilation] * W[r]`` for every row of the input.  Filters are read from the
    other end, and ``O'`` is surrounded by ``(R - 1) * dilation`` rows of zeros in all.  Used where it has as
    many multiply-accumulates as the scatter form, that is for convolutions without a stride whose padding
    keeps the number of rows and columns: inputs are then read several times, where the scatter form would
    write (and read again) partial sums several times.

    Returns
    -------
    The operator; nothing where the forward layer is no such convolution
    """
    bounds = operator.bounds
    if operator.kind not in ("conv2d", "depthwise"):
        return None
    image = operator.tensor("I")
    outer = math.prod(axis.size for axis in image.axes[:-2])
    if elements != outer * bounds["P"] * bounds["Q"]:
        return None
    turned: list[Axis] = []
    for axis, (place, tap) in zip(image.axes[-2:], (("P", "R"), ("Q", "S")), strict=True):
        steps = {term.dim: term.stride for term in axis.terms}
        if steps[place] != 1 or axis.size != axis.extent(bounds):
            return None
        reach = (bounds[tap] - 1) * steps[tap]
        turned.append(Axis((Term(place, 1), Term(tap, steps[tap])), bounds[place] + reach))
    output = operator.output
    arriving = Tensor("dO", Role.INPUT, (*output.axes[:-2], *turned))
    plain = tuple(Axis((Term(dim),), bounds[dim]) for dim in ("P", "Q"))
    result = Tensor("dI", Role.OUTPUT, (*image.axes[:-2], *plain))
    dimensions = tuple(
        Dimension(dimension.name, dimension.bound, ERROR_LIKE.get(dimension.like, dimension.like))
        for dimension in operator.dimensions
    )
    return Operator(operator.kind, dimensions, (arriving, operator.tensor("W"), result))
