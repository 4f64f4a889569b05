"""An engine as a plain-text tree, as ``tilewright show`` prints it."""

from __future__ import annotations

import textwrap
from fractions import Fraction

from tilewright.foundation.units import exact
from tilewright.hardware.mapping.engine import Dma, Engine, Fanout, MemoryLevel
from tilewright.hardware.mapping.schema import DIMENSIONS
from tilewright.hardware.mapping.timing import Timing
from tilewright.workloads.mapping.operator import Role

WIDTH = 80
"""Columns that the tree fits in."""


def engine_tree(engine: Engine) -> str:
    """Levels, sizes, energies, bandwidths and arrays, outermost first, in lines of 80 columns."""
    lines = textwrap.wrap(engine.name, WIDTH)
    lines += _wrapped(engine.description, "  ")
    lines += _wrapped(", ".join(_figures(engine)), "  ")
    if engine.dma is not None:
        lines += _wrapped(_dma_text(engine.dma, engine.clock_mhz), "  ")
    lines.append("")
    indent = ""
    for index, level in enumerate(engine.levels):
        is_last = index == len(engine.levels) - 1
        head = "" if index == 0 else "└─ "
        lines += _wrapped(f"{level.name}: {_capacity(level, engine)}", indent + head, indent)
        indent += " " * len(head)
        rail = f"{indent}   " if is_last else f"{indent}│  "
        for entry in _level_entries(level, engine):
            lines += _wrapped(entry, rail)
        if level.fanout is not None:
            for entry in _fanout_entries(level.fanout):
                lines += _wrapped(entry, rail)
    return "\n".join(lines) + "\n"


def _figures(engine: Engine) -> list[str]:
    return [
        f"{engine.instances} {'instance' if engine.instances == 1 else 'instances'}",
        f"{engine.element_bits}-bit elements",
        f"{exact(engine.mac_energy)} pJ per MAC",
        f"{exact(engine.clock_mhz)} MHz",
        *_static(engine),
        f"cost model {engine.cost_model}",
    ]


def _static(engine: Engine) -> list[str]:
    """Static power and area of all components, where stated."""
    figures = []
    for what, unit, total, parts in (
        ("static power", "W", engine.static_power, engine.leakage),
        ("area", "mm2", sum(engine.area.values(), Fraction(0)), engine.area),
    ):
        if parts:
            scale = total / sum(parts.values())
            each = ", ".join(f"{name} {float(amount * scale):.4g}" for name, amount in parts.items())
            figures.append(f"{what} {float(total):.4g} {unit} ({each})")
    return figures


def _dma_text(dma: Dma, engine_clock_mhz: Fraction) -> str:
    return (
        f"one DMA invocation: {exact(dma.startup)} cycles and {exact(dma.per_byte)} per byte "
        f"at {exact(engine_clock_mhz / dma.clock_ratio)} MHz"
    )


def _capacity(level: MemoryLevel, engine: Engine) -> str:
    bits = engine.usable_bits(level)
    if bits is None:
        return "unbounded"
    elements = "element" if level.capacity == 1 else "elements"
    return f"{level.capacity} {elements} ({_bytes(bits)}) usable"


def _bytes(bits: int) -> str:
    size = Fraction(bits, 8)
    for unit in ("B", "kB", "MB"):
        if size < 1024 or unit == "MB":
            break
        size /= 1024
    return f"{float(size):.6g} {unit}"


def _level_entries(level: MemoryLevel, engine: Engine) -> list[str]:
    entries = _energies(level)
    rates = [
        ("read", level.read_bandwidth),
        ("write", level.write_bandwidth),
        ("read and write together", level.shared_bandwidth),
    ]
    known = [f"{what} {exact(rate)}" for what, rate in rates if rate is not None]
    if known:
        kind = f"elements of {engine.element_bits} bits" if level.widths else "elements"
        entries.append(", ".join(known) + f" {kind} per cycle")
    if level.widths:
        own = [f"{role} {engine.width(level, role)}" for role in Role if role in level.keeps]
        entries.append("bits per element: " + ", ".join(own))
    if level.partitions:
        parts = [f"{role} {level.partitions[role]}" for role in Role if role in level.partitions]
        entries.append("partitions: " + ", ".join(parts))
    if level.bank is not None:
        entries.append(
            f"banks of {level.bank} elements ({_bytes(level.bank * engine.capacity_element_bits(level))})"
        )
    if level.keeps != frozenset(Role):
        entries.append("keeps " + ", ".join(role for role in Role if role in level.keeps))
    if level.may_bypass:
        entries.append("may be bypassed by " + ", ".join(role for role in Role if role in level.may_bypass))
    if level.double_buffered:
        entries.append("filled while in use")
    if level.sliding_window:
        entries.append("window overlap stays in place")
    return [*entries, *_timing(level.timing)]


def _timing(timing: Timing) -> list[str]:
    entries = []
    if timing.overlap is not None:
        entries.append("what it hands inwards " + ("hides" if timing.overlap else "adds to all other time"))
    amounts = (
        ("iteration of its loops", timing.tile),
        ("tile moved", timing.transfer),
        ("row moved", timing.row),
        ("instruction", timing.instruction),
    )
    known = [f"{exact(cycles)} per {what}" for what, cycles in amounts if cycles]
    if known:
        entries.append("set-up cycles: " + ", ".join(known))
    if timing.row_bits is not None:
        entries.append(f"rows of at most {_bytes(timing.row_bits)}")
    if timing.refetch:
        entries.append("its tiles are fetched anew at every iteration outside")
    if timing.drained:
        entries.append("results that leave are read there once more")
    return entries


def _energies(level: MemoryLevel) -> list[str]:
    """Of roles with energies of their own, and of all others."""
    own = [role for role in Role if role in level.read_energies or role in level.write_energies]
    entries = [
        f"{role}: read {exact(level.read_energy_of(role))} pJ, write {exact(level.write_energy_of(role))} pJ "
        "per element"
        for role in own
    ]
    if set(own) == level.keeps:
        return entries
    general = f"read {exact(level.read_energy)} pJ, write {exact(level.write_energy)} pJ per element"
    return [general, *entries]


def _fanout_entries(fanout: Fanout) -> list[str]:
    sizes = " x ".join(str(axis.size) for axis in fanout.axes)
    abilities = [
        what for what, has in (("multicast", fanout.multicast), ("reduction", fanout.reduction)) if has
    ]
    traits = [f"{exact(fanout.energy)} pJ per element and instance", *(abilities or ["unicast"])]
    entries = [f"array {sizes}: {', '.join(traits)}"]
    if fanout.sharing:
        entries.append(f"  its buffers share, {exact(fanout.hop_energy)} pJ per element passed on")
    for axis in fanout.axes:
        carried = axis.carries
        dims = "any dimension" if carried is None else " ".join(dim for dim in DIMENSIONS if dim in carried)
        entries.append(f"  axis {axis.name}: {axis.size}, carries {dims}")
    return entries


def _wrapped(text: str, prefix: str, hanging: str | None = None) -> list[str]:
    lead = " " * (len(text) - len(text.lstrip()))
    following = (prefix if hanging is None else hanging) + lead + "  "
    return textwrap.wrap(text.strip(), WIDTH, initial_indent=prefix + lead, subsequent_indent=following)
