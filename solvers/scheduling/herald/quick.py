"""Heuristics as methods: each with the cheap bounds, so that its gap is known."""

from __future__ import annotations

from importlib.metadata import version

from tilewright import __version__
from tilewright.formulation.scheduling.herald.problem import feasible_options
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.heuristics.scheduling.herald.scheduler import (
    HeraldSettings,
    Ordering,
    greedy,
    herald,
    metric_of,
)
from tilewright.solvers.scheduling.herald.annealing import Annealing
from tilewright.solvers.scheduling.herald.bounds import basic_bounds, lp_prices
from tilewright.solvers.scheduling.herald.cpsat import warm_start
from tilewright.solvers.scheduling.herald.windows import WindowSearch

_ROUNDS = 3  # of annealing before the neighbourhoods


class _Heuristic:
    """A method that finds a schedule at once."""

    name = ""
    exact = False

    @property
    def version(self) -> str:
        return __version__

    def solve(self, search: ScheduleSearch) -> str:
        """Offer the schedule, after the cheap bounds."""
        obstacle = search.problem.obstacle
        if obstacle is None:
            basic_bounds(search, feasible_options(search.problem))
            self.offer(search)
        return obstacle or ""

    def offer(self, search: ScheduleSearch) -> None:
        """Find schedules."""
        raise NotImplementedError


class HeraldScheduler(_Heuristic):
    """Herald's scheduler: preference, balancing, both orders, idle time eliminated."""

    name = "herald"

    def offer(self, search: ScheduleSearch) -> None:
        """The better of depth-first and breadth-first."""
        metric = metric_of(search.objective)
        for ordering in Ordering:
            schedule = herald(search.problem, HeraldSettings(metric, ordering), lambda: search.limits.expired)
            search.offer(schedule, f"herald, {ordering}", heuristic=True)


class GreedyScheduler(_Heuristic):
    """Herald's baseline: every layer where it costs least."""

    name = "greedy"

    def offer(self, search: ScheduleSearch) -> None:
        """One schedule."""
        search.offer(greedy(search.problem, metric_of(search.objective)), "greedy", heuristic=True)


class AnnealingScheduler(_Heuristic):
    """Simulated annealing from Herald's schedule until the time limit."""

    name = "annealing"

    def offer(self, search: ScheduleSearch) -> None:
        """Herald, then annealing; without a time limit, one round."""
        HeraldScheduler().offer(search)
        options = feasible_options(search.problem)
        prices = lp_prices(
            search.problem, options, search.objective, basic_bounds(search, options), search.limits
        )
        annealing = Annealing(search.problem, options, search.limits.seed, prices)
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
        options = feasible_options(search.problem)
        prices = lp_prices(
            search.problem, options, search.objective, basic_bounds(search, options), search.limits
        )
        Annealing(search.problem, options, search.limits.seed, prices).run(search, rounds=_ROUNDS)
        windows = WindowSearch(search.problem, options, search.limits.seed, prices[0])
        if search.limits.seconds is None:
            windows.round(search)
        else:
            windows.run(search)
