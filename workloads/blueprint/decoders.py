"""Attention over a cache, gated and plain feed-forward parts, mixtures of experts.

Attention is full: every query meets every key of its context, as kernels without masks compute it; a causal
mask changes no shape.  Scaling and masking belong to the pass of the softmax, the sigmoid of a gate to the
pass that multiplies by it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from tilewright.foundation.errors import InputError
from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.mapping.operators import reduction
from tilewright.workloads.widths import Kind


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads of one attention.

    Parameters
    ----------
    queries : heads of queries
    keys : heads of keys and values; each serves ``queries / keys`` heads of queries
    width : features of a head
    biased : which of the projections ``q``, ``k``, ``v`` and ``o`` have a bias
    rotary : whether queries and keys are turned by their positions
    normalised : whether queries and keys are normalised head by head
    """

    queries: int
    keys: int
    width: int
    biased: str = ""
    rotary: bool = False
    normalised: bool = False


def attend(
    net: Assembly, queries: Data, keys: Data, values: Data, sizes: tuple[int, int, int, int, int]
) -> Data:
    """Scores, their softmax, and the values mixed by it: layers ``scores``, ``softmax`` and ``mix``.

    Parameters
    ----------
    net : the network that grows
    queries, keys, values : of all pairs
    sizes : pairs (batch times heads of keys), queries that share the keys of a pair, tokens of the context,
        features of a key, features of a value

    Returns
    -------
    Pairs x queries x features of a value
    """
    pairs, rows, context, width, depth = sizes
    scores = net.products(queries, keys, (pairs, rows, context, width), (pairs, rows, context), "scores")
    shares = net.pointwise("softmax", "Softmax", scores, joined=False)
    return net.products(shares, values, (pairs, rows, depth, context), (pairs, rows, depth), "mix")


def append(net: Assembly, new: Data, cached: int, name: str) -> Data:
    """New tokens written behind the cached ones, as a pass of its own.

    Parameters
    ----------
    net : the network that grows
    new : batch x tokens x features
    cached : tokens that are there already, which arrive from outside
    name : of what the cache holds

    Returns
    -------
    The whole cache, batch x context x features
    """
    batch, tokens, features = new.shape
    written = net.pointwise(f"append_{name}", "Append", new, kind=Kind.CACHE)
    past = net.outside(f"{name}_cache", (batch, cached, features)).pieces if cached else ()
    return Data((batch, cached + tokens, features), (*past, *written.pieces), Kind.CACHE)


def self_attention(
    net: Assembly, x: Data, heads: Heads, *, cached: int | None = None, name: str = "attention"
) -> Data:
    """Attention of tokens over themselves and over those in the cache.

    Parameters
    ----------
    net : the network that grows
    x : batch x tokens x features
    heads : their numbers and sizes
    cached : tokens in the cache; ``None`` where nothing is cached, as in encoders
    name : of the scope that holds its layers
    """
    with net.scope(name):
        queries = _projected(net, x, heads, "query")
        keys, values = (_projected(net, x, heads, part) for part in ("key", "value"))
        if cached is not None:
            keys, values = (
                append(net, new, cached, part) for new, part in ((keys, "key"), (values, "value"))
            )
        return _mixed(net, queries, keys, values, heads, x.shape[-1])


def cross_attention(
    net: Assembly, x: Data, memory: Data | tuple[int, int, int], heads: Heads, name: str = "cross_attention"
) -> Data:
    """Attention of tokens over an encoder's result.

    Parameters
    ----------
    net : the network that grows
    x : batch x tokens x features
    memory : the encoder's result, whose keys and values are made and cached; or its shape, where they are in
        the cache already
    heads : their numbers and sizes
    name : of the scope that holds its layers
    """
    with net.scope(name):
        queries = _projected(net, x, heads, "query")
        if isinstance(memory, Data):
            keys, values = (
                append(net, _projected(net, memory, heads, part), 0, part) for part in ("key", "value")
            )
        else:
            shape = (memory[0], memory[1], heads.keys * heads.width)
            keys, values = (net.outside(f"{part}_cache", shape, kind=Kind.CACHE) for part in ("key", "value"))
        return _mixed(net, queries, keys, values, heads, x.shape[-1])


def _projected(net: Assembly, x: Data, heads: Heads, part: str) -> Data:
    """Queries, keys or values, normalised and turned where the heads are."""
    count = heads.queries if part == "query" else heads.keys
    made = net.project(x, count * heads.width, part, bias=part[0] in heads.biased)
    if part == "value":
        return made
    if heads.normalised:
        made = net.norm(made, f"{part}_norm", width=heads.width)
    if heads.rotary:
        made = net.pointwise(f"{part}_rotary", "RotaryEmbedding", made)
    return made


def _mixed(net: Assembly, queries: Data, keys: Data, values: Data, heads: Heads, features: int) -> Data:
    batch, tokens, _ = queries.shape
    context, group = keys.shape[1], heads.queries // heads.keys
    pairs, rows = batch * heads.keys, group * tokens
    moves, width = ("Reshape", "Transpose"), heads.width
    apart = (batch, tokens, heads.keys, group, width)
    split = queries.rearranged(apart, (0, 2, 3, 1, 4), (pairs, rows, width), *moves)
    cached = (batch, context, heads.keys, width)
    keys = keys.rearranged(cached, (0, 2, 3, 1), (pairs, width, context), *moves)
    values = values.rearranged(cached, (0, 2, 1, 3), (pairs, context, width), *moves)
    mixed = attend(net, split, keys, values, (pairs, rows, context, width, width))
    pairwise = (batch, heads.keys, group, tokens, width)
    whole = (batch, tokens, heads.queries * width)
    joined = mixed.rearranged(pairwise, (0, 3, 1, 2, 4), whole, "Transpose", "Reshape")
    return net.project(joined, features, "result", bias="o" in heads.biased)


def feed_forward(
    net: Assembly, x: Data, inner: int, act: str, *, bias: bool = False, name: str = "feed_forward"
) -> Data:
    """Two projections with an activation between them.

    Parameters
    ----------
    net : the network that grows
    x : batch x tokens x features
    inner : features between the projections
    act : the activation, such as ``Gelu``
    bias : whether the projections have one
    name : of the scope that holds its layers
    """
    with net.scope(name):
        wide = net.project(x, inner, "up", bias=bias)
        return net.project(net.pointwise("act", act, wide), x.shape[-1], "down", bias=bias)


def gated(net: Assembly, x: Data, inner: int, name: str = "feed_forward", act: str = "Silu") -> Data:
    """Gate and up projection, the activated gate times the other in one pass, and the projection down.

    Parameters
    ----------
    net : the network that grows
    x : batch x tokens x features
    inner : features between the projections
    name : of the scope that holds its layers
    act : activation of the gate
    """
    with net.scope(name):
        gate, wide = net.project(x, inner, "gate"), net.project(x, inner, "up")
        return net.project(net.pointwise("gated", f"{act}Mul", gate, wide), x.shape[-1], "down")


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts.

    Parameters
    ----------
    count : experts
    chosen : for each token
    inner : features inside an expert
    shares : of the tokens' assignments that each active expert gets; empty for equal ones
    """

    count: int
    chosen: int
    inner: int
    shares: tuple[int, ...] = ()


def loads(experts: Experts, tokens: int, where: str = "experts") -> list[int]:
    """Tokens of each active expert: the assignments, spread evenly or by shares; their sum is all.

    Parameters
    ----------
    experts : how many there are, and what each gets
    tokens : of the whole batch
    where : what errors call the network

    Raises
    ------
    InputError : for more shares than experts, or a share that would give an expert a token twice
    """
    assignments = tokens * experts.chosen
    shares = experts.shares or (1,) * min(experts.count, assignments)
    if len(shares) > experts.count:
        raise InputError(where, "shares", f"expected at most {experts.count} experts, got {len(shares)}")
    whole = sum(shares)
    # Every expert gets the whole part of its share; what is left goes to the largest remainders.
    floors = [assignments * share // whole for share in shares]
    by_rest = sorted(range(len(shares)), key=lambda i: (-(assignments * shares[i] % whole), i))
    for i in by_rest[: assignments - sum(floors)]:
        floors[i] += 1
    if max(floors) > tokens:
        raise InputError(
            where, "shares", f"one expert would get {max(floors):,} of {tokens:,} tokens, some of them twice"
        )
    return [load for load in floors if load]


def mixture(net: Assembly, x: Data, experts: Experts, *, shared: int = 0, name: str = "experts") -> Data:
    """Router, the active experts' gated parts, and the weighted sum of what they return.

    Experts with equally many tokens are one layer with a loop over experts; each loads its own weights, those
    without tokens load none.

    Parameters
    ----------
    net : the network that grows
    x : batch x tokens x features
    experts : the routed ones
    shared : features inside a shared expert, which takes all tokens; 0 for none
    name : of the scope that holds its layers
    """
    features, tokens = x.shape[-1], math.prod(x.shape[:-1])
    with net.scope(name):
        shares = net.pointwise("router_softmax", "Softmax", net.project(x, experts.count, "router"))
        groups = sorted(Counter(loads(experts, tokens, net.name)).items(), reverse=True)
        returned = [
            _experts(net, x, experts, active, load, "" if len(groups) == 1 else str(i + 1))
            for i, (load, active) in enumerate(groups)
        ]
        # A token's results come back together, with the shares by which they are summed.
        shape = (tokens, experts.chosen, features)
        results = Data(shape, tuple(piece for data in returned for piece in data.pieces)).moved(
            shape, "Gather"
        )
        chosen = shares.moved((tokens, experts.chosen), "TopK")
        gathered = replace(results, pieces=(*results.pieces, *chosen.pieces))
        combined = net.layer(
            "combine", "ReduceSum", reduction(shape=shape, over=(1,)), {"I": gathered}, x.shape
        )
    if not shared:
        return combined
    return net.add(combined, gated(net, x, shared, "shared_expert"), "expert_sum")


def _experts(net: Assembly, x: Data, experts: Experts, active: int, load: int, suffix: str) -> Data:
    """The gated parts of experts with equally many tokens."""
    features, inner = x.shape[-1], experts.inner
    whole = experts.count * features * inner
    taken = x.moved((active, load, features), "Gather")
    gate, wide = (
        net.products(
            taken,
            net.learned((f"{part}.weight", whole)),
            (active, load, inner, features),
            (active, load, inner),
            part + suffix,
        )
        for part in ("gate", "up")
    )
    return net.products(
        net.pointwise(f"gated{suffix}", "SiluMul", gate, wide),
        net.learned(("down.weight", whole)),
        (active, load, features, inner),
        (active, load, features),
        f"down{suffix}",
    )
