"""Prices of an engine's cycle and of a picojoule, by which searches compare options of tasks."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in cycles of makespan.

    Where every task runs where it costs least by the LP's prices and no engine idles, the makespan (or the
    product) is that of the assignment LP, its bound.

    Parameters
    ----------
    engines : per engine, what one of its cycles is worth; together 1
    energy : what a pJ is worth; 0 where energy does not count
    """

    engines: tuple[float, ...]
    energy: float = 0.0

    def of(self, option: Option) -> float:
        """What an option costs."""
        return self.engines[option.engine] * option.cycles + self.energy * float(option.energy)


def even_prices(problem: SchedulingProblem) -> Prices:
    """Prices by which all engines are worth the same."""
    return Prices((1 / len(problem.engines),) * len(problem.engines))
