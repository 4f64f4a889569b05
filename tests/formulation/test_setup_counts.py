"""Set-up cycles against a walk through the loops that knows nothing of expressions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction

import pytest
from effort import effort
from emitted_instances import random_layer

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping, Node, Storage, Temporal
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.hardware.mapping.timing import Timing
from tilewright.workloads.mapping.operator import Operator, Tensor

Loops = list[tuple[str, int]]
"""Dimensions and tiles, outermost first."""


def walk(operator: Operator, loops: Loops) -> Iterator[tuple[tuple[int, ...], dict[str, tuple[int, int]]]]:
    """Indices of all loops at every step, and the piece of every dimension there."""

    def inside(
        place: int, index: tuple[int, ...], left: dict[str, tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, ...], dict[str, tuple[int, int]]]]:
        if place == len(loops):
            yield index, left
            return
        dim, tile = loops[place]
        begin, end = left[dim]
        for number, start in enumerate(range(begin, end, tile)):
            yield from inside(place + 1, (*index, number), {**left, dim: (start, min(end, start + tile))})

    yield from inside(0, (), {dim: (0, bound) for dim, bound in operator.bounds.items()})


def arrivals(
    operator: Operator, tensor: Tensor, loops: Loops, every: bool
) -> Iterator[dict[str, tuple[int, int]]]:
    """The pieces at every step at which a tensor's tile comes anew."""
    left, iterates = dict(operator.bounds), []
    for dim, tile in loops:
        iterates.append(tile < left[dim])
        left[dim] = tile
    own = [place for place, (dim, _) in enumerate(loops) if iterates[place] and dim in tensor.dims]
    innermost = max(own, default=-1)
    before: tuple[int, ...] | None = None
    for index, pieces in walk(operator, loops):
        changed = (
            0
            if before is None
            else next(i for i, (a, b) in enumerate(zip(before, index, strict=True)) if a != b)
        )
        if every or before is None or changed <= innermost:
            yield pieces
        before = index


def rows_of(tensor: Tensor, pieces: dict[str, tuple[int, int]], tiles: dict[str, int], row: int) -> int:
    """Rows of one tile: all axes but the last as they are, the last as long as a whole tile."""
    sizes = {dim: end - begin for dim, (begin, end) in pieces.items()}
    lines = math.prod(axis.extent(sizes) for axis in tensor.axes[:-1])
    return lines * -(-tensor.axes[-1].extent(tiles) // row)


@pytest.mark.parametrize("seed", range(effort(60)))
def test_cycles_are_those_of_a_walk(seed: int) -> None:
    """One field at a time costs a cycle per count, added to the steps."""
    choose = random.Random(seed)
    operator = random_layer(choose, choose.choice(("even", "imperfect")))
    perfect, levels = choose.random() < 0.5, []
    left = dict(operator.bounds)
    for _ in range(2):
        own: Loops = []
        for dim in operator.bounds:
            tile = choose.choice([n for n in range(1, left[dim] + 1) if not perfect or left[dim] % n == 0])
            if tile < left[dim]:
                own.append((dim, tile))
                left[dim] = tile
        choose.shuffle(own)
        levels.append(own)
    innermost = [(dim, 1) for dim, size in left.items() if size > 1]
    nodes: list[Node] = []
    for name, own in zip(("DRAM", "SPM", "RF"), (*levels, innermost), strict=True):
        nodes += [Storage(tensor.name, name) for tensor in operator.tensors]
        nodes += [Temporal(dim, tile) for dim, tile in own]
    steps = operator.iterations
    field, level, again = (
        choose.choice(("tile", "transfer", "row", "instruction")),
        choose.randrange(2),
        choose.random() < 0.5,
    )
    row = choose.choice((1, 2, 3, 100))
    outside = list(itertools.chain(*levels[: level + (field != "instruction")]))
    tiles = dict(operator.bounds) | dict(outside)
    if field in ("tile", "instruction"):
        count = sum(1 for _ in walk(operator, outside))
    else:
        came = [
            (tensor, pieces)
            for tensor in operator.tensors
            for pieces in arrivals(operator, tensor, outside, again)
        ]
        count = len(came) if field == "transfer" else sum(rows_of(t, p, tiles, row) for t, p in came)
    timed = Timing(overlap=False, row_bits=8 * row, **{field: Fraction(1)})  # type: ignore[arg-type]
    engine = Engine(
        "walked",
        "hierarchy",
        8,
        Fraction(1),
        Fraction(1),
        tuple(
            MemoryLevel(
                name,
                None,
                Fraction(1),
                Fraction(1),
                timing=timed if index == level else Timing(refetch=again and index == level + 1),
            )
            for index, name in enumerate(("DRAM", "SPM", "RF"))
        ),
    )
    evaluation = evaluate_mapping(operator, engine, cost_model("hierarchy"), Mapping(tuple(nodes)))
    assert evaluation.cycles == steps + count, (field, level, again)
