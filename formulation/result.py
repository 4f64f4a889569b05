"""What every search returns: a status, a solution, a bound, and how they came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping


class Status(StrEnum):
    """How a search ended."""

    OPTIMAL = "optimal"  #: a valid bound equals the value re-computed by the evaluator
    FEASIBLE = "feasible"  #: a solution and a valid bound below it
    INFEASIBLE = "infeasible"  #: proven that there is no solution
    UNKNOWN = "unknown"  #: a limit was reached before any solution
    INTERRUPTED = "interrupted"  #: stopped by the user, with what was found
    ERROR = "error"  #: a solver died or misbehaved, with what was found before


@dataclass(frozen=True, slots=True)
class TracePoint:
    """One step of a search.

    Parameters
    ----------
    seconds : since the start of the call
    value, bound : best objective key and best proven bound at that time, if any
    source : the solver or heuristic that made the step
    improved : whether the step found a better solution (otherwise the bound moved)
    heuristic : whether a heuristic made it
    """

    seconds: float
    value: Fraction | None
    bound: Fraction | None
    source: str
    improved: bool
    heuristic: bool = False


@dataclass(frozen=True, slots=True)
class Beside:
    """A legal mapping from outside the searched space.  No claim rests on it.

    Parameters
    ----------
    value : objective key
    reason : why it lies outside
    source : who offered it
    """

    mapping: Mapping
    evaluation: Evaluation
    value: Fraction
    reason: str
    source: str


@dataclass(frozen=True)
class SearchResult:
    """The outcome of one search.

    Parameters
    ----------
    value : objective key of the best mapping, re-computed by the evaluator
    bound : no mapping of the searched space has a smaller key
    message : why there is no solution, or what went wrong
    beside : the best mapping from outside the space that was offered, if any was
    """

    status: Status
    mapping: Mapping | None
    evaluation: Evaluation | None
    value: Fraction | None
    bound: Fraction | None
    trace: tuple[TracePoint, ...]
    solver: str
    solver_version: str
    seed: int
    wall_seconds: float
    input_hash: str
    message: str = ""
    clash: Sequence[str] = ()
    beside: Beside | None = None

    @property
    def gap(self) -> float | None:
        """``(value - bound) / value``; ``None`` without both."""
        return relative_gap(self.value, self.bound)


def relative_gap(value: Fraction | None, bound: Fraction | None) -> float | None:
    """``(value - bound) / value``, 0 for equal values, ``None`` where one is missing."""
    if value is None or bound is None:
        return None
    return 0.0 if value == bound else float((value - bound) / value)
