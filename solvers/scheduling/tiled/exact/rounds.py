"""Rounds of a CP-SAT model: which are in use, how long each takes, and what all take together."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from ortools.sat.python import cp_model

from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance

Terms = list[tuple[cp_model.IntVar, int]]
"""Bytes times literals."""


class Rounds:
    """Rounds 0 to ``count - 1``, those in use first; the last one runs no task.

    Parameters
    ----------
    count : of rounds, the one in which the last results leave included
    idle : rounds in use that run no task, at most
    least, most : cycles of a plan
    timed : whether lengths are stated; where only the order counts, ``cycles`` stands for nothing
    """

    def __init__(
        self, instance: RoundInstance, count: int, idle: int, least: int, most: int, *, timed: bool = True
    ) -> None:
        self.instance, self.count, self.idle, self.timed = instance, count, idle, timed
        self.model = cp_model.CpModel()
        model, unit = self.model, instance.unit
        self.used = [model.new_bool_var(f"used{r}") for r in range(count)]
        self.busy = self.used if idle == 0 else [model.new_bool_var(f"busy{r}") for r in range(count)]
        self.longest = most * unit
        self.ladders: list[dict[int, cp_model.IntVar]] = []
        self.length = [model.new_int_var(0, self.longest, f"length{r}") for r in range(count)]
        self.cycles = model.new_int_var(least, most, "cycles")
        model.add(sum(self.length) <= unit * self.cycles)
        model.add(self.used[-1] == 0)
        model.add(self.used[0] == 1)
        for r in range(1, count):
            model.add_implication(self.used[r], self.used[r - 1])
        if idle:
            for r in range(count):
                model.add_implication(self.busy[r], self.used[r])
                following = self.used[r + 1 : r + 2]
                model.add_bool_or([~self.used[r], self.busy[r], *following])
            model.add(sum(self.used) - sum(self.busy) <= idle)
        self.model.minimize(self.cycles)

    def place(self, r: int, running: list[tuple[int, cp_model.IntVar]]) -> None:
        """Which tasks a round may run: it is busy if one does, and as long as the longest.

        The lengths are a ladder: one literal per distinct number of cycles, each implied by the next.
        """
        model, instance = self.model, self.instance
        model.add(sum(literal for _, literal in running) >= self.busy[r])
        for _, literal in running:
            model.add_implication(literal, self.busy[r])
        if not self.timed:
            return
        steps = sorted({instance.cycles[task] for task, _ in running})
        ladder = {cycles: model.new_bool_var("") for cycles in steps}
        for lower, upper in pairwise(steps):
            model.add_implication(ladder[upper], ladder[lower])
        for task, literal in running:
            model.add_implication(literal, ladder[instance.cycles[task]])
        self.ladders.append(ladder)
        rises = [instance.unit * (c - before) for before, c in zip([0, *steps], steps, strict=False)]
        model.add(self.length[r] >= sum(rise * ladder[c] for rise, c in zip(rises, steps, strict=True)))
        work = sum(instance.unit * instance.cycles[task] * literal for task, literal in running)
        model.add(instance.engines * self.length[r] >= work)

    def thresholds(self) -> None:
        """Tasks of so many cycles or more need so many rounds, all of which are at least as long.

        It follows from the whole numbers of `place`, and tightens the linear relaxation, in which a round may
        hold a quarter of a long task.
        """
        if not self.timed:
            return
        for cycles in sorted(set(self.instance.cycles)):
            long = [
                ladder[min(step for step in ladder if step >= cycles)]
                for ladder in self.ladders
                if max(ladder, default=0) >= cycles
            ]
            self.model.add(sum(long) >= self.instance.fewest_rounds(cycles))

    def carry(self, time: cp_model.LinearExprT, load: Terms, rate: Fraction | None) -> None:
        """A time is at least what a load takes at a rate."""
        bound = self.time_of(load, rate)
        if bound is not None:
            scale, taken, slack = bound
            self.model.add(scale * time >= taken - slack)

    def time_of(self, load: Terms, rate: Fraction | None) -> tuple[int, cp_model.LinearExprT, int] | None:
        """``(a, x, c)`` with ``a * time >= x - c``; ``None`` where the load takes no time."""
        if rate is None or not load:
            return None
        factor = self.instance.unit * rate.denominator
        if factor % rate.numerator == 0:
            return 1, sum(factor // rate.numerator * size * literal for literal, size in load), 0
        return rate.numerator, sum(factor * size * literal for literal, size in load), rate.numerator - 1
