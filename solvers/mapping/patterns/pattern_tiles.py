"""Storage patterns with many tiles, searched together over the inner tiles that may be wanted.

Tables of all tiles of a deep machine take far longer than the search that reads them.  What the innermost
levels of a pattern cost together, with the least that levels outside cost, leaves few of their tiles below
the goal, and most patterns none.  So patterns with the same levels are searched in one tree over the tiles of
all of them (``docs/proofs.md``, storage patterns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.patterns.pattern_bounds import BoundedPattern, PatternBounds
from tilewright.solvers.mapping.patterns.pattern_machines import levels_of, machine_of
from tilewright.solvers.mapping.patterns.patterns_together import InnerTiles, narrowed

_TOGETHER = 32  # patterns that one tree has at most
_MOST = 200_000  # rows of tiles of such a tree


@dataclass(frozen=True, slots=True)
class Batch:
    """Patterns with the same levels, and a problem that has all mappings of them that may be wanted.

    Parameters
    ----------
    patterns : in the order of their keys
    wanted : those of them that have any such mapping
    problem : the machine of their levels over some tiles; ``None`` where no pattern is wanted
    """

    patterns: Sequence[BoundedPattern]
    wanted: Sequence[BoundedPattern]
    problem: LayerProblem | None


class PatternTiles:
    """The inner tiles of patterns.

    Parameters
    ----------
    problem : the whole
    bounds : of all patterns
    """

    def __init__(self, problem: LayerProblem, bounds: PatternBounds) -> None:
        self._problem, self._bounds = problem, bounds
        self._known: dict[int, InnerTiles | None] = {}  # by the numbers of patterns
        self._machines: dict[tuple[int, ...], LayerProblem] = {}  # by their levels

    def batch(self, left: Sequence[BoundedPattern]) -> Batch | None:
        """The first of some patterns, and others that are searched with it.

        ``None`` where the tiles of the first one are too many, or not known.  Raises ``LimitReachedError``
        where a limit strikes.

        Parameters
        ----------
        left : all that are left, in the order of their keys
        """
        stored = levels_of(left[0].stores)
        alike = [pattern for pattern in left if levels_of(pattern.stores) == stored]
        batch: list[BoundedPattern] = []
        for pattern in alike:
            if self._tiles(pattern, left) is None:
                if not batch:
                    return None
                continue
            batch.append(pattern)
            if len(batch) == _TOGETHER:
                break
        while batch:
            wanted = [pattern for pattern in batch if (own := self._tiles(pattern, left)) and own.tiles]
            problem = self._narrowed(stored, wanted) if wanted else None
            if problem is None or problem.space.rows <= _MOST:
                return Batch(batch, wanted, problem)
            batch = batch[: len(batch) // 2]
        return None

    def _tiles(self, pattern: BoundedPattern, left: Sequence[BoundedPattern]) -> InnerTiles | None:
        """The tiles of a pattern; they are listed for all patterns left that store the same inside.

        ``None`` where they are too many, or not known.
        """
        if pattern.number not in self._known:
            tiles = self._bounds.tiles_of(pattern.number, [own.number for own in left])
            self._known.update(dict.fromkeys([pattern.number, *(tiles.patterns if tiles else ())], tiles))
        known = self._known[pattern.number]
        return None if known is None or known.tiles is None else known

    def _narrowed(self, stored: tuple[int, ...], patterns: Sequence[BoundedPattern]) -> LayerProblem:
        """The machine of some levels over the tiles of some patterns."""
        if stored not in self._machines:
            self._machines[stored] = self._problem.on(machine_of(self._problem.engine, stored))
        listed = {id(own): own for pattern in patterns if (own := self._known[pattern.number])}
        return narrowed(self._machines[stored], [*listed.values()])
