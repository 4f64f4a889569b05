"""Every bound of the fused search lies below what every candidate costs, and the search misses none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from random import Random

import pytest
from effort import effort
from fused_brute import Listing
from fused_early import with_open_halos, without_inner_loops
from fused_instances import online, random_engine, random_group
from fused_pricing import least_of_trees
from fused_tiny import repriced, set_up, softmax_group, tiny_engine, tiny_group

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup, Reading
from tilewright.formulation.mapping.fused.tree import Branch, Leaf, SharedLoop, SharedStore
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.fused.floors.compulsory import least_energy
from tilewright.solvers.mapping.fused.floors.first_bound import FirstBounds, Step
from tilewright.solvers.mapping.fused.floors.room_bounds import passes
from tilewright.solvers.mapping.fused.prices import at_price
from tilewright.solvers.mapping.fused.search import FusedSearch
from tilewright.solvers.mapping.fused.trees.candidate import Candidate
from tilewright.solvers.mapping.fused.trees.skeletons import NO_MAPPING
from tilewright.solvers.mapping.fused.trees.turn_engine import TurnEngines
from tilewright.workloads.mapping.operators import conv2d, gemm

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
    unsolved = FusedSearch(group, engine, HIERARCHY, Limits())
    if any(group.read_by(name) and not search.trees.homes(name) for name in group.names):
        return 0
    trees = [
        (stem, family, ordered, tree)
        for stem in search.trees.stems()
        for family in search.trees.families(stem)
        for ordered in search.trees.orders(family)
        for tree in search.trees.halos(ordered)
    ]
    engines = TurnEngines(engine, perfect=True)
    least = least_energy(group, engines, search.trees.home_levels)
    assert least_energy(group, engines, lambda name: [0, *search.trees.home_levels(name)]) <= least
    checked = 0
    for stem, family, ordered, tree in rng.sample(trees, min(most, len(trees))):
        try:
            skeleton = search.space.skeleton(tree)
        except InputError:
            continue
        if not skeleton.makes_all(group.leaving):
            continue
        assert FirstBounds(group, engines).bound(tree) <= skeleton.bound
        candidates = list(search.space.candidates(skeleton))
        before = unsolved.rooms.bound(ordered, None)
        unsolved.turn_floors.begin()
        search.turn_floors.begin()
        quick = unsolved.rooms.bound(ordered, None)
        assert quick is None or before is None or before.least <= quick.least
        assert quick is not None or not candidates
        for candidate in rng.sample(candidates, min(3, len(candidates))):
            assert skeleton.bound <= candidate.bound
            relaxed = search.cost_of(candidate, None)
            value = priced(search, candidate)
            assert relaxed is None or candidate.bound <= relaxed
            if value is not None:
                assert relaxed is not None
                assert relaxed <= value
                assert quick is not None
                assert quick.least <= value
                assert least <= value
                assert search.first.fits(family)
                assert solved_bound(search, ordered) <= value
                check_stem_rooms(search, ordered, value)
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


def softmax_of_any(rng: Random) -> FusedGroup:
    """A small group with a softmax whose rows may come in parts."""
    while True:
        group = online(rng, small_group(rng))
        if group.online and all(
            group.operator(name).bounds[dim] > 1 for (name, _), dim in group.online.items()
        ):
            return group


def check_drawn(
    seed: str, drawn: Callable[[Random], FusedGroup] = small_group, *, begun: bool = False
) -> int:
    """Bounds of random candidates of a random group; how many were compared.

    Parameters
    ----------
    seed, drawn : of the group, and what makes it
    begun : whether ports take cycles to begin tiles
    """
    rng = Random(seed)
    engine = random_engine(rng) if rng.random() < 0.5 else ordered(random_engine(rng))
    engine = at_price(engine, rng.choice([Fraction(0), Fraction(0), Fraction(7), None]))
    engine = set_up(rng, at_price(engine, Fraction(3))) if begun else engine
    return check_group(rng, drawn(rng), engine, most=2)


def check_bounds(groups: int, seed: str, drawn: Callable[[Random], FusedGroup] = small_group) -> None:
    """Bounds of random candidates of random groups."""
    checked = sum(check_drawn(f"{seed}-{number}", drawn) for number in range(groups))
    print(f"{checked} candidates")
    assert checked >= groups


def two_windows(rows: int) -> FusedGroup:
    """A pointwise layer and two 3x1 layers behind it, with so many rows."""
    layers = (
        ("a", conv2d(k=1, c=1, p=rows, q=1, r=1, s=1)),
        ("b", conv2d(k=1, c=1, p=rows, q=1, r=3, s=1, pad=(1, 0))),
        ("c", conv2d(k=1, c=1, p=rows, q=1, r=3, s=1, pad=(1, 0))),
    )
    axes, offsets = (0, 1, 2, 3), (0, 0, 1, 0)
    readings = (Reading("b", "I", "a", axes, offsets), Reading("c", "I", "b", axes, offsets))
    return FusedGroup(layers, readings, frozenset({"c"}))


def test_homes_in_a_row_of_windows_take_no_more_than_their_turns_hold() -> None:
    """What a reader retains of its own result it makes once, so that it needs less of what it reads."""
    search = FusedSearch(two_windows(8), load_engine("tpu-edge"), HIERARCHY, Limits())
    compared = 0
    for tree in search.trees.all():
        try:
            skeleton = search.space.skeleton(tree)
        except InputError:
            continue
        rooms = search.first.homes.left(with_open_halos(tree))
        assert rooms is not None
        for layer, left in skeleton.left.items():
            assert left is not None
            pairs = zip(rooms[layer], left, strict=True)
            assert all(mine is None or theirs is None or mine >= theirs for mine, theirs in pairs)
            compared += 1
    assert compared > 30


def test_trees_with_tiles_larger_than_what_readers_need_are_passed_over() -> None:
    """A loop of an inner sequence may have no tile that its turn's rows do not fill."""
    group = two_windows(6)
    level = MemoryLevel("L1", 12, Fraction(1), Fraction(1))
    engine = Engine(
        "two",
        "hierarchy",
        16,
        Fraction(1),
        Fraction(500),
        (MemoryLevel("L0", None, Fraction(50), Fraction(50)), level),
    )
    search = FusedSearch(group, engine, HIERARCHY, Limits())
    answer = search.run()
    assert answer.complete
    assert answer.value is not None
    trees = list(search.trees.all())
    senseless = compared = 0
    for tree in Random("two windows").sample(trees, 30):
        try:
            skeleton = search.space.skeleton(tree)
        except InputError:
            senseless += 1
            continue
        for candidate in islice(search.space.candidates(skeleton), 2):
            value = priced(search, candidate)
            quick = search.rooms.bound(with_open_halos(tree), None)
            if value is not None:
                assert quick is not None
                assert quick.least <= value
                assert answer.value <= value
                compared += 1
    assert senseless > 0
    assert compared > 0


def test_residents_of_an_inner_sequence_take_no_room_from_layers_before_it() -> None:
    """Weights that stay over an inner sequence's turns do not fit beside what an earlier layer passes on."""
    layers = (
        ("z", gemm(m=4, n=6, k=1)),
        ("a", gemm(m=4, n=1, k=6)),  # in its turn the level holds z.C and a.C, 28 of 30 elements
        ("b", gemm(m=4, n=6, k=1)),
        ("c", gemm(m=4, n=1, k=6)),
    )
    readings = tuple(
        Reading(reader, "A", producer, (0, 1), (0, 0)) for producer, reader in ("za", "ab", "bc")
    )
    group = FusedGroup(layers, readings, frozenset({"c"}))
    levels = (
        MemoryLevel("L0", None, Fraction(100), Fraction(100)),
        MemoryLevel("L1", 30, Fraction(1), Fraction(1)),
    )
    search = FusedSearch(
        group, Engine("nested", "hierarchy", 16, Fraction(1), Fraction(500), levels), HIERARCHY, Limits()
    )
    inner = Branch(
        (SharedLoop("c", "M", 1), SharedStore("b", "C", "L1")), (Leaf("b", NO_MAPPING), Leaf("c", NO_MAPPING))
    )
    homes = (SharedStore("z", "C", "L1"), SharedStore("a", "C", "L1"))
    tree = Branch(homes, (Leaf("z", NO_MAPPING), Leaf("a", NO_MAPPING), inner))
    assert tree in search.trees.all()
    values: dict[bool, Fraction] = {}
    for candidate in search.space.candidates(search.space.skeleton(tree)):
        value = priced(search, candidate)
        if value is not None:
            stays = all(candidate.placements[name, "B"].store is not None for name in "bc")
            values[stays] = min(value, values.get(stays, value))
    bound = search.rooms.bound(tree, None)
    assert bound is not None
    assert solved_bound(search, tree) <= values[True] < values[False]
    assert bound.least <= values[True]


def test_all_of_a_tensor_comes_again_where_a_loop_inside_another_moves_it() -> None:
    """Windows over one dimension count once, and loops inside the last one that moves it never."""
    rows = Step((("P", 4),), slides=True)
    channels = Step((("K", 3),), slides=False)
    weights = conv2d(k=3, c=1, p=8, q=1, r=1, s=1).tensor("W")
    assert passes(weights, (rows, channels), 2) == 4
    assert passes(weights, (rows, channels), 1) == 1
    assert passes(weights, (channels, rows), 2) == 1
    assert passes(weights, (rows, rows, channels), 3) == 4
    assert passes(weights, (rows, channels, Step((("P", 2),), slides=False)), 2) == 1


@pytest.mark.parametrize("number", [54, 79])
def test_bounds_that_once_were_too_high(number: int) -> None:
    """Results read in strides outside their loops; operands that bypass the array and slide with a window."""
    assert check_drawn(f"more bounds-{number}") > 0


def test_a_stride_moves_no_more_than_it_touches() -> None:
    """Elements of an operand between strides count for no resident, which a bound once forgot."""
    assert check_drawn("later parts-56", softmax_of_any) > 0


def test_every_bound_lies_below_the_value_of_every_candidate() -> None:
    """Bounds of skeletons, of placements and with all room are at most what the evaluator says."""
    check_bounds(effort(8), "bounds")


def test_bounds_on_machines_with_set_up_cycles_lie_below_the_value_of_every_candidate() -> None:
    """The same where ports take cycles to begin tiles and rows."""
    assert sum(check_drawn(f"begun-{number}", begun=True) for number in range(effort(5))) >= effort(5)


def test_bounds_with_softmaxes_in_parts_lie_below_the_value_of_every_candidate() -> None:
    """The same where a softmax may come in parts."""
    check_bounds(effort(4), "parts", softmax_of_any)


@pytest.mark.slow
def test_bounds_of_many_candidates() -> None:
    """The same for more groups."""
    check_bounds(400, "more bounds")
    check_bounds(300, "more parts", softmax_of_any)


def check_all_trees(
    groups: int, machines: int, seed: str, drawn: Callable[[Random], FusedGroup] = tiny_group
) -> None:
    """Bounds of every tree of tiny groups lie below all that its residents and mappings may cost.

    Parameters
    ----------
    groups, machines : how many, and of each group's machines
    seed : of all
    drawn : makes groups
    """
    trees = 0
    for number in range(groups):
        rng = Random(f"{seed}-{number}")
        group, engine = drawn(rng), tiny_engine(rng)
        listing = Listing(group, engine)
        for machine in range(machines):
            engine = repriced(rng, engine) if machine else engine
            search = FusedSearch(group, engine, HIERARCHY, Limits())
            engines = TurnEngines(engine, perfect=True)
            compulsory = least_energy(group, engines, search.trees.home_levels)
            for tree, least in least_of_trees(listing, engine):
                if least is None:
                    continue
                assert compulsory <= least
                assert search.first.fits(tree)
                assert search.first.bound(tree) <= least
                assert not search.gains or search.first.bound(without_inner_loops(tree, True)) <= least
                for _ in range(2):
                    quick = search.rooms.bound(with_open_halos(tree), None)
                    assert quick is not None
                    assert quick.least <= least
                    assert search.first.bound(tree) <= least
                    search.turn_floors.begin()
                check_stem_rooms(search, with_open_halos(tree), least)
                if machine == 0:
                    assert solved_bound(search, with_open_halos(tree)) <= least
                trees += 1
    print(f"{trees} trees")
    assert trees >= groups * machines


def check_stem_rooms(search: FusedSearch, tree: Branch, value: Fraction) -> None:
    """Bounds that know the room lie below a value whatever loops of inner sequences are not decided yet."""
    cuts = search.trees.cuts(tree)
    for known in range(len(cuts) + 1) if search.gains else ():
        stem = tree
        for cut in cuts[known:]:
            stem = without_loop(search.group, stem, cut.place, cut.rank)
        bound = search.stems.bound(stem, cuts[known:], None)
        assert bound is not None
        assert bound <= value


def without_loop(group: FusedGroup, tree: Branch, place: tuple[int, ...], rank: int) -> Branch:
    """A tree without a loop of the sequence at some place."""
    children = list(tree.children)
    if place:
        child = children[place[0]]
        assert isinstance(child, Branch)
        children[place[0]] = without_loop(group, child, place[1:], rank)
        return Branch(tree.nodes, tuple(children))
    kept = (
        node
        for node in tree.nodes
        if not (isinstance(node, SharedLoop) and group.ranks[node.layer, node.dim] == rank)
    )
    return Branch(tuple(kept), tree.children)


def solved_bound(search: FusedSearch, tree: Branch) -> Fraction:
    """The bound by solved turns, all of them solved; no less than before."""
    least = Fraction(0)
    for bounded in (search.rooms.roomy, search.rooms.bound):
        bound = bounded(tree, None)
        while bound is not None and search.rooms.advance(bound):
            better = bounded(tree, None)
            assert better is not None
            assert better.least >= bound.least
            bound = better
        assert bound is not None
        assert bound.least >= least
        least = bound.least
    return least


def test_bounds_of_every_tree_lie_below_the_least_of_plain_enumeration() -> None:
    """Of tiny groups on tiny machines, every tree with its best residents and mappings."""
    check_all_trees(effort(1), 2, "all trees")


def test_bounds_of_every_tree_with_softmaxes_in_parts() -> None:
    """The same where rows of a softmax may be cut."""
    check_all_trees(effort(1), 2, "trees in parts", softmax_group)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_bounds_of_every_tree_of_many_groups() -> None:
    """The same for more groups and machines."""
    check_all_trees(60, 20, "more trees")
    check_all_trees(30, 20, "more trees in parts", softmax_group)
