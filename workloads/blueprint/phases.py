"""What families of language models have in common: phases, tokens, the cache, the words at either end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from tilewright.foundation.options import option
from tilewright.workloads.blueprint.assembly import Assembly, Data
from tilewright.workloads.network import Network
from tilewright.workloads.phases import DECODE, PREFILL
from tilewright.workloads.widths import MACHINE, checked_widths

MOST_TOKENS, MOST_SAMPLES = 2**24, 2**16
CONTEXT = 2048
"""Tokens of the prompt, and in decode of the context, by default."""
BITS = "bits of weights, activations, cache and sums, as in w4a16c8s32; machine: those of the machine"


def counted(low: int, high: int) -> Callable[[str], int | None]:
    """A reader of whole numbers in a range."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 18 and low <= int(text) <= high):
            raise ValueError(f"expected a whole number from {low:,} to {high:,}, got {text!r}")
        return int(text)

    return read


def size_option(default: str, *choices: str) -> str:
    """The parameter ``size`` of a family: one of its published sizes."""
    return option(default, f"one of {', '.join(choices)}", choices=choices)


def batch_option() -> int:
    """The parameter ``batch``: sequences or pictures."""
    return option(1, "sequences, or pictures", low=1, high=MOST_SAMPLES)


@dataclass(frozen=True)
class Picture:
    """The parameters of a network that runs in one pass.

    Parameters
    ----------
    size : which of the published ones
    batch : samples
    widths : bits of elements
    """

    size: str = option("", "")
    batch: int = batch_option()
    widths: str = option(MACHINE, BITS, read=checked_widths)

    def settled(self) -> Self:
        """No default depends on another parameter."""
        return self


@dataclass(frozen=True)
class Phased:
    """The parameters of a language model.

    Parameters
    ----------
    size : which of the published ones
    phase : ``prefill`` reads a prompt, ``decode`` adds tokens to it
    tokens : new tokens of each sequence
    cached : tokens of each sequence that are in the cache before
    batch : sequences
    logits : tokens of each sequence that words are predicted from
    widths : bits of elements
    """

    size: str = option("", "")
    phase: str = option(PREFILL, "prefill or decode", choices=(PREFILL, DECODE))
    tokens: int | None = option(
        None, f"new tokens of each sequence: {CONTEXT}, in decode 1", read=counted(1, MOST_TOKENS), show=str
    )
    cached: int | None = option(
        None,
        f"tokens of each sequence in the cache: none, in decode {CONTEXT - 1}",
        read=counted(0, MOST_TOKENS),
        show=str,
    )
    batch: int = batch_option()
    logits: str = option(
        "last", "tokens that words are predicted from, last or every", choices=("last", "every")
    )
    widths: str = option(MACHINE, BITS, read=checked_widths)

    def settled(self) -> Self:
        """The same with numbers of tokens, whose defaults depend on the phase."""
        decodes = self.phase == DECODE
        tokens = (1 if decodes else CONTEXT) if self.tokens is None else self.tokens
        cached = (CONTEXT - 1 if decodes else 0) if self.cached is None else self.cached
        return replace(self, tokens=tokens, cached=cached)

    @property
    def new(self) -> int:
        """New tokens of each sequence, once settled."""
        assert self.tokens is not None
        return self.tokens

    @property
    def past(self) -> int:
        """Cached tokens of each sequence, once settled."""
        assert self.cached is not None
        return self.cached

    def head(self, net: Assembly, x: Data, words: int, table: str | None = None) -> None:
        """The projection to one number per word.

        Parameters
        ----------
        net : the network that ends here
        x : batch x tokens x features
        words : of the vocabulary
        table : the words' vectors, where they are used again; by default new parameters
        """
        if self.logits == "last":
            x = x.part(1, x.shape[1] - 1, 1) if x.shape[1] > 1 else x
        net.project(x, words, "words_out", weight=table)


def decoder(
    family: Phased,
    name: str,
    shape: tuple[int, int, int],
    block: Callable[[Assembly, Data, int], Data],
    *,
    tied: bool = False,
    shift: bool = False,
    places: int = 0,
) -> Network:
    """A decoder: word vectors, blocks, a last normalisation, and the projection to words.

    Parameters
    ----------
    family : its parameters
    name : of the network
    shape : words of the vocabulary, features, blocks
    block : makes one block, given the network, its input and its index from 0
    tied : whether words are predicted by the table of word vectors
    shift : whether the last normalisation has a shift
    places : learned vectors of places, added to the word vectors; 0 for none
    """
    words, features, blocks = shape
    net = Assembly(name, family.batch, family.widths)
    net.table("words", words * features)
    x = net.outside("tokens", (family.batch, family.new, features), "Gather")
    if places:
        net.table("places", places * features)
        x = net.add(x, net.outside("places", (family.new, features), "Slice"), "placed")
    for i in range(blocks):
        with net.scope(f"block{i + 1}"):
            x = block(net, x, i)
    family.head(net, net.norm(x, "last_norm", shift=shift), words, "words" if tied else None)
    return net.network()
