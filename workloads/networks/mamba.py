"""Mamba: a selective state space in place of attention.

A. Gu and T. Dao, "Mamba: linear-time sequence modeling with selective state spaces", arXiv:2312.00752,
algorithm 2 and section 3.4.  A block has a projection to two branches, a causal convolution over four tokens,
the projection of step, input and output vectors, and the scan; state and window take the place of a cache, so
that ``cached`` changes nothing.  The scan is taken apart into its passes: decay ``exp(step x A)``, input
``step x B x u``, the state ``decay x state + input`` for every token, and the product with ``C``, which sums
over the state.  In a sequence each state follows the one before it, which a mapping's order of tokens is not
asked to respect.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.blueprint.phases import Phased, decoder, size_option
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.mapping.operators import depthwise_conv2d
from tilewright.workloads.network import Network
from tilewright.workloads.widths import Kind

WORDS, STATE, WINDOW = 50_280, 16, 4
#: features, blocks
SIZES = {"130M": (768, 24), "370M": (1024, 48), "790M": (1536, 48), "1.4B": (2048, 48), "2.8B": (2560, 64)}


@cache
def _scan(line: str, rows: int, inner: int) -> Operator:
    return nest(line, bounds={"t": rows, "d": inner, "n": STATE}, like={"t": "P", "d": "K", "n": "C"})


def mixer(net: Assembly, x: Data, past: bool) -> Data:
    """The two branches of a block, and the scan.

    Parameters
    ----------
    net : the network that grows
    x : batch x tokens x features
    past : whether window and state hold earlier tokens
    """
    batch, tokens, features = x.shape
    inner, rank, rows = 2 * features, -(-features // 16), batch * tokens
    shape = (batch, tokens, inner)
    with net.scope("mixer"):
        both = net.project(x, 2 * inner, "branches")
        u, gate = both.part(2, 0, inner), both.part(2, inner, inner)
        u = _convolved(net, u, past=past)
        vectors = net.project(u, rank + 2 * STATE, "vectors")
        step = net.project(vectors.part(2, 0, rank), inner, "step", bias=True)
        step = net.pointwise("softplus", "Softplus", step)
        into, out = (
            vectors.part(2, start, STATE).rearranged((batch, tokens, STATE), (0, 1, 2), (rows, STATE))
            for start in (rank, rank + STATE)
        )
        states = (rows, inner, STATE)
        decay = net.layer(
            "decay",
            "Exp",
            _scan("O[t,d,n] = I[t,d] * W[d,n]", rows, inner),
            {"I": step},
            states,
            learned=net.learned(("A", inner * STATE)),
        )
        entry = net.layer(
            "entry",
            "Mul",
            _scan("O[t,d,n] = S[t,d] * U[t,d] * I[t,n]", rows, inner),
            {"S": step, "U": u, "I": into},
            states,
        )
        before = net.outside("state", (batch, inner, STATE), kind=Kind.CACHE).pieces if past else ()
        state = net.layer(
            "state",
            "Scan",
            _scan("O[t,d,n] = D[t,d,n] * W[t,d,n] * I[t,d,n]", rows, inner),
            {"D": decay, "I": entry, **({"W": Data(states, before, Kind.CACHE)} if before else {})},
            states,
            kind=Kind.CACHE,
        )
        y = net.layer(
            "mix", "MatMul", _scan("O[t,d] += H[t,d,n] * C[t,n]", rows, inner), {"H": state, "C": out}, shape
        )
        y = net.pointwise("skip", "MulAdd", y, u, learned=net.learned(("D", inner)))
        return net.project(net.pointwise("gated", "SiluMul", y, gate), features, "result")


def _convolved(net: Assembly, u: Data, *, past: bool) -> Data:
    """Each feature over the last four tokens, and the activation."""
    batch, tokens, inner = u.shape
    window = WINDOW - 1
    padding: tuple[int, ...] = ()
    if past:
        before = net.outside("window", (batch, window, inner), kind=Kind.CACHE).pieces
        operator = depthwise_conv2d(n=batch, c=inner, r=1, s=WINDOW, h=1, w=tokens + window)
    else:
        before, padding = (), (0, window)
        operator = depthwise_conv2d(n=batch, c=inner, r=1, s=WINDOW, h=1, w=tokens, pad=(0, window, 0, 0))
    own = u.rearranged(u.shape, (0, 2, 1), (batch, inner, 1, tokens), "Transpose")
    read = own if not past else Data(own.shape, (*before, *u.moved(u.shape, "Transpose").pieces))
    learned = net.learned(("convolution.weight", inner * WINDOW), ("convolution.bias", inner))
    made = net.layer("convolution", "Conv", operator, {"I": read}, u.shape, learned=learned, before=padding)
    return net.pointwise("convolution_act", "Silu", made)


@dataclass(frozen=True)
class Mamba(Phased):
    """Mamba."""

    size: str = size_option("2.8B", *SIZES)

    def network(self, name: str) -> Network:
        """Its layers."""
        features, blocks = SIZES[self.size]

        def block(net: Assembly, x: Data, _: int) -> Data:
            return net.add(x, mixer(net, net.norm(x, "norm"), past=self.past > 0), "sum")

        return decoder(self, name, (WORDS, features, blocks), block, tied=True)
