"""A level that everything may bypass: it costs nothing where it is bypassed, and never raises the optimum."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators, sizes

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.einsum import nest
from tilewright.workloads.mapping.operator import Operator, Role

HIERARCHY = cost_model("hierarchy")
OPTIONAL = MemoryLevel("X", 64, Fraction(50), Fraction(50), may_bypass=frozenset(Role))
WINDOW = nest("O[i] += A[i+j] * B[j]", bounds={"i": 2, "j": 2})


def with_level(engine: Engine, place: int, above: bool, level: MemoryLevel = OPTIONAL) -> Engine:
    """The engine with one more level, above or below the array that stands there."""
    outer, inner = engine.levels[:place], engine.levels[place:]
    if above:
        level = replace(level, fanout=outer[-1].fanout)
        outer = (*outer[:-1], replace(outer[-1], fanout=None))
    return replace(engine, levels=(*outer, level, *inner))


@st.composite
def windows(draw: st.DrawFn, most: int) -> Operator:
    """Any operator, or windows with strides and dilations."""
    if draw(st.booleans()):
        return draw(operators(most=most))
    a, b = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    bounds = dict(zip("ijk", draw(sizes(3, most)), strict=True))
    return nest(f"O[i,k] += A[{a}*i+{b}*j] * B[j,k]", bounds=bounds)


@settings(max_examples=effort(48))
@given(st.data())
def test_a_level_that_is_bypassed_changes_nothing(data: st.DataObject) -> None:
    """The same mapping has the same accesses, energy and cycles with one level more, wherever it stands."""
    operator = data.draw(windows(48))
    engine = data.draw(hierarchies(roomy=True, arrays=data.draw(st.booleans())))
    mapping = data.draw(mappings(operator, engine, data.draw(st.booleans()), data.draw(st.booleans())))
    place = data.draw(st.integers(1, len(engine.levels)))
    level = replace(
        OPTIONAL,
        double_buffered=data.draw(st.booleans()),
        sliding_window=data.draw(st.booleans()),
        read_bandwidth=Fraction(1, 8),
        write_bandwidth=Fraction(1, 8),
    )
    longer = with_level(engine, place, data.draw(st.booleans()), level)
    evaluation = evaluate_mapping(operator, engine, HIERARCHY, mapping)
    more = evaluate_mapping(operator, longer, HIERARCHY, mapping)
    assert more.accesses == evaluation.accesses
    assert (more.energy, more.cycles) == (evaluation.energy, evaluation.cycles)
    assert [line.split(":")[1] for line in more.violations] == [
        line.split(":")[1] for line in evaluation.violations
    ]


@settings(max_examples=effort(8))
@given(st.data())
def test_an_optional_level_never_raises_the_optimum(data: st.DataObject) -> None:
    """Proven optima of random problems, with and without it."""
    operator = data.draw(windows(8))
    engine = data.draw(hierarchies(levels=2, arrays=data.draw(st.booleans())))
    longer = with_level(engine, data.draw(st.integers(1, 2)), data.draw(st.booleans()))
    objective = parse_objective(data.draw(st.sampled_from(["energy", "cycles", "edp"])))
    factors = data.draw(st.sampled_from(["perfect", "imperfect"]))
    longest = layer_problem(operator, longer, objective, factors=factors)
    assume(longest.space.size <= 5_000)
    before = solve(layer_problem(operator, engine, objective, factors=factors), "exhaustive")
    assume(before.status is Status.OPTIMAL)
    after = solve(longest, "exhaustive")
    assert after.status is Status.OPTIMAL
    assert before.key is not None
    assert after.key is not None
    assert after.key <= before.key


def test_a_window_is_multicast_past_a_level_that_is_left_out() -> None:
    """Four PEs need three elements of a window of two by two, with and without a level between."""
    array = Fanout((ArrayAxis("x", 4),))
    unit, hundred = Fraction(1), Fraction(100)
    levels = (MemoryLevel("DRAM", None, hundred, hundred, fanout=array), MemoryLevel("L2", 3, unit, unit))
    two = Engine("two", "hierarchy", 16, unit, Fraction(500), levels)
    outer = [Storage(name, "DRAM") for name in "ABO"]
    inner = [Storage(name, "L2") for name in "ABO"]
    mapping = Mapping((*outer, Spatial("i", 1, "x"), Spatial("j", 1, "x"), *inner))
    for engine in (two, with_level(two, 1, above=False), with_level(two, 1, above=True)):
        assert evaluate_mapping(WINDOW, engine, HIERARCHY, mapping).energy == 724
        for solver in ("exhaustive", "branch", *(("cpsat",) if engine is not two else ())):
            result = solve(layer_problem(WINDOW, engine, parse_objective("energy")), solver)
            assert (result.status, result.key) == (Status.OPTIMAL, 724)
