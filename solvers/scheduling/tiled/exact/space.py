"""The space in which exact answers are optimal: round plans of given atoms."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import Evaluation
from tilewright.formulation.scheduling.tiled.plan import Plan, Residency, make_residency, make_transfers
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal
from tilewright.formulation.search import Judgement


@dataclass(frozen=True, eq=False)
class RoundSpace(TiledGoal):
    """The best round plan of given atoms.

    A round plan runs every atom within one step, moves whole blocks within one step each, writes whole
    results back, has at most ``idle`` steps without an atom before the last atom, and one step after it.

    Parameters
    ----------
    dag : the atoms
    idle : steps without an atom before the last atom, at most
    """

    dag: AtomicDag
    idle: int = 0

    @cached_property
    def content_hash(self) -> str:
        """That of the problem, with the atoms and the space."""
        goal = TiledGoal(self.problem).content_hash
        return hashlib.sha256(repr((goal, self.dag.tilings, self.idle)).encode()).hexdigest()

    @property
    def space(self) -> str:
        """What a claim is about, in words."""
        gaps = "no step" if self.idle == 0 else f"at most {self.idle} step{'s' if self.idle > 1 else ''}"
        return (
            f"round plans of {self.dag.tasks} given atoms: each atom and each transfer of a whole block in "
            f"one step, {gaps} without an atom before the last one"
        )

    def judge(self, answer: AtomicPlan) -> Judgement[AtomicPlan, Evaluation | None]:
        """What a plan costs, what it violates, and why it is outside."""
        judgement = super().judge(answer)
        if judgement.violations:
            return judgement
        return Judgement(answer, judgement.evaluation, judgement.key, (), self.outside(answer))

    def outside(self, answer: AtomicPlan) -> str | None:
        """Why a legal plan is no round plan of these atoms; ``None`` where it is one."""
        if answer.dag is not self.dag and answer.dag.tilings != self.dag.tilings:
            return "it has other atoms"
        plan, moving = answer.plan, answer.plan.transfers
        if (plan.first != plan.last).any():
            return "an atom runs over several steps"
        if (moving.first != moving.last).any():
            return "a transfer takes several steps"
        if (moving.bytes != self.dag.block_bytes[moving.block]).any():
            return "a transfer moves part of a block"
        back = moving.target >= self.problem.machine.engines
        if (moving.block[back] >= self.dag.tasks).any():
            return "part of a result is written back"
        last = int(plan.first.max())
        idle = last + 1 - len(np.unique(plan.first))
        if idle > self.idle:
            return f"{idle} steps before the last atom run none"
        if plan.steps > last + 2:
            return "more than one step follows the last atom"
        return None


def idle_steps(plan: Plan) -> int:
    """Steps without a task before the last task."""
    return int(plan.last.max()) + 1 - len(np.unique(plan.first))


def as_round_plan(dag: AtomicDag, plan: Plan, engines: int) -> Plan:
    """The same plan with every transfer in the last one of its steps; its tasks must take one step each.

    A source that holds a block until the last step holds it then, too; whoever waits for the block waits for
    that step already.  The load of the last step grows, so that the plan may take longer.
    """
    moving, held = plan.transfers, plan.residency
    columns = [
        column.astype(np.int64)
        for column in (moving.block, moving.source, moving.target, moving.bytes, moving.last, moving.last)
    ]
    start = held.start.astype(np.int64)
    arrivals = {
        (int(b), int(e), int(first)): int(last)
        for b, e, first, last in zip(moving.block, moving.target, moving.first, moving.last, strict=True)
        if e < engines
    }
    for i, key in enumerate(zip(held.block.tolist(), held.engine.tolist(), held.start.tolist(), strict=True)):
        start[i] = arrivals.get(key, int(start[i]))
    residency: Residency = make_residency(
        held.block.astype(np.int64), held.engine.astype(np.int64), start, held.end.astype(np.int64)
    )
    return Plan(plan.engine, plan.first, plan.last, make_transfers(engines, *columns), residency, plan.steps)


def in_turn(plan: Plan, tasks: int, engines: int) -> Plan:
    """A round plan with one task in a step; it moves the same, and takes longer.

    Of a step that becomes several, all transfers are in the first, and what is held stays through all.

    Parameters
    ----------
    plan : a round plan
    tasks, engines : of the atoms and of the machine
    """
    moving, held, first = plan.transfers, plan.residency, plan.first.astype(np.int64)
    running = np.bincount(first, minlength=plan.steps)
    begins = np.concatenate([[0], np.cumsum(np.maximum(running, 1))])
    order = np.lexsort((plan.engine, first))
    step = np.empty(tasks, dtype=np.int64)
    step[order] = begins[first[order]] + np.arange(tasks) - np.searchsorted(first[order], first[order])
    at = begins[moving.first]
    block, source, target, size = (
        column.astype(np.int64) for column in (moving.block, moving.source, moving.target, moving.bytes)
    )
    start = begins[held.start]
    made = np.flatnonzero(held.block < tasks)
    here = made[
        (plan.engine[held.block[made]] == held.engine[made]) & (first[held.block[made]] == held.start[made])
    ]
    start[here] = step[held.block[here]]
    stays = make_residency(
        held.block.astype(np.int64), held.engine.astype(np.int64), start, begins[held.end + 1] - 1
    )
    steps = step.astype(np.int32)
    transfers = make_transfers(engines, block, source, target, size, at, at)
    return Plan(plan.engine, steps, steps.copy(), transfers, stays, int(begins[-1]))
