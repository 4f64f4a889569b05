"""Measures on traces made by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.benchmarks.measures import Step, overhead, primal_gap, primal_integral, seconds_to

TRACE = [
    Step(1.0, Fraction(200)),
    Step(2.0, Fraction(109)),
    Step(4.0, Fraction(101)),
    Step(7.0, Fraction(100)),
]
OPTIMUM = Fraction(100)


def test_overhead() -> None:
    """1.02 times the optimum is 2 % over it; of a squared key the root counts."""
    assert overhead(Fraction(102), OPTIMUM) == pytest.approx(0.02)
    assert overhead(Fraction(121, 100), Fraction(1), root=2) == pytest.approx(0.1)


def test_overhead_is_zero_only_at_the_optimum() -> None:
    """Keys that a float cannot tell apart are told apart."""
    large = Fraction(10**30)
    assert overhead(large, large) == 0
    assert overhead(Fraction(1), Fraction(1), root=2) == 0


@pytest.mark.parametrize(("percent", "seconds"), [(100, 1.0), (10, 2.0), (9, 2.0), (1, 4.0), (0, 7.0)])
def test_seconds_to(percent: int, seconds: float) -> None:
    """The first step that is close enough counts; exactly so close is close enough."""
    assert seconds_to(TRACE, OPTIMUM, Fraction(percent, 100)) == seconds


def test_seconds_to_what_is_never_reached() -> None:
    """A run that ends above, and one without any solution, never reach the optimum."""
    assert seconds_to(TRACE[:3], OPTIMUM) is None
    assert seconds_to([], OPTIMUM, Fraction(1)) is None


def test_seconds_to_within_a_share_of_the_value() -> None:
    """For a key that is the square of the value, 10 % of the value are 21 % of the key."""
    steps = [Step(1.0, Fraction(122)), Step(2.0, Fraction(121))]
    assert seconds_to(steps, OPTIMUM, Fraction(1, 10), root=2) == 2.0


def test_primal_gap() -> None:
    """Without a solution 1, at twice the optimum one half, at it 0."""
    assert primal_gap(None, OPTIMUM) == 1
    assert primal_gap(Fraction(200), OPTIMUM) == 0.5
    assert primal_gap(OPTIMUM, OPTIMUM) == 0
    assert primal_gap(Fraction(400), OPTIMUM, root=2) == 0.5


def test_primal_integral_by_hand() -> None:
    """1 s at gap 1, 1 s at 1/2, 2 s at 9/109, 3 s at 1/101, then 0."""
    expected = 1 + 0.5 + 2 * 9 / 109 + 3 / 101
    assert primal_integral(TRACE, OPTIMUM, until=10) == pytest.approx(expected)


def test_primal_integral_ends_at_the_limit() -> None:
    """Steps behind the limit do not count."""
    assert primal_integral(TRACE, OPTIMUM, until=1.5) == pytest.approx(1.25)
    assert primal_integral(TRACE, OPTIMUM, until=0.5) == pytest.approx(0.5)


def test_primal_integral_at_its_ends() -> None:
    """The optimum from the start integrates to 0, no solution at all to the limit."""
    assert primal_integral([Step(0.0, OPTIMUM)], OPTIMUM, until=10) == 0
    assert primal_integral([], OPTIMUM, until=10) == 10


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(100, 10**6)), max_size=8), st.floats(0.1, 20))
def test_primal_integral_as_a_sum(points: list[tuple[float, int]], until: float) -> None:
    """It is the sum over a fine grid of times, and never outside 0 and the limit."""
    moments = sorted(seconds for seconds, _ in points)
    keys = sorted((key for _, key in points), reverse=True)
    steps = [Step(seconds, Fraction(key)) for seconds, key in zip(moments, keys, strict=True)]
    integral = primal_integral(steps, OPTIMUM, until)
    assert -1e-9 <= integral <= until + 1e-9
    grid = 2000
    total = 0.0
    for index in range(grid):
        moment = until * (index + 0.5) / grid
        held = [step.key for step in steps if step.seconds <= moment]
        total += primal_gap(held[-1] if held else None, OPTIMUM) * until / grid
    assert integral == pytest.approx(total, abs=until * (len(steps) + 1) / grid)
