"""What every search returns: a status, an answer, a bound, and how they came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Generic, TypeVar

from tilewright.formulation.effort import Effort

Answer = TypeVar("Answer")
Evaluation = TypeVar("Evaluation")


class Status(StrEnum):
    """How a search ended."""

    OPTIMAL = "optimal"  #: a valid bound equals the key re-computed by the evaluator
    FEASIBLE = "feasible"  #: an answer and a valid bound below it
    INFEASIBLE = "infeasible"  #: proven that there is no answer
    UNKNOWN = "unknown"  #: a limit was reached before any answer
    INTERRUPTED = "interrupted"  #: stopped by the user, with what was found
    ERROR = "error"  #: a method died or misbehaved, with what was found before


class Origin(StrEnum):
    """Where an answer comes from."""

    EXACT = "exact"  #: a method that proves what it finds
    HEURISTIC = "heuristic"  #: a method that guesses
    GIVEN = "given"  #: it was there at the beginning, from a file or an earlier search


@dataclass(frozen=True, slots=True)
class TracePoint:
    """One step of a search.

    Parameters
    ----------
    seconds : since the start of the call
    key, bound : best objective key and best proven bound at that time, if any
    source : the method that made the step
    improved : whether the step found a better answer (otherwise the bound moved)
    origin : where that answer comes from
    """

    seconds: float
    key: Fraction | None
    bound: Fraction | None
    source: str
    improved: bool
    origin: Origin = Origin.EXACT


@dataclass(frozen=True, slots=True)
class OutOfSpaceSolution(Generic[Answer, Evaluation]):
    """A legal answer from outside the searched space.  No claim depends on it.

    Parameters
    ----------
    key : objective key
    reason : why it is outside
    source : who offered it
    """

    answer: Answer
    evaluation: Evaluation
    key: Fraction
    reason: str
    source: str


@dataclass(frozen=True)
class Result(Generic[Answer, Evaluation]):
    """The outcome of one search.

    Parameters
    ----------
    key : objective key of the best answer, re-computed by the evaluator
    bound : no answer of the searched space has a smaller key
    method, version : who searched
    input_hash : of the problem's content
    message : why there is no answer, or what went wrong
    conflict : where there is no answer, demands that no answer satisfies together, and of which none can be
        left out
    out_of_space : the best legal answer from outside the searched space that was offered, if any
    effort : nodes, tables, seconds and memory that it took
    """

    status: Status
    answer: Answer | None
    evaluation: Evaluation | None
    key: Fraction | None
    bound: Fraction | None
    trace: tuple[TracePoint, ...]
    method: str
    version: str
    seed: int
    wall_seconds: float
    input_hash: str
    message: str = ""
    conflict: Sequence[str] = ()
    out_of_space: OutOfSpaceSolution[Answer, Evaluation] | None = None
    effort: Effort = field(default_factory=Effort)

    @property
    def gap(self) -> float | None:
        """``(key - bound) / key``; ``None`` without both."""
        return relative_gap(self.key, self.bound)


def relative_gap(key: Fraction | None, bound: Fraction | None) -> float | None:
    """``(key - bound) / key``, 0 for equal keys, ``None`` where one is missing."""
    if key is None or bound is None:
        return None
    return 0.0 if key == bound else float((key - bound) / key)
