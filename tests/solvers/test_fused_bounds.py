"""Every bound of the fused search lies below what every candidate costs, and the search misses none."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from effort import effort
from fused_instances import random_engine, random_group

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Leaf
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.candidates import Candidate
from tilewright.solvers.mapping.fused.compulsory import least_energy
from tilewright.solvers.mapping.fused.first_bound import FirstBounds
from tilewright.solvers.mapping.fused.prices import at_price
from tilewright.solvers.mapping.fused.search import FusedSearch
from tilewright.solvers.mapping.fused.turn_engine import TurnEngines

HIERARCHY = cost_model("hierarchy")


def priced(search: FusedSearch, candidate: Candidate) -> Fraction | None:
    """What a candidate costs by the evaluator; ``None`` where it does not fit."""
    leaves: dict[str, Leaf] = {}
    value = search.cost_of(candidate, leaves)
    if value is None:
        return None
    evaluation = evaluate_fused(search.group, search.engine, HIERARCHY, search.space.tree(candidate, leaves))
    assert not evaluation.violations
    assert evaluation.energy == value
    return evaluation.energy


def check_group(rng: Random, group: FusedGroup, engine: Engine, most: int) -> int:
    """Compare the bounds of some random candidates of a group with their values; how many had one."""
    search = FusedSearch(group, engine, HIERARCHY, Limits())
    if any(group.read_by(name) and not search.trees.homes(name) for name in group.names):
        return 0
    trees = [
        (stem, family, tree)
        for stem in search.trees.stems()
        for family in search.trees.families(stem)
        for tree in search.trees.members(family)
    ]
    engines = TurnEngines(engine, perfect=True)
    least = least_energy(group, engines, search.trees.home_levels)
    assert least_energy(group, engines, lambda name: [0, *search.trees.home_levels(name)]) <= least
    checked = 0
    for stem, family, tree in rng.sample(trees, min(most, len(trees))):
        skeleton = search.space.skeleton(tree)
        if not skeleton.makes_all(group.leaving):
            continue
        assert FirstBounds(group, engines).bound(tree) <= skeleton.bound
        candidates = list(search.space.candidates(skeleton))
        quick = None if search.plain is None else search.plain.bound(tree, None)
        if search.plain is not None and candidates:
            assert quick is not None
            assert quick <= min(candidate.bound for candidate in candidates)
        for candidate in rng.sample(candidates, min(3, len(candidates))):
            assert skeleton.bound <= candidate.bound
            relaxed = search.cost_of(candidate, None)
            value = priced(search, candidate)
            assert relaxed is None or candidate.bound <= relaxed
            if value is not None:
                assert relaxed is not None
                assert relaxed <= value
                assert least <= value
                assert search.first.fits(family)
                assert not search.gains or search.first.bound(stem) <= value
                checked += 1
    return checked


def small_group(rng: Random) -> FusedGroup:
    """With few loops, so that all its trees are soon listed."""
    while True:
        group = random_group(rng)
        ranks = set(group.ranks.values())
        bounds = [
            max(group.operator(name).bounds[dim] for (name, dim), own in group.ranks.items() if own == rank)
            for rank in ranks
        ]
        if sum(bound > 1 for bound in bounds) <= 6 and len(group.names) <= 3:
            return group


def ordered(engine: Engine) -> Engine:
    """The machine with energies that fall from level to level, as on real ones."""
    reads = sorted((level.read_energy for level in engine.levels), reverse=True)
    writes = sorted((level.write_energy for level in engine.levels), reverse=True)
    levels = [
        replace(level, read_energy=read, write_energy=write)
        for level, read, write in zip(engine.levels, reads, writes, strict=True)
    ]
    return replace(engine, levels=tuple(levels))


def check_bounds(groups: int, seed: str) -> None:
    """Bounds of random candidates of random groups."""
    checked = 0
    for number in range(groups):
        rng = Random(f"{seed}-{number}")
        engine = random_engine(rng) if rng.random() < 0.5 else ordered(random_engine(rng))
        engine = at_price(engine, rng.choice([Fraction(0), Fraction(0), Fraction(7), None]))
        checked += check_group(rng, small_group(rng), engine, most=2)
    print(f"{checked} candidates")
    assert checked >= groups


def test_every_bound_lies_below_the_value_of_every_candidate() -> None:
    """Bounds of skeletons, of placements and with all room are at most what the evaluator says."""
    check_bounds(effort(16), "bounds")


@pytest.mark.slow
def test_bounds_of_many_candidates() -> None:
    """The same for more groups."""
    check_bounds(400, "more bounds")
