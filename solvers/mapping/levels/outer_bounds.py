"""What the outermost levels of a machine cost together, where tensors part there.

Which loops iterate outside each store decides how often tensors are fetched, far more than the sizes of
tiles do, so that is decided first (:mod:`tilewright.formulation.mapping.parts.outer_levels` states the
problem). Its least key bounds all mappings; where few of its tiles cost less than some key, only mappings
with these have to be searched.
"""

from __future__ import annotations

from tilewright.formulation.mapping.parts.outer_levels import edges_of, first_stores, outer_problem
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.levels.levels_together import LevelsTogether
from tilewright.solvers.mapping.tables.stages import outer_stages
from tilewright.solvers.mapping.tree.goals import Below, Minimum
from tilewright.solvers.mapping.tree.listed_tiles import ListedTiles

_EFFORT = 8_000_000  # nodes bounded at most in one search
_LOOK = 1_000_000  # nodes bounded before a search shows whether it gets above what is known
_MOST = 20_000  # decisions that are listed
_SOURCE = "outer levels"


class OuterLevels(LevelsTogether):
    """The problem of the outermost levels, up to the last one that some tensor reaches first.

    There is one where :func:`first_stores` says so.  Raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    search : of the whole
    """

    def __init__(self, search: LayerSearch) -> None:
        firsts = first_stores(search.problem)
        assert firsts is not None
        part = outer_problem(search.problem, max(firsts.values()))
        edges = edges_of(part, firsts)
        stages = outer_stages(part.space.nest, edges)
        # Tensors with stores further inside are counted as if the last level stored them.
        super().__init__(search, part, (edges, edges), stages, _LOOK, _EFFORT, every_order=True)

    def below(self, key: float) -> LayerProblem | None:
        """The whole over the tiles of first stores with which mappings may have less than some key.

        ``None`` if they are too many to be listed.  Raises ``LimitReachedError`` where a limit strikes.

        Parameters
        ----------
        key : in pJ and cycles; what the incumbent leaves to gain counts as well
        """
        goal = Below(Minimum(self.search, _SOURCE), key * float(self.search.problem.key_scale))
        listed = ListedTiles(goal, self.part, self.edges[0], _MOST)
        if self.searched(listed, dives=False) is not None or listed.are_too_many:
            return None
        return self.having(listed.tiles())
