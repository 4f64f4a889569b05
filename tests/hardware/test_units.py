"""Sizes, energies, bandwidths and counts."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.foundation.units import (
    exact,
    parse_bandwidth,
    parse_count,
    parse_energy,
    parse_name,
    parse_number,
    parse_size,
    shown,
)

UNITS = {"B": 1, "kB": 2**10, "KB": 2**10, "KiB": 2**10, "MB": 2**20, "MiB": 2**20, "GB": 2**30, "GiB": 2**30}


@given(st.integers(1, 10**6), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " ", "  "]))
def test_size_in_bytes_is_exact(amount: int, unit: str, space: str) -> None:
    """Every whole size in every unit is that many bytes, seen as 8-bit elements."""
    assert parse_size(f"{amount}{space}{unit}").elements(8) == amount * UNITS[unit]


@given(st.integers(1, 10**6), st.integers(1, 64))
def test_size_in_elements_ignores_their_width(amount: int, bits: int) -> None:
    """A size written in elements does not depend on the bits of an element."""
    assert parse_size(f"{amount} elements").elements(bits) == amount


@given(st.integers(1, 10**6), st.integers(1, 64))
def test_size_is_whole_elements_or_an_error(amount: int, bits: int) -> None:
    """A size in bytes gives the exact number of elements, or says that it is not a whole number."""
    size = parse_size(f"{amount} B")
    if amount * 8 % bits:
        with pytest.raises(ValueError, match=f"whole number of {bits}-bit elements"):
            size.elements(bits)
    else:
        assert size.elements(bits) * bits == amount * 8


@given(
    st.text(max_size=12) | st.integers() | st.booleans() | st.none() | st.decimals() | st.binary(max_size=4)
)
def test_any_other_size_is_one_line(value: object) -> None:
    """Whatever is written for a size is a size or one line that says what was expected."""
    message = "expected a size"
    try:
        assert parse_size(value).amount > 0
    except ValueError as error:
        message = str(error)
    assert message.startswith("expected a size")
    assert "\n" not in message


@given(
    st.text(max_size=12) | st.integers() | st.booleans() | st.none() | st.decimals() | st.binary(max_size=4)
)
def test_any_energy_is_scaled_to_an_integer(value: object) -> None:
    """Whatever is written for an energy is refused in one line, or 10**12 times it is an integer."""
    message = "expected an energy in pJ"
    try:
        assert (parse_energy(value) * 10**12).denominator == 1
    except ValueError as error:
        message = str(error)
    assert message.startswith("expected an energy in pJ")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "elements"),
    [("1.5 kB", 768), ("0.5 MB", 2**18), ("24 elements", 24), ("1 element", 1), ("2B", 1)],
)
def test_size_examples(text: str, elements: int) -> None:
    """Sizes as people write them are the right number of 16-bit elements."""
    assert parse_size(text).elements(16) == elements


@pytest.mark.parametrize(
    "value", ["0 B", "-1 kB", "12", "kB", "1 kb", "1 mB", "1e3 B", 512, True, None, "1 B B", []]
)
def test_size_needs_a_unit_and_a_positive_amount(value: object) -> None:
    """Sizes of zero, below zero, without a unit or with an unknown unit are refused."""
    with pytest.raises(ValueError, match="expected a size above 0 with its unit"):
        parse_size(value)


@pytest.mark.parametrize(
    ("value", "energy"),
    [
        (200, Fraction(200)),
        (Decimal("0.075"), Fraction(3, 40)),
        ("13.5 pJ", Fraction(27, 2)),
        ("2pJ", Fraction(2)),
        (0, Fraction(0)),
        (Decimal("0.000001"), Fraction(1, 10**6)),
        (Decimal("0.0771647"), Fraction(771647, 10**7)),
        ("0.000000000001 pJ", Fraction(1, 10**12)),
        (Decimal("1.50000000"), Fraction(3, 2)),
    ],
)
def test_energy_is_exact(value: object, energy: Fraction) -> None:
    """Energies are exact fractions, with or without the unit; trailing zeros are not decimals."""
    assert parse_energy(value) == energy


@pytest.mark.parametrize("value", [Decimal("1E-13"), "1.1234567890123 pJ", Decimal("1E-999999")])
def test_energy_has_at_most_twelve_decimals(value: object) -> None:
    """A thirteenth decimal of an energy is an error that says so."""
    with pytest.raises(ValueError, match="at most 12 decimals"):
        parse_energy(value)


@pytest.mark.parametrize(
    "value", [-1, Decimal("NaN"), Decimal("Infinity"), True, "2 nJ", Decimal("1E+999999"), {}]
)
def test_energy_is_a_number_of_at_least_zero(value: object) -> None:
    """Negative, infinite, absurd and non-numeric energies are refused."""
    with pytest.raises(ValueError, match="expected an energy in pJ of at least 0"):
        parse_energy(value)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("16 B/cycle", Fraction(8)),
        ("16 bytes/cycle", Fraction(8)),
        ("8 elements/cycle", Fraction(8)),
        ("1 B/cycle", Fraction(1, 2)),
        ("25.6 GB/s", Fraction(128, 5)),
        ("0.48 GB/s", Fraction(12, 25)),
    ],
)
def test_bandwidth_in_elements_per_cycle(text: str, rate: Fraction) -> None:
    """Every unit of bandwidth gives the right 16-bit elements per cycle at 500 MHz."""
    assert parse_bandwidth(text).elements_per_cycle(16, Fraction(500)) == rate


@pytest.mark.parametrize("value", [16, "16", "16 B", "0 B/cycle", "4 GB/cycle", None])
def test_bandwidth_needs_its_unit(value: object) -> None:
    """Bandwidths without a unit, of zero, or with an unknown unit are refused."""
    with pytest.raises(ValueError, match="expected a bandwidth above 0 with its unit"):
        parse_bandwidth(value)


@pytest.mark.parametrize("value", [0, -3, True, Decimal("2.0"), "4", None, 10**15])
def test_count_is_a_whole_number_above_zero(value: object) -> None:
    """Counts of zero, below zero, with a point, as text or absurdly large are refused."""
    with pytest.raises(ValueError, match="whole number of at least 1"):
        parse_count(value)


@pytest.mark.parametrize("value", ["", "a b", "1x", "x" * 41, "level:1", 3, None])
def test_name_is_plain(value: object) -> None:
    """Names with spaces, colons, a leading digit or no text at all are refused."""
    with pytest.raises(ValueError, match="expected a name"):
        parse_name(value)


@given(st.fractions(max_denominator=10**4))
def test_exact_text_reads_back(value: Fraction) -> None:
    """The exact text of a fraction reads back as the same fraction."""
    assert Fraction(exact(value)) == value


@given(st.decimals(0, 10**9, places=6, allow_nan=False))
def test_numbers_read_back(value: Decimal) -> None:
    """A number with six decimals survives reading and writing exactly."""
    assert Fraction(exact(parse_number(value))) == Fraction(value)


def test_shown_values_are_short() -> None:
    """A long value is cut to one short line in error messages."""
    assert len(shown("x\n" * 1000)) < 60
    assert "\n" not in shown({"a": "b\nc"})
