"""The machine code behind :mod:`tilewright.solvers.mapping.tape`: its instructions over blocks of nodes.

One compiled interpreter serves every problem.  It is compiled once per installation, for some seconds in a
thread of its own that no limit of a search ends, and kept where :mod:`tilewright.solvers.caches` finds room.
Operations come in the same sequence and in the same float64 arithmetic as the interval reader's, so both
give equal bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.solvers.background import Background
from tilewright.solvers.caches import compiled

CONSTANT, LOAD, SELECTED, CHOICE_LOW, CHOICE_HIGH = 0, 1, 2, 3, 4  #: not of two registers
ADD_SCALED, ADD_CONSTANT, SCALE, TIMES, TIMES_CLAMPED, CLAMP = 5, 6, 7, 8, 9, 10
CEIL_QUOTIENT, LARGER, SMALLER, AT_LEAST, AT_MOST, ONE_AT_MOST, ROUND = 11, 12, 13, 14, 15, 16, 17
WHERE_LOW, WHERE_HIGH, SETTLED = 18, 19, 20

BLOCK = 128  #: nodes per pass; their registers stay in the processor's cache

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Program(NamedTuple):
    """Instructions, each with a register for its value.

    Parameters
    ----------
    code : operation of each instruction, shape (instructions,)
    arguments : registers and positions, shape (instructions, 3)
    constants : one of each instruction
    lists : registers of choices' options
    tables : the values that ``LOAD`` reads, those of all axis groups one after the other
    checks, ceilings : registers of the limits and what they may reach
    roots : registers whose values are asked for
    """

    code: Integers
    arguments: Integers
    constants: Floats
    lists: Integers
    tables: Floats
    checks: Integers
    ceilings: Floats
    roots: Integers


class Nodes(NamedTuple):
    """Parts of the map space to bound, all of them under the same choices.

    Parameters
    ----------
    cells : cell of every node in every axis group, shape (groups, nodes)
    bases : where the cells of each group's stage begin in its tables
    chosen : option of each selector, -1 where it is open
    """

    cells: Integers
    bases: Integers
    chosen: Integers


@compiled
def needed(program: Program, chosen: Integers, roots: Integers) -> Any:  # pragma: no cover
    """Instructions that some registers need under the choices made, in sequence."""
    code, arguments, lists = program.code, program.arguments, program.lists
    mark = np.zeros(len(code), dtype=np.bool_)
    for root in roots:
        mark[root] = True
    for i in range(len(code) - 1, -1, -1):
        if not mark[i]:
            continue
        operation = code[i]
        if operation <= SELECTED:
            continue
        if operation <= CHOICE_HIGH:
            first, count, selector = arguments[i, 0], arguments[i, 1], arguments[i, 2]
            if chosen[selector] >= 0:
                mark[lists[first + chosen[selector]]] = True
            else:
                for k in range(count):
                    mark[lists[first + k]] = True
            continue
        for k in range(3):
            if arguments[i, k] >= 0:
                mark[arguments[i, k]] = True
    return np.flatnonzero(mark)


@compiled
def _run(
    instructions: Integers, program: Program, nodes: Nodes, block: Integers, registers: Floats
) -> None:  # pragma: no cover
    """Execute instructions for a block of nodes; values are left in the registers."""
    code, arguments, constants, lists, tables = program[:5]
    cells, bases, chosen = nodes
    n = len(block)
    for i in instructions:
        operation = code[i]
        a, b, third = arguments[i, 0], arguments[i, 1], arguments[i, 2]
        c = constants[i]
        z = registers[i]
        if operation == LOAD:
            start = b + bases[a]
            column = cells[a]
            for j in range(n):
                z[j] = tables[start + column[block[j]]]
            continue
        if operation == CONSTANT:
            for j in range(n):
                z[j] = c
            continue
        if operation == SELECTED:
            value = c if chosen[a] < 0 else float(chosen[a])
            for j in range(n):
                z[j] = value
            continue
        if operation <= CHOICE_HIGH:
            taken = chosen[third]
            y = registers[lists[a + max(taken, 0)]]
            for j in range(n):
                z[j] = y[j]
            for k in range(1, b if taken < 0 else 0):
                y = registers[lists[a + k]]
                if operation == CHOICE_LOW:
                    for j in range(n):
                        z[j] = min(z[j], y[j])
                else:
                    for j in range(n):
                        z[j] = max(z[j], y[j])
            continue
        x = registers[a]
        if operation == ADD_SCALED:
            y = registers[b]
            for j in range(n):
                z[j] = x[j] + c * y[j]
        elif operation == ADD_CONSTANT:
            for j in range(n):
                z[j] = x[j] + c
        elif operation == SCALE:
            for j in range(n):
                z[j] = c * x[j]
        elif operation == TIMES:
            y = registers[b]
            for j in range(n):
                z[j] = x[j] * y[j]
        elif operation == TIMES_CLAMPED:
            y = registers[b]
            for j in range(n):
                z[j] = x[j] * max(y[j], 0.0)
        elif operation == CLAMP:
            for j in range(n):
                z[j] = max(x[j], 0.0)
        elif operation == CEIL_QUOTIENT:
            y = registers[b]
            for j in range(n):
                z[j] = np.ceil(x[j] / y[j])
        elif operation == LARGER:
            y = registers[b]
            for j in range(n):
                z[j] = max(x[j], y[j])
        elif operation == SMALLER:
            y = registers[b]
            for j in range(n):
                z[j] = min(x[j], y[j])
        elif operation == AT_LEAST:
            for j in range(n):
                z[j] = max(x[j], c)
        elif operation == AT_MOST:
            for j in range(n):
                z[j] = min(x[j], c)
        elif operation == ONE_AT_MOST:
            for j in range(n):
                z[j] = 1.0 if x[j] <= 1.0 else 0.0
        elif operation == ROUND:
            for j in range(n):
                quotient = np.floor(x[j] / c)
                twice = 2.0 * (x[j] - quotient * c)
                z[j] = quotient + (twice > c or (twice == c and quotient % 2.0 == 1.0))
        elif operation == SETTLED:  # 1 where the condition holds for sure, -1 where it fails for sure
            y = registers[b]
            for j in range(n):
                z[j] = 1.0 if x[j] >= 1.0 else (-1.0 if y[j] <= 0.0 else 0.0)
        else:
            then, otherwise = registers[b], registers[third]
            for j in range(n):
                if x[j] > 0.0:
                    z[j] = then[j]
                elif x[j] < 0.0:
                    z[j] = otherwise[j]
                elif operation == WHERE_LOW:
                    z[j] = min(then[j], otherwise[j])
                else:
                    z[j] = max(then[j], otherwise[j])


@compiled
def bounds(program: Program, nodes: Nodes, registers: Floats) -> Any:  # pragma: no cover
    """Nodes whose limits' lower bounds stay under their ceilings, and the roots' values there.

    Parameters
    ----------
    registers : room for the values, shape (instructions, ``BLOCK``)

    Returns the nodes kept, and the roots' values, shape (roots, nodes kept).
    """
    checks, ceilings, roots = program.checks, program.ceilings, program.roots
    count = nodes.cells.shape[1]
    kept = np.empty(count, dtype=np.int64)
    size = 0
    instructions = needed(program, nodes.chosen, checks)
    for begin in range(0, count, BLOCK):
        block = np.arange(begin, min(begin + BLOCK, count))
        if len(checks):
            _run(instructions, program, nodes, block, registers)
        for j in range(len(block)):
            legal = True
            for k in range(len(checks)):
                if not registers[checks[k], j] <= ceilings[k]:
                    legal = False
                    break
            if legal:
                kept[size] = block[j]
                size += 1
    kept = kept[:size]
    values = np.empty((len(roots), size))
    instructions = needed(program, nodes.chosen, roots)
    for begin in range(0, size, BLOCK):
        block = kept[begin : begin + BLOCK]
        _run(instructions, program, nodes, block, registers)
        for k in range(len(roots)):
            for j in range(len(block)):
                values[k, begin + j] = registers[roots[k], j]
    return kept, values


READY = threading.Event()  #: set once the machine code is there
_STEP = 0.02
_starting = threading.Lock()
_compiling: list[Background[None]] = []


def is_compiled() -> bool:
    """Whether the machine code is there, in this process or kept by an earlier one."""
    if READY.is_set():
        return True
    made: Any = bounds
    folder = made.stats.cache_path
    if folder is None:
        return False
    written = Path(__file__).stat().st_mtime
    kept = Path(str(folder)).glob("kernel.bounds-*.nbi")
    return any(file.stat().st_mtime > written for file in kept)


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
    """Call the kernel once, with nothing to do, in the types that tapes have."""
    none, floats = np.zeros(0, dtype=np.int64), np.zeros(0)
    empty = np.zeros((0, 0), dtype=np.int64)
    program = Program(none, np.zeros((0, 3), dtype=np.int64), floats, none, floats, none, floats, none)
    bounds(program, Nodes(empty, none, none), np.empty((0, BLOCK)))
    READY.set()
