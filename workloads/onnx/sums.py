"""Operators of ONNX nodes as nests of their own: Einstein sums, and windows over three axes or more."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.foundation.errors import InputError
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Axis, Dimension, Operator, Role, Tensor, Term
from tilewright.workloads.onnx.graph import Node, OnnxGraph

_POSITIONS, _TAPS = "P{}", "R{}"


def einsum(equation: str, shapes: Sequence[tuple[int, ...]]) -> Operator:
    """The nest of an Einstein sum.

    Parameters
    ----------
    equation : such as ``bij,bjk->bik``; without an arrow the letters that stand once are the result's, sorted
    shapes : axes of the operands

    Returns
    -------
    An operator of kind ``nest`` with operands ``A``, ``B``, … and the result ``Z``; letters of two operands
    count as a matrix product's: those of the first alone as rows, of the second alone as columns, of the sum
    as its length, of all three as groups

    Raises
    ------
    ValueError : for an equation that is none, that does not fit to the shapes, or that takes a diagonal
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes) or len(terms) > 8:
        raise ValueError(
            f"equation {equation!r} has {len(terms)} operands, expected {len(shapes)}, at most 8"
        )
    more = max(
        (len(shape) - len(term.replace("...", "")) for term, shape in zip(terms, shapes, strict=True)),
        default=0,
    )
    rest = [f"_{i}" for i in range(max(0, more))]
    letters = [_letters(term, len(shape), rest) for term, shape in zip(terms, shapes, strict=True)]
    counted = [letter for operand in letters for letter in operand]
    kept = sorted({x for x in counted if counted.count(x) == 1 and not x.startswith("_")})
    result = _letters(right, -1, rest) if arrow else [*(rest if "..." in left else []), *kept]
    sizes: dict[str, int] = {}
    for operand, shape in zip(letters, shapes, strict=True):
        for letter, size in zip(operand, shape, strict=True):
            if sizes.setdefault(letter, size) != size and 1 not in (size, sizes[letter]):
                raise ValueError(f"equation {equation!r}: {letter} is {sizes[letter]} and {size}")
            sizes[letter] = max(size, sizes[letter])
    for operand in (*letters, result):
        if len(set(operand)) != len(operand):
            raise ValueError(f"equation {equation!r}: an operand with a letter twice is not supported")
    if not set(result) <= set(sizes):
        raise ValueError(f"equation {equation!r}: the result has a letter that no operand has")
    names = {letter: f"{letter}{'' if letter.islower() else '_'}".replace("_", "d") for letter in sizes}
    if len(set(names.values())) != len(names):
        names = {letter: f"x{i}" for i, letter in enumerate(sizes)}
    operands = []
    for i, (operand, shape) in enumerate(zip(letters, shapes, strict=True)):
        read = [names[letter] for letter, size in zip(operand, shape, strict=True) if size == sizes[letter]]
        operands.append(f"{'ABDEFGHI'[i]}[{','.join(read)}]")
    line = f"Z[{','.join(names[x] for x in result)}] += {' * '.join(operands)}"
    like = {names[x]: _like(x, letters, result) for x in sizes}
    try:
        return nest(line, bounds={names[x]: size for x, size in sizes.items()}, like=like)
    except InputError as error:
        raise ValueError(f"equation {equation!r}: {error.message}") from None


def _letters(term: str, axes: int, rest: Sequence[str]) -> list[str]:
    """The letters of an operand, an ellipsis unfolded to the last of the axes that it may stand for."""
    before, dots, behind = term.partition("...")
    if not all(x.isascii() and x.isalpha() for x in before + behind):
        raise ValueError(f"equation: {term!r} is not made of letters")
    count = len(rest) if axes < 0 else axes - len(before) - len(behind)
    if count < 0 or (axes >= 0 and not dots and count):
        raise ValueError(f"equation: {term!r} stands for {len(before + behind)} axes, the operand has {axes}")
    return [*before, *(rest[len(rest) - count :] if dots else []), *behind]


def _like(letter: str, operands: Sequence[Sequence[str]], result: Sequence[str]) -> str:
    first, last = letter in operands[0], any(letter in operand for operand in operands[1:])
    if letter not in result:
        return "C"
    return "G" if first and last else "P" if first else "K"


def volume_convolution(graph: OnnxGraph, node: Node) -> Operator:
    """A convolution over three axes or more, in scatter form where it is transposed.

    Positions are ``P0``, ``P1``, … and taps ``R0``, ``R1``, …; they count as rows of outputs and of filters.

    Raises
    ------
    InputError : for channels that do not fit to each other
    """
    data, filters = graph.shape(node, node.inputs[0]), graph.shape(node, node.inputs[1])
    transposed = node.op == "ConvTranspose"
    groups = int(node.attributes.get("group", 1))
    axes = len(data) - 2
    given, width = (filters[0] // groups, filters[1]) if transposed else (filters[1], filters[0] // groups)
    if len(filters) != len(data) or groups < 1 or given * groups != data[1]:
        raise InputError(graph.where, node.label, f"weights of {list(filters)} read {list(data)}")
    positions = data[2:] if transposed else graph.shape(node, node.outputs[0])[2:]
    windows = _windows(node, positions, filters[2:])
    bounds = {"N": data[0], **({"G": groups} if groups > 1 else {}), "K": width, "C": given}
    bounds |= {_POSITIONS.format(i): size for i, size in enumerate(positions)}
    bounds |= {_TAPS.format(i): filters[2 + i] for i in range(axes)}
    plain = [_plain(bounds, _POSITIONS.format(i)) for i in range(axes)]
    taps = [_plain(bounds, _TAPS.format(i)) for i in range(axes)]
    channels = [_plain(bounds, name) for name in ("N", "G") if name in bounds]
    group = [_plain(bounds, "G")] if groups > 1 else []
    k, c = _plain(bounds, "K"), _plain(bounds, "C")
    return Operator(
        "nest",
        _dimensions(bounds),
        (
            Tensor("I", Role.INPUT, (*channels, c, *(plain if transposed else windows))),
            Tensor("W", Role.WEIGHT, (*group, *((c, k) if transposed else (k, c)), *taps)),
            Tensor("O", Role.OUTPUT, (*channels, k, *(windows if transposed else plain))),
        ),
    )


def volume_pool(graph: OnnxGraph, node: Node) -> Operator:
    """Pooling over windows of three axes or more."""
    data, result = graph.shape(node, node.inputs[0]), graph.shape(node, node.outputs[0])
    kernel = [int(size) for size in node.attributes.get("kernel_shape", ())]
    if len(kernel) != len(data) - 2:
        raise InputError(graph.where, node.label, f"kernel_shape: expected {len(data) - 2} numbers")
    bounds = {"N": data[0], "K": data[1]}
    bounds |= {_POSITIONS.format(i): size for i, size in enumerate(result[2:])}
    bounds |= {_TAPS.format(i): size for i, size in enumerate(kernel)}
    outer = [_plain(bounds, "N"), _plain(bounds, "K")]
    plain = [_plain(bounds, _POSITIONS.format(i)) for i in range(len(kernel))]
    inputs = Tensor("I", Role.INPUT, (*outer, *_windows(node, result[2:], kernel)))
    return Operator(
        "pool", _dimensions(bounds), (inputs, Tensor("O", Role.OUTPUT, (*outer, *plain))), is_mac=False
    )


def _windows(node: Node, positions: Sequence[int], kernel: Sequence[int]) -> list[Axis]:
    strides = node.attributes.get("strides") or [1] * len(kernel)
    dilations = node.attributes.get("dilations") or [1] * len(kernel)
    return [
        Axis(
            (Term(_POSITIONS.format(i), step), Term(_TAPS.format(i), spread)),
            (count - 1) * step + (taps - 1) * spread + 1,
        )
        for i, (count, taps, step, spread) in enumerate(
            zip(positions, kernel, strides, dilations, strict=True)
        )
    ]


def _plain(bounds: dict[str, int], name: str) -> Axis:
    return Axis((Term(name),), bounds[name])


def _dimensions(bounds: dict[str, int]) -> tuple[Dimension, ...]:
    like = {"P": "P", "R": "R"}
    return tuple(Dimension(name, size, like.get(name[0], name)) for name, size in bounds.items())
