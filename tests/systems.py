"""A small network and a small system, as files of their own have them."""

from __future__ import annotations

LAYERS = """
- conv:K=8,C=4,P=8,Q=8,R=3,S=3
- depthwise:C=8,P=8,Q=8,R=3,S=3
- gemm:M=1,N=16,K=32
"""
SYSTEM = """
memory: 16 kB
dram_bandwidth: 16 GB/s
sub_accelerators:
  - {name: deep, dataflow: nvdla, pes: 16, bandwidth: 4 GB/s}
  - {name: wide, dataflow: shidiannao, pes: 16, bandwidth: 12 GB/s}
"""
