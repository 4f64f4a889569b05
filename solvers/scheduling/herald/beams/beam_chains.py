"""Runs as chains of tasks, for beam searches: what of them is left, one task after the other."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from networkx.utils import UnionFind

from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.foundation.arrays import Int64s
from tilewright.solvers.scheduling.herald.beams.beam_pool_kernel import Chains

_BITS = 40  # of the numbers by which chains are told apart


class Telling(NamedTuple):
    """Which tasks tell states apart: the heaviest ones.

    Parameters
    ----------
    part : of the work that they are together, above 0; 1 for all tasks
    chains : whether all tasks of the heaviest chains are meant
    """

    part: float
    chains: bool


ALL = Telling(1.0, chains=True)
"""Every task does."""


class Chaining:
    """A problem's runs as chains; runs that read each other's results are one chain.

    A run whose layers fork loses what could run at once; walks from its schedules are not bound to that.

    Parameters
    ----------
    problem : whose runs are chains
    options : of every task

    Attributes
    ----------
    chain : per task, its chain
    count : of chains
    """

    def __init__(self, problem: SchedulingProblem, options: Sequence[tuple[Option, ...]]) -> None:
        joined = UnionFind(range(len(options)))
        for first, second in problem.edges:
            joined.union(first, second)
        for run in problem.instances.values():
            joined.union(*run)
        numbers: dict[int, int] = {}
        self.chain = [0] * len(options)
        for task in problem.order:
            self.chain[task] = numbers.setdefault(joined[task], len(numbers))
        self.count = len(numbers)
        kinds: dict[tuple[Option, ...], int] = {}
        self._kind = [kinds.setdefault(own, len(kinds)) for own in options]
        self._shortest = [min(option.cycles for option in own) for own in options]
        self._options = [len(own) for own in options]
        self._mark: dict[tuple[int, int], int] = {}
        self._random = random.Random(0)

    def heaviest(self, weights: Sequence[float], telling: Telling) -> frozenset[int]:
        """The tasks that tell states apart.

        Parameters
        ----------
        weights : of tasks
        telling : how many of them
        """
        groups: dict[int, list[int]] = {}
        for task, chain in enumerate(self.chain):
            groups.setdefault(chain if telling.chains else task, []).append(task)
        weighed = sorted(((sum(weights[t] for t in own), own) for own in groups.values()), reverse=True)
        least = telling.part * sum(weights) if telling.part < 1 else math.inf
        chosen, weight = list[int](), 0.0
        for own_weight, own in weighed:
            if 0 < least <= weight:
                break
            chosen += own
            weight += own_weight
        return frozenset(chosen)

    def chains(
        self, order: Sequence[int], ready: Sequence[int], telling: Collection[int]
    ) -> tuple[Chains, Int64s]:
        """The chains of some tasks, and when each is ready.

        Parameters
        ----------
        order : the tasks, in the order of their chains
        ready : per chain of the problem, when its first of these tasks is
        telling : tasks that tell states apart; the place behind any other one has the mark of that before
        """
        members: dict[int, list[int]] = {}
        for task in order:
            members.setdefault(self.chain[task], []).append(task)
        starts, row, left, mark, twin = [0], list[int](), list[int](), list[int](), list[int]()
        latest: dict[tuple[int, int], int] = {}
        for chain, tasks in members.items():
            rest, marks, told = [0], [0], [0]
            for task in reversed(tasks):
                rest.append(rest[-1] + self._shortest[task])
                key = self._kind[task], marks[-1]
                if key not in self._mark:
                    self._mark[key] = self._random.getrandbits(_BITS)
                marks.append(self._mark[key])
                told.append(marks[-1] if task in telling else told[-1])
            row += [*tasks, -1]
            left += reversed(rest)
            mark += reversed(told)
            equal = marks[-1], ready[chain]
            twin.append(latest.get(equal, -1))
            latest[equal] = len(twin) - 1
            starts.append(len(row))
        parts = (np.array(part, np.int64) for part in (starts, twin, row, left, mark, self._options))
        return Chains(*parts), np.array([ready[chain] for chain in members], np.int64)
