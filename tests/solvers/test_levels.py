"""What hard searches do besides: outer levels alone, rough tiles, rows left out, parts of the space first."""

from __future__ import annotations

import numpy as np
import pytest
from effort import effort
from hypothesis import given, settings
from instances import Instance, instances

from tilewright.formulation.expression.batch import BatchReader
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping import relaxation
from tilewright.formulation.mapping.chains import balanced_chains, halved_chains
from tilewright.formulation.mapping.relaxation import problem_tables
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping import branch, stages
from tilewright.solvers.mapping.branch import Minimum, Tree
from tilewright.solvers.mapping.levels import by_levels
from tilewright.solvers.mapping.solve import solve


@settings(max_examples=effort(15))
@given(instances("hierarchy", most=24, largest=20_000))
def test_hard_searches_find_what_enumeration_finds(instance: Instance) -> None:
    """The same optimum where every search counts as a hard one with very many tiles."""
    wanted = solve(instance.problem(), "exhaustive")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branch, "_EASY", 0)
        patch.setattr(branch, "_CHOICES", 1)
        patch.setattr(stages, "MANY", 0)
        patch.setattr(relaxation, "_FEW", 0)
        found = solve(instance.problem(), "branch")
    assert (found.status, found.key, found.bound) == (wanted.status, wanted.key, wanted.bound)


@settings(max_examples=effort(15))
@given(instances("hierarchy", most=24, largest=5_000))
def test_no_legal_mapping_has_less_than_the_outer_levels_alone(instance: Instance) -> None:
    """The floor of each part of the energy is its least value over all rows, orders and residencies."""
    problem = instance.problem()
    tree = Tree(LayerSearch(problem, Limits()), Minimum(LayerSearch(problem, Limits()), "test"))
    _, parts = by_levels(problem)
    if tree.empty or not parts:
        return
    tables = problem_tables(problem)
    sizes = [len(table) for table in tables.tables]
    if not all(sizes):
        return
    rows = [index.ravel() for index in np.indices(sizes)]
    for energy in parts:
        least = np.inf
        for chosen in np.ndindex(*(len(selector.domain) for selector in problem.space.selectors)):
            selected = dict(zip(problem.space.selectors, chosen, strict=True))
            reader = BatchReader(selected, tables.known(rows))
            legal = np.ones(len(rows[0]) if rows else 1, dtype=bool)
            for limit in problem.limits:
                legal &= reader.read(limit.expr) <= limit.bound
            values = np.broadcast_to(reader.read(energy), legal.shape)[legal]
            least = min(least, values.min(initial=np.inf))
        assert tree._alone(energy, 10**9) == least


def test_halved_tiles_are_least_tiles_of_trip_counts() -> None:
    """Every chain of halved tiles is one of the chains that are searched."""
    for bound in range(1, 34):
        every = {tuple(chain) for chain in balanced_chains(bound, 3).tolist()}
        halved = {tuple(chain) for chain in halved_chains(bound, 3).tolist()}
        assert halved <= every
        assert (bound,) * 3 in halved
        assert (1, 1, 1) in halved
