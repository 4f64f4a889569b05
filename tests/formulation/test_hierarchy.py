"""The ``hierarchy`` cost model against a simulator that walks through the nest."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators
from simulator import Simulation, cycles, simulate

from tilewright.formulation.cost import cost_model
from tilewright.formulation.evaluator import Evaluation, evaluate_mapping
from tilewright.formulation.mapping import Mapping
from tilewright.hardware.engine import Engine
from tilewright.workloads.operator import Operator

HIERARCHY = cost_model("hierarchy")
PLAIN = ("conv", "depthwise", "gemm", "matmul", "pool", "elementwise", "nest")


@st.composite
def cases(draw: st.DrawFn, uneven: bool, perfect: bool = True) -> tuple[Operator, Engine, Mapping]:
    operator = draw(operators(kinds=PLAIN, most=48))
    engine = draw(hierarchies(roomy=True))
    return operator, engine, draw(mappings(operator, engine, uneven, perfect))


def both(case: tuple[Operator, Engine, Mapping]) -> tuple[Evaluation, Simulation]:
    operator, engine, mapping = case
    return evaluate_mapping(operator, engine, HIERARCHY, mapping), simulate(operator, engine, mapping)


@settings(max_examples=150)
@given(cases(uneven=False))
def test_counts_of_even_mappings_are_those_of_a_walk_through_the_nest(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """Reads, fills, updates and tiles of every tensor at every level equal the simulator's."""
    _compare(case)


@settings(max_examples=150)
@given(cases(uneven=True))
def test_counts_of_uneven_mappings_are_those_of_a_walk_through_the_nest(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """The same where tensors begin to live anywhere, bypass levels, and dimensions are cut repeatedly."""
    _compare(case)


@settings(max_examples=150)
@given(cases(uneven=True, perfect=False))
def test_counts_of_imperfect_mappings_are_those_of_a_walk_through_the_nest(
    case: tuple[Operator, Engine, Mapping],
) -> None:
    """The same where the last tile of a loop is smaller and the last instances of an array do less."""
    _compare(case)


def _compare(case: tuple[Operator, Engine, Mapping]) -> None:
    found, walked = both(case)
    for row in found.accesses:
        counts = walked.counts[row.level, row.tensor].totals
        assert (row.reads, row.fills, row.updates, row.tile) == counts, f"{row.tensor} at {row.level}"


@settings(max_examples=150)
@given(st.booleans().flatmap(lambda perfect: cases(uneven=False, perfect=perfect)))
def test_energy_and_cycles_follow_from_the_walk(case: tuple[Operator, Engine, Mapping]) -> None:
    """Simulated accesses and hops times unit energies are the energy; simulated ports give the cycles."""
    operator, engine, _ = case
    found, walked = both(case)
    energy = engine.mac_energy * operator.iterations
    for level in engine.levels:
        for tensor in operator.tensors:
            counts = walked.counts[level.name, tensor.name]
            reads, fills, updates, _ = counts.totals
            energy += level.read_energy * reads + level.write_energy * (fills + updates)
        if level.fanout is not None:
            energy += level.fanout.energy * walked.hops[level.name]
    assert found.energy == energy
    assert found.cycles == cycles(engine, operator, walked)
