"""Branch and bound over storage patterns: one tree per pattern, one incumbent for all of them.

A *storage pattern* says which levels store each tensor.  With many optional levels there are thousands of
patterns, and many more tiles of all levels than of the few that a good pattern uses.  So every pattern is
searched on a machine of its own: levels that store nothing are left out, the others store what the pattern
says.  All mappings of these machines together are the even space (``docs/proofs.md``, storage patterns).
Patterns are bounded without being stated (:mod:`tilewright.solvers.mapping.pattern_bounds`) and searched in
the order of their bounds; the tree with the least bound goes on until another one's, or that of what has not
been stated yet, is less.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count

from tilewright.formulation.expression import Expr
from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.blocks import loop_hosts
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.storage_parts import has_storage_parts
from tilewright.formulation.result import Origin
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.solvers.mapping.division import terms_at_stores
from tilewright.solvers.mapping.goals import BAND, Minimum, goal_of
from tilewright.solvers.mapping.pattern_bounds import BoundedPattern, PatternBounds, Stores
from tilewright.solvers.mapping.tree import Tree

FEW, MOST = 8, 1 << 20  # patterns, with which one tree is as quick, and beyond which they are too many
_AHEAD = 0.01  # by which a tree's bound may pass the others' before they go on
_DIVES = 6  # trees that look for a mapping at once; the others find better ones on their way


def has_patterns(problem: LayerProblem) -> bool:
    """Whether a problem is searched pattern by pattern.

    It has many patterns, all of which have machines of their own and bounds, and levels that store nothing
    have no loops.
    """
    operator, engine = problem.operator, problem.engine
    patterns = math.prod(len(r.alternatives) for r in problem.space.nest.residency.values())
    if not (FEW < patterns <= MOST and problem.idles and problem.objective.key_powers[0]):
        return False
    roles = [tensor.role for tensor in operator.tensors]
    if len({*roles}) < len(roles) or loop_hosts(operator, engine) != (*range(len(engine.levels)),):
        return False
    for outer, level in zip(engine.levels, engine.levels[1:], strict=False):
        # Left out, a level neither leaves two arrays in sequence nor other buffers to share between.
        loose = {*roles} & level.keeps <= level.may_bypass
        if loose and outer.fanout is not None and (level.fanout is not None or outer.fanout.sharing):
            return False
    return has_storage_parts(problem)


def machine_of(engine: Engine, roles: Stores, order: tuple[str, ...]) -> Engine:
    """The machine that stores what a pattern says.

    Parameters
    ----------
    roles : per tensor, the levels that store it
    order : the tensors' roles
    """
    levels: list[MemoryLevel] = []
    for index, level in enumerate(engine.levels):
        keeps = frozenset(
            role for role in level.keeps if any(index in own for own, name in zip(roles, order, strict=True) if name == role)
        )
        if keeps:
            counted = engine.capacity_element_bits(level)
            levels.append(replace(level, keeps=keeps, may_bypass=frozenset(), counted_bits=counted))
        elif level.fanout is not None:
            levels[-1] = replace(levels[-1], fanout=level.fanout)
    return replace(engine, levels=tuple(levels))


class PatternTrees:
    """The trees of one search over all storage patterns.

    Parameters
    ----------
    source : what finds mappings
    on_hard : called once where some tree does not end soon
    """

    def __init__(self, search: LayerSearch, source: str, on_hard: Callable[[], None] = lambda: None) -> None:
        self._search, self._source, self._on_hard = search, source, on_hard
        self._tick, self._dives = count(), count()
        self._open: list[tuple[float, int, Tree, float]] = []
        self._unstated = 0.0  # lower bound of what has not been stated, as the problem's keys are scaled

    def run(self, on_bound: Callable[[float], None] = lambda _least: None) -> float | None:
        """Search until the goal wants nothing that is open, or a limit strikes.

        Parameters
        ----------
        on_bound : called with lower bounds of the objective key (scaled) of all that is still open

        Returns ``None`` when nothing is open any more, else the least key bound of what is.
        """
        try:
            self._run(on_bound)
        except LimitReachedError:
            pass
        least = self._least
        if math.isinf(least):
            return None
        on_bound(least)
        return least

    @property
    def _least(self) -> float:
        return min(self._unstated, self._open[0][0] if self._open else math.inf)

    def _run(self, on_bound: Callable[[float], None]) -> None:
        bounds = PatternBounds(self._search)
        scale = float(self._search.problem.key_scale)
        while not self._search.done:
            self._unstated = self._wanted(bounds.least * scale)
            if math.isinf(self._least):
                return
            on_bound(self._least)
            others = self._open[0][0] if self._open else math.inf
            if self._unstated <= others:
                taken = bounds.take(others / scale)
                if taken is not None:
                    self._unstated = min(taken.key, bounds.least) * scale
                    self._state(taken)
            else:
                self._go_on(on_bound)

    def _wanted(self, key: float) -> float:
        """A lower bound of something, infinite where the goal does not want it."""
        goal = goal_of(self._search)
        wanted = goal is None or key * (1 - BAND) < float(goal) * self._search.problem.key_scale
        return key if wanted else math.inf

    def _state(self, pattern: BoundedPattern) -> None:
        """Open the tree of a pattern, which knows what the pattern's parts cost at least."""
        problem = self._search.problem
        key = pattern.key * problem.key_scale
        if math.isinf(self._wanted(key)):
            return
        order = tuple(tensor.role for tensor in problem.operator.tensors)
        part = problem.on(machine_of(problem.engine, pattern.stores, order))
        inner = _PatternSearch(self._search, part)
        tree = Tree(inner, Minimum(inner, self._source), part)
        if tree.empty:
            return
        tree.on_hard = self._hard
        tree.divide(_least_parts(part, pattern))
        tree.begin(dive=self._search.key is None or next(self._dives) < _DIVES)
        self._put(tree, key)

    def _go_on(self, on_bound: Callable[[float], None]) -> None:
        """Search the tree of the least bound on, until it passes the others'."""
        _, _, tree, key = heapq.heappop(self._open)
        others, times = self._least, self._times(tree)

        def report(least: float) -> None:
            on_bound(min(max(least * times, key), others))

        tree.go_on(report, max(key, others) * (1 + _AHEAD) / times)
        self._put(tree, key)

    def _put(self, tree: Tree, key: float) -> None:
        """Keep a tree open; what is known of its pattern bounds it, too."""
        least = max(tree.least * self._times(tree), key)
        if not math.isinf(self._wanted(least)):
            heapq.heappush(self._open, (least, next(self._tick), tree, key))

    def _times(self, tree: Tree) -> float:
        """What a tree's keys are multiplied by to be scaled as the problem's."""
        return self._search.problem.key_scale / tree.search.problem.key_scale

    def _hard(self) -> None:
        ask, self._on_hard = self._on_hard, lambda: None
        ask()


def _least_parts(part: LayerProblem, pattern: BoundedPattern) -> dict[Expr, float]:
    """What the terms of a pattern's energy cost at least, in the unit of its machine."""
    scale = part.statement.energy_scale
    stored = sorted({level for own in pattern.stores for level in own})
    least: dict[int, float] = {}
    nest = part.space.nest
    for level, value in pattern.parts.items():
        # What the PEs read counts together with what moves into the innermost level.
        place = nest.temporal[stored.index(level) if level in stored else -1]
        least[place] = least.get(place, 0.0) + value * scale
    return {term: least.get(boundary, 0.0) for boundary, term in terms_at_stores(part).items()}


class _PatternSearch(LayerSearch):
    """A search of one pattern for what is better than all that the search of the whole knows.

    Parameters
    ----------
    whole : receives every mapping at once
    """

    def __init__(self, whole: LayerSearch, problem: LayerProblem) -> None:
        super().__init__(problem, whole.limits)
        self._whole = whole

    @property
    def key(self) -> Fraction | None:
        """What a mapping must be better than."""
        return self._whole.key

    @property
    def done(self) -> bool:
        """Whether the search of the whole is over."""
        return self._whole.done

    def offer(self, answer: Mapping, source: str, origin: Origin = Origin.EXACT) -> Fraction | None:
        """Offer an answer to the search of the whole."""
        return self._whole.offer(answer, source, origin)

    def confirm(self, answer: Mapping, source: str, origin: Origin = Origin.EXACT) -> Fraction:
        """Offer an answer of this pattern to the search of the whole, whose space has it."""
        return self._whole.confirm(answer, source, origin)
