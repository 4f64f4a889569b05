"""What every answer of a search says of itself: status, value, bound, gap, and how they came about."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tilewright.api.display import Displayed
from tilewright.formulation.result import Status
from tilewright.report.records.claims import ClaimRecord


class Claimed(Displayed):
    """An answer with its proof; subclasses hold the record that it is read from."""

    @property
    def claims(self) -> ClaimRecord:
        """The record of what is claimed."""
        raise NotImplementedError

    @property
    def status(self) -> Status:
        """How the search ended."""
        return Status(self.claims.status)

    @property
    def value(self) -> float | int | None:
        """The objective's value as it is shown; ``None`` where nothing was found."""
        return self.claims.value

    @property
    def bound(self) -> float | int | None:
        """Nothing in the searched space has a smaller value."""
        return self.claims.bound

    @property
    def gap(self) -> float | None:
        """``(value - bound) / value``; 0 only where it is proven that nothing is better."""
        return self.claims.gap

    @property
    def key(self) -> Fraction | None:
        """The exact figure that solvers compare: the value to a whole power, as a fraction."""
        return self.claims.value_key

    @property
    def bound_key(self) -> Fraction | None:
        """The bound of `key`."""
        return self.claims.bound_key

    @property
    def message(self) -> str:
        """Why there is no answer, or what went wrong; often empty."""
        return self.claims.message

    @property
    def trace(self) -> list[dict[str, Any]]:
        """The course of the search: seconds, value, bound, gap and source of every step."""
        return [point.model_dump() for point in self.claims.trace]
