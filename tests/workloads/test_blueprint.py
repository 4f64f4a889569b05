"""Blueprints: shapes that do not fit are refused where they meet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.foundation.errors import InputError
from tilewright.workloads.blueprint import Blueprint, Value


def net() -> Blueprint:
    return Blueprint("tiny", 2)


FAULTS: dict[str, tuple[Callable[[Blueprint, Value], object], str]] = {
    "sum": (lambda n, x: n.add(x, n.conv(x, 5, 1)), "tiny: inner.add: adds [2, 4, 6, 6] and [2, 5, 6, 6]"),
    "join": (lambda n, x: n.concat(x, n.max_pool(x, 2)), "joins [2, 4, 6, 6] and [2, 4, 5, 5] along axis 1"),
    "product": (lambda n, x: n.multiply(x, n.conv(x, 2, 1)), "multiplies [2, 4, 6, 6] by [2, 2, 6, 6]"),
    "window": (lambda n, x: n.conv(x, 1, 9), "a window of 9 x 9 does not fit [2, 4, 6, 6]"),
    "groups": (lambda n, x: n.conv(x, 6, 1, groups=4), "4 groups do not divide 4 and 6 channels"),
    "crop": (lambda n, x: n.crop(x, (8, 2)), "crops [2, 4, 6, 6] to 8 x 2"),
    "picture": (lambda n, x: n.conv(n.flatten(x), 1, 1), "expected batch x channels x rows x columns"),
    "rows": (lambda n, x: n.dense(x, 3), "expected rows x features, got [2, 4, 6, 6]"),
    "reshape": (lambda n, x: n.reshape(x, (2, 5)), "reshapes [2, 4, 6, 6] to [2, 5]"),
    "slice": (lambda n, x: n.slice(x, 3, 9), "takes 3:9 of 4 elements"),
    "matrices": (lambda n, x: n.matmul(x, n.conv(x, 3, 1)), "multiplies [2, 4, 6, 6] by [2, 3, 6, 6]"),
}


@pytest.mark.parametrize(("fault", "message"), FAULTS.values(), ids=FAULTS)
def test_shapes_that_do_not_fit(fault: Callable[[Blueprint, Value], object], message: str) -> None:
    """Every operation checks its operands, and names the network, the place and the shapes."""
    drawn = net()
    x = drawn.image(4, 6)
    with drawn.scope("inner"), pytest.raises(InputError) as caught:
        fault(drawn, x)
    assert message in str(caught.value)


def test_values_have_the_shapes_that_onnx_infers() -> None:
    """Inferred shapes agree with ONNX's own inference, or the import would not have the layers' sizes."""
    drawn = net()
    x = drawn.image(3, 17, 13)
    x = drawn.conv(x, 6, (3, 5), stride=(2, 1), pad="same", dilation=(1, 2), norm=True, act="swish")
    assert x.shape == (2, 6, 9, 13)
    y = drawn.average_pool(drawn.upsample(x, 2), 3, stride=2, ceil=True)
    assert y.shape == (2, 6, 9, 13)
    z = drawn.transposed(drawn.pad(y, (0, 1, 0, 2)), 4, 3, stride=2, pad=1)
    assert z.shape == (2, 4, 17, 31)
    drawn.output(z, drawn.global_average(y))
    network = drawn.network()
    assert network.batch == 2
    assert network.outputs == {"upconv", "global_pool"}
    assert [layer.name for layer in network.mac_layers] == ["conv", "upconv"]
    assert network.layer("conv").fused == ("BatchNormalization",)
    assert network.parameters == 6 * 3 * 15 + 2 * 6 + 6 * 4 * 9 + 4


def test_names_are_unique_and_scoped() -> None:
    """A name that is taken gets a number; scopes are joined by points."""
    drawn = net()
    x = drawn.image(3, 8)
    with drawn.scope("a"), drawn.scope("b"):
        first = drawn.conv(x, 3, 1)
        second = drawn.conv(first, 3, 1)
    assert (first.name, second.name) == ("a.b.conv", "a.b.conv_2")


def test_an_lstm_cell_is_one_product_and_its_gates() -> None:
    """Four gates come from one product of the joined input and state."""
    drawn = net()
    state = (drawn.input("h", (8,)), drawn.input("c", (8,)))
    hidden, cell = drawn.lstm_cell(drawn.input("x", (5,)), state)
    assert hidden.shape == cell.shape == (2, 8)
    network = drawn.network()
    (gates,) = network.mac_layers
    assert gates.operator.bounds == {"M": 2, "N": 32, "K": 13}
    assert network.parameters == 32 * 13 + 32
    assert [link.channel for link in network.reads("lstm.gates")] == [0, 5]


def test_the_batch_is_at_least_one() -> None:
    """A batch below one is refused."""
    with pytest.raises(InputError, match="tiny: batch: expected at least 1, got 0"):
        Blueprint("tiny", 0)
