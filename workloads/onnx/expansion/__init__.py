"""Nodes that stand for several layers, or that write one of ONNX's own operations in another way."""
