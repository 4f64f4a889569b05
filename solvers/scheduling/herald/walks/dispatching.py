"""Schedules by engines that choose among the tasks that are ready, and annealing of the rule of choice.

Runs of a network are chains that compete for engines.  With options fixed beforehand, an engine idles where
none of its tasks is ready; where it may take another's task at a price, long lists of runs come within a few
per cent of the loads' bound at once, and annealing of the priorities closes most of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.schedule import Schedule
from tilewright.formulation.scheduling.herald.search import ScheduleSearch
from tilewright.formulation.scheduling.herald.timeline import in_start_order
from tilewright.solvers.scheduling.herald.walks import dispatch_kernel
from tilewright.solvers.scheduling.herald.walks.annealing import Pace, energies, task_graph
from tilewright.solvers.scheduling.herald.walks.list_kernel import Cooling
from tilewright.solvers.scheduling.herald.walks.prices import Prices

_PRICES, _EXCESSES = (1.0, 10.0, 100.0), (1.0, 3.0, 100.0)  # of the first rules
_HOT, _COLD = 3e-3, 1e-6  # relative
_STEPS = 20_000  # of the first round
_GROWTH = 1.5
_PART = 1 / 8  # of the time that is left, for one round
_FLOOR, _TINY = 1e-3, 1e-300  # excess is a multiple of at least so much of the dearest option


class Dispatching:
    """Walks over the rules of a problem, one round from hot to cold after the other.

    Parameters
    ----------
    options : per task, the options to choose from
    prices : what engines and energy are worth
    """

    def __init__(
        self, problem: SchedulingProblem, options: Sequence[tuple[Option, ...]], seed: int, prices: Prices
    ) -> None:
        self._problem, self._options = problem, options
        self._number = 0
        self._pace = Pace(seed, _STEPS, _PART)
        self._graph = task_graph(problem, options)
        shape = self._graph.engine.shape
        regret, excess = np.zeros(shape), np.zeros(shape)
        least = np.zeros(len(options))
        for task, own in enumerate(options):
            costs = np.array([prices.of(option) for option in own])
            regret[task, : len(own)] = costs - costs.min()
            excess[task, : len(own)] = regret[task, : len(own)] / max(
                costs.min(), _FLOOR * costs.max(), _TINY
            )
            least[task] = min(prices.engines[option.engine] * option.cycles for option in own)
        run = np.zeros(len(options), np.int64)
        for number, tasks in enumerate(problem.instances.values()):
            run[[*tasks]] = number
        tail = np.zeros(len(options))
        for task in reversed(problem.order):
            later = max((tail[other] for other in problem.after[task]), default=0.0)
            tail[task] = min(option.cycles for option in options[task]) + later
        self._costs = dispatch_kernel.Costs(
            energies(options),
            regret,
            excess,
            np.array([len(own) for own in options], np.int64),
            run,
            tail,
            least,
            np.array(prices.engines),
        )
        self._rule: dispatch_kernel.Rule | None = None

    def decode(self, rule: dispatch_kernel.Rule) -> Schedule:
        """The schedule of a rule; the evaluator's shared memory may delay what the kernel's does not."""
        tasks = len(self._options)
        filled = dispatch_kernel.room(tasks, self._graph.engine.shape[1], len(self._problem.engines))
        dispatch_kernel.dispatch(self._graph, self._costs, rule, np.inf, filled)
        starts = {task: int(filled.starts[task]) for task in range(tasks)}
        chosen = {task: self._options[task][int(filled.choice[task])] for task in range(tasks)}
        return in_start_order(self._problem, starts, chosen)

    def rules(self) -> list[dispatch_kernel.Rule]:
        """Longest chains first, at each price and largest excess."""
        tasks, runs = len(self._options), len(self._problem.instances)
        return [
            dispatch_kernel.Rule(np.zeros(tasks), np.zeros(runs), np.array([price, excess]))
            for price in _PRICES
            for excess in _EXCESSES
        ]

    def start(self, search: ScheduleSearch, source: str = "dispatching") -> None:
        """Offer the best of the first rules."""
        by_energy = search.problem.objective is ScheduleObjective.EDP
        rules = self.rules()
        still = Cooling(0, _HOT, _COLD, 0)
        values = [self.walk(by_energy, rule, still)[0] for rule in rules]
        self._rule = rules[values.index(min(values))]
        search.confirm(self.decode(self._rule), source, origin=Origin.HEURISTIC)

    def round(self, search: ScheduleSearch, source: str = "dispatching") -> None:
        """The best of the first rules; afterwards one walk from hot to cold, from the best rule so far."""
        if self._rule is None:
            self.start(search, source)
            return
        by_energy = search.problem.objective is ScheduleObjective.EDP
        best, rule = np.inf, self._rule
        state = dispatch_kernel.Rule(rule.task.copy(), rule.run.copy(), rule.weights.copy())
        for cooling in self._pace.slices(search, _HOT, _COLD, self._number):
            value, better = self.walk(by_energy, state, cooling)
            if value < best:
                best, rule = value, better
                search.confirm(self.decode(rule), source, origin=Origin.HEURISTIC)
        self._rule = rule
        self._number += 1
        self._pace.steps *= _GROWTH

    def walk(
        self, by_energy: bool, rule: dispatch_kernel.Rule, cooling: Cooling
    ) -> tuple[float, dispatch_kernel.Rule]:
        """Walk on from a rule, in place; returns the best value's logarithm and the rule that has it."""
        return dispatch_kernel.anneal_rule(self._graph, self._costs, by_energy, rule, cooling)
