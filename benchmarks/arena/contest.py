"""From a contest to cells: methods x seeds on one problem."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from tilewright.api.catalog import ready_method
from tilewright.benchmarks.cells import BenchmarkTask, Entry, Part, Place
from tilewright.benchmarks.rows import CONTESTS
from tilewright.formulation.method import is_stochastic
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.report.records.mapping.operator import Record
from tilewright.report.records.scheduling.tiled.document import inputs_hash
from tilewright.report.records.scheduling.tiled.problem import TiledProblemRecord

SUITE = CONTESTS

Clock = Literal["wall", "cpu"]
"""What a run's seconds are read from; those of the processor do not depend on what else the machine does."""


class ContestProblem(Record):
    """What every method of a contest is asked."""

    problem: TiledProblemRecord
    objective: str
    clock: Clock = "wall"

    @property
    def hashed(self) -> str:
        """Content hash; the clock counts where it is not the usual one."""
        digest = inputs_hash(self.problem, self.objective)
        if self.clock == "wall":
            return digest
        return hashlib.sha256(f"{digest} {self.clock}".encode()).hexdigest()


@dataclass(frozen=True)
class Contest:
    """Methods that search the same problem, each within the same limits.

    Parameters
    ----------
    objective : ``makespan``, ``energy`` or ``edp``
    methods : with their options
    seeds : runs of a method that draws at random
    seconds : time limit of a run
    threads : of a method that can use several
    clock : what the seconds are read from
    """

    problem: TiledProblem
    objective: str
    methods: tuple[str, ...]
    seeds: int
    seconds: float
    threads: int
    clock: Clock = "wall"


def entries(contest: Contest) -> list[Entry]:
    """The cells of a contest, method by method.

    Raises
    ------
    InputError : for an unknown method or option
    """
    record = TiledProblemRecord.of(contest.problem)
    stated = ContestProblem(problem=record, objective=contest.objective, clock=contest.clock)
    text, hashed = stated.model_dump_json(), stated.hashed
    machine, network = contest.problem.machine.name, contest.problem.network.name
    listed: list[Entry] = []
    for name in contest.methods:
        method = ready_method(name, "tiled", "--methods")
        for seed in range(contest.seeds if is_stochastic(method) else 1):
            place = Place(
                SUITE,
                f"{network} batch {contest.problem.batch}",
                machine,
                contest.objective,
                Part.METHOD,
                name,
                seed,
            )
            task = BenchmarkTask(text, hashed, name, method.version, seed, contest.seconds, contest.threads)
            listed.append(Entry(place, 1, task))
    return listed
