"""AccelForge's chains of einsums in one line each, ``QK: S[h,m,p] += Q[h,m,e] * K[h,p,e]``, as a network.

Tensors of one name are one tensor, so an einsum reads the result of another by its name.  Of an einsum's
operands the last one that no einsum makes stands for the weights, as in AccelForge's default renaming.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import replace

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.network import Layer, Link, Network

_EINSUM = re.compile(r"\s*(?P<name>\w+)\s*:\s*(?P<rest>\w+\s*\[.*\S)\s*")


def einsum_network(name: str, einsums: Sequence[str], bounds: MappingABC[str, int]) -> Network:
    """A chain of einsums as layers that are linked by their tensors.

    Parameters
    ----------
    name : of the network, and what errors call it
    einsums : a line each, in the order in which they run
    bounds : iterations by rank variable

    Raises
    ------
    InputError : for a line that is no einsum, a tensor that two einsums make, and an unknown rank variable
    """
    lines: dict[str, str] = {}
    for index, line in enumerate(einsums):
        match = _EINSUM.fullmatch(line)
        if match is None or match["name"] in lines:
            raise InputError(
                name, f"einsums[{index}]", f"expected NAME: RESULT[..] += OPERAND[..], got {line!r}"
            )
        lines[match["name"]] = match["rest"]
    operators = {einsum: _einsum(line, bounds) for einsum, line in lines.items()}
    makers: dict[str, str] = {}
    for einsum, operator in operators.items():
        made = operator.output.name
        if made in makers:
            raise InputError(name, einsum, f"makes {made}, as {makers[made]} does")
        makers[made] = einsum
    layers = [Layer(einsum, with_roles(operator, makers), "nest") for einsum, operator in operators.items()]
    links = [
        Link(
            makers[operand.name],
            layer.name,
            operand.name,
            operand.name,
            operand.footprint(layer.operator.bounds),
            axes=tuple(range(len(operand.axes))),
            offsets=(0,) * len(operand.axes),
        )
        for layer in layers
        for operand in layer.operator.inputs
        if operand.name in makers
    ]
    return Network(name, layers, links, every_layer=True)


def _einsum(line: str, bounds: MappingABC[str, int]) -> Operator:
    used = set(re.findall(r"\w+", " ".join(re.findall(r"\[([^\]]*)\]", line))))
    return nest(line, bounds={variable: bound for variable, bound in bounds.items() if variable in used})


def with_roles(operator: Operator, made: Collection[str]) -> Operator:
    """An einsum with the roles of its operands, and what each of its loops is like for arrays.

    An array that reuses a role carries loops that the role's tensor does not depend on.

    Parameters
    ----------
    operator : the einsum
    made : tensors that einsums of its chain make
    """
    names = [tensor.name for tensor in operator.inputs]
    weights = [name for name in names if name not in made] or names[-1:]
    weight = weights[-1] if len(names) > 1 else None
    tensors = tuple(
        tensor
        if tensor.is_output
        else replace(tensor, role=Role.WEIGHT if tensor.name == weight else Role.INPUT)
        for tensor in operator.tensors
    )
    dimensions = []
    for dimension in operator.dimensions:
        absent = {
            role for role in Role if not any(dimension.name in t.dims for t in tensors if t.role is role)
        }
        like = {Role.INPUT: "K", Role.WEIGHT: "N", Role.OUTPUT: "C"}
        alone = next(iter(absent)) if len(absent) == 1 else None
        dimensions.append(replace(dimension, like="G" if alone is None else like[alone]))
    return replace(operator, dimensions=tuple(dimensions), tensors=tensors)
