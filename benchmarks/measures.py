"""How good a run was against the proven optimum: pure functions of its trace.

Keys are exact (:class:`tilewright.formulation.objective.Objective`); where an objective is a root of its
key, ``root`` says which, so that measures speak of the values that people read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Step:
    """From this second on, the best key found so far."""

    seconds: float
    key: Fraction


def overhead(key: Fraction, optimum: Fraction, root: int = 1) -> float:
    """How much dearer than the optimum: ``value / optimum - 1``; 0 only where they are equal."""
    if key == optimum:
        return 0.0
    return _rooted(key / optimum, root) - 1


def seconds_to(
    steps: Sequence[Step], optimum: Fraction, within: Fraction = Fraction(0), root: int = 1
) -> float | None:
    """When the run first had a value of at most ``(1 + within)`` times the optimum; ``None`` for never.

    Parameters
    ----------
    steps : of one run, in the order of time
    optimum : the proven key, above 0
    within : how far above the optimum is near enough, as a share of the value
    root : which root of its key the objective is
    """
    most = optimum * (1 + within) ** root
    return next((step.seconds for step in steps if step.key <= most), None)


def primal_gap(key: Fraction | None, optimum: Fraction, root: int = 1) -> float:
    """Berthold's primal gap: ``(value - optimum) / value``, and 1 without a solution.

    T. Berthold, "Measuring the impact of primal heuristics", Operations Research Letters 41 (2013), section
    2, for positive values at or above the optimum.
    """
    if key is None:
        return 1.0
    return 0.0 if key == optimum else 1 - _rooted(optimum / key, root)


def primal_integral(steps: Sequence[Step], optimum: Fraction, until: float, root: int = 1) -> float:
    """Berthold's primal integral: the primal gap integrated over the seconds from 0 to ``until``.

    It is 0 for a run that has the optimum from the start and ``until`` for one that never finds a solution.
    What the run held at its end counts up to ``until``.

    Parameters
    ----------
    steps : in the order of time
    until : the time limit that the run was given, s
    """
    area, since, gap = 0.0, 0.0, 1.0
    for step in steps:
        moment = min(max(step.seconds, since), until)
        area += gap * (moment - since)
        since, gap = moment, primal_gap(step.key, optimum, root)
    return area + gap * (until - since)


def _rooted(ratio: Fraction, root: int) -> float:
    return float(ratio) if root == 1 else float(ratio) ** (1 / root)
