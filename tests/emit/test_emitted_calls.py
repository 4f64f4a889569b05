"""Emitted calls of Gemmini's library, compiled against plain C, and what its loops cannot express."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tilewright.formulation.mapping.mapping import Mapping, Node, Storage, Temporal
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.code.mapping.gemmini_call import gemmini_call
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import conv2d, depthwise_conv2d, gemm

HEADER = Path(__file__).with_name("gemmini.h")
ENGINE = load_engine("nvdla-256")  # 16 x 16
OUTER, INNER = ENGINE.levels[0].name, ENGINE.levels[1].name
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


def tiled(operator: Operator, tiles: dict[str, int]) -> Mapping:
    """Loops over tiles outside the second level, in the order that is given."""
    stores: list[Node] = [Storage(tensor.name, OUTER) for tensor in operator.tensors]
    loops = [Temporal(dim, tile) for dim, tile in tiles.items() if tile < operator.bounds[dim]]
    inner = [Storage(tensor.name, INNER) for tensor in operator.tensors if not tensor.is_output]
    return Mapping((*stores, *loops, *inner))


def run(code: str, folder: Path, arrays: list[np.ndarray]) -> None:
    """Compile the code and call its function."""
    (folder / "include").mkdir()
    shutil.copy(HEADER, folder / "include" / "gemmini.h")
    (folder / "call.c").write_text(code)
    flags = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", f"-I{folder}"]
    subprocess.run(
        ["gcc", *flags, "-o", str(folder / "call.so"), str(folder / "call.c")],
        check=True,
        capture_output=True,
    )
    function = ctypes.CDLL(str(folder / "call.so")).layer
    function(*(array.ctypes.data_as(ctypes.c_void_p) for array in arrays))


@needs_gcc
@pytest.mark.parametrize("seed", range(3))
def test_a_product_is_computed_by_the_call(seed: int, tmp_path: Path) -> None:
    """Uneven sizes in tiles of whole blocks."""
    choose, draw = random.Random(seed), np.random.default_rng(seed)
    m, n, k = (choose.randrange(17, 90) for _ in range(3))
    operator = gemm(m=m, n=n, k=k)
    tiles = {dim: 16 * choose.randrange(1, 4) for dim in ("M", "N", "K")}
    left, right = draw.integers(-9, 9, (m, k), np.int32), draw.integers(-9, 9, (k, n), np.int32)
    result = np.full((m, n), 77, np.int32)
    run(gemmini_call(operator, tiled(operator, tiles), ENGINE), tmp_path, [left, right, result])
    assert np.array_equal(result, left @ right)


@needs_gcc
@pytest.mark.parametrize("seed", range(3))
def test_a_convolution_is_computed_by_the_call(seed: int, tmp_path: Path) -> None:
    """Channels last, with a stride."""
    choose, draw = random.Random(seed), np.random.default_rng(seed)
    k, c, p, q, r, stride = 20, 35, choose.randrange(2, 7), choose.randrange(2, 7), 3, 1 + seed % 2
    operator = conv2d(n=2, k=k, c=c, p=p, q=q, r=r, s=r, stride=stride)
    tiles = {"P": 2, "Q": choose.randrange(1, q + 1), "K": 16, "R": 2, "C": 16}
    height, width = (p - 1) * stride + r, (q - 1) * stride + r
    image = draw.integers(-9, 9, (2, height, width, c), np.int32)
    weights = draw.integers(-9, 9, (r, r, c, k), np.int32)
    result = np.full((2, p, q, k), 77, np.int32)
    run(gemmini_call(operator, tiled(operator, tiles), ENGINE), tmp_path, [image, weights, result])
    wanted = np.zeros_like(result)
    for y in range(r):
        for x in range(r):
            part = image[:, y : y + (p - 1) * stride + 1 : stride, x : x + (q - 1) * stride + 1 : stride]
            wanted += part @ weights[y, x]
    assert np.array_equal(result, wanted)


@pytest.mark.parametrize(
    ("operator", "tiles", "reason"),
    [
        (gemm(m=64, n=64, k=64), {"K": 16, "M": 16}, "loops over tiles stand as"),
        (gemm(m=64, n=64, k=64), {"M": 24}, "no multiple of the array's 16"),
        (depthwise_conv2d(c=4, p=4, q=4, r=3, s=3), {}, "no layer of kind depthwise"),
        (conv2d(k=4, c=4, p=4, q=4, r=3, s=1), {}, "filters are square"),
        (conv2d(k=4, c=4, p=4, q=4, r=3, s=3, stride=(1, 2)), {}, "one stride"),
    ],
)
def test_what_the_librarys_loops_cannot_express_is_refused(
    operator: Operator, tiles: dict[str, int], reason: str
) -> None:
    """In one line with the reason."""
    with pytest.raises(InputError, match=reason):
        gemmini_call(operator, tiled(operator, tiles), ENGINE)


def test_the_set_of_constraints_leaves_what_the_library_can_say() -> None:
    """Every optimum under ``set=gemmini`` is a call; without it some are none, and none is better with it."""
    choose = random.Random(5)
    machine = load_engine("gemmini[array=4,scratchpad=1kB,accumulator=1kB]")
    freed = 0
    for _ in range(6):
        size = lambda most: choose.randrange(2, most)  # noqa: E731
        operator = (
            gemm(m=size(60), n=size(60), k=size(60))
            if choose.random() < 0.5
            else conv2d(n=size(3), k=size(20), c=size(20), p=size(6), q=size(6), r=2, s=2)
        )
        for objective in ("energy", "cycles"):
            goal = parse_objective(objective)
            bound = solve(layer_problem(operator, machine, goal, None, ["set=gemmini"]), "branch")
            free = solve(layer_problem(operator, machine, goal), "branch")
            assert bound.status is Status.OPTIMAL
            assert bound.answer is not None
            assert free.answer is not None
            assert bound.key is not None
            assert free.key is not None
            assert free.key <= bound.key
            assert "tiled_" in gemmini_call(operator, bound.answer, machine)
            try:
                gemmini_call(operator, free.answer, machine)
            except InputError:
                freed += 1
            else:
                assert free.key == bound.key  # a mapping that can be said is in the set's space
    assert freed
