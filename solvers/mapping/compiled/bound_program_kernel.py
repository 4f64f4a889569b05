"""The machine code of :mod:`tilewright.solvers.mapping.compiled.bound_program`: its instructions on blocks of
nodes.

One compiled interpreter serves every problem; :mod:`tilewright.solvers.mapping.compiled.program` calls it.
Nothing is allocated.  Operations come in the same sequence and in the same float64 arithmetic as the interval
reader's, so both give equal bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.foundation.arrays import Floats, Int64s, UInt32s
from tilewright.foundation.compiled import compiled
from tilewright.solvers.mapping.compiled.opcodes import (
    ADD_CONSTANT,
    ADD_SCALED,
    AT_LEAST,
    AT_MOST,
    BLOCK,
    CEIL_QUOTIENT,
    CHOICE_HIGH,
    CHOICE_LOW,
    CLAMP,
    CONSTANT,
    LARGER,
    LOAD,
    ONE_AT_MOST,
    ROUND,
    SCALE,
    SELECTED,
    SETTLED,
    SMALLER,
    TIMES,
    TIMES_CLAMPED,
    WHERE_LOW,
    Program,
)


class Plan(NamedTuple):
    """What to execute, with few registers that are used again and again.

    Parameters
    ----------
    instructions : places of those that are needed, in their sequence; as many as `needed` tells
    written : the register that each instruction of the program writes
    arguments, lists, roots : those of the program, as registers that were written
    same, last, free : scratch memory for this analysis
    used : slots whose classes are read, as 1, shape (slots,)
    """

    instructions: Int64s
    written: Int64s
    arguments: Int64s
    lists: Int64s
    roots: Int64s
    same: Int64s
    last: Int64s
    free: Int64s
    used: Int64s


class Scratch(NamedTuple):
    """Memory in which a program runs.

    Parameters
    ----------
    plan : of what is executed
    registers : values, shape (instructions, ``BLOCK``)
    places : of cells in the tables, shape (groups and slots, ``BLOCK``)
    kept : nodes that break no limit, shape (nodes,)
    values : the roots' values there, shape (roots, nodes)
    """

    plan: Plan
    registers: Floats
    places: UInt32s  # without a sign, so that none is looked for
    kept: Int64s
    values: Floats


@compiled(ieee=True)
def needed(program: Program, chosen: Int64s, roots: Int64s, plan: Plan) -> int:  # pragma: no cover
    """Plan what some registers need under the choices made; how many instructions that are.

    A choice that is made is no instruction: whoever reads it reads the option.  A register is free after the
    last instruction that reads it.

    Parameters
    ----------
    program : all instructions
    chosen : option of each selector, -1 where it is open
    roots : registers whose values are asked for
    plan : is overwritten
    """
    code, lists, arguments = program.code, plan.lists, plan.arguments
    same, last, free, places = plan.same, plan.last, plan.free, plan.written
    count = len(code)
    for k in range(len(lists)):
        lists[k] = program.lists[k]
    for i in range(count):
        for k in range(3):
            arguments[i, k] = program.arguments[i, k]
        # A decided choice stands for its option from here on; options come earlier in the code, so theirs are
        # known.
        same[i] = i
        if CHOICE_LOW <= code[i] <= CHOICE_HIGH and chosen[arguments[i, 2]] >= 0:
            same[i] = same[lists[arguments[i, 0] + chosen[arguments[i, 2]]]]
        last[i] = -1
        places[i] = -1
        free[i] = count - 1 - i
    # Roots are read after the end, so that their registers are never given back.
    for k in range(len(roots)):
        last[same[roots[k]]] = count
    # Backwards: an instruction is needed where some needed one reads it; the first to ask is its last reader.
    for i in range(count - 1, -1, -1):
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
    size = 0
    # ``free[:left]`` is a stack of registers; few are in use at a time, and these stay in the cache.
    left = count
    for i in range(count):
        if last[i] < 0:
            continue
        plan.instructions[size] = i
        size += 1
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
            # The last reader gives the register back, though never to itself: it writes while it reads.
            if last[read] == i:
                last[read] = count  # once, where an instruction reads it twice
                free[left] = places[read]
                left += 1
            if code[i] <= CHOICE_HIGH:
                lists[k] = places[read]
            else:
                arguments[i, k] = places[read]
    for k in range(len(roots)):
        plan.roots[k] = places[same[roots[k]]]
    return size


@compiled(ieee=True)
def _run(
    plan: Plan,
    size: int,
    program: Program,
    places: UInt32s,
    stages: Int64s,
    n: int,
    chosen: Int64s,
    registers: Floats,
) -> None:  # pragma: no cover
    """Execute instructions for a block of nodes; values are left in the registers.

    Parameters
    ----------
    size : instructions of the plan
    places : the nodes' cells among those of all stages, and their classes, shape (groups and slots, at least
        ``n`` nodes)
    stages : to which the cells of each group belong
    """
    written, arguments, lists = plan.written, plan.arguments, plan.lists
    code, constants, tables = program.code, program.constants, program.tables
    for step in range(size):
        i = plan.instructions[step]
        operation = code[i]
        a, b, third = arguments[i, 0], arguments[i, 1], arguments[i, 2]
        c = constants[i]
        z = registers[written[i]]
        # One test per instruction and block, none per node: inner loops have no branches and are vectorised.
        if operation == LOAD:
            column, place = tables[b:], places[a]
            if third >= 0 and stages[a] >= program.slots[program.loads[third, 0], 1]:
                column, place = (
                    tables[program.loads[third, 1] :],
                    places[len(stages) + program.loads[third, 0]],
                )
            for j in range(n):
                z[j] = column[place[j]]
            continue
        if operation == CONSTANT:
            for j in range(n):
                z[j] = c
            continue
        if operation == SELECTED:
            # An open selector counts with the end of its domain, which stands in the constant.
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
                first, other, settled = then[j], otherwise[j], x[j]
                value = min(first, other) if low else max(first, other)
                value = first if settled > 0.0 else value
                z[j] = other if settled < 0.0 else value


@compiled(ieee=True)
def _used(plan: Plan, size: int, program: Program, stages: Int64s) -> None:  # pragma: no cover
    """Mark the slots whose classes some instructions of a plan read at these stages."""
    used = plan.used
    for slot in range(len(used)):
        used[slot] = 0
    for step in range(size):
        i = plan.instructions[step]
        if program.code[i] == LOAD and plan.arguments[i, 2] >= 0:
            slot = program.loads[plan.arguments[i, 2], 0]
            if stages[program.slots[slot, 0]] >= program.slots[slot, 1]:
                used[slot] = 1


@compiled(ieee=True)
def _places(
    program: Program, used: Int64s, cells: Int64s, bases: Int64s, block: Int64s, n: int, positions: UInt32s
) -> None:  # pragma: no cover
    """Where the tables have the cells of some nodes; looked up once for all that is read there."""
    groups = len(bases)
    for group in range(groups):
        base, column, row = bases[group], cells[group], positions[group]
        for j in range(n):
            row[j] = base + column[block[j]]
    for slot in range(len(used)):
        if used[slot] == 0:
            continue
        group, start = program.slots[slot, 0], program.slots[slot, 2]
        first, place, row = (
            program.first_rows[program.row_starts[group] :],
            positions[group],
            positions[groups + slot],
        )
        for j in range(n):
            row[j] = first[place[j]]
        if start >= 0:
            classes = program.classes[start:]
            for j in range(n):
                row[j] = classes[row[j]]


@compiled(ieee=True)
def bounds(
    program: Program,
    cells: Int64s,
    count: int,
    bases: Int64s,
    stages: Int64s,
    chosen: Int64s,
    scratch: Scratch,
) -> int:  # pragma: no cover
    """Find nodes whose limits' lower bounds stay under their ceilings, and the roots' values there.

    Parameters
    ----------
    cells : cell of every node in every axis group, shape (groups, at least as many as nodes)
    count : of nodes
    bases : where the cells of each group's stage begin in its tables
    stages : these stages, -1 for the whole group
    chosen : option of each selector, -1 where it is open
    scratch : has the nodes kept, as many as is returned, and first of all values the roots' there; with room
        for all nodes
    """
    checks, roots, ceilings = program.checks, program.roots, program.ceilings
    plan, registers, places = scratch.plan, scratch.registers, scratch.places
    kept, values = scratch.kept, scratch.values
    for j in range(count):
        kept[j] = j
    size: int = count
    if len(checks):
        # Limits first: what breaks one need not be valued.
        instructions = needed(program, chosen, checks, plan)
        _used(plan, instructions, program, stages)
        size = 0
        for begin in range(0, count, BLOCK):
            n = min(BLOCK, count - begin)
            _places(
                program, plan.used, cells, bases, kept[begin:], n, places
            )  # what is kept is written behind what is read
            _run(plan, instructions, program, places, stages, n, chosen, registers)
            for j in range(n):
                legal = True
                for k in range(len(checks)):
                    # Written so that a NaN breaks the limit.
                    if not registers[plan.roots[k], j] <= ceilings[k]:
                        legal = False
                        break
                if legal:
                    kept[size] = begin + j
                    size += 1
    if size == 0:
        return 0
    # Only what is legal is valued, gathered into full blocks again.
    instructions = needed(program, chosen, roots, plan)
    _used(plan, instructions, program, stages)
    for begin in range(0, size, BLOCK):
        n = min(BLOCK, size - begin)
        _places(program, plan.used, cells, bases, kept[begin:], n, places)
        _run(plan, instructions, program, places, stages, n, chosen, registers)
        for k in range(len(roots)):
            for j in range(n):
                values[k, begin + j] = registers[plan.roots[k], j]
    return size
