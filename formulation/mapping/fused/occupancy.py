"""What a level holds in a leaf's turns: tiles of shared stores, and the leaf's own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.workloads.mapping.operator import Role


@dataclass(frozen=True, slots=True)
class HeldTile:
    """A tile in a level.

    Parameters
    ----------
    name : of the tensor, its layer before it
    level : index of the memory level
    role : by which the level tells its width and its partition
    elements : at most
    """

    name: str
    level: int
    role: Role
    elements: int


@dataclass(frozen=True, slots=True)
class Occupied:
    """What one level, or one of its partitions, holds in a layer's turns.

    Parameters
    ----------
    layer, level : whose turns, and which level
    part : the partition's role; ``None`` for what the others share
    bits, most : held and available, whole banks counted; ``most`` is ``None`` without a limit
    tiles : what is held: names and elements, shared stores first
    """

    layer: str
    level: str
    part: Role | None
    bits: int
    most: int | None
    tiles: tuple[tuple[str, int], ...]

    @property
    def violation(self) -> str:
        """The limit that is exceeded, in words; empty where all fits."""
        if self.most is None or self.bits <= self.most:
            return ""
        part = "" if self.part is None else f" for {self.part}"
        return f"{self.layer}: capacity of {self.level}{part}: {self.bits} bits over {self.most}"


def occupied(
    engine: Engine, nest: Nest, layer: str, held: Sequence[HeldTile], outside: Collection[str]
) -> list[Occupied]:
    """Every level's rooms in one turn.

    Parameters
    ----------
    engine, nest : the machine, and the leaf's nest without open decisions
    layer : whose turn it is
    held : tiles of shared stores
    outside : tensors of the layer whose first store in the nest is a shared one, which is in ``held``
    """
    rooms: list[Occupied] = []
    for index, level in enumerate(engine.levels):
        if not index:
            continue
        tiles = [tile for tile in held if tile.level == index]
        for tensor in nest.operator.tensors:
            positions = nest.residency[tensor.name].positions
            if index in positions and not (tensor.name in outside and index == min(positions)):
                elements = evaluate(nest.kept(tensor, index), {})
                tiles.append(HeldTile(f"{layer}.{tensor.name}", index, tensor.role, elements))
        for part in (None, *sorted(level.partitions)):
            own = [tile for tile in tiles if (tile.role if tile.role in level.partitions else None) is part]
            bits = sum(bits_of_tile(engine, level, tile.role, tile.elements) for tile in own)
            names = tuple((tile.name, tile.elements) for tile in own)
            if own or part is None:
                rooms.append(Occupied(layer, level.name, part, bits, room_bits(engine, level, part), names))
    return rooms


def bits_of_tile(engine: Engine, level: MemoryLevel, role: Role, elements: int) -> int:
    """Bits that a tile takes in a level, rounded up to whole banks where it has banks.

    Parameters
    ----------
    engine, level : the machine, and one of its levels
    role : of the tile's tensor
    elements : of the tile
    """
    bits = elements * engine.width(level, role)
    if level.bank is None:
        return bits
    bank = level.bank * engine.capacity_element_bits(level)
    return -(-bits // bank) * bank


def room_bits(engine: Engine, level: MemoryLevel, part: Role | None) -> int | None:
    """Bits that tiles may take in a level or in one of its partitions; ``None`` for no limit."""
    if part is not None:
        return level.partitions[part] * engine.width(level, part)
    return None if level.capacity is None else level.capacity * engine.capacity_element_bits(level)
