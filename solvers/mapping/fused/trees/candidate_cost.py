"""What a candidate costs: the traffic of its shared stores, and its turns in the room that is left."""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.mapping.fused.tree import Leaf
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.solvers.mapping.fused.trees.candidate import Candidate, TurnKind
from tilewright.solvers.mapping.fused.trees.candidates import CandidateSpace
from tilewright.solvers.mapping.fused.trees.turn_engine import Homes, Rooms
from tilewright.solvers.mapping.fused.trees.turn_solver import TurnSolver


def cost_of(
    space: CandidateSpace,
    solver: TurnSolver,
    candidate: Candidate,
    leaves: dict[str, Leaf] | None,
    most: Fraction | None = None,
) -> Fraction | None:
    """Traffic and the least energy of all turns; ``None`` where something does not fit.

    Parameters
    ----------
    space : the candidates of a group on its machine
    solver : of their turns
    candidate : one of the space
    leaves : filled with the mappings found in the room that is left; ``None`` to assume that residents
        take no room
    most : pJ; ``None`` is the answer, too, where it is clear on the way that it takes as much
    """
    skeleton = candidate.skeleton
    asked: list[tuple[str, TurnKind, Homes, Rooms]] = []
    for layer, kinds in skeleton.kinds.items():
        homes = space.homes(candidate, layer)
        # What homes take is the same for all candidates of a skeleton.
        rooms: Rooms | None = skeleton.left[layer] if leaves is None else space.rooms(candidate, layer)
        if homes is None or rooms is None:
            return None
        asked += [(layer, kind, homes, rooms) for kind in kinds]
    known = [kind.number * solver.least(kind.operator, homes, rooms) for _, kind, homes, rooms in asked]
    total = skeleton.parts + candidate.traffic + sum(known, Fraction(0))
    sized: dict[str, list[tuple[tuple[int, ...], Mapping]]] = {}
    for (layer, kind, homes, rooms), before in zip(asked, known, strict=True):
        if most is not None and total >= most:
            return None
        outcome = solver.cost(kind.operator, homes, rooms)
        cost = outcome.bound if leaves is None else outcome.value
        if outcome.bound is None or cost is None:
            return None
        total += kind.number * cost - before
        if leaves is not None:
            if outcome.mapping is None:
                return None
            sized.setdefault(layer, []).append((kind.sizes, outcome.mapping))
    if leaves is not None:
        leaves |= {layer: Leaf(layer, own[0][1], tuple(own[1:])) for layer, own in sized.items()}
    return total
