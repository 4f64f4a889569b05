"""A second opinion on the costs of a schedule's document: are its mappings the best ones?"""

from __future__ import annotations

from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.report.checks.scheduling.herald.schedule import ScheduleCheck
from tilewright.solvers.scheduling.herald.recost import problem_on
from tilewright.workloads.errors import InputError


def costs_opinion(check: ScheduleCheck, limits: Limits) -> tuple[bool | None, str]:
    """Compute every layer's costs anew, without the file of cost tables.

    Returns
    -------
    Whether the options are the best ones, ``None`` where that was not decided, and a text.
    """
    document, problem = check.document, check.problem
    assert document.problem is not None
    assert problem is not None
    try:
        operators = document.problem.operators("problem")
        metric = document.settings.metric
        (fresh,) = problem_on(problem, operators, [document.system.build()], metric, limits)
    except InputError as error:
        return None, f"costs were not computed again: {error}"
    except LimitReachedError:
        return None, "no time was left to compute costs again"
    if fresh.content_hash == problem.content_hash:
        return True, f"the costs of {len(set(operators))} layers are the least ones"
    return False, _difference(problem, fresh, metric)


def _difference(told: SchedulingProblem, fresh: SchedulingProblem, metric: str) -> str:
    for mine, other in zip(told.tasks, fresh.tasks, strict=True):
        options = {option.engine: option for option in mine.options}
        for option in other.options:
            name = told.engines[option.engine]
            stored = options.get(option.engine)
            if stored is None:
                return f"{mine.name} fits on {name}, which the document does not tell"
            if _figure(option, metric) != _figure(stored, metric):
                return (
                    f"{mine.name} on {name} has {metric} {float(_figure(stored, metric)):.9g}, "
                    f"a new computation finds {float(_figure(option, metric)):.9g}"
                )
    return "options are not those that a new computation finds"


def _figure(option: Option, metric: str) -> Fraction:
    time = Fraction(option.cycles)
    return {"cycles": time, "energy": option.energy, "edp": time * option.energy}[metric]
