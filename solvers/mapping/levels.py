"""Energy by levels: what the outer levels cost at least bounds every part of the space.

Energy is a sum over memory levels.  The least energy of the outermost ones alone, over the whole space, is
found in milliseconds, because it depends on the outermost tiles only; wherever intervals know less of it than
that, it counts instead (``docs/proofs.md``, energy by levels).
"""

from __future__ import annotations

from tilewright.formulation.expression import Expr, tighten, total
from tilewright.formulation.mapping.problem import LayerProblem


def by_levels(problem: LayerProblem) -> tuple[Expr, tuple[Expr, ...]]:
    """The energy as a sum in which the outermost level, the two outermost, and so on are terms of their own.

    The two innermost levels are in no such term: there the whole is no harder.

    Returns the energy, and these terms, the outermost level's first.
    """
    statement = problem.statement
    names = [level.name for level in problem.engine.levels]
    split: dict[str, list[Expr]] = {name: [] for name in names}
    rest: list[Expr] = []
    for component, expr in statement.components.items():
        owner = next((name for name in names if component == name or component.startswith(f"{name} ")), None)
        (rest if owner is None else split[owner]).append(expr)
    if total(statement.components.values()) is not statement.energy:
        return statement.energy, ()
    parts: list[Expr] = []
    outer: list[Expr] = []
    for name in names[:-2]:
        part = tighten(total([*outer, *split[name]]))
        outer = [part]
        if part.group is None and part not in parts:
            parts.append(part)
    inner = [expr for name in names[-2:] for expr in split[name]]
    return total([*outer, *inner, *rest]), tuple(parts)
