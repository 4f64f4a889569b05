"""Layers as Timeloop's problems."""

from __future__ import annotations

import string
from typing import Any

from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.machine_text import yaml_text
from tilewright.report.exchange.outputs import Output
from tilewright.workloads.mapping.operator import Operator, Tensor

PEER = "timeloop"


def write(bundle: Bundle) -> list[Output]:
    """One problem per layer."""
    outputs = []
    for name, operator in bundle.layers:
        names = letters(operator)
        renamed = [f"{dim} is {letter}" for dim, letter in names.items() if dim != letter]
        if renamed:
            message = f"dimensions have names of one letter: {', '.join(renamed)}"
            bundle.ledger.reported(name, Effect.NONE, message, "dimensions")
        if any(
            axis.extent(operator.bounds) < axis.size for tensor in operator.tensors for axis in tensor.axes
        ):
            message = "elements that no loop reads (an input's rim) have no place in a problem"
            bundle.ledger.reported(name, Effect.NONE, message, "tensors")
        if not operator.is_mac:
            message = "an iteration counts as one multiply-accumulate"
            bundle.ledger.reported(name, Effect.COST, message, "operator")
        prefix = f"{name}." if len(bundle.layers) > 1 else ""
        outputs.append(
            Output("layer", f"{prefix}problem.yaml", yaml_text({"problem": _problem(name, operator)}))
        )
    return outputs


def letters(operator: Operator) -> dict[str, str]:
    """A letter for every dimension: its own name where that is one, else one that is free."""
    taken = {dim for dim in operator.bounds if len(dim) == 1 and dim.isalpha()}
    free = [
        free_letter
        for free_letter in string.ascii_uppercase + string.ascii_lowercase
        if free_letter not in taken
    ]
    names: dict[str, str] = {}
    for dim in operator.bounds:
        if dim in taken:
            names[dim] = dim
            continue
        own = [letter for letter in (dim[:1].upper(), dim[:1].lower()) if letter in free]
        names[dim] = (own or free)[0]
        free.remove(names[dim])
    return names


def _problem(name: str, operator: Operator) -> dict[str, Any]:
    names = letters(operator)
    steps: dict[str, int] = {}
    spaces = [_space(tensor, names, steps) for tensor in operator.tensors]
    shape: dict[str, Any] = {"name": name, "dimensions": list(names.values())}
    if steps:
        shape["coefficients"] = [{"name": step, "default": size} for step, size in steps.items()]
    shape["data_spaces"] = spaces
    instance = {names[dim]: bound for dim, bound in operator.bounds.items()}
    return {"version": 0.4, "shape": shape, "instance": instance | steps}


def _space(tensor: Tensor, names: dict[str, str], steps: dict[str, int]) -> dict[str, Any]:
    projection = []
    for axis in tensor.axes:
        terms = []
        for term in axis.terms:
            letter = names[term.dim]
            step = f"{letter}{'stride' if term.stride > 1 else ''}"
            while step in steps and steps[step] != term.stride:
                step += "2"
            if term.stride > 1:
                steps[step] = term.stride
            terms.append([letter, step] if term.stride > 1 else [letter])
        projection.append(terms)
    space: dict[str, Any] = {"name": tensor.name, "projection": projection}
    return space | ({"read_write": True} if tensor.is_output else {})
