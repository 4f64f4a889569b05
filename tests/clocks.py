"""Clocks of the tests: what a test may use, and what a busy machine may add to a limit of the program.

A test is limited by the clock of the processor: what it uses, with all processes that it starts, does not
depend on what else runs.  That limit also ends one that waits for something for too long, so no test states
when a process that it started counts as hanging.  Limits that the program promises are of the wall clock, and
get `delay` on top.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from subprocess import Popen
from typing import Any

import psutil
import pytest
import pytest_timeout

SLOW_SECONDS = 1800.0
"""What a test marked ``slow`` may use; ``pyproject.toml`` has the limit of all others."""

BACKSTOP = 4
"""Wall seconds per second of a limit, after which a test that waits for something is ended too."""


def delay() -> float:
    """What a busy machine may add to a limit of the program before a test calls that broken.

    Returns
    -------
    Seconds: those of ``TEST_DELAY`` in the environment (1 is what the command line promises on a quiet
    machine); else 5, and more where more processes than there are cores have lately wanted to run
    """
    stated = os.environ.get("TEST_DELAY")
    return float(stated) if stated else 5.0 * max(1.0, os.getloadavg()[0] / _cores())


def wait_until(condition: Callable[[], bool], process: Popen[str] | None = None) -> None:
    """Wait until something has happened, while a process runs if one is named."""
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def processor_seconds() -> float:
    """What this process and all that descend from it have used, whether or not they have ended."""
    return sum(os.times()[:4]) + sum(map(_used, _descendants()))


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Limit a test by the processor's clock; the limit is its ``timeout``.

    A test cannot use more than all cores give, so its clock is first looked at when it could be at its limit.
    """
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    used, begun = processor_seconds(), time.monotonic()

    def look(*_: object) -> None:
        __tracebackhide__ = True
        seconds, waited = processor_seconds() - used, time.monotonic() - begun
        left = min((settings.timeout - seconds) / _cores(), BACKSTOP * settings.timeout - waited)
        if left > 0:
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.05))
            return
        try:
            pytest_timeout.timeout_sigalrm(item, settings)
        except pytest.fail.Exception as late:
            pytest.fail(f"{late.msg} {seconds:.1f} s of the processor in {waited:.0f} s")

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]  # which pytest-timeout calls
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout / _cores())
    return True


def _cores() -> int:
    return os.cpu_count() or 1


def _descendants() -> list[psutil.Process]:
    """All processes below this one; most tests have none, which is a quick look."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    return psutil.Process().children(recursive=True)


def _used(process: psutil.Process) -> float:
    """Seconds of the processor of a process and of its children that have ended."""
    with suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0
