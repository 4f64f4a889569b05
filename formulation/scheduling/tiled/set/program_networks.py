"""The networks of SET's released program (SET-ISCA2023), layer by layer with its names.

Reference trees name their layers so.  They differ from the catalog's models in names, and here and there in
shape: strided 1x1 convolutions read 55 of 56 rows, concatenation is no layer, and attention copies its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.formulation.scheduling.tiled.set.layers import (
    CONVOLUTION,
    GROUPED,
    SAMPLING,
    SWAPPED,
    Producer,
    SetLayer,
    SetNetwork,
    concatenated,
)
from tilewright.workloads.errors import InputError, unknown_name


class NetworkBuilder:
    """Layers one after the other; a layer without producers reads the one before it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.layers: list[SetLayer] = []

    def conv(
        self,
        name: str,
        inputs: int,
        outputs: int,
        rows: int,
        reads: Sequence[int] | None = None,
        *,
        columns: int = 0,
        taps: int = 1,
        taps_columns: int = 0,
        stride: int = 1,
        groups: int = 1,
        weights: Sequence[int] = (),
        source: tuple[int, int] | None = None,
    ) -> int:
        """A convolution or matrix product; ``source`` is the size (rows, columns) of an input from
        outside.
        """
        window = CONVOLUTION if groups == 1 else GROUPED
        layer = SetLayer(
            name,
            window,
            True,
            outputs,
            rows,
            columns or rows,
            inputs,
            taps,
            taps_columns or taps,
            stride,
            stride,
            groups,
            weight_bytes=taps * (taps_columns or taps) * inputs // groups * outputs,
        )
        return self._add(layer, reads, weights, source)

    def pool(
        self,
        name: str,
        channels: int,
        rows: int,
        reads: Sequence[int] | None = None,
        *,
        taps: int,
        stride: int = 0,
    ) -> int:
        """Pooling; the stride is the window's size unless given."""
        step = stride or taps
        layer = SetLayer(name, SAMPLING, False, channels, rows, rows, channels, taps, taps, step, step)
        return self._add(layer, reads, (), None)

    def add(
        self,
        name: str,
        channels: int,
        rows: int,
        reads: Sequence[int],
        *,
        columns: int = 0,
        operands: int = 2,
    ) -> int:
        """Element-wise combination."""
        layer = SetLayer(name, SAMPLING, False, channels, rows, columns or rows, channels, operands=operands)
        return self._add(layer, reads, (), None)

    def copy(
        self,
        name: str,
        channels: int,
        rows: int,
        columns: int,
        reads: Sequence[int] | None = None,
        *,
        source: tuple[int, int] | None = None,
    ) -> int:
        """Results moved on as they are."""
        layer = SetLayer(name, SAMPLING, False, channels, rows, columns, channels)
        return self._add(layer, reads, (), source)

    def transpose(self, name: str, channels: int, rows: int, columns: int) -> int:
        """Rows become channels."""
        layer = SetLayer(name, SWAPPED, False, channels, rows, columns, rows)
        return self._add(layer, None, (), None)

    def _add(
        self,
        layer: SetLayer,
        reads: Sequence[int] | None,
        weights: Sequence[int],
        source: tuple[int, int] | None,
    ) -> int:
        numbers = () if source else tuple(sorted(reads if reads is not None else (len(self.layers) - 1,)))
        made = [self.layers[one] for one in numbers]
        producers: list[Producer] = []
        offset = 0
        for number, one in zip(numbers, made, strict=True):
            producers.append(Producer(number, offset, one.channels))
            offset += one.channels
            if layer.operands > 1 and offset == layer.inputs:
                offset = 0
        keys = [self.layers[one].channels for one in weights]
        for number, channels, begin in zip(weights, keys, concatenated(keys), strict=True):
            producers.append(Producer(number, begin, channels, weights=True))
        rows, columns = source or (made[0].rows, made[0].columns)
        need_rows = (layer.rows - 1) * layer.stride_rows + layer.taps_rows
        need_columns = (layer.columns - 1) * layer.stride_columns + layer.taps_columns
        if layer.window == SWAPPED:
            need_rows, need_columns = layer.channels, layer.columns
        self.layers.append(
            replace(
                layer,
                producers=tuple(producers),
                external=layer.inputs if source else 0,
                input_rows=min(rows, need_rows),
                input_columns=min(columns, need_columns),
                pad_rows=max(0, need_rows - rows) // 2,
                pad_columns=max(0, need_columns - columns) // 2,
            )
        )
        return len(self.layers) - 1

    def build(self) -> SetNetwork:
        """The network; layers that nobody reads are its outputs."""
        read = {one.layer for layer in self.layers for one in layer.producers}
        return SetNetwork(
            self.name, tuple(replace(layer, is_output=i not in read) for i, layer in enumerate(self.layers))
        )


def darknet19() -> SetNetwork:
    """DarkNet-19."""
    net = NetworkBuilder("darknet")
    net.conv("conv1", 3, 32, 224, taps=3, source=(224, 224))
    net.pool("pool1", 32, 112, taps=2)
    net.conv("conv2", 32, 64, 112, taps=3)
    net.pool("pool2", 64, 56, taps=2)
    number = 3
    for rows, wide, pairs, pooled in ((56, 128, 1, 3), (28, 256, 1, 4), (14, 512, 2, 5), (7, 1024, 2, 0)):
        net.conv(f"conv{number}", wide // 2, wide, rows, taps=3)
        for pair in range(pairs):
            net.conv(f"conv{number + 2 * pair + 1}", wide, wide // 2, rows)
            net.conv(f"conv{number + 2 * pair + 2}", wide // 2, wide, rows, taps=3)
        number += 2 * pairs + 1
        if pooled:
            net.pool(f"pool{pooled}", wide, rows // 2, taps=2)
    net.conv("conv19", 1024, 1000, 7)
    net.pool("pool_avg", 1000, 1, taps=7)
    return net.build()


def resnet(name: str, blocks: tuple[int, int, int, int]) -> SetNetwork:
    """ResNet with bottlenecks."""
    net = NetworkBuilder(name)
    net.conv("conv1", 3, 64, 112, taps=7, stride=2, source=(224, 224))
    last = net.pool("pool1", 64, 56, taps=3, stride=2)
    wide = 64
    for stage, count in enumerate(blocks):
        rows, narrow = 56 >> stage, 64 << stage
        for block in range(count):
            prefix = f"conv_{stage + 2}_{block}_"
            step = 2 if block == 0 and stage else 1
            net.conv(prefix + "a", wide, narrow, rows, (last,), stride=step)
            net.conv(prefix + "b", narrow, narrow, rows, taps=3)
            main = net.conv(prefix + "c", narrow, 4 * narrow, rows)
            if block == 0:
                last = net.conv(f"conv_{stage + 2}_br", wide, 4 * narrow, rows, (last,), stride=step)
            last = net.add(prefix + "res", 4 * narrow, rows, (last, main))
            wide = 4 * narrow
    net.pool("pool5", wide, 1, (last,), taps=7)
    net.conv("fc", wide, 1000, 1)
    return net.build()


def vgg19() -> SetNetwork:
    """VGG-19 without its fully-connected layers."""
    net = NetworkBuilder("vgg")
    inputs, number = 3, 0
    for stage, (count, outputs) in enumerate(((2, 64), (2, 128), (4, 256), (4, 512), (4, 512))):
        rows = 224 >> stage
        for _ in range(count):
            number += 1
            source = (224, 224) if number == 1 else None
            net.conv(f"conv{number}", inputs, outputs, rows, taps=3, source=source)
            inputs = outputs
        net.pool(f"pool{stage + 1}", outputs, rows // 2, taps=2)
    return net.build()


INCEPTION = (
    ("3a", 28, 192, 64, 96, 128, 16, 32, 32),
    ("3b", 28, 256, 128, 128, 192, 32, 96, 64),
    ("4a", 14, 480, 192, 96, 208, 16, 48, 64),
    ("4b", 14, 512, 160, 112, 224, 24, 64, 64),
    ("4c", 14, 512, 128, 128, 256, 24, 64, 64),
    ("4d", 14, 512, 112, 144, 288, 32, 64, 64),
    ("4e", 14, 528, 256, 160, 320, 32, 128, 128),
    ("5a", 7, 832, 256, 160, 320, 32, 128, 128),
    ("5b", 7, 832, 384, 192, 384, 48, 128, 128),
)
"""GoogLeNet's modules: name, rows, inputs, 1x1, reduced 3x3, 3x3, reduced 5x5, 5x5, pool's projection."""


def googlenet() -> SetNetwork:
    """GoogLeNet; modules read their predecessors' four results side by side."""
    net = NetworkBuilder("goog")
    net.conv("conv1", 3, 64, 112, taps=7, stride=2, source=(224, 224))
    net.pool("pool1", 64, 56, taps=3, stride=2)
    net.conv("conv2_3x3_reduce", 64, 64, 56)
    net.conv("conv2_3x3", 64, 192, 56, taps=3)
    last: tuple[int, ...] = (net.pool("pool2", 192, 28, taps=3, stride=2),)
    for name, rows, inputs, one, less3, three, less5, five, pooled in INCEPTION:
        prefix = f"inception_{name}_"
        if name == "4a":
            last = (net.pool("pool3", inputs, rows, last, taps=3, stride=2),)
        elif name == "5a":
            last = (net.pool("pool4", inputs, rows, last, taps=3, stride=2),)
        a = net.conv(prefix + "1x1", inputs, one, rows, last)
        net.conv(prefix + "3x3_reduce", inputs, less3, rows, last)
        b = net.conv(prefix + "3x3", less3, three, rows, taps=3)
        net.conv(prefix + "5x5_reduce", inputs, less5, rows, last)
        c = net.conv(prefix + "5x5", less5, five, rows, taps=5)
        net.pool(prefix + "pool", inputs, rows, last, taps=3, stride=1)
        last = (a, b, c, net.conv(prefix + "pool_proj", inputs, pooled, rows))
    net.pool("pool5", 1024, 1, last, taps=7)
    net.conv("fc", 1024, 1000, 1)
    return net.build()


def inception_resnet() -> SetNetwork:
    """Inception-ResNet-v1."""
    net = NetworkBuilder("ires")
    net.conv("Conv_1a_3x3", 3, 32, 149, taps=3, stride=2, source=(299, 299))
    net.conv("Conv_2a_3x3", 32, 32, 147, taps=3)
    net.conv("Conv_2b_3x3", 32, 64, 147, taps=3)
    net.pool("MaxPool_3a_3x3", 64, 73, taps=3, stride=2)
    net.conv("Conv_3b_1x1", 64, 80, 73)
    net.conv("Conv_4a_3x3", 80, 192, 71, taps=3)
    last: tuple[int, ...] = (net.conv("Conv_4b_3x3", 192, 256, 35, taps=3, stride=2),)
    for block in range(1, 6):
        name = f"A{block}_"
        one = net.conv(name + "Conv_1a_1x1", 256, 32, 35, last)
        net.conv(name + "Conv_2a_1x1", 256, 32, 35, last)
        two = net.conv(name + "Conv_2b_3x3", 32, 32, 35, taps=3)
        net.conv(name + "Conv_3a_1x1", 256, 32, 35, last)
        net.conv(name + "Conv_3b_3x3", 32, 32, 35, taps=3)
        three = net.conv(name + "Conv_3c_3x3", 32, 32, 35, taps=3)
        joined = net.conv(name + "Conv_4_1x1", 96, 256, 35, (one, two, three))
        last = (net.add(name + "Eltwise", 256, 35, (*last, joined)),)
    one = net.conv("RA_Conv_1a_3x3", 256, 384, 17, last, taps=3, stride=2)
    net.conv("RA_Conv_2a_1x1", 256, 192, 35, last)
    net.conv("RA_Conv_2b_3x3", 192, 192, 35, taps=3)
    two = net.conv("RA_Conv_2c_3x3", 192, 256, 17, taps=3, stride=2)
    last = (one, two, net.pool("RA_MaxPool_3a_3x3", 256, 17, last, taps=3, stride=2))
    for block in range(1, 11):
        last = (_factored(net, f"B{block}_", ("1x7", "7x1"), 7, 896, 128, 17, last),)
    pooled = net.pool("RB_MaxPool_1a_3x3", 896, 8, last, taps=3, stride=2)
    net.conv("RB_Conv_2a_1x1", 896, 256, 17, last)
    two = net.conv("RB_Conv_2b_3x3", 256, 384, 8, taps=3, stride=2)
    net.conv("RB_Conv_3a_1x1", 896, 256, 17, last)
    three = net.conv("RB_Conv_3b_3x3", 256, 256, 8, taps=3, stride=2)
    net.conv("RB_Conv_4a_1x1", 896, 256, 17, last)
    net.conv("RB_Conv_4b_3x3", 256, 256, 17, taps=3)
    last = (pooled, two, three, net.conv("RB_Conv_4c_3x3", 256, 256, 8, taps=3, stride=2))
    for block in range(1, 6):
        last = (_factored(net, f"C{block}_", ("1x3", "3x1"), 3, 1792, 192, 8, last),)
    net.pool("AvgPool", 1792, 1, last, taps=8)
    net.conv("Dropout", 1792, 1792, 1)
    net.conv("FC", 1792, 1000, 1)
    return net.build()


def _factored(
    net: NetworkBuilder,
    name: str,
    labels: tuple[str, str],
    taps: int,
    wide: int,
    narrow: int,
    rows: int,
    last: tuple[int, ...],
) -> int:
    """A block with a convolution along rows behind one along columns, and its sum with what it reads."""
    one = net.conv(name + "Conv_1a_1x1", wide, narrow, rows, last)
    net.conv(name + "Conv_2a_1x1", wide, narrow, rows, last)
    net.conv(f"{name}Conv_2b_{labels[0]}", narrow, narrow, rows, taps=1, taps_columns=taps)
    two = net.conv(f"{name}Conv_2c_{labels[1]}", narrow, narrow, rows, taps=taps, taps_columns=1)
    joined = net.conv(name + "Conv_3_1x1", 2 * narrow, wide, rows, (one, two))
    return net.add(name + "Eltwise", wide, rows, (*last, joined))


class _Attention(NetworkBuilder):
    """Encoders and decoders over 512 tokens with 8 heads of 64 features."""

    heads, size, tokens, inner = 8, 64, 512, 2048

    def attention(self, name: str, queries: int, keys: int, values: int) -> int:
        """Queries, keys (head by head, transposed, then joined) and values; two grouped products; a
        projection.
        """
        heads, size, tokens = self.heads, self.size, self.tokens
        wide = heads * size
        query = self.conv(name + "_Q", wide, wide, tokens, (queries,), columns=1)
        turned = []
        for head in range(heads):
            self.conv(f"{name}_K{head}", wide, size, tokens, (keys,), columns=1)
            turned.append(self.transpose(f"{name}_Kt{head}", tokens, size, 1))
        joined = self.copy(name + "_K", heads * tokens, size, 1, turned)
        value = self.conv(name + "_V", wide, wide, tokens, (values,), columns=1)
        scores = self.conv(
            name + "_QK", wide, heads * tokens, tokens, (query,), columns=1, groups=heads, weights=(joined,)
        )
        softmax = self.copy(name + "_QK_elt", heads * tokens, tokens, 1, (scores,))
        self.conv(
            name + "_QKV", heads * tokens, wide, tokens, (softmax,), columns=1, groups=heads, weights=(value,)
        )
        return self.conv(name + "_FC", wide, wide, tokens, columns=1)

    def residual(self, name: str, last: int, other: int) -> int:
        """The sum of two."""
        return self.add(name, self.heads * self.size, self.tokens, (last, other), columns=1)

    def feed_forward(self, name: str) -> int:
        """Two projections."""
        wide = self.heads * self.size
        self.conv(name + "_feedfwd1", wide, self.inner, self.tokens, columns=1)
        return self.conv(name + "_feedfwd2", self.inner, wide, self.tokens, columns=1)

    def encoder(self, name: str, last: int) -> int:
        """One layer of an encoder."""
        last = self.residual(name + "_elt1", last, self.attention(name, last, last, last))
        return self.residual(name + "_elt2", last, self.feed_forward(name))

    def decoder(self, name: str, last: int, memory: int) -> int:
        """One layer of a decoder."""
        last = self.residual(name + "_elt1", last, self.attention(name + "_1", last, last, last))
        last = self.residual(name + "_elt2", last, self.attention(name + "_2", last, memory, memory))
        return self.residual(name + "_elt3", last, self.feed_forward(name))


def transformer(name: str, layers: int) -> SetNetwork:
    """Encoder and decoder; with one layer each, the transformer cell."""
    net = _Attention(name)
    wide, source = net.heads * net.size, (net.tokens, 1)
    memory = net.copy("word_embed_enc", wide, net.tokens, 1, source=source)
    numbers = [""] if layers == 1 else [str(i + 1) for i in range(layers)]
    for number in numbers:
        memory = net.encoder("encoder" + number, memory)
    last = net.copy("word_embed_dec", wide, net.tokens, 1, source=source)
    for number in numbers:
        last = net.decoder("decoder" + number, last, memory)
    net.conv("proj", wide, 1000, net.tokens, (last,), columns=1)
    return net.build()


PROGRAM_NETWORKS: dict[str, Callable[[], SetNetwork]] = {
    "darknet": darknet19,
    "vgg": vgg19,
    "resnet": lambda: resnet("resnet", (3, 4, 6, 3)),
    "resnet101": lambda: resnet("resnet101", (3, 4, 23, 3)),
    "resnet152": lambda: resnet("resnet152", (3, 8, 36, 3)),
    "goog": googlenet,
    "ires": inception_resnet,
    "trans": lambda: transformer("trans", 6),
    "trans_cell": lambda: transformer("trans_cell", 1),
}


def program_network(name: str) -> SetNetwork:
    """A network of the released program by its name there; raises ``InputError``."""
    if name not in PROGRAM_NETWORKS:
        raise InputError("network of SET's program", None, unknown_name(name, PROGRAM_NETWORKS))
    return PROGRAM_NETWORKS[name]()
