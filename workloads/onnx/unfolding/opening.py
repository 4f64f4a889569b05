"""A model opened: its functions, then its branches and loops, with the types of all tensors."""

from __future__ import annotations

import onnx
from onnx import inliner

from tilewright.workloads.onnx.unfolding.choices import Choices
from tilewright.workloads.onnx.unfolding.walk import Walk


def open_model(model: onnx.ModelProto, choices: Choices) -> onnx.ModelProto:
    """The same network without functions, branches, loops and constants that are computed.

    Parameters
    ----------
    model : its inputs have sizes
    choices : of the user

    Returns
    -------
    A model with the types of all tensors that could be told; its properties give, by a node's first result,
    why those of the node could not

    Raises
    ------
    TooManyNodesError : for loops that open too many nodes
    """
    if model.functions:
        model = inliner.inline_local_functions(model)
    return Walk(model, choices).model()
