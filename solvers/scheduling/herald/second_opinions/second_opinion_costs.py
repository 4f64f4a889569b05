"""A second opinion on the costs of a schedule: are its mappings the best ones?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.herald.system import System
from tilewright.solvers.scheduling.herald.cost_tables.recost import problem_on
from tilewright.workloads.mapping.operator import Operator


def costs_opinion(
    problem: SchedulingProblem,
    layers: Callable[[], tuple[Sequence[Operator], System]],
    metric: str,
    limits: Limits,
) -> tuple[bool | None, str]:
    """Compute every layer's costs again, without the file of cost tables.

    Parameters
    ----------
    problem : with the costs in question
    layers : the operator of every task, and the system; may raise ``InputError``
    metric : by which the mapping of a layer on a sub-accelerator is chosen

    Returns
    -------
    Whether the options are the best ones, ``None`` where that was not decided, and a text.
    """
    try:
        operators, system = layers()
        (fresh,) = problem_on(problem, operators, [system], metric, limits)
    except InputError as error:
        return None, f"costs were not computed again: {error}"
    except LimitReachedError:
        return None, "no time was left to compute costs again"
    left = _left_open(problem, fresh)
    if not left and fresh.content_hash == problem.content_hash:
        return True, f"the costs of {len(set(operators))} layers are the least ones"
    difference = _difference(problem, fresh, metric)
    if difference is None and left:
        return None, f"not proven in time to cost least: {left[0]}, {len(left)} costs in all"
    return False, difference or "options are not those that a new computation finds"


def _left_open(reported: SchedulingProblem, fresh: SchedulingProblem) -> list[str]:
    """Costs on engines from machine files of which one of both did not prove that none is less."""
    return [
        f"{task.name} on {problem.engines[option.engine]}"
        for problem in (reported, fresh)
        for task in problem.tasks
        for option in task.options
        if not option.proven
    ]


def _difference(reported: SchedulingProblem, fresh: SchedulingProblem, metric: str) -> str | None:
    """The first figure that a new computation does not confirm; a mapping that was left open claims none."""
    for mine, other in zip(reported.tasks, fresh.tasks, strict=True):
        options = {option.engine: option for option in mine.options}
        for option in other.options:
            name = reported.engines[option.engine]
            stored = options.get(option.engine)
            if stored is None:
                return f"{mine.name} fits on {name}, which the document does not tell"
            new, claimed = _figure(option, metric), _figure(stored, metric)
            if stored.proven and (new != claimed if option.proven else new < claimed):
                return (
                    f"{mine.name} on {name} has {metric} {float(_figure(stored, metric)):.9g}, "
                    f"a new computation finds {float(_figure(option, metric)):.9g}"
                )
    return None


def _figure(option: Option, metric: str) -> Fraction:
    time = Fraction(option.cycles)
    return {"cycles": time, "energy": option.energy, "edp": time * option.energy}[metric]
