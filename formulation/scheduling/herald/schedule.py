"""The schedule: what every graph-level method produces."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem

DRAM = "DRAM"
MEMORY = "memory"
"""Where a result is read from: stored in DRAM, or still in the shared memory."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A task with the option that it runs by and its start.

    Parameters
    ----------
    task : the task's index
    option : how it runs: the engine and what that costs
    start : cycle at which the engine begins with it
    sources : per task whose result it reads, where that is read from (a memory or an engine's buffer)
    """

    task: int
    option: Option
    start: int
    sources: MappingABC[int, str] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + self.option.cycles

    @property
    def fetch_start(self) -> int:
        """When fetching begins: as late as possible."""
        return self.start - self.option.fetch


@dataclass(frozen=True)
class Schedule:
    """Tasks on engines, in order, with start times.

    Parameters
    ----------
    placements : one per task, by start time
    """

    placements: tuple[Placement, ...]

    def on(self, engine: int) -> list[Placement]:
        """What an engine runs, in order."""
        return sorted((p for p in self.placements if p.option.engine == engine), key=lambda p: p.start)

    @property
    def makespan(self) -> int:
        return max(placement.end for placement in self.placements)


def make_schedule(
    problem: SchedulingProblem,
    starts: MappingABC[int, int],
    options: MappingABC[int, Option],
    kept: Collection[tuple[int, int]] = (),
) -> Schedule:
    """A schedule from start times and options.

    Parameters
    ----------
    kept : edges whose result is read from the shared memory; all others are read from DRAM
    """
    placements = [
        Placement(
            task,
            options[task],
            start,
            {first: MEMORY if (first, task) in kept else DRAM for first in problem.before[task]},
        )
        for task, start in starts.items()
    ]
    return Schedule(tuple(sorted(placements, key=lambda p: (p.start, p.option.engine, p.task))))
