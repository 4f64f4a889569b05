"""From engines and steps to an offered plan: what all methods share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import numpy as np
import numpy.typing as npt

from tilewright import __version__
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.routing import Eviction, complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.errors import InputError

BUFFERING: dict[str, Eviction] = {"furthest": "furthest", "occupation": "occupation"}
"""Rules of eviction by the names that options have."""


DEAR = 5.0
"""What a cycle is worth, as a multiple of the mean energy of one, where energy does not count: copies and
hops still do, for they fill links in ways that the estimated cycles leave out."""


@contextmanager
def quiet_end(search: TiledSearch) -> Iterator[None]:
    """A limit that strikes in the middle of the next plan is no more than the end, once there is a plan."""
    try:
        yield
    except LimitReachedError:
        if search.answer is None:
            raise


def cycle_price(search: TiledSearch) -> float:
    """pJ that a cycle is worth in the best plan: ``b/a E/T`` of an objective ``E^a D^b``.

    Infinite where energy does not count, or before the first plan.
    """
    evaluation, objective = search.evaluation, search.problem.problem.objective
    if evaluation is None or objective.energy_power == 0:
        return inf
    worth = evaluation.energy.total / max(1, evaluation.cycles)
    return worth * float(objective.delay_power / objective.energy_power)


def price_of(search: TiledSearch) -> float:
    """pJ that a cycle is worth in the best plan; a few mean energies of one where energy does not count."""
    price = cycle_price(search)
    if price < inf or search.evaluation is None:
        return price
    return DEAR * search.evaluation.energy.total / max(1, search.evaluation.cycles)


class Heuristic:
    """A method that guesses."""

    name = ""
    exact = False

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: TiledSearch) -> Outcome:
        """Offer plans until `TiledSearch.done`."""
        raise NotImplementedError


class PlanHeuristic(Heuristic):
    """A heuristic that ends quietly where a limit strikes amid a plan, and keeps what it has."""

    def solve(self, search: TiledSearch) -> Outcome:
        """Offer plans; a limit that strikes after the first one is a quiet end.

        Where something does not fit after that, the message says what.
        """
        try:
            with quiet_end(search):
                self.offer(search)
        except InputError as fault:
            if search.answer is None:
                raise
            return Outcome(message=str(fault))
        return Outcome()

    def offer(self, search: TiledSearch) -> None:
        """Find plans."""
        raise NotImplementedError

    def confirm(
        self,
        search: TiledSearch,
        dag: AtomicDag,
        engine: npt.NDArray[np.integer],
        step: npt.NDArray[np.integer],
        source: str,
        *,
        buffering: str = "furthest",
        through_dram: bool = False,
    ) -> None:
        """Complete a plan and offer it.

        Parameters
        ----------
        search : what judges the plan
        dag : the atoms
        engine, step : per atom
        source : what the trace calls the plan
        buffering : a key of `BUFFERING`
        through_dram : whether results are read from DRAM only
        """
        machine = search.problem.problem.machine
        eviction = BUFFERING[buffering]
        plan = complete(
            dag, machine, engine, step, eviction=eviction, through_dram=through_dram, limits=search.limits
        )
        search.confirm(AtomicPlan(dag, plan), source, Origin.HEURISTIC)
