"""Networks of the catalog and of files as SET sees them: boxes of inputs, padding, and what has none."""

from dataclasses import replace

import pytest

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetLayer
from tilewright.formulation.scheduling.tiled.set.networks import set_network
from tilewright.formulation.scheduling.tiled.units import units_of
from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.mapping.operators import gemm
from tilewright.workloads.network import Layer, Link, Network


def alone(rows: int, columns: int, taps: tuple[int, int], elements: int, dilation: int = 1) -> SetLayer:
    """A convolution of so many results that reads the input of its network."""
    operator = conv2d(k=4, c=3, p=rows, q=columns, r=taps[0], s=taps[1], dilation=dilation)
    name = next(operand.name for operand in operator.inputs if operand.role is Role.INPUT)
    link = Link(None, "a", name, "x", elements)
    network = Network("one", [Layer("a", operator, "Conv")], [link])
    return set_network(units_of(network), "one").layers[0]


@pytest.mark.parametrize(
    ("results", "taps", "inputs"),
    [
        ((8, 8), (3, 3), (8, 8)),
        ((8, 8), (1, 3), (8, 8)),
        ((8, 8), (5, 3), (8, 8)),
        ((8, 8), (3, 1), (8, 8)),
        ((6, 8), (3, 3), (8, 10)),
        ((1, 16), (1, 7), (1, 16)),
    ],
)
def test_padding_of_inputs(results: tuple[int, int], taps: tuple[int, int], inputs: tuple[int, int]) -> None:
    """Rows and columns of an input that exist follow from its elements, also where windows are uneven."""
    layer = alone(*results, taps, 3 * inputs[0] * inputs[1])
    assert (layer.input_rows, layer.input_columns) == inputs
    padding = [(size + tap - 1 - real) // 2 for size, tap, real in zip(results, taps, inputs, strict=True)]
    assert [layer.pad_rows, layer.pad_columns] == padding


def test_dilated_windows_are_refused() -> None:
    """A dilated window reads no box, so trees have no figures for it."""
    with pytest.raises(InputError, match="dilated"):
        alone(8, 8, (3, 3), 3 * 12 * 12, dilation=2)


def single(operator: Operator) -> SetLayer:
    """A layer that reads the input of its network."""
    network = Network("one", [Layer("a", operator, "Conv")])
    return set_network(units_of(network), "one").layers[0]


def test_products_of_patches_and_filters_are_products() -> None:
    """A nest that sums inputs at their own place times stored weights is what a product of its sizes is;
    other nests have no boxes."""
    like = dict(zip("nkcm", "NKCP", strict=True))
    bounds = {"n": 1, "k": 96, "c": 48, "m": 196}
    patches = single(nest("O[n,k,m] += I[n,c,m] * W[k,c]", bounds=bounds, like=like))
    assert replace(patches, external=0) == replace(single(gemm(m=196, n=96, k=48)), external=0)
    for other in ("O[n,k,m] += I[n,c,m] * W[k,m]", "O[n,k,m] += I[n,c,m] * W[k,c,m]"):
        with pytest.raises(InputError, match="window of boxes"):
            single(nest(other, bounds=bounds, like=like))
