"""How wide elements are on a tiled machine: as a model states it, otherwise as the machine has them.

A piece of data has the width that its maker states; where that is none, the width that all who read it state
(what quantised layers read is stored quantised); otherwise the machine's.  Pieces are whole bytes.
Unfinished sums have `SUM_BYTES` of `atoms`, whatever a model says of sums, which is about levels inside a
machine file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tilewright.formulation.scheduling.tiled.units import Unit
from tilewright.foundation.arrays import Int64s
from tilewright.hardware.scheduling.tiled.machine import TileEngine
from tilewright.workloads.mapping.operator import Operator, Role, Tensor


class Bits(NamedTuple):
    """Bits of a task's elements as a model states them; 0 for the machine's."""

    inputs: int = 0
    weights: int = 0
    result: int = 0
    sums: int = 0


def stated_bits(operator: Operator) -> Bits | None:
    """What a layer states; ``None`` where that is nothing.

    The second of two operands takes the place of weights where a layer has none.
    """
    if not operator.states_widths:
        return None
    first = next((t for t in operator.inputs if t.role is Role.INPUT), operator.inputs[0])
    weights = next((t for t in operator.inputs if t.role is Role.WEIGHT), operator.inputs[-1])
    result = operator.output
    return Bits(first.bits or 0, weights.bits or 0, result.bits or 0, result.sum_bits or 0)


def tensor_bits(tensor: Tensor, engine: TileEngine) -> int:
    """Bits of one element of a tensor."""
    return tensor.bits or 8 * engine.element_bytes


def result_bits(units: Sequence[Unit], engine: TileEngine) -> tuple[int, ...]:
    """Per unit, bits of one element of its result, which is that of the last layer that rides on it."""
    readers: list[set[int | None]] = [set() for _ in units]
    for unit in units:
        for read in unit.reads:
            if read.producer is not None:
                readers[read.producer].add(read.layer.operator.tensor(read.operand).bits)
    made = []
    for unit, read_as in zip(units, readers, strict=True):
        own = (unit.layer, *unit.fused)[-1].operator.output.bits
        if own is None and len(read_as) == 1 and not unit.is_output:
            (own,) = read_as
        made.append(own or 8 * engine.element_bytes)
    return tuple(made)


def in_bytes(bits: Int64s) -> Int64s:
    """Whole bytes that hold so many bits."""
    return -(-bits // 8)
