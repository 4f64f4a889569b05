"""The front of what is spent outside and its first fills leaves out nothing of interest."""

from __future__ import annotations

from collections import Counter

import numpy as np
from effort import effort

from tilewright.solvers.mapping.arrangements.outside_front import OutsideFront
from tilewright.solvers.mapping.compiled.cuts import cut_at, wanted_by


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
        assert np.all(front.least_keys(energy + counted, cycles) <= keys)
        below = float(np.quantile(keys, draw.uniform(0.02, 0.98)))
        kept = wanted_by(front.cut(cut_at(below)), energy + counted, cycles, np.zeros(400))
        assert kept[keys < below].all()
        seen["left out"] += int((~kept).sum())
        seen["of no interest"] += int((keys >= below * 1.05).sum())
    assert seen["left out"] >= 0.95 * seen["of no interest"] > 0
