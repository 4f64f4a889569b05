"""How an ONNX model is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OnnxOptions:
    """What a user may say of an ONNX model.

    Parameters
    ----------
    dims : sizes of symbolic axes of its inputs
    skip : leave out nodes that are not supported, and say so, instead of refusing the model
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    skip: bool = False
