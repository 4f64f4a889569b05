"""What a cycle of an engine and a pJ are worth: the yardstick of searches for schedules."""

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
    """All engines alike."""
    return Prices((1 / len(problem.engines),) * len(problem.engines))
