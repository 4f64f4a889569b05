"""What every check of a document says: whether claims hold, what is wrong, and the second opinions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.api.display import Displayed
from tilewright.solvers.second_opinion import Proof as Proof
from tilewright.solvers.second_opinion import Verdict


@dataclass(frozen=True, repr=False)
class Check(Displayed):
    """What a check found; subclasses hold the record, and what of it was looked at.

    Parameters
    ----------
    faults : everything that is wrong, each in one line
    proofs : second opinions, where they were asked for
    """

    faults: tuple[str, ...]
    proofs: tuple[Proof, ...]

    @property
    def holds(self) -> bool:
        """Whether every claim holds, and no second opinion refutes one."""
        return not self.faults and not self._says(Verdict.REFUTED)

    @property
    def undecided(self) -> bool:
        """Whether a second opinion came to no verdict."""
        return self._says(Verdict.UNDECIDED)

    def __bool__(self) -> bool:
        return self.holds

    def _says(self, verdict: Verdict) -> bool:
        return any(proof.verdict is verdict for proof in self.proofs)

    def rows(self) -> list[dict[str, Any]]:
        """One row per fault."""
        return [{"fault": fault} for fault in self.faults]

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        raise NotImplementedError

    def _reported(self, head: Mapping[str, Any], *, complete: bool) -> dict[str, Any]:
        """The beginning of that: what was checked, and whether it holds."""
        begin = {"schema": "tilewright.check/1", "command": "check"}
        return {**begin, **head, "holds": self.holds, "complete": complete}

    def __repr__(self) -> str:
        return self._named(f"{len(self.faults)} faults")

    def _named(self, what: str) -> str:
        return f"{type(self).__name__}({'holds' if self.holds else 'fails'}, {what})"
