"""The decisions of a round plan as variables of a CP-SAT model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.rounds import Rounds

Literal = cp_model.IntVar


@dataclass(frozen=True, slots=True)
class Given:
    """What of a plan is given.

    Parameters
    ----------
    order, places : the round and the engine of each task, where they are given; places with an order alone
    open_rounds : tasks that the order puts into them may run in any of them, on any engine
    """

    order: Sequence[int] | None = None
    places: Sequence[int] | None = None
    open_rounds: range = range(0)

    def rounds(self, window: list[range]) -> list[range]:
        """Per task the rounds that it may run in, of those of its window."""
        if self.order is None:
            return window
        opened = self.open_rounds
        return [
            range(max(opened.start, free.start), min(opened.stop, free.stop))
            if r in opened
            else range(r, r + 1)
            for r, free in zip(self.order, window, strict=True)
        ]

    def engines(self, tasks: int, every: range) -> list[Sequence[int]]:
        """Per task the engines that it may run on, of all."""
        order, places = self.order, self.places
        return [
            every if places is None or order is None or order[task] in self.open_rounds else (places[task],)
            for task in range(tasks)
        ]


FREE = Given()


@dataclass(eq=False)
class PlanStatement:
    """The model and its variables; those that cannot be true are left out.

    Parameters
    ----------
    runs : (task, engine, round)
    held : (block, engine, round), from the round in which it is made or begins to arrive
    arrives : (block, engine, round)
    moves : (block, source place, target engine, round)
    written : (task, engine, port, round)
    """

    instance: RoundInstance
    rounds: Rounds
    runs: dict[tuple[int, int, int], Literal] = field(default_factory=dict)
    held: dict[tuple[int, int, int], Literal] = field(default_factory=dict)
    arrives: dict[tuple[int, int, int], Literal] = field(default_factory=dict)
    moves: dict[tuple[int, int, int, int], Literal] = field(default_factory=dict)
    written: dict[tuple[int, int, int, int], Literal] = field(default_factory=dict)

    @property
    def model(self) -> cp_model.CpModel:
        return self.rounds.model
