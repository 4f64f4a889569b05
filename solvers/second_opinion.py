"""What another solver says of a claim: the verdict of a proof that is asked again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What the other solver says of a claim."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOTHING = "nothing claimed"


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict, by whom, and what it rests on.

    Parameters
    ----------
    solver : who decided; ``-`` for nobody
    text : the reason, in one line
    seconds : that it took
    """

    verdict: Verdict
    solver: str
    text: str
    seconds: float = 0.0
