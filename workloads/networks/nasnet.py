"""Networks whose cells were found by search.

B. Zoph et al., "Learning transferable architectures for scalable image recognition", CVPR 2018, figure 4 and
appendix (NASNet-A, 6 @ 4032, 331 x 331); C. Liu et al., "Progressive neural architecture search", ECCV 2018,
figure 1 (PNASNet-5, N = 4, F = 216, 331 x 331).  What the figures leave open (how states of other sizes are
fitted, where cells reduce) follows the authors' published program.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.workloads.blueprint import Blueprint, Value
from tilewright.workloads.networks.resnet import classifier

Step = tuple[int, str]
"""State that is read (0 the last cell's, 1 the one before, 2 the first sum, ...) and what is done to it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Five sums of two operations each, and the states that are joined at the end."""

    sums: tuple[tuple[Step, Step], ...]
    joined: tuple[int, ...]


NASNET_NORMAL = Cell(
    (
        ((0, "separable 5"), (1, "separable 3")),
        ((1, "separable 5"), (1, "separable 3")),
        ((0, "average"), (1, "identity")),
        ((1, "average"), (1, "average")),
        ((0, "separable 3"), (0, "identity")),
    ),
    joined=(1, 2, 3, 4, 5, 6),
)
NASNET_REDUCTION = Cell(
    (
        ((0, "separable 5"), (1, "separable 7")),
        ((0, "max"), (1, "separable 7")),
        ((0, "average"), (1, "separable 5")),
        ((3, "identity"), (2, "average")),
        ((2, "separable 3"), (0, "max")),
    ),
    joined=(3, 4, 5, 6),
)
PNASNET = Cell(
    (
        ((1, "separable 5"), (1, "max")),
        ((0, "separable 7"), (0, "max")),
        ((0, "separable 5"), (0, "separable 3")),
        ((4, "separable 3"), (0, "max")),
        ((1, "separable 3"), (0, "identity")),
    ),
    joined=(2, 3, 4, 5, 6),
)


def separable(net: Blueprint, x: Value, channels: int, kernel: int, stride: int) -> Value:
    """Twice: activation, depthwise and pointwise convolution, normalisation; the first one strides.

    Parameters
    ----------
    net : the network that grows
    x : the state that is read
    channels : of the result
    kernel : rows and columns of both depthwise filters
    stride : of the first one
    """
    for i, step in enumerate((stride, 1), 1):
        x = net.depthwise(
            net.act(x), kernel, stride=step, pad="same", bias=False, name=f"depthwise{kernel}_{i}"
        )
        x = net.conv(x, channels, 1, norm=True, name=f"pointwise{kernel}_{i}")
    return x


def halve(net: Blueprint, x: Value, channels: int) -> Value:
    """Half of the rows and columns: two strided projections, the second one shifted by one pixel."""
    rows, columns = x.size
    shifted = net.pad(x, (0, 0, 1, 1), "padded")
    shifted = net.slice(net.slice(shifted, 1, rows + 1, axis=2), 1, columns + 1, axis=3)
    halves = [
        net.conv(half, channels // 2, 1, stride=2, bias=False, name=name)
        for half, name in ((x, "even"), (shifted, "odd"))
    ]
    return net.norm(net.concat(*halves, name="halves"))


def fitted(net: Blueprint, before: Value, x: Value, channels: int) -> Value:
    """The state of the cell before the last, brought to the last one's size and to the cell's channels.

    Parameters
    ----------
    net : the network that grows
    before : result of the cell before the last
    x : result of the last cell, whose rows and columns count
    channels : of the present cell
    """
    if before.size != x.size:
        with net.scope("before"):
            return halve(net, net.act(before), channels)
    if before.channels != channels:
        return net.conv(net.act(before), channels, 1, norm=True, name="before")
    return before


def apply(net: Blueprint, x: Value, what: str, channels: int, stride: int) -> Value:
    """One operation of a cell.

    Parameters
    ----------
    net : the network that grows
    x : the state that is read
    what : kind and size of the operation, such as ``separable 5``
    channels : of the cell
    stride : 2 where the operation reads a state of twice the size
    """
    kind, _, kernel = what.partition(" ")
    if kind == "separable":
        return separable(net, x, channels, int(kernel), stride)
    if kind == "identity":
        if stride == 1 and x.channels == channels:
            return x
        return net.conv(net.act(x), channels, 1, stride=stride, norm=True, name="fit")
    pool = net.max_pool if kind == "max" else net.average_pool
    x = pool(x, 3, stride=stride, pad="same")
    return x if x.channels == channels else net.conv(x, channels, 1, norm=True, name="fit")


def run(net: Blueprint, cell: Cell, x: Value, before: Value | None, channels: int, stride: int) -> Value:
    """A cell of so many channels; with stride 2 whatever reads the two given states strides.

    Parameters
    ----------
    net : the network that grows
    cell : which states are summed after which operations, and which are joined
    x : result of the last cell
    before : result of the one before it; ``None`` for the first cell
    channels : of every state of the cell
    stride : 2 for a cell that halves rows and columns
    """
    second = x if before is None else fitted(net, before, x, channels)
    states = [net.conv(net.act(x), channels, 1, norm=True, name="last"), second]
    for i, pair in enumerate(cell.sums, 1):
        operands = []
        for side, (at, what) in zip(("left", "right"), pair, strict=True):
            with net.scope(f"{i}{side}"):
                operands.append(apply(net, states[at], what, channels, stride if at < 2 else 1))
        states.append(net.add(*operands, name=f"sum{i}"))
    return net.concat(*(states[at] for at in cell.joined))


def stem(net: Blueprint, cell: Cell, channels: int) -> list[Value]:
    """A convolution and two strided cells of a quarter and half of the channels: 331 x 331 to 42 x 42."""
    x = net.conv(net.image(3, 331), 96, 3, stride=2, norm=True, name="conv0")
    states: list[Value | None] = [None, x]
    made = [x]
    for i, part in enumerate((4, 2), 1):
        with net.scope(f"stem{i}"):
            x = run(net, cell, x, states[-2], channels // part, 2)
        states.append(x)
        made.append(x)
    return made


def nasnet_a_large(batch: int) -> Blueprint:
    """NASNet-A (6 @ 4032): three times six normal cells, reduction cells between them."""
    net = Blueprint("nasnet-a-large", batch)
    channels = 168
    states = stem(net, NASNET_REDUCTION, channels)
    for number in range(18):
        before = states[-2]
        if number in (6, 12):
            channels *= 2
            with net.scope(f"reduction{number // 6}"):
                states.append(run(net, NASNET_REDUCTION, states[-1], before, channels, 2))
        with net.scope(f"cell{number + 1}"):
            states.append(run(net, NASNET_NORMAL, states[-1], before, channels, 1))
    classifier(net, net.act(states[-1]))
    return net


def pnasnet5_large(batch: int) -> Blueprint:
    """PNASNet-5 (N = 4, F = 216): three times four cells, the first of the second and third four strides."""
    net = Blueprint("pnasnet-5-large", batch)
    channels = 216
    states = stem(net, PNASNET, channels)
    for number in range(12):
        stride = 2 if number in (4, 8) else 1
        channels *= stride
        with net.scope(f"cell{number + 1}"):
            states.append(run(net, PNASNET, states[-1], states[-2], channels, stride))
    classifier(net, net.act(states[-1]))
    return net


MODELS = {"nasnet-a-large": nasnet_a_large, "pnasnet-5-large": pnasnet5_large}
