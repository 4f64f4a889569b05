"""Tiles that are best in parts of a machine, as a small space of mappings of the whole.

A search of what some levels cost at least (:mod:`tilewright.solvers.mapping.patterns.pattern_bounds`,
:mod:`tilewright.solvers.mapping.patterns.inner_bounds`) ends with tiles around the array and inside it of
which that part would like best to be made.  Mappings of the whole over such tiles, those of several parts
and of the best mapping known mixed, and any tiles further outside are some thousand rows where all tiles
are some hundred thousand: the neighbourhood that a relaxation induces (Danna, Rothberg, Le Pape, "Exploring
relaxation induced neighborhoods to improve MIP solutions", Mathematical Programming 102, 2005).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from tilewright.formulation.expression import Constant, Expr, Variable
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.nests.nest import Nest
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.solvers.mapping.presolve.encode import tile_sizes


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """What a part of the machine costs at least.

    Parameters
    ----------
    part : the problem that was searched
    least : lower bound of its energy, pJ
    is_exact : whether nothing is left open below that: it is the least, or as much as was asked for
    tiles : tile sizes of the cheapest mapping found that costs less than was asked for; none without one
    """

    part: LayerProblem
    least: float
    is_exact: bool
    tiles: MappingABC[Variable, int]


class PartTiles:
    """The tiles of parts, by the tile sizes of the whole problem that they stand for."""

    def __init__(self, problem: LayerProblem) -> None:
        self._problem = problem
        self._sizes: dict[Variable, set[int]] = {}

    def learn(self, answer: PartAnswer) -> bool:
        """Add the tiles of a part; whether any of them are new."""
        if not answer.tiles:
            return False
        before = sum(map(len, self._sizes.values()))
        for own, other in _alike(self._problem.space.nest, answer.part.space.nest):
            if isinstance(own, Variable) and (other in answer.tiles or isinstance(other, Constant)):
                size = other.value if isinstance(other, Constant) else answer.tiles[other]  # type: ignore[index]
                self._sizes.setdefault(own, set()).add(size)
        return sum(map(len, self._sizes.values())) > before

    def mix(self, mapping: Mapping) -> None:
        """Add those of a mapping of the whole, where a part has some."""
        for variable, size in tile_sizes(self._problem, mapping).items():
            if variable in self._sizes:
                self._sizes[variable].add(size)

    @property
    def problem(self) -> LayerProblem:
        """The whole problem over these tiles, and any tiles where no part has one."""
        return self._problem.having({variable: frozenset(own) for variable, own in self._sizes.items()})


def _alike(whole: Nest, part: Nest) -> Iterator[tuple[Expr, Expr]]:
    """Tile sizes of both nests in the same places, counted from the inside.

    The outermost block of a part stands for several of the whole, so the tiles outside it are others.
    """
    for back, (block, other) in enumerate(zip(whole.blocks[::-1], part.blocks[:0:-1], strict=False), start=2):
        if block.axis != other.axis:
            return
        outer, inner = whole.boundaries[-back], part.boundaries[-back]
        yield from ((outer[dim], inner[dim]) for dim in whole.operator.bounds)
