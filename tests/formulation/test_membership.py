"""Whether a mapping lies in the searched space, against the space written out node by node."""

from __future__ import annotations

from fractions import Fraction

import pytest
from brute import every_mapping, spelled
from effort import effort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators, tile_rules

from tilewright.formulation.mapping.mapping import Mapping, Node, Spatial, Storage, Temporal
from tilewright.formulation.mapping.membership import placement
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operator import Operator, Role

EDP = parse_objective("edp")
FACTORS = {True: "perfect", False: "imperfect"}


def costs(problem: LayerProblem, mapping: Mapping) -> bool:
    """Whether the evaluator can cost it."""
    try:
        problem.evaluate(mapping)
    except InputError:
        return False
    return True


@settings(max_examples=effort(12))
@given(st.data())
def test_membership_is_what_enumeration_says(data: st.DataObject) -> None:
    """A mapping, even or not, lies in the space exactly where the space written out has it."""
    operator, engine = data.draw(operators(most=8)), data.draw(hierarchies(roomy=True))
    perfect = data.draw(st.booleans())
    problem = layer_problem(operator, engine, EDP, factors=FACTORS[perfect])
    assume(problem.space.size <= 150)
    space = {spelled(operator, engine, enumerated) for enumerated in every_mapping(operator, engine, perfect)}
    for uneven, own in ((False, perfect), (True, perfect), (True, False), (False, False)):
        for _ in range(4):
            mapping = data.draw(mappings(operator, engine, uneven, own))
            if costs(problem, mapping):
                reason = problem.outside(mapping)
                assert (reason is None) == (spelled(operator, engine, mapping) in space), reason


@settings(max_examples=effort(15))
@given(operators(most=6), hierarchies(), st.booleans())
def test_every_mapping_of_the_space_lies_in_it(operator: Operator, engine: Engine, perfect: bool) -> None:
    """Nothing of the space written out is called outside, whatever its loop orders."""
    problem = layer_problem(operator, engine, EDP, factors=FACTORS[perfect])
    assume(problem.space.size <= 500)
    for mapping in every_mapping(operator, engine, perfect):
        assert problem.outside(mapping) is None


@settings(max_examples=effort(20))
@given(st.data())
def test_a_legal_mapping_of_the_space_is_a_row_of_every_table(data: st.DataObject) -> None:
    """Inside and legal, user's rules on tiles included, is the same as being among the searched rows."""
    operator, engine = data.draw(operators(most=16)), data.draw(hierarchies(roomy=True))
    rules = data.draw(st.lists(tile_rules(operator, engine), max_size=2))
    problem = layer_problem(operator, engine, EDP, constraints=rules, factors="imperfect")
    mapping = data.draw(mappings(operator, engine))
    assume(problem.outside(mapping) is None)
    evaluation = problem.evaluate(mapping)
    place = placement(problem.space, mapping)
    names = list(operator.bounds)
    searched = True
    for group in problem.space.groups:
        wanted = []
        for variable in group.variables:
            at = next(
                (index, dim)
                for index, edge in enumerate(problem.space.nest.boundaries)
                for dim, expr in edge.items()
                if expr is variable
            )
            wanted.append(place.tiles[at[0]][names.index(at[1])])
        searched = searched and bool((group.rows == wanted).all(axis=1).any())
    unmet = any(limit.bound == 0 and limit.name in problem.constraints.texts for limit in problem.limits)
    if not evaluation.violations or not all(rule.startswith("axis ") for rule in evaluation.violations):
        assert (searched and not unmet) == (not evaluation.violations)
    # else an axis is full of dimensions whose tiles are in different tables, each of which would fit alone


def test_the_machine_decides_what_may_be_skipped() -> None:
    """A mapping that skips a level is illegal, and outside, unless the machine lets the tensor bypass it."""
    operator = parse_layer("gemm:M=4,N=4,K=4")[1]
    problem = layer_problem(operator, machine(), EDP)
    stores = [*at("DRAM"), *at("BUF"), *at("RF")]
    loops = [Temporal(dim, 1) for dim in operator.bounds]
    assert not problem.evaluate(Mapping((*stores, *loops))).violations
    for index in range(3, len(stores)):
        node = stores[index]
        assert isinstance(node, Storage)
        mapping = Mapping((*stores[:index], *stores[index + 1 :], *loops))
        reported = f"{node.tensor} skips {node.level}, which it may not bypass"
        mandatory = node.level == "BUF"
        assert problem.evaluate(mapping).violations == ((reported,) if mandatory else ())
        assert problem.outside(mapping) == (reported if mandatory else None)


def machine() -> Engine:
    """Three levels and two axes."""
    unit = Fraction(1)
    fan = Fanout((ArrayAxis("y", 4), ArrayAxis("x", 4)), unit)
    return Engine(
        "three",
        "hierarchy",
        16,
        unit,
        Fraction(500),
        (
            MemoryLevel("DRAM", None, 100 * unit, 100 * unit),
            MemoryLevel("BUF", 1000, 6 * unit, 6 * unit, fanout=fan),
            MemoryLevel("RF", 100, unit, unit, may_bypass=frozenset(Role)),
        ),
    )


def at(level: str, *tensors: str) -> list[Node]:
    return [Storage(tensor, level) for tensor in tensors or ("A", "B", "C")]


REASONS: list[tuple[list[Node], str | None]] = [
    ([*at("DRAM"), *at("BUF"), Spatial("M", 5, "x"), *at("RF"), Temporal("M", 1)], None),
    (
        [*at("DRAM"), Temporal("M", 5), *at("BUF"), *at("RF"), Temporal("M", 2), Temporal("M", 1)],
        "M has two loops at RF; a searched level has one per dimension",
    ),
    (
        [*at("DRAM"), *at("BUF", "A"), Temporal("M", 5), *at("BUF", "B", "C"), *at("RF"), Temporal("M", 1)],
        "B begins to live in BUF inside BUF's loop over M; even storage begins outside all loops of BUF",
    ),
    (
        [*at("DRAM"), Temporal("M", 8), *at("BUF"), *at("RF"), Temporal("M", 1)],
        "the tile 8 of M at DRAM is not ceil(10/n): 2 trips need 5 at least",
    ),
    (
        [*at("DRAM"), *at("BUF"), Spatial("M", 3, "x"), Spatial("M", 1, "y"), *at("RF")],
        "M runs over axis y inside axis x (M)",
    ),
    (
        [*at("DRAM"), *at("BUF"), Spatial("M", 5, "x"), Temporal("M", 1, "BUF"), *at("RF")],
        "the loop over M at BUF stands inside axis x (M); the searched ones stand outside it",
    ),
    (
        [*at("DRAM"), *at("BUF", "B", "C"), Temporal("M", 1), *at("RF")],
        "A skips BUF, which it may not bypass",
    ),
    (
        [Temporal("M", 1), *at("DRAM"), *at("BUF")],
        "A begins to live in DRAM inside DRAM's loop over M; even storage begins outside all loops of DRAM",
    ),
]


@pytest.mark.parametrize(("nodes", "reason"), REASONS)
def test_the_reason_names_level_tensor_and_tile(nodes: list[Node], reason: str | None) -> None:
    """Each way to lie outside has its own plain reason."""
    problem = layer_problem(parse_layer("gemm:M=10,N=1,K=1")[1], machine(), EDP)
    mapping = Mapping(tuple(nodes))
    try:
        mapping.validate(problem.operator, problem.engine)
    except InputError:
        pytest.fail("a mapping that the evaluator does not take")
    assert problem.outside(mapping) == reason


def test_factors_decide_which_tiles_are_inside() -> None:
    """A tile that is no divisor lies in the imperfect space and outside the perfect one."""
    operator = parse_layer("gemm:M=10,N=1,K=1")[1]
    nodes = (*at("DRAM"), Temporal("M", 4), *at("BUF"), *at("RF"), Temporal("M", 1))
    inside, not_inside = (
        layer_problem(operator, machine(), EDP, factors=f) for f in ("imperfect", "perfect")
    )
    assert inside.outside(Mapping(nodes)) is None
    assert not_inside.outside(Mapping(nodes)) == "the tile 4 of M at DRAM is not a divisor of 10"


def test_the_outermost_level_holds_whole_tensors() -> None:
    """A store of the outermost level inside a loop would read elements that nothing ever brought there."""
    problem = layer_problem(parse_layer("gemm:M=10,N=1,K=1")[1], machine(), EDP)
    inside = Mapping((*at("DRAM", "B", "C"), Temporal("M", 1), *at("DRAM", "A"), *at("BUF")))
    reported = "A begins to live in DRAM inside a loop; all of it must be there"
    assert problem.evaluate(inside).violations == (reported,)
    idle = Mapping((*at("DRAM", "B", "C"), Temporal("M", 10), *at("DRAM", "A"), *at("BUF"), Temporal("M", 1)))
    assert not problem.evaluate(idle).violations
    assert problem.outside(idle) is None
