"""Machines as Timeloop v4's architectures, their energies as a reference table beside them."""

from __future__ import annotations

from typing import Any

from tilewright.foundation.units import exact
from tilewright.foundation.yaml_document import Tagged
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.report.exchange.bundle import Bundle
from tilewright.report.exchange.losses import Effect
from tilewright.report.exchange.mapping.machine_text import yaml_text
from tilewright.report.exchange.mapping.timeloop_sites import Sites, is_on_y
from tilewright.report.exchange.mapping.timeloop_write_problem import letters
from tilewright.report.exchange.outputs import Output
from tilewright.workloads.mapping.operator import Role

PEER = "timeloop"

_NAMES = {Role.INPUT: "Inputs", Role.WEIGHT: "Weights", Role.OUTPUT: "Outputs"}
_SYSTEM, _MAC = "system", "mac"


def write(bundle: Bundle) -> list[Output]:
    """The architecture and its energies."""
    engine = bundle.engine
    if engine is None:
        return []
    _report_losses(engine, bundle)
    nodes: list[Tagged] = [_node("Container", _SYSTEM, attributes={"global_cycle_seconds": _cycle(engine)})]
    sites = Sites.of(engine)
    for level in engine.levels:
        nodes.append(_memory(level, engine, bundle))
        for array, axes in sites.arrays.items():
            if sites.below[array] == level.name:
                nodes.append(_array(array, axes, level, bundle))
    mac = {"multiplier_width": engine.element_bits}
    nodes.append(_node("Component", _MAC, **{"class": "intmac"}, attributes=mac))
    text = yaml_text({"architecture": {"version": 0.4, "nodes": nodes}})
    return [
        Output("machine", "arch.yaml", text),
        Output("energies", "ert.yaml", yaml_text({"ERT": _energies(engine)})),
    ]


def _node(tag: str, name: str, **fields: Any) -> Tagged:
    return Tagged(tag, {"name": name, **{key: value for key, value in fields.items() if value}})


def _cycle(engine: Engine) -> float:
    """Seconds of a cycle."""
    return float(1 / (engine.clock_mhz * 10**6))


def _tensors(bundle: Bundle, roles: frozenset[Role] | set[Role]) -> list[str]:
    """The data spaces of some roles: the layers' own names, or the usual ones."""
    if not bundle.layers:
        return [_NAMES[role] for role in Role if role in roles]
    names = [
        tensor.name for _, operator in bundle.layers for tensor in operator.tensors if tensor.role in roles
    ]
    return list(dict.fromkeys(names))


def _memory(level: MemoryLevel, engine: Engine, bundle: Bundle) -> Tagged:
    bits, outermost = _width(level, engine), level is engine.levels[0]
    attributes: dict[str, Any] = {"width": bits, "datawidth": bits, "block_size": 1}
    if level.capacity is not None:
        attributes["depth"] = (engine.usable_bits(level) or 0) // bits
    ports = {"read": level.read_bandwidth, "write": level.write_bandwidth, "shared": level.shared_bandwidth}
    for way, rate in ports.items():
        if rate is not None:
            rate = rate * engine.element_bits / bits
            attributes[f"{way}_bandwidth"] = rate if rate.denominator == 1 else float(rate)
    keep = _tensors(bundle, level.keeps - level.may_bypass)
    passing = _tensors(bundle, frozenset(Role) - level.keeps)
    storing = {key: names for key, names in (("keep", keep), ("bypass", passing)) if names}
    kind = "DRAM" if outermost else "storage"
    return _node(
        "Component", level.name, **{"class": kind}, attributes=attributes, constraints={"dataspace": storing}
    )


def _width(level: MemoryLevel, engine: Engine) -> int:
    """Bits of a level's elements; the widest, where they differ."""
    return max(engine.width(level, role) for role in level.keeps)


def _array(array: str, axes: tuple[str, ...], level: MemoryLevel, bundle: Bundle) -> Tagged:
    assert level.fanout is not None
    axes_by_name = {axis.name: axis for axis in level.fanout.axes if axis.name in axes}
    mesh = {"meshY" if is_on_y(array, name) else "meshX": axes_by_name[name].size for name in axes}
    names = letters(bundle.operator) if bundle.operator is not None else {dim: dim for dim in "NCKPQRS"}
    like = (
        {dimension.name: dimension.like for dimension in bundle.operator.dimensions}
        if bundle.operator
        else dict(names)
    )

    def carried(axis: str) -> list[str]:
        allowed = axes_by_name[axis].carries
        return [dim for dim in names if allowed is None or like[dim] in allowed]

    ways = [carried(axis) for axis in axes]
    idle = [dim for dim in names if not any(dim in way for way in ways)]
    spatial: dict[str, Any] = {}
    if idle:
        spatial["factors"] = [f"{names[dim]}=1" for dim in idle]
    if len(ways) == 2 and not set(ways[0]) & set(ways[1]):
        order = [*ways[0], *(dim for dim in names if dim not in ways[0])]
        spatial |= {"permutation": [names[dim] for dim in order], "split": len(ways[0])}
    elif len(ways) == 2 and set(ways[0]) != set(ways[1]):
        message = f"which dimensions {axes[0]} and {axes[1]} may carry is not restricted"
        bundle.ledger.reported(level.name, Effect.SPACE, message, "fanout.axes")
    unshared = set() if level.fanout.multicast else {Role.INPUT, Role.WEIGHT}
    unshared |= set() if level.fanout.reduction else {Role.OUTPUT}
    if unshared:
        spatial["no_reuse"] = _tensors(bundle, unshared)
    return _node("Container", array, spatial=mesh, constraints={"spatial": spatial} if spatial else None)


def _energies(engine: Engine) -> dict[str, Any]:
    tables = []
    for level in engine.levels:
        read = max(level.read_energy_of(role) for role in level.keeps)
        write = max(level.write_energy_of(role) for role in level.keeps)
        actions = [("read", read), ("write", write), ("update", write)]
        tables.append((level.name, actions))
    tables.append((_MAC, [("compute", engine.mac_energy)]))
    return {
        "version": 0.4,
        "tables": [
            {
                "name": f"{_SYSTEM}.{name}[1..1]",
                "actions": [{"name": action, "energy": energy} for action, energy in actions],
            }
            for name, actions in tables
        ],
    }


def _report_losses(engine: Engine, bundle: Bundle) -> None:
    def tell(effect: Effect, field: str, message: str) -> None:
        bundle.ledger.reported(engine.name, effect, message, field)

    if engine.cost_model != "hierarchy":
        tell(Effect.COST, "cost_model", f"Timeloop counts as hierarchy does, not as {engine.cost_model}")
    for index, level in enumerate(engine.levels):
        place = f"levels.{level.name}"
        outer = engine.levels[index - 1] if index else None
        waits = outer is not None and (
            outer.read_bandwidth or outer.write_bandwidth or outer.shared_bandwidth
        )
        if waits and not level.double_buffered:
            tell(Effect.COST, place, "is filled while in use there: transfers hide behind other work")
        if not level.timing.plain:
            tell(Effect.COST, place, "set-up cycles, overlap and further reads are not said there")
        if index and not level.sliding_window:
            tell(Effect.COST, f"{place}.sliding_window", "Timeloop leaves the overlap of windows in place")
        if len({engine.width(level, role) for role in level.keeps}) > 1:
            message = f"elements of several widths count as {_width(level, engine)} bits"
            tell(Effect.COST, f"{place}.widths", message)
        if any(
            len({energy(role) for role in level.keeps}) > 1
            for energy in (level.read_energy_of, level.write_energy_of)
        ):
            tell(Effect.COST, f"{place}.energy_by_role", "all tensors cost as much as the most expensive one")
        if level.partitions:
            tell(Effect.SPACE, f"{place}.partitions", "all tensors share the memory there")
        if level.bank is not None:
            tell(Effect.SPACE, f"{place}.banks", "tensors are not rounded up to banks there")
        if level.fanout is not None and level.fanout.energy:
            energy = exact(level.fanout.energy)
            tell(
                Effect.COST,
                f"{place}.fanout.energy",
                f"{energy} pJ per element on the way are Accelergy's there",
            )
        if level.fanout is not None and level.fanout.sharing:
            tell(Effect.COST, f"{place}.fanout.sharing", "buffers do not share there")
