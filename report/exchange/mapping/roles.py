"""What dimensions and tensors of other programs are to a machine: loops of a convolution, roles."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence

from tilewright.workloads.mapping.einsum import WEIGHT_NAMES
from tilewright.workloads.mapping.operator import Operator, Role

Axes = Sequence[Sequence[str]]
"""Of a tensor, the dimensions of every axis."""

ROLE_NAMES = {"inputs": Role.INPUT, "input": Role.INPUT, "weights": Role.WEIGHT, "weight": Role.WEIGHT}
ROLE_NAMES |= {"outputs": Role.OUTPUT, "output": Role.OUTPUT}
ROLE_NAMES |= {"i": Role.INPUT, "w": Role.WEIGHT, "o": Role.OUTPUT}
"""What other programs call tensors, in small letters."""

CONVOLUTION = {letter: letter for letter in "NGKCPQRS"} | {"M": "K"}
"""Dimensions of Timeloop's convolutions, as loops of this project's."""

_ACROSS = {"P": "R", "Q": "S"}


def likes(dims: Sequence[str], weights: Axes, inputs: Axes, outputs: Axes) -> dict[str, str]:
    """As which loop of a convolution each dimension counts, from the tensors that it is an index of.

    A dimension keeps its own name where that is possible, ``M`` counts as ``K``.  An index of weights and
    outputs counts as ``K``, of weights and inputs as ``C`` (``R`` and ``S`` where it moves along one axis
    with an output's row or column), of inputs and outputs as ``P``, ``Q`` or ``N``, of all three as ``G``.

    Parameters
    ----------
    dims : names of the other program's dimensions
    weights, inputs, outputs : of the tensor in this role, the dimensions of every axis
    """
    used = {dim: (_touches(weights, dim), _touches(inputs, dim), _touches(outputs, dim)) for dim in dims}
    likes_of: dict[str, str] = {}
    for dim, place in sorted(used.items(), key=lambda item: (item[1] == (True, True, False), item[0])):
        options = {
            (True, False, True): "K",
            (True, True, False): "CRS",
            (False, True, True): "PQN",
            (True, True, True): "G",
        }.get(place, "NPQKC")
        if place == (True, True, False):
            summed_with = {
                likes_of.get(other) for axis in inputs if dim in axis for other in axis if other != dim
            }
            options = "".join(_ACROSS[option] for option in ("P", "Q") if option in summed_with) or "C"
        own = CONVOLUTION.get(dim, "")
        left = [letter for letter in options if letter not in likes_of.values()] or list(options)
        likes_of[dim] = own if own and own in options else left[0]
    return {dim: likes_of[dim] for dim in dims}


def _touches(axes: Axes, dim: str) -> bool:
    return any(dim in axis for axis in axes)


def operand_order(names: Sequence[str]) -> str | None:
    """The operand that a line of index notation takes for the weights; ``None`` where there is but one."""
    for name in names:
        if name.casefold() in WEIGHT_NAMES:
            return name
    return names[1] if len(names) > 1 else None


def roles_of(name: str, operator: Operator | None) -> frozenset[Role] | None:
    """The roles that a tensor's name stands for in a machine's rules; ``None`` for an unknown name."""
    if name.lower() in ("all", "all tensors"):
        return frozenset(Role)
    if operator is not None:
        for tensor in operator.tensors:
            if tensor.name == name:
                return frozenset([tensor.role])
    role = ROLE_NAMES.get(name.lower())
    return None if role is None else frozenset([role])


def like_of(dim: str, operator: Operator | None) -> str | None:
    """The loop of a convolution that a dimension counts as: the layer's word, else that of its name."""
    if operator is not None:
        named: MappingABC[str, str] = {dimension.name: dimension.like for dimension in operator.dimensions}
        return named.get(dim)
    return CONVOLUTION.get(dim)
