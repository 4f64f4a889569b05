"""The front of what is spent outside and its first fills leaves out nothing of interest."""

from __future__ import annotations

import random
from collections import Counter
from itertools import count

import numpy as np
import pytest
from effort import effort
from machines_with_parts import all_values, drawn
from uneven_oracle import DIVISORS, LEAST

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.parts.entering import entering
from tilewright.formulation.mapping.parts.segment_cycles import FILLS
from tilewright.formulation.mapping.parts.segment_parts import (
    has_parts,
    near_arrangements,
    outside_part,
    storages,
    stores_near,
)
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.solvers.mapping.arrangements import outside_front
from tilewright.solvers.mapping.arrangements.outside_front import OutsideFront, found_outside
from tilewright.solvers.mapping.arrangements.part_searches import PartSearches
from tilewright.solvers.mapping.arrangements.part_tables import PartTables
from tilewright.solvers.mapping.compiled.cuts import cut_at, wanted_by

POWERS = {"edp": (1, 1), "ed2p": (1, 2), "E^2*D": (2, 1)}


def test_nothing_is_left_out_that_some_point_wants() -> None:
    """Compared with every point of random fronts; of what no point wants hardly anything stays."""
    draw = np.random.default_rng(5)
    seen: Counter[str] = Counter()
    for _ in range(effort(200)):
        a, b = (int(power) for power in draw.integers(1, 3, 2))
        points = int(draw.integers(1, 40))
        outside, fills = draw.uniform(0, 100, points), draw.integers(0, 60, points).astype(float)
        inside, busy, counted = (
            float(draw.uniform(0, 50)),
            float(draw.integers(0, 100)),
            float(draw.uniform(0, 9)),
        )
        energy, cycles = inside + draw.uniform(0, 200, 400), busy + draw.integers(0, 300, 400)
        front = OutsideFront(outside, fills, (a, b), inside, counted, busy)
        keys = ((energy[:, None] + outside) ** a * (cycles[:, None] + fills) ** b).min(axis=1)
        below = float(np.quantile(keys, draw.uniform(0.02, 0.98)))
        kept = wanted_by(front.cut(cut_at(below)), energy + counted, cycles, np.zeros(400))
        assert kept[keys < below].all()
        seen["left out"] += int((~kept).sum())
        seen["of no interest"] += int((keys >= below * 1.05).sum())
    assert seen["left out"] >= 0.95 * seen["of no interest"] > 0


def undominated(points: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those than which none has both no more energy and no more cycles, by energy."""
    return sorted(
        point
        for point in points
        if not any(o != point and o[0] <= point[0] and o[1] <= point[1] for o in points)
    )


@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_the_front_is_that_of_all_decisions_outside(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every decision of every sequence of near points counts; a search that does not end tells nothing."""
    draw, seen = random.Random(2), Counter[str]()
    for seed in count(300):
        problem = drawn(seed, 24, kind)
        if not has_parts(problem) or not stores_near(machine := next(iter(storages(problem)))):
            continue
        name = draw.choice(sorted(POWERS))
        (a, b), inside, busy = POWERS[name], draw.randrange(1, 3000), draw.randrange(1, 60)
        machine = machine.minimising(parse_objective(name))
        parts = [outside_part(machine, near, busy, entering(machine)) for near in near_arrangements(machine)]
        by_part = list[set[tuple[int, int]]]()
        for part in parts:
            energy, fills = part.statement.energy, part.statement.details[FILLS]
            by_part.append({(evaluate(energy, own), evaluate(fills, own)) for own in all_values(part)})
        keys = {point: (inside + point[0]) ** a * (busy + point[1]) ** b for own in by_part for point in own}
        if not keys:
            continue
        below = draw.choice(sorted(keys.values())) + 0.5
        front = undominated({point for point, key in keys.items() if key < below})
        searches = PartSearches(LayerSearch(machine, Limits()), PartTables())
        found = found_outside(searches, parts, below, inside, busy)
        got = [] if found is None else sorted(zip(*(own.tolist() for own in found), strict=True))
        assert got == front, seed
        with monkeypatch.context() as patched:
            patched.setattr(outside_front, "_EFFORT", 1)
            searches = PartSearches(LayerSearch(machine, Limits()), PartTables())
            cut_short = found_outside(searches, parts, below, inside, busy)
        assert cut_short is None or sorted(zip(*(own.tolist() for own in cut_short), strict=True)) == front
        seen["a front"] += 1
        seen["cut short"] += cut_short is None and bool(front)
        seen["several points"] += len(front) > 1
        seen["of another sequence than the first"] += not by_part[0].issuperset(front)
        if seen["several points"] >= effort(6) and seen["a front"] >= effort(12):
            break
    assert seen["cut short"]
    assert seen["of another sequence than the first"]
