"""Loading counts under the limit of the call, which holds to a second, however much there is to read."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tilewright.cli.terminal import clock
from tilewright.foundation import loading
from tilewright.foundation.errors import BudgetError

LIMITS = (0.001, 0.1, 0.4, 1.0, 3.0, 30.0)
STARTS = (0.0, 0.2, 1.0, 4.0)
"""Seconds that a call has taken before it reads its first file."""


class Time:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The clock of loading and of the command line."""
    fake = Time()
    monkeypatch.setattr(loading, "time", fake)
    monkeypatch.setattr(clock, "time", fake)
    return fake


def read(time: Time, seconds: float) -> None:
    """A file that takes so long; raises ``BudgetError``."""
    loading.begin_reading()
    end = time.now + seconds
    while time.now < end:
        time.now += 0.001
        loading.check_limit("file")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("each", [0.02, 0.24, 0.49, 100.0])
def test_limits_hold_while_files_are_read(time: Time, start: float, limit: float, each: float) -> None:
    """Reading, then searching, ends a second after the limit or a later first file, at most."""
    call = clock.Clock()
    call.limit(limit)
    time.now += start
    begin, done = time.now, 0
    with suppress(BudgetError):
        for _ in range(8):
            read(time, each)
            done += 1
    if done == 8:  # the search begins
        end = call.limit_from(limit) + limit
        assert end - time.now >= min(limit / 2, clock.SEARCH) - 1e-9
        time.now = end
    assert done == 8 or each > loading.LEAST
    assert done > 0 or each > loading.GRACE
    assert time.now <= max(call.moment + limit, begin) + 1
    loading.limit_loading(None)


def test_a_limit_inside_is_no_later_than_the_one_around_it(time: Time) -> None:
    """The sooner of two limits counts, and the outer one again behind the block."""
    with loading.loading_within(2.0):
        with loading.loading_within(5.0):
            assert loading.remaining() == 2.0
        with loading.loading_within(1.0):
            assert loading.remaining() == 1.0
        assert loading.remaining() == 2.0
    assert loading.remaining() == float("inf")
