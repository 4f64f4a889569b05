"""The arrangements of a machine whose levels nothing may bypass: near sequences of points with inner ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.nests.arrangements import Arrangement, Reduction, is_spread
from tilewright.formulation.mapping.parts.segment_parts import (
    even_halves,
    inner_arrangements,
    near_arrangements,
    within,
)
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.tiles.boundary_tiles import Tiles, restricted

_Item = TypeVar("_Item")


class Wholes:
    """The arrangements, and the problem of each.

    Raises ``LimitReachedError`` where a limit strikes, as :meth:`of` does.

    Parameters
    ----------
    even_open : whether the even part is one of them

    Attributes
    ----------
    near : the sequences of points in the outermost level and the near ones
    inner : those further inside
    """

    def __init__(self, problem: LayerProblem, limits: Limits, even_open: bool) -> None:
        self._problem, self._limits = problem, limits
        # Machines of many levels have thousands of these, and there are hundreds of such machines.
        self.near = listed(near_arrangements(problem), limits)
        self.inner = listed(inner_arrangements(problem, limits.check), limits)
        self._every: set[Arrangement] | None = None  # where not every near sequence has every inner one
        self._stated: dict[Arrangement, LayerProblem] = {}
        if problem.reduction is not Reduction.FORMS:  # the even part holds more than their even nests
            every = ((*near, *inner) for near in self.near for inner in self.inner)
            spread = (slots for slots in every if is_spread(problem.engine, slots))
            self._every = {*listed(spread, limits)}
            outer, rest = even_halves(problem)
            if even_open:
                self._every.add((*outer, *rest))
                self.near = [*dict.fromkeys([*self.near, outer])]
                self.inner = [*dict.fromkeys([*self.inner, rest])]

    def __len__(self) -> int:
        return len(self.near) * len(self.inner) if self._every is None else len(self._every)

    def has(self, near: Arrangement, inner: Arrangement) -> bool:
        """Whether both sequences together are one of them."""
        return self._every is None or (*near, *inner) in self._every

    def of(self, slots: Arrangement) -> LayerProblem:
        """The problem of one arrangement, over all tiles."""
        whole, problem = self._stated.get(slots), self._problem
        if whole is None:
            space = problem.space
            if problem.reduction is Reduction.FORMS or is_spread(problem.engine, slots):
                space = problem.arranged_space(slots, self._limits.check)
            whole = problem if space is problem.space else problem.stated(space, slots)
            self._stated[slots] = whole
        return whole

    def over(self, inner: Arrangement, tiles: Tiles) -> Iterator[LayerProblem]:
        """The problems of all with one inner sequence over some tiles inside, and any near ones."""
        for near in self.near:
            if self.has(near, inner):
                whole = self.of((*near, *inner))
                yield replace(whole, space=restricted(whole.space, within(whole.space), tiles))


def listed(items: Iterable[_Item], limits: Limits) -> list[_Item]:
    """All of them; raises ``LimitReachedError`` where a limit strikes."""
    result: list[_Item] = []
    for item in items:
        limits.check()
        result.append(item)
    return result
