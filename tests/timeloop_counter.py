"""Access counts of Timeloop's mappings from their text alone, as Timeloop counts them.

Nothing of the package is used: texts are read with a plain YAML loader, and every figure follows from factors
and permutations.  For perfect factors, per instance of a level:

- a tile spans, along every axis of a data space, as far as the factors of all loops inside reach;
- it is fetched anew whenever the innermost loop in time outside, among those that move it, advances; where
  that loop slides a window, only what is new is fetched;
- what a level reads is what the next level inside fetches, once for all instances that need the same;
- partial sums go out at every visit and come in at every visit but the first.
"""

from __future__ import annotations

import math
from typing import Any

import yaml

Counts = dict[str, list[float]]
Loop = tuple[str, int, bool]
"""Dimension, factor, and whether it is in space."""


class Nest:
    """The loops of one mapping by level, outermost first.

    Parameters
    ----------
    text : with ``problem`` and ``mapping``, in one or several YAML documents
    levels : storage levels, outermost first
    arrays : per array the level outside it
    """

    def __init__(self, text: str, levels: list[str], arrays: dict[str, str]) -> None:
        data: dict[str, Any] = {}
        for document in yaml.safe_load_all(text):
            data |= document
        shape, instance = data["problem"]["shape"], data["problem"]["instance"]
        self.bounds = {dim: instance[dim] for dim in shape["dimensions"]}
        self.spaces = {space["name"]: space for space in shape["data_spaces"]}
        self.steps = {
            entry["name"]: instance.get(entry["name"], 1) for entry in shape.get("coefficients", [])
        }
        self.loops: list[list[Loop]] = []
        for level in levels:
            own = [
                entry for entry in data["mapping"] if entry["target"] == level and entry["type"] == "temporal"
            ]
            inside = [
                entry
                for entry in data["mapping"]
                if entry["type"] == "spatial" and arrays.get(entry["target"]) == level
            ]
            nest_loops: list[Loop] = []
            for directive in [*own, *inside]:
                factors = dict(part.split("=") for part in directive["factors"].split())
                for dim in reversed(directive["permutation"]):
                    nest_loops.append((dim, int(factors[dim]), directive["type"] == "spatial"))
            self.loops.append(nest_loops)

    def axes(self, space: str) -> list[list[tuple[str, int]]]:
        """Per axis the dimensions with their strides."""
        return [
            [(term[0], self.steps[term[1]] if len(term) > 1 else 1) for term in axis]
            for axis in self.spaces[space]["projection"]
        ]

    def dims(self, space: str) -> set[str]:
        return {dim for axis in self.axes(space) for dim, _ in axis}

    def inside(self, level: int) -> dict[str, int]:
        """Iterations of every dimension inside a level's instance."""
        trips = dict.fromkeys(self.bounds, 1)
        for loops in self.loops[level:]:
            for dim, factor, _ in loops:
                trips[dim] *= factor
        return trips

    def tile(self, space: str, inner: dict[str, int]) -> int:
        return math.prod(1 + sum(step * (inner[dim] - 1) for dim, step in axis) for axis in self.axes(space))

    def outside(self, level: int) -> list[Loop]:
        """Loops in time outside a level, innermost first, those of one iteration left out."""
        outside = [loop for loops in self.loops[:level] for loop in loops if not loop[2] and loop[1] > 1]
        return outside[::-1]

    def fetched(self, space: str, level: int, inner: dict[str, int]) -> int:
        """Elements that reach one instance of a level, which holds a tile of ``inner`` iterations."""
        loops, dims = self.outside(level), self.dims(space)
        while loops and loops[0][0] not in dims:
            loops.pop(0)
        if not loops:
            return self.tile(space, inner)
        (mover, count, _), *others = loops
        size = 1
        for axis in self.axes(space):
            span = 1 + sum(step * (inner[dim] - 1) for dim, step in axis)
            moves = [step for dim, step in axis if dim == mover]
            if moves and len(axis) > 1:
                size *= span + (count - 1) * min(span, moves[0] * inner[mover])
            else:
                size *= span * (count if moves else 1)
        return size * math.prod(factor for _, factor, _ in others)

    def spatial(self, level: int) -> list[Loop]:
        return [loop for loop in self.loops[level] if loop[2]]

    def counts(self, space: str, level: int) -> list[float]:
        """Reads, fills, updates and tile of a level's instance."""
        last = level == len(self.loops) - 1
        output = bool(self.spaces[space].get("read_write"))
        tile = self.tile(space, self.inside(level))
        if output:
            return self._sums(space, level, tile, last=last)
        fills = self.fetched(space, level, self.inside(level)) if level else 0
        if last:
            steps = math.prod(f for loops in self.loops for _, f, space_loop in loops if not space_loop)
            return [steps, fills, 0, tile]
        reads = self.fetched(space, level + 1, self.inside(level + 1))
        reads *= self._different(space, level)
        return [reads, fills, 0, tile]

    def _different(self, space: str, level: int) -> int:
        """Instances of the next level inside that need different tiles."""
        inner = self.inside(level + 1)
        different = 1
        for axis in self.axes(space):
            places = {0}
            for dim, step in axis:
                copies = math.prod(f for spread, f, _ in self.spatial(level) if spread == dim)
                places = {at + step * inner[dim] * index for at in places for index in range(copies)}
            different *= len(places)
        return different

    def _sums(self, space: str, level: int, tile: int, *, last: bool) -> list[float]:
        dims = self.dims(space)

        def visits(at: int) -> int:
            loops = self.outside(at)
            while loops and loops[0][0] not in dims:
                loops.pop(0)
            return math.prod(factor for _, factor, _ in loops)

        def places(at: int) -> int:
            return math.prod(factor for dim, factor, _ in self.outside(at) if dim in dims)

        fills = tile * (visits(level) - places(level)) if level else 0
        if last:
            steps = math.prod(f for loops in self.loops for _, f, in_space in loops if not in_space)
            return [steps - tile * places(level), fills, steps, tile]
        spread = math.prod(factor for dim, factor, _ in self.spatial(level) if dim in dims)
        inner = self.tile(space, self.inside(level + 1)) * spread
        updates = inner * visits(level + 1)
        return [updates - tile * places(level), fills, updates, tile]
