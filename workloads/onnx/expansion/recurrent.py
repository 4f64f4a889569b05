"""Recurrent nodes step by step: each step is its products, and its gates as one element-wise layer.

As in the built-in recurrent networks, the gates that read the same operands are one product of the joined
input and hidden state.  Steps are layers of their own, because each needs the result of the one before.
Their results, joined, are one pass over the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.foundation.errors import BudgetError
from tilewright.workloads.onnx.budgets import MOST_NODES
from tilewright.workloads.onnx.expansion.emitter import Emitter

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@dataclass(frozen=True, slots=True)
class _Weights:
    """Names and sizes of what all steps of one direction share.

    Parameters
    ----------
    inputs, hidden : features of a step's input and of the state
    place : the direction's name
    """

    inputs: int
    hidden: int
    place: str


def recurrent(emit: Emitter) -> None:
    """``LSTM``, ``GRU`` and ``RNN``, also with quantised weights.

    Raises
    ------
    InputError : for sizes that do not fit to each other
    BudgetError : for more steps than a model may have nodes
    """
    node = emit.origin
    kind = "LSTM" if node.op == "DynamicQuantizeLSTM" else node.op
    quantised = node.op == "DynamicQuantizeLSTM"
    x = emit.input(0)
    by_batch = bool(emit.number("layout"))
    first, second, inputs = emit.shape(x, 3)
    length, batch = (second, first) if by_batch else (first, second)
    weights = emit.shape(emit.input(1), 3)
    directions = weights[0]
    hidden = emit.shape(emit.input(2), 3)[1 if quantised else 2]
    joined = weights[2 if quantised else 1]
    features = weights[1 if quantised else 2]
    if joined != GATES[kind] * hidden or features != inputs:
        raise emit.error(
            f"weights of shape {list(weights)} read {inputs} features into {hidden} of the state"
        )
    if length * directions * 6 > MOST_NODES:
        message = f"has {length:,} steps, expected at most {MOST_NODES:,} nodes in a model"
        raise BudgetError(emit.graph.where, node.label, message)
    before = {"h": emit.input(5), "c": emit.input(6) if kind == "LSTM" else ""}
    reverse = node.attributes.get("direction", "forward") == "reverse"
    names = ["forward", "backward"] if directions == 2 else ["backward" if reverse else "forward"]
    ends: dict[str, list[str]] = {"h": [], "c": []}
    sequences: list[list[str]] = []
    for at, name in enumerate(names):
        sizes = _Weights(inputs, hidden, name)
        states = {
            key: emit.row(tensor, at, (batch, hidden), f"{name}/{key}")
            if tensor in emit.activations
            else emit.state(f"{_base(emit)}/{name}/{key}", (batch, hidden))
            for key, tensor in before.items()
            if key == "h" or kind == "LSTM"
        }
        order = range(length) if name == "forward" else range(length - 1, -1, -1)
        rows = []
        for step in order:
            now = emit.row(x, step, (batch, inputs), f"{name}/x")
            states = _step(emit, kind, sizes, now, states, f"{name}/step{step}")
            rows.append(states["h"])
        sequences.append(rows)
        for key in ends:
            ends[key].append(states.get(key, ""))
    outputs = [*node.outputs, "", "", ""][:3]
    if outputs[0]:
        shape = emit.shape(outputs[0])
        joined_rows = emit.node(
            "Concat", [row for rows in sequences for row in rows], shape, "joined", axis=0
        )
        emit.node("Sequence", [joined_rows], shape, "sequence", outputs[0])
    for key, result in zip("hc", outputs[1:], strict=True):
        if result and all(ends[key]):
            emit.node("Concat", ends[key], (directions, batch, hidden), key, result, axis=0)


def _step(
    emit: Emitter, kind: str, sizes: _Weights, x: str, states: dict[str, str], part: str
) -> dict[str, str]:
    """The state behind one step; `part` is the step's name."""
    batch = emit.shape(x)[0]
    inputs, hidden = sizes.inputs, sizes.hidden
    state = states["h"]

    def joined(width: int, name: str, other: str) -> str:
        """A product of the joined input and state; steps share its weights."""
        whole = emit.node("Concat", [x, other], (batch, inputs + hidden), f"{part}/{name}_joined", axis=1)
        return multiplied(whole, inputs + hidden, width, name)

    def multiplied(operand: str, rows: int, width: int, name: str) -> str:
        stem = f"{_base(emit)}/{sizes.place}/{name}"
        shared = [emit.stored(f"{stem}_weights", (rows, width))]
        if emit.has(3):
            biases = width if name in ("input", "state") else 2 * width
            shared.append(emit.stored(f"{stem}_biases", (biases,)))
        return emit.node("Gemm", [operand, *shared], (batch, width), f"{part}/{name}")

    def gates(product: str, count: int, name: str) -> list[str]:
        if count == 1:
            return [product]
        return [emit.row(product, i, (batch, hidden), f"{part}/{name}") for i in range(count)]

    def cell(op: str, operands: Sequence[str], name: str) -> str:
        return emit.node(op, operands, (batch, hidden), f"{part}/{name}")

    if kind == "RNN":
        return {"h": cell("RNNCell", [joined(hidden, "product", state)], "cell")}
    if kind == "LSTM":
        parts = gates(joined(4 * hidden, "gates", state), 4, "gate")
        c = cell("LSTMCell", [*parts, states["c"]], "cell")
        return {"h": cell("LSTMOutput", [parts[1], c], "output"), "c": c}
    if emit.number("linear_before_reset"):
        parts = gates(multiplied(x, inputs, 3 * hidden, "input"), 3, "input_gate")
        parts += gates(multiplied(state, hidden, 3 * hidden, "state"), 3, "state_gate")
        return {"h": cell("GRUCell", [*parts, state], "cell")}
    update, reset = gates(joined(2 * hidden, "gates", state), 2, "gate")
    kept = cell("Mul", [reset, state], "reset")
    candidate = joined(hidden, "candidate", kept)
    return {"h": cell("GRUCell", [update, candidate, state], "cell")}


def _base(emit: Emitter) -> str:
    return emit.origin.name or emit.origin.outputs[0]
