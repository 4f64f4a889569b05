"""Heterogeneous sub-accelerators that share a memory (Herald)."""
