"""Set-up cycles against a walk through the loops that knows nothing of expressions."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest
from effort import effort
from emitted_instances import random_layer
from set_up_walk import Loops, arrivals, rows_of, walk

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping, Node, Storage, Temporal
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.hardware.mapping.timing import Timing


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
