"""Timeloop v4's architectures: containers and components, outermost first, as the levels of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tilewright.hardware.mapping.schema import DIMENSIONS
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping import timeloop_attributes as attributes
from tilewright.report.exchange.mapping.chain import Chain
from tilewright.report.exchange.mapping.machine_text import build_machine
from tilewright.report.exchange.mapping.roles import like_of, roles_of
from tilewright.report.exchange.mapping.timeloop_read_constraints import (
    STORING,
    Storing,
    barred,
    demand_all,
    demand_spatial,
    demand_temporal,
    read_storing,
)
from tilewright.report.exchange.mapping.timeloop_sites import axis_names
from tilewright.report.exchange.source import Field
from tilewright.workloads.mapping.operator import Role

PEER = "timeloop"
TOPS: tuple[str, ...] = ("architecture", "variables")

_CONTAINERS = ("Container", "ArrayContainer")
_CONSTRAINTS = ("spatial", "temporal", "dataspace", "max_overbooked_proportion", "utilization")
_STORAGE = ("DRAM", "SRAM", "regfile", "smartbuffer", "storage")
_COMPUTE = ("mac", "compute")


@dataclass(slots=True)
class _Leaf:
    """A container or component.

    Parameters
    ----------
    parallel : whether it stands beside others, each of which keeps what it says and nothing else
    """

    name: str
    field: Field
    parallel: bool


@dataclass(slots=True)
class _Machine:
    """What is made while the leaves are read."""

    chain: Chain
    inherited: dict[str, Field] = field(default_factory=dict)
    mac: _Leaf | None = None
    later: list[tuple[str, Field, tuple[str, ...]]] = field(default_factory=list)


def recognises(data: object) -> bool:
    """Whether a file has an architecture."""
    return isinstance(data, dict) and "architecture" in data


def read(top: Field, bundle: Bundle) -> None:
    """Build the machine, and state its constraints and those that were waiting for it."""
    architecture = top.at("architecture")
    for key, extra in architecture.fields().items():
        if key == "subtree":
            raise extra.error(
                "an architecture before version 0.4, expected nodes (Timeloop's front end converts it)"
            )
        if key not in ("version", "nodes"):
            extra.lose(bundle.ledger, Effect.NONE, "is not read")
    leaves = list(_leaves(architecture.at("nodes"), bundle, parallel=False))
    machine = _Machine(Chain(bundle))
    for leaf in leaves:
        _read_leaf(leaf, machine, bundle)
    if machine.mac is None:
        raise architecture.error("has no compute component, expected one such as class: intmac, innermost")
    levels = machine.chain.close(architecture)
    engine = build_machine(
        bundle,
        _fields(machine.mac, levels, [leaf.field for leaf in leaves], _variables(top), bundle),
        architecture.where,
    )
    for site, entry, axes in machine.later:
        if axes:
            demand_spatial(entry, site, axes, bundle, unspread=False)
        else:
            demand_temporal(entry, site, bundle)
    demand_all(
        bundle, engine, [wanted for wanted in bundle.targets if wanted.at("type").value not in STORING]
    )
    known = {level["name"] for level in levels}
    for target in bundle.targets:
        if target.at("type").value in STORING and target.at("target").value not in known:
            target.at("target").lose(bundle.ledger, Effect.NONE, "is no memory of the machine")
    bundle.targets = []


def _variables(top: Field) -> Field:
    """The file's own variables, or else those of the other files."""
    own = top.at("variables")
    return own if own else Field(top.where, dict(top.names), (), None, top.names)


def _leaves(nodes: Field, bundle: Bundle, *, parallel: bool) -> Iterator[_Leaf]:
    if not nodes:
        raise nodes.error("missing, expected a list of nodes")
    for node in nodes.entries():
        if node.tag in ("Hierarchical", "Parallel"):
            yield from _leaves(node.at("nodes"), bundle, parallel=parallel or node.tag == "Parallel")
        elif node.tag in (*_CONTAINERS, "Component"):
            yield _Leaf(node.at("name").text("a name"), node, parallel)
        elif node.tag != "Nothing":
            raise node.error(
                f"expected !Container, !Component, !Hierarchical or !Parallel, got {node.tag or 'no tag'}"
            )


def _read_leaf(leaf: _Leaf, machine: _Machine, bundle: Bundle) -> None:
    node = leaf.field
    _check_leaf(node, bundle)
    mesh = node.at("spatial")
    sizes = [mesh.at(way).whole("instances") if mesh.at(way) else 1 for way in ("meshX", "meshY")]
    axes = axis_names(leaf.name, *sizes)
    if axes and leaf.parallel:
        raise mesh.error(
            "an array inside !Parallel cannot be expressed, expected one array for all its members"
        )
    if axes:
        _open_array(leaf, axes, machine, bundle)
    elif node.at("constraints").at("spatial"):
        node.at("constraints").at("spatial").lose(bundle.ledger, Effect.NONE, "there is no such array")
    if node.tag in _CONTAINERS:
        attributes.inherit(node.at("attributes"), machine.inherited, bundle)
        if node.at("constraints").at("temporal") or node.at("constraints").at("dataspace"):
            message = "a container has neither loops in time nor data"
            node.at("constraints").lose(bundle.ledger, Effect.NONE, message)
        return
    kind = node.at("class").text("a component's class")
    if any(word in kind for word in _STORAGE):
        _add_level(leaf, machine, bundle)
    elif any(word in kind for word in _COMPUTE):
        if machine.mac is not None:
            raise node.error(f"a second compute component next to {machine.mac.name}")
        machine.mac = leaf
        attributes.check_compute(node.at("attributes"), bundle)
    else:
        node.at("class").lose(bundle.ledger, Effect.COST, f"{leaf.name} is no memory: its actions are free")


def _check_leaf(node: Field, bundle: Bundle) -> None:
    """Note what the leaf has that no machine file has."""
    for key, extra in node.fields().items():
        if key == "sparse_optimizations" and extra.value:
            extra.lose(bundle.ledger, Effect.COST, "compression, gating and skipping are not modelled")
        elif key == "networks" and extra.value:
            extra.lose(bundle.ledger, Effect.COST, "networks cost as the machine's fan-out states: nothing")
        elif key == "enabled" and not extra.flag():
            extra.lose(bundle.ledger, Effect.COST, "is taken as if it were enabled")
        elif key in ("area_share", "required_actions"):
            extra.lose(bundle.ledger, Effect.NONE, "is Accelergy's")
    for key, extra in node.at("constraints").fields().items():
        if key not in _CONSTRAINTS:
            extra.lose(bundle.ledger, Effect.SPACE, "is no constraint that is known here")
        elif key in ("max_overbooked_proportion", "utilization") and extra.value:
            extra.lose(bundle.ledger, Effect.SPACE, "is not demanded")


def _open_array(leaf: _Leaf, axes: list[tuple[str, int]], machine: _Machine, bundle: Bundle) -> None:
    """The axes of an array; dimensions of factor 1 become what an axis does not carry."""
    if not machine.chain.levels:
        leaf.field.at("spatial").lose(bundle.ledger, Effect.COST, "several whole machines are taken for one")
        return
    names = tuple(name for name, _ in axes)
    constraint = leaf.field.at("constraints").at("spatial")
    without = (
        barred(constraint, leaf.name, names, bundle) if constraint else {name: set[str]() for name in names}
    )
    array_axes: list[dict[str, Any]] = []
    for name, size in axes:
        axis: dict[str, Any] = {"name": name, "size": size}
        out = _barred_loops(without[name], name, bundle)
        if out >= set(DIMENSIONS):
            raise constraint.error(f"no dimension may be spread over {name}")
        if out:
            axis["carries"] = [dim for dim in DIMENSIONS if dim not in out]
        array_axes.append(axis)
    multicast, reduction = _reuse(constraint, bundle)
    machine.chain.array(array_axes, leaf.field, multicast=multicast, reduction=reduction)
    if constraint:
        machine.later.append((leaf.name, constraint, names))


def _barred_loops(dims: set[str], axis: str, bundle: Bundle) -> set[str]:
    """The loops of a convolution that barred dimensions count as; what shares a loop becomes a constraint."""
    out: set[str] = set()
    operator = bundle.operator
    for dim in sorted(dims):
        loop = like_of(dim, operator)
        same = (
            set()
            if operator is None
            else {dimension.name for dimension in operator.dimensions if dimension.like == loop}
        )
        if loop is not None and same <= dims:
            out.add(loop)
        else:
            bundle.demand(f"spatial({dim}@{axis})=1")
    return out


def _reuse(constraint: Field, bundle: Bundle) -> tuple[bool, bool]:
    """Whether an array multicasts inputs and weights, and whether it adds up outputs."""
    place = constraint.at("no_reuse")
    named = [(word, roles_of(word, bundle.operator)) for word in place.words()] if place else []
    roles = {role for _, known_roles in named for role in known_roles or ()}
    if roles & {Role.INPUT, Role.WEIGHT} and not roles >= {Role.INPUT, Role.WEIGHT}:
        place.lose(
            bundle.ledger, Effect.COST, "inputs and weights are both multicast, or neither: here both are"
        )
    for word, known_roles in named:
        if known_roles is None:
            raise place.error(f"unknown data space {word!r}, expected one of the problem's")
    return not roles >= {Role.INPUT, Role.WEIGHT}, Role.OUTPUT not in roles


def _add_level(leaf: _Leaf, machine: _Machine, bundle: Bundle) -> None:
    node, outermost = leaf.field, not machine.chain.levels
    storing = Storing()
    places = [node.at("constraints").at("dataspace")]
    places += [
        target
        for target in bundle.targets
        if target.at("type").value in STORING and target.at("target").value == leaf.name
    ]
    for place in places:
        if place:
            read_storing(place, bundle, storing)
    if leaf.parallel:
        storing.bypass |= set(Role) - storing.keep
    if outermost and storing.bypass:
        raise node.error("expected the outermost memory to keep every data space")
    level = attributes.level(leaf.name, node, machine.inherited, bundle, outermost=outermost)
    keeps = set(Role) - storing.bypass
    if not keeps:
        message = (
            f"{leaf.name} stores nothing, but every level must: its loops belong to the next outer level"
        )
        node.lose(bundle.ledger, Effect.SPACE, message)
        return
    machine.chain.level(level, keeps, keeps - storing.keep)
    temporal = node.at("constraints").at("temporal")
    if temporal:
        machine.later.append((leaf.name, temporal, ()))


def _fields(
    mac: _Leaf, levels: list[dict[str, Any]], nodes: list[Field], variables: Field, bundle: Bundle
) -> dict[str, Any]:
    """The whole machine file."""
    bits = attributes.element_bits(levels, bundle)
    energy = attributes.action_energy(mac.name, ("compute",), mac.field, bundle)[0]
    for level in levels:
        own = level.pop("datawidth")
        if bundle.settings.element_bits is None and own != bits:
            level["widths"] = dict.fromkeys(level.get("keeps", [role.value for role in Role]), own)
    return {
        "description": f"{bundle.name}, from a Timeloop architecture",
        "cost_model": "hierarchy",
        "clock_mhz": bundle.settings.clock_mhz or attributes.clock(nodes, variables, bundle),
        "compute": {"mac_energy": energy, "element_bits": bits},
        "levels": levels,
    }
