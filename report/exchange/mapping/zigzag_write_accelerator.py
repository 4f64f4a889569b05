"""Machines as ZigZag's accelerators."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.machine_text import yaml_text
from tilewright.report.exchange.outputs import Output
from tilewright.workloads.mapping.operator import Role

PEER = "zigzag"

_OPERANDS = {Role.INPUT: "I1", Role.WEIGHT: "I2", Role.OUTPUT: "O"}
_UNLIMITED = 2**20
_LARGE = 2**49
_MOST_AXES = 4


def write(bundle: Bundle) -> list[Output]:
    """The accelerator."""
    engine = bundle.engine
    if engine is None:
        return []
    names = dimensions(engine, bundle)
    memories: dict[str, Any] = {}
    copies: list[str] = []
    for level in engine.levels:
        served = [dim for axis, dim in names.items() if axis not in copies]
        memories[level.name] = _memory(level, served, engine, bundle)
        copies += [axis.name for axis in level.fanout.axes] if level.fanout else []
    _report_losses(engine, bundle)
    sizes = [axis.size for level in engine.levels if level.fanout for axis in level.fanout.axes]
    array = {
        "unit_energy": _float(engine.mac_energy),
        "unit_area": 0.0,
        "dimensions": list(names.values()) or ["D1"],
        "sizes": sizes or [1],
    }
    data = {"name": engine.name, "memories": dict(reversed(memories.items())), "operational_array": array}
    return [Output("machine", "accelerator.yaml", yaml_text(data))]


def dimensions(engine: Engine, bundle: Bundle) -> dict[str, str]:
    """``D1``, ``D2``, ... for the axes of all arrays, outermost first; raises ``InputError`` for too many."""
    axes = [axis.name for level in engine.levels if level.fanout for axis in level.fanout.axes]
    if len(axes) > _MOST_AXES:
        raise InputError(
            engine.name, "levels", f"{len(axes)} axes, ZigZag's mappings have {_MOST_AXES} at most"
        )
    names = {axis: f"D{number}" for number, axis in enumerate(axes, 1)}
    renamed = [f"{axis} is {dim}" for axis, dim in names.items() if axis != dim]
    if renamed:
        bundle.ledger.reported(
            engine.name, Effect.NONE, f"axes have ZigZag's names: {', '.join(renamed)}", "fanout.axes"
        )
    return names


def precision(engine: Engine) -> dict[str, int]:
    """Bits of operands by ZigZag's names: finished outputs have those of the outermost level."""
    bits: dict[str, int] = {}
    for role, name in (*_OPERANDS.items(), (Role.OUTPUT, "O_final")):
        levels = [level for level in engine.levels if role in level.keeps]
        bits[name] = engine.width(levels[0 if name == "O_final" else -1], role)
    return bits


def _float(number: Fraction) -> float:
    return float(number)


def _memory(level: MemoryLevel, served: list[str], engine: Engine, bundle: Bundle) -> dict[str, Any]:
    operands = [_OPERANDS[role] for role in Role if role in level.keeps]
    widths = [engine.width(level, role) for role in Role if role in level.keeps]
    ways: dict[str, tuple[tuple[str, ...], Fraction | None]] = {
        "r": (("tl", "th"), level.read_bandwidth),
        "w": (("fh", "fl"), level.write_bandwidth),
    }
    costs: dict[str, float] = {}
    if level.shared_bandwidth is not None:
        ways = {"rw": (("tl", "th", "fh", "fl"), level.shared_bandwidth)}
    ports: list[dict[str, Any]] = []
    for way, (directions, rate) in ways.items():
        whole = math.lcm(*widths)
        bits = None if rate is None else rate * engine.element_bits
        width = _UNLIMITED // whole * whole if bits is None else max(1, int(bits))
        if bits is not None and bits != width:
            message = f"{way} bandwidth of {float(bits):g} bits per cycle is {width} there"
            bundle.ledger.reported(engine.name, Effect.COST, message, f"levels.{level.name}.bandwidth")
        for operand in way:
            costs[f"{operand}_cost"] = _float(_energy_per_bit(operand, level, engine, bundle) * width)
        allocation = [
            f"{operand}, {to}"
            for operand in operands
            for to in directions
            if operand == "O" or to in ("tl", "fh")
        ]
        ports.append(
            {
                "name": f"{way}_port_1",
                "type": {"r": "read", "w": "write", "rw": "read_write"}[way],
                "bandwidth_min": min(*widths, width),
                "bandwidth_max": width,
                "allocation": allocation,
            }
        )
    size = engine.usable_bits(level)
    return {
        "size": _LARGE if size is None else size,
        **costs,
        "area": 0.0,
        "latency": 1,
        "operands": operands,
        "ports": ports,
        "served_dimensions": served,
    }


def _energy_per_bit(way: str, level: MemoryLevel, engine: Engine, bundle: Bundle) -> Fraction:
    """pJ per bit read or written; the largest, where roles differ."""
    energies = {
        role: (level.read_energy_of(role) if way == "r" else level.write_energy_of(role))
        / engine.width(level, role)
        for role in Role
        if role in level.keeps
    }
    most = max(energies.values())
    if min(energies.values()) != most:
        each = ", ".join(f"{role} {float(energy):g}" for role, energy in energies.items())
        doing = "read" if way == "r" else "written"
        message = f"a bit {doing} costs {each} pJ; there all of them {float(most):g}"
        bundle.ledger.reported(engine.name, Effect.COST, message, f"levels.{level.name}.energy")
    return most


def _report_losses(engine: Engine, bundle: Bundle) -> None:
    def tell(effect: Effect, field: str, message: str) -> None:
        bundle.ledger.reported(engine.name, effect, message, field)

    tell(Effect.NONE, "clock_mhz", "ZigZag counts in cycles")
    if engine.cost_model != "hierarchy":
        tell(Effect.COST, "cost_model", f"ZigZag has a model of its own, not {engine.cost_model}")
    for index, level in enumerate(engine.levels):
        place = f"levels.{level.name}"
        bits = precision(engine)
        other = [
            f"{role} {engine.width(level, role)}"
            for role, name in _OPERANDS.items()
            if role in level.keeps
            and engine.width(level, role) != bits["O_final" if name == "O" and not index else name]
        ]
        if other:
            message = f"elements have the same bits in all memories, not {', '.join(other)}"
            tell(Effect.COST, f"{place}.widths", message)
        if not level.timing.plain:
            tell(Effect.COST, place, "set-up cycles, overlap and further reads are not said there")
        if level.may_bypass:
            tell(Effect.SPACE, f"{place}.may_bypass", "ZigZag's memories store all of their operands")
        if level.partitions:
            tell(Effect.SPACE, f"{place}.partitions", "all operands share the memory there")
        if level.bank is not None:
            tell(Effect.SPACE, f"{place}.banks", "operands are not rounded up to banks there")
        if level.sliding_window and level is not engine.levels[0]:
            message = "how much of a window's overlap moves again is ZigZag's to decide"
            tell(Effect.COST, f"{place}.sliding_window", message)
        fan = level.fanout
        if fan is None:
            continue
        if any(axis.carries is not None for axis in fan.axes) and not bundle.mappings:
            tell(
                Effect.SPACE,
                f"{place}.fanout.axes",
                "which dimensions an axis carries is a mapping's to say there",
            )
        if not fan.multicast or not fan.reduction:
            tell(Effect.COST, f"{place}.fanout", "ZigZag's arrays multicast and reduce")
        if fan.energy:
            tell(Effect.COST, f"{place}.fanout.energy", "the network to the array is free there")
        if fan.sharing:
            tell(Effect.COST, f"{place}.fanout.sharing", "buffers do not share there")
