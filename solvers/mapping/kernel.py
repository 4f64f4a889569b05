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

BLOCK = 512  #: nodes per pass; the registers in use stay in the processor's cache

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
    """What some registers need under the choices made, with few registers that are used again and again.

    A choice that is made is no instruction: whoever reads it reads the option.  A register is free after the
    last instruction that reads it.

    Returns instructions in their sequence, the register that each writes, its arguments, the registers of
    choices' options, and those of the roots.
    """
    code, lists = program.code, program.lists.copy()
    arguments = program.arguments.copy()
    same = np.arange(len(code))
    for i in range(len(code)):
        if CHOICE_LOW <= code[i] <= CHOICE_HIGH and chosen[arguments[i, 2]] >= 0:
            same[i] = same[lists[arguments[i, 0] + chosen[arguments[i, 2]]]]
    last = np.full(len(code), -1)
    for root in roots:
        last[same[root]] = len(code)
    for i in range(len(code) - 1, -1, -1):
        if last[i] < 0 or code[i] <= SELECTED:
            continue
        if code[i] <= CHOICE_HIGH:
            for k in range(arguments[i, 0], arguments[i, 0] + arguments[i, 1]):
                lists[k] = same[lists[k]]
                last[lists[k]] = max(last[lists[k]], i)
            continue
        for k in range(3):
            if arguments[i, k] >= 0:
                arguments[i, k] = same[arguments[i, k]]
                last[arguments[i, k]] = max(last[arguments[i, k]], i)
    instructions = np.flatnonzero(last >= 0)
    places = np.full(len(code), -1)
    free = np.arange(len(code))[::-1].copy()
    left = len(code)
    for i in instructions:
        left -= 1
        places[i] = free[left]
        if code[i] <= SELECTED:
            continue
        is_choice = code[i] <= CHOICE_HIGH
        first, end = (arguments[i, 0], arguments[i, 0] + arguments[i, 1]) if is_choice else (0, 3)
        for k in range(first, end):
            read = lists[k] if is_choice else arguments[i, k]
            if read < 0:
                continue
            if last[read] == i:
                last[read] = len(code)  # once, where an instruction reads it twice
                free[left] = places[read]
                left += 1
            if code[i] <= CHOICE_HIGH:
                lists[k] = places[read]
            else:
                arguments[i, k] = places[read]
    return instructions, places, arguments, lists, places[same[roots]]


@compiled
def _run(
    plan: tuple[Integers, Integers, Integers, Integers, Integers],
    program: Program,
    places: Integers,
    chosen: Integers,
    registers: Floats,
) -> None:  # pragma: no cover
    """Execute instructions for a block of nodes; values are left in the registers.

    Parameters
    ----------
    plan : what to execute, of :func:`needed`
    places : the nodes' cells among those of all stages, shape (groups, nodes)
    """
    instructions, written, arguments, lists, _ = plan
    code, constants, tables = program.code, program.constants, program.tables
    n = places.shape[1]
    for i in instructions:
        operation = code[i]
        a, b, third = arguments[i, 0], arguments[i, 1], arguments[i, 2]
        c = constants[i]
        z = registers[written[i]]
        if operation == LOAD:
            column, place = tables[b:], places[a]
            for j in range(n):
                z[j] = column[place[j]]
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
            y = registers[lists[a]]
            for j in range(n):
                z[j] = y[j]
            for k in range(1, b):
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
            low = operation == WHERE_LOW
            for j in range(n):
                one, other, settled = then[j], otherwise[j], x[j]
                value = min(one, other) if low else max(one, other)
                value = one if settled > 0.0 else value
                z[j] = other if settled < 0.0 else value


@compiled
def _places(nodes: Nodes, block: Integers) -> Any:  # pragma: no cover
    """Where the tables have the cells of some nodes; looked up once for all that is read there."""
    groups = len(nodes.bases)
    found = np.empty((groups, len(block)), dtype=np.int64)
    for group in range(groups):
        base, column, row = nodes.bases[group], nodes.cells[group], found[group]
        for j in range(len(block)):
            row[j] = base + column[block[j]]
    return found


@compiled
def bounds(program: Program, nodes: Nodes, registers: Floats) -> Any:  # pragma: no cover
    """Nodes whose limits' lower bounds stay under their ceilings, and the roots' values there.

    Parameters
    ----------
    registers : room for the values, shape (instructions, ``BLOCK``)

    Returns the nodes kept, and the roots' values, shape (roots, nodes kept).
    """
    ceilings = program.ceilings
    count = nodes.cells.shape[1]
    kept = np.empty(count, dtype=np.int64)
    size = 0
    plan = needed(program, nodes.chosen, program.checks)
    checks = plan[4]
    for begin in range(0, count, BLOCK):
        block = np.arange(begin, min(begin + BLOCK, count))
        if len(checks):
            _run(plan, program, _places(nodes, block), nodes.chosen, registers)
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
    plan = needed(program, nodes.chosen, program.roots)
    roots = plan[4]
    values = np.empty((len(roots), size))
    for begin in range(0, size, BLOCK):
        block = kept[begin : begin + BLOCK]
        _run(plan, program, _places(nodes, block), nodes.chosen, registers)
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
