"""The clock of limits."""

from __future__ import annotations

from dataclasses import replace

from tilewright.formulation.limits import Limits


def test_seconds_begin_now_by_the_clock_that_is_read() -> None:
    """Whatever the clock says at first, the call begins there, and copies begin with it."""
    now = [7.0]
    limits = Limits(2.0, clock=lambda: now[0])
    assert (limits.started, limits.elapsed, limits.remaining) == (7.0, 0.0, 2.0)
    now[0] = 8.5
    assert (limits.elapsed, limits.share(0.5).remaining, limits.expired) == (1.5, 0.25, False)
    assert replace(limits, seed=1).elapsed == 1.5
    now[0] = 9.0
    assert limits.expired
