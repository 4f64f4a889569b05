"""Objectives: products of powers of energy and delay, compared exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError


@pytest.mark.parametrize(
    ("text", "energy", "delay", "powers"),
    [
        ("energy", 1, 0, (1, 0)),
        ("cycles", 0, 1, (0, 1)),
        ("edp", 1, 1, (1, 1)),
        ("EDP", 1, 1, (1, 1)),
        ("ed2p", 1, 2, (1, 2)),
        ("E", 1, 0, (1, 0)),
        ("D", 0, 1, (0, 1)),
        ("D^2", 0, 2, (0, 2)),
        ("E^2*D", 2, 1, (2, 1)),
        ("E·D^3", 1, 3, (1, 3)),
        ("E^0.5*D", Fraction(1, 2), 1, (1, 2)),
        ("E^1.5*D^0.25", Fraction(3, 2), Fraction(1, 4), (6, 1)),
    ],
)
def test_objectives_by_name_and_by_formula(
    text: str, energy: Fraction, delay: Fraction, powers: tuple[int, int]
) -> None:
    """Powers as written, and the least integer powers that order solutions alike."""
    objective = parse_objective(text)
    assert (objective.energy_power, objective.delay_power) == (energy, delay)
    assert objective.key_powers == powers


@pytest.mark.parametrize("text", ["", "power", "E^0*D^0", "E^10", "E+D", "E^-1", "E^a", "D^0"])
def test_other_texts_are_errors(text: str) -> None:
    """Anything else, no power at all and absurd powers are one line."""
    with pytest.raises(InputError) as caught:
        parse_objective(text)
    assert str(caught.value).startswith("--objective: ")
    assert "\n" not in str(caught.value)


@given(
    st.sampled_from(["energy", "cycles", "edp", "ed2p", "E^0.5*D", "E^2*D^0.5"]),
    st.fractions(1, 1000, max_denominator=100),
    st.integers(1, 10**6),
)
def test_values_are_the_powers_that_the_text_says(text: str, energy: Fraction, cycles: int) -> None:
    """The key's root is energy to its power times cycles to theirs."""
    objective = parse_objective(text)
    shown = objective.value(objective.key(energy, cycles))
    expected = float(energy) ** float(objective.energy_power) * cycles ** float(objective.delay_power)
    assert shown == pytest.approx(expected, rel=1e-9)


def test_whole_values_are_shown_as_integers() -> None:
    """An energy-delay product of integers has no decimals, however large."""
    objective = parse_objective("edp")
    assert objective.value(objective.key(Fraction(2784205169), 2458496)) == 6844957271165824
    assert isinstance(objective.value(Fraction(5)), int)
    assert objective.value(Fraction(5, 2)) == 2.5
