"""ONNX models that compute sizes, branch, loop and call functions, against a count of what they run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_models as made
import pytest
from effort import effort
from hostile_onnx import changed
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import defs, helper
from onnx_counter import executed_macs
from onnx_models import FLOAT, INT64, model, node, numbers, value, weights

from tilewright.foundation.errors import BudgetError, InputError
from tilewright.workloads.network import Network
from tilewright.workloads.onnx import budgets, graph, importer, inference
from tilewright.workloads.onnx.importer import load_onnx
from tilewright.workloads.onnx.options import OnnxOptions
from tilewright.workloads.onnx.unfolding.choices import Choices, TooManyNodesError
from tilewright.workloads.onnx.unfolding.walk import Walk

ATTENTION = 23
"""The version of ONNX's operations that has attention."""


def imported(proto: onnx.ModelProto, options: OnnxOptions | None = None, batch: int | None = None) -> Network:
    """A model as it comes from a user's file."""
    return load_onnx(proto, batch, "made", options)


def single(
    op: str, *shapes: list[int], stored: list[Any] | None = None, opset: int = 17, **attributes: Any
) -> onnx.ModelProto:
    """A model of one node, its first operands inputs and the others stored."""
    names = [f"i{i}" for i in range(len(shapes))]
    kept = [tensor.name for tensor in stored or []]
    given = [value(name, FLOAT, shape) for name, shape in zip(names, shapes, strict=True)]
    return model(
        [node(op, " ".join([*names, *kept]), "y", **attributes)],
        given,
        [value("y", FLOAT, None)],
        stored or [],
        opset,
    )


def sizes_of(proto: onnx.ModelProto, dims: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of a model's inputs with the open sizes set, the batch 1."""
    return {
        given.name: tuple(
            axis.dim_value if axis.dim_value else dims.get(axis.dim_param, 1)
            for axis in given.type.tensor_type.shape.dim
        )
        for given in proto.graph.input
    }


CASES: dict[str, tuple[Callable[[], onnx.ModelProto], dict[str, int]]] = {
    "a computed reshape": (made.computed_reshape, {"height": 6, "width": 5}),
    "a branch by a size": (lambda: made.branches(known=True), {"rows": 7}),
    "the other branch by a size": (lambda: made.branches(known=True), {"rows": 3}),
    "a loop of known rounds": (lambda: made.loop(known=True), {}),
    "a scan": (made.scan, {"steps": 5}),
    "functions": (made.functions, {"rows": 3}),
    "lstm": (lambda: made.recurrent("LSTM"), {"steps": 4}),
    "gru": (lambda: made.recurrent("GRU"), {"steps": 4}),
    "gru, reset behind the product": (lambda: made.recurrent("GRU", linear_before_reset=1), {"steps": 3}),
    "rnn": (lambda: made.recurrent("RNN"), {"steps": 3}),
    "quantised": (made.quantised, {}),
    "volumes": (
        lambda: single(
            "Conv", [1, 4, 5, 6, 7], stored=[weights("w", 6, 2, 3, 1, 2)], group=2, strides=[2, 1, 1]
        ),
        {},
    ),
    "transposed volumes": (
        lambda: single(
            "ConvTranspose", [1, 4, 3, 3, 2], stored=[weights("w", 4, 3, 2, 2, 2)], strides=[2, 2, 2]
        ),
        {},
    ),
    "sum of two": (lambda: single("Einsum", [2, 3, 4], [2, 5, 4], equation="bid,bjd->bij"), {}),
    "sum without an arrow": (lambda: single("Einsum", [3, 4], [4, 5], equation="ij,jk"), {}),
    "sum of three": (lambda: single("Einsum", [3, 4], [4, 5], [5], equation="ij,jk,k->i"), {}),
    "spectrum": (
        lambda: single(
            "STFT", [2, 40, 1], stored=[numbers("step", 4), numbers("window", np.ones(8), np.float32)]
        ),
        {},
    ),
    "spectrum of both sides": (
        lambda: model(
            [node("STFT", "x step _ length", "y", onesided=0)],
            [value("x", FLOAT, [1, 32, 1])],
            [value("y", FLOAT, None)],
            [numbers("step", 4), numbers("length", 8)],
        ),
        {},
    ),
    "transform": (lambda: single("DFT", [2, 12, 1], axis=1, onesided=1), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_products_are_those_that_run(name: str) -> None:
    """MACs of the network are the products that the reference evaluator's nodes compute."""
    make, dims = CASES[name]
    proto = make()
    network = imported(proto, OnnxOptions(dims))
    assert network.left_out == ()
    assert network.macs == executed_macs(proto, sizes_of(proto, dims)) > 0


@pytest.mark.skipif(defs.onnx_opset_version() < ATTENTION, reason="the onnx package has no attention yet")
@pytest.mark.parametrize("past", [0, 4])
@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (4, 2)])
@pytest.mark.parametrize("axes", [3, 4])
def test_attention_is_its_products(axes: int, heads: int, groups: int, past: int) -> None:
    """Scores and sums of values, heads in groups, with and without a cache."""
    if axes == 4:
        shapes = [[2, heads, 5, 8], [2, groups, 7, 8], [2, groups, 7, 6]]
    else:
        shapes = [[2, 5, heads * 8], [2, 7, groups * 8], [2, 7, groups * 6]]
    names = ["q", "k", "v"]
    if past:
        names += ["_", "pk", "pv"]
        shapes += [[2, groups, past, 8], [2, groups, past, 6]]
    attributes = {"q_num_heads": heads, "kv_num_heads": groups} if axes == 3 else {}
    outputs = "y k2 v2" if past else "y"
    given = [value(n, FLOAT, shape) for n, shape in zip([n for n in names if n != "_"], shapes, strict=True)]
    proto = model(
        [node("Attention", " ".join(names), outputs, **attributes)],
        given,
        [value(name, FLOAT, None) for name in outputs.split()],
        opset=ATTENTION,
    )
    network = imported(proto)
    assert network.macs == executed_macs(proto, sizes_of(proto, {}))
    assert [layer.source for layer in network.layers] == ["MatMul", "Softmax", "MatMul"]
    assert not any(layer.stored_weights for layer in network.mac_layers)


def microsoft(
    op: str, *operands: tuple[str, list[int] | None], outputs: str = "y", **attributes: Any
) -> onnx.ModelProto:
    """A node of ONNX Runtime; operands in capitals are stored, those without a shape are left out."""
    names = ["_" if shape is None else name for name, shape in operands]
    given = [value(name, FLOAT, shape) for name, shape in operands if shape is not None and name.islower()]
    stored = [weights(name, *shape) for name, shape in operands if shape is not None and name.isupper()]
    nodes = [node(op, " ".join(names), outputs, "com.microsoft", **attributes)]
    return model(nodes, given, [value(name, FLOAT, None) for name in outputs.split()], stored)


@pytest.mark.parametrize(
    ("proto", "macs"),
    [
        (
            microsoft("Attention", ("x", [2, 5, 16]), ("W", [16, 48]), ("B", [48]), num_heads=4),
            2 * 5 * 16 * 48 + 2 * 2 * 5 * 5 * 16,
        ),
        (
            microsoft(
                "MultiHeadAttention", ("q", [2, 5, 16]), ("k", [2, 7, 16]), ("v", [2, 7, 16]), num_heads=4
            ),
            2 * 2 * 5 * 7 * 16,
        ),
        (
            microsoft(
                "GroupQueryAttention",
                ("q", [1, 1, 32]),
                ("k", [1, 1, 16]),
                ("v", [1, 1, 16]),
                ("c", [1, 2, 9, 8]),
                ("d", [1, 2, 9, 8]),
                outputs="y e f",
                num_heads=4,
                kv_num_heads=2,
                do_rotary=1,
            ),
            2 * 4 * 10 * 8,
        ),
        (microsoft("FusedMatMul", ("a", [2, 6, 3]), ("B", [6, 5]), transA=1), 2 * 3 * 6 * 5),
        (microsoft("MatMulNBits", ("a", [4, 64]), ("B", [10, 2, 16]), ("S", [20]), K=64, N=10), 4 * 64 * 10),
        (
            microsoft("FusedConv", ("x", [1, 3, 8, 8]), ("W", [4, 3, 3, 3]), ("B", [4]), activation="Relu"),
            4 * 3 * 9 * 36,
        ),
        (
            microsoft(
                "QGemm", ("a", [2, 3]), ("S", []), ("Z", []), ("B", [5, 3]), ("T", []), ("U", []), transB=1
            ),
            2 * 3 * 5,
        ),
    ],
    ids=lambda case: case.graph.node[0].op_type if isinstance(case, onnx.ModelProto) else "",
)
def test_operations_of_onnx_runtime(proto: onnx.ModelProto, macs: int) -> None:
    """What ONNX Runtime's optimiser and quantiser write has the products of its definition."""
    assert imported(proto).macs == macs


@settings(max_examples=effort(8), deadline=None)
@given(st.data())
def test_any_arithmetic_of_sizes_is_folded(data: st.DataObject) -> None:
    """A product behind a reshape to sizes that random integer arithmetic gives has the columns that run."""
    rows, columns = data.draw(st.integers(2, 6)), data.draw(st.integers(2, 6))
    nodes, pool = [node("Shape", "x", "s"), node("Gather", "s one", "n0")], ["n0", "two", "three"]
    for i in range(data.draw(st.integers(1, 5))):
        op = data.draw(st.sampled_from(["Add", "Mul", "Max", "Min", "Mod"]))
        first, second = data.draw(st.sampled_from(pool)), data.draw(st.sampled_from(["two", "three"]))
        nodes.append(node(op, f"{first} {second}", f"m{i}"))
        pool.append(f"m{i}")
    nodes += [
        node("Max", f"{pool[-1]} one", "least"),
        node("Unsqueeze", "least zeros", "count"),
        node("Concat", "ones count", "times", axis=0),
        node("Tile", "x times", "wide"),
        node("MatMul", "tall wide", "y"),
    ]
    stored = [
        *(numbers(name, i) for i, name in enumerate(("zero", "one", "two", "three"))),
        numbers("zeros", [0]),
        numbers("ones", [1]),
        weights("tall", 5, rows),
    ]
    proto = model(nodes, [value("x", FLOAT, [rows, columns])], [value("y", FLOAT, None)], stored)
    assert imported(proto).macs == executed_macs(proto, sizes_of(proto, {}))


def test_steps_depend_on_each_other() -> None:
    """Every step of a recurrent node reads the step before, and what follows reads all of them."""
    network = imported(made.recurrent("LSTM", direction="bidirectional"), OnnxOptions({"steps": 3}))
    gates = [layer for layer in network.mac_layers if layer.source == "Gemm"]
    assert [layer.operator.bounds for layer in gates] == [{"M": 2, "N": 24, "K": 11}] * 6
    after = network.graph
    names = [f"at_h/forward/step{i}/gates" for i in range(3)]
    import networkx as nx

    assert nx.has_path(after, names[0], names[1])
    assert nx.has_path(after, names[1], names[2])
    assert not nx.has_path(after, names[0], "at_h/backward/step2/gates")
    assert all(nx.has_path(after, name, "at_y") for name in after if name.endswith("gates"))
    assert network.parameters == 2 * (24 * 11 + 48) + 36


def test_a_branch_is_taken_as_asked() -> None:
    """A condition on the data is refused with the flag that decides it; a pattern and a name decide it."""
    proto = made.branches(known=False)
    sizes = {"rows": 3}
    with pytest.raises(InputError, match=r"at_y \(If\): the condition .* \(--branch at_y=then\)"):
        imported(proto, OnnxOptions(sizes, asker="flags"))
    with pytest.raises(InputError, match=r"\(branches=\{'at_y': 'then'\}\)"):
        imported(proto, OnnxOptions(sizes, asker="arguments"))
    with pytest.raises(InputError, match=r"the condition depends on the data$"):
        imported(proto, OnnxOptions(sizes))
    assert imported(proto, OnnxOptions(sizes, branches={"at_y": "then"})).macs == 3 * 4 * 16
    assert imported(proto, OnnxOptions(sizes, branches={"at_*": "else"})).macs == 3 * 4 * 2


def test_a_loop_runs_as_often_as_asked() -> None:
    """A loop until a condition on the data holds is refused, or runs as many rounds as said."""
    proto = made.loop(known=False)
    with pytest.raises(InputError, match=r"its condition depends on the data \(--trip at_last=8\)"):
        imported(proto, OnnxOptions(asker="flags"))
    for rounds in (1, 4):
        network = imported(proto, OnnxOptions(trips={"at_last": rounds}))
        assert network.macs == rounds * (2 * 4 * 4 + 2 * 4 * 6)
        assert sum(layer.operator.macs == 32 for layer in network.layers) == rounds


def test_loops_open_no_more_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of many rounds and a recurrent node of many steps are refused by name, soon."""
    with pytest.raises(BudgetError, match=r"at_h \(RNN\): has 100,000,000 steps"):
        imported(made.recurrent("RNN"), OnnxOptions({"steps": 10**8}))
    monkeypatch.setattr(graph, "MOST_NODES", 20)
    with pytest.raises(BudgetError, match="expected at most 20 nodes"):
        imported(made.scan(), OnnxOptions({"steps": 9}))
    with pytest.raises(BudgetError, match="expected at most 20 nodes in a model"):
        imported(made.loop(known=False), OnnxOptions(trips={"at_last": 10**8}))
    assert budgets.MOST_NODES == 2**17


def _endless(rounds: int | None, condition: str) -> onnx.ModelProto:
    """A loop of so many rounds, or without a last one, whose body gives a condition."""
    proto = made.loop(known=True)
    [number] = [tensor for tensor in proto.graph.initializer if tensor.name == "three"]
    loop = proto.graph.node[0]
    if rounds is None:
        loop.input[0] = ""
    else:
        number.CopyFrom(numbers("three", rounds))
    body = loop.attribute[0].g
    [step] = [step for step in body.node if step.output[0] == "on"]
    if condition == "stored":
        body.node.remove(step)
        body.initializer.append(numbers("on", True, np.bool_))
    elif condition == "computed":
        step.CopyFrom(node("Or", "going yes", "on"))
    elif condition in ("numbered", "at last"):
        step.CopyFrom(node("Less", "round limit", "on"))
        proto.graph.initializer.append(numbers("limit", 2 if condition == "at last" else 10**9))
    elif condition in ("counted", "counted down"):
        step.CopyFrom(node("Greater", "fewer nothing", "on"))
        minus = helper.make_node("Constant", [], ["minus"], value_int=-1)
        body.node.extend([minus, node("Add", "left minus", "fewer")])
        body.node.sort(key=lambda made: made.output[0] not in ("minus", "fewer"))
        body.initializer.append(numbers("nothing", 0))
        body.input.append(value("left", INT64, []))
        body.output.insert(2, value("fewer", INT64, None))
        loop.input.append("begun")
        loop.output.insert(1, "left_over")
        proto.graph.initializer.append(numbers("begun", 3 if condition == "counted down" else 10**9))
    return proto


@pytest.fixture
def opened_rounds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Prefixes of all rounds that are opened; no more than a hundred are."""
    prefixes: list[str] = []
    open_round = Walk.round

    def counted(self: Walk, body: onnx.GraphProto, prefix: str, *others: Any) -> list[str]:
        prefixes.append(prefix)
        assert len(prefixes) <= 100
        return open_round(self, body, prefix, *others)

    monkeypatch.setattr(Walk, "round", counted)
    return prefixes


@pytest.mark.parametrize("condition", ["passed on", "stored", "computed", "numbered", "counted"])
@pytest.mark.parametrize("rounds", [2**40, None])
def test_rounds_that_nothing_ends_are_refused_at_once(
    opened_rounds: list[str], rounds: int | None, condition: str
) -> None:
    """A loop that opens too many nodes is refused after its first round."""
    with pytest.raises(TooManyNodesError, match="at_last"):
        Walk(_endless(rounds, condition), Choices(most=2**12))
    assert len(opened_rounds) == 1


@pytest.mark.parametrize("condition", ["at last", "counted down"])
@pytest.mark.parametrize("rounds", [2**40, None])
def test_rounds_that_a_condition_ends_are_opened(rounds: int | None, condition: str) -> None:
    """A loop of nearly endless rounds runs as long as its condition holds."""
    assert imported(_endless(rounds, condition)).macs == 3 * (2 * 4 * 4 + 2 * 4 * 6)


def test_steps_of_a_scan_are_refused_at_once(opened_rounds: list[str]) -> None:
    """A scan of many steps is refused before the first one."""
    proto = made.scan()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 10**8
    with pytest.raises(TooManyNodesError, match="at_last"):
        Walk(proto, Choices())
    assert not opened_rounds


def test_every_cause_is_named_at_once() -> None:
    """Open sizes, unknown operations and undecided branches stand in one message; what follows does not."""
    proto = made.branches(known=False)
    proto.graph.node.insert(0, node("Odd", "x", "o", "my.operations"))
    proto.opset_import.append(onnx.helper.make_opsetid("my.operations", 1))
    proto.graph.input.append(value("p", FLOAT, [3, "width", -1]))
    proto.graph.node.append(node("Relu", "o", "z"))
    with pytest.raises(InputError) as caught:
        imported(proto, OnnxOptions(asker="flags"))
    told = str(caught.value)
    assert "input x: axis 1 is rows; input p: axis 1 is width, axis 2 is open, expected a number" in told
    assert "(--dim rows=224 --dim width=224 --dim p.2=224)" in told
    assert "at_o (Odd): the operation Odd of my.operations is not supported" in told
    assert "at_y (If): the condition depends on the data (--branch at_y=then)" in told
    assert "at_z" not in told
    with pytest.raises(InputError) as caught:
        imported(proto, OnnxOptions({"rows": 4, "width": 2, "p.2": 2}, asker="flags"))
    told = str(caught.value)
    assert "Odd" in told
    assert "--branch at_y=then" in told
    assert told.endswith("(--skip-unsupported leaves them out)")


def test_sizes_by_input_and_axis() -> None:
    """An axis is set by its symbol or by its place; others of the symbol follow; wrong keys are told."""
    nodes = [node("MatMul", "a b", "y")]
    given = [value("a", FLOAT, ["n", 3, "inner"]), value("b", FLOAT, ["n", "inner", -1])]
    proto = model(nodes, given, [value("y", FLOAT, None)])
    assert imported(proto, OnnxOptions({"a.2": 4, "b.2": 5})).macs == 3 * 4 * 5
    assert imported(proto, OnnxOptions({"inner": 4, "b.2": 5, "n": 2})).macs == 2 * 3 * 4 * 5
    with pytest.raises(InputError, match=r"--dim: b\.1: made: 6, but a\.2 has 4 already"):
        imported(proto, OnnxOptions({"a.2": 4, "b.1": 6, "b.2": 5}))
    with pytest.raises(InputError, match=r"a\.1: made: has the size 3, expected an open axis"):
        imported(proto, OnnxOptions({"a.1": 4}))
    with pytest.raises(InputError, match="unknown name 'iner', did you mean 'inner'"):
        imported(proto, OnnxOptions({"iner": 4}))


def test_a_batch_inside_the_graph_is_told() -> None:
    """A branch, a fold and a batch: the model runs at other batches, and says so where it cannot."""
    proto = made.computed_reshape()
    options = OnnxOptions({"height": 4, "width": 4})
    assert imported(proto, options, 3).macs == 3 * imported(proto, options).macs
    fixed = model(
        [node("Reshape", "x target", "r"), node("MatMul", "r m", "y")],
        [value("x", FLOAT, [2, 3, 4])],
        [value("y", FLOAT, None)],
        [numbers("target", [3, 8]), weights("m", 8, 5)],
    )
    with pytest.raises(InputError, match=r"(run it at batch 2|cannot be inferred|has no size|Reshape)"):
        imported(fixed, None, 5)


def test_reductions_choices_and_samples_need_no_products() -> None:
    """Means over axes given as a tensor, largest elements and samples between elements are no products."""
    nodes = [
        node("Conv", "x w", "c"),
        node("ReduceMean", "c axes", "m", keepdims=0),
        node("ReduceSum", "c sum", "s", keepdims=0),
        node("ArgMax", "c", "a", axis=1),
        node("TopK", "m two", "t i"),
        node("GridSample", "c g", "p"),
    ]
    stored = [weights("w", 6, 3, 1, 1), numbers("axes", [2, 3]), numbers("sum", [-1]), numbers("two", [2])]
    given = [value("x", FLOAT, [1, 3, 5, 5]), value("g", FLOAT, [1, 2, 2, 2])]
    outputs = [value(name, FLOAT, None) for name in ("m", "s", "t", "p")] + [value("a", made.INT64, None)]
    proto = model(nodes, given, outputs, stored, opset=20)
    network = imported(proto)
    assert network.left_out == ()
    assert network.macs == 6 * 3 * 25
    mean = next(layer for layer in network.layers if layer.name == "at_m")
    assert math.prod(axis.size for axis in mean.operator.output.axes) == 6


def test_a_diagonal_is_refused() -> None:
    """An Einstein sum that no nest is: one line with the equation."""
    with pytest.raises(
        InputError, match=r"at_y \(Einsum\): equation 'ii->i': an operand with a letter twice"
    ):
        imported(single("Einsum", [3, 3], equation="ii->i"))


def test_hostile_constants_are_not_computed(tmp_path: Path) -> None:
    """Constants beyond the limit stay unknown: nothing is filled, and the reason names the node."""
    nodes = [node("ConstantOfShape", "many", "c"), node("NonZero", "c", "z"), node("Gather", "x z", "y")]
    proto = model(nodes, [value("x", FLOAT, [4, 4])], [value("y", FLOAT, None)], [numbers("many", [2**30])])
    path = tmp_path / "many.onnx"
    onnx.save(proto, path)
    with pytest.raises(InputError, match=r"many\.onnx"):
        load_onnx(path)


@pytest.mark.parametrize("seed", range(3))
def test_anything_in_any_field_of_a_body(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models with bodies and recurrent nodes, broken anywhere, are imported or refused in one line."""

    def opened(proto: onnx.ModelProto, where: str, choices: Choices, *, bounded: bool) -> onnx.ModelProto:
        return inference.open_model(proto, where, choices, bounded=False)  # without a process each

    monkeypatch.setattr(graph, "open_model", opened)
    models = [
        made.branches(known=True),
        made.loop(known=True),
        made.loop(known=False),
        made.scan(),
        made.recurrent("LSTM", direction="bidirectional"),
        made.recurrent("GRU", linear_before_reset=1),
        made.quantised(),
    ]
    draw = random.Random(seed)
    for _ in range(effort(40)):
        proto = changed(draw.choice(models), draw)
        sizes = {axis.dim_param: 3 for g in proto.graph.input for axis in g.type.tensor_type.shape.dim}
        sizes.pop("", None)
        options = OnnxOptions(sizes, draw.random() < 0.3, {"*": "then"}, {"*": 3})
        told = ""
        try:
            load_onnx(proto, None, "made", options)
        except InputError as error:
            told = str(error)
        assert "\n" not in told


def test_supported_operations_have_builders() -> None:
    """What is listed as supported is built, moved, expanded or opened, in each domain."""
    from tilewright.workloads.onnx.expansion.expand import REWRITERS
    from tilewright.workloads.onnx.operations import EXPANDED, FOREIGN, MOVING, RENAMING, SUPPORTED
    from tilewright.workloads.onnx.operators import BUILDERS
    from tilewright.workloads.onnx.unfolding.microsoft import RULES

    rewritten = {op for domain, op in REWRITERS if not domain}
    assert set(BUILDERS) | rewritten | RENAMING | MOVING >= SUPPORTED
    assert rewritten >= EXPANDED
    for domain, operations in FOREIGN.items():
        assert {op for place, op in REWRITERS if place == domain} == set(operations) == set(RULES[domain])
    assert [op for op, _ in importer.operator_support()].count("LSTM") == 1
