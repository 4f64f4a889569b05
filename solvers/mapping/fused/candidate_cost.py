"""What a candidate costs: the traffic of its shared stores, and its turns in the room that is left."""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.mapping.fused.tree import Leaf
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.solvers.mapping.fused.candidate import Candidate
from tilewright.solvers.mapping.fused.candidates import CandidateSpace
from tilewright.solvers.mapping.fused.turn_engine import Rooms
from tilewright.solvers.mapping.fused.turn_solver import TurnSolver


def cost_of(
    space: CandidateSpace, solver: TurnSolver, candidate: Candidate, leaves: dict[str, Leaf] | None
) -> Fraction | None:
    """Traffic and the least energy of all turns; ``None`` where something does not fit.

    Parameters
    ----------
    space : the candidates of a group on its machine
    solver : of their turns
    candidate : one of the space
    leaves : filled with the mappings found in the room that is left; ``None`` to assume that residents
        take no room
    """
    skeleton = candidate.skeleton
    total = skeleton.parts + candidate.traffic
    for layer, kinds in skeleton.kinds.items():
        homes = space.homes(candidate, layer)
        # What homes take is the same for all candidates of a skeleton.
        rooms: Rooms | None = skeleton.left[layer] if leaves is None else space.rooms(candidate, layer)
        if homes is None or rooms is None:
            return None
        sized: list[tuple[tuple[int, ...], Mapping]] = []
        for kind in kinds:
            outcome = solver.cost(kind.operator, homes, rooms)
            cost = outcome.bound if leaves is None else outcome.value
            if outcome.bound is None or cost is None:
                return None
            total += kind.number * cost
            if leaves is not None:
                if outcome.mapping is None:
                    return None
                sized.append((kind.sizes, outcome.mapping))
        if leaves is not None:
            leaves[layer] = Leaf(layer, sized[0][1], tuple(sized[1:]))
    return total
