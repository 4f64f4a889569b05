"""Mappings of a machine whose levels may be bypassed, from machines that store what one pattern says.

A *storage pattern* says which tensors each level stores.  With many optional levels there are thousands of
patterns, and many more tiles of all levels than of the few levels that a good pattern uses.
So patterns are searched one by one, each on a machine of its own: levels that store nothing are left out,
the others store what the pattern says.  All mappings of these machines are mappings of the whole machine.
A descent begins with single levels, then changes what they store, tensor by tensor and level by level.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.result import Origin
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine, MemoryLevel
from tilewright.solvers.mapping.goals import Minimum
from tilewright.solvers.mapping.tree import Tree

SOURCE = "storage patterns"
FEW = 6  # tensors that may bypass a level, with which the whole space is no harder than its patterns
_EFFORT = 400_000  # nodes bounded for a pattern
_MOST = 100  # patterns, where two runs must give the same answer
_SHARE = 0.4  # of the time that is left
_PROVABLE, _LONGEST = 9, 4.0  # with so many, proofs want the time that is left; seconds

Pattern = frozenset[tuple[int, str]]
"""Level and role of everything optional that is stored."""


def offer_storage_patterns(search: LayerSearch) -> None:
    """Offer the best mappings of storage patterns, where there are many; each better one at once.

    Parameters
    ----------
    search : of a machine whose levels may be bypassed; of any other, nothing is done
    """
    if len(optional(search.problem)) > FEW:
        few = len(optional(search.problem)) <= _PROVABLE and not search.limits.deterministic
        limits = search.limits.share(_SHARE, _LONGEST if few else None)
        with suppress(LimitReachedError), search.at_work(SOURCE):
            _Descent(search, limits).run()


def optional(problem: LayerProblem) -> Pattern:
    """Level and role of every tensor that a mapping may store in a level or not."""
    roles = {tensor.role for tensor in problem.operator.tensors}
    return frozenset(
        (index, role)
        for index, level in enumerate(problem.engine.levels)
        for role in level.may_bypass & level.keeps & roles
    )


def machine_of(engine: Engine, optional_stores: Pattern, pattern: Pattern) -> Engine | None:
    """The machine that stores what a pattern says; ``None`` where two arrays would follow each other.

    Parameters
    ----------
    optional_stores : level and role of everything that a mapping may store or not
    pattern : those of them that are stored; a level that stores nothing is left out, and what it feeds is fed
        by the next level outside
    """
    levels: list[MemoryLevel] = []
    for index, level in enumerate(engine.levels):
        left_out = {role for at, role in optional_stores - pattern if at == index}
        keeps = frozenset(role for role in level.keeps if role not in left_out)
        if keeps:
            counted = engine.capacity_element_bits(level)
            levels.append(replace(level, keeps=keeps, may_bypass=frozenset(), counted_bits=counted))
        elif level.fanout is not None:
            if levels[-1].fanout is not None:
                return None
            levels[-1] = replace(levels[-1], fanout=level.fanout)
    return replace(engine, levels=tuple(levels))


class _Descent:
    """A descent over patterns, from one or two whole levels on; few stores are tried before many."""

    def __init__(self, search: LayerSearch, limits: Limits) -> None:
        self._search, self._limits = search, limits
        self._optional = optional(search.problem)
        self._tried: set[Pattern] = set()

    def run(self) -> None:
        """Go on until no neighbour is better; raises ``LimitReachedError`` where a limit strikes."""
        levels = sorted({level for level, _ in self._optional})
        by_level = [Pattern(store for store in self._optional if store[0] == level) for level in levels]
        following = self._best([Pattern(), *by_level])
        if following is not None:
            following = self._best(following | level for level in by_level) or following
        while following is not None:
            best = following
            used = {level for level, _ in best}
            following = (
                self._best(best ^ {store} for store in sorted(self._optional) if store[0] in used)
                or self._best(best - level for level in by_level)
                or self._best(best | level for level in by_level)
                or self._best(
                    (best - {(level, role)}) | {(other, role)}
                    for level, role in sorted(best)
                    for other in levels
                    if (other, role) in self._optional
                )
                or self._best(best | {store} for store in sorted(self._optional))
            )

    def _best(self, patterns: Iterable[Pattern]) -> Pattern | None:
        """The best of some patterns, if one has a mapping that is better than all that was known before."""
        better = [pattern for pattern in patterns if self._is_better(pattern)]
        return better[-1] if better else None

    def _is_better(self, pattern: Pattern) -> bool:
        """Whether a pattern that was not tried before has a mapping that is better than all that is known."""
        if pattern in self._tried:
            return False
        self._limits.check()
        if self._limits.deterministic and len(self._tried) >= _MOST:
            raise LimitReachedError
        self._tried.add(pattern)
        engine = machine_of(self._search.problem.engine, self._optional, pattern)
        if engine is None:
            return False
        try:
            part = self._search.problem.on(engine)
        except InputError:  # a demand names what the pattern leaves out
            return False
        before = self._search.key
        inner = _PatternSearch(self._search, part, self._limits)
        tree = Tree(inner, Minimum(inner, SOURCE), part)
        if not tree.empty:
            tree.most = _EFFORT
            tree.run()
        return self._search.key != before


class _PatternSearch(LayerSearch):
    """A search of one pattern for what is better than all that the search of the whole knows.

    Parameters
    ----------
    whole : receives every mapping at once
    """

    def __init__(self, whole: LayerSearch, problem: LayerProblem, limits: Limits) -> None:
        super().__init__(problem, limits)
        self.count_with(whole)
        self._whole = whole

    @property
    def key(self) -> Fraction | None:
        """What a mapping must be better than."""
        return self._whole.key

    def offer(self, answer: Mapping, source: str, origin: Origin = Origin.EXACT) -> Fraction | None:
        """Offer an answer to the search of the whole."""
        return self._whole.offer(answer, source, Origin.HEURISTIC)

    def confirm(self, answer: Mapping, source: str, origin: Origin = Origin.EXACT) -> Fraction:
        """Offer an answer; the whole machine, or a demand on what the pattern leaves out, may refuse it."""
        key = self.offer(answer, source, origin)
        return self.problem.judge(answer).key if key is None else key
