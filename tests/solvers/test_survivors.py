"""What two parts of a machine leave, and what of it meets: mapping by mapping."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from effort import effort
from machines_with_parts import all_decisions, drawn, past_a_loose_level, sampled
from uneven_oracle import DIVISORS, LEAST

from tilewright.formulation.mapping.parts.entering import SHARE, Entering, entering
from tilewright.formulation.mapping.parts.segment_cycles import filled
from tilewright.formulation.mapping.parts.segment_parts import (
    around,
    has_parts,
    inner_arrangements,
    inside_part,
    near_arrangements,
    outside_part,
    storages,
    stores_near,
    within,
)
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.boundary_tiles import tiles_at
from tilewright.foundation.arrays import Bools, Floats
from tilewright.solvers.mapping.arrangements import survivors
from tilewright.solvers.mapping.arrangements.survivors import Meeting, Survivors, where_they_meet


def parts_left(
    problem: LayerProblem, draw: random.Random
) -> tuple[LayerProblem, tuple[Entering, ...], Survivors, Survivors] | None:
    """A random arrangement of a random machine, what passes near levels, and all decisions of its parts."""
    machine = draw.choice([machine for machine in storages(problem) if stores_near(machine)])
    near = draw.choice([*near_arrangements(machine)])
    inner = draw.choice([*inner_arrangements(machine)])
    entered = entering(machine, draw.choice([Fraction(0), SHARE]))
    inside = filled(inside_part(machine, inner, entered), machine, entered)
    outside = all_decisions(machine, near, outside_part(machine, near, 0, entered), around(near), entered)
    within_it = all_decisions(machine, inner, inside, within(inside.space), entered)
    if outside is None or within_it is None:
        return None
    slots = (*near, *inner)
    return machine.stated(machine.arranged_space(slots), slots), entered, outside, within_it


def moving(
    whole: LayerProblem,
    entered: tuple[Entering, ...],
    near: Survivors,
    inner: Survivors,
    sizes: list[list[int]],
    figures: list[int],
) -> Iterator[tuple[float, int]]:
    """What tiles tell of the energy of handing each tensor inwards, and what a mapping with them spends.

    Parameters
    ----------
    sizes : the mapping's tiles in the last near store, and those that enter the array
    figures : its counts, as `sampled` has them behind energy and cycles
    """
    assert near.decisions is not None
    assert inner.decisions is not None
    outer, within_it = near.decisions.innermost, inner.decisions.outermost
    if outer is None or within_it is None:
        return
    meeting = Meeting(outer, within_it, whole, entered, lambda energy, _cycles: energy >= 0)
    places = [
        int(np.flatnonzero((own.sizes == size).all(axis=1))[0])
        for own, size in zip((outer, within_it), sizes, strict=True)
    ]
    names = [(row.level, row.tensor) for row in whole.statement.traffic]
    for own, least in zip(entered, meeting._moved, strict=True):
        at = 4 * names.index((whole.engine.levels[own.source].name, own.tensor.name))
        yield float(least[tuple(places)]), own.read * figures[at] + own.write * figures[at + 2]


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("kind", [DIVISORS, LEAST])
def test_the_tiles_of_a_mapping_meet_below_its_energy_and_cycles(
    kind: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random legal decisions of a whole arrangement: what costs no more than they do has their tiles."""
    if few:
        monkeypatch.setattr(survivors, "_MOST_TILES", 40)
    draw, legal, fewer, past, handed = random.Random(11), 0, 0, 0, 0
    drawn_problems = (drawn(seed, 40, kind) for seed in count(70))
    loose = (past_a_loose_level(draw, kind) for _ in count())
    problems = (problem for pair in zip(drawn_problems, loose, strict=True) for problem in pair)
    for problem in filter(has_parts, problems):
        if legal >= effort(40):
            break
        parts = parts_left(problem, draw)
        if parts is None:
            continue
        whole, entered, near, inner = parts
        for _ in range(60):
            state = draw.getstate()
            energy, cycles, *figures = sampled(whole, draw)
            limits = figures[len(figures) - len(whole.limits) :]
            if any(value > limit.bound for value, limit in zip(limits, whole.limits, strict=True)):
                continue
            legal += 1
            past += bool(entered)

            def wanted(energies: Floats, times: Floats, most: int = energy, longest: int = cycles) -> Bools:
                return np.asarray((energies <= most) & (times <= longest))

            left = where_they_meet(near, inner, whole, entered, wanted)
            assert left is not None
            assert sum(own.energy for own in left) <= energy
            assert max(own.cycles for own in left) <= cycles
            draw.setstate(state)
            sizes: list[list[int]] = [[], []]
            for selector in whole.space.selectors:  # the same decisions again
                draw.choice(selector.domain)
            for group in whole.space.groups:
                row = group.having(group.rows[[draw.randrange(len(group))]])
                for place, edge in enumerate((around(near.slots)[-1], within(whole.space)[0])):
                    sizes[place] += tiles_at(whole.space, [edge], row)[0].tolist()
                for own, edges in ((left[0], around(near.slots)), (left[1], within(whole.space))):
                    assert own.tiles is not None
                    assert (own.tiles[group.name] == tiles_at(whole.space, edges, row)).all(axis=1).any()
            for moved, spent in moving(whole, entered, near, inner, sizes, figures):
                handed += moved > 0
                assert moved <= spent * (1 + 1e-12)
            fewer += sum(
                len(own.decisions or ()) < len(all_of.decisions or ())
                for own, all_of in zip(left, (near, inner), strict=True)
            )
    assert past > effort(4)
    assert handed or few
    assert fewer > effort(4) or few
