"""All rounds of a plan, some consecutive ones at a time: better engines, and a bound on bytes times hops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.solvers.scheduling.tiled.linear import child_of
from tilewright.solvers.scheduling.tiled.placing.callers import PlacingAnswer, solve_placing
from tilewright.solvers.scheduling.tiled.placing.problem import (
    Ints,
    Longs,
    Sources,
    placing_of,
    round_sources,
)
from tilewright.solvers.scheduling.tiled.placing.statement import PlacingStatement

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


def place_windows(
    dag: AtomicDag,
    machine: TiledMachine,
    step: Ints,
    engine: Ints,
    *,
    solver: str = "cpsat",
    width: int = 3,
    limits: Limits,
    first: int = 0,
    last: int | None = None,
) -> Iterator[tuple[Ints, Window]]:
    """Engines after every window, and what the window came to; the rounds outside it stand.

    Windows overlap by half their rounds at least; those that cost most come first, and each has a second at
    least, so that limits leave out the others.

    Parameters
    ----------
    step, engine : per task, to begin with
    solver : ``cpsat``, ``highs`` or ``cbc``
    width : rounds of a window
    first, last : rounds to go through

    Raises
    ------
    ChildError : where a MIP's worker is missing or dies
    """
    sources = round_sources(dag, step)
    rounds = np.unique(step)
    rounds = rounds[(rounds >= first) & (rounds <= (int(rounds[-1]) if last is None else last))]
    begins = range(0, max(1, len(rounds) - width + 1), max(1, width // 2))
    costs = round_costs(machine, sources, step, rounds, engine)
    now = engine.copy()
    with child_of(solver, limits) as child:
        dearest = sorted(begins, key=lambda begin: (-int(costs[begin : begin + width].sum()), begin))
        for n, begin in enumerate(dearest):
            if limits.expired:
                return
            chosen = rounds[begin : begin + width].tolist()
            problem = placing_of(machine, sources, step, chosen, now)
            here = now[problem.tasks].astype(np.int32)
            share = window_share(limits, len(begins) - n)
            answer = solve_placing(PlacingStatement(problem, machine), here, solver, share, child)
            now = now.copy()
            now[problem.tasks] = answer.engine
            window = Window((chosen[0], chosen[-1]), problem.cost(here), answer.cost, answer.bound)
            yield now, window


def least_transfers(
    dag: AtomicDag,
    machine: TiledMachine,
    step: Ints,
    engine: Ints,
    *,
    solver: str = "cpsat",
    width: int = 3,
    limits: Limits,
) -> int:
    """Bytes times hops that no engines for this order undercut: windows that share no round, added up.

    What passes between windows is taken to cost nothing.
    """
    sources = round_sources(dag, step)
    rounds = np.unique(step)
    begins = range(0, len(rounds), width)
    total = 0
    with child_of(solver, limits) as child:
        for n, begin in enumerate(begins):
            problem = placing_of(machine, sources, step, rounds[begin : begin + width].tolist(), None)
            here = engine[problem.tasks].astype(np.int32)
            share = window_share(limits, len(begins) - n)
            answer: PlacingAnswer = solve_placing(
                PlacingStatement(problem, machine), here, solver, share, child
            )
            total += answer.bound
    return total


def window_share(limits: Limits, left: int) -> Limits:
    """The time of the next of so many windows: an equal part of what is left, or `LEAST` seconds."""
    remaining = limits.remaining
    return (
        limits if remaining is None else limits.share(min(1.0, max(1 / left, LEAST / max(LEAST, remaining))))
    )


def round_costs(machine: TiledMachine, sources: Sources, step: Ints, rounds: Ints, engine: Ints) -> Longs:
    """Bytes times hops of what the tasks of each round read from other engines."""
    net = topology(machine)
    at = {int(r): i for i, r in enumerate(rounds)}
    costs = np.zeros(len(rounds), dtype=np.int64)
    for task, rows in sources.items():
        for reader, source, size in rows:
            if reader == task and source >= 0 and int(step[task]) in at:
                costs[at[int(step[task])]] += size * net.distance(int(engine[source]), int(engine[task]))
    return costs


def transfer_cost(dag: AtomicDag, machine: TiledMachine, step: Ints, engine: Ints) -> int:
    """Bytes times hops of all rounds together."""
    problem = placing_of(machine, round_sources(dag, step), step, np.unique(step).tolist(), engine)
    return problem.cost(engine[problem.tasks].astype(np.int32))
