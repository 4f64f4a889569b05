"""Some rounds placed anew, and all rounds of a plan window by window: better engines, and a bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.foundation.arrays import Int32s, Int64s, distinct
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.solvers.mapping.mip.child import Child
from tilewright.solvers.scheduling.tiled.linear import child_of
from tilewright.solvers.scheduling.tiled.placing.problem import Flows, flows_of, placing_of
from tilewright.solvers.scheduling.tiled.placing.statement import PlacingStatement, solve_placing

LEAST = 1.0
"""Seconds that a window may take at least."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window that was solved.

    Parameters
    ----------
    rounds : the first and the last
    before, cost, bound : bytes times hops of what the window decides: at first, at the end, and at least
    """

    rounds: tuple[int, int]
    before: int
    cost: int
    bound: int

    @property
    def proven(self) -> bool:
        return self.cost == self.bound


@dataclass(frozen=True, slots=True, eq=False)
class TaskRounds:
    """Tasks in rounds on a machine, of which some rounds are placed anew.

    Parameters
    ----------
    machine : with any topology
    flows : what the tasks read from where
    step : the round of every task
    """

    machine: TiledMachine
    flows: Flows
    step: Int32s

    def replaced(
        self,
        rounds: Sequence[int],
        engine: Int32s,
        limits: Limits,
        *,
        solver: str = "cpsat",
        child: Child | None = None,
        exchange: bool = False,
        alone: bool = False,
    ) -> tuple[Int32s, Window]:
        """Engines of all tasks with those of some rounds chosen anew, and what that came to.

        Parameters
        ----------
        rounds : in ascending order
        engine : of every task, to begin with; never worse afterwards
        limits : of this call
        solver : ``cpsat``, ``highs`` or ``cbc``
        child : the running worker of ``highs`` or ``cbc``
        exchange : whether the tasks of a round exchange the engines that they have, instead of taking any
        alone : whether what passes between these rounds and others is taken to cost nothing

        Raises
        ------
        ChildError : where a MIP's worker dies
        """
        problem = placing_of(
            self.machine, self.flows, self.step, rounds, None if alone else engine, exchange=exchange
        )
        begin = engine[problem.tasks].astype(np.int32)
        answer = solve_placing(PlacingStatement(problem, self.machine), begin, solver, limits, child)
        placed = engine.copy()
        placed[problem.tasks] = answer.engine
        return placed, Window((rounds[0], rounds[-1]), problem.cost(begin), answer.cost, answer.bound)

    def costs(self, engine: Int32s) -> Int64s:
        """Bytes times hops of what the tasks of each round read from other engines."""
        net = topology(self.machine)
        reader, source, size = (column[self.flows.source >= 0] for column in self.flows)
        costs = np.zeros(int(self.step.max()) + 1, dtype=np.int64)
        hops = net.hops[engine[source].astype(np.int64) * net.places + engine[reader]]
        np.add.at(costs, self.step[reader], size * hops)
        return costs


def place_windows(
    dag: AtomicDag,
    machine: TiledMachine,
    step: Int32s,
    engine: Int32s,
    *,
    solver: str = "cpsat",
    width: int = 3,
    limits: Limits,
    first: int = 0,
    last: int | None = None,
) -> Iterator[tuple[Int32s, Window]]:
    """Engines after every window, and what the window came to; the rounds outside it stand.

    Windows overlap by half their rounds at least; those that cost most come first, and each has a second at
    least, so that limits leave out the others.

    Parameters
    ----------
    dag, machine : the tasks, and where they run
    step, engine : per task, to begin with
    solver : ``cpsat``, ``highs`` or ``cbc``
    width : rounds of a window
    limits : of all windows together
    first, last : rounds to go through

    Raises
    ------
    ChildError : where a MIP's worker is missing or dies
    """
    plan = TaskRounds(machine, flows_of(dag, step), step)
    rounds = distinct(step)
    rounds = rounds[(rounds >= first) & (rounds <= (rounds[-1] if last is None else last))]
    begins = range(0, max(1, len(rounds) - width + 1), max(1, width // 2))
    costs = plan.costs(engine)[rounds]
    with child_of(solver, limits) as child:
        dearest = sorted(begins, key=lambda begin: (-int(costs[begin : begin + width].sum()), begin))
        for n, begin in enumerate(dearest):
            if limits.expired:
                return
            chosen = rounds[begin : begin + width].tolist()
            share = window_share(limits, len(begins) - n)
            engine, window = plan.replaced(chosen, engine, share, solver=solver, child=child)
            yield engine, window


def least_transfers(
    dag: AtomicDag,
    machine: TiledMachine,
    step: Int32s,
    engine: Int32s,
    *,
    solver: str = "cpsat",
    width: int = 3,
    limits: Limits,
) -> int:
    """Lower bound on bytes times hops over all engines of this order: windows that share no round, added up.

    What passes between windows is taken to cost nothing.

    Parameters
    ----------
    dag, machine : the tasks, and where they run
    step : the round of every task
    engine : of every task, to begin with
    solver : ``cpsat``, ``highs`` or ``cbc``
    width : rounds of a window
    limits : of all windows together

    Raises
    ------
    ChildError : where a MIP's worker is missing or dies
    """
    plan = TaskRounds(machine, flows_of(dag, step), step)
    rounds = distinct(step).tolist()
    windows = [rounds[begin : begin + width] for begin in range(0, len(rounds), width)]
    total = 0
    with child_of(solver, limits) as child:
        for n, chosen in enumerate(windows):
            share = window_share(limits, len(windows) - n)
            total += plan.replaced(chosen, engine, share, solver=solver, child=child, alone=True)[1].bound
    return total


def window_share(limits: Limits, left: int) -> Limits:
    """The time of the next of so many windows: an equal part of what is left, or `LEAST` seconds."""
    remaining = limits.remaining
    if remaining is None:
        return limits
    return limits.share(min(1.0, max(1 / left, LEAST / max(LEAST, remaining))))
