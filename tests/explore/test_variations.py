"""Axes of design spaces, energies that follow a capacity, and formulas."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

import tilewright as tw
from tilewright.foundation.description import build_description
from tilewright.foundation.errors import InputError
from tilewright.hardware.arithmetic import parse_formula
from tilewright.hardware.changes import changed
from tilewright.hardware.mapping.build import build_engine, level_bytes
from tilewright.hardware.mapping.design_cost import design_costs, design_quantities
from tilewright.hardware.mapping.design_space import DesignSpace, design_space
from tilewright.hardware.mapping.energies import parse_energy_rule
from tilewright.hardware.mapping.load import load_description
from tilewright.hardware.mapping.schema import MachineFile
from tilewright.hardware.mapping.variations import parse_variation, variation

SPM = "levels.SPM.capacity"
RF = "levels.RF.capacity"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=16kB..64kB*2", [("16 kB",), ("32 kB",), ("64 kB",)]),
        ("a=512 B..2kB*2", [("512 B",), ("1 kB",), ("2 kB",)]),
        ("a=1kB..2kB+512B", [("1 kB",), ("1.5 kB",), ("2 kB",)]),
        ("a=4..10+4", [(4,), (8,)]),
        ("a=1..8*2", [(1,), (2,), (4,), (8,)]),
        ("a=8 GB/s..16GB/s+4", [("8 GB/s",), ("12 GB/s",), ("16 GB/s",)]),
        ("a=16 kB, 40kB", [("16 kB",), ("40kB",)]),
        ("a=0.5,true,[inputs,weights]", [(Decimal("0.5"),), (True,), (["inputs", "weights"],)]),
        ("a:b=1:2,3:4", [(1, 2), (3, 4)]),
        ("a:b=1..2+1", [(1, 1), (2, 2)]),
        ("a:b=1..4*2:10..30+10", [(1, 10), (2, 20), (4, 30)]),
    ],
)
def test_values_are_read(text: str, values: list[tuple[object, ...]]) -> None:
    """Ranges with factors and steps, lists, tied fields; sizes in powers of 1024."""
    assert list(parse_variation(text).values) == values


@pytest.mark.parametrize(
    "text",
    [
        *("a", "=1", "a=", "a=1,,2", "a=2..1*2", "a=1..8*1", "a=1..8+0", "a=1 kB..4 GB/s*2", "a:b=1:2:3"),
        *("a=1..x*2", "a=1,1", "a:a=1", "a:b=1..2+1:5", "a=0..4+1", "a=1..1000000+1"),
    ],
)
def test_bad_axes_are_one_line(text: str) -> None:
    """What cannot be read is told with the flag."""
    with pytest.raises(InputError, match="--vary"):
        parse_variation(text)


def test_values_of_python() -> None:
    """Lists of plain values, tuples for fields that change together, texts as on the command line."""
    assert variation("a", [1, 2]).values == ((1,), (2,))
    assert variation(("a", "b"), [(1, 2), (3, 4)]).values == ((1, 2), (3, 4))
    assert variation("a:b", "1:2,3:4") == variation(("a", "b"), [(1, 2), (3, 4)])


def test_energies_follow_the_capacity() -> None:
    """dmazerunner-256 has the authors' table, and a size that is not in it is refused with the field."""
    machine = tw.machine("dmazerunner-256")
    assert [row["read_energy_pj"] for row in machine.rows()] == [200.0, 13.5, 0.96]
    other = machine.with_({SPM: "1 MB", RF: "16 B"})
    assert [row["read_energy_pj"] for row in other.rows()] == [200.0, 45.5625, 0.03]
    with pytest.raises(InputError, match=r"levels\[1\].energy_by_capacity: has no entry for 96 kB"):
        machine.with_({SPM: "96 kB"})
    with pytest.raises(InputError, match="either energy or energy_by_capacity"):
        machine.with_({"levels.RF.energy": 1})


def test_energies_by_formula() -> None:
    """Read and write may have formulas of their own; a formula is rounded to six decimals."""
    rule = parse_energy_rule({"read": "0.06 * sqrt(capacity / 32 B)", "write": "capacity / 3 kB"})
    energies = rule.at(Fraction(128))
    assert (energies.read, energies.write) == (Fraction("0.12"), Fraction("0.041667"))
    with pytest.raises(ValueError, match="above 0"):
        parse_energy_rule("capacity - 1 kB").at(Fraction(1024))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + 2 * b ^ 2", 20),
        ("-a + max(a, b, 1)", 1),
        ("a / (b - 3)", "error"),
        ("1 kB + 1", 1025),
        ("log2(1 MB)", 20),
        ("2 ^ 0.5 * 2 ^ 0.5", Fraction(2.0**0.5) ** 2),
        ("9 ^ 99", "error"),
    ],
)
def test_formulas(text: str, value: object) -> None:
    """Arithmetic is exact where it has no roots, and what has no value says so."""
    formula = parse_formula(text, ["a", "b"])
    if value == "error":
        with pytest.raises(ValueError, match="no value"):
            formula.value({"a": Fraction(2), "b": Fraction(3)})
    else:
        assert formula.value({"a": Fraction(2), "b": Fraction(3)}) == value


@pytest.mark.parametrize(
    "text", ["", "c", "a b", "a()", "__import__('os')", "a.b", "a if b else a", "'a'", "(" * 300]
)
def test_what_is_no_formula(text: str) -> None:
    """Names that mean nothing, calls and statements are refused."""
    with pytest.raises(ValueError, match="expected a formula"):
        parse_formula(text, ["a", "b"])


def test_costs_of_designs() -> None:
    """Capacities count both buffers and every instance."""
    space = design_space(
        *load_description("dmazerunner-256"), "dmazerunner-256", [parse_variation(f"{RF}=16B,32B")]
    )
    sizes = design_quantities(space.designs[0])
    assert sizes["pes"] == 256
    assert sizes["capacity"] == 128 * 1024 + 256 * 16
    assert design_costs("SPM.capacity + RF.instances * RF.capacity", space.designs) == [135168, 139264]
    with pytest.raises(InputError, match="--against: expected a formula of"):
        design_costs("GLB.capacity", space.designs)


def test_refused_designs_are_kept_with_their_reason() -> None:
    """A design that is no machine is told; a space of such alone is an error."""
    description, where = load_description("dmazerunner-256")
    space = design_space(description, where, "m", [parse_variation(f"{SPM}=128kB,96kB")])
    assert [design.engine is None for design in space.designs] == [False, True]
    assert "no entry for 96 kB" in space.designs[1].refusal
    with pytest.raises(InputError, match="all 1 designs"):
        design_space(description, where, "m", [parse_variation(f"{SPM}=96kB")])
    with pytest.raises(InputError, match="varies on two axes"):
        design_space(description, where, "m", [parse_variation(f"{SPM}=64kB")] * 2)


@pytest.mark.parametrize("axis", ["levels.SPM.capacity=64kB,soon", "levels.RF.banks=12,7", "levels.1.wide=1"])
def test_what_is_wrong_with_a_level_names_its_place(axis: str) -> None:
    """Levels that designs share are read once, and wrong ones as those of the whole file."""
    description, where = load_description("dmazerunner-256")
    varied = parse_variation(axis)
    space = DesignSpace(description, where, "m", (varied, parse_variation("compute.mac_energy=1,2")))
    assert any(design.engine is None for design in space.designs)
    for design in space.designs:
        data = changed(description, space.changes(design.place), where)
        if design.engine is not None:
            assert build_description(data, where, MachineFile, level_bytes) == design.sizes
            continue
        with pytest.raises(InputError) as refused:
            build_description(data, where, MachineFile, lambda file: build_engine(file, "m"))
        assert str(refused.value) == design.refusal
