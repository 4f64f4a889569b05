"""Machine code that searches need: compiled once per installation, in processes side by side.

A search waits for it within its limit, and what arrives too late serves the next one: every function is kept
as soon as it is compiled.  A worker also sends what it has compiled, so that a process can continue where
nothing can be kept; where no worker can be started, the process compiles itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tilewright.formulation.limits import LimitReachedError
from tilewright.foundation.compiled import CompiledFunction
from tilewright.foundation.kernels.version import Version

PHASE: Final = "compiling machine code, once per installation"
NOT_COMPILED: Final = "machine code was still being compiled, once per installation (see tilewright doctor)"

Compiled = tuple[str, str, Version]
"""Module and name of a function, and its machine code."""


class Kernels:
    """Functions that some methods need as machine code.

    Parameters
    ----------
    place : module and name under which this stands
    entries : those that are called from Python
    calls : calls all of them once, in the types that searches have
    """

    def __init__(
        self, place: tuple[str, str], entries: Sequence[Callable[..., Any]], calls: Callable[[], object]
    ) -> None:
        self.place, self.calls = place, calls
        self.entries = [entry for entry in entries if isinstance(entry, CompiledFunction)]
        self._ready = threading.Event()

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, self.place

    @property
    def are_compiled(self) -> bool:
        """Whether the code is there, in this process or cached by an earlier one, made of today's text."""
        if not self._ready.is_set() and all(entry.versions or entry.is_cached for entry in self.entries):
            self._ready.set()
        return self._ready.is_set()

    def compiled(self) -> list[Compiled]:
        """Compile in this process; returns all machine code."""
        self.calls()
        return [
            (entry.source.function.__module__, entry.source.name, version)
            for entry in self.entries
            for version in entry.versions
        ]

    def take(self, compiled: Sequence[Compiled]) -> None:
        """Use machine code that a worker has made."""
        for module, name, version in compiled:
            _named(module, name).adopt(version)
        self._ready.set()


def compiled_in_turn(needed: Sequence[Kernels], is_over: Callable[[], bool]) -> Iterator[Kernels]:
    """Kernels in the order in which they are compiled; those that are missing side by side, in processes.

    Raises
    ------
    LimitReachedError : where whoever needs them is over before; nothing continues then
    """
    from tilewright.foundation.pool import Call, WorkerDiedError, computed  # late: needed once
    from tilewright.foundation.processes import available_cores

    missing = []
    for kernels in needed:
        if kernels.are_compiled:
            yield kernels
        else:
            missing.append(kernels)
    calls = iter([Call(kernels, (kernels,)) for kernels in missing])
    left = len(missing)
    for kernels, future in computed(Kernels.compiled, lambda: next(calls, None), available_cores(), is_over):
        try:
            kernels.take(future.result())
        except WorkerDiedError:
            kernels.compiled()
        left -= 1
        yield kernels
    if left:
        raise LimitReachedError(NOT_COMPILED)


def _named(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(module), name)
