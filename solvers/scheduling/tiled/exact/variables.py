"""The decisions of a round plan as variables of a CP-SAT model."""

from __future__ import annotations

from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.rounds import Rounds

Literal = cp_model.IntVar


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
