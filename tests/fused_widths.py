"""Groups whose layers state widths, and by hand the machine that has these widths."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Role

Bits = dict[Role, int]


def random_bits(rng: Random) -> tuple[Bits, Bits]:
    """Widths in the outermost level, and further inside, where sums are often as wide as what is read."""
    outside = {role: rng.choice([4, 8, 16, 32]) for role in Role}
    read = outside[Role.INPUT]
    outside[Role.WEIGHT] = rng.choice([read, read, read, 8])
    return outside, outside | {Role.OUTPUT: rng.choice([read, read, read, 32])}


def stated(group: FusedGroup, outside: Bits, inside: Bits) -> FusedGroup:
    """The group whose tensors say so."""
    layers = []
    for name, operator in group.layers:
        tensors = []
        for tensor in operator.tensors:
            sums = inside[tensor.role] if tensor.is_output else None
            tensors.append(replace(tensor, bits=outside[tensor.role], sum_bits=sums))
        layers.append((name, replace(operator, tensors=tuple(tensors))))
    return replace(group, layers=tuple(layers))


def widened(engine: Engine, outside: Bits, inside: Bits) -> Engine:
    """The machine with these widths: as many bits of room, energies by the bits that move."""
    levels: list[MemoryLevel] = []
    for index, level in enumerate(engine.levels):
        bits = inside if index else outside
        shares = {role: Fraction(bits[role], engine.element_bits) for role in Role}
        levels.append(
            replace(
                level,
                widths=bits,
                counted_bits=engine.element_bits,
                partitions={role: int(size / shares[role]) for role, size in level.partitions.items()},
                read_energies={role: share * level.read_energy for role, share in shares.items()},
                write_energies={role: share * level.write_energy for role, share in shares.items()},
            )
        )
    return replace(engine, levels=tuple(levels))
