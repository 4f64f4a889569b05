"""Large neighbourhoods on a whole network, from what `atomic` starts with.

Three kinds of neighbourhoods take turns, those that gained most for their time more often:

``sizes``     two or three layers that follow each other get other sizes of atoms together
``places``    the tasks of some rounds in a row exchange their engines, the others stay: CP-SAT finds the
              least bytes times hops between tasks
``transfers`` the plan's transfers are smoothed on with another seed

What a neighbourhood proposes is completed, smoothed and judged by the evaluator, and kept if the objective
is no worse.  A proof of a neighbourhood is none of the plan.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np

from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.planning import Heuristic, quiet_end
from tilewright.heuristics.scheduling.tiled.refining import Judged, SizeMoves, Sizes, losses
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.solvers.scheduling.tiled.placing.problem import flows_of
from tilewright.solvers.scheduling.tiled.placing.windows import TaskRounds

KINDS = ("sizes", "places", "transfers")


@dataclass
class _Turns:
    """Which kind of neighbourhood is next: by what each gained per second, all now and then."""

    gained: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))

    def next(self, random_numbers: random.Random) -> str:
        rate = [(self.gained[kind] + 1e-4) / (self.spent[kind] + 1.0) for kind in KINDS]
        least = 0.1 * sum(rate)
        return random_numbers.choices(KINDS, [gain + least for gain in rate])[0]

    def note(self, kind: str, gain: float, seconds: float) -> None:
        self.gained[kind] += gain
        self.spent[kind] += seconds


@dataclass
class _State:
    """Where the search stands: sizes, their plan as smoothed once, and the best plan of all."""

    sizes: Sizes
    base: Judged
    best: Judged


@dataclass(frozen=True)
class LargeNeighbourhoods(Heuristic):
    """Large neighbourhoods in sizes, places and transfers, from what atomic starts with."""

    window: int = option(2, "rounds that are placed together", low=1, high=32)
    proof: float = option(4.0, "seconds for such a window at most", low=0.1, high=3600.0)
    steps: int = option(100_000, "neighbourhoods at most", low=0, high=10**7)
    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)

    name = "lns"

    def solve(self, search: TiledSearch) -> Outcome:
        """Start as `atomic` does, then visit neighbourhoods until a limit strikes."""
        with quiet_end(search):
            return self._visited(search)
        return Outcome()

    def _visited(self, search: TiledSearch) -> Outcome:
        stages = Stages(search, self.name)
        begun = AtomicDataflow(room=self.room).start(search, stages)
        if begun is None:
            return Outcome(message="no time for a first plan")
        stages = replace(stages, region=begun.region)
        state = _State(begun.sizes, begun.judged, stages.settled(begun.judged))
        numbers, turns = random.Random(search.limits.seed), _Turns()
        menu = begun.moves(search.problem.problem, self.room)
        for turn in range(self.steps):
            if search.done:
                break
            kind = turns.next(numbers)
            before, clock = state.best[0], time.monotonic()
            if kind == "transfers":
                state.best = stages.settled(state.best, seed=numbers.randrange(1 << 30))
            else:
                if kind == "sizes":
                    moved = self._sizes(stages, state, menu, (begun.order, begun.mapping), numbers)
                else:
                    moved = self._places(stages, state, numbers, turn)
                if moved is not None and moved[1][0] <= state.base[0]:
                    state.sizes, state.base = moved
                    state.best = min(state.best, stages.settled(state.base), key=itemgetter(0))
            turns.note(kind, float(1 - state.best[0] / before), time.monotonic() - clock)
        return Outcome()

    def _sizes(
        self, stages: Stages, state: _State, menu: SizeMoves, how: tuple[str, str], numbers: random.Random
    ) -> tuple[Sizes, Judged] | None:
        """Layers in a row, the first drawn by what it loses."""
        problem, answer = stages.search.problem.problem, state.base[1]
        weights = losses(answer, problem.evaluate(answer.dag, answer.plan), problem.machine.engines)
        first = numbers.choices(range(len(weights)), weights)[0]
        units = range(first, min(len(weights), first + numbers.choice((2, 3))))
        sizes = menu.redrawn(state.sizes, units, numbers)
        planned = None if sizes is None else stages.of_sizes(sizes, *how, f"{self.name} sizes")
        return None if sizes is None or planned is None else (sizes, planned)

    def _places(
        self, stages: Stages, state: _State, numbers: random.Random, turn: int
    ) -> tuple[Sizes, Judged] | None:
        """Rounds in a row, the last drawn by what its step takes beyond its longest task."""
        search, answer = stages.search, state.base[1]
        problem, plan = search.problem.problem, answer.plan
        result = problem.evaluate(answer.dag, plan)
        longest = np.zeros(plan.steps)
        np.maximum.at(longest, plan.first, answer.dag.cycles)
        lost = np.maximum(0.0, np.diff(result.step_start) - longest) + 1e-3
        last = numbers.choices(range(plan.steps), lost.tolist())[0]
        rounds = range(max(0, last - self.window + 1), last + 1)
        flows = flows_of(answer.dag, plan.first, from_dram=False)  # ports are chosen by transfer routing
        limits = replace(search.limits.share(longest=self.proof), threads=1, seed=turn)
        placed, _ = TaskRounds(problem.machine, flows, plan.first).replaced(
            rounds, plan.engine, limits, exchange=True
        )
        if (placed == plan.engine).all():
            return None
        return state.sizes, stages.placed(answer.dag, plan.first, placed, f"{self.name} places")
