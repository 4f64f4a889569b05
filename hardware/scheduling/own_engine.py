"""A machine file of one's own as part of a system: what stays of it, and what the system takes the place of.

As a sub-accelerator an engine keeps all levels but the outermost one.  In the place of that stand the DRAM
and the global memory that the system's engines share, whose rates are converted to the engine's clock.  As a
tile it keeps the level that is the tile's buffer and all levels inside it; the machine's network and DRAM
stand for the others.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from tilewright.foundation.description import names_a_file
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.hardware.mapping.load import load_engine
from tilewright.hardware.mapping.styles import DataflowStyle, Fixed
from tilewright.workloads.mapping.operator import Operator, Role

OWN = "own"
"""How tiles that are machine files are called among the dataflows of tiles."""

MEMORY_ENERGY, DRAM_ENERGY = Fraction(6), Fraction(200)
"""pJ per byte of global memory and DRAM unless a system file says otherwise, as of the dataflow styles."""

MODEL = "hierarchy"
"""The cost model under which a machine is part of a system: others count passes over a DRAM of their own."""

_WHOLE = "QRS"  # as of the styles: a tile in the global memory has whole output rows and filters


@dataclass(frozen=True)
class OwnEngine:
    """An engine from a machine file as a sub-accelerator.

    Parameters
    ----------
    engine : as its file describes it
    clock_mhz : of the system, to which its cycles are converted
    memory_energy, dram_energy : pJ per byte of the global memory and of DRAM
    """

    engine: Engine
    clock_mhz: Fraction
    memory_energy: Fraction = MEMORY_ENERGY
    dram_energy: Fraction = DRAM_ENERGY

    def __hash__(self) -> int:
        return hash((self.name, self.engine.instances, self.clock_mhz))

    @property
    def name(self) -> str:
        """The preset's name or the file's stem."""
        return self.engine.name

    def array(self, pes: int) -> tuple[int, int]:
        """All PEs along one axis: the file has the array, which no system divides."""
        return pes, 1

    def fixes(self, operator: Operator) -> tuple[Fixed, ...]:
        """What is no choice: DRAM moves whole output rows and filters, as under the dataflow styles."""
        dram = self.levels_outside[0]
        return tuple(Fixed("no loop", d.name, dram) for d in operator.dimensions if d.like in _WHOLE)

    def engine_of(self, array: tuple[int, int], bandwidth: Fraction, memory: int) -> Engine:
        """The engine in its system, see `engine`; its array is the file's."""
        return self.inside(bandwidth, memory)

    def inside(self, bandwidth: Fraction, memory: int) -> Engine:
        """The engine with the system's DRAM and memory in the place of its outermost level.

        Parameters
        ----------
        bandwidth : bytes per cycle of the system's clock, between global memory and engine
        memory : bytes of the global memory that a layer's tiles may take
        """
        own = self.engine
        outer, size = own.levels[0], own.element_bytes
        rate = bandwidth * self.clock_mhz / own.clock_mhz / size
        dram, shared = self.levels_outside
        by_role = {role: Fraction(bits, 8) for role, bits in outer.widths.items()}
        levels = (
            MemoryLevel(
                dram,
                None,
                *(self.dram_energy * size,) * 2,
                read_energies={role: self.dram_energy * width for role, width in by_role.items()},
                write_energies={role: self.dram_energy * width for role, width in by_role.items()},
                widths=outer.widths,
            ),
            MemoryLevel(
                shared,
                int(memory / size),
                *(self.memory_energy * size,) * 2,
                read_bandwidth=rate,
                write_bandwidth=rate,
                fanout=outer.fanout,
                read_energies={role: self.memory_energy * width for role, width in by_role.items()},
                write_energies={role: self.memory_energy * width for role, width in by_role.items()},
                widths=outer.widths,
                counted_bits=own.element_bits if outer.widths else None,
            ),
        )
        return replace(own, levels=(*levels, *own.levels[1:]), leakage=_leakage_inside(own, 1))

    @property
    def levels_outside(self) -> tuple[str, str]:
        """Names of DRAM and global memory, which no level inside may have, too."""
        taken = {level.name for level in self.engine.levels[1:]}
        dram, shared = (
            next(name for name in names if name not in taken)
            for names in (("DRAM", *_numbered("DRAM")), ("GLB", *_numbered("GLB")))
        )
        return dram, shared

    def system_cycles(self, cycles: int) -> int:
        """Cycles of the system's clock, of cycles of the engine's own; the last one counts whole."""
        return -(-cycles * self.clock_mhz // self.engine.clock_mhz)

    def width(self, role: Role) -> int:
        """Bits of an element of a role in the global memory."""
        return self.engine.width(self.engine.levels[0], role)


Flow = DataflowStyle | OwnEngine
"""What a sub-accelerator runs under: a style of any size, or a machine file."""


def own_engine(name_or_path: str, folder: Path | None, model: str | None = None) -> Engine:
    """The engine of a preset or of a machine file, which is sought from a folder on.

    Parameters
    ----------
    model : the cost model that it is taken under; by default its own

    Raises
    ------
    InputError : as `load_engine`
    ValueError : for a machine that cannot be part of a system
    """
    path: str | os.PathLike[str] = name_or_path
    if folder is not None and names_a_file(name_or_path):
        path = folder / name_or_path
    engine = load_engine(path)
    if model is not None:
        engine = replace(engine, cost_model=model)
    expect_engine_of_system(engine)
    return engine


def expect_engine_of_system(engine: Engine) -> None:
    """Raise ``ValueError`` for a machine that cannot be part of a system."""
    if not engine.clock_mhz:
        raise ValueError(f"expected a clock above 0, {engine.name} has none")
    if engine.cost_model != MODEL:
        raise ValueError(
            f"expected the cost model {MODEL}, {engine.name} has {engine.cost_model}, which counts a DRAM of "
            f"its own; cost_model: {MODEL} takes the machine without it"
        )


@dataclass(frozen=True)
class OwnTile:
    """An engine from a machine file as the tile of a tiled machine.

    Parameters
    ----------
    engine : as its file describes it
    level : the level that is the tile's buffer
    clock_mhz : of the grid, to which its cycles are converted; ``None`` for the engine's own
    """

    engine: Engine
    level: str
    clock_mhz: Fraction | None = None

    def __hash__(self) -> int:
        return hash((self.engine.name, self.level, self.engine.instances))

    @property
    def cycle(self) -> Fraction:
        """Cycles of the grid's clock that one of the engine's takes."""
        return Fraction(1) if self.clock_mhz is None else self.clock_mhz / self.engine.clock_mhz

    def grid_cycles(self, cycles: int) -> int:
        """Cycles of the grid's clock, of cycles of the engine's own; the last one counts whole."""
        return math.ceil(cycles * self.cycle)

    @property
    def static_power(self) -> Fraction:
        """pJ per cycle of the grid's clock of the buffer and everything inside, busy or not."""
        start = self._start
        return sum(_leakage_inside(self.engine, start).values(), Fraction(0)) / self.cycle

    @property
    def _start(self) -> int:
        """Where the levels of the tile begin."""
        return next(i for i, level in enumerate(self.engine.levels) if level.name == self.level)

    @property
    def inside(self) -> Engine:
        """The engine from its buffer inwards.

        Whether a task fits the buffer, and static power, are the plan's affair.
        """
        levels, start = self.engine.levels, self._start
        buffer = replace(
            levels[start], capacity=None, double_buffered=False, may_bypass=frozenset(), counted_bits=None
        )
        return replace(self.engine, levels=(buffer, *levels[start + 1 :]), leakage={})

    @property
    def buffer_bytes(self) -> int:
        """Of the buffer, both halves where the level is double-buffered."""
        level = self.engine.level(self.level)
        bits = self.engine.usable_bits(level)
        assert bits is not None  # see `own_tile`
        return bits * (2 if level.double_buffered else 1) // 8


def own_tile(engine: Engine, level: str, clock_mhz: Fraction | None = None) -> OwnTile:
    """A tile whose buffer is a level of an engine; raises ``ValueError`` where it cannot be that.

    Parameters
    ----------
    clock_mhz : of the grid, where that is another one
    """
    expect_engine_of_system(engine)
    if clock_mhz is not None and not clock_mhz:
        raise ValueError("expected a clock of the grid above 0")
    names = [known.name for known in engine.levels[1:-1]]
    if level not in names:
        raise ValueError(f"expected a level of {engine.name} inside the outermost one: {', '.join(names)}")
    for reason in _unfit(engine, engine.level(level)):
        raise ValueError(f"{level} of {engine.name} {reason}")
    if engine.element_bits % 8:
        raise ValueError(f"expected elements of whole bytes, {engine.name} has {engine.element_bits} bits")
    return OwnTile(engine, level, None if clock_mhz == engine.clock_mhz else clock_mhz)


def _unfit(engine: Engine, level: MemoryLevel) -> Iterator[str]:
    outside = engine.levels[: engine.levels.index(level)]
    if any(outer.fanout is not None and outer.fanout.instances > 1 for outer in outside):
        yield "stands several times in an engine, expected a level of one instance"
    if level.keeps != frozenset(Role):
        yield "does not store every tensor, as a tile's buffer does"
    if level.capacity is None or level.partitions or level.bank is not None:
        yield "is divided among tensors, expected one memory for all"
    if level.widths or level.read_energies or level.write_energies:
        yield "has widths or energies by role, expected one for all"


def _leakage_inside(engine: Engine, start: int) -> dict[str, Fraction]:
    """pJ per cycle by component, without the levels outside one of them."""
    outside = {level.name for level in engine.levels[:start]}
    return {name: power for name, power in engine.leakage.items() if name not in outside}


def _numbered(name: str) -> Iterator[str]:
    return (f"{name}-{number}" for number in range(2, 12))
