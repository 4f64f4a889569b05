"""Large neighbourhoods on a whole network, from what `atomic` or `layouts` starts with.

Three kinds of neighbourhoods take turns, with time in proportion to what they gained in a second:

``sizes``     up to three layers that follow each other get other sizes of atoms together; or many stretches
              of layers get other layouts
``places``    the tasks of some rounds in a row exchange their engines, the others stay: CP-SAT finds the
              least bytes times hops between tasks
``transfers`` the plan's transfers are smoothed on with another seed

What a neighbourhood proposes is completed, smoothed and judged by the evaluator, and kept if the objective
is no worse.  A proof of a neighbourhood is none of the plan.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.layouts.method import SMOOTHING, LayoutStart
from tilewright.heuristics.scheduling.tiled.layouts.stretches import Stretches
from tilewright.heuristics.scheduling.tiled.planning import Heuristic, quiet_end
from tilewright.heuristics.scheduling.tiled.refining import Judged, Sizes, losses
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.heuristics.scheduling.tiled.starts import Start
from tilewright.heuristics.scheduling.tiled.streams.method import StreamStart
from tilewright.solvers.scheduling.tiled.placing.problem import flows_of
from tilewright.solvers.scheduling.tiled.placing.windows import TaskRounds

State = TypeVar("State")

LEAST = 0.03
"""Part of the time that every kind has, whatever it gains."""

KINDS = ("sizes", "places", "transfers")

WINDOW = 2
"""Rounds that are placed together."""

TOGETHER = (1, 1, 1, 1, 2, 3)
"""Layers in a row that get other sizes, drawn from these: a change of several is rarely better in all."""

PROOF, PART = 4.0, 0.05
"""Seconds for the proof of such a window at most, and the part of the time left."""


FADING = 0.9
"""What a visit counts of the one after it: a gain of twenty visits ago says little of the next one."""

HEAD_START = 1.0, 20
"""Seconds, and mean visits where those take less, for which each way is taken to have gained a little."""

HOPED = 1e-4
"""Part of the objective that each way is taken to have gained then."""


@dataclass
class Yield:
    """What one of several ways to go on has brought.

    Parameters
    ----------
    gained : part of the objective, in visits that count less the longer they are ago
    recent : seconds of these visits, which count as much
    spent, visits : seconds of all visits, and their number
    """

    gained: float = 0.0
    recent: float = 0.0
    spent: float = 0.0
    visits: int = 0

    def rate(self, head_start: float) -> float:
        """Gain per second, more than nothing for what was hardly tried."""
        return (self.gained + HOPED) / (self.recent + head_start)

    def note(self, gain: float, seconds: float) -> None:
        """Another visit."""
        self.gained = FADING * self.gained + gain
        self.recent = FADING * self.recent + seconds
        self.spent += seconds
        self.visits += 1


def next_turn(ways: Sequence[Yield], weights: Sequence[float] | None = None) -> int:
    """Which way is next, so that each has time in proportion to what it gains in a second, and all have some.

    Seconds count from a head start on, as those of gains do: what promises little comes late the first time,
    too.

    Parameters
    ----------
    weights : by which rates are multiplied; by default 1
    """
    visits, (seconds, several) = sum(way.visits for way in ways), HEAD_START
    head_start = min(seconds, several * sum(way.spent for way in ways) / visits) if visits else seconds
    head_start = max(head_start, 1e-6)
    rates = [way.rate(head_start) * (1.0 if weights is None else weights[i]) for i, way in enumerate(ways)]
    least = LEAST * sum(rates)
    return min(range(len(ways)), key=lambda i: (ways[i].spent + head_start) / (rates[i] + least))


class _Remake(Protocol[State]):
    """What plans of one kind are made from, and how it changes."""

    @property
    def state(self) -> State:
        """What the first plan was made from."""

    def visit(self, stages: Stages, state: State, base: Judged, source: str) -> tuple[State, Judged] | None:
        """The same with some layers changed, and its plan, smoothed from the one before; ``None`` where none
        of them changes, or an atom fits no buffer.
        """


class _Sizes:
    """Sizes of atoms, in the order and places of a start."""

    def __init__(self, start: Start, problem: TiledProblem, room: float, numbers: random.Random) -> None:
        self._start, self.state, self._problem = start, start.sizes, problem
        self._moves = start.moves(problem, room)
        self._numbers = numbers
        self._lost: tuple[AtomicPlan, list[float]] | None = None

    def visit(self, stages: Stages, state: Sizes, base: Judged, source: str) -> tuple[Sizes, Judged] | None:
        """Other sizes of layers in a row, the first drawn by what it loses."""
        if self._lost is None or self._lost[0] is not base[1]:
            self._lost = base[1], losses(self._problem, base[1])
        weights = self._lost[1]
        first = self._numbers.choices(range(len(weights)), weights)[0]
        units = range(first, min(len(weights), first + self._numbers.choice(TOGETHER)))
        sizes = self._moves.redrawn(state, units, self._numbers)
        if sizes is None:
            return None
        planned = stages.of_sizes(sizes, self._start.order, self._start.mapping, source, base[1])
        return None if planned is None else (sizes, planned)


class Neighbourhoods:
    """A plan and what lies near it.

    Parameters
    ----------
    stages : what makes plans; its search judges them
    start : a plan with the sizes, order and places, the layouts or the streams that it came from, or a plan
        alone, of which places and transfers change
    room : part of the buffer that an atom may need
    window : rounds that are placed together
    proof : seconds for such a window at most
    """

    def __init__(
        self,
        stages: Stages,
        start: Start | LayoutStart | StreamStart | Judged,
        *,
        room: float = 0.5,
        window: int = WINDOW,
        proof: float = PROOF,
    ) -> None:
        judged: Judged = start if isinstance(start, tuple) else start.judged
        self._stages = stages
        self._window, self._proof = window, proof
        self._numbers = random.Random(stages.search.limits.seed)
        self._remake: _Remake[Any] | None = None
        if isinstance(start, Start):
            self._stages = replace(stages, region=start.region, homes=start.homes)
            self._remake = _Sizes(start, stages.search.problem.problem, room, self._numbers)
        elif isinstance(start, LayoutStart):
            self._remake = Stretches(start.choice, start.state, self._numbers, SMOOTHING)
        elif isinstance(start, StreamStart):
            self._remake = start
        self._state = None if self._remake is None else self._remake.state
        self.best = judged
        kinds = [kind for kind in KINDS if kind != "sizes" or self._remake is not None]
        self.yields = {kind: Yield() for kind in kinds if kind != "transfers" or self._stages.level}
        self._count = 0

    def settle(self, calls: int | None = None) -> None:
        """Smooth the plan for as long as that gains anything, with so many calls at most."""
        self.best = self._stages.settled(self.best, calls=calls)

    def visit(self) -> None:
        """One neighbourhood; what it gains is offered."""
        kind = list(self.yields)[next_turn(list(self.yields.values()))]
        clock = self._stages.search.limits.clock
        before, begun = self.best[0], clock()
        self._count += 1
        if kind == "transfers":
            self.best = self._stages.settled(self.best, seed=self._numbers.randrange(1 << 30))
        else:
            moved = self._other_sizes() if kind == "sizes" else self._other_places()
            if moved is not None and moved[1][0] <= self.best[0]:
                self._state, self.best = moved
        gain = float(1 - self.best[0] / before) if before else 0.0
        self.yields[kind].note(gain, clock() - begun)

    def _other_sizes(self) -> tuple[Any, Judged] | None:
        """Other sizes or layouts of some layers."""
        if self._remake is None:
            return None
        return self._remake.visit(self._stages, self._state, self.best, f"{self._stages.name} sizes")

    def _other_places(self) -> tuple[Any, Judged] | None:
        """Rounds in a row, the last drawn by what its step takes beyond its longest task."""
        search, answer = self._stages.search, self.best[1]
        problem, plan = search.problem.problem, answer.plan
        result = problem.evaluate(answer.dag, plan)
        longest = np.zeros(plan.steps)
        np.maximum.at(longest, plan.first, answer.dag.cycles)
        lost = np.maximum(0.0, np.diff(result.step_start) - longest) + 1e-3
        last = self._numbers.choices(range(plan.steps), lost.tolist())[0]
        rounds = range(max(0, last - self._window + 1), last + 1)
        flows = flows_of(answer.dag, plan.first, from_dram=False)  # ports are chosen by transfer routing
        limits = replace(search.limits.share(PART, self._proof), threads=1, seed=self._count)
        placed, _ = TaskRounds(problem.machine, flows, plan.first).replaced(
            rounds, plan.engine, limits, exchange=True
        )
        if (placed == plan.engine).all():
            return None
        name = f"{self._stages.name} places"
        return self._state, self._stages.placed(answer.dag, plan.first, placed, name, answer)


@dataclass(frozen=True)
class LargeNeighbourhoods(Heuristic):
    """Large neighbourhoods in sizes, places and transfers, from what atomic starts with."""

    window: int = option(WINDOW, "rounds that are placed together", low=1, high=32)
    proof: float = option(PROOF, "seconds for such a window at most", low=0.1, high=3600.0)
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
        near = Neighbourhoods(stages, begun, room=self.room, window=self.window, proof=self.proof)
        near.settle()
        for _ in range(self.steps):
            if search.done:
                break
            near.visit()
        return Outcome()
