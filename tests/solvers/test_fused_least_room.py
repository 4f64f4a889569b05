"""Layers that fit nowhere, alone or fused, against plain enumeration on machines of few elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from effort import effort
from fused_brute import Listing
from fused_pricing import least_fused
from fused_tiny import tiny_engine, tiny_group

from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.solvers.mapping.fused.least_room import never_fits
from tilewright.solvers.mapping.fused.skeletons import SkeletonSpace
from tilewright.workloads.mapping.operators import gemm


def tiniest_pair(rng: Random) -> FusedGroup:
    """Two products of a few iterations."""
    n = rng.choice([1, 2])
    layers = (("a", gemm(m=1, n=n, k=1)), ("b", gemm(m=1, n=1, k=n)))
    return FusedGroup(layers, (Reading("b", "A", "a", (0, 1), (0, 0)),), frozenset({"b"}))


def compare(seed: str, number: int, drawn: Callable[[Random], FusedGroup], three: float) -> Counter[str]:
    """Groups of which a layer fits nowhere have no tree; how many such groups there are, and others.

    Parameters
    ----------
    seed, number : of the groups
    drawn : makes groups
    three : the share of machines of three levels
    """
    outcomes: Counter[str] = Counter()
    for index in range(number):
        rng = Random(f"{seed}-{index}")
        group, engine = drawn(rng), tiny_engine(rng, three=rng.random() < three)
        small = [replace(level, capacity=rng.choice([1, 2, 2, 3])) for level in engine.levels[1:2]]
        engine = replace(engine, levels=(engine.levels[0], *small, *engine.levels[2:]))
        layer = never_fits(group, engine, SkeletonSpace(group, engine).home_levels)
        if layer:
            assert least_fused(Listing(group, engine), engine) is None, (seed, index, layer)
            outcomes["nowhere"] += 1
        else:
            outcomes["somewhere"] += 1
    return outcomes


def test_what_fits_nowhere_has_no_tree() -> None:
    """Random tiny groups behind a level of one to three elements."""
    outcomes = compare("narrow", effort(15), tiniest_pair, 0.5)
    assert min(outcomes["nowhere"], outcomes["somewhere"]) >= 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_what_fits_nowhere_has_no_tree_often() -> None:
    """The same for larger groups of up to three layers."""
    outcomes = compare("more narrow", 60, tiny_group, 0.2)
    assert min(outcomes["nowhere"], outcomes["somewhere"]) >= 10
