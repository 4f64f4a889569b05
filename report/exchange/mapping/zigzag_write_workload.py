"""Layers as ZigZag's workloads."""

from __future__ import annotations

import re
from typing import Any

from tilewright.foundation.errors import InputError
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.machine_text import yaml_text
from tilewright.report.exchange.mapping.zigzag_write_accelerator import precision
from tilewright.report.exchange.outputs import NotStatedError, Output
from tilewright.workloads.mapping.operator import Operator, Role, Tensor

PEER = "zigzag"

_DIMENSION = re.compile(r"[A-Z]+[0-9]*")
_DEFAULT_BITS = 8


def write(bundle: Bundle) -> list[Output]:
    """All layers in one file."""
    entries = []
    for index, (name, operator) in enumerate(bundle.layers):
        try:
            entries.append(_entry(index, name, operator, bundle))
        except NotStatedError as error:
            raise InputError(name, "operator", f"{error}, which ZigZag's equations cannot say") from None
    return [Output("layers", "workload.yaml", yaml_text(entries))] if entries else []


def names_of(operator: Operator) -> dict[str, str]:
    """ZigZag's names of dimensions: capitals, then digits; raises ``NotStatedError`` where two are one."""
    names = {dim: dim.upper() for dim in operator.bounds}
    wrong = [dim for dim in names.values() if not _DIMENSION.fullmatch(dim)]
    if wrong or len(set(names.values())) < len(names):
        raise NotStatedError(f"dimensions named {', '.join(operator.bounds)}")
    return names


def _entry(index: int, name: str, operator: Operator, bundle: Bundle) -> dict[str, Any]:
    roles = [tensor.role for tensor in operator.inputs]
    if sorted(roles) != [Role.INPUT, Role.WEIGHT]:
        raise NotStatedError(f"{len(roles)} operands that are not one of inputs and one of weights")
    names = names_of(operator)
    relations: dict[str, str] = {}
    texts = {tensor.role: _tensor(tensor, names, relations) for tensor in operator.tensors}
    if not operator.is_mac:
        bundle.ledger.reported(
            name, Effect.COST, "an iteration counts as one multiply-accumulate", "operator"
        )
    entry: dict[str, Any] = {
        "id": index,
        "name": name,
        "operator_type": "Conv" if relations else "Gemm",
        "equation": f"{texts[Role.OUTPUT]}+={texts[Role.WEIGHT]}*{texts[Role.INPUT]}",
    }
    if relations:
        entry["dimension_relations"] = list(relations.values())
    return entry | {
        "loop_dims": list(names.values()),
        "loop_sizes": list(operator.bounds.values()),
        "operand_precision": _precision(bundle),
        "operand_source": {"I": index, "W": index},
    }


def _precision(bundle: Bundle) -> dict[str, int]:
    """Bits of every operand: the user's word, or the machine's."""
    bits = bundle.settings.element_bits
    if bits is None and bundle.engine is not None:
        by_operand = precision(bundle.engine)
        return {
            "I": by_operand["I1"],
            "W": by_operand["I2"],
            "O": by_operand["O"],
            "O_final": by_operand["O_final"],
        }
    return dict.fromkeys(("I", "W", "O", "O_final"), bits or _DEFAULT_BITS)


def _tensor(tensor: Tensor, names: dict[str, str], relations: dict[str, str]) -> str:
    letter = {Role.INPUT: "I", Role.WEIGHT: "W", Role.OUTPUT: "O"}[tensor.role]
    text = letter
    taken = {dim.lower() for dim in names.values()}
    for axis in tensor.axes:
        terms = [(names[term.dim].lower(), term.stride) for term in axis.terms]
        if len(terms) == 1 and terms[0][1] == 1:
            text += f"[{terms[0][0]}]"
            continue
        if len(terms) != 2:
            raise NotStatedError(f"an axis of {tensor.name} that is no sum of two dimensions")
        index = f"i{terms[0][0]}"
        while index in taken:
            index += "x"
        left, right = (f"{step}*{dim}" for dim, step in terms)
        relations[index] = f"{index}={left}+{right}"
        text += f"[{index}]"
    return text
