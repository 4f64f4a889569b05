"""What a solver is: it searches a problem within limits and reports to the shared search state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tilewright.formulation.search import Search


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a solver left the search.

    Parameters
    ----------
    exhausted : whether every mapping is accounted for: the incumbent is optimal, or there is none
    message : what the user should know
    error : whether the solver failed
    """

    exhausted: bool
    message: str = ""
    error: bool = False


class Solver(Protocol):
    """A solver.  A new one is one module with such an object, named in the registry."""

    name: str
    exact: bool

    @property
    def version(self) -> str:
        """Version of the underlying program."""

    def solve(self, search: Search) -> Outcome:
        """Search until done or until ``search.limits`` strike; offer mappings and bounds on the way."""
