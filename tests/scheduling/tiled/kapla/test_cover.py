"""Exact covers of layers by segments against every partition, each evaluated as a whole tree."""

import itertools
from collections.abc import Iterator
from math import inf, log
from random import Random

import pytest
from tests.scheduling.tiled.kapla.test_chains import SMALL, divisors, form_of, segment

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.kapla.layer_sets import grown_sets
from tilewright.formulation.scheduling.tiled.kapla.segments import BOTH, Kind, members
from tilewright.formulation.scheduling.tiled.set.leaf.layers import SetNetwork
from tilewright.formulation.scheduling.tiled.set.released.networks import program_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.formulation.scheduling.tiled.set.trees.tree import check_tree, rooted
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.heuristics.scheduling.tiled.kapla.solver import Slicing
from tilewright.solvers.scheduling.tiled.kapla import cover
from tilewright.solvers.scheduling.tiled.kapla.best_first import BestFirst
from tilewright.solvers.scheduling.tiled.kapla.cover import TOLERANCE, Cover
from tilewright.solvers.scheduling.tiled.kapla.cover_relaxation import CoverRelaxation
from tilewright.solvers.scheduling.tiled.kapla.cover_statement import LOGARITHM, CoverStatement, Side, chord
from tilewright.solvers.scheduling.tiled.linear import child_of, solve_linear

Rows = list[tuple[int, ...]]


def partitions(layers: list[int]) -> Iterator[Rows]:
    """Every partition of some layers into sets."""
    if not layers:
        yield []
        return
    first, rest = layers[0], layers[1:]
    for size in range(len(rest) + 1):
        for others in itertools.combinations(rest, size):
            for partition in partitions([unit for unit in rest if unit not in others]):
                yield [(first, *others), *partition]


def ordered(network: SetNetwork, rows: Rows) -> Rows | None:
    """The sets in an order in which each comes behind all that it reads; ``None`` without one."""
    done: set[int] = set()
    left, in_order = list(rows), Rows()
    while left:
        ready = [
            row
            for row in left
            if all(set(members(network.masks[unit][0])) <= done | set(row) for unit in row)
        ]
        if not ready:
            return None
        in_order.append(ready[0])
        left.remove(ready[0])
        done |= set(ready[0])
    return in_order


def is_connected(network: SetNetwork, row: tuple[int, ...]) -> bool:
    """Whether layers hang together by what they read of each other."""
    reached, grew = {row[0]}, True
    while grew:
        more = {
            unit
            for unit in row
            for other in reached
            if network.masks[unit][0] >> other & 1 or network.masks[other][0] >> unit & 1
        }
        grew = not more <= reached
        reached |= more
    return reached == set(row)


def least(form: ClosedForm, kinds: tuple[Kind, ...], connected: bool) -> float:
    """The least value of every chain whose segments hold their layers in the network's order."""
    best, network = inf, form.network
    for rows in partitions(list(range(len(network)))):
        chain = ordered(network, rows)
        if chain is None or (connected and not all(is_connected(network, row) for row in rows)):
            continue
        for splits in divisors(form.batch):
            batch = form.batch // splits
            ways = [[(kind, groups) for kind in kinds for groups in divisors(batch)]] * len(chain)
            for way in itertools.product(*ways):
                parts = [segment(row, *choice, batch) for row, choice in zip(chain, way, strict=True)]
                cost = form.attempt(rooted(parts, form.batch, splits))
                if not isinstance(cost, Unfit):
                    best = min(best, form.value(cost.energy, cost.cycles))
    return best


@pytest.mark.parametrize(("name", "layers", "batch", "kinds"), SMALL[:3])
def test_the_cover_is_the_best_of_all_partitions(
    name: str, layers: tuple[int, ...], batch: int, kinds: tuple[Kind, ...]
) -> None:
    """Between all down-sets, and over connected sets where the network's own order is asked for."""
    for orders, connected in (("sets", False), ("own", True)):
        form = form_of(name, layers, batch)
        want = least(form, kinds, connected)
        result = Cover(form, Limits(60, threads=1), Slicing(kinds, orders=orders)).solve()  # type: ignore[arg-type]
        assert result.proven
        assert result.chain is not None
        check_tree(result.chain.tree, form.network, batch)
        cost = form.evaluate(result.chain.tree)
        assert result.bound <= want * (1 + 1e-9)
        assert want * (1 - 1e-9) <= form.value(cost.energy, cost.cycles) <= want * (1 + TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("powers", [(1.0, 0.0), (0.0, 1.0), (2.0, 1.0)])
@pytest.mark.parametrize(("name", "layers", "batch", "kinds"), SMALL)
def test_other_objectives(
    name: str, layers: tuple[int, ...], batch: int, kinds: tuple[Kind, ...], powers: tuple[float, float]
) -> None:
    """Energy alone, cycles alone and a product with powers."""
    form = form_of(name, layers, batch, powers)
    want = least(form, kinds, False)
    result = Cover(form, Limits(60, threads=1), Slicing(kinds, orders="sets")).solve()
    assert result.proven
    assert want * (1 - 1e-3) <= result.bound <= want * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["cpsat", "highs", "cbc"])
def test_whole_networks_as_by_best_first(solver: str) -> None:
    """On ResNet-50 every solver comes to what best-first proves over the same segments."""
    if solver != "cpsat":
        pytest.importorskip("pulp")
    want = BestFirst(form_of("resnet", (), 1), Slicing(orders="sets")).solve()
    form = form_of("resnet", (), 1)
    result = Cover(form, Limits(120), Slicing(orders="sets"), solver).solve()
    assert result.proven
    assert want.bound * (1 - 2 * TOLERANCE) <= result.bound <= want.bound * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["cpsat", "highs", "cbc"])
def test_segments_that_wait_for_each_other_are_no_chain(solver: str) -> None:
    """Of four layers, two pairs that each read the other are cheapest and impossible; an order is found."""
    if solver != "cpsat":
        pytest.importorskip("pulp")
    network = program_network("goog").part((6, 7, 8, 9), "two branches")
    crossing = (0b0110, 0b1001)
    assert ordered(network, [members(segment) for segment in crossing]) is None
    segments = [*crossing, 1, 2, 4, 8]
    costs = [1, 1, 10, 10, 10, 10]
    statement = CoverStatement(network, segments, [Side(costs, 1.0, [1, 10, 100])])
    with child_of(solver, Limits(20)) as child:
        answer = solve_linear(statement.linear, None, solver, Limits(20), child)
    assert answer.values is not None
    chain = statement.chain_of(answer.values)
    rows = [members(segments[segment]) for segment in chain]
    assert ordered(network, rows) is not None
    assert sum(costs[segment] for segment in chain) == 21


def test_grown_sets_are_convex_and_connected() -> None:
    """Against every subset of the layers of small networks."""
    for name, layers in (
        ("goog", (4, 5, 6, 7, 8, 9, 10)),
        ("resnet", (2, 3, 4, 5, 6, 7)),
        ("trans_cell", range(8)),
    ):
        network = program_network(name).part(tuple(layers), "part")
        count = len(network)
        sets, size = grown_sets(network, count, 10**6)
        assert size == count
        assert len(sets) == len(set(sets))
        rest = list(range(count))
        want = set()
        for some in range(1, 1 << count):
            row = members(some)
            others: Rows = [(unit,) for unit in rest if unit not in row]
            if is_connected(network, row) and ordered(network, [row, *others]) is not None:
                want.add(some)
        assert set(sets) == want
        few, short = grown_sets(network, count, count)
        assert (len(few), short) == (count, 1)


def test_chords_lie_below() -> None:
    """At every whole number between two values, and close at the ends."""
    random = Random(3)
    for _ in range(200):
        low = random.randrange(1, 5000)
        high = low + random.randrange(1, 300)
        power = random.choice([0.5, 1.0, 2.0])
        slope, height = chord(low, high, power)
        for x in range(low, high + 1):
            assert slope * x + height <= power * log(x) * LOGARITHM
        for x in (low, high):
            assert slope * x + height >= power * log(x) * LOGARITHM - (high - low) - 2**8


def test_coarse_units_end_with_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where whole units cannot tell chains apart, the search ends without a limit, and claims nothing."""
    want = least(form_of("resnet", (2, 3, 4, 5, 6), 1), BOTH, False)
    monkeypatch.setattr(cover, "UNITS", 64)
    monkeypatch.setattr(
        CoverRelaxation, "solve", lambda self, *_: True
    )  # bounds nothing, leaves all to the statement
    result = Cover(
        form_of("resnet", (2, 3, 4, 5, 6), 1), Limits(threads=1), Slicing(BOTH, orders="sets")
    ).solve()
    assert result.chain is not None
    assert not result.proven
    assert result.bound <= want * (1 + 1e-9)


def test_a_limit_leaves_a_bound() -> None:
    """Stopped anywhere, nothing false is said."""
    layers = tuple(range(14, 22))
    whole = BestFirst(form_of("resnet", layers, 1), Slicing(orders="sets")).solve()
    for most in (0, 5, 40, 80, 90, 120, 160):
        looks = itertools.count()
        stop = lambda looks=looks, most=most: next(looks) > most  # noqa: E731
        result = Cover(
            form_of("resnet", layers, 1), Limits(30, threads=1), Slicing(BOTH, orders="sets"), stop=stop
        ).solve()
        assert result.bound <= whole.bound * (1 + 1e-9)
        if result.proven:
            assert result.chain is not None
            assert result.chain.energy * result.chain.cycles <= whole.bound * (1 + TOLERANCE)
