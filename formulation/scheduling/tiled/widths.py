"""How wide elements are on a tiled machine: as a model states it, otherwise as the machine has them.

A piece of data has the width of whoever makes it, whole bytes each.  Unfinished sums have `SUM_BYTES` of
`atoms`, whatever a model says of sums, which is about levels inside a machine file.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.formulation.scheduling.tiled.units import Read, Unit
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


def result_bits(unit: Unit, engine: TileEngine) -> int:
    """Bits of one element of what a unit makes: of the result of the last layer that rides on it."""
    return tensor_bits((unit.layer, *unit.fused)[-1].operator.output, engine)


def operand_bits(read: Read, units: tuple[Unit, ...], engine: TileEngine) -> int:
    """Bits of one element of an operand, as its producer has it."""
    if read.producer is not None:
        return result_bits(units[read.producer], engine)
    return tensor_bits(read.layer.operator.tensor(read.operand), engine)


def in_bytes(bits: Int64s) -> Int64s:
    """Whole bytes that hold so many bits."""
    return -(-bits // 8)
