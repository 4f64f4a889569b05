"""AccelForge's rules for fused mappings: its machines as its fused studies state them, and its prices.

There a result that leaves a memory is read once more, and what windows share stays in place (`engine_of`).
An einsum takes as long as its slowest component, whose reads and writes have ports of their own, without any
fill or drain; einsums run one after the other; static power goes to all components all the time (`price`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.tree import Branch, Leaf
from tilewright.formulation.mapping.mapping import Spatial
from tilewright.foundation.yaml_document import Tagged
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.timing import Timing
from tilewright.report.exchange.bundle import Bundle, Settings
from tilewright.report.exchange.losses import Ledger
from tilewright.report.exchange.mapping.accelforge_read_arch import read
from tilewright.report.exchange.source import Field

PORTS = "max(a.n_calls / a.throughput for a in actions)"
"""How long a memory is busy whose reads and writes have ports of their own."""
Counts = dict[tuple[str, str, str], tuple[int, int]]
"""Elements read and written, by einsum, memory and tensor."""


def engine_of(name: str, nodes: Sequence[MappingABC[str, Any]], bits: int) -> Engine:
    """The machine that some nodes make, under AccelForge's rules.

    Parameters
    ----------
    name : of the machine, and what errors call it
    nodes : per component ``name``, ``bits`` of a memory, ``actions`` with ``joule_per_bit_or_op`` and
        ``per_second``, ``tensors``, ``spatial`` and ``total_latency`` in AccelForge's words; a memory whose
        values have other widths has ``bits_per_value`` by role
    bits : of a value

    Raises
    ------
    InputError : naming the node and the field, for what cannot be read
    """
    arch = {"nodes": [_node(node) for node in nodes]}
    own_widths = any("bits_per_value" in node for node in nodes)
    bundle = Bundle(name, Settings(element_bits=None if own_widths else bits), Ledger())
    read(Field(name, {"arch": arch}), bundle)
    assert bundle.engine is not None
    assert bundle.engine.element_bits == bits
    levels = [
        replace(
            level,
            double_buffered=False,  # no first fill counts, and no last drain
            sliding_window=place > 0,
            timing=Timing(overlap=True, drained=place > 0),
        )
        for place, level in enumerate(bundle.engine.levels)
    ]
    return replace(bundle.engine, levels=tuple(levels))


def _node(node: MappingABC[str, Any]) -> Tagged:
    actions = node.get("actions", {})
    kind = "Compute" if "compute" in actions else "Memory" if "bits" in node else "Container"
    kept = ("name", "tensors", "spatial", "bits_per_value")
    content: dict[Hashable, Any] = {key: node[key] for key in kept if key in node}
    content["actions"] = [
        {"name": key, "energy": action["joule_per_bit_or_op"], "throughput": action["per_second"]}
        for key, action in actions.items()
    ]
    if "bits" in node:
        content["size"] = node["bits"]
        content["total_latency"] = node.get("total_latency", PORTS)
    return Tagged(kind, content)


@dataclass(frozen=True)
class Price:
    """What a fused mapping costs by AccelForge's rules.

    Parameters
    ----------
    counts : accesses; elements that no shared store moves stand with the einsum in whose turns they move
    energy : J, static power included
    seconds : of all einsums, one after the other
    latencies : seconds by einsum and component
    violations : what does not fit
    """

    counts: Counts
    energy: Fraction
    seconds: Fraction
    latencies: dict[tuple[str, str], Fraction]
    violations: tuple[str, ...]


def price(
    trees: Sequence[tuple[FusedGroup, Branch]], engine: Engine, nodes: Sequence[MappingABC[str, Any]]
) -> Price:
    """Price groups that run one after the other.

    Parameters
    ----------
    trees : the groups, each with its tree
    engine : the machine
    nodes : the same machine as AccelForge's nodes, whose rates and static power are in seconds and W
    """
    counts: Counts = {}
    latencies: dict[tuple[str, str], Fraction] = {}
    energy = Fraction(0)
    violations: list[str] = []
    for group, tree in trees:
        evaluation = evaluate_fused(group, engine, cost_model("hierarchy"), tree)
        energy += evaluation.energy / 10**12
        violations += evaluation.violations
        own = counts_of(evaluation)
        counts |= own
        for leaf in tree.leaves():
            for node in nodes:
                busy = _seconds(group, leaf, engine, node, own)
                latencies[leaf.layer, str(node["name"])] = busy
    seconds = {layer: Fraction(0) for layer, _ in latencies}
    for (layer, _), busy in latencies.items():
        seconds[layer] = max(seconds[layer], busy)
    total = sum(seconds.values(), Fraction(0))
    fans = {level.name: level.fanout.instances for level in engine.levels if level.fanout is not None}
    instances = 1
    for node in nodes:
        instances *= math.prod(int(axis["fanout"]) for axis in node.get("spatial", ()))
        energy += Fraction(node.get("leak_power", 0)) * instances * total
    assert math.prod(fans.values()) == instances
    return Price(counts, energy, total, latencies, tuple(violations))


def counts_of(evaluation: FusedEvaluation) -> Counts:
    """Accesses of a fused mapping, those of shared stores with the einsum whose tensor they have."""
    accesses: dict[tuple[str, str, str], list[int]] = {}
    for cost in evaluation.layers:
        for (level, tensor), (reads, fills, updates) in cost.accesses.items():
            row = accesses.setdefault((cost.layer, level, tensor), [0, 0])
            row[0] += reads
            row[1] += fills + updates
    for move in evaluation.movements:
        layer, _, tensor = move.tensor.rpartition(".")
        for (level, kind), number in move.accesses.items():
            accesses.setdefault((layer, level, tensor), [0, 0])[kind != "reads"] += number
    return {key: (reads, writes) for key, (reads, writes) in accesses.items()}


def _seconds(
    group: FusedGroup, leaf: Leaf, engine: Engine, node: MappingABC[str, Any], counts: Counts
) -> Fraction:
    """How long one component is busy with an einsum: its slower port, on each of the instances in use."""
    name, actions = str(node["name"]), node.get("actions", {})
    operator = group.operator(leaf.layer)
    if "compute" in actions:
        work = {"compute": operator.iterations}
        inside = len(engine.levels)
    elif "read" in actions:
        inside = [level.name for level in engine.levels].index(name)
        memory = engine.levels[inside]
        work = {"read": 0, "write": 0}
        for (layer, level, tensor), (reads, writes) in counts.items():
            if (layer, level) == (leaf.layer, name):
                bits = engine.width(memory, operator.tensor(tensor).role)
                work["read"] += bits * reads
                work["write"] += bits * writes
    else:
        return Fraction(0)
    outside = {
        axis.name
        for level in engine.levels[:inside]
        if level.fanout is not None
        for axis in level.fanout.axes
    }
    used = math.prod(
        step.trip
        for step in leaf.mapping.loops(operator)
        if isinstance(step.node, Spatial) and step.node.axis in outside
    )
    times = [Fraction(0)]
    for action, number in work.items():
        rate = Field(name, actions[action]["per_second"], (action, "per_second"))
        if not rate.infinite:
            times.append(number / (rate.number("actions per second") * used))
    return max(times) if node.get("total_latency", PORTS) == PORTS else sum(times, Fraction(0))
