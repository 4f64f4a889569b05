"""Builders of matrix products.

Loops correspond to a convolution's as its rows of outputs (``M`` to ``P``), output channels (``N`` to
``K``), input channels (``K`` to ``C``) and groups (``B`` to ``G``), so that a dataflow restriction written
for convolutions applies to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Operator, Role, Tensor
from tilewright.workloads.mapping.windows import axes, check_positive, dimensions

LIKE = {"M": "P", "N": "K", "K": "C"}


def gemm(*, m: int, n: int, k: int, transpose_a: bool = False, transpose_b: bool = False) -> Operator:
    """Matrix product ``C[M, N] = A[M, K] * B[K, N]`` with ``A`` the inputs and ``B`` the weights.

    Parameters
    ----------
    m, n, k : rows of the result, columns of the result, length of the sum
    transpose_a, transpose_b : whether ``A`` is stored as ``[K, M]``, ``B`` as ``[N, K]``

    Raises
    ------
    InputError : for a size below 1
    """
    bounds = {"M": m, "N": n, "K": k}
    check_positive("gemm", bounds)
    return Operator(
        "gemm",
        dimensions(bounds, LIKE),
        (
            Tensor("A", Role.INPUT, axes(bounds, "KM" if transpose_a else "MK")),
            Tensor("B", Role.WEIGHT, axes(bounds, "NK" if transpose_b else "KN")),
            Tensor("C", Role.OUTPUT, axes(bounds, "MN")),
        ),
    )


def fully_connected(*, n: int = 1, k: int, c: int) -> Operator:
    """Fully connected layer of ``n`` samples, ``k`` outputs and ``c`` inputs: a `gemm`.

    Weights are stored one row per output, ``[N, K]`` in the product's terms.
    """
    check_positive("fc", {"N": n, "K": k, "C": c})
    return gemm(m=n, n=k, k=c, transpose_b=True)


def matmul(
    *, m: int, n: int, k: int, batch: int | Sequence[int] = (), b_batch: Sequence[int] | None = None
) -> Operator:
    """Batched matrix product ``C[B, M, N] = A[B, M, K] * B[B, K, N]``.

    Where the second operand has no batch, the batch is folded into ``M`` and the result is a `gemm`.

    Parameters
    ----------
    m, n, k : sizes of one product
    batch : batch size, or batch axes, of the first operand
    b_batch : batch axes of the second operand, the same where not given; axes broadcast as in numpy, and
        neighbouring axes that broadcast alike become one loop (``B``, or ``B0``, ``B1``, ... of several), and
        last axes of the first operand alone become rows

    Raises
    ------
    InputError : for a size below 1 or batch axes that do not broadcast
    """
    where = "matmul"
    check_positive(where, {"M": m, "N": n, "K": k})
    first = (batch,) if isinstance(batch, int) else tuple(batch)
    second = first if b_batch is None else tuple(b_batch)
    check_positive(where, {"B": min((*first, *second), default=1)})
    if math.prod(second) == 1:
        return gemm(m=m * math.prod(first), n=n, k=k)
    groups: list[tuple[int, bool, bool]] = []
    for a, b in reversed(list(zip_longest(reversed(first), reversed(second), fillvalue=1))):
        if a != b and 1 not in (a, b):
            raise InputError(where, "B", f"batch axes {list(first)} and {list(second)} do not broadcast")
        if max(a, b) == 1:
            continue
        if groups and groups[-1][1:] == (a > 1, b > 1):
            groups[-1] = (groups[-1][0] * max(a, b), a > 1, b > 1)
        else:
            groups.append((max(a, b), a > 1, b > 1))
    if groups and not groups[-1][2]:
        # Products side by side that share a second operand are one product with more rows.
        m *= groups.pop()[0]
    names = ["B"] if len(groups) == 1 else [f"B{i}" for i in range(len(groups))]
    bounds = {name: group[0] for name, group in zip(names, groups, strict=True)}
    of_a = [name for name, group in zip(names, groups, strict=True) if group[1]]
    of_b = [name for name, group in zip(names, groups, strict=True) if group[2]]
    bounds |= {"M": m, "N": n, "K": k}
    return Operator(
        "matmul",
        dimensions(bounds, LIKE | dict.fromkeys(names, "G")),
        (
            Tensor("A", Role.INPUT, axes(bounds, [*of_a, "M", "K"])),
            Tensor("B", Role.WEIGHT, axes(bounds, [*of_b, "K", "N"])),
            Tensor("C", Role.OUTPUT, axes(bounds, [*names, "M", "N"])),
        ),
    )
