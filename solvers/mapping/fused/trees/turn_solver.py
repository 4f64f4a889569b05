"""The least energy of one layer's turns, solved as an ordinary layer and kept by the room that it uses.

An optimum that was found with some room and uses less of it is the optimum for every room in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import CostModel
from tilewright.formulation.mapping.evaluator import nest_of
from tilewright.formulation.mapping.fused.occupancy import occupied
from tilewright.formulation.mapping.mapping import Mapping, Storage
from tilewright.formulation.mapping.problem import state_problem
from tilewright.formulation.objective import Objective
from tilewright.formulation.result import Status
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.trees.turn_engine import (
    Homes,
    Rooms,
    TurnEngines,
    places_of,
    shared_levels,
)
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Operator


@dataclass(frozen=True)
class TurnCost:
    """The outcome of one shape of turns.

    Parameters
    ----------
    value : pJ of the mapping, of all turns of its operator; ``None`` where none was found
    bound : pJ, which no mapping in the same room goes below; ``None`` where nothing fits
    mapping : stores of tensors that start on chip left out
    rooms, used : bits per place that the solver had, and that the mapping takes
    """

    value: Fraction | None
    bound: Fraction | None
    mapping: Mapping | None
    rooms: Rooms
    used: Rooms | None

    def speaks_of(self, rooms: Rooms) -> bool:
        """Whether it is the outcome for other rooms, too."""
        if not _within(rooms, self.rooms):
            return False
        if self.bound is None:
            return True
        return self.value == self.bound and self.used is not None and _within(self.used, rooms)


def _within(rooms: Rooms, others: Rooms) -> bool:
    return all(
        other is None or (room is not None and room <= other)
        for room, other in zip(rooms, others, strict=True)
    )


Known = dict[tuple[Operator, Homes], list[TurnCost]]


@dataclass
class TurnMemory:
    """What is known of turns, which searches of several groups share; one for each machine."""

    _machines: list[tuple[Engine, Known]] = field(default_factory=list)

    def of(self, engine: Engine) -> Known:
        """What is known on a machine."""
        for other, known in self._machines:
            if other == engine:
                return known
        self._machines.append((engine, {}))
        return self._machines[-1][1]


@dataclass
class TurnSolver:
    """Solves turns on one machine.

    Parameters
    ----------
    engine, model : the machine and its cost model
    objective : of the layer problems
    factors, storage : the space of every turn's mapping
    limits : of the whole search
    outcomes : what is known already, of the same machine and space

    Attributes
    ----------
    is_cut : whether a limit ended the search of a turn that has a mapping, which may not be the best
    """

    engine: Engine
    model: CostModel
    objective: Objective
    factors: str | None
    storage: str | None
    limits: Limits
    outcomes: Known = field(default_factory=dict)
    solves: int = 0
    is_cut: bool = False

    def __post_init__(self) -> None:
        self.engines = TurnEngines(self.engine)
        self.places = places_of(self.engine, shared_levels(self.engine))

    def cost(self, operator: Operator, homes: Homes, rooms: Rooms) -> TurnCost:
        """The least energy in some rooms; raises ``LimitReachedError`` once the search must end."""
        outcome = self.known(operator, homes, rooms)
        if outcome is None:
            self.limits.check()
            outcome = self._solved(operator, homes, rooms)
            self.outcomes.setdefault((operator, homes), []).append(outcome)
        return outcome

    def known(self, operator: Operator, homes: Homes, rooms: Rooms) -> TurnCost | None:
        """The same if it follows from what is solved already."""
        outcomes = self.outcomes.get((operator, homes), ())
        return next((outcome for outcome in outcomes if outcome.speaks_of(rooms)), None)

    def least(self, operator: Operator, homes: Homes, rooms: Rooms) -> Fraction:
        """No mapping takes less, as far as is known: in more room the least is no more; 0 if nothing is."""
        outcomes = self.outcomes.get((operator, homes), ())
        bounds = (o.bound for o in outcomes if o.bound is not None and _within(rooms, o.rooms))
        return max(bounds, default=Fraction(0))

    def _solved(self, operator: Operator, homes: Homes, rooms: Rooms) -> TurnCost:
        engine = self.engines.derived(homes, rooms)
        self.solves += 1
        problem = state_problem(operator, engine, self.objective, self.model, (), self.factors, self.storage)
        # The gap that is asked for is that of the group; turns are solved to the end.
        result = solve(problem, "branch", replace(self.limits.share(), gap=0.0))
        if result.status is Status.INFEASIBLE:
            return TurnCost(None, None, None, rooms, None)
        if result.answer is None or result.evaluation is None:
            self.limits.check()
            return TurnCost(None, result.bound or Fraction(0), None, rooms, None)
        nest = nest_of(operator, engine, result.answer)
        held = {(room.level, room.part): room.bits for room in occupied(engine, nest, "", (), frozenset())}
        used = tuple(held.get((self.engine.levels[index].name, part), 0) for index, part in self.places)
        started = {role for role, _ in homes}
        outermost = engine.levels[0].name
        nodes = tuple(
            node
            for node in result.answer.nodes
            if not (
                isinstance(node, Storage)
                and node.level == outermost
                and operator.tensor(node.tensor).role in started
            )
        )
        bound = result.bound if result.bound is not None else Fraction(0)
        self.is_cut |= bound < result.evaluation.energy
        return TurnCost(result.evaluation.energy, bound, Mapping(nodes), rooms, used)
