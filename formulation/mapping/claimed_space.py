"""The space that a claim is about, by name: storage, factors, tiles, constraints.

``optimal`` means over this space.  ``docs/proofs.md`` says what lies outside it and what that can be worth.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.formulation.mapping.membership import tiles_of
from tilewright.formulation.mapping.problem import IMPERFECT, PERFECT, LayerProblem


@dataclass(frozen=True, slots=True)
class ClaimedSpace:
    """The space that a search covered.

    Parameters
    ----------
    storage : ``even`` where all tensors of a level begin to live at one point, ``uneven`` where each has its
        own
    factors : ``perfect`` or ``imperfect``
    tiles : per dimension of more than one iteration, which tiles it may have inside the tile around them
    constraints : the user's demands, in a reproducible sequence
    """

    storage: str
    factors: str
    tiles: MappingABC[str, str]
    constraints: tuple[str, ...]

    @classmethod
    def of(cls, problem: LayerProblem) -> ClaimedSpace:
        """The space of a problem."""
        factors = PERFECT if problem.space.nest.perfect else IMPERFECT
        return cls(problem.storage, factors, tiles_of(problem.space), problem.constraints.texts)


def space_text(storage: str, factors: str, tiles: MappingABC[str, str], constraints: tuple[str, ...]) -> str:
    """``even storage, imperfect factors, tiles ceil(outer/n), cycles<=1000000``.

    Parameters
    ----------
    storage : ``even`` or ``uneven``
    factors : ``perfect`` or ``imperfect``
    tiles : per dimension, the kind of its tiles, such as ``ceil(outer/n)``
    constraints : the user's demands, as canonical texts
    """
    kinds = dict.fromkeys(tiles.values())
    if len(kinds) > 1:
        shown = [f"{kind} ({' '.join(d for d, k in tiles.items() if k == kind)})" for kind in kinds]
    else:
        shown = list(kinds)
    parts = [f"{storage} storage", f"{factors} factors"]
    parts += [f"tiles {', '.join(shown)}"] if shown else []
    return ", ".join([*parts, *constraints])
