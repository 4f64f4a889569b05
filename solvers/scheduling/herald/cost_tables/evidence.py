"""What a layer costs under a dataflow, counted from the mapping that is named as evidence.

Costs come from a file of earlier calls or from a document; neither is trusted.  The mapping with a cost
is evaluated by the one evaluator, under the rules of the dataflow and inside the space that `machine_sizes`
walks through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.demands.constraints import evaluate_under, parse_constraints
from tilewright.formulation.mapping.demands.dataflow import style_demands
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.formulation.mapping.membership import outside as outside_of
from tilewright.formulation.mapping.problem import IMPERFECT, layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.fitted import fitted
from tilewright.hardware.mapping.styles import MEMORY
from tilewright.hardware.scheduling.own_engine import Flow, OwnEngine
from tilewright.solvers.mapping.machine_sizes import MachineSize
from tilewright.workloads.mapping.operator import Operator, Role


@dataclass(frozen=True, slots=True)
class Cost:
    """What a layer costs at one machine size.

    Parameters
    ----------
    energy : pJ
    cycles : of the system's clock, without the first fetch from DRAM
    memory, weights : bytes that its tiles, and its weights' tile alone, take in the global memory
    mapping : that costs this
    proven : whether no mapping of the space is better
    """

    energy: Fraction
    cycles: int
    memory: int
    weights: int
    mapping: Mapping
    proven: bool = True


def counted_cost(
    operator: Operator, flow: Flow, point: MachineSize, memory: int, mapping: Mapping, where: str = "mapping"
) -> Cost:
    """The cost that the evaluator finds for a mapping.

    Parameters
    ----------
    memory : bytes of the global memory that the layer's tiles may take

    Raises
    ------
    InputError : for a mapping that is illegal under the dataflow, or outside the space of cost tables
    """
    cost, fault = _counted(operator, flow, point, memory, mapping)
    if cost is None:
        raise InputError(where, None, fault)
    return cost


@lru_cache(maxsize=1 << 14)
def _counted(
    operator: Operator, flow: Flow, point: MachineSize, memory: int, mapping: Mapping
) -> tuple[Cost | None, str]:
    """The cost, or what is wrong with the mapping."""
    engine = fitted(flow.engine_of(point.array, point.bandwidth, memory), operator)
    demands = parse_constraints(style_demands(flow.fixes(operator)), operator, engine)
    try:
        evaluation = evaluate_under(operator, engine, cost_model(engine.cost_model), demands, mapping)
    except InputError as error:
        return None, error.message
    if evaluation.violations:
        return None, f"illegal: {evaluation.violations[0]}"
    if isinstance(flow, OwnEngine):
        space = layer_problem(operator, engine, parse_objective("edp"), factors=IMPERFECT).space
        outside = outside_of(space, mapping)
    else:
        outside = _outside(operator, mapping)
    if outside is not None:
        return None, f"outside the space of cost tables: {outside}"
    weights = {tensor.name for tensor in operator.tensors if tensor.role is Role.WEIGHT}
    cycles = flow.system_cycles(evaluation.cycles) if isinstance(flow, OwnEngine) else evaluation.cycles
    held, held_weights = (_held(operator, engine, evaluation, only) for only in (None, weights))
    return Cost(evaluation.energy, cycles, held, held_weights, mapping), ""


def _held(operator: Operator, engine: Engine, evaluation: Evaluation, tensors: set[str] | None) -> int:
    """Bytes that tiles take in the global memory, which is the level next to DRAM."""
    memory = engine.levels[1]
    roles = {tensor.name: tensor.role for tensor in operator.tensors}
    rows = [row for row in evaluation.accesses if row.level == memory.name]
    bits = sum(
        row.tile * engine.width(memory, roles[row.tensor])
        for row in rows
        if tensors is None or row.tensor in tensors
    )
    return -(-bits // 8)


def _outside(operator: Operator, mapping: Mapping) -> str | None:
    """Why a mapping is not among those that cost tables choose from, if it is not.

    Tensors of a level begin to live at one point, every tile is the smallest of its trip count, and a tile in
    the global memory is the whole dimension in 1, 2, 4, 8 ... parts.
    """
    tiles = dict(operator.bounds)
    begun: list[str] = []
    for node in mapping.nodes:
        if isinstance(node, Storage):
            if node.level in begun[:-1]:
                return f"{node.tensor} begins to live in {node.level} apart from other tensors"
            if node.level not in begun:
                begun.append(node.level)
                if node.level == MEMORY and (dim := _uncommon(operator, tiles)):
                    return f"tile {tiles[dim]} of {dim} in {MEMORY}"
            continue
        outer, trips = tiles[node.dim], -(-tiles[node.dim] // node.tile)
        if node.tile != -(-outer // trips):
            return f"tile {node.tile} of {node.dim} inside {outer}"
        tiles[node.dim] = node.tile
        begun.append("")  # a loop: what lives below it begins at another point
    missing = [tensor.name for tensor in operator.tensors if not _stored(mapping, tensor.name)]
    return f"{missing[0]} is not stored in {MEMORY}" if missing else None


def _stored(mapping: Mapping, tensor: str) -> bool:
    return any(isinstance(n, Storage) and (n.tensor, n.level) == (tensor, MEMORY) for n in mapping.nodes)


def _uncommon(operator: Operator, tiles: dict[str, int]) -> str | None:
    for dim, bound in operator.bounds.items():
        parts: Sequence[int] = [-(-bound // (1 << power)) for power in range(bound.bit_length() + 1)]
        if tiles[dim] not in parts:
            return dim
    return None
