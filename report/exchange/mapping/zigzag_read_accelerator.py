"""ZigZag's accelerators: memories with the array dimensions that each serves, as one chain of levels.

A memory that serves a dimension of the array is shared along it; along the others there is one per position.
Sizes and bandwidths are in bits; a cost is that of an access of ``bandwidth_max`` bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tilewright.report.exchange.bundle import Bundle, energy_of
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.chain import Chain, reported_limit
from tilewright.report.exchange.mapping.element_widths import apart, capacity_field, energies
from tilewright.report.exchange.mapping.machine_text import build_machine
from tilewright.report.exchange.mapping.zigzag_ports import Ports
from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.operator import Role

PEER = "zigzag"
TOPS: tuple[str, ...] = ("name", "memories", "operational_array", "dataflows")

OPERANDS = {"I1": Role.INPUT, "I2": Role.WEIGHT, "O": Role.OUTPUT}
_BITS = {Role.INPUT: 8, Role.WEIGHT: 8, Role.OUTPUT: 16}
_DEFAULT_MHZ = Fraction(1000)
_READ = {"size", "r_cost", "w_cost", "operands", "ports", "served_dimensions", "force_double_buffering"}
_OTHER = {
    "area": (Effect.NONE, "areas are not computed"),
    "mem_type": (Effect.NONE, "is ZigZag's, for costs that are extracted"),
    "auto_cost_extraction": (Effect.NONE, "is ZigZag's, for costs that are extracted"),
}


@dataclass(frozen=True, slots=True)
class _Memory:
    """A memory and the dimensions of the array along which there are several of it."""

    name: str
    field: Field
    roles: frozenset[Role]
    copies: frozenset[str]


def recognises(data: object) -> bool:
    """Whether a file is an accelerator."""
    return isinstance(data, dict) and {"memories", "operational_array"} <= set(data)


def read(top: Field, bundle: Bundle) -> None:
    """Build the machine."""
    array = top.at("operational_array")
    sizes = _array(array, bundle)
    bits = _element_bits(top, bundle)
    memories = _in_order(
        [_memory(name, memory_fields, sizes) for name, memory_fields in top.at("memories").fields().items()],
        top,
        bundle,
    )
    chain = Chain(bundle)
    for outer, memory in pairwise([None, *memories]):
        assert memory is not None
        new = memory.copies - (frozenset() if outer is None else outer.copies)
        axes = [{"name": dim, "size": sizes[dim]} for dim in sizes if dim in new]
        if axes:
            chain.array(axes, memory.field.at("served_dimensions"))
        chain.level(_level(memory, bits, bundle, outermost=outer is None), set(memory.roles), set())
    rest = [dim for dim in sizes if dim not in memories[-1].copies]
    if rest:
        chain.array([{"name": dim, "size": sizes[dim]} for dim in rest], array)
    fields = {
        "description": f"{top.at('name').value or bundle.name}, from a ZigZag accelerator",
        "cost_model": "hierarchy",
        "clock_mhz": bundle.settings.clock_mhz or _DEFAULT_MHZ,
        "compute": {
            "mac_energy": _mac_energy(array, bundle),
            "element_bits": bits[Role.INPUT],
            **apart(bits, dict.fromkeys(Role, bits[Role.INPUT])),
        },
        "levels": chain.close(top.at("memories")),
    }
    build_machine(bundle, fields, top.where)
    if top.at("dataflows"):
        message = "the spatial mapping is searched: add a mapping file for constraints"
        top.at("dataflows").lose(bundle.ledger, Effect.SPACE, message)


def _array(array: Field, bundle: Bundle) -> dict[str, int]:
    """Sizes of the array's dimensions of more than one multiplier."""
    if array.at("is_imc").flag():
        raise array.at("is_imc").error("computing in memory cannot be stated")
    dims = [entry.text("a dimension such as D1") for entry in array.at("dimensions").entries()]
    sizes = [entry.whole("a dimension's size") for entry in array.at("sizes").entries()]
    if len(dims) != len(sizes):
        raise array.at("sizes").error(f"expected {len(dims)} sizes, one per dimension, got {len(sizes)}")
    if array.at("systolic_dimensions").value:
        message = "data reach all multipliers of a dimension at once: no time to fill and drain the array"
        array.at("systolic_dimensions").lose(bundle.ledger, Effect.COST, message)
    if array.at("unit_area").value:
        array.at("unit_area").lose(bundle.ledger, Effect.NONE, "areas are not computed")
    return {dim: size for dim, size in zip(dims, sizes, strict=True) if size > 1}


def _mac_energy(array: Field, bundle: Bundle) -> Fraction:
    given = bundle.settings.energies.get("MAC")
    if given is not None:
        return given[0]
    place = array.at("unit_energy")
    return energy_of(place.number("pJ per multiply-accumulate"), place, bundle.ledger)


def _element_bits(top: Field, bundle: Bundle) -> dict[Role, int]:
    if bundle.settings.element_bits is not None:
        return dict.fromkeys(Role, bundle.settings.element_bits)
    if not bundle.element_bits:
        message = (
            "inputs and weights count as 8 bits, partial sums as 16 (a workload or --element-bits sets them)"
        )
        top.at("memories").lose(bundle.ledger, Effect.NONE, message)
    return _BITS | bundle.element_bits


def _memory(name: str, place: Field, sizes: dict[str, int]) -> _Memory:
    roles = frozenset(OPERANDS[entry.one_of(tuple(OPERANDS))] for entry in place.at("operands").entries())
    if not roles:
        raise place.at("operands").error(f"expected some of: {', '.join(OPERANDS)}")
    served = {entry.text("a dimension such as D1") for entry in place.at("served_dimensions").entries()}
    return _Memory(name, place, roles, frozenset(sizes) - served)


def _in_order(memories: Sequence[_Memory], top: Field, bundle: Bundle) -> list[_Memory]:
    """Outermost first; each has to have at least the copies of the one outside."""
    outermost = memories[-1] if memories else None
    if outermost is None or len(memories) < 2:
        raise top.at("memories").error(f"expected at least 2 memories, got {len(memories)}")
    if outermost.roles != frozenset(Role):
        raise outermost.field.error("the last memory is the outermost, expected one that holds I1, I2 and O")
    if outermost.copies:
        place = outermost.field.at("served_dimensions")
        place.lose(bundle.ledger, Effect.COST, "serves the whole array: there is one of it")
    inwards = list(memories[:-1])
    inwards.reverse()
    inwards.sort(key=lambda memory: len(memory.copies))
    ordered = [replace(outermost, copies=frozenset()), *inwards]
    for outer, inner in pairwise(ordered):
        if not outer.copies <= inner.copies:
            raise inner.field.at("served_dimensions").error(
                f"is shared along {', '.join(sorted(outer.copies - inner.copies))}, {outer.name} along "
                f"{', '.join(sorted(inner.copies - outer.copies))}: levels that are no chain cannot be stated"
            )
    return ordered


def _level(memory: _Memory, bits: dict[Role, int], bundle: Bundle, *, outermost: bool) -> dict[str, Any]:
    """The fields of a level, all but what it keeps."""
    place = memory.field
    widths = {role: bits[role] for role in Role if role in memory.roles}
    if outermost and bundle.final_bits is not None and bundle.settings.element_bits is None:
        widths[Role.OUTPUT] = bundle.final_bits
        if bundle.final_bits != bits[Role.OUTPUT]:
            message = (
                f"outputs have {bundle.final_bits} bits in {memory.name} and {bits[Role.OUTPUT]} elsewhere, "
                "finished or not"
            )
            place.at("operands").lose(bundle.ledger, Effect.COST, message)
    ports = Ports.of(place, widths, bundle)
    level: dict[str, Any] = {"name": memory.name, **apart(widths, bits)}
    level |= energies(
        widths,
        lambda width: _costs(memory, ports, width, bundle),
        by_width=memory.name not in bundle.settings.energies,
    )
    size = place.at("size").whole("a size in bits")
    if outermost:
        reported_limit(size // max(widths.values()), place.at("size"), bundle)
    else:
        doubled = place.at("force_double_buffering").flag()
        level |= capacity_field(size, widths, bits[Role.INPUT], place.at("size"), bundle, doubled=doubled)
        level["double_buffered" if doubled else "streamed"] = True
    if ports.rates:
        level["bandwidth"] = ports.rates
    _report_others(place, bundle)
    return level


def _costs(memory: _Memory, ports: Ports, width: int, bundle: Bundle) -> tuple[Fraction, Fraction]:
    """pJ per element of so many bits, read and written."""
    given = bundle.settings.energies.get(memory.name)
    if given is not None:
        return given
    costs = []
    for key, bits in (("r_cost", ports.read_bits), ("w_cost", ports.write_bits)):
        place = memory.field.at(key)
        if not place:
            message = f"ZigZag extracts its {key}, this file lacks it: 0 pJ (--energy sets it)"
            place.lose(bundle.ledger, Effect.COST, message)
            costs.append(Fraction(0))
        else:
            cost = place.number("pJ per access") * Fraction(width, bits or width)
            costs.append(energy_of(cost, place, bundle.ledger))
    return costs[0], costs[1]


def _report_others(place: Field, bundle: Bundle) -> None:
    for key, extra in place.fields().items():
        if key == "latency" and extra.value not in (None, 0, 1):
            extra.lose(bundle.ledger, Effect.COST, "an access takes its time on the port and no more")
        elif key in _OTHER and extra.value:
            extra.lose(bundle.ledger, *_OTHER[key])
        elif key not in _READ and key not in _OTHER and key != "latency":
            extra.lose(bundle.ledger, Effect.NONE, "is not read")
