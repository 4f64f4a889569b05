"""The networks of SET's released program (SET-ISCA2023), layer by layer with its names.

Reference trees name their layers so.  They differ from the catalog's models in names, and here and there in
shape: strided 1x1 convolutions read 55 of 56 rows, concatenation is no layer, and attention copies its keys.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.released.builder import NetworkBuilder
from tilewright.formulation.scheduling.tiled.set.released.pnasnet import pnasnet
from tilewright.foundation.errors import InputError, unknown_name


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
    for name, rows, inputs, single, less3, three, less5, five, pooled in INCEPTION:
        prefix = f"inception_{name}_"
        if name == "4a":
            last = (net.pool("pool3", inputs, rows, last, taps=3, stride=2),)
        elif name == "5a":
            last = (net.pool("pool4", inputs, rows, last, taps=3, stride=2),)
        a = net.conv(prefix + "1x1", inputs, single, rows, last)
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
        last = (_three_branches(net, f"A{block}_", last),)
    first = net.conv("RA_Conv_1a_3x3", 256, 384, 17, last, taps=3, stride=2)
    net.conv("RA_Conv_2a_1x1", 256, 192, 35, last)
    net.conv("RA_Conv_2b_3x3", 192, 192, 35, taps=3)
    two = net.conv("RA_Conv_2c_3x3", 192, 256, 17, taps=3, stride=2)
    last = (first, two, net.pool("RA_MaxPool_3a_3x3", 256, 17, last, taps=3, stride=2))
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


def _three_branches(net: NetworkBuilder, name: str, last: tuple[int, ...]) -> int:
    """A block of Inception-ResNet's first kind, and its sum with what it reads."""
    first = net.conv(name + "Conv_1a_1x1", 256, 32, 35, last)
    net.conv(name + "Conv_2a_1x1", 256, 32, 35, last)
    two = net.conv(name + "Conv_2b_3x3", 32, 32, 35, taps=3)
    net.conv(name + "Conv_3a_1x1", 256, 32, 35, last)
    net.conv(name + "Conv_3b_3x3", 32, 32, 35, taps=3)
    three = net.conv(name + "Conv_3c_3x3", 32, 32, 35, taps=3)
    joined = net.conv(name + "Conv_4_1x1", 96, 256, 35, (first, two, three))
    return net.add(name + "Eltwise", 256, 35, (*last, joined))


def inception_resnet_block() -> SetNetwork:
    """The first block of Inception-ResNet-v1 and the convolution before it."""
    net = NetworkBuilder("ires_block")
    last = net.conv("Conv_4b_3x3", 192, 256, 35, taps=3, stride=2, source=(71, 71))
    _three_branches(net, "A1_", (last,))
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
    first = net.conv(name + "Conv_1a_1x1", wide, narrow, rows, last)
    net.conv(name + "Conv_2a_1x1", wide, narrow, rows, last)
    net.conv(f"{name}Conv_2b_{labels[0]}", narrow, narrow, rows, taps=1, taps_columns=taps)
    two = net.conv(f"{name}Conv_2c_{labels[1]}", narrow, narrow, rows, taps=taps, taps_columns=1)
    joined = net.conv(name + "Conv_3_1x1", 2 * narrow, wide, rows, (first, two))
    return net.add(name + "Eltwise", wide, rows, (*last, joined))


def zfnet() -> SetNetwork:
    """ZFNet; its first fully-connected layer reads 6 x 6 positions."""
    net = NetworkBuilder("zfnet")
    net.conv("conv1", 3, 96, 110, taps=7, stride=2, source=(224, 224))
    net.pool("pool1", 96, 55, taps=3, stride=2)
    net.conv("conv2", 96, 256, 26, taps=5, stride=2)
    net.pool("pool2", 256, 13, taps=3, stride=2)
    for name, inputs, outputs in (("conv3", 256, 512), ("conv4", 512, 1024), ("conv5", 1024, 512)):
        net.conv(name, inputs, outputs, 13, taps=3)
    net.pool("pool3", 512, 6, taps=3, stride=2)
    net.conv("fc1", 512, 4096, 1, taps=6)
    net.conv("fc2", 4096, 4096, 1)
    net.conv("fc3", 4096, 1000, 1)
    return net.build()


def densenet() -> SetNetwork:
    """DenseNet-121; every layer of a block reads the results of all before it side by side."""
    net = NetworkBuilder("densenet")
    net.conv("conv0", 3, 64, 112, taps=7, stride=2, source=(224, 224))
    last = [net.pool("pool0", 64, 56, taps=3, stride=2)]
    rows, wide = 56, 64
    for block, count in enumerate((6, 12, 24, 16), 1):
        for number in range(count):
            net.conv(f"block_{block}_{number}_1x1", wide, 128, rows, last)
            last.append(net.conv(f"block_{block}_{number}_3x3", 128, 32, rows, taps=3))
            wide += 32
        if block < 4:
            net.conv(f"trans_{block}_1x1", wide, wide // 2, rows, last)
            rows, wide = rows // 2, wide // 2
            last = [net.pool(f"trans_{block}_pool", wide, rows, taps=2)]
    net.pool("pool_avg", wide, 1, last, taps=rows)
    net.conv("fc", wide, 1000, 1)
    return net.build()


def recurrent(name: str, residual: bool, wide: int = 1000) -> SetNetwork:
    """One time step of eight cells; states of the step before come from outside."""
    net = NetworkBuilder(name)
    last = net.copy("word_embed", wide, 1, 1, source=(1, 1))
    for block in range(1, 9):
        prefix = f"block{block}_"
        forget, enter, new, leave = (
            net.conv(prefix + gate, 2 * wide, wide, 1, (last,), outside=wide)
            for gate in ("f", "i", "cand", "o")
        )
        kept = net.add(prefix + "fout", wide, 1, (forget,), outside=wide)
        entered = net.add(prefix + "iout", wide, 1, (enter, new))
        net.add(prefix + "cout", wide, 1, (kept, entered))
        bent = net.copy(prefix + "tanh", wide, 1, 1)
        result = net.add(prefix + "hout", wide, 1, (bent, leave))
        last = net.add(prefix + "add", wide, 1, (last, result)) if residual else result
    net.copy("Wd", wide, 1, 1, (last,))
    return net.build()


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
    "densenet": densenet,
    "ires": inception_resnet,
    "ires_block": inception_resnet_block,
    "zfnet": zfnet,
    "gnmt": lambda: recurrent("gnmt", residual=True),
    "lstm": lambda: recurrent("lstm", residual=False),
    "pnas": pnasnet,
    "trans": lambda: transformer("trans", 6),
    "trans_cell": lambda: transformer("trans_cell", 1),
}


def program_network(name: str) -> SetNetwork:
    """A network of the released program by its name there; raises ``InputError``."""
    if name not in PROGRAM_NETWORKS:
        raise InputError("network of SET's program", None, unknown_name(name, PROGRAM_NETWORKS))
    return PROGRAM_NETWORKS[name]()
