"""Directives of whole pipelines as text.

::

    chain resnet50 splits=1

    segment spatial batch=4
      layer conv1
        tensor conv1.input(N=1, C=3, Yi=119, Xi=230) from DRAM
        tensor conv1.weights(K=64, C=3, R=7, S=7) from DRAM
        tensor conv1(N=1, K=64, Yo=56, Xo=112) to tiles
        stack(Yo+=56, 2)
        update(N+=1)
      layer pool1
        tensor conv1(N=1, C=64, Yi=57, Xi=112) from tiles
        ...

A segment in row stripes is ``segment spatial batch=4 bands=8``, its updates ``update(N+=1, Yo+=ROWS)``.
``#`` begins a comment; indentation does not matter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import cast, get_args

from tilewright.formulation.scheduling.tiled.kapla.directives import (
    ChainDirectives,
    LayerDirectives,
    Place,
    SegmentDirectives,
    TensorPart,
    TileStack,
)
from tilewright.formulation.scheduling.tiled.kapla.segments import Kind
from tilewright.foundation.errors import InputError

KINDS: dict[Kind, str] = {"S": "spatial", "T": "temporal"}

_CHAIN = re.compile(r"chain (?P<name>\S+) splits=(?P<splits>[0-9]{1,9})$")
_SEGMENT = re.compile(
    r"segment (?P<kind>spatial|temporal) batch=(?P<batch>[0-9]{1,9})(?: bands=(?P<bands>[0-9]{1,9}))?$"
)
_LAYER = re.compile(r"layer (?P<name>[^\s(),#]+)$")
_PLACES = "|".join(sorted(get_args(Place), key=len, reverse=True))
_TENSOR = re.compile(rf"tensor (?P<name>[^\s(),#]+)\((?P<sizes>[^()]*)\) (?P<place>{_PLACES})$")
_STACK = re.compile(r"stack\((?P<dim>\w+)\+=(?P<shift>[0-9]{1,9}), ?(?P<copies>[0-9]{1,9})\)$")
_UPDATE = re.compile(r"update\(N\+=(?P<step>[0-9]{1,9})(?:, ?Yo\+=(?P<rows>[0-9]{1,9}))?\)$")
_EXPECTED = "tensor NAME(DIM=SIZE, ...) from|to PLACE, stack(DIM+=SHIFT, TILES) or update(N+=SAMPLES)"
_SIZE = re.compile(r"(?P<dim>\w+)=(?P<size>[0-9]{1,9})$")


def write_chain(chain: ChainDirectives) -> str:
    """The text, ending in a newline."""
    lines = [f"chain {chain.network} splits={chain.splits}"]
    for segment in chain.segments:
        stripes = f" bands={segment.stripes}" if segment.stripes > 1 else ""
        lines += ["", f"segment {KINDS[segment.kind]} batch={segment.batch}{stripes}"]
        for layer in segment.layers:
            lines.append(f"  layer {layer.name}")
            for part in layer.tensors:
                sizes = ", ".join(f"{dim}={size}" for dim, size in part.sizes)
                lines.append(f"    tensor {part.name}({sizes}) {part.place}")
            lines += [f"    stack({stack.dim}+={stack.shift}, {stack.copies})" for stack in layer.stacks]
            rows = f", Yo+={layer.rows}" if layer.rows else ""
            lines.append(f"    update(N+={layer.step}{rows})")
    return "\n".join(lines) + "\n"


@dataclass
class _Open:
    """A segment being read; each of its layers ends with its update."""

    kind: Kind
    batch: int
    stripes: int
    layers: list[LayerDirectives] = field(default_factory=list)
    name: str | None = None
    tensors: list[TensorPart] = field(default_factory=list)
    stacks: list[TileStack] = field(default_factory=list)

    def begin(self, name: str) -> None:
        """A layer."""
        self.name, self.tensors, self.stacks = name, [], []

    def end(self, step: int, rows: int) -> None:
        """Its update."""
        assert self.name is not None
        self.layers.append(LayerDirectives(self.name, tuple(self.tensors), tuple(self.stacks), step, rows))
        self.name = None

    def closed(self, where: str, line: str) -> SegmentDirectives:
        """The segment."""
        if self.name is not None:
            raise InputError(where, line, f"layer {self.name} has no update(N+=SAMPLES)")
        if not self.layers:
            raise InputError(where, line, "the segment has no layer")
        return SegmentDirectives(self.kind, self.batch, tuple(self.layers), self.stripes)


def parse_chain(text: str, where: str = "directives") -> ChainDirectives:
    """The inverse of :func:`write_chain`; raises ``InputError`` naming the line at fault."""
    head: re.Match[str] | None = None
    segments: list[SegmentDirectives] = []
    now: _Open | None = None
    last = "line 1"
    for number, raw in enumerate(text.splitlines(), 1):
        line, last = " ".join(raw.partition("#")[0].split()), f"line {number}"
        if not line:
            continue
        if head is None:
            head = _CHAIN.match(line)
            if head is None:
                raise InputError(where, last, f"expected chain NETWORK splits=NUMBER, got {line!r}")
        elif match := _SEGMENT.match(line):
            if now is not None:
                segments.append(now.closed(where, last))
            kind: Kind = "S" if match["kind"] == "spatial" else "T"
            now = _Open(kind, int(match["batch"]), int(match["bands"] or 1))
        elif now is None:
            raise InputError(where, last, f"expected segment spatial|temporal batch=NUMBER, got {line!r}")
        elif match := _LAYER.match(line):
            if now.name is not None:
                raise InputError(where, last, f"layer {now.name} has no update(N+=SAMPLES)")
            now.begin(match["name"])
        elif now.name is None:
            raise InputError(where, last, f"expected layer NAME or segment, got {line!r}")
        elif match := _TENSOR.match(line):
            place = cast(Place, match["place"])
            now.tensors.append(TensorPart(match["name"], _sizes(match["sizes"], where, last), place))
        elif match := _STACK.match(line):
            now.stacks.append(TileStack(match["dim"], int(match["shift"]), int(match["copies"])))
        elif match := _UPDATE.match(line):
            now.end(int(match["step"]), int(match["rows"] or 0))
        else:
            raise InputError(where, last, f"cannot read {line!r}, expected {_EXPECTED}")
    if head is None or now is None:
        raise InputError(where, None, "expected chain NETWORK splits=NUMBER and a segment")
    segments.append(now.closed(where, last))
    return ChainDirectives(head["name"], int(head["splits"]), tuple(segments))


def _sizes(text: str, where: str, line: str) -> tuple[tuple[str, int], ...]:
    sizes = []
    for part in text.split(","):
        size = _SIZE.match(part.strip())
        if size is None or int(size["size"]) < 1:
            raise InputError(where, line, f"cannot read {part.strip()!r}, expected such as K=4")
        sizes.append((size["dim"], int(size["size"])))
    return tuple(sizes)
