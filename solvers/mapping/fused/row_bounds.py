"""Bounds of skeletons by solved turns: where all turns of a layer are alike, their optimum with all room.

A layer's turns are solved for the starts of its tensors that its own bound allows, the most promising first,
until one takes no more than all others do at least.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, product

from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.first_bound import FirstBounds, LayerRuns
from tilewright.solvers.mapping.fused.turn_engine import Homes, Rooms, shared_levels
from tilewright.solvers.mapping.fused.turn_solver import TurnSolver
from tilewright.workloads.mapping.operator import Role


@dataclass(order=True)
class _Start:
    least: Fraction
    number: int
    homes: Homes = field(compare=False)
    moved: Fraction = field(compare=False)
    solved: bool = field(compare=False, default=False)


@dataclass
class RowBounds:
    """Bounds of layers' turns, each solved as far as somebody asks for it.

    Parameters
    ----------
    first : their bounds from trip counts
    engine, solver : the machine, and what solves turns on it
    rooms : all room of the machine
    """

    first: FirstBounds
    engine: Engine
    solver: TurnSolver
    rooms: Rooms
    _starts: dict[LayerRuns, list[_Start]] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)

    def is_settled(self, runs: LayerRuns) -> bool:
        """Whether solving more of a layer's turns would tell nothing new."""
        if not runs.exact:
            return True
        starts = self._waiting(runs)
        return not starts or starts[0].solved

    def least(self, runs: LayerRuns) -> Fraction | None:
        """What a layer's turns are known to take at least; ``None`` where nothing fits."""
        least = self.first.least(runs)
        if not runs.exact:
            return least
        starts = self._waiting(runs)
        return max(least, starts[0].least) if starts else None

    def sum(self, layers: Sequence[LayerRuns], bound: Fraction) -> Fraction | None:
        """The same of several layers together, and no less than what is known of them otherwise."""
        total = Fraction(0)
        for runs in layers:
            least = self.least(runs)
            if least is None:
                return None
            total += least
        return max(bound, total)

    def advance(self, runs: LayerRuns) -> None:
        """Solve a layer's turns for the start of its tensors that may be the best."""
        starts = self._waiting(runs)
        _, turn = self.first.operators(runs)
        outcome = self.solver.cost(turn, starts[0].homes, self.rooms)
        start = heapq.heappop(starts)
        if outcome.bound is not None:
            exact = runs.runs * outcome.bound + start.moved
            heapq.heappush(starts, _Start(exact, next(self._numbers), start.homes, start.moved, True))

    def _waiting(self, runs: LayerRuns) -> list[_Start]:
        if runs not in self._starts:
            self._starts[runs] = self._options(runs)
        return self._starts[runs]

    def _options(self, runs: LayerRuns) -> list[_Start]:
        """Where a layer's tensors may start, per role, with what each costs at least."""
        whole, turn = self.first.operators(runs)
        passed = dict(runs.passed)
        levels: dict[Role, set[int]] = {}
        for tensor in turn.tensors:
            role = tensor.role
            own = {passed[tensor.name]} if tensor.name in passed else {0, *self._residences(role)}
            levels[role] = levels[role] & own if role in levels else own
        starts: list[_Start] = []
        for chosen in product(*(sorted(own) for own in levels.values())):
            homes = tuple(sorted((role, home) for role, home in zip(levels, chosen, strict=True) if home))
            moved = sum(
                (
                    self.first.moved(whole.tensor(tensor.name), whole, dict(homes)[tensor.role])
                    for tensor in turn.tensors
                    if tensor.name not in passed and tensor.role in dict(homes)
                ),
                Fraction(0),
            )
            inside = self.first.engines.operations(turn)
            for tensor in turn.tensors:
                inside += self.first.engines.least_energy(turn, tensor, homes)
            starts.append(_Start(runs.runs * inside + moved, next(self._numbers), homes, moved))
        heapq.heapify(starts)
        return starts

    def _residences(self, role: Role) -> list[int]:
        """Levels in which a tensor from outside may be resident."""
        levels: list[int] = []
        for index in range(1, shared_levels(self.engine) + 1):
            if role in self.engine.levels[index].keeps:
                levels.append(index)
            if role in self.engine.levels[index].keeps - self.engine.levels[index].may_bypass:
                break  # a resident does not pass over a level that must store it
        return levels
