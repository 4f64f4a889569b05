"""The instructions of a program of bounds: what tapes are made of, and what the machine code executes."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.foundation.arrays import Floats, Int32s, Int64s

CONSTANT, LOAD, SELECTED, CHOICE_LOW, CHOICE_HIGH = 0, 1, 2, 3, 4  #: not of two registers
ADD_SCALED, ADD_CONSTANT, SCALE, TIMES, TIMES_CLAMPED, CLAMP = 5, 6, 7, 8, 9, 10
CEIL_QUOTIENT, LARGER, SMALLER, AT_LEAST, AT_MOST, ONE_AT_MOST, ROUND = 11, 12, 13, 14, 15, 16, 17
WHERE_LOW, WHERE_HIGH, SETTLED = 18, 19, 20

BLOCK = 512  #: nodes per pass; the registers in use stay in the processor's cache


class Program(NamedTuple):
    """Instructions, each with a register for its value.

    Parameters
    ----------
    code : operation of each instruction, shape (instructions,)
    arguments : registers and positions, shape (instructions, 3)
    constants : one of each instruction
    lists : registers of choices' options
    tables : the values that ``LOAD`` reads, those of all axis groups one after the other
    loads : what an instruction ``LOAD`` reads where a cell has one value: a slot, and where its values begin,
        shape (loads, 2)
    slots : the ways in which rows are classed: axis group, the stage from which on all rows of a cell are of
        one class, and where the classes begin in ``classes`` (-1 where a row's number is its class), shape
        (slots, 3)
    classes : the class of each row, for one slot after the other
    first_rows, row_starts : the first row of each cell, and where each axis group's begin there
    checks, ceilings : registers of the limits and what they may reach
    roots : registers whose values are asked for
    """

    code: Int64s
    arguments: Int64s
    constants: Floats
    lists: Int64s
    tables: Floats
    loads: Int64s
    slots: Int64s
    classes: Int32s
    first_rows: Int32s
    row_starts: Int64s
    checks: Int64s
    ceilings: Floats
    roots: Int64s
