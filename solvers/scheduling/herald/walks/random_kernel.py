"""Random numbers for machine code.

Words are those of the Mersenne Twister (Matsumoto and Nishimura, ACM TOMACS 8, 1998: sections 2 and 3, with
the initialization of 2002), so that a seed means the same everywhere; normal numbers are made by Marsaglia's
polar method.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s
from tilewright.foundation.compiled import compiled

_WORDS, _APART = 624, 397
_TWIST = 0x9908B0DF
_WORD, _HIGH, _LOW = 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF


class Stream(NamedTuple):
    """A stream of random numbers.

    Parameters
    ----------
    words : the state, and behind it the place of the next word
    spare : whether a normal number is left over, and that number
    """

    words: Int64s
    spare: Floats


@compiled
def stream(seed: int) -> Stream:
    """The stream of a seed."""
    words = np.empty(_WORDS + 1, dtype=np.int64)
    words[0] = seed & _WORD
    for at in range(1, _WORDS):
        before = words[at - 1]
        words[at] = (1812433253 * (before ^ (before >> 30)) + at) & _WORD
    words[_WORDS] = _WORDS
    return Stream(words, np.zeros(2, dtype=np.float64))


@compiled
def _twist(words: Int64s) -> None:
    """The next words of the state."""
    for at in range(_WORDS):
        both = (words[at] & _HIGH) | (words[(at + 1) % _WORDS] & _LOW)
        mixed = words[(at + _APART) % _WORDS] ^ (both >> 1)
        words[at] = mixed ^ _TWIST if both & 1 else mixed
    words[_WORDS] = 0


@compiled
def _word(words: Int64s) -> int:
    """The next 32 bits."""
    if words[_WORDS] >= _WORDS:
        _twist(words)
    word = words[words[_WORDS]]
    words[_WORDS] += 1
    word ^= word >> 11
    word ^= (word << 7) & 0x9D2C5680
    word ^= (word << 15) & 0xEFC60000
    tempered: int = word ^ (word >> 18)
    return tempered


@compiled
def draw(of: Stream) -> float:
    """A number from [0, 1), of 53 bits."""
    high = _word(of.words) >> 5
    low = _word(of.words) >> 6
    return (high * 67108864 + low) / 9007199254740992


@compiled
def draw_below(of: Stream, end: int) -> int:
    """A whole number from 0 to ``end - 1``, of at most 32 bits."""
    if end == 1:
        return 0
    mask = 0
    while mask < end - 1:
        mask = 2 * mask + 1
    number = _word(of.words) & mask
    while number >= end:
        number = _word(of.words) & mask
    return number


@compiled
def draw_normal(of: Stream) -> float:
    """A number of the standard normal distribution."""
    if of.spare[0] != 0.0:
        of.spare[0] = 0.0
        spare: float = of.spare[1]
        return spare
    while True:
        x, y = 2.0 * draw(of) - 1.0, 2.0 * draw(of) - 1.0
        square = x * x + y * y
        if square < 1.0 and square != 0.0:
            break
    factor = math.sqrt(-2.0 * math.log(square) / square)
    of.spare[0], of.spare[1] = 1.0, factor * x
    return factor * y
