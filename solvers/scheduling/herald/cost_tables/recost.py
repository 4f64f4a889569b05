"""A scheduling problem restated on other systems, with the costs of its layers computed there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.problem import SchedulingProblem
from tilewright.hardware.scheduling.herald.system import System
from tilewright.solvers.scheduling.herald.cost_tables.build import options_of
from tilewright.solvers.scheduling.herald.cost_tables.costs import cost_table
from tilewright.workloads.mapping.operator import Operator


def problem_on(
    problem: SchedulingProblem,
    operators: Sequence[Operator],
    systems: Sequence[System],
    metric: str,
    limits: Limits,
) -> Iterator[SchedulingProblem]:
    """The problem on each of some systems, its costs computed anew whatever is cached on disk.

    Parameters
    ----------
    operators : of every task
    metric : by which the mapping of a layer on a sub-accelerator is chosen

    Raises
    ------
    LimitReachedError : where a limit struck before the costs were known
    """
    distinct = list(dict.fromkeys(operators))
    table = cost_table(distinct, systems, limits, chosen=(metric,), anew=True)

    def on(system: System) -> SchedulingProblem:
        options = {operator: options_of(operator, system, metric, table) for operator in distinct}
        return replace(
            problem,
            name=system.name,
            engines=tuple(sub.name for sub in system.subs),
            tasks=tuple(
                replace(task, options=options[operator])
                for task, operator in zip(problem.tasks, operators, strict=True)
            ),
            memory=system.memory_bytes,
            context_cycles=system.context_cycles,
            context_energy=system.context_energy,
        )

    return map(on, systems)
