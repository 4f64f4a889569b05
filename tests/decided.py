"""Decisions drawn at random, and what intervals know of them besides."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product as cartesian
from random import Random

from tilewright.formulation.expression import Variable
from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.expression.nodes import Sum, Tightened
from tilewright.formulation.mapping.problem import LayerProblem


def decided(problem: LayerProblem, rng: Random) -> dict[Variable, int] | None:
    """Some tiles, orders and stores of a space; ``None`` where they break a limit."""
    chosen = {selector: rng.choice(selector.domain) for selector in problem.space.selectors}
    for group in problem.space.groups:
        chosen |= zip(group.variables, group.rows[rng.randrange(len(group))].tolist(), strict=True)
    legal = all(evaluate(limit.expr, chosen) <= limit.bound for limit in problem.limits)
    return chosen if legal else None


def closeness(knowing: LayerProblem, chosen: Mapping[Variable, int]) -> float:
    """The largest share of a term of the energy that is known of a decision, by exact numbers; at most 1."""
    closest, energy = 0.0, knowing.statement.energy
    for part in [part for _, part in energy.terms] if isinstance(energy, Sum) else [energy]:
        if isinstance(part, Tightened):
            divisions = [variable for variable in part.lower.support if variable not in chosen]
            options = cartesian(*(variable.domain for variable in divisions))
            lower = min(
                evaluate(part.lower, {**chosen, **dict(zip(divisions, option, strict=True))})
                for option in options
            )
            value = evaluate(part.argument, chosen)
            assert lower <= value
            closest = max(closest, lower / value if value else 0.0)
    return closest
