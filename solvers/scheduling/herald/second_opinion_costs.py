"""A second opinion on the costs of a schedule: are its mappings the best ones?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.herald.problem import Option, SchedulingProblem
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.herald.system import System
from tilewright.solvers.scheduling.herald.recost import problem_on
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
    if fresh.content_hash == problem.content_hash:
        return True, f"the costs of {len(set(operators))} layers are the least ones"
    return False, _difference(problem, fresh, metric)


def _difference(reported: SchedulingProblem, fresh: SchedulingProblem, metric: str) -> str:
    for mine, other in zip(reported.tasks, fresh.tasks, strict=True):
        options = {option.engine: option for option in mine.options}
        for option in other.options:
            name = reported.engines[option.engine]
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
