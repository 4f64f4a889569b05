"""Rings of engines that share sums: turns, and where the chain of every box begins."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.heuristics.scheduling.tiled.layouts.rings import (
    finishing_turns,
    ring_begins,
    ring_lag,
    ring_turns,
)


@pytest.mark.parametrize("parts", range(2, 9))
def test_engines_of_a_ring_have_one_box_a_turn_and_add_to_what_is_there(parts: int) -> None:
    """No engine has two boxes in a turn; from where a box begins its turns rise by the lag or more, none is
    idle where there are as many boxes as engines, and boxes end in the last turns.
    """
    for boxes in range(1, 40):
        box, part = np.ix_(np.arange(boxes), np.arange(parts))
        turns = ring_turns(box, part, boxes, parts)
        assert turns.max() < max(boxes, parts)
        assert all(len(set(of.tolist())) == boxes for of in turns.T)
        order = (ring_begins(np.arange(boxes), boxes, parts)[:, None] + np.arange(parts)) % parts
        along = np.take_along_axis(turns, order, axis=1)
        assert (np.diff(along, axis=1) >= ring_lag(boxes, parts)).all()
        ends = int(finishing_turns(np.array(boxes), np.array(parts)))
        assert ends >= 1
        assert along[:, -1].min() >= max(boxes, parts) - ends
