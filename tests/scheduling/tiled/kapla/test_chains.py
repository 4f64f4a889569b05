"""Chains of segments against every chain, each evaluated as a whole tree."""

import itertools
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from tilewright.formulation.scheduling.tiled.kapla.chain import Chain
from tilewright.formulation.scheduling.tiled.kapla.segments import BOTH, SPATIAL, TEMPORAL, Kind, SegmentSpace
from tilewright.formulation.scheduling.tiled.set.released.networks import program_network
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm, program_form
from tilewright.formulation.scheduling.tiled.set.trees.rules import Rules
from tilewright.formulation.scheduling.tiled.set.trees.tree import Cut, Leaf, Node, check_tree, rooted
from tilewright.formulation.scheduling.tiled.set.trees.unfit import Unfit
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing, tangram_chain
from tilewright.solvers.scheduling.tiled.kapla.best_first import BestFirst
from tilewright.solvers.scheduling.tiled.kapla.relaxation import Edges, Relaxation
from tilewright.solvers.scheduling.tiled.set.exact import best_tree
from tilewright.solvers.scheduling.tiled.set.trees.enumeration import topological_orders

SMALL = [
    ("resnet", (2, 3, 4, 5, 6), 1, BOTH),
    ("darknet", (10, 11, 12, 13), 2, BOTH),
    ("goog", (5, 6, 7, 8), 2, TEMPORAL),
    ("resnet", (10, 11, 12), 4, BOTH),
    ("resnet", (14, 15, 16, 17, 18), 2, SPATIAL),
]


def form_of(
    name: str, layers: tuple[int, ...], batch: int, powers: tuple[float, float] = (1, 1)
) -> ClosedForm:
    """The closed form of a part of a network."""
    network = program_network(name)
    part = network.part(layers, "part") if layers else network
    machine = load_tiled_machine("set-edge-4x4")
    return program_form(part, machine, batch, Rules(), energy=powers[0], delay=powers[1])


def every_chain(form: ClosedForm, kinds: tuple[Kind, ...]) -> Iterator[Node]:
    """Every tree that is a chain: all orders, borders, kinds and subbatches of segments and of the root."""
    for splits in divisors(form.batch):
        batch = form.batch // splits
        for order in topological_orders(form.network):
            for borders in itertools.product((False, True), repeat=len(order) - 1):
                cuts = [0, *(i + 1 for i, border in enumerate(borders) if border), len(order)]
                rows = [order[low:high] for low, high in itertools.pairwise(cuts)]
                ways = [[(kind, g) for kind in kinds for g in divisors(batch)] for _ in rows]
                for way in itertools.product(*ways):
                    yield rooted(
                        [segment(row, *choice, batch) for row, choice in zip(rows, way, strict=True)],
                        batch * splits,
                        splits,
                    )


def segment(row: tuple[int, ...], kind: Kind, groups: int, batch: int) -> Node:
    """Leaves of one segment; a lone leaf stands without a cut unless it runs in subbatches."""
    if len(row) == 1 and groups == 1:
        return Leaf(row[0], batch)
    return Cut(
        "T" if len(row) == 1 else kind, batch, groups, tuple(Leaf(layer, batch // groups) for layer in row)
    )


def divisors(number: int) -> list[int]:
    """All of them."""
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def least(form: ClosedForm, kinds: tuple[Kind, ...]) -> float:
    """The least value of every chain."""
    costs = (form.attempt(tree) for tree in set(every_chain(form, kinds)))
    return min(form.value(cost.energy, cost.cycles) for cost in costs if not isinstance(cost, Unfit))


@pytest.mark.parametrize(("name", "layers", "batch", "kinds"), SMALL)
def test_best_first_finds_the_best_of_all_chains(
    name: str, layers: tuple[int, ...], batch: int, kinds: tuple[Kind, ...]
) -> None:
    """Best-first over all orders proves the enumeration's value, and its tree has that value as a whole."""
    form = form_of(name, layers, batch)
    want = least(form, kinds)
    result = BestFirst(form, Slicing(kinds, orders="all")).solve()
    assert result.proven
    assert result.chain is not None
    check_tree(result.chain.tree, form.network, batch)
    cost = form.evaluate(result.chain.tree)
    assert form.value(cost.energy, cost.cycles) == pytest.approx(want, rel=1e-12)
    assert result.bound == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("powers", [(1.0, 0.0), (0.0, 1.0), (2.0, 1.0)])
def test_other_objectives(powers: tuple[float, float]) -> None:
    """Energy alone, cycles alone and a product with powers are proven too."""
    form = form_of("resnet", (2, 3, 4, 5, 6), 1, powers)
    result = BestFirst(form, Slicing(BOTH, orders="all"), warm=0).solve()
    assert result.proven
    assert result.bound == pytest.approx(least(form, BOTH), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [SPATIAL, TEMPORAL])
def test_resnet_is_proven_as_by_labels(kinds: tuple[Kind, ...]) -> None:
    """LP of ResNet-50 has the value of the dynamic programming that prices every segment; LS is no worse."""
    form = form_of("resnet", (), 1)
    result = BestFirst(form, Slicing(kinds, 16, 72, orders="all" if kinds == SPATIAL else "sets")).solve()
    assert result.proven
    assert result.kept < result.schemes / 4
    other = best_tree(form, "lp" if kinds == SPATIAL else "ls")
    assert other.proven
    if kinds == SPATIAL:
        assert result.bound == pytest.approx(other.value, rel=1e-9)
    else:
        assert other.value <= result.bound * (1 + 1e-9) <= other.value * 1.05


def test_heuristics_are_no_better_than_what_is_proven() -> None:
    """KAPLA with any k and Tangram find chains of the space, none better than the proven one; more is no
    worse.
    """
    for name, layers, batch, _ in SMALL[:2]:
        form = form_of(name, layers, batch)
        proven = BestFirst(form, Slicing()).solve().bound
        values = []
        for keep in (1, 4, 64):
            chain = KaplaSolver(form, keep=keep).solve()
            assert chain is not None
            cost = form.evaluate(chain.tree)
            assert (cost.energy, cost.cycles) == (pytest.approx(chain.energy), chain.cycles)
            values.append(form.value(chain.energy, chain.cycles))
        assert min(values) >= proven * (1 - 1e-12)
        tangram = tangram_chain(form)
        assert tangram is not None
        assert form.value(tangram.energy, tangram.cycles) >= proven * (1 - 1e-12)


def test_a_limit_leaves_a_bound() -> None:
    """Stopped in the middle, the search has a bound below its best chain and claims nothing."""
    layers = tuple(range(14, 26))
    whole = BestFirst(form_of("resnet", layers, 1), Slicing()).solve()
    for most in (0, 5, 20, 26, 28, 30, 40):
        looks = itertools.count()
        stop = lambda looks=looks, most=most: next(looks) > most  # noqa: E731
        result = BestFirst(form_of("resnet", layers, 1), Slicing(), stop, warm=1).solve()
        assert result.proven == (result.bound == whole.bound)
        assert result.bound <= whole.bound
        assert result.chain is None or result.bound <= form_value(result.chain)


def form_value(chain: Chain) -> float:
    """The product of energy and cycles."""
    return chain.energy * chain.cycles


def test_nothing_fits() -> None:
    """Buffers that no layer fits leave neither a chain nor an open question."""
    network = program_network("resnet").part((2, 3, 4), "part")
    machine = load_tiled_machine("set-edge-4x4[buffer=4]")
    form = program_form(network, machine, 1, Rules())
    result = BestFirst(form, Slicing(BOTH)).solve()
    assert result.chain is None
    assert result.proven
    assert KaplaSolver(form).solve() is None
    assert tangram_chain(form) is None


def test_down_sets_and_orders() -> None:
    """Between down-sets every row of layers is in a topological order, and all orders are those of the
    oracle.
    """
    network = form_of("goog", (5, 6, 7, 8), 1).network
    space = SegmentSpace(network, 1, TEMPORAL, orders="all")
    whole = {row for end, row in space.rows(0) if end == space.starts[-1]}
    assert whole == set(topological_orders(network))
    for start in space.starts:
        for _, row in SegmentSpace(network, 1, orders="sets").rows(start):
            done = start
            for layer in row:
                assert not network.masks[layer][0] & ~done
                done |= 1 << layer


def test_bounds_of_random_graphs() -> None:
    """Over random graphs no path costs less than the bound, nor one through an edge less than the edge's."""
    random = Random(7)
    for _ in range(40):
        nodes = random.randrange(3, 7)
        pairs = sorted(
            (i, j) for i in range(nodes) for j in range(i + 1, nodes) for _ in range(random.randrange(1, 3))
        )
        tail, head = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
        energy = np.array([random.uniform(1, 100) * (j - i) for i, j in pairs])
        cycles = np.array([float(random.randrange(1, 100)) * (j - i) for i, j in pairs])
        powers = random.choice([(1.0, 1.0), (2.0, 1.0), (0.5, 1.0), (1.0, 0.0)])
        scale = (random.uniform(10, 1000), random.uniform(10, 1000))
        relaxation = Relaxation(Edges(tail, head, nodes), energy, cycles, scale, powers)
        through, bound = relaxation.through(), relaxation.bound()
        for path in paths(tail, head, nodes - 1, 0):
            value = energy[path].sum() ** powers[0] * cycles[path].sum() ** powers[1]
            assert bound <= value
            assert (through[path] <= value).all()


def paths(tail: np.ndarray, head: np.ndarray, last: int, node: int) -> Iterator[list[int]]:
    """Every path of edges from a node to the last one."""
    if node == last:
        yield []
    for edge in np.flatnonzero(tail == node):
        for rest in paths(tail, head, last, int(head[edge])):
            yield [int(edge), *rest]
