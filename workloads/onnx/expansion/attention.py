"""Attention as what it computes: products of queries and keys, a softmax, products with the values.

Sources: ONNX, ``Attention`` (version 23); ONNX Runtime, ``docs/ContribOperators.md`` for ``Attention``,
``QAttention``, ``MultiHeadAttention`` and ``GroupQueryAttention``.  Masks and scales change no count and are
part of the softmax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.workloads.onnx.expansion.emitter import Emitter


@dataclass(frozen=True, slots=True)
class _Heads:
    """Queries, keys or values as batch x heads x tokens x features of a head."""

    tensor: str
    shape: tuple[int, int, int, int]


def attention(emit: Emitter) -> None:
    """``Attention`` of ONNX; queries, keys and values with three or four axes, and a cache."""
    parts = []
    for at, heads in ((0, "q_num_heads"), (1, "kv_num_heads"), (2, "kv_num_heads")):
        tensor = emit.input(at)
        shape = emit.shape(tensor)
        if len(shape) == 3:
            parts.append(_split(emit, tensor, emit.number(heads), "qkv"[at]))
        else:
            parts.append(_Heads(tensor, _four(emit, shape)))
    query, key, value = parts
    key, value = _cached(emit, key, 4, 1), _cached(emit, value, 5, 2)
    flat = len(emit.shape(emit.input(0))) == 3
    _weighted(emit, query, key, value, mask=emit.input(3), flat=flat)


def microsoft_attention(emit: Emitter) -> None:
    """``Attention`` and ``QAttention`` of ONNX Runtime: the three projections joined, then the attention."""
    batch, length, width = emit.shape(emit.input(0), 3)
    joined = emit.shape(emit.input(1), 2)[1]
    sizes = emit.origin.attributes.get("qkv_hidden_sizes") or [joined // 3] * 3
    if len(sizes) != 3 or sum(sizes) != joined:
        raise emit.error(f"qkv_hidden_sizes: {sizes}, the joined weights have {joined} columns")
    del width
    product = emit.node("MatMul", [emit.input(0), emit.input(1)], (batch, length, joined), "projection")
    rows = [emit.row(product, i, (batch, length, size), "projected") for i, size in enumerate(sizes)]
    heads = emit.number("num_heads")
    query, key, value = (_split(emit, row, heads, "qkv"[i]) for i, row in enumerate(rows))
    past = 8 if emit.origin.op == "QAttention" else 4
    if emit.has(past):
        key, value = (_joined(emit, part, emit.input(past), "past", i) for i, part in enumerate((key, value)))
    _weighted(emit, query, key, value, mask="", flat=True)
    _present(emit, [product])


def multi_head(emit: Emitter) -> None:
    """``MultiHeadAttention``: three operands, or keys and values (or all three) packed into one."""
    heads = emit.number("num_heads")
    query, key, value = emit.input(0), emit.input(1), emit.input(2)
    shape = emit.shape(query)
    if len(shape) == 5:
        batch, length, _, _, head = shape
        rows = [emit.row(query, i, (batch, length, heads * head), "unpacked") for i in range(3)]
        parts = [_split(emit, row, heads, "qkv"[i]) for i, row in enumerate(rows)]
    else:
        parts = [_split(emit, query, heads, "q")]
        keys = emit.shape(key)
        if len(keys) == 5:
            batch, length, _, _, head = keys
            rows = [emit.row(key, i, (batch, length, heads * head), "unpacked") for i in range(2)]
            parts += [_split(emit, row, heads, "kv"[i]) for i, row in enumerate(rows)]
        else:
            for name, tensor in (("k", key), ("v", value)):
                four = len(emit.shape(tensor)) == 4
                parts.append(
                    _Heads(tensor, _four(emit, emit.shape(tensor)))
                    if four
                    else _split(emit, tensor, heads, name)
                )
    query_, key_, value_ = parts
    key_, value_ = _cached(emit, key_, 6, 1), _cached(emit, value_, 7, 2)
    _weighted(emit, query_, key_, value_, mask="", flat=True)


def grouped(emit: Emitter) -> None:
    """``GroupQueryAttention``: fewer heads of keys and values than of queries, and a cache."""
    heads, groups = emit.number("num_heads"), emit.number("kv_num_heads")
    batch, length, width = emit.shape(emit.input(0), 3)
    if emit.has(1):
        query = _split(emit, emit.input(0), heads, "q")
        key, value = (_split(emit, emit.input(i), groups, "_kv"[i]) for i in (1, 2))
    else:
        head = width // (heads + 2 * groups)
        sizes = (heads * head, groups * head, groups * head)
        rows = [emit.row(emit.input(0), i, (batch, length, size), "unpacked") for i, size in enumerate(sizes)]
        counts = (heads, groups, groups)
        query, key, value = (_split(emit, row, counts[i], "qkv"[i]) for i, row in enumerate(rows))
    if emit.number("do_rotary"):
        query, key = (
            _Heads(emit.node("RotaryEmbedding", [part.tensor], part.shape, f"{name}_rotated"), part.shape)
            for name, part in (("q", query), ("k", key))
        )
    seen = emit.graph.shapes.get([*emit.origin.outputs, "", ""][1])
    key, value = (
        _extended(emit, part, emit.input(at), "kv"[at - 3], None if seen is None else seen[2], at - 2)
        for part, at in ((key, 3), (value, 4))
    )
    _weighted(emit, query, key, value, mask="", flat=True)


def _split(emit: Emitter, tensor: str, heads: int, name: str) -> _Heads:
    batch, length, width = emit.shape(tensor, 3)
    if heads < 1 or width % heads:
        raise emit.error(f"{heads} heads do not divide {width} features")
    shape = (batch, heads, length, width // heads)
    return _Heads(emit.node("Transpose", [tensor], shape, f"{name}_heads"), shape)


def _four(emit: Emitter, shape: Sequence[int]) -> tuple[int, int, int, int]:
    if len(shape) != 4:
        raise emit.error(f"expected 3 or 4 axes, got shape {list(shape)}")
    return shape[0], shape[1], shape[2], shape[3]


def _cached(emit: Emitter, part: _Heads, past: int, present: int) -> _Heads:
    """Keys or values behind those of a cache."""
    if not emit.has(past):
        result = [*emit.origin.outputs, "", "", ""][present]
        emit.alias(part.tensor, result)
        return part
    before = _four(emit, emit.shape(emit.input(past)))
    batch, heads, length, head = part.shape
    shape = (batch, heads, before[2] + length, head)
    result = [*emit.origin.outputs, "", "", ""][present]
    whole = emit.node(
        "Concat", [emit.input(past), part.tensor], shape, f"present{present}", result or None, axis=2
    )
    return _Heads(whole, shape)


def _extended(emit: Emitter, part: _Heads, past: str, name: str, seen: int | None, output: int) -> _Heads:
    """Keys or values with the cache that holds as many tokens as the node's result says."""
    batch, heads, length, head = part.shape
    result = [*emit.origin.outputs, "", ""][output]
    if not past:
        emit.alias(part.tensor, result)
        return part
    shape = (batch, heads, seen or emit.shape(past, 4)[2] + length, head)
    whole = emit.node("Concat", [past, part.tensor], shape, f"present_{name}", result or None, axis=2)
    return _Heads(whole, shape)


def _joined(emit: Emitter, part: _Heads, past: str, name: str, at: int) -> _Heads:
    batch, heads, length, head = part.shape
    before = emit.shape(past, 5)[3]
    row = emit.row(past, at, (batch, heads, before, head), name)
    shape = (batch, heads, before + length, head)
    return _Heads(emit.node("Concat", [row, part.tensor], shape, f"{name}{at}_joined", axis=2), shape)


def _present(emit: Emitter, sources: Sequence[str]) -> None:
    """The second result of a node that packs keys and values into one."""
    result = [*emit.origin.outputs, ""][1]
    if result and result in emit.graph.shapes:
        emit.node("Concat", sources, emit.graph.shapes[result], "present", result, axis=0)


def _weighted(emit: Emitter, query: _Heads, key: _Heads, value: _Heads, *, mask: str, flat: bool) -> None:
    """Scores, their softmax, and the sums of values; heads of queries in groups share keys and values."""
    batch, heads, length, head = query.shape
    _, groups, tokens, width = key.shape
    if width != head or groups < 1 or heads % groups or value.shape[1:3] != (groups, tokens):
        raise emit.error(
            f"queries {list(query.shape)}, keys {list(key.shape)} and values {list(value.shape)} do not fit"
        )
    columns = value.shape[3]
    each = heads // groups
    outer = (batch, heads) if each == 1 else (batch, groups, each)
    ones = (batch, heads) if each == 1 else (batch, groups, 1)
    q = emit.node("Reshape", [query.tensor], (*outer, length, head), "q") if each > 1 else query.tensor
    k = emit.node("Transpose", [key.tensor], (*ones, head, tokens), "k_transposed")
    v = emit.node("Reshape", [value.tensor], (*ones, tokens, columns), "v") if each > 1 else value.tensor
    scores = emit.node("MatMul", [q, k], (*outer, length, tokens), "scores")
    if mask in emit.activations and each == 1:
        scores = emit.node("Add", [scores, mask], (*outer, length, tokens), "masked")
    shares = emit.node("Softmax", [scores], (*outer, length, tokens), "softmax")
    sums = emit.node("MatMul", [shares, v], (*outer, length, columns), "values")
    shape = (batch, length, heads * columns) if flat else (batch, heads, length, columns)
    emit.node("Transpose" if flat else "Reshape", [sums], shape, "joined", emit.origin.outputs[0])
