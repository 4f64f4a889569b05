"""Emitted NumPy loops compute the layer with the mapping's tiles, and nothing else does."""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest
from effort import effort
from emitted_instances import KINDS, random_layer, random_mapping

from tilewright.formulation.mapping.mapping import Mapping, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.report.code.mapping.numpy_loops import allocated, numpy_loops
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import gemm, pool2d

MAPPINGS = effort(100)
"""Random mappings of each kind."""


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


def computed(code: str, data: dict[str, np.ndarray]) -> np.ndarray:
    """What emitted code returns."""
    names: dict[str, object] = {}
    exec(code, names)
    return names["layer"](*data.values())  # type: ignore[operator,no-any-return]


def random_data(operator: Operator, seed: int) -> dict[str, np.ndarray]:
    """Whole numbers, none of them zero, for every input."""
    draw = np.random.default_rng(seed)
    return {t.name: draw.integers(1, 50, allocated(t)) for t in operator.tensors if not t.is_output}


@pytest.mark.parametrize("kind", KINDS)
def test_random_mappings_compute_their_layers(kind: str) -> None:
    """Whatever the order, the stores and the remainders, the result is that of the plain sum."""
    for seed in range(MAPPINGS):
        choose = random.Random(f"{kind} {seed}")
        operator = random_layer(choose, kind)
        mapping = random_mapping(choose, operator, kind)
        data = random_data(operator, seed)
        assert np.array_equal(computed(numpy_loops(operator, mapping), data), directly(operator, data)), seed


def _fails(code: str, data: dict[str, np.ndarray], wanted: np.ndarray) -> bool:
    try:
        found = computed(code, data)
    except (IndexError, ValueError):
        return True
    return not np.array_equal(found, wanted)


def test_swapped_bounds_and_dropped_remainders_give_something_else() -> None:
    """A loop that runs to another dimension's bound, or leaves its last tile out, is noticed."""
    operator = gemm(m=7, n=5, k=3)
    nodes = (
        *(Storage(tensor, "DRAM") for tensor in "ABC"),
        Temporal("M", 3),
        Temporal("N", 2),
        *(Storage(tensor, "SPM") for tensor in "ABC"),
        Temporal("K", 1),
    )
    data = random_data(operator, 1)
    wanted, code = directly(operator, data), numpy_loops(operator, Mapping(nodes))
    assert not _fails(code, data, wanted)
    assert "in range(0, 7, 3)" in code
    swapped = code.replace("range(0, 7, 3)", "range(0, X, 3)").replace("range(0, 5, 2)", "range(0, 7, 2)")
    assert _fails(swapped.replace("range(0, X, 3)", "range(0, 5, 3)"), data, wanted)
    assert _fails(code.replace("range(0, 7, 3)", "range(0, 6, 3)"), data, wanted)
    assert _fails(re.sub(r"min\(M1 \+ 3, 7\)", "min(M1 + 2, 7)", code), data, wanted)
    assert _fails(code.replace("C[M1", "C[0 * M1"), data, wanted)


def test_a_layer_that_is_no_sum_is_refused() -> None:
    """A maximum over a window is no sum of products."""
    operator = pool2d(c=2, p=2, q=2, r=2, s=2)
    with pytest.raises(InputError, match="no sum of products"):
        numpy_loops(operator, Mapping(()))
