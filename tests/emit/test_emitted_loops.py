"""Emitted NumPy loops compute the layer with the mapping's tiles, and nothing else does."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from effort import effort
from emitted_instances import KINDS, directly, random_layer, random_mapping

from tilewright.formulation.mapping.mapping import Mapping, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.report.code.mapping.numpy_loops import allocated, numpy_loops
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d, gemm, pool2d

MAPPINGS = effort(100)
"""Random mappings of each kind."""


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


def test_more_loops_than_python_nests_in_one_function() -> None:
    """Seven dimensions cut at three levels and once more inside are 28 loops."""
    operator = conv2d(n=8, k=8, c=8, p=8, q=8, r=8, s=8)
    loops = [Temporal(dim, tile) for tile in (8, 4, 2, 1) for dim in operator.bounds]
    stores = [Storage(tensor.name, "DRAM") for tensor in operator.tensors]
    inner = [Storage(tensor.name, "SPM") for tensor in operator.tensors]
    small = conv2d(n=2, k=2, c=2, p=2, q=2, r=2, s=2)
    mapping = Mapping((*stores, *loops[:14], *inner, *loops[14:]))
    data = random_data(small, 3)
    compile(numpy_loops(operator, mapping), "layer.py", "exec")
    assert np.array_equal(computed(numpy_loops(small, mapping), data), directly(small, data))


def test_a_layer_that_is_no_sum_is_refused() -> None:
    """A maximum over a window is no sum of products."""
    operator = pool2d(c=2, p=2, q=2, r=2, s=2)
    with pytest.raises(InputError, match="no sum of products"):
        numpy_loops(operator, Mapping(()))
