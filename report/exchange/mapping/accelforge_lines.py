"""Lines of AccelForge's fused mappings, as a tree of nodes.

::

    DRAM: Q,K,V,O
    Temporal m tile 256
    GLB: S
    Sequential
      Nested
        Temporal e tile 1
        Spatial p tile 1 on reuse_input
        Compute QK on MAC
      Nested
        Compute AV on MAC

A ``Spatial`` line may name its array before or after the tile, in any words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.foundation.errors import InputError

_LOOP = re.compile(r"(?P<kind>Temporal|Spatial)\b(?P<rest>.*)")
_TILE = re.compile(r"\btile\W*(?P<tile>\d+)\b")
_STORE = re.compile(r"(?P<level>\w+)\s*:\s*(?P<tensors>\w+(\s*,\s*\w+)*)")
_COMPUTE = re.compile(r"Compute\s+(?P<einsum>\w+)(\s+on\s+\w+)?")
_INDENT = 2


@dataclass(frozen=True, slots=True)
class PeerLoop:
    """Tiles of ``tile`` iterations of a rank variable, in time, or over an array of that name."""

    variable: str
    tile: int
    array: str | None
    line: int


@dataclass(frozen=True, slots=True)
class PeerStore:
    """Tensors that begin to live in a level."""

    level: str
    tensors: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class PeerBranch:
    """Loops and stores, and then either an einsum or children that run in turn."""

    nodes: tuple[PeerLoop | PeerStore, ...]
    einsum: str | None
    children: tuple[PeerBranch, ...] = ()

    def einsums(self) -> list[str]:
        """All einsums below, in the order in which they run."""
        if self.einsum is not None:
            return [self.einsum]
        return [name for child in self.children for name in child.einsums()]


def parse_lines(
    lines: Sequence[str], variables: Sequence[str], arrays: Sequence[str], where: str = "mapping"
) -> PeerBranch:
    """The tree that some lines write.

    Parameters
    ----------
    lines : one node each; children are indented
    variables, arrays : names of rank variables and of axes of arrays
    where : what errors call the mapping

    Raises
    ------
    InputError : naming the line that is none of these nodes, or that stands in the wrong place
    """
    rows = [
        ((len(line) - len(line.lstrip())) // _INDENT, line.strip(), number)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    branch, end = _Lines(rows, frozenset(variables), frozenset(arrays), where).branch(0, 0)
    if end < len(rows):
        raise InputError(f"{where}:{rows[end][2]}", None, f"nothing may follow here, got {rows[end][1]!r}")
    return branch


@dataclass(frozen=True)
class _Lines:
    rows: Sequence[tuple[int, str, int]]
    variables: frozenset[str]
    arrays: frozenset[str]
    where: str

    def branch(self, at: int, depth: int) -> tuple[PeerBranch, int]:
        """The nodes from some row on, and the row behind them."""
        nodes: list[PeerLoop | PeerStore] = []
        while at < len(self.rows) and self.rows[at][0] == depth:
            _, text, number = self.rows[at]
            at += 1
            if text == "Sequential":
                children: list[PeerBranch] = []
                while at < len(self.rows) and self.rows[at][:2] == (depth + 1, "Nested"):
                    child, at = self.branch(at + 1, depth + 2)
                    children.append(child)
                if not children:
                    raise self.error(number, "expected children, each below a line Nested")
                return PeerBranch(tuple(nodes), None, tuple(children)), at
            compute = _COMPUTE.fullmatch(text)
            if compute is not None:
                return PeerBranch(tuple(nodes), compute["einsum"]), at
            nodes.append(self.node(text, number))
        last = self.rows[at - 1][2] if at else 1
        raise self.error(last, "expected Sequential or Compute at the end of these nodes")

    def node(self, text: str, number: int) -> PeerLoop | PeerStore:
        loop = _LOOP.fullmatch(text)
        if loop is None:
            store = _STORE.fullmatch(text)
            if store is None:
                raise self.error(number, f"expected a store, Temporal, Spatial or Sequential, got {text!r}")
            tensors = tuple(re.findall(r"\w+", store["tensors"]))
            return PeerStore(store["level"], tensors, number)
        tile = _TILE.search(loop["rest"])
        words = re.findall(r"\w+", _TILE.sub(" ", loop["rest"]))
        named = [word for word in words if word in self.variables]
        arrays = [word for word in words if word in self.arrays]
        if tile is None or not named or (loop["kind"] == "Spatial" and not arrays):
            raise self.error(
                number, f"expected a rank variable and a tile, and of Spatial an axis, got {text!r}"
            )
        array = arrays[0] if loop["kind"] == "Spatial" else None
        return PeerLoop(named[0], int(tile["tile"]), array, number)

    def error(self, number: int, message: str) -> InputError:
        return InputError(f"{self.where}:{number}", None, message)
