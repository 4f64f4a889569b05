"""Whether a layer fits at all, alone or in turns, whatever it is fused with: counted in single elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product

from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.occupancy import bits_of_tile, room_bits
from tilewright.hardware.mapping.engine import Engine
from tilewright.workloads.mapping.operator import Operator, Role

Stand = tuple[Role, int, str]
"""How a tensor comes to a layer: its role, the index of its home, and whose result it is there, if one's."""


def never_fits(group: FusedGroup, engine: Engine, homes: Callable[[str], Iterable[int]]) -> str:
    """The first layer of which not even one element of each tensor fits, wherever results have their homes.

    In every turn a level that must store a tensor holds an element of it, unless the tensor comes from a home
    further inside, which holds one too.  Tensors from outside the group pass no such level, resident or not.

    Parameters
    ----------
    group, engine : the layers, and the machine with their widths
    homes : of a layer that is read inside, the levels that may be its home

    Returns
    -------
    str
        The layer's name; empty where no layer is known to fit nowhere.
    """
    for name, operator in group.layers:
        options: list[list[Stand]] = []
        for tensor in operator.tensors:
            reading = group.reading(name, tensor.name)
            made = name if tensor.is_output and group.read_by(name) else reading and reading.producer
            options.append([(tensor.role, home, made or "") for home in (homes(made) if made else (0,))])
        if not any(_fits(engine, stands) for stands in product(*options)):
            return name
    return ""


def fits_alone(operator: Operator, engine: Engine) -> bool:
    """Whether every level has room for one element of each tensor that it must hold: else nothing fits."""
    return _fits(engine, [(tensor.role, 0, "") for tensor in operator.tensors])


def _fits(engine: Engine, stands: Sequence[Stand]) -> bool:
    """Whether every level has room for one element of each tensor that it must hold."""
    # Two operands that read one result share its home.
    at_home = {(made, home): role for role, home, made in stands if made}
    for index, level in enumerate(engine.levels[1:], 1):
        roles = [role for (_, home), role in at_home.items() if home == index]
        roles += [
            role
            for role, home, _ in stands
            if home < index and role in level.keeps and role not in level.may_bypass
        ]
        held: Counter[Role | None] = Counter()
        for role in roles:
            part = role if role in level.partitions else None
            held[part] += bits_of_tile(engine, level, role, 1)
        for part, bits in held.items():
            room = room_bits(engine, level, part)
            if room is not None and bits > room:
                return False
    return True
