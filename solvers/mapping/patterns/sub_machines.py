"""Machines without levels that every tensor may bypass: their answers are answers of the whole machine.

A mapping that stores nothing in a level is one of the machine without that level, and costs the same there
(``docs/proofs.md``, storage patterns).  A machine of few levels has few tiles, so its search has a good
mapping long before that of all levels, which a limit may strike early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from itertools import chain, combinations, islice

from tilewright.formulation.limits import TablesTooLargeError
from tilewright.formulation.mapping.nests.idle_levels import loose_levels
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.solvers.mapping.beside import Beside
from tilewright.solvers.mapping.patterns.neighbourhoods import Neighbourhoods
from tilewright.solvers.mapping.patterns.pattern_descent import Descent
from tilewright.solvers.mapping.patterns.pattern_machines import (
    PatternSearch,
    machine_of,
    machines_stand_alone,
)
from tilewright.solvers.mapping.tree.goals import Minimum
from tilewright.solvers.mapping.tree.tree import Tree

_TURN, _GROWTH = 50_000, 2
"""Nodes bounded in the first turn of a machine, and growth of every further one."""
_NEAR, _WALKED = 2, 3
"""Neighbourhoods, and steps over patterns, for one of a machine."""
_MANY, _MOST = 20_000, 100_000
"""Rows of tiles: beyond, those of perfect factors alone are searched, or none."""


def beside(
    search: LayerSearch,
    source: str,
    near: Neighbourhoods | None = None,
    descent: Descent | None = None,
    may_improve: Callable[[Collection[int]], bool] = lambda _levels: True,
) -> Beside:
    """What looks for mappings beside a search: small machines, what is near the best mapping, and others.

    Parameters
    ----------
    source : what finds mappings
    near : knows which neighbourhoods have been searched; by default none
    descent : the walk over patterns, which may have begun
    may_improve : whether machines of some levels may have something better, as far as is known
    """
    loose = loose_levels(search.problem.space.nest)
    if not loose or not machines_stand_alone(search.problem):
        return Beside(search, iter(()))
    walk = (descent or Descent(search, source)).steps()
    machines = machine_steps(search, source, may_improve)
    small = islice(machines, 1 + len(loose))
    return Beside(search, chain(small, _in_turn(near or Neighbourhoods(search, source), walk, machines)))


def _in_turn(near: Neighbourhoods, walk: Iterator[None], machines: Iterator[None]) -> Iterator[None]:
    """Neighbourhoods of the best mapping, some steps of a walk, one of machines, until all have ended."""
    ended = False
    while not ended:
        ended = True
        for _ in chain(islice(near.steps(), _NEAR), islice(walk, _WALKED), islice(machines, 1)):
            ended = False
            yield


def machine_steps(
    search: LayerSearch, source: str, may_improve: Callable[[Collection[int]], bool] = lambda _levels: True
) -> Iterator[None]:
    """Search machines of fewer levels in turns of growing length, until nothing better is left in them.

    Each begins with a dive, those of few levels first.

    Parameters
    ----------
    source : what finds mappings
    may_improve : whether machines of some levels may have something better, as far as is known
    """
    waiting: deque[tuple[tuple[int, ...], Tree, int]] = deque()  # levels, and nodes of the next turn

    def take_turn(stored: tuple[int, ...], tree: Tree, turn: int) -> None:
        end = tree.bounded + turn
        with suppress(TablesTooLargeError):
            if tree.go_on(over=lambda: tree.bounded > end) is not None:
                waiting.append((stored, tree, _GROWTH * turn))

    for stored in level_sets(search.problem):
        if not may_improve(stored):
            continue
        tree = _tree(search, source, stored)
        if tree is not None:
            with suppress(TablesTooLargeError):
                tree.begin()
                take_turn(stored, tree, _TURN)
        yield
    while waiting:
        stored, tree, turn = waiting.popleft()
        if may_improve(stored):
            take_turn(stored, tree, turn)
            yield


def level_sets(problem: LayerProblem) -> Iterator[tuple[int, ...]]:
    """Levels of every machine without some that all tensors may bypass, few levels first."""
    every = range(len(problem.engine.levels))
    loose = loose_levels(problem.space.nest)
    for count in range(len(loose)):
        for kept in combinations(loose, count):
            yield tuple(level for level in every if level in kept or level not in loose)


def _tree(search: LayerSearch, source: str, stored: tuple[int, ...]) -> Tree | None:
    """The tree of a machine with some levels only; ``None`` where it has very many tiles, or none."""
    part = search.problem.on(machine_of(search.problem.engine, stored))
    if part.space.rows > _MANY and not part.space.nest.perfect:
        part = part.with_perfect_factors()
    if part.space.rows > _MOST:
        return None
    inner = PatternSearch(search, part)
    with suppress(TablesTooLargeError):
        tree = Tree(inner, Minimum(inner, source))
        return None if tree.empty else tree
    return None
