"""Recurrent networks that translate, one time step at a time."""

from __future__ import annotations

from tilewright.workloads.blueprint import Blueprint, Value

UNITS, WORDS, SOURCE_LENGTH = 1024, 32_000, 25
"""GNMT's width, its vocabulary, and how many source words the attention looks back over."""


def state(net: Blueprint, name: str, units: int) -> tuple[Value, Value]:
    """Hidden and cell state that the time step before has left."""
    return net.input(f"{name}.hidden_before", (units,)), net.input(f"{name}.cell_before", (units,))


def gnmt(batch: int) -> Blueprint:
    """Google's translation system: one time step of the encoder and one of the decoder.

    Y. Wu et al., "Google's neural machine translation system", 2016, figure 1 and section 3: 8 encoder
    layers, the first in both directions, 8 decoder layers that all read the attention's result, 1024 units,
    residual sums from the third layer on, an additive attention of 1024 units, 32k words.  A sentence repeats
    the step word by word; the attention here looks back over 25 words.
    """
    net = Blueprint("gnmt", batch)
    forward = words(net, "source", (WORDS, UNITS), "encoder")
    backward = net.input("source_from_behind", (UNITS,))
    sides = [
        net.lstm_cell(x, state(net, f"encoder1.{side}", UNITS), f"encoder1.{side}")[0]
        for x, side in ((forward, "forward"), (backward, "backward"))
    ]
    x = net.concat(*sides, name="encoder1.joined")
    for i in range(2, 9):
        y, _ = net.lstm_cell(x, state(net, f"encoder{i}", UNITS), f"encoder{i}")
        x = net.add(x, y, name=f"encoder{i}.residual") if i > 2 else y
    key = net.dense(x, UNITS, bias=False, name="attention.key")
    target = words(net, "target", (WORDS, UNITS), "decoder")
    before = net.input("decoder1.output_before", (UNITS,))
    context = attention(net, before, key)
    x = target
    for i in range(1, 9):
        joined = net.concat(x, context, name=f"decoder{i}.joined_context")
        y, _ = net.lstm_cell(joined, state(net, f"decoder{i}", UNITS), f"decoder{i}")
        x = net.add(x, y, name=f"decoder{i}.residual") if i > 2 else y
    net.softmax(net.dense(x, WORDS, bias=False, name="words"))
    return net


def lstm(batch: int) -> Blueprint:
    """Sequence to sequence: one time step of the encoder and one of the decoder.

    I. Sutskever, O. Vinyals, Q. Le, "Sequence to sequence learning with neural networks", NIPS 2014, section
    3.4: two stacks of 4 layers of 1000 cells, word vectors of 1000 elements, 160,000 source words, 80,000
    target words.
    """
    net = Blueprint("lstm", batch)
    for side, name, size in (("encoder", "source", 160_000), ("decoder", "target", 80_000)):
        x = words(net, name, (size, 1000), side)
        for i in range(1, 5):
            x, _ = net.lstm_cell(x, state(net, f"{side}{i}", 1000), f"{side}{i}")
    net.softmax(net.dense(x, 80_000, bias=False, name="words"))
    return net


def words(net: Blueprint, name: str, table: tuple[int, int], side: str) -> Value:
    """One word of every sentence as a vector, from a table of all words' vectors.

    Parameters
    ----------
    net : the network that grows
    name : of the input that gives the words' numbers
    table : rows (the vocabulary) and columns (features) of the stored vectors
    side : whose vocabulary it is; names the table
    """
    stored = net.weights(f"{side}.embedding", table)
    rows = net.lookup(net.input(name, (1,), integers=True), stored, table[1], name=f"{name}.vector")
    return net.reshape(rows, (net.batch, table[1]))


def attention(net: Blueprint, query: Value, newest: Value) -> Value:
    """Additive attention over the words so far, the newest one's key computed in this step."""
    with net.scope("attention"):
        n = net.batch
        keys = net.input("attention.keys_before", (SOURCE_LENGTH - 1, UNITS))
        keys = net.concat(keys, net.reshape(newest, (n, 1, UNITS)), name="keys")
        values = net.input("attention.values", (SOURCE_LENGTH, UNITS))
        asked = net.reshape(net.dense(query, UNITS, bias=False, name="query"), (n, 1, UNITS))
        mixed = net.op("Add", [keys, asked], keys.shape, "mixed")
        vector = net.weights("vector", (UNITS, 1))
        scores = net.op("MatMul", [net.act(mixed, "Tanh"), vector], (n, SOURCE_LENGTH, 1), "scores")
        shares = net.softmax(net.transpose(scores, (0, 2, 1)))
        return net.reshape(net.matmul(shares, values, "context"), (n, UNITS))


MODELS = {"gnmt": gnmt, "lstm": lstm}
