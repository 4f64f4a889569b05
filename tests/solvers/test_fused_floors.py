"""Floors of layers lie below what plain enumeration finds in every tree."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from fused_brute import Listing
from fused_early import with_open_halos, without_inner_loops
from fused_pricing import least_of_trees
from fused_tiny import nested_group, repriced, tiny_engine, tiny_group

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.layer_floors import LayerFloors
from tilewright.solvers.mapping.fused.search import FusedSearch

HIERARCHY = cost_model("hierarchy")
MANY = Fraction(10**9)
"""pJ that no tiny group takes."""


def plain_group(rng: Random) -> FusedGroup:
    """A tiny group that reads nothing through windows."""
    while True:
        group = rng.choice([tiny_group, tiny_group, nested_group])(rng)
        if all(group.is_plain(reading) for reading in group.readings):
            return group


def compare(group: FusedGroup, engine: Engine, listing: Listing, *, anywhere: bool) -> tuple[int, int]:
    """Compare floors of every tree with its least; how many trees there are, and how many have a floor.

    Parameters
    ----------
    group, engine, listing : what is compared, and all its trees
    anywhere : whether floors are those of uneven storage
    """
    layers = LayerFloors(engine, HIERARCHY, "perfect", None)
    layers._takes_long = anywhere
    search = FusedSearch(group, engine, HIERARCHY, Limits(), floors=layers)
    before = FusedSearch(group, engine, HIERARCHY, Limits())
    assert search.floors.begin(MANY)
    compared = higher = 0
    for tree, least in least_of_trees(listing, engine):
        if least is None:
            continue
        assert search.floors.bound(tree, is_whole=True) <= least
        assert search.floors.bound(without_inner_loops(tree, True), is_whole=False) <= least
        room, plain = (s.rooms.bound(with_open_halos(tree), None) for s in (search, before))
        assert room is not None
        assert plain is not None
        assert plain.least <= room.least <= least
        higher += room.least > plain.least
        compared += 1
    return compared, higher


def check(groups: int, machines: int, seed: str) -> None:
    """Compare floors of all trees of some groups.

    Parameters
    ----------
    groups, machines : how many, and of each group's machines
    seed : of all
    """
    compared = higher = 0
    for number in range(groups):
        rng = Random(f"{seed}-{number}")
        group, engine = plain_group(rng), tiny_engine(rng)
        listing = Listing(group, engine)
        for machine in range(machines):
            engine = repriced(rng, engine) if machine else engine
            for anywhere in (False, True):
                counts = compare(group, engine, listing, anywhere=anywhere)
                compared, higher = compared + counts[0], higher + counts[1]
    print(f"{compared} trees, {higher} with higher bounds")
    assert compared >= 10 * groups
    assert higher > 0


def test_floors_lie_below_the_least_of_plain_enumeration() -> None:
    """Of tiny groups on tiny machines, every tree with its best residents and mappings."""
    check(2, 1, "floors")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_floors_of_many_groups() -> None:
    """The same for more groups and machines."""
    check(60, 4, "more floors")


def test_no_floors_where_cycles_cost_or_tiles_need_not_divide() -> None:
    """Nests of turns are ordinary mappings for energy and perfect factors alone."""
    engine = tiny_engine(Random(0))
    assert LayerFloors(engine, HIERARCHY, "perfect", None).applies
    assert not LayerFloors(engine, HIERARCHY, "imperfect", None).applies
    assert not LayerFloors(engine, HIERARCHY, "perfect", "uneven").applies
