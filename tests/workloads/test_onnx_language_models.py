"""Attention of a decoder in each form that ONNX files have, against the catalog's layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.workloads.catalog import resolve_model
from tilewright.workloads.families import family_network
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network

FORMS = ("Attention", "GroupQueryAttention", "repeated", "broadcast")
MICROSOFT = "com.microsoft"


@dataclass
class Block:
    """An ONNX graph that grows node by node.

    Parameters
    ----------
    batch, tokens, cached : of one step
    features : of a token
    heads, groups, width : heads of queries, heads of keys and values, features of a head
    """

    batch: int = 2
    tokens: int = 1
    cached: int = 7
    features: int = 4096
    heads: int = 32
    groups: int = 8
    width: int = 128
    nodes: list[Any] = field(default_factory=list)

    def numbers(self, name: str, values: Sequence[int]) -> str:
        tensor = helper.make_tensor(f"{name}_value", TensorProto.INT64, [len(values)], list(values))
        self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def add(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, list(inputs), [output], **attributes))
        return output

    def project(self, x: str, columns: tuple[int, int], name: str) -> str:
        weight = self.add("ConstantOfShape", [self.numbers(f"{name}_shape", columns)], f"{name}_weight")
        return self.add("MatMul", [x, weight], name)

    def split(self, x: str, heads: int) -> str:
        shape = self.numbers(f"{x}_heads", [self.batch, self.tokens, heads, self.width])
        return self.add(
            "Transpose", [self.add("Reshape", [x, shape], f"{x}_4")], f"{x}_split", perm=[0, 2, 1, 3]
        )

    def joined(self, x: str) -> str:
        rows = self.add("Transpose", [x], f"{x}_rows", perm=[0, 2, 1, 3])
        shape = self.numbers(f"{x}_joined", [self.batch, self.tokens, self.heads * self.width])
        return self.add("Reshape", [rows, shape], "attended")

    def weighted(self, query: str, key: str, value: str, order: Sequence[int]) -> str:
        scores = self.add("MatMul", [query, self.add("Transpose", [key], "turned", perm=order)], "scores")
        return self.add("MatMul", [self.add("Softmax", [scores], "shares", axis=-1), value], "sums")

    def attended(self, form: str) -> str:
        """Queries, keys and values with the cache, by the operation or operations of a form."""
        named = {"q_num_heads": self.heads, "kv_num_heads": self.groups}
        if form == "Attention":
            inputs = ["query", "key", "value", "", "past_key", "past_value"]
            self.nodes.append(
                helper.make_node(form, inputs, ["attended", "present_key", "present_value"], **named)
            )
            return "attended"
        if form == "GroupQueryAttention":
            total = self.numbers("total", [self.cached + self.tokens])
            total = self.add("Cast", [total], "total_32", to=TensorProto.INT32)
            inputs = ["query", "key", "value", "past_key", "past_value", "lengths", total]
            sizes = {"num_heads": self.heads, "kv_num_heads": self.groups, "domain": MICROSOFT}
            outputs = ["attended", "present_key", "present_value"]
            self.nodes.append(helper.make_node(form, inputs, outputs, **sizes))
            return "attended"
        query, key, value = (
            self.split(x, heads)
            for x, heads in (("query", self.heads), ("key", self.groups), ("value", self.groups))
        )
        key = self.add("Concat", ["past_key", key], "present_key", axis=2)
        value = self.add("Concat", ["past_value", value], "present_value", axis=2)
        each, context = self.heads // self.groups, self.cached + self.tokens
        if form == "broadcast":
            shape = self.numbers("grouped", [self.batch, self.groups, each, self.tokens, self.width])
            query = self.add("Reshape", [query, shape], "query_grouped")
            axis = self.numbers("axis", [2])
            key, value = (self.add("Unsqueeze", [x, axis], f"{x}_wide") for x in (key, value))
            sums = self.weighted(query, key, value, [0, 1, 2, 4, 3])
            shape = self.numbers("flat", [self.batch, self.heads, self.tokens, self.width])
            return self.joined(self.add("Reshape", [sums, shape], "sums_flat"))
        axis = self.numbers("axis", [2])
        wide = self.numbers("wide", [self.batch, self.groups, each, context, self.width])
        whole = self.numbers("whole", [self.batch, self.heads, context, self.width])
        key, value = (
            self.add(
                "Reshape",
                [
                    self.add("Expand", [self.add("Unsqueeze", [x, axis], f"{x}_new"), wide], f"{x}_wide"),
                    whole,
                ],
                f"{x}_repeated",
            )
            for x in (key, value)
        )
        return self.joined(self.weighted(query, key, value, [0, 1, 3, 2]))

    def network(self, form: str, folder: Path) -> Network:
        """The block as a file, imported."""
        inner = self.heads * self.width, self.groups * self.width
        for name, columns in (("query", inner[0]), ("key", inner[1]), ("value", inner[1])):
            self.project("x", (self.features, columns), name)
        self.project(self.attended(form), (inner[0], self.features), "y")
        cache = [self.batch, self.groups, self.cached, self.width]
        longer = [self.batch, self.groups, self.cached + self.tokens, self.width]
        inputs = {"x": [self.batch, self.tokens, self.features], "past_key": cache, "past_value": cache}
        tensors = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()
        ]
        if form == "GroupQueryAttention":
            tensors.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [self.batch]))
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)] + [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, longer)
            for name in ("present_key", "present_value")
        ]
        graph = helper.make_graph(self.nodes, "block", tensors, outputs)
        versions = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
        path = folder / "block.onnx"
        onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=10), path)
        return resolve_model(str(path))


def products(layers: Sequence[Any]) -> Counter[Operator]:
    """Operators that multiply, each with how often it is there."""
    return Counter(layer.operator for layer in layers if layer.operator.macs)


@pytest.mark.parametrize("form", FORMS)
def test_attention_has_the_products_of_the_catalog(form: str, tmp_path: Path) -> None:
    """Queries that share a head of keys are rows of one product, whatever operations say so."""
    tokens, cached = 5, 3
    imported = Block(tokens=tokens, cached=cached).network(form, tmp_path)
    family = family_network(f"llama3[phase=decode,tokens={tokens},cached={cached},batch=2]")
    own = [layer for layer in family.layers if layer.name.startswith("block1.attention.")]
    assert products(imported.layers) == products(own)
    assert sum(layer.operator.macs for layer in imported.layers) == sum(layer.operator.macs for layer in own)
    softmax = [layer for layer in (*imported.layers, *own) if "oftmax" in layer.name]
    elements = {layer.operator.iterations for layer in softmax}
    assert (len(softmax), len(elements)) == (2, 1)


def test_repeated_heads_are_read_once_for_their_queries(tmp_path: Path) -> None:
    """Keys that a file repeats are those of the cache: eight heads, not thirty-two."""
    network = Block().network("repeated", tmp_path)
    scores, mix = (layer.operator for layer in network.layers if layer.operator.kind == "matmul")
    for operator in (scores, mix):
        keys = operator.tensors[1]
        assert keys.footprint(operator.bounds) == 2 * 8 * 8 * 128


def test_repeats_in_another_order_are_left_as_they_are(tmp_path: Path) -> None:
    """Copies before the heads are no groups of neighbouring queries."""
    block = Block(heads=4, groups=2, width=8, features=32)
    block.nodes.clear()
    key = block.add("Unsqueeze", ["past_key", block.numbers("axis", [1])], "new")
    wide = block.add("Expand", [key, block.numbers("wide", [2, 2, 2, 7, 8])], "wide_key")
    whole = block.add("Reshape", [wide, block.numbers("whole", [2, 4, 7, 8])], "repeated")
    block.add("MatMul", ["x", block.add("Transpose", [whole], "turned", perm=[0, 1, 3, 2])], "y")
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [2, 4, 1, 8]), ("past_key", [2, 2, 7, 8]))
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(block.nodes, "block", tensors, outputs)
    path = tmp_path / "other.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.save(model, path)
    (layer,) = resolve_model(str(path)).layers
    assert layer.operator.bounds == {"B": 8, "M": 1, "N": 7, "K": 8}
