"""Multi-layer perceptron.

P. Chi et al., "PRIME: a novel processing-in-memory architecture for neural network computation in ReRAM-based
main memory", ISCA 2016, table III: MLP-L, 784-1500-1000-500-10, the one that KAPLA cites.
"""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint

WIDTHS = (1500, 1000, 500, 10)


def mlp(batch: int) -> Blueprint:
    """MLP-L for digits of 28 x 28 pixels."""
    net = Blueprint("mlp", batch)
    x = net.input("digit", (784,))
    for i, width in enumerate(WIDTHS, 1):
        x = net.dense(x, width, act="Sigmoid" if i < len(WIDTHS) else None, name=f"fc{i}")
    net.softmax(x)
    return net


MODELS = {"mlp": mlp}
