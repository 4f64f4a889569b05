"""All rounds of a plan, some consecutive ones at a time: better engines, and a bound on bytes times hops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.solvers.mapping.mip.child import Child
from tilewright.solvers.scheduling.tiled.placing.callers import PlacingAnswer, solve_placing
from tilewright.solvers.scheduling.tiled.placing.problem import Ints, placing_of, round_sources
from tilewright.solvers.scheduling.tiled.placing.statement import PlacingStatement


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

    Each window overlaps the one before it by all its rounds but one, or half of them where it has many.

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
    now = engine.copy()
    with child_of(solver, limits) as child:
        for n, begin in enumerate(begins):
            if limits.expired:
                return
            chosen = rounds[begin : begin + width].tolist()
            problem = placing_of(machine, sources, step, chosen, now)
            here = now[problem.tasks].astype(np.int32)
            share = limits.share(1 / (len(begins) - n))
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
            share = limits.share(1 / (len(begins) - n))
            answer: PlacingAnswer = solve_placing(
                PlacingStatement(problem, machine), here, solver, share, child
            )
            total += answer.bound
    return total


def child_of(solver: str, limits: Limits) -> AbstractContextManager[Child | None]:
    """The worker of a MIP solver; nothing for CP-SAT."""
    return nullcontext() if solver == "cpsat" else Child(solver, lambda: limits.expired)


def transfer_cost(dag: AtomicDag, machine: TiledMachine, step: Ints, engine: Ints) -> int:
    """Bytes times hops of all rounds together."""
    problem = placing_of(machine, round_sources(dag, step), step, np.unique(step).tolist(), engine)
    return problem.cost(engine[problem.tasks].astype(np.int32))
