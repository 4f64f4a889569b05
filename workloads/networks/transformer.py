"""Transformers.

A. Vaswani et al., "Attention is all you need", NIPS 2017, table 3 (base and big, here called large);
J. Devlin et al., "BERT: pre-training of deep bidirectional transformers", NAACL 2019, section 3; A. Radford
et al., "Language models are unsupervised multitask learners", 2019, table 2 (the smallest GPT-2).

Sequences have 128 tokens (GPT-2: its full context of 1024).  Decoders are run over the whole sequence at
once, as in training and when a prompt is read.
"""

from __future__ import annotations

from functools import partial

from tilewright.workloads.blueprint import Blueprint, Value

LENGTH = 128


def feed_forward(net: Blueprint, x: Value, inner: int, act: str) -> Value:
    """Two projections with an activation between them.

    Parameters
    ----------
    net : the network that grows
    x : batch x length x features
    inner : features between the two projections
    act : activation between them
    """
    y = net.project(x, inner, act=act, name="inner")
    return net.project(y, x.shape[-1], name="outer")


def residual(net: Blueprint, x: Value, y: Value, name: str) -> Value:
    """Sum and normalisation behind it, as in the first Transformer.

    Parameters
    ----------
    net : the network that grows
    x : what went around the layer
    y : the layer's result, of the same shape
    name : of both nodes
    """
    return net.layer_norm(net.add(x, y, name=f"{name}.sum"), f"{name}.norm")


def layer(net: Blueprint, x: Value, heads: int, inner: int, act: str, memory: Value | None = None) -> Value:
    """One layer of an encoder, or (with the encoder's result as memory) of a decoder.

    Parameters
    ----------
    net : the network that grows
    x : batch x length x features
    heads : of every attention
    inner : features inside the feed-forward part
    act : activation of the feed-forward part
    memory : the encoder's result, for a decoder; ``None`` for an encoder
    """
    x = residual(net, x, net.attention(x, x, heads, "self_attention"), "self_attention")
    if memory is not None:
        x = residual(net, x, net.attention(x, memory, heads, "cross_attention"), "cross_attention")
    return residual(net, x, feed_forward(net, x, inner, act), "feed_forward")


def transformer(batch: int, *, name: str, features: int, heads: int) -> Blueprint:
    """Encoder and decoder of six layers; one table of 37,000 words serves both sides and the output.

    Parameters
    ----------
    batch : sentences
    name : of the network
    features : of every token's vector
    heads : of every attention
    """
    net, tokens = Blueprint(name, batch), 37_000
    table = net.weights("words", (tokens, features))

    def embedded(side: str) -> Value:
        vectors = net.lookup(net.input(side, (LENGTH,), integers=True), table, features, f"{side}.vectors")
        vectors = net.op("Mul", [vectors, net.scalar(features**0.5)], vectors.shape)
        waves = net.weights(f"{side}.angles", (LENGTH, features))
        sines = net.op("Sin", [waves], (LENGTH, features))
        return net.op("Add", [vectors, sines], vectors.shape, f"{side}.placed")

    memory = embedded("source")
    for i in range(6):
        with net.scope(f"encoder{i + 1}"):
            memory = layer(net, memory, heads, 4 * features, "Relu")
    x = embedded("target")
    for i in range(6):
        with net.scope(f"decoder{i + 1}"):
            x = layer(net, x, heads, 4 * features, "Relu", memory)
    logits(net, x, table, tokens)
    return net


def logits(net: Blueprint, x: Value, table: str, tokens: int) -> None:
    """One number per token of the vocabulary, by the table of word vectors itself.

    Parameters
    ----------
    net : the network that ends here
    x : batch x length x features
    table : name of the word vectors, shape (tokens, features)
    tokens : of the vocabulary
    """
    rows = net.reshape(x, (x.shape[0] * x.shape[1], x.shape[2]))
    net.softmax(net.dense(rows, tokens, bias=False, weight=table, name="words_out"))


def positions(net: Blueprint, x: Value, longest: int) -> Value:
    """A learned vector for every place of the sequence, added to the tokens' vectors."""
    table = Value(net.weights("positions", (longest, x.shape[2])), (longest, x.shape[2]))
    used = net.slice(table, 0, x.shape[1], axis=0) if longest > x.shape[1] else table
    return net.op("Add", [x, used], x.shape, "placed")


def bert(batch: int, *, name: str, layers: int, features: int, heads: int) -> Blueprint:
    """Encoder of tokens, places and segments, with the pooled first token on top.

    Parameters
    ----------
    batch : sequences
    name : of the network
    layers : of the encoder
    features : of every token's vector
    heads : of every attention
    """
    net = Blueprint(name, batch)
    x = net.lookup(
        net.input("tokens", (LENGTH,), integers=True), net.weights("words", (30_522, features)), features
    )
    segments = net.lookup(
        net.input("segments", (LENGTH,), integers=True), net.weights("segment_table", (2, features)), features
    )
    x = net.layer_norm(positions(net, net.add(x, segments, name="tokens_segments"), 512), "embedding_norm")
    for i in range(layers):
        with net.scope(f"layer{i + 1}"):
            x = layer(net, x, heads, 4 * features, "Gelu")
    first = net.reshape(net.slice(x, 0, 1), (batch, features))
    net.dense(first, features, act="Tanh", name="pooler")
    return net


def gpt2_small(batch: int) -> Blueprint:
    """Decoder of 12 layers over 1024 tokens, normalisation before every part."""
    net, features, tokens = Blueprint("gpt2-small", batch), 768, 50_257
    table = net.weights("words", (tokens, features))
    x = positions(net, net.lookup(net.input("tokens", (1024,), integers=True), table, features), 1024)
    for i in range(12):
        with net.scope(f"layer{i + 1}"):
            y = net.layer_norm(x, "attention_norm")
            x = net.add(x, net.attention(y, y, 12), name="attention_sum")
            y = feed_forward(net, net.layer_norm(x, "feed_forward_norm"), 4 * features, "Gelu")
            x = net.add(x, y, name="feed_forward_sum")
    logits(net, net.layer_norm(x, "last_norm"), table, tokens)
    return net


MODELS = {
    "transformer-base": partial(transformer, name="transformer-base", features=512, heads=8),
    "transformer-large": partial(transformer, name="transformer-large", features=1024, heads=16),
    "bert-base": partial(bert, name="bert-base", layers=12, features=768, heads=12),
    "bert-large": partial(bert, name="bert-large", layers=24, features=1024, heads=16),
    "gpt2-small": gpt2_small,
}
