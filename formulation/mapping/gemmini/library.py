"""What the loops of Gemmini's library can express, and the demands on a mapping that follow from it.

The library's loops over tiles stand in one order, every dimension is cut once outside the scratchpad, and
tiles of channels (of all dimensions in a product) are whole blocks of the array
(``include/gemmini.h`` of ucb-bar/gemmini-rocc-tests).
"""

from __future__ import annotations

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Role

MATRIX_ORDER = ("P", "K", "C")
CONVOLUTION_ORDER = ("N", "P", "Q", "K", "R", "S", "C")
"""The library's loops over tiles, outermost first."""


def is_product(operator: Operator) -> bool:
    """Whether the library's matrix product computes the layer."""
    bounds = {dim.like: dim.bound for dim in operator.dimensions}
    return all(bounds.get(like, 1) == 1 for like in "NGQRS")


def array_side(engine: Engine) -> int:
    """PEs along one side of a machine's array.

    Raises
    ------
    InputError : for an array that is not square
    """
    sizes = {axis.size for level in engine.levels if level.fanout is not None for axis in level.fanout.axes}
    if len(sizes) != 1:
        raise refused(f"{engine.name} has no square array")
    return sizes.pop()


def check_layer(operator: Operator) -> None:
    """Raise ``InputError`` for a layer that the library does not compute, with the reason."""
    if operator.kind not in ("conv2d", "gemm", "matmul"):
        raise refused(f"the library knows no layer of kind {operator.kind}")
    bounds = {dim.like: dim.bound for dim in operator.dimensions}
    if bounds.get("G", 1) > 1 or (operator.kind != "conv2d" and bounds.get("N", 1) > 1):
        raise refused("the library knows no groups and no batches of products")
    if operator.kind != "conv2d" or is_product(operator):
        return
    if bounds["R"] != bounds["S"]:
        raise refused("the library's filters are square")
    strides = {stride_of(operator, like) for like in "PQ"}
    if len(strides) != 1 or any(stride_of(operator, like) != 1 for like in "RS"):
        raise refused("the library knows one stride, and no dilation here")


def stride_of(operator: Operator, like: str) -> int:
    """Elements of the input by which a loop moves, by the dimension of a convolution that it is like."""
    names = {dim.like: dim.name for dim in operator.dimensions}
    (image,) = (tensor for tensor in operator.tensors if tensor.role is Role.INPUT)
    return next(t.stride for axis in image.axes for t in axis.terms if t.dim == names[like])


def block_dims(operator: Operator) -> str:
    """The dimensions whose tiles are whole blocks, by what they are like in a convolution."""
    return "PKC" if is_product(operator) else "KC"


def library_demands(operator: Operator, engine: Engine) -> tuple[str, ...]:
    """Lines of constraints that leave the mappings which the library's loops can express.

    Parameters
    ----------
    operator, engine : the layer and the machine, whose second level is the scratchpad

    Raises
    ------
    InputError : for a layer that the library does not compute, or an array that is not square
    """
    check_layer(operator)
    side = array_side(engine)
    names = {dim.like: dim.name for dim in operator.dimensions if dim.bound > 1}
    order = MATRIX_ORDER if is_product(operator) else CONVOLUTION_ORDER
    outer, scratchpad = engine.levels[0].name, engine.levels[1].name
    ordered = [names[like] for like in order if like in names]
    lines = [f"order@{outer}={','.join(ordered)}"] if ordered else []
    lines += [f"tile({names[like]}@{scratchpad})%{side}" for like in block_dims(operator) if like in names]
    return tuple(lines)


def refused(reason: str) -> InputError:
    """The error for what the library cannot express."""
    return InputError("gemmini", None, reason)
