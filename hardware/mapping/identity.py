"""An engine as plain data, and the hash that tells whether two results are about the same machine."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

from tilewright.foundation.units import exact
from tilewright.hardware.mapping.engine import Dma, Engine, Fanout, MemoryLevel
from tilewright.workloads.mapping.operator import Role


def engine_to_dict(engine: Engine) -> dict[str, Any]:
    """Every field as JSON-ready data.

    Sizes, energies and bandwidths are those of :class:`~tilewright.hardware.mapping.engine.MemoryLevel`;
    fractions are exact text (``"13.5"``, ``"16/3"``), sets are sorted lists.
    """
    return {
        "name": engine.name,
        "description": engine.description,
        "cost_model": engine.cost_model,
        "element_bits": engine.element_bits,
        "mac_energy": exact(engine.mac_energy),
        "clock_mhz": exact(engine.clock_mhz),
        "levels": [_level(level) for level in engine.levels],
        "dma": None if engine.dma is None else _dma(engine.dma),
        **_static(engine),
        **({"starts": dict(sorted(engine.starts.items()))} if engine.starts else {}),
    }


def engine_hash(engine: Engine) -> str:
    """SHA-256 of the engine's content in hexadecimal; its name, description and areas do not count."""
    content = {
        key: value
        for key, value in engine_to_dict(engine).items()
        if key not in {"name", "description", "area"}
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _static(engine: Engine) -> dict[str, Any]:
    """Static power and area; absent where none is stated, so that hashes of other machines stay."""
    stated = {"leakage": engine.leakage, "area": engine.area}
    return {
        field: {name: exact(amount) for name, amount in amounts.items()}
        for field, amounts in stated.items()
        if amounts
    }


def _level(level: MemoryLevel) -> dict[str, Any]:
    return {
        "name": level.name,
        "capacity": level.capacity,
        "partitions": {role.value: level.partitions[role] for role in Role if role in level.partitions},
        "bank": level.bank,
        "read_energy": exact(level.read_energy),
        "write_energy": exact(level.write_energy),
        "read_bandwidth": _optional(level.read_bandwidth),
        "write_bandwidth": _optional(level.write_bandwidth),
        "double_buffered": level.double_buffered,
        "keeps": sorted(role.value for role in level.keeps),
        "may_bypass": sorted(role.value for role in level.may_bypass),
        "sliding_window": level.sliding_window,
        "fanout": None if level.fanout is None else _fanout(level.fanout),
        **(_particulars(level) if any(level.particulars.values()) else {}),
        **({} if level.timing.plain else {"timing": level.timing.stated()}),
    }


def _particulars(level: MemoryLevel) -> dict[str, Any]:
    """What sets roles and ports apart; absent where nothing does, so that hashes of other machines stay."""
    return {
        "shared_bandwidth": _optional(level.shared_bandwidth),
        "read_energies": {
            role.value: exact(level.read_energies[role]) for role in sorted(level.read_energies)
        },
        "write_energies": {
            role.value: exact(level.write_energies[role]) for role in sorted(level.write_energies)
        },
        "widths": {role.value: level.widths[role] for role in sorted(level.widths)},
    }


def _fanout(fanout: Fanout) -> dict[str, Any]:
    """Buffer sharing; absent where there is none, so that other machines keep their hashes."""
    sharing = {"sharing": True, "hop_energy": exact(fanout.hop_energy)} if fanout.sharing else {}
    return {
        "axes": [
            {
                "name": axis.name,
                "size": axis.size,
                "carries": None if axis.carries is None else sorted(axis.carries),
            }
            for axis in fanout.axes
        ],
        "energy": exact(fanout.energy),
        "multicast": fanout.multicast,
        "reduction": fanout.reduction,
        **sharing,
    }


def _dma(dma: Dma) -> dict[str, str]:
    return {
        "startup": exact(dma.startup),
        "per_byte": exact(dma.per_byte),
        "clock_ratio": exact(dma.clock_ratio),
    }


def _optional(value: Fraction | None) -> str | None:
    return None if value is None else exact(value)
