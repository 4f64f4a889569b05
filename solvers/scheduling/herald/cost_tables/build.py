"""The scheduling problem of a workload on a system."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.problem import (
    Option,
    ScheduleObjective,
    SchedulingProblem,
    Task,
)
from tilewright.hardware.scheduling.herald.system import SubAccelerator, System
from tilewright.hardware.scheduling.own_engine import Flow
from tilewright.solvers.scheduling.herald.cost_tables.costs import CostTable, cost_table, fetch_cycles
from tilewright.solvers.scheduling.herald.cost_tables.evidence import Cost
from tilewright.solvers.scheduling.herald.cost_tables.residency_costs import (
    Spills,
    may_reside,
    network_boundary,
)
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network
from tilewright.workloads.scheduling.workload import Workload

METRIC_OF = {
    ScheduleObjective.MAKESPAN: "cycles",
    ScheduleObjective.ENERGY: "energy",
    ScheduleObjective.EDP: "edp",
}
"""The metric by which mappings are chosen unless the user names another one."""


def workload_operators(workload: Workload) -> list[Operator]:
    """The distinct layers that multiply and accumulate."""
    layers = (layer for part in workload.parts for layer in part.network.mac_layers)
    return list(dict.fromkeys(layer.operator for layer in layers))


def schedule_problem(
    workload: Workload,
    system: System,
    metric: str,
    limits: Limits,
    folder: Path | None = None,
    note: Callable[[str], None] | None = None,
    reported: Callable[[int, int], None] | None = None,
) -> SchedulingProblem:
    """State the problem, computing costs that are not known yet.

    Parameters
    ----------
    metric : by which the mapping of a layer on a sub-accelerator is chosen: ``cycles``, ``energy`` or ``edp``
    folder : of the cost tables
    note : called with a line if costs on disk were rejected or could not be read
    reported : called with the number of costs that have been computed, and of all that are missing

    Raises
    ------
    LimitReachedError : where a limit struck
    """
    table = cost_table(
        workload_operators(workload),
        [system],
        limits,
        folder,
        reported,
        metric=metric,
        chosen=(metric,),
        note=note,
    )
    problem = problem_from_table(workload, system, metric, table)
    if not system.keep_activations:
        return problem
    networks = {part.name: part.network for part in workload.parts}
    operators = {
        (name, layer.name): layer.operator
        for name, network in networks.items()
        for layer in network.mac_layers
    }
    boundaries = {name: network_boundary(network) for name, network in networks.items()}
    return may_reside(problem, operators, boundaries, Spills(system, metric, table), limits)


def problem_from_table(
    workload: Workload, system: System, metric: str, table: CostTable
) -> SchedulingProblem:
    """State the problem with costs that are known.

    Layers that do not multiply and accumulate are passed over: a layer depends on the nearest layers before
    them, as in Herald.

    Parameters
    ----------
    workload, system : what runs where
    metric : by which each sub-accelerator's dataflow is chosen
    table : of the workload's layers on the system
    """
    options: dict[Operator, tuple[Option, ...]] = {}
    for operator in workload_operators(workload):
        options[operator] = options_of(operator, system, metric, table)
    tasks: list[Task] = []
    edges: list[tuple[int, int]] = []
    parts = {part.name: part.network for part in workload.parts}
    depends = {name: mac_dependencies(network) for name, network in parts.items()}
    for instance, network in workload.instances():
        part = next(name for name in parts if instance == name or instance.startswith(f"{name}/"))
        first = len(tasks)
        place = {layer.name: first + i for i, layer in enumerate(network.mac_layers)}
        tasks += [Task(instance, part, layer.name, options[layer.operator]) for layer in network.mac_layers]
        edges += [(place[before], place[after]) for before, after in depends[part]]
    return SchedulingProblem(
        name=f"{workload.name} on {system.name}",
        engines=tuple(sub.name for sub in system.subs),
        tasks=tuple(tasks),
        edges=tuple(edges),
        memory=system.memory_bytes,
        context_cycles=system.context_cycles,
        context_energy=system.context_energy,
    )


def options_of(operator: Operator, system: System, metric: str, table: CostTable) -> tuple[Option, ...]:
    """The best option of a layer on every sub-accelerator that it fits on.

    Parameters
    ----------
    operator : of the layer
    system : whose sub-accelerators are asked, in their order
    metric : by which a sub-accelerator's dataflow is chosen: ``cycles``, ``energy`` or ``edp``
    table : of costs
    """
    choices = (_option(operator, index, sub, system, metric, table) for index, sub in enumerate(system.subs))
    return tuple(option for option in choices if option is not None)


def mac_dependencies(network: Network) -> list[tuple[str, str]]:
    """Which layers that multiply and accumulate wait for which, others passed over."""
    dependencies: list[tuple[str, str]] = []
    sources: dict[str, frozenset[str]] = {}
    for layer in network.layers:
        before = network.graph.predecessors(layer.name)
        reached: frozenset[str] = frozenset().union(*(sources[name] for name in before))
        if layer.operator.is_mac:
            dependencies += [(name, layer.name) for name in sorted(reached)]
            sources[layer.name] = frozenset((layer.name,))
        else:
            sources[layer.name] = reached
    return dependencies


def _option(
    operator: Operator, index: int, sub: SubAccelerator, system: System, metric: str, table: CostTable
) -> Option | None:
    """The best dataflow of a sub-accelerator for a layer by the metric; ``None`` where it fits none."""
    best: tuple[tuple[Fraction, Fraction], Option] | None = None
    for flow in sub.dataflows:
        cost = table.cost(operator, flow, sub, system, metric)
        if cost is None:
            continue
        option = option_on(index, sub, system, flow, cost)
        time, energy = Fraction(option.cycles), option.energy
        keys = {"cycles": (time, energy), "energy": (energy, time), "edp": (time * energy, time)}
        key = keys[metric]
        if best is None or key < best[0]:
            best = key, option
    return None if best is None else best[1]


def option_on(index: int, sub: SubAccelerator, system: System, flow: Flow, cost: Cost) -> Option:
    """The option of a layer that costs so much under a dataflow of a sub-accelerator.

    Parameters
    ----------
    index : the sub-accelerator's position in the system
    """
    cycles = cost.cycles + sub.reconfiguration_cycles
    fetch = fetch_cycles(cost.weights, sub, system)
    if not system.prefetch:
        cycles, fetch = cycles + fetch, 0
    return Option(
        engine=index,
        cycles=cycles,
        energy=cost.energy * sub.energy_factor,
        fetch=fetch,
        memory=cost.memory,
        fetch_memory=cost.weights if fetch else 0,
        layout=flow.name,
        mapping=cost.mapping,
        proven=cost.proven,
    )
