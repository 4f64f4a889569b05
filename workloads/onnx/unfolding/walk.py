"""One pass over a model's nodes that opens branches and loops, infers shapes and folds constants.

Inputs have fixed sizes, so every size inside follows from them, node by node: what ``Shape`` gives is a
number, what is computed from numbers is one too, and a branch whose condition is one is taken.  A node of
which the results cannot be told is kept with the reason, and so is what reads it, without one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.workloads.onnx.options import BRANCH, TRIP
from tilewright.workloads.onnx.unfolding.bodies import captured, graph_of, opened
from tilewright.workloads.onnx.unfolding.choices import Choices, TooManyNodesError, chosen
from tilewright.workloads.onnx.unfolding.evaluation import (
    OWN_DOMAINS,
    constant_value,
    evaluated,
    inferred_types,
    shape_of,
    stored_values,
    tensor_type,
)
from tilewright.workloads.onnx.unfolding.microsoft import RULES, foreign_types
from tilewright.workloads.onnx.unfolding.rounds import counted_rounds, goes_on


class Walk:
    """The pass; `model` is the result.

    Parameters
    ----------
    model : without local functions; its inputs have sizes
    choices : of the user
    """

    def __init__(self, model: onnx.ModelProto, choices: Choices) -> None:
        self.source = model
        self.choices = choices
        self.types: dict[str, onnx.TypeProto] = {}
        self.values: dict[str, np.ndarray] = {}
        self.protos: dict[str, onnx.TensorProto] = {}
        self.stored: list[onnx.TensorProto] = []
        self.nodes: list[onnx.NodeProto] = []
        self.causes: dict[str, str] = {}
        self.opened = 0
        self.turn = ""
        self.dependent: set[str] = set()
        self.states: list[onnx.ValueInfoProto] = []
        for value in model.graph.input:
            self.types[value.name] = value.type
        stored = {tensor.name for tensor in model.graph.initializer}
        self.dependent.update(value.name for value in model.graph.input if value.name not in stored)
        for tensor in model.graph.initializer:
            self.store(tensor)
        for sparse in model.graph.sparse_initializer:
            self.types[sparse.values.name] = tensor_type(sparse.values.data_type, list(sparse.dims))
        self.walk(model.graph.node)

    def walk(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """All nodes of a graph or of a body, in order."""
        for node in nodes:
            self.opened += 1
            if self.opened > self.choices.most:
                raise TooManyNodesError(node.name or node.op_type)
            missing = [name for name in node.input if name and name not in self.types]
            if node.op_type == "Constant" and node.domain in OWN_DOMAINS and node.output:
                self.constant(node)
            elif missing:
                self.nodes.append(node)
            elif node.op_type in _HELD and node.domain in OWN_DOMAINS:
                self.held(node)
            else:
                self.plain(node)

    def store(self, tensor: onnx.TensorProto) -> None:
        """A stored tensor, with its values where they are there."""
        self.stored.append(tensor)
        self.types[tensor.name] = tensor_type(tensor.data_type, list(tensor.dims))
        values = stored_values(tensor)
        if values is not None:
            self.values[tensor.name], self.protos[tensor.name] = values, tensor

    def constant(self, node: onnx.NodeProto) -> None:
        held = constant_value(node)
        if held is None:
            self.nodes.append(node)
            return
        tensor = onnx.TensorProto()
        tensor.CopyFrom(held)
        tensor.name = node.output[0]
        self.store(tensor)

    def plain(self, node: onnx.NodeProto) -> None:
        """A node without graphs: folded, or kept with the types of its results."""
        foreign = node.domain not in OWN_DOMAINS or node.op_type in RULES.get("", {})
        try:
            if foreign:
                types = foreign_types(node, self.types, self.values)
            else:
                types = inferred_types(node, self.types, self.protos, self.source)
        except ValueError as error:
            self.refuse(node, str(error))
            return
        shapes = [shape_of(types.get(name)) for name in node.output if name]
        values = None
        if node.op_type == "Shape" and not foreign:
            values = self.shape_values(node)
        elif node.op_type == "Size" and not foreign:
            sizes = shape_of(self.types[node.input[0]]) or ()
            values = [np.array(math.prod(sizes), np.int64)]
        elif not foreign and all(name in self.values for name in node.input if name):
            values = evaluated(node, self.values, shapes, self.source)
        if values is not None:
            for name, value in zip(filter(None, node.output), values, strict=True):
                self.fold(name, value)
            return
        self.nodes.append(node)
        if not self.dependent.isdisjoint(node.input):
            self.dependent.update(filter(None, node.output))
        for name, shape in zip(filter(None, node.output), shapes, strict=True):
            if shape is None:
                self.causes.setdefault(next(filter(None, node.output)), self.sizeless(node))
            else:
                self.types[name] = types[name]

    def sizeless(self, node: onnx.NodeProto) -> str:
        """Why a result has no size."""
        if all(name in self.values for name in node.input[1:] if name) and node.op_type not in _BY_DATA:
            sizes = ", ".join(str(list(shape_of(self.types[name]) or ())) for name in node.input if name)
            return f"its result has no size for operands of {sizes}"
        return "the size of its result depends on the data"

    def shape_values(self, node: onnx.NodeProto) -> list[np.ndarray]:
        axes = shape_of(self.types[node.input[0]]) or ()
        first = next((a.i for a in node.attribute if a.name == "start"), 0)
        last = next((a.i for a in node.attribute if a.name == "end"), len(axes))
        return [np.array(axes[first:last], np.int64)]

    def fold(self, name: str, value: np.ndarray) -> None:
        """A tensor whose values are known now."""
        self.store(numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name))

    def refuse(self, node: onnx.NodeProto, reason: str) -> None:
        """A node that cannot be told more of; `reason` where it is a cause of its own."""
        self.nodes.append(node)
        results = [name for name in node.output if name]
        if results:
            self.causes[results[0]] = reason

    def held(self, node: onnx.NodeProto) -> None:
        """A branch or a loop: opened, or kept with the reason."""
        before, stored, states = len(self.nodes), len(self.stored), len(self.states)
        try:
            reason = {"If": self.branch, "Loop": self.loop, "Scan": self.scan}[node.op_type](node)
        except (IndexError, KeyError, ValueError, TypeError):
            reason = "its operands and results do not fit to what it holds"
        if reason is not None:
            del self.nodes[before:], self.stored[stored:], self.states[states:]
            kept = onnx.NodeProto()  # what its bodies read is an operand, so that it is no constant
            kept.CopyFrom(node)
            kept.input.extend(name for name in captured(node) if name not in node.input)
            self.refuse(kept, reason)

    def branch(self, node: onnx.NodeProto) -> str | None:
        """The side of an ``If`` that is taken."""
        side = chosen(self.choices.branches, node, self.stem(node))
        known = self.values.get(node.input[0])
        if known is not None and known.size == 1:
            side = "then" if bool(known.reshape(())) else "else"
        if side is None:
            return f"the condition depends on the data{{{BRANCH}:{self.stem(node)}}}"
        body = graph_of(node, f"{side}_branch")
        if body is None or len(body.output) != len(node.output):
            return f"has no {side}_branch with as many results"
        results = self.round(body, node.output[0], {}, "")
        self.rename(results, node.output)
        return None

    def loop(self, node: onnx.NodeProto) -> str | None:
        """All rounds of a ``Loop``, as many as are known or asked for."""
        body = graph_of(node, "body")
        carried = list(node.input[2:])
        if body is None or len(body.input) != 2 + len(carried) or len(body.output) - 1 != len(node.output):
            return "its body does not fit to its operands and results"
        asked = chosen(self.choices.trips, node, self.stem(node))
        rounds = self.values.get(node.input[0]) if node.input[0] else None
        most = asked if asked is not None else int(rounds.reshape(())) if rounds is not None else None
        names = begun = self.begun(body, carried, 2, 1, node.output[0])
        going = self.values.get(node.input[1]) if len(node.input) > 1 and node.input[1] else np.array(True)
        stacked: list[list[str]] = [[] for _ in body.output[1 + len(carried) :]]
        number = 0
        while most is None or number < most:
            if asked is None and going is None:
                return f"its condition depends on the data{{{TRIP}:{self.stem(node)}}}"
            if asked is None and not bool(going):
                break
            prefix = f"{node.output[0]}.{number}"
            self.fold(f"{prefix}/round", np.array(number, np.int64))
            self.fold(f"{prefix}/going", np.array(True))
            inputs = [f"{prefix}/round", f"{prefix}/going", *names]
            bound = dict(zip((value.name for value in body.input), inputs, strict=True))
            condition, *results = self.round(body, prefix, bound, f".{number}")
            names = results[: len(carried)]
            for rows, name in zip(stacked, results[len(carried) :], strict=True):
                rows.append(name)
            going = self.values.get(condition)
            going = None if going is None or going.size != 1 else going.reshape(())
            number += 1
            if number == 1 and asked is not None:
                self.foresee(node, body, most)
            elif number == 1 and going is not None and going:
                self.foresee_condition(node, body, begun, most)
        if stacked and not number:
            return "runs no round, so that its results are empty"
        for rows, name in zip(stacked, node.output[len(carried) :], strict=True):
            self.stack(rows, name, 0)
        self.rename(names, node.output[: len(carried)])
        return None

    def scan(self, node: onnx.NodeProto) -> str | None:
        """All rounds of a ``Scan``: one per element along the scanned axes, or as many as asked for."""
        body = graph_of(node, "body")
        given = {a.name: list(a.ints) or a.i for a in node.attribute if a.name != "body"}
        scanned = given.get("num_scan_inputs", 0)
        states = len(node.input) - scanned if isinstance(scanned, int) else -1
        if (
            body is None
            or states < 0
            or len(body.input) != len(node.input)
            or len(body.output) != len(node.output)
        ):
            return "its body does not fit to its operands and results"
        whole = list(node.input[states:])
        shapes = [shape_of(self.types[name]) or () for name in whole]
        axes = _listed(given.get("scan_input_axes"), len(whole))
        backward = _listed(given.get("scan_input_directions"), len(whole))
        if any(not -len(shape) <= axis < len(shape) for shape, axis in zip(shapes, axes, strict=True)):
            return "scans an axis that its operand does not have"
        sizes = [shape[axis] for shape, axis in zip(shapes, axes, strict=True)]
        asked = chosen(self.choices.trips, node, self.stem(node))
        count = min(sizes, default=0) if asked is None else min(asked, *sizes) if sizes else 0
        if not count:
            return "runs no round, so that its results are empty"
        self.foresee(node, body, count)
        names = self.begun(body, node.input[:states], 0, 0, node.output[0])
        stacked: list[list[str]] = [[] for _ in body.output[states:]]
        for number in range(count):
            prefix = f"{node.output[0]}.{number}"
            cut = []
            for i, name in enumerate(whole):
                at = sizes[i] - 1 - number if backward[i] else number
                self.fold(f"{prefix}/at{i}", np.array(at, np.int64))
                cut.append(f"{prefix}/scanned{i}")
                self.walk([helper.make_node("Gather", [name, f"{prefix}/at{i}"], [cut[-1]], axis=axes[i])])
            bound = dict(zip((value.name for value in body.input), [*names, *cut], strict=True))
            results = self.round(body, prefix, bound, f".{number}")
            names = results[:states]
            for rows, name in zip(stacked, results[states:], strict=True):
                rows.append(name)
        places = _listed(given.get("scan_output_axes"), len(stacked))
        for rows, name, axis in zip(stacked, node.output[states:], places, strict=True):
            self.stack(rows, name, axis)
        self.rename(names, node.output[:states])
        return None

    def foresee(self, node: onnx.NodeProto, body: onnx.GraphProto, rounds: int | None) -> None:
        """Refuse rounds that no condition ends, and that open too many nodes, before they are opened.

        Parameters
        ----------
        rounds : how many there are; nothing where they never end
        """
        if rounds is None or rounds * (1 + len(body.node)) > self.choices.most:
            raise TooManyNodesError(node.name or node.op_type)

    def foresee_condition(
        self, node: onnx.NodeProto, body: onnx.GraphProto, begun: Sequence[str], rounds: int | None
    ) -> None:
        """Refuse a ``Loop`` of too many rounds, where it can be told how many its condition leaves.

        Parameters
        ----------
        begun : names of the states before the first round
        rounds : how many there are at most; nothing where only the condition ends them
        """
        if goes_on(body):
            self.foresee(node, body, rounds)
            return
        enough = self.choices.most // (1 + len(body.node)) + 1
        if rounds is None or rounds >= enough:
            states = dict(zip((value.name for value in body.input[2:]), begun, strict=True))
            known = {**self.values, **{name: self.values.get(state) for name, state in states.items()}}
            counted = counted_rounds(body, known, self.source, enough)
            if counted is not None:
                self.foresee(node, body, counted)

    def stem(self, node: onnx.NodeProto) -> str:
        """A node's name in the file, without the rounds of the loops around it."""
        return (node.name or node.output[0]).removesuffix(self.turn)

    def begun(
        self, body: onnx.GraphProto, carried: Sequence[str], first: int, result: int, prefix: str
    ) -> list[str]:
        """What a loop begins with: a stored state that rounds change is an input; rounds are alike.

        Parameters
        ----------
        body : of the loop
        carried : tensors that the states begin with
        first, result : place of the first state among the body's inputs and results
        prefix : of the inputs' names

        Returns
        -------
        Names of the states
        """
        sources = {
            node.output[0]: node.input[0] for node in body.node if node.op_type == "Identity" and node.input
        }
        names = []
        for i, name in enumerate(carried):
            made, own = body.output[result + i].name, body.input[first + i].name
            while made in sources and made != own:
                made = sources.pop(made)
            kind = self.types[name]
            if made != own and name not in self.dependent and kind.tensor_type.elem_type in _REAL:
                state = f"{prefix}/state{i}"
                self.states.append(onnx.ValueInfoProto(name=state, type=kind))
                self.types[state] = kind
                self.dependent.add(state)
                name = state
            names.append(name)
        return names

    def round(self, body: onnx.GraphProto, prefix: str, bound: dict[str, str], turn: str) -> list[str]:
        """A body opened once; the names of its results.

        Parameters
        ----------
        body, prefix, bound : as for `opened`
        turn : behind the names of nodes
        """
        nodes, stored, results = opened(body, prefix, bound, self.types, self.turn + turn)
        for tensor in stored:
            self.store(tensor)
        self.opened += 1
        before, self.turn = self.turn, self.turn + turn
        try:
            self.walk(nodes)
        finally:
            self.turn = before
        return results

    def rename(self, names: Sequence[str], results: Sequence[str]) -> None:
        self.walk(
            [
                helper.make_node("Identity", [name], [result])
                for name, result in zip(names, results, strict=True)
                if result
            ]
        )

    def stack(self, rows: Sequence[str], result: str, axis: int) -> None:
        """Results of all rounds side by side along a new axis."""
        if not result:
            return
        self.fold(f"{result}/axis", np.array([axis], np.int64))
        version = next((o.version for o in self.source.opset_import if o.domain in OWN_DOMAINS), 0)
        for i, name in enumerate(rows):
            row = f"{result}/row{i}"
            if version < 13:
                self.walk([helper.make_node("Unsqueeze", [name], [row], axes=[axis])])
            else:
                self.walk([helper.make_node("Unsqueeze", [name, f"{result}/axis"], [row])])
        self.walk(
            [helper.make_node("Concat", [f"{result}/row{i}" for i in range(len(rows))], [result], axis=axis)]
        )

    def model(self) -> onnx.ModelProto:
        """The opened model: its nodes, stored tensors that they read, and all types that are known."""
        made = onnx.ModelProto(ir_version=self.source.ir_version)
        made.opset_import.extend(self.source.opset_import)
        graph = made.graph
        graph.name = self.source.graph.name
        graph.input.extend([*self.source.graph.input, *self.states])
        graph.output.extend(self.source.graph.output)
        graph.sparse_initializer.extend(self.source.graph.sparse_initializer)
        graph.node.extend(self.nodes)
        read = {name for node in self.nodes for name in node.input} | {value.name for value in graph.output}
        kept = {tensor.name: tensor for tensor in self.stored if tensor.name in read}
        graph.initializer.extend(kept.values())
        for node in self.nodes:
            for name in node.output:
                if name in self.types:
                    graph.value_info.append(onnx.ValueInfoProto(name=name, type=self.types[name]))
        for name, reason in self.causes.items():
            made.metadata_props.append(onnx.StringStringEntryProto(key=name, value=reason))
        return made


_HELD = frozenset(("If", "Loop", "Scan"))
_REAL = frozenset(
    (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE)
)
_BY_DATA = frozenset(("Compress", "NonMaxSuppression", "NonZero", "Unique"))


def _listed(given: object, count: int) -> list[int]:
    return list(given) if isinstance(given, list) and len(given) == count else [0] * count
