"""Mappings of storage patterns: of the machines that a machine with optional levels holds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.storage_patterns import Pattern, machine_of, offer_storage_patterns, optional
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import gemm

SIZES = (4096, 512, 96, 12)
"""Capacities of the optional levels of a machine of five levels, in elements."""


def five_levels() -> Engine:
    """DRAM and four levels that every tensor may bypass, with an array in the middle."""
    array = Fanout((ArrayAxis("x", 4), ArrayAxis("y", 4)), Fraction(2))
    inner = tuple(
        MemoryLevel(
            f"L{index}",
            capacity,
            Fraction(80 >> index),
            Fraction(80 >> index),
            double_buffered=True,
            may_bypass=frozenset(Role),
            read_bandwidth=Fraction(8),
            write_bandwidth=Fraction(8),
            fanout=array if index == 2 else None,
        )
        for index, capacity in enumerate(SIZES)
    )
    dram = MemoryLevel("DRAM", None, Fraction(200), Fraction(200), read_bandwidth=Fraction(8))
    return Engine("five", "hierarchy", 16, Fraction(1), Fraction(1000), (dram, *inner))


def problem_on_five_levels(objective: str, constraints: tuple[str, ...] = ()) -> LayerProblem:
    """A product of 8 x 16 x 8, perfect factors."""
    engine = five_levels()
    return layer_problem(
        gemm(m=8, n=16, k=8), engine, parse_objective(objective), constraints=constraints, factors="perfect"
    )


@settings(max_examples=effort(40))
@given(st.data())
def test_a_mapping_of_a_pattern_costs_the_same_on_the_whole_machine(data: st.DataObject) -> None:
    """Whatever a pattern's machine says of a mapping, the machine with all levels says, too."""
    operator = data.draw(operators(most=32))
    drawn = data.draw(hierarchies())
    levels = (drawn.levels[0], *(replace(level, may_bypass=level.keeps) for level in drawn.levels[1:]))
    engine = replace(drawn, levels=levels)
    whole = layer_problem(operator, engine, parse_objective("edp"))
    stores = optional(whole)
    pattern = Pattern(data.draw(st.sets(st.sampled_from(sorted(stores))))) if stores else Pattern()
    smaller = machine_of(engine, stores, pattern)
    assume(smaller is not None)
    assert smaller is not None
    mapping = data.draw(mappings(operator, smaller, data.draw(st.booleans())))
    alone = whole.on(smaller).evaluate(mapping)
    within = whole.evaluate(mapping)
    assert (alone.energy, alone.cycles) == (within.energy, within.cycles)
    assert bool(alone.violations) == bool(within.violations)


def test_no_worse_than_machines_with_a_level_alone() -> None:
    """What the patterns offer is as good as the optimum of every machine that keeps one optional level."""
    problem = problem_on_five_levels("edp")
    search = LayerSearch(problem, Limits(deterministic=True))
    offer_storage_patterns(search)
    assert search.key is not None
    stores = optional(problem)
    for index in range(1, 5):
        pattern = Pattern(store for store in stores if store[0] == index)
        machine = machine_of(problem.engine, stores, pattern)
        assert machine is not None
        alone = solve(problem.on(machine), "branch", Limits())
        assert alone.status is Status.OPTIMAL
        assert alone.key is not None
        assert search.key <= alone.key


def test_a_demand_on_a_level_that_a_pattern_leaves_out() -> None:
    """A demand on the tile of a level holds for every mapping that is offered; no pattern ends the search."""
    problem = problem_on_five_levels("energy", ("tile(M@L3)<=2",))
    search = LayerSearch(problem, Limits(deterministic=True))
    offer_storage_patterns(search)
    assert search.answer is not None
    assert not problem.judge(search.answer).violations


def test_few_choices_are_left_to_the_tree() -> None:
    """On a machine with few optional stores nothing is offered: the tree has all patterns soon."""
    engine = five_levels()
    levels = tuple(
        replace(level, may_bypass=frozenset()) if index < 3 else level
        for index, level in enumerate(engine.levels)
    )
    problem = layer_problem(gemm(m=4, n=4, k=4), replace(engine, levels=levels), parse_objective("energy"))
    search = LayerSearch(problem, Limits())
    offer_storage_patterns(search)
    assert search.key is None
