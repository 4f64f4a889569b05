"""Builder of pooling layers."""

from __future__ import annotations

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.operator import Operator, Role, Tensor
from tilewright.workloads.mapping.windows import Pair, axes, check_positive, dimensions, windows


def pool2d(
    *,
    n: int = 1,
    c: int,
    r: int | None = None,
    s: int | None = None,
    p: int | None = None,
    q: int | None = None,
    h: int | None = None,
    w: int | None = None,
    stride: Pair = 1,
    dilation: Pair = 1,
    pad: Pair = 0,
    ceil: bool = False,
) -> Operator:
    """Maximum or average pooling, over windows or (without ``r`` and ``s``) over the whole input.

    Loops ``N C P Q R S``; every output channel reads its own input channel, so ``C`` corresponds to a
    convolution's ``K``.  No multiply-accumulates are counted.

    Parameters
    ----------
    n, c : batch and channels
    r, s : window rows and columns
    p, q, h, w, stride, dilation, pad : as in `conv2d`
    ceil : round output sizes up

    Raises
    ------
    InputError : for a size below 1, a missing size, or sizes that contradict each other
    """
    where = "pool"
    check_positive(where, {"N": n, "C": c})
    if r is None and s is None:
        if h is None or w is None:
            raise InputError(where, "R", "missing, expected R and S, or H and W for global pooling")
        r, s = h, w
    if r is None or s is None:
        raise InputError(where, "R" if r is None else "S", "missing, expected both R and S or neither")
    rows, columns = windows(where, (p, q), (h, w), (r, s), stride, dilation, pad, ceil=ceil)
    bounds = {"N": n, "C": c, "P": rows.outputs, "Q": columns.outputs, "R": r, "S": s}
    return Operator(
        "pool",
        dimensions(bounds, like={"C": "K"}),
        (
            Tensor("I", Role.INPUT, (*axes(bounds, "NC"), rows.axis, columns.axis)),
            Tensor("O", Role.OUTPUT, axes(bounds, "NCPQ")),
        ),
        is_mac=False,
    )
