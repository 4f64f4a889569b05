"""AccelForge's architectures: memories, containers and the compute unit as one chain of levels.

Everything there is in seconds, joules and bits; the compute unit's rate makes the clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tilewright.hardware.mapping.schema import DIMENSIONS
from tilewright.report.exchange.bundle import Bundle, energy_of
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.accelforge_actions import (
    PICO,
    action_of,
    energies,
    rates,
    tell_energy,
)
from tilewright.report.exchange.mapping.accelforge_sets import plain, tensors, widths
from tilewright.report.exchange.mapping.chain import Chain, reported_limit
from tilewright.report.exchange.mapping.element_widths import apart, capacity_field
from tilewright.report.exchange.mapping.element_widths import energies as level_energies
from tilewright.report.exchange.mapping.machine_text import build_machine
from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.operator import Role

PEER = "accelforge"
TOPS: tuple[str, ...] = ("arch",)

_FREE = {Role.INPUT: {"K"}, Role.WEIGHT: {"N", "P", "Q"}, Role.OUTPUT: {"C", "R", "S"}}
"""Loops of a convolution that a tensor does not depend on."""
_UNBOUNDED = 10**12
_DEFAULT_BITS = 8
_ENABLED = re.compile(r"len\(All\)\s*==\s*(\d+)")
_READ = {"name", "size", "actions", "tensors", "spatial", "total_latency", "bits_per_action", "enabled"}
_READ |= {"bits_per_value"}
_OTHER = {
    "leak_power": (Effect.COST, "leakage is free in this model"),
    "total_leak_power": (Effect.COST, "leakage is free in this model"),
    "values_per_action": (Effect.COST, "actions are counted in bits"),
    "energy_scale": (Effect.COST, "is not applied"),
    "actions_scale": (Effect.COST, "is not applied"),
    "latency_scale": (Effect.COST, "is not applied"),
    "throughput_scale": (Effect.COST, "is not applied"),
    "n_parallel_instances": (Effect.COST, "is not applied"),
    "skip_initial_output_write": (Effect.NONE, "first partial sums are never read"),
}
_SETS = {"no_refetch_from_above", "no_resend_to_below", "tile_shape", "tensor_order_options", "back"}


@dataclass(slots=True)
class _Machine:
    """What is made while the nodes are read."""

    chain: Chain
    bits: int
    clock_hz: Fraction
    kept: dict[str, frozenset[Role]] = field(default_factory=dict)


def recognises(data: object) -> bool:
    """Whether a file has an architecture of AccelForge."""
    return isinstance(data, dict) and isinstance(data.get("arch"), dict) and "nodes" in data["arch"]


def read(top: Field, bundle: Bundle) -> None:
    """Build the machine."""
    arch = top.at("arch")
    nodes = arch.at("nodes").entries()
    for key, extra in arch.fields().items():
        if key != "nodes":
            extra.lose(bundle.ledger, Effect.NONE, "is not read")
    compute = _compute(nodes, arch, bundle)
    bits = bundle.settings.element_bits
    if bits is None:
        bits = _DEFAULT_BITS
        message = f"elements count as {bits} bits (ZigZag has them in the workload; --element-bits sets them)"
        arch.lose(bundle.ledger, Effect.NONE, message)
    hertz = _clock(compute, bundle)
    machine = _Machine(Chain(bundle), bits, hertz)
    for node in nodes:
        if node.tag == "Container" or node.tag == "Memory":
            _add_array(node, machine, bundle)
        if node.tag == "Memory":
            _add_level(node, machine, bundle)
        elif node.tag == "Compute" and node.value is compute.value:
            _add_array(node, machine, bundle)
        elif node.tag not in ("Container", "Compute"):
            raise node.error(f"expected !Memory, !Container or !Compute, got {node.tag or 'no tag'}")
    action = action_of(compute, "compute")
    given = bundle.settings.energies.get("MAC")
    joules = action.at("energy")
    mac = given[0] if given else Fraction(0)
    if given is None and not joules:
        tell_energy(compute, bundle)
    elif given is None:
        mac = energy_of(joules.number("joules") * PICO, joules, bundle.ledger)
    fields = {
        "description": f"{bundle.name}, from an AccelForge architecture",
        "cost_model": "hierarchy",
        "clock_mhz": Fraction(round(hertz), 10**6),
        "compute": {"mac_energy": mac, "element_bits": bits},
        "levels": machine.chain.close(arch),
    }
    build_machine(bundle, fields, top.where)


def _compute(nodes: list[Field], arch: Field, bundle: Bundle) -> Field:
    """The unit that multiplies; others that a layer of three tensors does not use are left out."""
    computing: list[Field] = []
    for node in nodes:
        if node.tag != "Compute":
            continue
        enabled = node.at("enabled").value
        match = _ENABLED.fullmatch(str(enabled).strip())
        if match and int(match[1]) != len(Role):
            node.lose(bundle.ledger, Effect.NONE, "is for layers of other numbers of tensors, left out")
            continue
        computing.append(node)
    if len(computing) != 1:
        raise arch.at("nodes").error(
            f"expected one !Compute for layers of three tensors, got {len(computing)}"
        )
    _report_others(computing[0], bundle)
    return computing[0]


def _clock(compute: Field, bundle: Bundle) -> Fraction:
    if bundle.settings.clock_mhz is not None:
        return bundle.settings.clock_mhz * 10**6
    rate = action_of(compute, "compute").at("throughput")
    if not rate:
        raise compute.error("does not state its throughput, expected operations per second (or --clock)")
    hertz = rate.number("operations per second")
    if hertz == 0:
        raise rate.error("expected operations per second above 0")
    return hertz


def _add_array(node: Field, machine: _Machine, bundle: Bundle) -> None:
    """The axes above a node: what they reuse is what they may carry."""
    axes: list[dict[str, Any]] = []
    multicast = reduction = True
    for dimension in node.at("spatial").entries():
        size = dimension.at("fanout").whole("instances")
        axis: dict[str, Any] = {"name": dimension.at("name").text("a name"), "size": size}
        reused = tensors(dimension.at("reuse"), machine.kept, "Nothing")
        if reused:
            carried = set(DIMENSIONS).intersection(*(_FREE[role] for role in reused))
            if not carried:
                raise dimension.at("reuse").error("no loop of a convolution reuses all of these")
            axis["carries"] = [dim for dim in DIMENSIONS if dim in carried]
        may = tensors(dimension.at("may_reuse"), machine.kept, "All")
        if dimension.at("may_reuse") and may >= reused and may != set(Role):
            multicast, reduction = not {Role.INPUT, Role.WEIGHT} - may, Role.OUTPUT in may
            if may & {Role.INPUT, Role.WEIGHT} and not multicast:
                dimension.at("may_reuse").lose(
                    bundle.ledger, Effect.COST, "inputs and weights are unicast alike"
                )
        for key, message in (
            ("min_usage", "less of the array may be used"),
            ("loop_bounds", "loops on it are not bounded"),
            ("usage_scale", "is not applied"),
        ):
            if dimension.at(key).value not in (None, 0, [], 1 if key == "usage_scale" else 0):
                dimension.at(key).lose(bundle.ledger, Effect.SPACE, message)
        if size > 1:
            axes.append(axis)
    if axes and not machine.chain.levels:
        raise node.at("spatial").error("an array outside the outermost memory cannot be stated")
    if axes:
        machine.chain.array(axes, node, multicast=multicast, reduction=reduction)


def _add_level(node: Field, machine: _Machine, bundle: Bundle) -> None:
    name, place = node.at("name").text("a name"), node.at("tensors")
    outermost = not machine.chain.levels
    keep = tensors(place.at("keep"), machine.kept, "Nothing")
    may = tensors(place.at("may_keep"), machine.kept, "Nothing" if place.at("keep") else "All")
    machine.kept[name] = keep
    for key, extra in place.fields().items():
        if key in _SETS:
            extra.lose(bundle.ledger, Effect.SPACE, "is not demanded")
    if outermost and keep | may != set(Role):
        raise node.error("expected the outermost memory to keep all tensors")
    level: dict[str, Any] = {"name": name}
    if not keep | may:
        raise place.error("stores nothing, but every level must")
    usual = dict.fromkeys(Role, machine.bits)
    every = usual
    if bundle.settings.element_bits is None:
        every = widths(node.at("bits_per_value"), machine.kept, machine.bits)
    own = {role: every[role] for role in Role if role in keep | may}
    level |= apart(own, usual)
    reported = name in bundle.settings.energies
    level |= level_energies(own, lambda bits: energies(name, node, bits, bundle), by_width=not reported)
    size = plain(node.at("size"), every)
    if outermost:
        if not size.infinite:
            reported_limit(size.number("a size in bits") / max(own.values()), size, bundle)
    else:
        bits = _UNBOUNDED * machine.bits if size.infinite else size.number("a size in bits")
        level |= capacity_field(bits, own, machine.bits, size, bundle, doubled=False)
        level["streamed"] = True
    bandwidth = rates(node, own, machine.clock_hz, bundle)
    if bandwidth:
        level["bandwidth"] = bandwidth
    _report_others(node, bundle)
    machine.chain.level(level, set(keep | may), set(may - keep))


def _report_others(node: Field, bundle: Bundle) -> None:
    for key, extra in node.fields().items():
        if key in _OTHER:
            if extra.value not in (None, 0, 1, {}, True):
                extra.lose(bundle.ledger, *_OTHER[key])
        elif key not in _READ:
            extra.lose(bundle.ledger, Effect.NONE, "is for areas and component models")
