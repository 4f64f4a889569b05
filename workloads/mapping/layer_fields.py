"""The fields of a layer as users write them, validated: one model per layer kind.

Sizes are in elements.  ``H`` and ``W`` are input rows and columns without padding, ``P`` and ``Q`` those of
the output; ``K`` and ``C`` count the channels of all groups together.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tilewright.workloads.mapping import operators
from tilewright.workloads.mapping.operator import Operator

LARGEST = 2**31 - 1


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Size = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Count = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Steps = Annotated[list[Size], Field(min_length=1, max_length=2), BeforeValidator(_as_list)]
Pads = Annotated[list[Count], Field(min_length=1, max_length=4), BeforeValidator(_as_list)]


def _pair(values: list[int]) -> tuple[int, int]:
    return values[0], values[-1]


def _pads(values: list[int]) -> int | tuple[int, ...]:
    return values[0] if len(values) == 1 else tuple(values)


class LayerFields(BaseModel):
    """What all kinds share: an optional name, and no unknown fields."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    name: str | None = Field(default=None, min_length=1)

    @abstractmethod
    def build(self) -> Operator:
        """The operator; raises ``InputError`` where the sizes contradict each other."""


class _Batched(LayerFields):
    N: Size = 1


class _Windowed(_Batched):
    P: Size | None = None
    Q: Size | None = None
    H: Size | None = None
    W: Size | None = None
    stride: Steps = [1]
    dilation: Steps = [1]
    pad: Pads = [0]

    def window(self) -> dict[str, Any]:
        return {
            "n": self.N,
            "p": self.P,
            "q": self.Q,
            "h": self.H,
            "w": self.W,
            "stride": _pair(self.stride),
            "dilation": _pair(self.dilation),
            "pad": _pads(self.pad),
        }


class Conv(_Windowed):
    K: Size
    C: Size
    R: Size
    S: Size
    groups: Size = 1

    def build(self) -> Operator:
        return operators.conv2d(k=self.K, c=self.C, r=self.R, s=self.S, groups=self.groups, **self.window())


class Depthwise(_Windowed):
    C: Size
    R: Size
    S: Size
    multiplier: Size = 1

    def build(self) -> Operator:
        return operators.depthwise_conv2d(
            c=self.C, r=self.R, s=self.S, multiplier=self.multiplier, **self.window()
        )


class TransposedConv(_Batched):
    """``P`` and ``Q`` are input rows and columns here."""

    K: Size
    C: Size
    P: Size
    Q: Size
    R: Size
    S: Size
    stride: Steps = [1]
    dilation: Steps = [1]
    pad: Pads = [0]
    groups: Size = 1

    def build(self) -> Operator:
        return operators.transposed_conv2d(
            n=self.N,
            k=self.K,
            c=self.C,
            p=self.P,
            q=self.Q,
            r=self.R,
            s=self.S,
            groups=self.groups,
            stride=_pair(self.stride),
            dilation=_pair(self.dilation),
            pad=_pads(self.pad),
        )


class Pool(_Windowed):
    """Without ``R`` and ``S`` the window is the whole input."""

    C: Size
    R: Size | None = None
    S: Size | None = None

    def build(self) -> Operator:
        return operators.pool2d(c=self.C, r=self.R, s=self.S, **self.window())


class Gemm(LayerFields):
    M: Size
    N: Size
    K: Size

    def build(self) -> Operator:
        return operators.gemm(m=self.M, n=self.N, k=self.K)


class Matmul(LayerFields):
    B: Size = 1
    M: Size
    N: Size
    K: Size

    def build(self) -> Operator:
        return operators.matmul(batch=self.B, m=self.M, n=self.N, k=self.K)


class FullyConnected(_Batched):
    K: Size
    C: Size

    def build(self) -> Operator:
        return operators.fully_connected(n=self.N, k=self.K, c=self.C)


class Elementwise(_Batched):
    K: Size
    P: Size = 1
    Q: Size = 1
    operands: Annotated[int, Field(strict=True, ge=1, le=64)] = 2

    def build(self) -> Operator:
        return operators.elementwise(shape=(self.N, self.K, self.P, self.Q), operands=self.operands)


class Nest(LayerFields):
    """``text`` is a line of index notation, see `tilewright.workloads.mapping.einsum`."""

    text: str

    def build(self) -> Operator:
        return operators.nest(self.text)


KINDS: dict[str, type[LayerFields]] = {
    "conv": Conv,
    "depthwise": Depthwise,
    "tconv": TransposedConv,
    "pool": Pool,
    "gemm": Gemm,
    "matmul": Matmul,
    "fc": FullyConnected,
    "elementwise": Elementwise,
    "nest": Nest,
}
BATCHED = tuple(kind for kind, fields in KINDS.items() if issubclass(fields, _Batched))
