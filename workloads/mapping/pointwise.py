"""Builders of operators that pass over tensors once: element-wise combinations and reductions.

Axes are named after a convolution output's: one axis is ``K``, two are ``N K``, three ``N P K`` (samples,
tokens, features), four ``N K P Q``, five ``N G K P Q``; further leading axes are ``D0``, ``D1``, ...
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Operator, Role, Tensor
from tilewright.workloads.mapping.windows import axes, check_positive, dimensions

AXES = ("K", "K", "NK", "NPK", "NKPQ", "NGKPQ")


def elementwise(*, shape: Sequence[int], operands: int | Sequence[Sequence[int]] = 2) -> Operator:
    """Element-wise combination of any number of tensors, such as a residual sum.

    Parameters
    ----------
    shape : axes of the result
    operands : how many operands of that shape, or the shape of each; an axis that is missing (on the left)
        or 1 broadcasts, and the operand then does not depend on that loop

    Returns
    -------
    An operator of kind ``elementwise`` with inputs ``I`` (or ``I0``, ``I1``, ... of several) and output ``O``

    Raises
    ------
    InputError : for a size below 1, no operands, or a shape that does not broadcast to the result's
    """
    where = "elementwise"
    bounds = _bounds(where, shape)
    shapes = (
        [tuple(shape)] * operands
        if isinstance(operands, int)
        else [tuple(operand_shape) for operand_shape in operands]
    )
    if not shapes:
        raise InputError(where, "operands", "expected at least 1, got 0")
    names = list(bounds)
    tensors = []
    for i, operand in enumerate(shapes):
        own = names[len(names) - len(operand) :] if operand else []
        if len(operand) > len(names) or any(
            size not in (1, bounds[name]) for name, size in zip(own, operand, strict=True)
        ):
            raise InputError(where, "operands", f"{list(operand)} does not broadcast to {list(shape)}")
        kept = [name for name, size in zip(own, operand, strict=True) if size == bounds[name]]
        tensors.append(Tensor("I" if len(shapes) == 1 else f"I{i}", Role.INPUT, axes(bounds, kept)))
    output = Tensor("O", Role.OUTPUT, axes(bounds, names))
    return Operator("elementwise", dimensions(bounds, _like(names)), (*tensors, output), is_mac=False)


def reduction(*, shape: Sequence[int], over: Collection[int]) -> Operator:
    """Sum, mean or maximum of a tensor over some of its axes, of kind ``pool``.

    Parameters
    ----------
    shape : axes of the input
    over : positions of the axes that disappear; negative ones count from the end

    Raises
    ------
    InputError : for a size below 1 or a position outside the shape
    """
    where = "reduction"
    bounds = _bounds(where, shape)
    names = list(bounds)
    for position in over:
        if not -len(names) <= position < len(names):
            raise InputError(where, "axes", f"axis {position} of a tensor with {len(names)} axes")
    gone = {names[position] for position in over}
    tensors = (
        Tensor("I", Role.INPUT, axes(bounds, names)),
        Tensor("O", Role.OUTPUT, axes(bounds, [name for name in names if name not in gone])),
    )
    return Operator("pool", dimensions(bounds, _like(names)), tensors, is_mac=False)


def _bounds(where: str, shape: Sequence[int]) -> dict[str, int]:
    extra = max(0, len(shape) - len(AXES) + 1)
    names = [f"D{i}" for i in range(extra)] + list(AXES[len(shape) - extra])
    sizes = tuple(shape) or (1,)
    bounds = dict(zip(names, sizes, strict=True))
    check_positive(where, bounds)
    return bounds


def _like(names: Sequence[str]) -> dict[str, str]:
    return {name: "N" for name in names if name.startswith("D")}
