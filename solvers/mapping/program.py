"""Nodes bounded by the program that :mod:`tilewright.solvers.mapping.tape` lays out.

The machine code (:mod:`tilewright.solvers.mapping.tape_kernel`) is compiled once per installation, for some
seconds in a thread of its own that no limit of a search ends, and kept where
:mod:`tilewright.solvers.machine_code` finds room.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.solvers.background import Background
from tilewright.solvers.machine_code import MachineCode
from tilewright.solvers.mapping.opcodes import BLOCK, Floats, Integers, Program


class Runner:
    """A program with the room that it needs to run, for one thread at a time.

    Parameters
    ----------
    program : of contiguous arrays; its constants may change between runs
    groups, selectors : how many there are
    """

    def __init__(self, program: Program, groups: int, selectors: int) -> None:
        count, options = len(program.code), len(program.lists)
        roots = len(program.roots)
        asked = max(len(program.checks), roots)
        self._roots = roots
        self._sizes = np.array(
            [count, options, len(program.tables), len(program.checks), roots, groups, 0, selectors]
        )
        self._program = program
        self._rooms = [
            np.empty(5 * count + options + asked, dtype=np.int64),
            np.empty((count, 3), dtype=np.int64),
            np.empty((groups, BLOCK), dtype=np.int64),
            np.empty((count, BLOCK)),
        ]
        self._before = [_address(array) for array in (self._sizes, *program)]
        self._behind = [_address(array) for array in self._rooms]

    def bounds(self, cells: Integers, bases: Integers, chosen: Integers) -> tuple[Integers, Floats]:
        """Nodes whose limits' lower bounds stay under their ceilings, and the roots' values there.

        Parameters
        ----------
        cells : cell of every node in every axis group, shape (groups, nodes)
        bases : where the cells of each group's stage begin in its tables
        chosen : option of each selector, -1 where it is open

        Returns the nodes kept, and the roots' values, shape (roots, nodes kept).
        """
        cells = np.ascontiguousarray(cells)
        nodes = cells.shape[1]
        self._sizes[6] = nodes
        kept, values = np.empty(nodes, dtype=np.int64), np.empty((self._roots, nodes))
        given, found = (cells, bases, chosen), (kept, values)
        size = _load()(*self._before, *map(_address, given), *self._behind, *map(_address, found))
        return kept[:size], values[:, :size]


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _compiled() -> Any:
    """What numba makes of the kernel; it is imported for nothing else."""
    import numba

    from tilewright.solvers.mapping import tape_kernel

    door: Any = numba.cfunc
    return door(tape_kernel.SIGNATURE, nopython=True, error_model="numpy")(tape_kernel.entry)


_SOURCES = [Path(__file__).with_name(name) for name in ("tape_kernel.py", "opcodes.py")]

CODE = MachineCode("bounds", _compiled, _SOURCES, [ctypes.c_void_p] * 18)

READY = threading.Event()  #: set once the machine code is there
_STEP = 0.02
_starting = threading.Lock()
_compiling: list[Background[None]] = []


@cache
def _load() -> Callable[..., int]:
    return CODE.load()


def is_compiled() -> bool:
    """Whether the machine code is there, in this process or kept by an earlier one."""
    return READY.is_set() or CODE.kept is not None


def compile_beside() -> Background[None]:
    """Begin to compile, or to load what was kept; once per process, whatever becomes of who asked.

    The interpreter does not end in the middle of it.
    """
    with _starting:
        if not _compiling or not (_compiling[0].is_alive or READY.is_set()):
            _compiling[:] = [Background(_compile, "compiling", daemon=False)]
            _compiling[0].start()
        return _compiling[0]


def await_compiled(over: Callable[[], bool]) -> bool:
    """Wait for the machine code until whoever asks is over; whether it is there.

    Raises what made compiling fail.
    """
    if READY.is_set():
        return True
    company = compile_beside()
    while company.is_alive and not over():
        company.join(_STEP)
    company.raise_failure()
    return READY.is_set()


def _compile() -> None:
    _load()
    READY.set()
