"""Large neighbourhoods on a whole network, from what `atomic` starts with.

Three kinds of neighbourhoods take turns, those that gained most for their time more often:

``sizes``     two or three layers that follow each other get other sizes of atoms together
``places``    the tasks of some rounds in a row are placed anew, the others stay: CP-SAT finds the least
              bytes times hops, distances on the mesh as sums of absolute differences of coordinates
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
import numpy.typing as npt
from ortools.sat.python import cp_model

from tilewright import __version__
from tilewright.formulation.limits import Limits
from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.foundation.options import option
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.planning import quiet_end
from tilewright.heuristics.scheduling.tiled.refining import Judged, SizeMoves, Sizes, losses
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.solvers.cpsat_run import CpSatRun

Ints = npt.NDArray[np.int32]
KINDS = ("sizes", "places", "transfers")


def replaced(
    dag: AtomicDag, machine: TiledMachine, engine: Ints, step: Ints, rounds: range, limits: Limits
) -> tuple[Ints, bool] | None:
    """Engines with those of some rounds chosen anew for the least bytes times hops between tasks.

    Distances are those of a mesh.  Blocks from DRAM count nothing: their ports are completion's choice.

    Parameters
    ----------
    rounds : of which the tasks move; in each, tasks keep the engines of that round among themselves

    Returns
    -------
    engines, and whether no other choice has less; ``None`` where time is up before any is found
    """
    mine = np.flatnonzero((step >= rounds.start) & (step < rounds.stop))
    local = {int(t): i for i, t in enumerate(mine)}
    model = cp_model.CpModel()
    x = [model.new_int_var(0, machine.width - 1, "") for _ in mine]
    y = [model.new_int_var(0, machine.height - 1, "") for _ in mine]
    for r in rounds:
        tasks = [local[int(t)] for t in mine[step[mine] == r]]
        free = sorted(int(engine[mine[i]]) for i in tasks)
        rows = []
        for i in tasks:
            row = [model.new_bool_var("") for _ in free]
            rows.append(row)
            model.add_exactly_one(row)
            model.add(x[i] == sum(machine.position(e)[0] * b for e, b in zip(free, row, strict=True)))
            model.add(y[i] == sum(machine.position(e)[1] * b for e, b in zip(free, row, strict=True)))
            for e, b in zip(free, row, strict=True):
                model.add_hint(b, int(engine[mine[i]]) == e)
        for k in range(len(free)):
            model.add_exactly_one(row[k] for row in rows)
    cost = []
    for ends, size in _traffic(dag, local).items():
        for axis, own in enumerate((x, y)):
            begin, end = (
                own[local[task]] if task in local else machine.position(int(engine[task]))[axis]
                for task in ends
            )
            reach = machine.width if axis == 0 else machine.height
            way = model.new_int_var(0, reach - 1, "")
            model.add(way >= begin - end)
            model.add(way >= end - begin)
            cost.append(size * way)
    model.minimize(sum(cost))
    run = CpSatRun(model, limits, lambda: limits.expired, workers=1)
    status = run.solve()
    if not run.has_solution:
        return None
    placed = engine.copy()
    for moved, i in local.items():
        placed[moved] = run.solver.value(y[i]) * machine.width + run.solver.value(x[i])
    return placed, status == cp_model.OPTIMAL


def _traffic(dag: AtomicDag, local: dict[int, int]) -> dict[tuple[int, int], int]:
    """Bytes from task to task where either moves, each block once per pair."""
    reader = np.repeat(np.arange(dag.tasks), np.diff(dag.read_starts))
    made = dag.block_parent[dag.reads]
    moves = np.zeros(dag.tasks + 1, dtype=np.bool_)
    moves[list(local)] = True
    chosen = np.flatnonzero((made >= 0) & (moves[made] | moves[reader]))
    traffic: dict[tuple[int, int], int] = {}
    for k in chosen.tolist():
        pair = int(made[k]), int(reader[k])
        traffic[pair] = traffic.get(pair, 0) + int(dag.block_bytes[dag.reads[k]])
    return traffic


@dataclass
class _Turns:
    """Which kind of neighbourhood is next: by what each gained per second, all now and then."""

    gained: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))

    def next(self, random_numbers: random.Random) -> str:
        rate = [(self.gained[kind] + 1e-4) / (self.spent[kind] + 1.0) for kind in KINDS]
        floor = 0.1 * sum(rate)
        return random_numbers.choices(KINDS, [gain + floor for gain in rate])[0]

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
class LargeNeighbourhoods:
    """Large neighbourhoods in sizes, places and transfers, from what atomic starts with."""

    window: int = option(2, "rounds that are placed together", low=1, high=32)
    proof: float = option(4.0, "seconds for such a window at most", low=0.1, high=3600.0)
    steps: int = option(100_000, "neighbourhoods at most", low=0, high=10**7)
    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)

    name = "lns"
    exact = False

    @property
    def version(self) -> str:
        return __version__

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
        judged, sizes, *how = begun
        state = _State(sizes, judged, stages.settled(judged))
        numbers, turns = random.Random(search.limits.seed), _Turns()
        menu = SizeMoves(search.problem.problem, room=self.room)
        for turn in range(self.steps):
            if search.done:
                break
            kind = turns.next(numbers)
            before, clock = state.best[0], time.monotonic()
            if kind == "transfers":
                state.best = stages.settled(state.best, seed=numbers.randrange(1 << 30))
            else:
                if kind == "sizes":
                    moved = self._sizes(stages, state, menu, (how[0], how[1]), numbers)
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
        placed = replaced(
            answer.dag,
            problem.machine,
            plan.engine,
            plan.first,
            range(max(0, last - self.window + 1), last + 1),
            replace(search.limits.share(longest=self.proof), seed=turn),
        )
        if placed is None:
            return None
        return state.sizes, stages.placed(answer.dag, plan.first, placed[0], f"{self.name} places")
