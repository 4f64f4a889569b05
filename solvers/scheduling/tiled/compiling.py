"""Machine code that searches need, compiled once per installation before their time begins.

Without it no plan can be made or judged, so that nothing could be searched meanwhile.  Compiling takes half
a minute or more, longer than many limits: it is told as a phase and does not count against the time limit.
What was kept by an earlier call is loaded within the limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Final

from tilewright.formulation.compiled import is_kept
from tilewright.formulation.limits import Limits
from tilewright.solvers.background import Background

PHASE: Final = "compiling machine code, once per installation; the time limit begins after it"

_STEP = 0.05


class Kernels:
    """Modules of machine code that some methods need.

    Parameters
    ----------
    modules : in which it stands
    calls : calls everything in them once, in the types that searches have, and yields now and then
    """

    def __init__(self, modules: Sequence[ModuleType], calls: Callable[[], Iterator[None]]) -> None:
        self.modules, self.calls = modules, calls
        self._starting, self._wanted, self._ready = threading.Lock(), threading.Event(), threading.Event()
        self._running: Background[None] | None = None

    @property
    def are_compiled(self) -> bool:
        """Whether the code is there, in this process or kept by an earlier one, made of today's text."""
        if self._ready.is_set():
            return True
        return all(any(is_kept(one) for one in vars(module).values()) for module in self.modules)

    def compile(self, stop: threading.Event) -> None:
        """Compile, and wait for it.

        A stop ends the wait; what is being compiled then is compiled to its end, since the interpreter cannot
        end in the middle of it.
        """
        self._wanted.set()
        with self._starting:
            if self._running is None or not self._running.is_alive:
                self._running = Background(self._compile, "compiling", daemon=False)
                self._running.start()
            company = self._running
        while company.is_alive:
            company.join(_STEP)
            if stop.is_set():
                self._wanted.clear()
                break
        company.raise_failure()

    def _compile(self) -> None:
        for _ in self.calls():
            if not self._wanted.is_set():
                return
        self._ready.set()


def counted_from_now_on(limits: Limits, needed: Sequence[Kernels], phase: Callable[[str], None]) -> Limits:
    """The limits of a search, begun anew after compiling where anything had to be compiled.

    Parameters
    ----------
    needed : by the method
    phase : told before compiling begins
    """
    missing = [kernels for kernels in needed if not kernels.are_compiled]
    if not missing:
        return limits
    begun = limits.clock()
    phase(PHASE)
    for kernels in missing:
        if not limits.stop.is_set():
            kernels.compile(limits.stop)
    return replace(limits, started=limits.started + limits.clock() - begun)
