"""What two parts of a machine leave, and what of it meets: mapping by mapping."""

from __future__ import annotations

import random
from itertools import count

import numpy as np
import pytest
from effort import effort
from machines_with_parts import drawn, past_a_loose_level, sampled
from uneven_oracle import DIVISORS, LEAST

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.parts.segment_parts import (
    around,
    charged,
    filled,
    has_parts,
    inner_arrangements,
    inside_part,
    near_arrangements,
    outside_part,
    storages,
    stores_near,
    tiles_at,
    within,
)
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.arrays import Bools, Floats
from tilewright.solvers.mapping.arrangements import survivors
from tilewright.solvers.mapping.arrangements.segment_bounds import PartTables, SegmentBounds
from tilewright.solvers.mapping.arrangements.survivors import Survivors, where_they_meet
from tilewright.solvers.mapping.compiled.cuts import EVERYTHING, Cut
from tilewright.solvers.mapping.tree.goals import Goal
from tilewright.solvers.mapping.tree.nodes import Leaves

EDP = parse_objective("edp")


class Everything(Goal):
    """All decisions there are."""

    both = True

    def cut(self) -> Cut:
        return EVERYTHING

    def take(self, leaves: Leaves) -> None:
        raise AssertionError("listed, not taken")


def parts_left(
    problem: LayerProblem, draw: random.Random
) -> tuple[LayerProblem, Survivors, Survivors] | None:
    """A random arrangement of a random machine, and all decisions of its parts, if there are any."""
    machine = draw.choice([machine for machine in storages(problem) if stores_near(machine)])
    near = draw.choice([*near_arrangements(machine)])
    inner = draw.choice([*inner_arrangements(machine)])
    bounds = SegmentBounds(LayerSearch(problem, Limits()), Everything(), machine, False, PartTables())
    outside = charged(outside_part(machine, near), EDP, 0)
    inside = charged(filled(inside_part(machine, inner), machine), EDP, 0)
    listed = (
        bounds._survivors(near, outside, around(near), 0, 10**9),
        bounds._survivors(inner, inside, within(inside.space), 0, 10**9),
    )
    if not all(listed):
        return None
    slots = (*near, *inner)
    return machine.stated(machine.arranged_space(slots), slots), listed[0][0], listed[1][0]


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_the_tiles_of_a_mapping_meet_below_its_energy_and_cycles(
    kind: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random legal decisions of a whole arrangement: what costs no more than they do has their tiles."""
    if few:
        monkeypatch.setattr(survivors, "_MOST_TILES", 40)
    draw, legal, fewer = random.Random(11), 0, 0
    drawn_problems = (drawn(seed, 40, kind) for seed in count(70))
    loose = (past_a_loose_level(draw, kind) for _ in count())
    problems = (problem for pair in zip(drawn_problems, loose, strict=True) for problem in pair)
    for problem in filter(has_parts, problems):
        if legal >= effort(40):
            break
        parts = parts_left(problem, draw)
        if parts is None:
            continue
        whole, near, inner = parts
        for _ in range(60):
            state = draw.getstate()
            energy, cycles, *figures = sampled(whole, draw)
            limits = figures[len(figures) - len(whole.limits) :]
            if any(value > limit.bound for value, limit in zip(limits, whole.limits, strict=True)):
                continue
            legal += 1

            def wanted(energies: Floats, times: Floats, most: int = energy, longest: int = cycles) -> Bools:
                return np.asarray((energies <= most) & (times <= longest))

            left = where_they_meet(near, inner, kind == DIVISORS, wanted)
            assert left is not None
            draw.setstate(state)
            for selector in whole.space.selectors:  # the same decisions again
                draw.choice(selector.domain)
            for group in whole.space.groups:
                row = group.having(group.rows[[draw.randrange(len(group))]])
                for own, edges in ((left[0], around(near.slots)), (left[1], within(whole.space))):
                    assert own.tiles is not None
                    assert (own.tiles[group.name] == tiles_at(whole.space, edges, row)).all(axis=1).any()
            fewer += sum(
                len(own.decisions or ()) < len(all_of.decisions or ())
                for own, all_of in zip(left, (near, inner), strict=True)
            )
    assert fewer > effort(4) or few
