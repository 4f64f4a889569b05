"""Mappings as data: what they say, and one line for everything that is wrong with them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import yaml
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import hierarchies, mappings, operators

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import Evaluation, evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping, Spatial, Storage, Temporal
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import ArrayAxis, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import gemm

GEMM = gemm(m=4, n=4, k=4)
FAN = Fanout((ArrayAxis("x", 4), ArrayAxis("y", 2, frozenset("C"))))
ENGINE = Engine(
    "small",
    "hierarchy",
    16,
    Fraction(1),
    Fraction(500),
    (
        MemoryLevel("DRAM", None, Fraction(100), Fraction(100), fanout=Fanout((ArrayAxis("z", 2),))),
        MemoryLevel("SPM", 1000, Fraction(6), Fraction(6), fanout=FAN),
        MemoryLevel("RF", 8, Fraction(1), Fraction(1), keeps=frozenset({Role.INPUT, Role.OUTPUT})),
    ),
)
STORES = {
    "DRAM": [{"store": name, "level": "DRAM"} for name in "ABC"],
    "SPM": [{"store": name, "level": "SPM"} for name in "ABC"],
    "RF": [{"store": name, "level": "RF"} for name in "AC"],
}
LOOPS = [{"temporal": dim, "tile": 1} for dim in "MNK"]
DRAM, SPM, RF = STORES.values()
PLAIN = [*DRAM, *SPM, *RF, *LOOPS]


def spread(dim: str, axis: str, tile: int = 1) -> dict[str, Any]:
    return {"spatial": dim, "tile": tile, "axis": axis}


def at(dim: str, level: str) -> dict[str, Any]:
    return {"temporal": dim, "tile": 1, "level": level}


def evaluated(rows: list[dict[str, Any]], engine: Engine = ENGINE) -> Evaluation:
    return evaluate_mapping(GEMM, engine, cost_model("hierarchy"), Mapping.from_data(rows))


@settings(max_examples=effort(60))
@given(st.data())
def test_mappings_survive_yaml(data: st.DataObject) -> None:
    """Plain data, written and read as YAML, gives the same mapping back, even or uneven."""
    operator, engine = data.draw(operators()), data.draw(hierarchies(roomy=True))
    mapping = data.draw(mappings(operator, engine, uneven=True, perfect=data.draw(st.booleans())))
    assert Mapping.from_data(yaml.safe_load(yaml.safe_dump(mapping.to_data()))) == mapping
    mapping.validate(operator, engine)


def test_data_of_every_node() -> None:
    """Each kind of node has its own keys."""
    mapping = Mapping((Storage("A", "DRAM"), Temporal("M", 2), Spatial("K", 1, "x"), Temporal("M", 1, "SPM")))
    rows = [
        {"store": "A", "level": "DRAM"},
        {"temporal": "M", "tile": 2},
        {"spatial": "K", "tile": 1, "axis": "x"},
        {"temporal": "M", "tile": 1, "level": "SPM"},
    ]
    assert mapping.to_data() == rows
    assert Mapping.from_data(rows) == mapping


def test_loops_have_the_trip_counts_of_their_place() -> None:
    """A trip count is the enclosing tile over the loop's own, rounded up."""
    mapping = Mapping((Temporal("M", 3), Storage("A", "DRAM"), Temporal("N", 1), Temporal("M", 1)))
    assert [(step.node.dim, step.trip) for step in mapping.loops(GEMM)] == [("M", 2), ("N", 4), ("M", 3)]


@pytest.mark.parametrize(
    ("rows", "field", "message"),
    [
        ("text", "nodes", "expected a list of nodes"),
        (
            [3],
            "nodes[0]",
            "expected {temporal, tile}, {temporal, tile, level}, {spatial, tile, axis} or {store",
        ),
        ([{"temporal": "M"}], "nodes[0]", "expected {temporal, tile}"),
        ([*PLAIN[:2], {"spatial": "M", "tile": 1}], "nodes[2]", "{spatial, tile, axis}"),
        ([{"temporal": "M", "tile": 1, "axis": "x", "level": "RF"}], "nodes[0]", "expected {temporal"),
        ([{"temporal": "M", "tile": "1"}], "nodes[0].tile", "expected int, got '1'"),
        ([{"temporal": "M", "tile": True}], "nodes[0].tile", "expected int, got True"),
        ([{"temporal": 3, "tile": 1}], "nodes[0].temporal", "expected str, got 3"),
        ([{"spatial": "M", "tile": 1, "axis": None}], "nodes[0].axis", "expected str, got None"),
        ([{"store": "A", "level": 1}], "nodes[0].level", "expected str, got 1"),
        ({"store": "A", "level": "DRAM"}, "nodes", "expected a list of nodes"),
    ],
)
def test_malformed_data_names_the_node(rows: Any, field: str, message: str) -> None:
    """What is no node is told by its position, with the shapes that were expected."""
    with pytest.raises(InputError) as caught:
        Mapping.from_data(rows, "file.yaml")
    assert caught.value.where == "file.yaml"
    assert caught.value.field == field
    assert message in caught.value.message
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "field", "message"),
    [
        ([*PLAIN, {"store": "A", "level": "L2"}], "nodes[11]", "unknown level 'L2', expected one of ['DRAM'"),
        ([{"store": "Z", "level": "DRAM"}], "nodes[0]", "unknown tensor 'Z', expected one of ['A'"),
        ([*DRAM, *RF, *SPM, *LOOPS], "nodes[5]", "A stored in SPM inside an inner level's store"),
        ([*PLAIN, {"store": "A", "level": "SPM"}], "nodes[11]", "A stored in SPM inside an inner level's"),
        ([*PLAIN[:8], {"store": "B", "level": "RF"}, *LOOPS], "nodes[8]", "RF does not keep B"),
        ([*PLAIN, {"temporal": "P", "tile": 1}], "nodes[11]", "unknown dimension 'P', expected one of ['M'"),
        ([*PLAIN[:8], {"temporal": "M", "tile": 0}], "nodes[8]", "tile 0 of M, expected 1 to 4"),
        ([*PLAIN[:8], {"temporal": "M", "tile": 5}], "nodes[8]", "tile 5 of M, expected 1 to 4"),
        ([{"temporal": "M", "tile": 2}, {"temporal": "M", "tile": 3}], "nodes[1]", "expected 1 to 2"),
        ([*PLAIN[:8], spread("M", "w")], "nodes[8]", "unknown axis 'w', expected one of ['z', 'x', 'y']"),
        (PLAIN[:-1], "nodes", "K ends with a tile of 4, the innermost must be 1"),
        (PLAIN[1:], "nodes", "A is not stored in DRAM first"),
        ([*PLAIN[:2], *PLAIN[3:]], "nodes", "C is not stored in DRAM first"),
        ([*DRAM, *SPM, spread("N", "y"), *RF, *LOOPS[::2]], "nodes[6]", "axis y does not carry N"),
        ([*DRAM, *SPM, spread("M", "z"), *RF, *LOOPS[1:]], "nodes[6]", "axis z lies outside SPM"),
        (
            [*DRAM, SPM[0], RF[0], *SPM[1:], spread("M", "x"), *LOOPS[1:]],
            "nodes[7]",
            "axis x lies outside RF",
        ),
        ([*DRAM, spread("M", "x"), spread("N", "z"), LOOPS[2]], "nodes[4]", "axis z lies outside axis x"),
        ([*DRAM, spread("M", "x"), *SPM, *RF, *LOOPS[1:]], "nodes[4]", "SPM lies outside axis x"),
        (
            [*DRAM, *SPM, spread("M", "x", 2), LOOPS[1], spread("M", "x"), LOOPS[2]],
            "nodes[8]",
            "spatial loops on x must stand together",
        ),
        (
            [*DRAM, *SPM, spread("M", "x"), LOOPS[1], spread("K", "y")],
            "nodes[8]",
            "spatial loops on y must stand together",
        ),
        (
            [*DRAM, *SPM, at("M", "DRAM"), *LOOPS[1:]],
            "nodes[6]",
            "loop at 'DRAM', expected one of ['SPM', 'RF']",
        ),
        ([*DRAM, at("M", "L2"), *LOOPS[1:]], "nodes[3]", "loop at 'L2', expected one of ['DRAM'"),
        ([*DRAM, at("M", "SPM"), *LOOPS[1:]], "nodes[4]", "a loop of DRAM inside one of SPM"),
        ([*DRAM, at("M", "SPM"), spread("N", "z"), LOOPS[2]], "nodes[4]", "axis z lies outside SPM"),
    ],
)
def test_a_mapping_that_does_not_fit_names_the_node(
    rows: list[dict[str, Any]], field: str, message: str
) -> None:
    """What the operator or the engine does not have, and what is in the wrong place, is one line."""
    with pytest.raises(InputError) as caught:
        evaluated(rows)
    assert caught.value.field == field
    assert message in caught.value.message
    assert "\n" not in str(caught.value)


def test_stores_before_loops_are_a_legal_mapping() -> None:
    """The plain mapping that the errors above start from has nothing wrong but its registers."""
    assert evaluated(PLAIN).violations == ("capacity of RF: 32 over 8",)


def test_an_array_that_overflows_is_a_violation_and_no_error() -> None:
    """Mappings that do not fit are evaluated all the same, and told."""
    rows = [*DRAM, *SPM, spread("M", "x")]
    rows += [spread("N", "x", 2), *RF, *LOOPS[1:]]
    assert evaluated(rows).violations == ("axis x of SPM: 8 over 4",)


def test_where_a_tensor_begins_to_live_decides_what_it_costs() -> None:
    """The same loops, even and uneven: each tensor is fetched as its own place in the nest says."""
    loops = [{"temporal": dim, "tile": 1} for dim in "MKN"]
    even = evaluated([*DRAM, *loops[:2], *SPM, loops[2]])
    moved = {store["store"]: store for store in SPM}
    uneven = evaluated([*DRAM, moved["B"], loops[0], loops[1], moved["A"], loops[2], moved["C"]])
    fills = {(row.level, row.tensor): (row.fills, row.tile) for row in even.accesses}
    assert fills["SPM", "A"] == (16, 1)
    assert fills["SPM", "B"] == (64, 4)
    assert fills["SPM", "C"] == (0, 4)
    other = {(row.level, row.tensor): (row.fills, row.tile) for row in uneven.accesses}
    assert other["SPM", "A"] == (16, 1)
    assert other["SPM", "B"] == (16, 16)
    assert other["SPM", "C"] == (48, 1)


def test_dmazerunner_refuses_uneven_and_imperfect_mappings() -> None:
    """The model speaks of even mappings with perfect factors and of one loop per dimension and level."""
    engine = load_engine("dmazerunner-256")
    stores = {level: [{"store": name, "level": level} for name in "ABC"] for level in ("DRAM", "SPM", "RF")}
    k2, k1 = {"temporal": "K", "tile": 2}, {"temporal": "K", "tile": 1}
    rest = LOOPS[:2]

    def error(rows: list[dict[str, Any]]) -> str:
        with pytest.raises(InputError) as caught:
            evaluate_mapping(GEMM, engine, cost_model("dmazerunner"), Mapping.from_data(rows))
        return str(caught.value)

    uneven = [*stores["DRAM"], *stores["SPM"][:2], k1, stores["SPM"][2], *stores["RF"], *rest]
    assert "dmazerunner needs an even mapping" in error(uneven)
    twice = [*stores["DRAM"], k2, k1, *stores["SPM"], *stores["RF"], *rest]
    assert "dmazerunner needs each dimension once per level" in error(twice)
    odd = [*stores["DRAM"], {"temporal": "K", "tile": 3}, *stores["SPM"], k1, *stores["RF"], *rest]
    assert "dmazerunner needs tile sizes that divide each other" in error(odd)
