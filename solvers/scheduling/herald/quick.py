"""Scheduling heuristics as methods, each with inexpensive bounds so that its gap is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from tilewright import __version__
from tilewright.formulation.method import Outcome
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, feasible_options
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.herald.scheduler import (
    METRICS,
    HeraldSettings,
    IdleRule,
    Ordering,
    greedy,
    herald,
    metric_of,
)
from tilewright.solvers.scheduling.herald.cpsat import warm_start
from tilewright.solvers.scheduling.herald.lower_bounds.bounds import basic_bounds, lp_prices
from tilewright.solvers.scheduling.herald.walks.annealing import ScheduleAnnealing
from tilewright.solvers.scheduling.herald.walks.prices import Prices
from tilewright.solvers.scheduling.herald.windows import WindowSearch

_AS_OBJECTIVE = "objective"
_ROUNDS = 3  # of annealing before the neighbourhoods


class _Heuristic:
    """A method that finds a schedule at once."""

    name = ""
    exact = False

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: ScheduleSearch) -> Outcome:
        """Offer schedules, and the cheap bounds."""
        obstacle = search.problem.instance.obstacle
        if obstacle is None:
            basic_bounds(search, feasible_options(search.problem.instance))
            self.offer(search)
        return Outcome(obstacle is not None, obstacle or "")

    def offer(self, search: ScheduleSearch) -> None:
        """Find schedules."""
        raise NotImplementedError


@dataclass(frozen=True)
class HeraldScheduler(_Heuristic):
    """Herald's scheduler: preference, balancing, both orders, idle time eliminated."""

    metric: str = option(
        _AS_OBJECTIVE,
        "by which layers prefer sub-accelerators and moves are judged",
        choices=(_AS_OBJECTIVE, *METRICS),
    )
    order: str = option("both", "initial order of layers", choices=("both", *map(str, Ordering)))
    feedback: str = option(
        "schedule",
        "layers move off the fullest sub-accelerator by whole schedules, by loads, or never",
        choices=("schedule", "loads", "off"),
    )
    unbalance: float = option(1.1, "largest load over the smallest that is left alone", low=1)
    patience: int = option(50, "moves in a row that may fail before feedback by schedules ends", low=1)
    idle: str = option("earliest", "rule of post-processing", choices=tuple(map(str, IdleRule)))

    name = "herald"

    def settings(self, objective: ScheduleObjective) -> Iterator[HeraldSettings]:
        """One for each initial order that is asked for."""
        for ordering in Ordering:
            if self.order in ("both", ordering):
                yield HeraldSettings(
                    metric=metric_of(objective) if self.metric == _AS_OBJECTIVE else self.metric,
                    ordering=ordering,
                    unbalance=self.unbalance,
                    idle=IdleRule(self.idle),
                    patience=self.patience if self.feedback == "schedule" else 0,
                    balance=self.feedback != "off",
                )

    def offer(self, search: ScheduleSearch) -> None:
        """The better of the orders."""
        for settings in self.settings(search.problem.objective):
            schedule = herald(search.problem.instance, settings, lambda: search.limits.expired)
            search.confirm(schedule, f"herald, {settings.ordering}", origin=Origin.HEURISTIC)


@dataclass(frozen=True)
class GreedyScheduler(_Heuristic):
    """Herald's baseline: every layer where it costs least."""

    metric: str = option(
        _AS_OBJECTIVE, "by which layers prefer sub-accelerators", choices=(_AS_OBJECTIVE, *METRICS)
    )

    name = "greedy"

    def offer(self, search: ScheduleSearch) -> None:
        """One schedule."""
        metric = metric_of(search.problem.objective) if self.metric == _AS_OBJECTIVE else self.metric
        search.confirm(greedy(search.problem.instance, metric), "greedy", origin=Origin.HEURISTIC)


def _prices(search: ScheduleSearch, options: Sequence[tuple[Option, ...]]) -> tuple[Prices, ...]:
    """What the linear relaxation makes of the options of a search's tasks."""
    problem = search.problem
    return lp_prices(
        problem.instance, options, problem.objective, basic_bounds(search, options), search.limits
    )


class AnnealingScheduler(_Heuristic):
    """Simulated annealing from Herald's schedule until the time limit."""

    name = "annealing"

    def offer(self, search: ScheduleSearch) -> None:
        """Herald, then annealing; without a time limit, one round."""
        HeraldScheduler().offer(search)
        options = feasible_options(search.problem.instance)
        prices = _prices(search, options)
        annealing = ScheduleAnnealing(search.problem.instance, options, search.limits.seed, prices)
        annealing.run(search, rounds=1 if search.limits.seconds is None else None)


class WindowScheduler(_Heuristic):
    """Large-neighbourhood search, with CP-SAT, from an annealed schedule until the time limit."""

    name = "lns"

    @property
    def version(self) -> str:
        return f"ortools {version('ortools')}"

    def offer(self, search: ScheduleSearch) -> None:
        """A few rounds of annealing, then windows; without a time limit, a few of them."""
        warm_start(search)
        options = feasible_options(search.problem.instance)
        prices = _prices(search, options)
        ScheduleAnnealing(search.problem.instance, options, search.limits.seed, prices).run(
            search, rounds=_ROUNDS
        )
        windows = WindowSearch(search.problem.instance, options, search.limits.seed, prices[0])
        if search.limits.seconds is None:
            windows.round(search)
        else:
            windows.run(search)
