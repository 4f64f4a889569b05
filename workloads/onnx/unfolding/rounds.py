"""Rounds of a ``Loop`` that are counted before they are opened."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from tilewright.workloads.onnx.operations import POINTWISE
from tilewright.workloads.onnx.unfolding.bodies import captured
from tilewright.workloads.onnx.unfolding.evaluation import (
    OWN_DOMAINS,
    calculation,
    constant_value,
    stored_values,
)

_OF_NUMBERS = POINTWISE | {"Identity"}
"""Operations that make single numbers of single numbers, so that no round takes more memory than another."""


def goes_on(body: onnx.GraphProto) -> bool:
    """Whether a loop that goes on after its first round goes on after all others.

    Its condition then follows from what is the same in every round: neither from the round's number nor from
    a state.
    """
    made = {name: node for node in body.node for name in node.output}
    reached: set[str] = set()
    waiting = [body.output[0].name]
    while waiting:
        name = waiting.pop()
        if name in made and name not in reached:
            waiting += [*made[name].input, *captured(made[name])]
        reached.add(name)
    return reached.isdisjoint(value.name for i, value in enumerate(body.input) if i != 1)


def counted_rounds(
    body: onnx.GraphProto, begun: Mapping[str, np.ndarray | None], model: onnx.ModelProto, most: int
) -> int | None:
    """How many rounds a loop has until its condition ends it: the condition is computed without the rest.

    Parameters
    ----------
    body : of the loop
    begun : values by name, where they are known: of tensors around the body, and of its states before the
        first round
    model : whose versions of operations count
    most : rounds after which nobody counts on

    Returns
    -------
    Rounds, at most `most`; nothing where the condition follows from more than single numbers that are known
    """
    number, going = body.input[0].name, body.input[1].name
    following = {state.name: body.output[1 + i].name for i, state in enumerate(body.input[2:])}
    made = {name: node for node in body.node for name in node.output}
    stored = {tensor.name: stored_values(tensor) for tensor in body.initializer}
    values: dict[str, np.ndarray] = {number: np.array(0, np.int64), going: np.array(True)}
    states: list[str] = []
    reached, waiting = {number, going}, [body.output[0].name]
    while waiting:
        name = waiting.pop()
        if name in reached or not name:
            continue
        reached.add(name)
        if name in made and made[name].op_type != "Constant":
            if made[name].domain not in OWN_DOMAINS or made[name].op_type not in _OF_NUMBERS:
                return None
            waiting += made[name].input
            continue
        if name in following:
            states.append(name)
            waiting.append(following[name])
        held = constant_value(made[name]) if name in made else None
        value = stored_values(held) if held is not None else stored.get(name, begun.get(name))
        if value is None or value.size != 1:
            return None
        values[name] = value
    nodes = [node for node in body.node if node.op_type != "Constant" and not reached.isdisjoint(node.output)]
    results = [body.output[0].name, *(following[name] for name in states)]
    compute = calculation(nodes, values, results, model)
    for count in range(1, most):
        made_now = compute()
        if made_now is None:
            return None
        if not made_now[0].any():
            return count
        values.update(zip(states, made_now[1:], strict=True))
        values[number] = np.array(count, np.int64)
    return most
