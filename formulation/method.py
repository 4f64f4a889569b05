"""What a method is: it searches a problem within limits and reports to the shared search state.

Exact solvers and heuristics are both methods; one that is not exact proves nothing.  Users name a method
with its options in one text, such as ``branch`` or ``dmazerunner[opt=1-3]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

S_contra = TypeVar("S_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a method left the search.

    Parameters
    ----------
    exhausted : whether every answer is accounted for: the incumbent is optimal, or there is none
    message : what the user should know
    error : whether the method failed
    """

    exhausted: bool = False
    message: str = ""
    error: bool = False


class Method(Protocol[S_contra]):
    """A method that works on one kind of search.  A new one is one module with such an object, named in a
    registry.
    """

    @property
    def name(self) -> str:
        """The name that the method is registered by."""

    @property
    def exact(self) -> bool:
        """Whether it proves what it finds; a heuristic's answer is never ``optimal``."""

    @property
    def version(self) -> str:
        """Version of the underlying program."""

    def solve(self, search: S_contra) -> Outcome:
        """Search until ``search.done``; offer answers and bounds on the way."""


def is_stochastic(method: object) -> bool:
    """Whether a method's answer depends on the seed; one that draws at random says so by ``stochastic``."""
    return bool(getattr(method, "stochastic", False))


def states_models(method: object) -> bool:
    """Whether a method states the whole space as a model, which takes memory for every row of tiles.

    One that does says so by ``states_models``; it sees fewer rows then (``solvers/mapping/narrowed.py``).
    """
    return bool(getattr(method, "states_models", False))


def knows_arrangements(method: object) -> bool:
    """Whether a method searches all arrangements of uneven storage by itself, as it says by that name."""
    return bool(getattr(method, "knows_arrangements", False))
