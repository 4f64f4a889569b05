"""ONNX operations by what they mean to an accelerator."""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


POINTWISE = _names(
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BatchNormalization BitShift BitwiseAnd BitwiseNot "
    "BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh DequantizeLinear Div "
    "DynamicQuantizeLinear Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish "
    "IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow "
    "QuantizeLinear Reciprocal Relu RotaryEmbedding Round Selu Shrink Sigmoid Sign Sin Sinh Softplus "
    "Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor"
)
"""Each result element needs one element of each operand."""
NORMALISING = _names(
    "CumSum GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax "
    "LpNormalization MeanVarianceNormalization RMSNormalization SimplifiedLayerNormalization Softmax"
)
"""Each result element needs its whole neighbourhood; taken as one pass over the data."""
POOLING = _names("AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool")
REDUCING = _names(
    "ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
    "ReduceProd ReduceSum ReduceSumSquare"
)
RENAMING = _names("Dropout Identity")
"""The result is the operand."""
MOVING = _names(
    "CenterCropPad Concat DepthToSpace Expand Flatten Gather GatherElements GatherND GridSample OneHot "
    "Pad Reshape Resize ReverseSequence ScatterElements ScatterND Slice SpaceToDepth Split Squeeze Tile "
    "TopK Transpose Trilu Unsqueeze Upsample"
)
"""The result holds elements of the operands, elsewhere (between them, where it is resized or sampled)."""
MULTIPLYING = _names(
    "Conv ConvInteger ConvTranspose DFT Einsum Gemm MatMul MatMulInteger QLinearConv QLinearMatMul STFT"
)
"""Each is one layer of multiply-accumulates."""
TRANSFORMING = _names("DFT STFT")
"""Products whose operands and results lie otherwise than the operator's."""
EXPANDED = _names("Attention GRU LSTM RNN")
"""Each is several layers."""
CELLS = _names("GRUCell LSTMCell LSTMOutput RNNCell Sequence")
"""Element-wise parts of steps of a recurrent node, which the import makes itself."""
OPENED = _names("If Loop Scan")
"""What they hold stands in their place."""
MICROSOFT = "com.microsoft"
FOREIGN = {
    MICROSOFT: _names(
        "Attention BiasAdd BiasGelu DequantizeLinear DynamicQuantizeLSTM DynamicQuantizeMatMul "
        "EmbedLayerNormalization FastGelu FusedConv FusedGemm FusedMatMul Gelu GroupQueryAttention "
        "LayerNormalization MatMulIntegerToFloat MatMulNBits MultiHeadAttention QAttention QGemm QLinearAdd "
        "QLinearAveragePool QLinearConcat QLinearConv QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul "
        "QLinearSigmoid QLinearSoftmax QuantizeLinear QuickGelu RotaryEmbedding SimplifiedLayerNormalization "
        "SkipLayerNormalization SkipSimplifiedLayerNormalization"
    )
}
"""Operations by domain that are not ONNX's own; each becomes operations of ONNX."""
SUPPORTED = POINTWISE | NORMALISING | POOLING | REDUCING | RENAMING | MOVING | MULTIPLYING | EXPANDED
"""ONNX's own operations that the import knows."""


def unsupported_reason(domain: str, op: str) -> str | None:
    """What keeps an operation from being imported; ``None`` where nothing does."""
    if domain:
        return None if op in FOREIGN.get(domain, ()) else f"the operation {op} of {domain} is not supported"
    return None if op in SUPPORTED | OPENED else f"the operation {op} is not supported"
