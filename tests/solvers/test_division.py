"""What hard searches do besides: parts of the energy alone, rough tiles, parts of the space first."""

from __future__ import annotations

from fractions import Fraction
from itertools import product as cartesian

import numpy as np
import pytest
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import Instance, hierarchies, instances, leaking, operators
from stops import in_blocks_of

from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.parts import relaxation
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.chains import balanced_chains, halved_chains
from tilewright.formulation.mapping.tiles.tables import Tables
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree import tree
from tilewright.solvers.mapping.tree.division import divided
from tilewright.solvers.mapping.tree.goals import Minimum
from tilewright.solvers.mapping.tree.layout import laid_out
from tilewright.solvers.mapping.tree.part_bounds import PartBounds
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Role


@settings(max_examples=effort(9))
@given(instances("hierarchy", most=24, largest=20_000))
def test_hard_searches_find_what_enumeration_finds(instance: Instance) -> None:
    """The same optimum where every search counts as a hard one."""
    _compare(instance)


@st.composite
def loose(draw: st.DrawFn, largest: int) -> Instance:
    """A problem on a machine whose levels all have arrays and may be passed by."""
    engine = leaking(draw, draw(hierarchies(arrays=True)))
    objective = draw(st.sampled_from(["energy", "edp", "cycles"]))
    instance = Instance(draw(operators(most=18)), engine, objective, factors="imperfect")
    assume(instance.problem().space.size <= largest)
    return instance


@settings(max_examples=effort(3))
@given(loose(3000))
def test_hard_searches_over_bypass_and_arrays_find_what_enumeration_finds(instance: Instance) -> None:
    """Choices of storage closed by single parts, and arrays bounded as a whole, leave the optimum alone."""
    _compare(instance, alone=True)


@pytest.mark.slow
@settings(max_examples=effort(300))
@given(loose(20_000))
def test_many_hard_searches_over_bypass_and_arrays_find_what_enumeration_finds(instance: Instance) -> None:
    """The same, for hundreds of machines."""
    _compare(instance, alone=True)


def _compare(instance: Instance, alone: bool = False) -> None:
    """Branch and bound, with every means that hard searches have, against plain enumeration.

    ``alone`` leaves out the mappings of others, so that the tree finds and closes everything by itself.
    """
    wanted = solve(instance.problem(), "exhaustive")
    with pytest.MonkeyPatch.context() as patch:
        if alone:
            patch.setattr(Branch, "_on_hard", staticmethod(lambda search: lambda: None))
        patch.setattr(tree, "_PLAIN", 0)
        patch.setattr(tree, "_PLAIN_PRODUCT", 0)
        patch.setattr(tree, "_EASY", 0)
        patch.setattr(tree, "_CHOICES", 1)
        patch.setattr(relaxation, "_FEW", 0)
        result = solve(instance.problem(), "branch")
    assert (result.status, result.key, result.bound) == (wanted.status, wanted.key, wanted.bound)


@pytest.mark.parametrize("objective", ["energy", "edp"])
@pytest.mark.parametrize(
    ("arrays", "layer"),
    [
        (0, "gemm:M=2,N=1,K=2"),
        (1, "gemm:M=1,N=6,K=1"),
        (2, "gemm:M=1,N=1,K=1"),
        (2, "pool:N=1,C=1,P=1,Q=1,R=3,S=1"),
        (3, "pool:N=1,C=1,P=1,Q=1,R=3,S=1"),
        (3, "gemm:M=1,N=1,K=4"),
    ],
)
def test_hard_searches_of_few_iterating_dimensions(arrays: int, layer: str, objective: str) -> None:
    """Parts of an energy that one table holds are asked for by nobody, whatever arrays there are."""
    levels = []
    for index in range(arrays + 2):
        fanout = Fanout((ArrayAxis(f"x{index}", 2),), Fraction(1)) if index < arrays else None
        bypass = frozenset({Role.WEIGHT}) if index else frozenset[Role]()
        energy = Fraction(40, 1 + index)
        capacity = 8 if index else None
        levels.append(MemoryLevel(f"L{index}", capacity, energy, energy, may_bypass=bypass, fanout=fanout))
    engine = Engine("few", "hierarchy", 16, Fraction(1), Fraction(500), tuple(levels))
    _compare(Instance(parse_layer(layer)[1], engine, objective, factors="imperfect"), alone=True)


@st.composite
def few_iterating(draw: st.DrawFn) -> Instance:
    """A layer of which at most two dimensions iterate, on a machine with arrays."""
    operator = draw(operators(["gemm", "conv", "pool", "elementwise", "nest"], most=draw(st.integers(1, 8))))
    assume(sum(bound > 1 for bound in operator.bounds.values()) <= 2)
    engine = draw(hierarchies(arrays=True))
    objective = draw(st.sampled_from(["energy", "edp"]))
    instance = Instance(operator, engine, objective, factors=draw(st.sampled_from(["perfect", "imperfect"])))
    assume(instance.problem().space.size <= 3000)
    return instance


@pytest.mark.slow
@settings(max_examples=effort(400))
@given(few_iterating())
def test_many_hard_searches_of_few_iterating_dimensions(instance: Instance) -> None:
    """The same, for hundreds of machines."""
    _compare(instance, alone=True)


@st.composite
def divisible(draw: st.DrawFn) -> Instance:
    """A problem of either kind of factors, often on arrays and with tensors that may bypass levels."""
    factors = draw(st.sampled_from(["perfect", "imperfect"]))
    arrays = draw(st.booleans())
    engine = leaking(draw, draw(hierarchies(arrays=arrays, sharing=draw(st.integers(0, 3)) == 0)))
    instance = Instance(draw(operators(most=18)), engine, "energy", factors=factors)
    assume(instance.problem().space.size <= 20_000)
    return instance


@settings(max_examples=effort(15))
@given(divisible())
def test_no_legal_mapping_has_less_than_a_part_of_the_energy_alone(instance: Instance) -> None:
    """Parts add up to the energy, and none is below its floor under any storage, in any row and order."""
    problem = instance.problem()
    search = LayerSearch(problem, Limits())
    layout = laid_out(problem, search.limits)
    rows = [index.ravel() for index in np.indices([len(group) for group in problem.space.groups])]
    if not layout.fits or (rows and not len(rows[0])):
        return
    division = divided(layout)
    layout = layout.dividing(division.energy, division.parts)
    lower_bounds = PartBounds(search, Minimum(search, "test"), layout, division)
    roots = [division.energy, *division.parts, problem.statement.energy]
    limits = [limit.expr for limit in problem.limits]
    tables = Tables(problem.space.groups, [*roots, *limits])
    stores = [s for s in problem.space.selectors if s.name.startswith("stores@")]
    orders = [s for s in problem.space.selectors if s not in stores]
    for chosen in cartesian(*(store.domain for store in stores)):
        storage = dict(zip(stores, chosen, strict=True))
        least = dict.fromkeys(division.parts, np.inf)
        for order in cartesian(*(selector.domain for selector in orders)):
            reader = BatchReader({**storage, **dict(zip(orders, order, strict=True))}, tables.known(rows))
            legal = np.ones(len(rows[0]) if rows else 1, dtype=bool)
            for limit in problem.limits:
                legal &= reader.read(limit.expr) <= limit.bound
            assert np.array_equal(reader.read(division.energy), reader.read(problem.statement.energy))
            for term in division.parts:
                values = np.broadcast_to(reader.read(term), legal.shape)[legal]
                least[term] = min(least[term], values.min(initial=np.inf))
        for term in division.parts:
            least_part = lower_bounds.least_value(term, storage, 10**9)
            assert least_part <= least[term] if term in division.relaxed else least_part == least[term]
            # What is known of other storages counts only where these are alike for the part.
            assert lower_bounds._known_least(term, storage, np.inf) <= least[term]
            with in_blocks_of(1):  # what is left open may cost less than all that was found
                assert lower_bounds.least_value(term, storage, 3) <= least_part
            for enough in (0.5 * least_part, least_part, 2 * least_part):
                assert lower_bounds.least_value(term, storage, 10**9, enough) == min(least_part, enough)


def test_halved_tiles_are_least_tiles_of_trip_counts() -> None:
    """Every chain of halved tiles is one of the chains that are searched."""
    for bound in range(1, 34):
        every = {tuple(chain) for chain in balanced_chains(bound, 3).tolist()}
        halved = {tuple(chain) for chain in halved_chains(bound, 3).tolist()}
        assert halved <= every
        assert (bound,) * 3 in halved
        assert (1, 1, 1) in halved


def test_halved_tiles_fill_axes() -> None:
    """On an axis of 14 no halved tile of 64 takes more than 8 trips; the least of 14 trips has 13."""
    most = (0, 14, 0)
    halved = {tuple(chain) for chain in halved_chains(64, 3, most).tolist()}
    assert halved <= {tuple(chain) for chain in balanced_chains(64, 3, most).tolist()}
    assert (64, 5, 5) in halved
    assert (32, 3, 2) in halved
    assert (64, 4, 4) not in halved
    among = (frozenset({64}), frozenset({5, 8}), frozenset({1, 2}))
    assert halved_chains(64, 3, most, among).tolist() == [[64, 5, 1], [64, 5, 2], [64, 8, 1], [64, 8, 2]]
