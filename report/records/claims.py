"""What a search claims, in every document in the same words: status, value, bound and gap.

Figures are shown as integers where they are integral and as floats elsewhere; beside each stands the exact
key as a fraction, so that nothing is lost on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from pydantic import Field

from tilewright.formulation.objective import Objective
from tilewright.formulation.result import Result
from tilewright.report.records.mapping.operator import Record

EXACT_DIGITS = 1000
"""Characters of an exact figure; what is computed of such figures can still be written down."""
Number = int | float
ExactText = Annotated[str, Field(pattern=r"^[0-9]+(/[1-9][0-9]*)?$", max_length=EXACT_DIGITS)]
StatusName = Literal["optimal", "feasible", "infeasible", "unknown", "interrupted", "error"]


class TraceRecord(Record):
    """One step of a search: a better mapping, or a better bound."""

    seconds: float
    value: Number | None
    bound: Number | None
    gap: float | None
    source: str
    improved: bool
    heuristic: bool


class KeyedRecord(Record):
    """A record with a value and a bound as exact fractions, which it declares at their place."""

    if TYPE_CHECKING:
        value_exact: ExactText | None
        bound_exact: ExactText | None

    @property
    def value_key(self) -> Fraction | None:
        """The objective's key; ``None`` where there is no answer."""
        return None if self.value_exact is None else Fraction(self.value_exact)

    @property
    def bound_key(self) -> Fraction | None:
        """A lower bound of the key, if one is known."""
        return None if self.bound_exact is None else Fraction(self.bound_exact)


class ClaimRecord(KeyedRecord):
    """What any search claims, figures as shown with their exact keys beside them.

    A record of a question with its claims inherits from this class first and from its question after it: the
    fields of the question then stand before these, and those of its own after them.
    """

    status: StatusName
    value: Number | None
    value_exact: ExactText | None
    bound: Number | None
    bound_exact: ExactText | None
    gap: float | None

    if TYPE_CHECKING:  # at their own place in every record
        message: str
        trace: list[TraceRecord]


class Figures(TypedDict):
    """Fields of a record with a value and a bound."""

    value: Number | None
    value_exact: str | None
    bound: Number | None
    bound_exact: str | None


class Claim(Figures):
    """Fields of a record with the claims of a search."""

    status: StatusName
    gap: float | None


def figures(key: Fraction | None, bound: Fraction | None, shown: Callable[[Fraction], Number]) -> Figures:
    """A value and a bound as fields of a record.

    Parameters
    ----------
    key, bound : keys of the objective
    shown : what is shown of a key, such as `Objective.value`
    """
    return {
        "value": None if key is None else shown(key),
        "value_exact": None if key is None else str(key),
        "bound": None if bound is None else shown(bound),
        "bound_exact": None if bound is None else str(bound),
    }


def claim(
    objective: Objective, result: Result[Any, Any], shown: Callable[[Fraction], Number] | None = None
) -> Claim:
    """What a result claims, as fields of a record.

    Parameters
    ----------
    shown : what is shown of a key; by default the objective's value
    """
    return {
        "status": result.status.value,
        **figures(result.key, result.bound, shown or objective.value),
        "gap": shown_gap(objective, result.key, result.bound),
    }


def number(value: Fraction | int) -> Number:
    """An integer where the value is integral, the nearest float elsewhere."""
    return int(value) if value == int(value) else float(value)


def at_most(bound: Fraction) -> Number:
    """A number that is no larger than a lower bound."""
    shown = number(bound)
    return shown if shown <= bound else math.nextafter(shown, 0)


def shown_value(objective: Objective, key: Fraction | None) -> Number | None:
    """The objective's value of a key."""
    return None if key is None else objective.value(key)


def shown_gap(objective: Objective, value: Fraction | None, bound: Fraction | None) -> float | None:
    """Relative gap of the values that are shown; 0 only where the keys are equal."""
    if value is None or bound is None:
        return None
    if value == bound:
        return 0.0
    if value == 0:
        return None
    if objective.root == 1:
        return float((value - bound) / value)
    return float(1 - float(bound / value) ** (1 / objective.root))
