"""The drawing of a machine: a box per memory level, and the arrays between them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tilewright.foundation.units import exact
from tilewright.hardware.mapping.engine import Engine, Fanout, MemoryLevel
from tilewright.report.html.page import Level, Machine
from tilewright.report.text.quantities import bytes_text, count_text, si_text
from tilewright.workloads.mapping.operator import Role


def machine_drawing(engine: Engine) -> Machine:
    """Levels from the outside in, and the PEs at the end."""
    elements = f"{engine.element_bits}-bit elements"
    note = f"{engine.description or engine.name}; {exact(engine.clock_mhz)} MHz, {elements}."
    boxes = [_box(level, engine) for level in engine.levels]
    pes = Level("PE", (f"{count_text(engine.instances)} in all", f"{exact(engine.mac_energy)} pJ per MAC"))
    return Machine("Machine", (*boxes, pes), note)


def _box(level: MemoryLevel, engine: Engine) -> Level:
    bits = engine.usable_bits(level)
    size = "unbounded" if bits is None else bytes_text(bits, 1)
    facts = [size + (", double-buffered" if level.double_buffered else ""), *_energies(level)]
    if level.partitions:
        parts = (
            f"{role} {bytes_text(size, engine.width(level, role))}" for role, size in level.partitions.items()
        )
        facts.append(", ".join(parts))
    if level.widths:
        own = (f"{role} {engine.width(level, role)}" for role in Role if role in level.keeps)
        facts.append(f"bits per element: {', '.join(own)}")
    if level.keeps != frozenset(Role):
        facts.append("keeps " + ", ".join(role for role in Role if role in level.keeps))
    return Level(level.name, facts, _array(level.fanout), _network(level, engine))


def _energies(level: MemoryLevel) -> list[str]:
    """pJ per element, of all roles or role by role."""
    own = level.read_energies.keys() | level.write_energies.keys()
    roles: list[Role | None] = [role for role in Role if role in own]
    if own != level.keeps:
        roles.insert(0, None)
    facts = []
    for role in roles:
        read = exact(level.read_energy if role is None else level.read_energy_of(role))
        write = exact(level.write_energy if role is None else level.write_energy_of(role))
        shown = read if read == write else f"{read} / {write}"
        unit = "pJ per element" if read == write else "pJ per element read / written"
        facts.append(f"{shown} {unit}" if role is None else f"{role} {shown} {unit}")
    return facts


def _array(fan: Fanout | None) -> Sequence[tuple[str, int]]:
    return () if fan is None else [(axis.name, axis.size) for axis in fan.axes]


def _network(level: MemoryLevel, engine: Engine) -> list[str]:
    facts = []
    rates = [rate for rate in (level.read_bandwidth, level.write_bandwidth) if rate is not None]
    if engine.dma is not None and level is engine.levels[0]:
        seconds = engine.dma.per_byte * engine.dma.clock_ratio / (engine.clock_mhz * 1_000_000)
        facts.append(f"DMA, {si_text(1 / seconds if seconds else Fraction(0), 'B/s')}")
    elif rates:
        shown = " / ".join(dict.fromkeys(f"{float(rate * engine.element_bytes):.4g}" for rate in rates))
        facts.append(f"{shown} B per cycle" + (" read / written" if " / " in shown else ""))
    elif level.shared_bandwidth is not None:
        rate = level.shared_bandwidth * engine.element_bytes
        facts.append(f"{float(rate):.4g} B per cycle, one port")
    fan = level.fanout
    if fan is not None:
        facts.append(" × ".join(f"{axis.size} {axis.name}" for axis in fan.axes))
        for axis in fan.axes:
            if axis.carries is not None:
                facts.append(f"{axis.name} carries {' '.join(sorted(axis.carries))}")
        able = [name for name, has in (("multicast", fan.multicast), ("reduction", fan.reduction)) if has]
        facts.append(" and ".join(able) or "no multicast, no reduction")
        if fan.energy:
            facts.append(f"{exact(fan.energy)} pJ per element")
        if fan.sharing:
            facts.append("buffers share")
    return facts
