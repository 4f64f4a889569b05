"""The best fused mapping of one group of layers, which passes on all that they read of each other."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import CostModel
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.answers import FusedAnswer
from tilewright.solvers.mapping.fused.search import FusedSearch


def search_fused(
    group: FusedGroup,
    engine: Engine,
    model: CostModel,
    limits: Limits,
    cutoff: Fraction | None = None,
    factors: str | None = "perfect",
    storage: str | None = None,
    home_level: str | None = None,
    progress: Callable[[FusedAnswer], None] | None = None,
) -> FusedAnswer:
    """The best fused mapping of a whole group.

    Parameters
    ----------
    group, engine, model : the layers, the machine and its cost model
    limits : of the whole call
    cutoff : pJ that can be had otherwise
    factors, storage : the space of the layers' mappings within turns
    home_level : the only level that may be a home
    progress : told when the search is over
    """
    search = FusedSearch(group, engine, model, limits, factors, storage, home_level)
    answer = search.run(cutoff)
    if progress is not None:
        progress(answer)
    return answer
