"""Floors of layers lie below what plain enumeration finds in every tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import islice
from random import Random

import pytest
from fused_brute import Listing
from fused_early import with_open_halos, without_inner_loops
from fused_pricing import least_of_trees
from fused_tiny import nested_group, repriced, tiny_engine, tiny_group
from stops import AfterChecks

import tilewright as tw
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.solvers.mapping.fused.floors import layer_floors
from tilewright.solvers.mapping.fused.floors.layer_floors import Asked, Floor, LayerFloors
from tilewright.solvers.mapping.fused.floors.tree_floors import TreeFloors
from tilewright.solvers.mapping.fused.search import FusedSearch
from tilewright.solvers.mapping.fused.trees.candidate import Candidate
from tilewright.solvers.mapping.fused.trees.skeletons import SkeletonSpace
from tilewright.workloads.mapping.operators import gemm

HIERARCHY = cost_model("hierarchy")
MANY = Fraction(10**9)
"""pJ that no tiny group takes."""


def plain_group(
    rng: Random, kinds: Sequence[Callable[[Random], FusedGroup]] = (tiny_group, tiny_group, nested_group)
) -> FusedGroup:
    """A tiny group that reads nothing through windows."""
    while True:
        group = rng.choice(kinds)(rng)
        if not group.has_windows:
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
    search.floors.begin()
    assert search.floors.begun
    compared = higher = 0
    for tree, least in least_of_trees(listing, engine):
        if least is None:
            continue
        assert search.floors.raised(tree, MANY, is_whole=True) <= least
        assert search.floors.raised(without_inner_loops(tree, True), MANY, is_whole=False) <= least
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


def drawn(rng: Random, search: FusedSearch, stems: list[Branch]) -> tuple[Branch, Candidate] | None:
    """A random tree with its loops in order, and one of its candidates; ``None`` where it has none."""
    tree = rng.choice(stems)
    for cut in search.trees.cuts(tree):
        tree = rng.choice(list(search.trees.cut(tree, cut)))
    if not search.trees.is_whole(tree) or not search.first.fits(tree):
        return None
    ordered = rng.choice(list(search.trees.orders(tree)))
    skeleton = search.space.skeleton(rng.choice(list(search.trees.halos(ordered))))
    candidates = list(islice(search.space.candidates(skeleton), 200))
    least = min(candidates, key=lambda candidate: candidate.bound, default=None)
    return None if least is None else (ordered, rng.choice([least, *candidates]))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("machine", ["tpu-edge", "eyeriss-168", "dmazerunner-256"])
def test_bounds_of_large_layers_on_presets_lie_below_random_trees(machine: str) -> None:
    """A language model's feed-forward layers, whose floors decide whether they are fused at all."""
    rng = Random(machine)
    model = tw.network("llama3[size=8B,phase=prefill,tokens=512]")
    problem = model.on(machine, fuse=True, factors="perfect", cost_model="hierarchy").problem
    names = [f"block1.feed_forward.{name}" for name in ("gate", "up", "gated", "down")]
    compared = 0
    for group in (problem.group(names), problem.group(names[1:]), problem.group(names[2:])):
        search = FusedSearch(group, problem.engine, HIERARCHY, Limits())
        search.floors.begin()
        stems = list(search.trees.stems())
        for tree, candidate in filter(None, (drawn(rng, search, stems) for _ in range(20))):
            value = search.cost_of(candidate, {})
            if value is None:
                continue
            early = without_inner_loops(tree, True)
            cuts = search.trees.cuts(tree)
            assert search.floors.raised(tree, value * 9, is_whole=True) <= value
            assert search.floors.raised(early, value * 9, is_whole=False) <= value
            room, stem = search.rooms.bound(tree, None), search.stems.bound(early, cuts, None)
            assert room is not None
            assert stem is not None
            assert max(room.least, stem) <= value
            compared += 1
    assert compared > 10


def test_trees_share_floors_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of other trees tells as much as floors that are solved for each tree alone."""
    monkeypatch.setattr(layer_floors, "LONGEST", 600.0)  # however busy the machine is
    compared = 0
    for anywhere in (False, True):
        rng = Random(f"shared floors-{anywhere}")
        group, engine = plain_group(rng), tiny_engine(rng)

        def begun(group: FusedGroup = group, engine: Engine = engine, takes: bool = anywhere) -> TreeFloors:
            layers = LayerFloors(engine, HIERARCHY, "perfect", None)
            layers._takes_long = takes
            floors = FusedSearch(group, engine, HIERARCHY, Limits(), floors=layers).floors
            floors.begin()
            return floors

        trees, shared = SkeletonSpace(group, engine), begun()
        families = [tree for stem in trees.stems() for tree in trees.families(stem)]
        for tree in rng.sample(families, min(len(families), 5)):
            if not shared.first.fits(tree):
                continue
            alone = begun().raised(tree, MANY, is_whole=True)
            assert shared.raised(tree, alone, is_whole=True) == alone
            assert shared.raised(tree, MANY, is_whole=True) == alone
            assert shared.bound(tree, is_whole=True) == alone
            compared += alone > shared.first.bound(tree)
    assert compared > 0


def test_floors_are_solved_once_for_all_rooms_between_equal_ones() -> None:
    """Less room and fewer loops make no floor lower, so that one between two equal ones is known."""
    product = gemm(m=8, n=8, k=8)

    def stands(shared: str, taken: int) -> Asked:
        return Asked(product, ("C",), frozenset(shared), taken)

    tight, loose = (Floor(stands(*own), Fraction(7), MANY) for own in (("M", 9), ("MN", 3)))
    elsewhere = [stands("M", 5), stands("M", 2), stands("MN", 9), stands("MNK", 3)]
    assert [loose.speaks_of(own) for own in elsewhere] == [True, False, True, False]
    assert [tight.leaves_no_more(own) for own in elsewhere] == [True] * 4
    assert [tight.speaks_of(own) for own in elsewhere] == [False] * 4
    assert [loose.leaves_no_more(own) for own in elsewhere] == [False, False, False, True]
    assert not Floor(stands("M", 9), Fraction(7), Fraction(7)).leaves_no_more(stands("M", 5))


@pytest.mark.parametrize("anywhere", [False, True])
def test_less_room_makes_higher_floors_whatever_was_asked_before(anywhere: bool) -> None:
    """A product whose result is passed on, with three rooms, the smallest first and the largest first."""
    levels = (
        MemoryLevel("L0", None, Fraction(100), Fraction(100)),
        MemoryLevel("L1", 64, Fraction(1), Fraction(1)),
    )
    engine = Engine("two", "hierarchy", 16, Fraction(1), Fraction(500), levels)
    product = gemm(m=8, n=8, k=8)

    def floors_of(takens: tuple[int, ...]) -> list[Fraction]:
        layers = LayerFloors(engine, HIERARCHY, "perfect", None)
        layers._takes_long = anywhere
        asked = {taken: Asked(product, ("C",), frozenset("MN"), taken) for taken in takens}
        return [layers.floor(asked[taken], 1, MANY) for taken in takens]

    rising = floors_of((0, 8, 14))
    assert floors_of((14, 8, 0)) == rising[::-1]
    assert rising == sorted(set(rising))


def test_no_floors_where_cycles_cost_or_tiles_need_not_divide() -> None:
    """Nests of turns are ordinary mappings for energy and perfect factors alone."""
    engine = tiny_engine(Random(0))
    assert LayerFloors(engine, HIERARCHY, "perfect", None).applies
    assert not LayerFloors(engine, HIERARCHY, "imperfect", None).applies
    assert not LayerFloors(engine, HIERARCHY, "perfect", "uneven").applies


def test_floors_drop_nothing_below_a_cutoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a cutoff just above the optimum asks for is found where floors are close to it, and searches end
    by themselves.
    """
    monkeypatch.setattr("tilewright.solvers.mapping.fused.search.LONG", 0)
    rng = Random("raised-8")
    group = plain_group(rng, [nested_group])
    engine = tiny_engine(rng)

    def searched(cutoff: Fraction | None) -> Fraction:
        limits = Limits().stopping(AfterChecks(5_000))
        answer = FusedSearch(group, engine, HIERARCHY, limits).run(cutoff)
        assert answer.complete
        assert answer.value is not None
        return answer.value

    least = searched(None)
    assert searched(least * Fraction(10001, 10000)) == least


def test_a_limit_amid_floors_loses_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends while trees are bounded again has a valid bound, and goes on to the optimum."""
    monkeypatch.setattr("tilewright.solvers.mapping.fused.search.LONG", 3)
    rng = Random("lost-43")
    group, engine = plain_group(rng), tiny_engine(rng)
    whole = FusedSearch(group, engine, HIERARCHY, Limits()).run()
    assert whole.value is not None
    for checks in (160, 320):
        search = FusedSearch(group, engine, HIERARCHY, Limits().stopping(AfterChecks(checks)))
        first = search.run()
        assert first.bound is None or first.bound <= whole.value
        assert search.run(limits=Limits()).value == whole.value
