"""Random layers and mappings for emitted code, and what layers compute."""

from __future__ import annotations

import itertools
import random

import numpy as np

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.report.code.mapping.numpy_loops import allocated
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d, gemm, matmul

KINDS = ("even", "uneven", "imperfect", "strided")


def random_layer(choose: random.Random, kind: str) -> Operator:
    """A product or a convolution of at most some hundred iterations."""
    sizes = [choose.choice((1, 2, 3, 4, 5, 6)) for _ in range(3)]
    if kind != "strided" and choose.random() < 0.5:
        if choose.random() < 0.3:
            return matmul(m=sizes[0], n=sizes[1], k=sizes[2], batch=2)
        return gemm(m=sizes[0], n=sizes[1], k=sizes[2])
    stride = choose.choice((2, 3)) if kind == "strided" else 1
    unused = choose.randrange(stride)
    p, r = choose.choice((1, 2, 3)), choose.choice((1, 2))
    return conv2d(
        n=choose.choice((1, 2)),
        k=choose.choice((1, 3)),
        c=choose.choice((1, 2)),
        h=(p - 1) * stride + r + unused,
        q=choose.choice((1, 2, 3)),
        r=r,
        s=choose.choice((1, 2)),
        stride=(stride, choose.choice((1, stride))),
    )


def random_mapping(choose: random.Random, operator: Operator, kind: str) -> Mapping:
    """Loops in any order on three levels, with one spatial place; stores together, or each where it likes."""
    levels = ("DRAM", "SPM", "RF")
    loops: list[list[Node]] = [[], [], []]
    for dim, bound in operator.bounds.items():
        left = bound
        for place in range(3):
            sizes = [n for n in range(1, left + 1) if kind == "imperfect" or left % n == 0]
            tile = 1 if place == 2 else choose.choice(sizes)
            if tile < left:
                side = place == 1 and choose.random() < 0.3
                loops[place].append(Spatial(dim, tile, "x") if side else Temporal(dim, tile))
                left = tile
    nodes: list[Node] = []
    for level, own in zip(levels, loops, strict=True):
        choose.shuffle(own)
        stores: list[Node] = [Storage(tensor.name, level) for tensor in operator.tensors]
        if kind == "uneven" and level != "DRAM":
            for store in stores:
                own.insert(choose.randrange(len(own) + 1), store)
            nodes += own
        else:
            nodes += [*stores, *own]
    return Mapping(tuple(nodes))


def directly(operator: Operator, data: dict[str, np.ndarray]) -> np.ndarray:
    """Every iteration by itself, in the operator's own order."""
    output = operator.tensors[-1]
    result = np.zeros(allocated(output), np.int64)
    for point in itertools.product(*(range(bound) for bound in operator.bounds.values())):
        index = dict(zip(operator.bounds, point, strict=True))
        value = 1
        for tensor in operator.tensors[:-1]:
            value *= int(data[tensor.name][place(tensor.axes, index)])
        result[place(output.axes, index)] += value
    return result


def place(axes: object, index: dict[str, int]) -> tuple[int, ...]:
    """Of one element."""
    return tuple(sum(term.stride * index[term.dim] for term in axis.terms) for axis in axes)  # type: ignore[attr-defined]
