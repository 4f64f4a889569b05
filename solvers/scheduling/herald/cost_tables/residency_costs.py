"""Results that may stay in the global memory (Herald, section IV-A, step 7): what that saves, and which may.

An option's energy has all accesses of its mapping.  Where a result stays, its elements move within the global
memory: what is charged there stays as it is, and what they cost at DRAM is taken off.  So an option is split
into the energy that it has in any case and what is added where inputs are fetched from DRAM, or the result
is written to it (partial sums that go there and back included).
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, replace
from fractions import Fraction

import networkx as nx

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.cost.registry import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem, Task
from tilewright.hardware.mapping.fitted import fitted
from tilewright.hardware.scheduling.herald.system import SubAccelerator, System
from tilewright.hardware.scheduling.own_engine import Flow
from tilewright.solvers.scheduling.herald.cost_tables.costs import CostTable, tile_memory
from tilewright.workloads.mapping.operator import Operator, Role
from tilewright.workloads.network import Network


@dataclass(frozen=True, slots=True)
class NetworkBoundary:
    """Layers of a network whose data do not only come from, or only go to, layers that are scheduled."""

    reading: frozenset[str]
    leaving: frozenset[str]


def network_boundary(network: Network) -> NetworkBoundary:
    """Layers that also read the network's inputs, and layers whose results also leave it.

    Layers that do not multiply and accumulate are passed over, as everywhere in these problems.
    """
    graph = network.graph
    fed: set[str] = set()  # layers into which something flows that no scheduled layer makes
    for layer in network.layers:
        linked = {link.operand for link in network.links if link.consumer == layer.name and link.producer}
        outside = {
            link.operand for link in network.links if link.consumer == layer.name and not link.producer
        }
        read = {tensor.name for tensor in layer.operator.tensors if tensor.role is Role.INPUT}
        before = [name for name in graph.predecessors(layer.name) if not _is_mac(network, name)]
        if outside or read - linked or any(name in fed for name in before):
            fed.add(layer.name)
    leaving: set[str] = set()
    for name in reversed([*nx.topological_sort(graph)]):
        after = [other for other in graph.successors(name) if not _is_mac(network, other)]
        if name in network.outputs or any(other in leaving for other in after):
            leaving.add(name)
    return NetworkBoundary(frozenset(fed), frozenset(leaving))


def _is_mac(network: Network, name: str) -> bool:
    return bool(network.graph.nodes[name]["layer"].operator.is_mac)


def dram_energies(
    operator: Operator, flow: Flow, sub: SubAccelerator, system: System, mapping: Mapping
) -> tuple[Fraction, Fraction]:
    """What a mapping spends at DRAM on the layer's inputs and on its result, in pJ.

    Parameters
    ----------
    operator : of the layer
    flow : the dataflow
    sub, system : where it runs
    mapping : of the layer there
    """
    engine = fitted(flow.engine_of(flow.array(sub.pes), sub.bandwidth, tile_memory(sub, system)), operator)
    evaluation = evaluate_mapping(operator, engine, cost_model(engine.cost_model), mapping)
    level = engine.levels[0]
    spent = {Role.INPUT: Fraction(0), Role.WEIGHT: Fraction(0), Role.OUTPUT: Fraction(0)}
    roles = {tensor.name: tensor.role for tensor in operator.tensors}
    for row in evaluation.accesses:
        if row.level == level.name:
            role = roles[row.tensor]
            written = (row.fills + row.updates) * level.write_energy_of(role)
            spent[role] += row.reads * level.read_energy_of(role) + written
    return spent[Role.INPUT] * sub.energy_factor, spent[Role.OUTPUT] * sub.energy_factor


class Spills:
    """Energy at DRAM of a layer's inputs and result, from the mappings behind a cost table."""

    def __init__(self, system: System, metric: str, table: CostTable) -> None:
        self._system, self._metric, self._table = system, metric, table
        self._known: dict[tuple[Operator, str, Mapping], tuple[Fraction, Fraction]] = {}

    def result_bytes(self, operator: Operator) -> int:
        """Bytes of a layer's result in the global memory.

        As wide as the model states, or as the widest engine has them.
        """
        result = operator.output
        return -(-result.footprint(operator.bounds) * (result.bits or self._system.result_bits) // 8)

    def split(self, operator: Operator, option: Option) -> Option:
        """The option with what it costs at DRAM apart from the rest."""
        sub = self._system.subs[option.engine]
        flow = next(flow for flow in sub.dataflows if flow.name == option.layout)
        cost = self._table.cost(operator, flow, sub, self._system, self._metric)
        assert cost is not None  # the option was made of it
        key = operator, flow.name, cost.mapping
        if key not in self._known:
            self._known[key] = dram_energies(operator, flow, sub, self._system, cost.mapping)
        inputs, output = self._known[key]
        return replace(
            option, energy=option.energy - inputs - output, input_spill=inputs, output_spill=output
        )


def may_reside(
    problem: SchedulingProblem,
    operators: MappingABC[tuple[str, str], Operator],
    boundaries: MappingABC[str, NetworkBoundary],
    spills: Spills,
    limits: Limits,
) -> SchedulingProblem:
    """The problem in which results may stay in the shared memory.

    A result that leaves the network is written in any case; an input that comes from outside is fetched in
    any case; what does not fit the memory together with its own layer never stays.

    Parameters
    ----------
    operators : by network and layer
    boundaries : by network

    Raises
    ------
    LimitReachedError : where a limit struck
    """
    sizes = []
    for index, task in enumerate(problem.tasks):
        operator = operators[task.network, task.layer]
        need = min((option.memory for option in task.options), default=0)
        size = spills.result_bytes(operator)
        fits = problem.memory is None or size + need <= problem.memory
        sizes.append(size if fits and problem.after[index] else 0)
    tasks: list[Task] = []
    for index, task in enumerate(problem.tasks):
        if limits.expired:
            raise LimitReachedError
        own = [spills.split(operators[task.network, task.layer], option) for option in task.options]
        need = min((option.memory for option in own), default=0)
        read = [sizes[first] for first in {*problem.before[index]}]
        fits = problem.memory is None or sum(read) + need <= problem.memory
        if not read or not all(read) or not fits or task.layer in boundaries[task.network].reading:
            own = [replace(o, energy=o.energy + o.input_spill, input_spill=Fraction(0)) for o in own]
        if not sizes[index] or task.layer in boundaries[task.network].leaving:
            own = [replace(o, energy=o.energy + o.output_spill, output_spill=Fraction(0)) for o in own]
        tasks.append(replace(task, options=tuple(own), result_bytes=sizes[index]))
    return replace(problem, tasks=tuple(tasks))
