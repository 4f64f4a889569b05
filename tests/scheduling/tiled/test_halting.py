"""Passes of machine code are told when their limits have struck, and no others are."""

from __future__ import annotations

import os
import threading

import pytest

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled import halting as module
from tilewright.formulation.scheduling.tiled.halting import WATCH, halting


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def looked(looks: int = 2) -> None:
    """Wait until so many looks at all limits have begun after this call."""
    for _ in range(looks):
        clock, seen = Clock(), threading.Event()

        def told(clock: Clock = clock, seen: threading.Event = seen) -> float:
            if threading.current_thread().name == WATCH:
                seen.set()
            return clock()

        with halting(Limits(1.0, clock=told)):
            assert seen.wait(60.0)


def test_the_flag_of_limits_that_struck_is_set_and_no_other() -> None:
    """Of two passes under way one has time left; a pass without limits goes on, too."""
    clock, other = Clock(), Clock()
    with (
        halting(Limits(1.0, clock=clock)) as short,
        halting(Limits(1.0, clock=other)) as long,
        halting(None) as free,
    ):
        looked()
        assert (short[0], long[0], free[0]) == (0, 0, 0)
        clock.now = 2.0
        looked()
        assert (short[0], long[0], free[0]) == (1, 0, 0)
        other.now = 2.0
    looked()
    assert long[0] == 0  # its pass was over


def test_a_pass_after_the_end_is_told_at_once() -> None:
    clock = Clock()
    limits = Limits(1.0, clock=clock)
    clock.now = 2.0
    with halting(limits) as flag:
        assert flag[0] == 1


def test_many_passes_share_a_thread_that_ends_when_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WATCH", watch := module._Watch())
    monkeypatch.setattr(module, "STEP", 0.01)
    threads = set()
    for _ in range(50):
        with halting(Limits(60.0)):
            threads.add(watch._thread)
    assert len(threads) < 50
    last = watch._thread
    if last is not None:
        last.join(60.0)
        assert not last.is_alive()
    with halting(Limits(60.0)):
        assert watch._thread is not None
        assert watch._thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_copy_of_the_process_has_a_thread_of_its_own() -> None:
    """The copy's passes are told of their limits although the thread was not copied."""
    with halting(Limits(60.0)):
        child = os.fork()
        if child == 0:
            told = False
            try:
                clock = Clock()
                with halting(Limits(1.0, clock=clock)) as flag:
                    clock.now = 2.0
                    looked()
                    told = bool(flag[0])
            finally:
                os._exit(0 if told else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
