"""Every builder of an `Operator` in one place."""

from __future__ import annotations

from tilewright.workloads.mapping.convolutions import conv2d, depthwise_conv2d, transposed_conv2d
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.matrices import fully_connected, gemm, matmul
from tilewright.workloads.mapping.pointwise import elementwise, reduction
from tilewright.workloads.mapping.pooling import pool2d

__all__ = [
    "conv2d",
    "depthwise_conv2d",
    "elementwise",
    "fully_connected",
    "gemm",
    "matmul",
    "nest",
    "pool2d",
    "reduction",
    "transposed_conv2d",
]
