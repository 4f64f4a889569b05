"""Builders: sizes, axes, multiply-accumulates and footprints, against plain enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Operator, Role, Tensor
from tilewright.workloads.mapping.operators import (
    conv2d,
    depthwise_conv2d,
    elementwise,
    fully_connected,
    gemm,
    matmul,
    pool2d,
    reduction,
    transposed_conv2d,
)


def touched(operator: Operator, tensor: Tensor, tile: dict[str, int]) -> np.ndarray:
    """Elements of a tensor that one tile at the origin touches, one by one."""
    hit = np.zeros([axis.size for axis in tensor.axes], dtype=bool)
    for point in itertools.product(*(range(tile[d.name]) for d in operator.dimensions)):
        at = dict(zip(operator.bounds, point, strict=True))
        hit[tuple(sum(term.stride * at[term.dim] for term in axis.terms) for axis in tensor.axes)] = True
    return hit


def box(hit: np.ndarray) -> int:
    """Elements of the smallest box around the touched ones."""
    return math.prod(int(np.ptp(where)) + 1 for where in np.nonzero(hit)) if hit.ndim else 1


def sizes(operator: Operator, name: str) -> tuple[int, ...]:
    return tuple(axis.size for axis in operator.tensor(name).axes)


small = st.integers(1, 3)


@st.composite
def convolutions(draw: st.DrawFn) -> Operator:
    """Small convolutions of every kind, by output size or by input size."""
    groups = draw(small)
    r, s, dilation, stride = draw(small), draw(small), draw(st.integers(1, 2)), draw(small)
    given_by = {"p": draw(small), "q": draw(small)}
    pad: int | tuple[int, ...] = 0
    if draw(st.booleans()):
        given_by = {"h": draw(st.integers(5, 7)), "w": draw(st.integers(5, 7))}
        pad = draw(st.one_of(small, st.tuples(small, small), st.tuples(small, small, small, small)))
    return conv2d(
        n=draw(st.integers(1, 2)),
        k=groups * draw(st.integers(1, 2)),
        c=groups * draw(st.integers(1, 2)),
        r=r,
        s=s,
        stride=stride,
        dilation=(dilation, 1),
        groups=groups,
        pad=pad,
        **given_by,
    )


@settings(max_examples=effort(60), deadline=None)
@given(convolutions(), st.data())
def test_footprint_is_the_box_of_enumerated_accesses(operator: Operator, data: st.DataObject) -> None:
    """The footprint of any tile of a convolution is the box around the elements it really touches."""
    tile = {name: data.draw(st.integers(1, min(2, bound))) for name, bound in operator.bounds.items()}
    for tensor in operator.tensors:
        assert tensor.footprint(tile) == box(touched(operator, tensor, tile))


@settings(max_examples=effort(60), deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_output_size_counts_the_windows_that_fit(
    h: int, r: int, stride: int, dilation: int, top: int, bottom: int
) -> None:
    """The output rows are as many as windows that lie wholly inside the padded input."""
    padded, span = h + top + bottom, (r - 1) * dilation + 1
    starts = [row for row in range(0, padded, stride) if row + span <= padded]

    def build() -> Operator:
        return conv2d(
            k=1, c=1, r=r, s=1, h=h, w=1, stride=(stride, 1), dilation=(dilation, 1), pad=(top, 0, bottom, 0)
        )

    if starts:
        operator = build()
        assert operator.bounds["P"] == len(starts)
        assert sizes(operator, "I") == (1, 1, padded, 1)
    else:
        with pytest.raises(InputError, match="kernel spans"):
            build()


def test_dense_convolution_lists_every_dimension_in_order() -> None:
    """A dense convolution has the loops N K C P Q R S and the tensors I, W, O in ONNX layouts."""
    operator = conv2d(n=4, k=64, c=3, h=224, w=224, r=7, s=7, stride=2, pad=3)
    assert operator.kind == "conv2d"
    assert operator.bounds == {"N": 4, "K": 64, "C": 3, "P": 112, "Q": 112, "R": 7, "S": 7}
    assert [tensor.name for tensor in operator.tensors] == ["I", "W", "O"]
    assert [tensor.role for tensor in operator.tensors] == [Role.INPUT, Role.WEIGHT, Role.OUTPUT]
    assert sizes(operator, "I") == (4, 3, 230, 230)
    assert sizes(operator, "W") == (64, 3, 7, 7)
    assert sizes(operator, "O") == (4, 64, 112, 112)
    assert operator.macs == 4 * 64 * 3 * 112 * 112 * 49
    assert operator.reduction_dims == {"C", "R", "S"}


def test_input_size_follows_from_the_output_size() -> None:
    """Where only the output size is given, the input is exactly what the windows touch."""
    operator = conv2d(k=1, c=1, p=112, q=56, r=7, s=3, stride=2, dilation=(1, 2))
    assert sizes(operator, "I") == (1, 1, 229, 115)


def test_grouped_convolution_has_a_group_loop() -> None:
    """Grouped convolutions count the channels of one group in K and C."""
    operator = conv2d(k=8, c=4, p=5, q=5, r=3, s=3, groups=2)
    assert list(operator.bounds) == ["N", "G", "K", "C", "P", "Q", "R", "S"]
    assert sizes(operator, "W") == (2, 4, 2, 3, 3)
    assert operator.macs == 8 * 2 * 25 * 9


def test_depthwise_convolution_has_no_channel_sum() -> None:
    """Groups as many as channels make a depthwise convolution, with K only for a multiplier."""
    plain = depthwise_conv2d(c=32, h=14, w=14, r=3, s=3, pad=1)
    assert plain == conv2d(k=32, c=32, h=14, w=14, r=3, s=3, pad=1, groups=32)
    assert plain.kind == "depthwise"
    assert list(plain.bounds) == ["N", "G", "P", "Q", "R", "S"]
    assert plain.macs == 32 * 196 * 9
    doubled = depthwise_conv2d(c=32, multiplier=2, h=14, w=14, r=3, s=3, pad=1)
    assert list(doubled.bounds) == ["N", "G", "K", "P", "Q", "R", "S"]
    assert doubled.macs == 2 * plain.macs


def test_transposed_convolution_scatters_as_numpy_does() -> None:
    """The output elements that a transposed convolution reaches are those of a plain scatter."""
    operator = transposed_conv2d(k=2, c=3, p=3, q=2, r=3, s=2, stride=(2, 1), dilation=(1, 2), pad=1)
    hit = touched(operator, operator.output, operator.bounds)
    expected = np.zeros((1, 2, 7, 4), dtype=bool)
    for p, q, r, s in itertools.product(range(3), range(2), range(3), range(2)):
        expected[:, :, 2 * p + r, q + 2 * s] = True
    assert (hit == expected).all()
    assert operator.macs == 2 * 3 * 3 * 2 * 3 * 2


def test_transposed_convolution_padding_only_crops() -> None:
    """Padding leaves loops and multiply-accumulates alone; output padding enlarges the allocation."""
    plain = transposed_conv2d(k=2, c=4, p=4, q=4, r=4, s=4, stride=2)
    assert plain == transposed_conv2d(k=2, c=4, p=4, q=4, r=4, s=4, stride=2, pad=1)
    padded = transposed_conv2d(k=2, c=4, p=4, q=4, r=4, s=4, stride=2, output_padding=1, groups=2)
    assert sizes(padded, "O") == (1, 2, 1, 11, 11)
    assert sizes(padded, "W") == (2, 2, 1, 4, 4)
    with pytest.raises(InputError, match="leaves none"):
        transposed_conv2d(k=1, c=1, p=1, q=1, r=1, s=1, pad=1)


def test_gemm_corresponds_to_a_convolution() -> None:
    """A matrix product's loops stand for output rows, output channels and input channels."""
    operator = gemm(m=5, n=7, k=3)
    assert [(d.name, d.like) for d in operator.dimensions] == [("M", "P"), ("N", "K"), ("K", "C")]
    assert [sizes(operator, name) for name in "ABC"] == [(5, 3), (3, 7), (5, 7)]
    assert sizes(gemm(m=5, n=7, k=3, transpose_a=True, transpose_b=True), "A") == (3, 5)
    assert fully_connected(n=2, k=10, c=20) == gemm(m=2, n=10, k=20, transpose_b=True)


def test_matmul_folds_an_unbatched_operand_into_gemm() -> None:
    """With a batch in the first operand alone, the batch becomes rows of one matrix product."""
    assert matmul(batch=(2, 3), b_batch=(), m=4, n=5, k=6) == gemm(m=24, n=5, k=6)
    assert matmul(m=4, n=5, k=6) == gemm(m=4, n=5, k=6)


@settings(max_examples=effort(40), deadline=None)
@given(st.lists(st.tuples(small, st.sampled_from(["both", "a", "b"])), max_size=3))
def test_matmul_broadcasts_as_numpy_does(axes: list[tuple[int, str]]) -> None:
    """Sizes of all three tensors agree with numpy's broadcast batched product."""
    a = [size if where != "b" else 1 for size, where in axes]
    b = [size if where != "a" else 1 for size, where in axes]
    result = np.matmul(np.ones([*a, 2, 3]), np.ones([*b, 3, 4]))
    operator = matmul(m=2, n=4, k=3, batch=a, b_batch=b)
    assert math.prod(sizes(operator, "A")) == math.prod(a) * 6
    assert math.prod(sizes(operator, "B")) == math.prod(b) * 12
    assert math.prod(sizes(operator, "C")) == result.size
    assert operator.macs == result.size * 3


def test_matmul_refuses_batches_that_do_not_broadcast() -> None:
    """Batch axes of different sizes are an error, as in numpy."""
    with pytest.raises(InputError, match="do not broadcast"):
        matmul(m=2, n=2, k=2, batch=(2,), b_batch=(3,))


def test_pooling_counts_no_macs() -> None:
    """Pooling keeps channels apart, corresponds to K in them, and counts no multiply-accumulates."""
    operator = pool2d(n=2, c=64, h=112, w=112, r=3, s=3, stride=2, pad=1)
    assert list(operator.bounds.values()) == [2, 64, 56, 56, 3, 3]
    assert operator.macs == 0
    assert operator.dimensions[1].like == "K"
    assert operator.reduction_dims == {"R", "S"}


def test_global_pooling_covers_the_whole_input() -> None:
    """Without a window size, one window covers the input."""
    assert pool2d(c=8, h=7, w=5).bounds == {"N": 1, "C": 8, "P": 1, "Q": 1, "R": 7, "S": 5}


@settings(max_examples=effort(60), deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2))
def test_ceiling_pooling_counts_windows_that_start_on_data(h: int, r: int, stride: int, pad: int) -> None:
    """Rounding up adds a window that overhangs the end, but none that starts beyond the data."""
    if h + 2 * pad < r or pad >= r:
        return
    last = h + 2 * pad - r
    starts = [row for row in range(0, last + stride, stride) if row < h + pad]
    operator = pool2d(c=1, h=h, w=1, r=r, s=1, stride=(stride, 1), pad=(pad, 0), ceil=True)
    assert operator.bounds["P"] == len(starts)
    assert sizes(operator, "I")[2] >= starts[-1] + r


def test_elementwise_operands_broadcast() -> None:
    """An operand does not depend on the loops along which it broadcasts."""
    operator = elementwise(shape=(2, 8, 5, 5), operands=[(2, 8, 5, 5), (8, 1, 1), ()])
    assert [sorted(tensor.dims) for tensor in operator.tensors] == [
        ["K", "N", "P", "Q"],
        ["K"],
        [],
        ["K", "N", "P", "Q"],
    ]
    assert not operator.is_mac


@pytest.mark.parametrize(
    ("shape", "names"),
    [((), "K"), ((3,), "K"), ((2, 3), "NK"), ((2, 3, 4), "NPK"), ((1, 2, 3, 4), "NKPQ"), ((1,) * 5, "NGKPQ")],
)
def test_elementwise_axes_are_named_after_a_convolution_output(shape: tuple[int, ...], names: str) -> None:
    """Every rank has its conventional axis names, and more than five axes work too."""
    assert "".join(elementwise(shape=shape).bounds) == names
    assert list(elementwise(shape=(2, *([1] * 5))).bounds) == ["D0", "N", "G", "K", "P", "Q"]


def test_reduction_drops_axes() -> None:
    """A mean over the last axis reads everything and writes one element per row."""
    operator = reduction(shape=(2, 16, 32), over=[-1])
    assert operator.reduction_dims == {"K"}
    assert math.prod(sizes(operator, "O")) == 32
    with pytest.raises(InputError, match="axis 3"):
        reduction(shape=(2, 2), over=[3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0, "p": 1, "q": 1}, "conv: K: expected at least 1, got 0"),
        ({"k": 1, "q": 1}, "conv: P: missing, expected P or H"),
        ({"k": 1, "p": 3, "h": 9, "q": 1}, "conv: P: 3 contradicts H=9, which gives 7"),
        ({"k": 3, "p": 1, "q": 1, "groups": 2}, "conv: groups: 2 does not divide K=3"),
        ({"k": 1, "p": 1, "q": 1, "stride": (1, 2, 3)}, "conv: stride: expected 1 or 2 numbers, got 3"),
        ({"k": 1, "p": 1, "q": 1, "pad": -1}, "conv: pad: expected at least 0, got -1"),
        ({"k": 1, "p": 1, "q": 1, "pad": (1, 2, 3)}, "conv: pad: expected 1, 2 or 4 numbers, got 3"),
        ({"k": 1, "p": 1, "q": 1, "pad": 2}, "conv: pad: 4 elements of padding leave no input of the 3"),
    ],
)
def test_bad_convolutions_name_the_field(arguments: dict[str, object], message: str) -> None:
    """Every bad argument of a convolution is told by its field and what was expected."""
    with pytest.raises(InputError) as caught:
        conv2d(**({"c": 2, "r": 3, "s": 3} | arguments))  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pool2d(c=1, p=2, q=2), "pool: R: missing"),
        (lambda: pool2d(c=1, p=2, q=2, r=2), "pool: S: missing"),
        (
            lambda: elementwise(shape=(2, 3), operands=[(3, 3)]),
            "elementwise: operands: .* does not broadcast",
        ),
        (lambda: elementwise(shape=(2,), operands=[(1, 2)]), "elementwise: operands: .* does not broadcast"),
        (lambda: elementwise(shape=(2,), operands=0), "elementwise: operands: expected at least 1"),
        (lambda: gemm(m=1, n=-2, k=1), "gemm: N: expected at least 1, got -2"),
    ],
)
def test_other_bad_arguments_name_the_field(build: object, message: str) -> None:
    """The other builders tell bad arguments in the same way."""
    with pytest.raises(InputError, match=message):
        build()  # type: ignore[operator]
