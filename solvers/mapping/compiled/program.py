"""Nodes bounded by the program that :mod:`tilewright.solvers.mapping.compiled.bound_program` lays out.

The machine code (:mod:`tilewright.solvers.mapping.compiled.bound_program_kernel`) is compiled once per
installation, for a second in a thread of its own that no limit of a search ends, and kept as
:mod:`tilewright.foundation.compiled` has it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import numpy as np

from tilewright.formulation.mapping.tiles import windows_kernel
from tilewright.foundation.arrays import Floats, Int64s
from tilewright.solvers.background import Background
from tilewright.solvers.compiling import Kernels
from tilewright.solvers.mapping.compiled import bound_program_kernel, cuts, descent_kernel
from tilewright.solvers.mapping.compiled.bound_program_kernel import Plan, Scratch
from tilewright.solvers.mapping.compiled.cuts import EVERYTHING, wanted_by
from tilewright.solvers.mapping.compiled.descent_state import decisions_of, new_stack
from tilewright.solvers.mapping.compiled.opcodes import BLOCK, Program
from tilewright.solvers.mapping.tables.cell_bounds import bound_cells
from tilewright.solvers.mapping.tables.stages import Stage


class Runner:
    """A program with the scratch memory that it needs to run, for one thread at a time.

    Parameters
    ----------
    program : of contiguous arrays; its constants are copied, and may change between runs
    groups : how many there are

    Attributes
    ----------
    owner : whose constants it has; ``None`` for nobody's
    """

    def __init__(self, program: Program, groups: int) -> None:
        count, options = len(program.code), len(program.lists)
        self.program = program._replace(constants=program.constants.copy())
        self.owner: tuple[int, ...] | None = None
        self._groups = groups
        instructions, written, same, last, free = np.empty((5, count), dtype=np.int64)
        roots = np.empty(max(len(program.checks), len(program.roots)), dtype=np.int64)
        used = np.empty(len(program.slots), dtype=np.int64)
        arguments, lists = np.empty((count, 3), dtype=np.int64), np.empty(options, dtype=np.int64)
        plan = Plan(instructions, written, arguments, lists, roots, same, last, free, used)
        places = np.empty((groups + len(program.slots), BLOCK), dtype=np.uint32)
        registers = np.empty((count, BLOCK))
        self._scratch = Scratch(
            plan, registers, places, np.empty(0, np.int64), np.empty((len(program.roots), 0))
        )

    def another(self) -> Runner:
        """The same program with scratch memory of its own."""
        return Runner(self.program, self._groups)

    def scratch(self, nodes: int) -> Scratch:
        """Memory with room for the values of so many nodes."""
        if len(self._scratch.kept) < nodes:
            kept, values = np.empty(nodes, dtype=np.int64), np.empty((len(self.program.roots), nodes))
            self._scratch = self._scratch._replace(kept=kept, values=values)
        return self._scratch

    def bounds(self, cells: Int64s, bases: Int64s, stages: Int64s, chosen: Int64s) -> tuple[Int64s, Floats]:
        """Nodes whose limits' lower bounds stay under their ceilings, and the roots' values there.

        Parameters
        ----------
        cells : cell of every node in every axis group, shape (groups, nodes)
        bases : where the cells of each group's stage begin in its tables
        stages : these stages, -1 for the whole group
        chosen : option of each selector, -1 where it is open

        Returns the nodes kept, and the roots' values, shape (roots, nodes kept).
        """
        cells = np.ascontiguousarray(cells)
        nodes = cells.shape[1]
        scratch = self.scratch(nodes)
        size = bound_program_kernel.bounds(self.program, cells, nodes, bases, stages, chosen, scratch)
        return scratch.kept[:size].copy(), scratch.values[:, :size].copy()


READY = threading.Event()  #: set once the machine code is there
_STEP = 0.02
_starting = threading.Lock()
_compiling: list[Background[None]] = []


def is_compiled() -> bool:
    """Whether the machine code is there, in this process or cached by an earlier one."""
    return READY.is_set() or BOUNDS.are_compiled


def start_compiling() -> Background[None]:
    """Begin to compile, or to load what was cached; once per process, whatever becomes of the caller.

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
    work = start_compiling()
    while work.is_alive and not over():
        work.join(_STEP)
    work.raise_failure()
    return READY.is_set()


def _compile() -> None:
    BOUNDS.calls()
    READY.set()


def _run_nothing() -> None:
    """Bound one cell, run a program without instructions, and search nothing."""
    edges, levels = np.array([0, 1], dtype=np.int32), np.array([[0], [1]], dtype=np.int64)
    bound_cells(np.zeros(1), edges[:0], edges, levels, True, np.zeros(1))
    none, zeros = np.zeros(0, dtype=np.int64), np.zeros(0)
    windows_kernel.fetched(0, np.zeros((0, 0)), none, none, none, 1, zeros)
    pairs, triples = np.zeros((0, 2), dtype=np.int64), np.zeros((0, 3), dtype=np.int64)
    rows, whole = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    program = Program(
        code=none,
        arguments=triples,
        constants=zeros,
        lists=none,
        tables=zeros,
        loads=pairs,
        slots=triples,
        classes=rows,
        first_rows=rows,
        row_starts=whole,
        checks=none,
        ceilings=zeros,
        roots=none,
    )
    runner = Runner(program, 1)
    runner.bounds(np.zeros((1, 0), dtype=np.int64), whole, whole, none)
    wanted_by(EVERYTHING, zeros, zeros, zeros)
    decisions = decisions_of((), (Stage("nothing", None, (), ()),), (), {}, (1, 0), (True, False))
    stack = new_stack(decisions, 0, 1)
    descent_kernel.descend(program, decisions, stack, runner.scratch(1), EVERYTHING, 1, 1, 0)


BOUNDS: Final = Kernels(
    (__name__, "BOUNDS"),
    (
        bound_cells,
        windows_kernel.fetched,
        bound_program_kernel.bounds,
        descent_kernel.descend,
        cuts.mark_wanted,
    ),
    _run_nothing,
)
"""What branch and bound needs."""
