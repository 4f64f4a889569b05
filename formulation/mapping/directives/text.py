"""Directives as text.

::

    layer conv2d(N=1, K=64, C=16, P=14, Q=14, R=3, S=3) -> O

    PE:
      update(S+=1)
    RF:
      tensor I(N=1, C=1, P+R=1, Q+S=3)
      tensor W(K=4, C=1, R=1, S=3)
      stack(R+=1, 3, y)
      update(Q+=1)
    GLB:
      tensor I(N=1, C=4, P+R=16, Q+S=16)
      ...

Everything below a level's name holds for its buffers, the innermost level first; a size may end in
``shr=4`` where four buffers share a tensor.  ``#`` begins a comment.
"""

from __future__ import annotations

import re
from typing import assert_never

from tilewright.formulation.mapping.directives.model import (
    Directive,
    Directives,
    Stack,
    TensorAxis,
    TensorTile,
    Update,
)
from tilewright.foundation.errors import InputError

INNERMOST = "PE"
_HEAD = re.compile(r"layer (?P<kind>[\w-]+)\((?P<bounds>.*)\) -> (?P<output>\w+)$")
_LEVEL = re.compile(r"(?P<level>[\w-]+):$")
_TENSOR = re.compile(r"tensor (?P<name>\w+)\((?P<axes>.*)\)$")
_STACK = re.compile(r"stack\((?P<dim>\w+)\+=(?P<shift>[0-9]+), *(?P<copies>[0-9]+), *(?P<axis>[\w-]+)\)$")
_UPDATE = re.compile(r"update\((?P<dim>\w+)\+=(?P<step>[0-9]+)\)$")
_TERM = re.compile(r"(?:(?P<stride>[0-9]+)\*)?(?P<dim>[A-Za-z_]\w*)$")
_EXPECTED = "LEVEL:, tensor NAME(DIM=SIZE, ...), stack(DIM+=SHIFT, COPIES, AXIS) or update(DIM+=STEP)"


def write_directives(directives: Directives) -> str:
    """The text, ending in a newline."""
    bounds = ", ".join(f"{dim}={bound}" for dim, bound in directives.bounds.items())
    lines = [f"layer {directives.kind}({bounds}) -> {directives.output}", ""]
    level: str | None = None
    for line in directives.lines:
        wanted = line.level if isinstance(line, TensorTile) else level or INNERMOST
        if wanted != level:
            lines.append(f"{wanted}:")
            level = wanted
        lines.append(f"  {_text(line)}")
    return "\n".join(lines) + "\n"


def _text(line: Directive) -> str:
    match line:
        case TensorTile(name, _, axes, share):
            sizes = [f"{axis.label}={axis.extent}" for axis in axes]
            return f"tensor {name}({', '.join([*sizes, f'shr={share}'] if share > 1 else sizes)})"
        case Stack(dim, shift, copies, axis_name):
            return f"stack({dim}+={shift}, {copies}, {axis_name})"
        case Update(dim, step):
            return f"update({dim}+={step})"
        case _:
            assert_never(line)


def parse_directives(text: str, where: str = "directives") -> Directives:
    """The inverse of :func:`write_directives`; raises ``InputError`` naming the line at fault."""
    lines: list[Directive] = []
    head: re.Match[str] | None = None
    level = INNERMOST
    for number, raw in enumerate(text.splitlines(), 1):
        line = " ".join(raw.partition("#")[0].split())
        field = f"line {number}"
        if not line:
            continue
        if head is None:
            head = _HEAD.match(line)
            if head is None:
                raise InputError(where, field, f"expected layer KIND(DIM=BOUND, ...) -> OUTPUT, got {line!r}")
        elif match := _LEVEL.match(line):
            level = match["level"]
        elif match := _TENSOR.match(line):
            axes, share = _axes(match["axes"], where, field)
            lines.append(TensorTile(match["name"], level, axes, share))
        elif match := _STACK.match(line):
            lines.append(Stack(match["dim"], int(match["shift"]), int(match["copies"]), match["axis"]))
        elif match := _UPDATE.match(line):
            lines.append(Update(match["dim"], int(match["step"])))
        else:
            raise InputError(where, field, f"cannot read {line!r}, expected {_EXPECTED}")
    if head is None:
        raise InputError(where, None, "no directives, expected layer KIND(DIM=BOUND, ...) -> OUTPUT first")
    bounds = {axis.label: axis.extent for axis in _axes(head["bounds"], where, "layer")[0]}
    return Directives(head["kind"], bounds, head["output"], tuple(lines))


def _axes(text: str, where: str, field: str) -> tuple[tuple[TensorAxis, ...], int]:
    """Sizes by index expression, and the sharing factor."""
    axes: list[TensorAxis] = []
    share = 1
    for part in text.split(",") if text.strip() else []:
        label, equals, size = part.strip().rpartition("=")
        terms = [] if label == "1" else [_TERM.match(term.strip()) for term in label.split("+")]
        if not equals or not size.strip().isdigit() or int(size) < 1 or None in terms:
            raise InputError(where, field, f"cannot read {part.strip()!r}, expected such as K=4 or 2*P+R=9")
        if label == "shr":
            share = int(size)
        else:
            indices = tuple((term["dim"], int(term["stride"] or 1)) for term in terms if term is not None)
            axes.append(TensorAxis(indices, int(size)))
    return tuple(axes), share
