"""Gradients: nests walked loop by loop against numerical derivatives of the forward nest."""

from __future__ import annotations

import itertools
from collections.abc import Mapping as MappingABC

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.foundation.arrays import Floats
from tilewright.workloads.mapping.gradients import gathered, gradient
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import conv2d, gemm, matmul, pool2d, transposed_conv2d


def walk(operator: Operator, inputs: MappingABC[str, Floats]) -> Floats:
    """The result of a multiply-accumulate nest, iteration by iteration."""
    result = np.zeros([axis.size for axis in operator.output.axes])
    for point in itertools.product(*(range(bound) for bound in operator.bounds.values())):
        at = dict(zip(operator.bounds, point, strict=True))
        places = {
            tensor.name: tuple(sum(t.stride * at[t.dim] for t in axis.terms) for axis in tensor.axes)
            for tensor in operator.tensors
        }
        term = 1.0
        for tensor in operator.inputs:
            term *= inputs[tensor.name][places[tensor.name]]
        result[places[operator.output.name]] += term
    return result


def values(operator: Operator, name: str, seed: int) -> Floats:
    """Small whole numbers for a tensor."""
    shape = [axis.size for axis in operator.tensor(name).axes]
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(float)


def derivative(operator: Operator, operand: str, inputs: dict[str, Floats], arriving: Floats) -> Floats:
    """d(sum of arriving * O) / d(operand), element by element; exact, as a nest is linear in each operand."""
    result = np.zeros_like(inputs[operand])
    for place in np.ndindex(result.shape):
        unit = np.zeros_like(result)
        unit[place] = 1.0
        result[place] = (walk(operator, {**inputs, operand: unit}) * arriving).sum()
    return result


OPERATORS = {
    "strided": conv2d(n=2, k=2, c=2, r=3, s=2, h=6, w=5, stride=2, pad=1),
    "dilated": conv2d(k=1, c=2, r=2, s=3, p=3, q=2, dilation=2),
    "grouped": conv2d(k=4, c=4, r=2, s=2, p=2, q=2, groups=2),
    "depthwise": conv2d(k=6, c=3, r=2, s=2, p=2, q=3, stride=2, groups=3),
    "transposed": transposed_conv2d(k=2, c=2, p=2, q=3, r=3, s=2, stride=2),
    "product": gemm(m=3, n=4, k=2),
    "stored by rows": gemm(m=3, n=4, k=2, transpose_b=True),
    "batched": matmul(m=3, n=2, k=2, batch=2),
}


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_gradients_are_derivatives(operator: Operator) -> None:
    """Both gradients of a nest equal the derivatives of what it computes, with as many multiplications."""
    names = [tensor.name for tensor in operator.inputs]
    inputs = {name: values(operator, name, i) for i, name in enumerate(names)}
    arriving = values(operator, operator.output.name, 9)
    for operand in names:
        made = gradient(operator, operand)
        given_values = {**inputs, f"d{operator.output.name}": arriving}
        assert np.array_equal(walk(made, given_values), derivative(operator, operand, inputs, arriving))
        assert made.macs == operator.macs
        assert made.output.name == f"d{operand}"
        assert [tensor.role for tensor in made.inputs] == [Role.INPUT, Role.WEIGHT]


@settings(max_examples=effort(25), deadline=None)
@given(
    kernel=st.sampled_from([1, 2, 3, 5]),
    dilation=st.integers(1, 2),
    rows=st.integers(1, 4),
    columns=st.integers(1, 3),
    groups=st.sampled_from([1, 2]),
    seed=st.integers(0, 100),
)
def test_the_gather_form_computes_the_same(
    kernel: int, dilation: int, rows: int, columns: int, groups: int, seed: int
) -> None:
    """A convolution that keeps its size propagates errors as a convolution with turned filters."""
    reach = (kernel - 1) * dilation
    pads = (reach // 2, 0, reach - reach // 2, 0)
    forward = conv2d(
        k=2 * groups,
        c=2 * groups,
        r=kernel,
        s=1,
        h=rows,
        w=columns,
        pad=pads,
        dilation=(dilation, 1),
        groups=groups,
    )
    elements = 2 * groups * rows * columns
    gather = gathered(forward, elements)
    assert gather is not None
    assert gather == gradient(forward, "I", elements)
    assert gather.kind == "conv2d"
    assert gather.macs == forward.macs
    weights, arriving = values(forward, "W", seed), values(forward, "O", seed + 1)
    after = reach - pads[0]
    border = [(0, 0)] * (arriving.ndim - 2) + [(after, reach - after), (0, 0)]
    turned = weights[..., ::-1, :]
    computed = walk(gather, {"dO": np.pad(arriving, border), "W": turned})
    scattered = walk(gradient(forward, "I"), {"dO": arriving, "W": weights})
    assert np.array_equal(computed, scattered[..., pads[0] : pads[0] + rows, :])


def test_the_gather_form_is_for_convolutions_that_keep_their_size() -> None:
    """With a stride, or without padding, the scatter form has fewer multiplications and is taken."""
    strided = conv2d(k=2, c=2, r=3, s=3, h=8, w=8, stride=2, pad=1)
    unpadded = conv2d(k=2, c=2, r=3, s=3, h=8, w=8)
    for operator in (strided, unpadded):
        made = gradient(operator, "I", 2 * 8 * 8)
        assert made.kind == "transposed_conv2d"
        assert made.macs == operator.macs
    assert gathered(gemm(m=1, n=2, k=3), 3) is None


def test_loops_correspond_to_what_they_do() -> None:
    """Error propagation sums over output channels, a weight update over samples or rows."""
    forward = conv2d(n=4, k=8, c=2, r=3, s=3, p=5, q=5)
    likes = {d.name: d.like for d in gradient(forward, "I").dimensions}
    assert (likes["K"], likes["C"], likes["N"]) == ("C", "K", "N")
    likes = {d.name: d.like for d in gradient(forward, "W").dimensions}
    assert likes == {"N": "C", "K": "K", "C": "N", "P": "R", "Q": "S", "R": "P", "S": "Q"}
    likes = {d.name: d.like for d in gradient(gemm(m=4, n=2, k=3), "B").dimensions}
    assert likes == {"M": "C", "N": "K", "K": "P"}
    likes = {d.name: d.like for d in gradient(gemm(m=4, n=2, k=3), "A").dimensions}
    assert likes == {"M": "P", "N": "C", "K": "K"}


def test_pooling_passes_errors_to_its_windows() -> None:
    """The backward pass of pooling writes where the forward pass read, and multiplies nothing."""
    forward = pool2d(c=2, r=3, s=3, h=7, w=7, stride=2)
    made = gradient(forward, "I")
    assert not made.is_mac
    assert made.output.axes == forward.tensor("I").axes
    assert [tensor.name for tensor in made.inputs] == ["dO"]
