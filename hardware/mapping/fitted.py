"""A machine for one layer whose tensors say how wide their elements are.

A machine file gives widths by role; a model may say that its weights have 4 bits, its cache 8.  The machine
is then taken with those widths: its buffers hold the same number of bits, its ports move as many bits per
cycle, and what an access costs follows the bits that it moves.  Energies of the PEs and of networks stay as
they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Operator, Role


def fitted(engine: Engine, operator: Operator) -> Engine:
    """The machine with the widths that the tensors of a layer state.

    In the outermost level a result has its own width; further inside, that of its sums.

    Returns
    -------
    The engine itself where no tensor states a width

    Raises
    ------
    InputError : where two tensors of a role differ, which machines do not tell apart
    """
    outer = _widths(operator, inside=False)
    inner = _widths(operator, inside=True)
    if not outer and not inner:
        return engine
    return _fitted(engine, tuple(outer.items()), tuple(inner.items()))


def _widths(operator: Operator, *, inside: bool) -> dict[Role, int]:
    """Bits by role, in the outermost level or further inside."""
    stated: dict[Role, int | None] = {}
    for tensor in operator.tensors:
        bits = (tensor.sum_bits or tensor.bits) if inside else tensor.bits
        if stated.setdefault(tensor.role, bits) != bits:
            message = f"has elements of another width than other {tensor.role}, expected one for each role"
            raise InputError(operator.kind, tensor.name, message)
    return {role: bits for role, bits in stated.items() if bits is not None}


_Widths = tuple[tuple[Role, int], ...]


def _fitted(engine: Engine, outer: _Widths, inner: _Widths) -> Engine:
    levels = (
        _level(engine, level, dict(inner if index else outer)) for index, level in enumerate(engine.levels)
    )
    return replace(engine, levels=tuple(levels))


def _level(engine: Engine, level: MemoryLevel, bits: Mapping[Role, int]) -> MemoryLevel:
    """A level of the same size and speed in bits, for elements of other widths."""
    changed = {role: width for role, width in bits.items() if width != engine.width(level, role)}
    if not changed:
        return level
    ratios = {role: Fraction(width, engine.width(level, role)) for role, width in changed.items()}
    return replace(
        level,
        widths={**level.widths, **changed},
        read_energies={
            **level.read_energies,
            **{role: level.read_energy_of(role) * ratio for role, ratio in ratios.items()},
        },
        write_energies={
            **level.write_energies,
            **{role: level.write_energy_of(role) * ratio for role, ratio in ratios.items()},
        },
        partitions={role: int(size / ratios.get(role, 1)) for role, size in level.partitions.items()},
        counted_bits=engine.capacity_element_bits(level),
    )
