"""Any perfect loop nest from one line of index notation.

::

    O[n,k,p,q] += W[k,c,r,s] * I[n,c,2*p+r,q+s] : n=1, k=64, c=3, p=112, q=112, r=7, s=7

    line    = tensor ("+=" | "=") tensor {"*" tensor} [":" bound {"," bound}]
    tensor  = name "[" [index {"," index}] "]"
    index   = term {"+" term}
    term    = name | integer "*" name | name "*" integer
    bound   = name "=" integer ["as" name]

A bound's ``as`` names the convolution loop that the dimension corresponds to (``m=512 as P``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from typing import NoReturn

from tilewright.foundation.errors import InputError, unknown_name
from tilewright.workloads.mapping.operator import Axis, Dimension, Operator, Role, Tensor, Term

TOKEN = re.compile(r"\s*(?P<token>[A-Za-z_]\w*|[0-9]+|\+=|[\[\],+*=:])")
WEIGHT_NAMES = frozenset({"w", "b", "weight", "weights", "filter", "filters", "kernel"})
LARGEST = 2**31 - 1

_Index = tuple[Term, ...]
_Reference = tuple[str, tuple[_Index, ...]]


def nest(
    line: str, *, bounds: MappingABC[str, int] | None = None, like: MappingABC[str, str] | None = None
) -> Operator:
    """The operator that a line of index notation describes.

    Parameters
    ----------
    line : the notation above; whitespace is free
    bounds : iterations by dimension, for those that the line does not give
    like : corresponding convolution loop by dimension; by default the dimension's name in capitals

    Returns
    -------
    An operator of kind ``nest``.  Its loops are in the order of their bounds, its tensors in the order of the
    line, the output last.  The operand named ``W``, ``B``, ``weights``, ``filter`` or ``kernel`` (the second
    one, where none is) holds the weights.  ``+=`` with two or more operands is a multiply-accumulate.

    Raises
    ------
    InputError : naming the column, for a syntax error, an unknown or missing bound, a tensor named twice, a
        dimension twice in one index, a zero stride, or a sum written with ``=``
    """
    parser = _Parser(line)
    output, accumulates, operands = parser.assignment()
    iterations, named = parser.bounds()
    iterations |= dict(bounds or {})
    named |= dict(like or {})
    used = [term.dim for _, indices in (output, *operands) for index in indices for term in index]
    for name in dict.fromkeys(used):
        if name not in iterations:
            raise InputError(line, name, f"missing bound, expected {name}=... after ':'")
    for name, bound in iterations.items():
        if name not in used:
            raise InputError(line, name, f"bound of no index: {unknown_name(name, dict.fromkeys(used))}")
        if not 1 <= bound <= LARGEST:
            raise InputError(line, name, f"expected a bound from 1 to {LARGEST}, got {bound}")
    for name in named:
        if name not in iterations:
            raise InputError(line, name, unknown_name(name, iterations))
    if not accumulates:
        kept = {term.dim for index in output[1] for term in index}
        summed = next((name for name in used if name not in kept), None)
        if summed is not None:
            raise InputError(line, summed, "not an index of the output, expected '+=' to sum over it")
    weight = _weight_position([name for name, _ in operands])
    tensors = [
        _tensor(reference, Role.WEIGHT if i == weight else Role.INPUT, iterations)
        for i, reference in enumerate(operands)
    ]
    return Operator(
        "nest",
        tuple(Dimension(name, bound, named.get(name, name.upper())) for name, bound in iterations.items()),
        (*tensors, _tensor(output, Role.OUTPUT, iterations)),
        is_mac=accumulates and len(operands) > 1,
    )


def _weight_position(names: Sequence[str]) -> int | None:
    for i, name in enumerate(names):
        if name.casefold() in WEIGHT_NAMES:
            return i
    return 1 if len(names) > 1 else None


def _tensor(reference: _Reference, role: Role, bounds: MappingABC[str, int]) -> Tensor:
    name, indices = reference
    axes = tuple(Axis(index, Axis(index, 1).extent(bounds)) for index in indices)
    return Tensor(name, role, axes)


class _Parser:
    """Recursive descent over the tokens of one line; every error names its column (from 1)."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.tokens: list[tuple[str, int]] = []
        position, end = 0, len(line.rstrip())
        while position < end:
            match = TOKEN.match(line, position)
            if match is None:
                column = position + len(line[position:]) - len(line[position:].lstrip())
                raise InputError(line, f"column {column + 1}", f"unexpected character {line[column]!r}")
            self.tokens.append((match["token"], match.start("token") + 1))
            position = match.end()
        self.tokens.append(("", end + 1))
        self.at = 0

    def assignment(self) -> tuple[_Reference, bool, list[_Reference]]:
        names: set[str] = set()
        output = self.reference(names)
        accumulates = self.take("+=", "=") == "+="
        operands = [self.reference(names)]
        while self.peek() == "*":
            self.take("*")
            operands.append(self.reference(names))
        return output, accumulates, operands

    def bounds(self) -> tuple[dict[str, int], dict[str, str]]:
        iterations: dict[str, int] = {}
        named: dict[str, str] = {}
        if self.peek() == "":
            return iterations, named
        self.take(":")
        while True:
            name = self.name("a dimension")
            if name in iterations:
                self.fail(f"second bound of {name}", back=1)
            self.take("=")
            iterations[name] = self.integer()
            if self.peek() == "as":
                self.take("as")
                named[name] = self.name("a convolution loop")
            if self.take(",", "") == "":
                return iterations, named

    def reference(self, names: set[str]) -> _Reference:
        name = self.name("a tensor")
        if name in names:
            self.fail(f"tensor {name} is named twice, expected every tensor once", back=1)
        names.add(name)
        self.take("[")
        indices: list[_Index] = []
        if self.peek() == "]":
            self.take("]")
            return name, ()
        while True:
            indices.append(self.index())
            if self.take(",", "]") == "]":
                return name, tuple(indices)

    def index(self) -> _Index:
        terms = [self.term()]
        while self.peek() == "+":
            self.take("+")
            term = self.term()
            if any(term.dim == earlier.dim for earlier in terms):
                self.fail(f"{term.dim} is twice in one index, expected one term of it", back=1)
            terms.append(term)
        return tuple(terms)

    def term(self) -> Term:
        if self.peek().isdigit():
            stride = self.integer()
            if self.peek() != "*":
                self.fail("expected '*' and a dimension after a number (constant offsets do not move a tile)")
            self.take("*")
            dim = self.name("a dimension")
        else:
            dim, stride = self.name("a dimension"), 1
            if self.peek() == "*":
                self.take("*")
                stride = self.integer()
        if not 1 <= stride <= LARGEST:
            self.fail(f"expected a stride from 1 to {LARGEST}, got {stride}", back=1)
        return Term(dim, stride)

    def peek(self) -> str:
        return self.tokens[self.at][0]

    def take(self, *expected: str) -> str:
        token = self.peek()
        if token not in expected:
            self.fail("expected " + " or ".join(repr(wanted) if wanted else "the end" for wanted in expected))
        self.at += 1
        return token

    def name(self, what: str) -> str:
        if not (self.peek()[:1].isalpha() or self.peek()[:1] == "_"):
            self.fail(f"expected the name of {what}")
        self.at += 1
        return self.tokens[self.at - 1][0]

    def integer(self) -> int:
        token = self.peek()
        if not token.isdigit() or len(token) > 18:
            self.fail("expected an integer" if not token.isdigit() else f"expected at most {LARGEST}")
        self.at += 1
        return int(token)

    def fail(self, message: str, back: int = 0) -> NoReturn:
        token, column = self.tokens[self.at - back]
        remark = "" if back else f", found {token!r}" if token else ", found the end"
        raise InputError(self.line, f"column {column}", message + remark)
