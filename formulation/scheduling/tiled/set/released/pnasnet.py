"""PNASNet of SET's released program: cells of ten branches, every operation a layer of its own."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.released.builder import NetworkBuilder

Results = tuple[int, ...]
"""Layers whose results stand side by side."""

BRANCHES = (
    (("sep5", 0), ("mp3", 0)),
    (("sep7", 1), ("mp3", 1)),
    (("sep5", 1), ("sep3", 1)),
    (("sep3", 4), ("mp3", 1)),
    (("sep3", 0), ("sc", 1)),
)
"""Per step of a cell its two operations, and the state that each reads: the cells before, then the steps."""


@dataclass(frozen=True, slots=True)
class _Operation:
    """An operation of a cell: its name, what it reads, and channels, rows and stride."""

    name: str
    reads: Results
    inputs: int
    outputs: int
    stride: int
    rows_in: int
    rows: int


class _Cells(NetworkBuilder):
    """Builds cells; `before` and `last` are the results of the two cells behind, with rows and channels."""

    def __init__(self) -> None:
        super().__init__("pnas")
        rows = 165
        first: Results = (self.conv("conv0", 3, 96, rows, taps=3, stride=2, source=(331, 331)),)
        self.before = first, rows, 96
        self.last = first, rows, 96

    def projection(self, name: str, operation: _Operation) -> Results:
        """A rectifier and a 1x1 convolution."""
        self.copy(name + "_relu", operation.inputs, operation.rows_in, operation.rows_in, operation.reads)
        return (
            self.conv(
                name + "_conv", operation.inputs, operation.outputs, operation.rows, stride=operation.stride
            ),
        )

    def halved(
        self, name: str, inputs: int, outputs: int, rows_in: int, rows: int, reads: Results
    ) -> Results:
        """A rectifier, and two 1x1 convolutions with stride 2 side by side."""
        bent = self.copy(name + "_relu", inputs, rows_in, rows_in, reads)
        return tuple(
            self.conv(f"{name}_conv{number}", inputs, outputs // 2, rows, (bent,), stride=2)
            for number in (1, 2)
        )

    def operation(self, kind: str, operation: _Operation) -> Results:
        """A separable convolution, a pooling or a link past both."""
        name = f"{operation.name}_{kind}"
        if kind == "sc":
            return operation.reads if operation.stride == 1 else self.projection(name, operation)
        if kind == "mp3":
            made = self.pool(
                name + "_pool",
                operation.inputs,
                operation.rows,
                operation.reads,
                taps=3,
                stride=operation.stride,
            )
            if operation.inputs != operation.outputs:
                made = self.conv(name + "_conv", operation.inputs, operation.outputs, operation.rows)
            return (made,)
        taps = int(kind.removeprefix("sep"))
        wide, narrow = operation.inputs, operation.outputs
        self.copy(name + "_relu", wide, operation.rows_in, operation.rows_in, operation.reads)
        self.conv(
            name + "_conv1", wide, wide, operation.rows, taps=taps, stride=operation.stride, groups=wide
        )
        self.conv(name + "_conv2", wide, narrow, operation.rows)
        self.conv(name + "_conv3", narrow, narrow, operation.rows, taps=taps, groups=narrow)
        return (self.conv(name + "_conv4", narrow, narrow, operation.rows),)

    def cell(self, name: str, channels: int, *, reduces: bool, after: str) -> None:
        """One cell; ``after`` says what came before: the ``stem``'s convolution, a ``reduction`` or other."""
        before, rows_before, wide_before = self.before
        last, rows_in, wide = self.last
        rows = (rows_in + 1) // 2 if reduces else rows_in
        if after == "reduction":
            before = self.halved(name + "_preproc0", wide_before, channels, rows_before, rows_in, before)
        elif after != "stem":
            operation = _Operation(name, before, wide_before, channels, 1, rows_before, rows_in)
            before = self.projection(name + "_preproc0", operation)
        operation = _Operation(name, last, wide, channels, 1, rows_in, rows_in)
        states = [before, self.projection(name + "_preproc1", operation)]
        for step, branches in enumerate(BRANCHES):
            parts: list[int] = []
            for letter, (kind, state) in zip("ab", branches, strict=True):
                early = state < 2
                operation = _Operation(
                    f"{name}_{step + 1}{letter}",
                    states[state],
                    wide_before if after == "stem" and state == 0 else channels,
                    channels,
                    2 if reduces and early else 1,
                    rows_in if early else rows,
                    rows,
                )
                parts += self.operation(kind, operation)
            states.append((self.add(f"{name}_elt_{step}", channels, rows, parts),))
        joined = tuple(number for state in states[2:] for number in state)
        self.before = self.last
        self.last = joined, rows, len(BRANCHES) * channels


def pnasnet() -> SetNetwork:
    """PNASNet-5 with 216 channels and 12 cells, on 331 x 331."""
    net = _Cells()
    net.cell("stem1", 54, reduces=True, after="stem")
    net.cell("stem2", 108, reduces=True, after="reduction")
    channels, after = 216, "reduction"
    for number in range(12):
        reduces = number in (4, 8)
        channels *= 2 if reduces else 1
        net.cell(f"cell{number + 1}", channels, reduces=reduces, after=after)
        after = "reduction" if reduces else "cell"
    last, rows, wide = net.last
    net.copy("glob_relu", wide, rows, rows, last)
    net.pool("glob_pool", wide, 1, taps=rows)
    net.conv("fc", wide, 1001, 1)
    return net.build()
