"""ONNX operations by what they mean to an accelerator."""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


POINTWISE = _names(
    "Abs Add And BatchNormalization Cast Ceil Celu Clip Cos DequantizeLinear Div Elu Equal Erf Exp Floor "
    "Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean "
    "Min Mish Mod Mul Neg Not Or PRelu Pow QuantizeLinear Reciprocal Relu Round Selu Sigmoid Sign Sin "
    "Softplus Softsign Sqrt Sub Sum Swish Tanh ThresholdedRelu Where Xor"
)
"""Each result element needs one element of each operand."""
NORMALISING = _names(
    "GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax LpNormalization "
    "MeanVarianceNormalization RMSNormalization Softmax"
)
"""Each result element needs its whole neighbourhood; taken as one pass over the data."""
POOLING = _names("AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool")
REDUCING = _names(
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare"
)
RENAMING = _names("Dropout Identity")
"""The result is the operand."""
MOVING = _names(
    "Concat DepthToSpace Expand Flatten Gather Pad Reshape Resize Slice SpaceToDepth Split Squeeze Tile "
    "Transpose Unsqueeze Upsample"
)
"""The result holds elements of the operands, elsewhere."""
