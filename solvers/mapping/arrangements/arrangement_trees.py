"""Branch and bound over uneven storage: one tree per arrangement, one incumbent for all of them.

The even tree comes first.  Where parts of the machine bound many arrangements at once
(:mod:`tilewright.solvers.mapping.arrangements.segment_bounds`), all that costs little more than the least
bound is searched first, and so on until nothing can beat the incumbent: arrangements without such tiles are
never stated.  Each tree dives for a mapping, and keeps open what may still beat the best one found in any.
Then the tree with the least bound goes on until another one's is less, so the bound of the whole is always
that of the cheapest open part of any tree, or of what has not been stated yet.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import count, islice
from typing import TYPE_CHECKING

from tilewright.formulation.limits import LimitReachedError, Limits, TablesTooLargeError
from tilewright.formulation.mapping.nests.arrangements import EVEN, Reduction
from tilewright.formulation.mapping.parts.compulsory import least_key
from tilewright.formulation.mapping.parts.segment_parts import has_parts, storages
from tilewright.formulation.mapping.parts.uneven_parts import has_several_patterns, has_uneven_parts
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerMethod, LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.solvers.mapping.arrangements.open_trees import OpenTrees
from tilewright.solvers.mapping.arrangements.turns import Turns
from tilewright.solvers.mapping.large_problems import offer_initial_solution, offer_perfect_factors
from tilewright.solvers.mapping.part_search import PartSearch
from tilewright.solvers.mapping.patterns.pattern_bounds import PatternBounds
from tilewright.solvers.mapping.problem_kinds import has_patterns, is_large
from tilewright.solvers.mapping.tree.goals import BAND, Below, Goal, goal_of
from tilewright.solvers.mapping.tree.tree import Tree

if TYPE_CHECKING:
    from tilewright.solvers.mapping.arrangements.part_tables import PartTables
    from tilewright.solvers.mapping.arrangements.segment_bounds import SegmentBounds

_FEW = 10  # arrangements whose trees take less than bounds of them where tiles need not divide
_VERY_MANY = 1_000  # arrangements from which on the best even mapping comes before all else
_SMALL = 2_000  # rows of tiles that are searched as quickly as those that divide
_QUICK = 200_000  # rows of tiles with which all that may beat the best even mapping is listed at once
_FEW_AT_ONCE = 200  # arrangements on all machines with which it is
_EFFORT = 1_000_000  # nodes bounded of the even part where tiles need not divide, before parts are
_DEEP, _EVEN_SHARE = 20_000_000, 0.3  # the same where these are too many to be listed, and of the time
_LOOK = 50_000  # nodes bounded for a mapping with tiles that cost little inside
_SHARE, _MOSTLY = 0.4, 0.6  # of the time left, for even storage; more where others are very many
_LEVELS_SHARE = 0.5  # of the time that is left then, for what each level costs


class ArrangementTrees:
    """The trees of one search over all arrangements of storage.

    Parameters
    ----------
    method : searches the part whose tiles divide
    on_hard : called once where the even part, or else another one, does not end soon
    knowing_even : as the method, where no even mapping is better than the incumbent
    even_is_closed : whether none is here
    """

    def __init__(
        self,
        search: LayerSearch,
        goal: Goal,
        method: LayerMethod,
        on_hard: Callable[[], None] = lambda: None,
        knowing_even: LayerMethod | None = None,
        even_is_closed: bool = False,
    ) -> None:
        self._search = search
        self._goal = goal
        self._method, self._knowing_even = method, knowing_even or method
        self._trees = OpenTrees(search, on_hard)
        self._tick = count()
        self._parts: PartTables | None = None  # what bounds of parts read
        self._unstated = 0.0  # lower bound of what has not been stated; infinite where all has been
        self._computing = 0  # cycles of computing at least, once they are known
        self._cutoff = math.inf  # from which on nothing is looked for yet
        self._levels_count = not goal.both and has_uneven_parts(search.problem)
        self._even_is_closed = even_is_closed
        self._levels: PatternBounds | None = None  # what each level costs, of all that is not given out
        self._scale = float(search.problem.key_scale)

    def run(self, on_bound: Callable[[float], None] = lambda _least: None) -> float | None:
        """Search until the goal wants nothing that is open, or a limit strikes.

        Raises `TablesTooLargeError` where memory does not suffice for a tree.

        Parameters
        ----------
        on_bound : called with lower bounds of the objective key of all that is still open

        Returns ``None`` when nothing is open any more, else the least key bound of what is.
        """
        problem = self._search.problem
        self._unstated = float(least_key(problem) * problem.key_scale) * (1 - BAND)
        try:
            if self._levels_count and not self._even_is_closed:
                self._even_is_closed = self._offer_even(_SHARE)
            if has_parts(problem) and (problem.space.nest.perfect or self._arrangements > _FEW):
                self._search_bounded(on_bound)
            else:
                self._bound_levels(on_bound)
                self._search_stated(on_bound)
        except TablesTooLargeError:
            on_bound(self._least)
            raise
        except LimitReachedError:
            pass
        if math.isinf(self._least):
            return None
        on_bound(self._least)
        return self._least

    @property
    def _least(self) -> float:
        return min(self._unstated, self._cutoff, self._trees.least)

    def _state(self, parts: Iterable[LayerProblem], goal: Goal, on_bound: Callable[[float], None]) -> bool:
        """Keep a tree of each part open; whether all parts were stated.

        Where they would take too much memory with the next one, open trees are searched to their ends before.

        Parameters
        ----------
        on_bound : as for :meth:`run`
        """
        self._trees.look()
        for part in parts:
            if self._trees.are_too_many_with(part):
                self._exhaust(on_bound)
                if self._trees or self._search.done:
                    return False
                self._trees.forget()
                if self._parts is not None:
                    self._parts.clear()
            self._trees.state(part, goal, self._unstated)
        return True

    def _search_stated(self, on_bound: Callable[[float], None]) -> None:
        """Search with one tree for every arrangement; raises ``LimitReachedError`` where a limit strikes."""
        problem = self._search.problem
        even = self._trees.new(problem, self._goal)
        if even is not None:
            even.go_on(over=partial(_is_over, self._search.limits.share(_MOSTLY)))
            if problem.reduction is not Reduction.FORMS:  # else the others' forms hold all even ones
                self._trees.put(even, self._unstated)
        parts = islice(problem.parts(self._search.limits.check), 1, None)
        if self._state(parts, self._goal, on_bound):
            self._unstated = math.inf
        self._exhaust(on_bound)

    def _search_bounded(self, on_bound: Callable[[float], None]) -> None:
        """Search what the bounds of parts leave; raises ``LimitReachedError`` where a limit strikes."""
        from tilewright.solvers.mapping.arrangements.pairs import ManyTilesError
        from tilewright.solvers.mapping.arrangements.part_tables import PartTables

        problem = replace(self._search.problem, alike=Alike())
        are_many = self._arrangements > _VERY_MANY
        # Where tiles need not divide, and what may beat the even part is not listed at once, its tree would
        # only have a look.
        looked_at = not (problem.space.nest.perfect or self._are_few_at_once)
        # Of goals that ask for more than the least key, the best even mapping closes no even part.
        is_for_key = not (self._goal.both or self._levels_count or self._even_is_closed)
        if is_for_key and (are_many or looked_at or is_large(problem) or self._even_helps(problem)):
            self._even_is_closed = self._offer_even(_MOSTLY if are_many else _SHARE)
        is_hard = self._levels_count and not self._even_is_closed
        if is_hard:  # what each level costs is known before all tables
            self._bound_levels(on_bound)
        even, self._parts = self._even_tree(), PartTables()
        if machines := self._few_machines(problem, even):
            self._list_at_once(machines)
            with suppress(ManyTilesError):
                self._search_below(machines, self._goal, on_bound)
                return
            self._offer_perfect_factors()
            if even is not None:
                even.limit(_DEEP)
                even.go_on(over=partial(_is_over, self._search.limits.share(_EVEN_SHARE)))
        elif self._even_is_closed:
            self._offer_perfect_factors()
        even_open, even = self._is_open(even), None  # its memory serves others
        if not is_hard:
            self._bound_levels(on_bound)
        self._search_in_turn(Turns(self._levels, problem, self._unstated), even_open, on_bound)

    def _search_in_turn(self, turns: Turns, even_open: bool, on_bound: Callable[[float], None]) -> None:
        """Search machines, those with the least bound first, until others' bounds are less.

        What costs little more than the least that anything may cost there comes first: fewer tiles survive.
        """
        problem = self._search.problem
        needs_mapping = is_large(problem) and not problem.space.nest.perfect
        while (turn := turns.next()) is not None:
            self._unstated, self._cutoff = turn.least, turns.least
            on_bound(self._least)
            if not self._is_wanted(min(turn.least, turns.least)):
                break
            if turn.bounds is None:
                turn.bounds = [self._bounds_of(machine, even_open) for machine in turn.machines]
                for bounds in turn.bounds:
                    bounds.begin(self._computing)
            elif turn.go_on():
                self._look_at(part for bounds in turn.bounds for part in bounds.over_cheapest())
            else:
                if needs_mapping:
                    self._trees.new(problem, self._goal, _EFFORT)
                    needs_mapping = False
                cutoff = turn.cutoff(goal_of(self._search), self._goal.both)
                goal = self._goal if math.isinf(cutoff) else Below(self._goal, cutoff)
                self._cutoff = min(cutoff, self._cutoff)
                if not self._search_below(turn.bounds, goal, on_bound):
                    return
                if not math.isinf(cutoff):
                    self._look_at(part for bounds in turn.bounds for part in bounds.over_listed())
                turn.least = cutoff * (1 - BAND)
            turns.put(turn)
        self._unstated = self._cutoff = math.inf

    def _look_at(self, parts: Iterable[LayerProblem]) -> None:
        """Look for mappings in parts of the space with little effort."""
        for part in parts:
            tree = self._trees.new(part, self._goal, _LOOK)
            if tree is not None:
                tree.go_on()

    def _few_machines(self, problem: LayerProblem, even: Tree | None) -> list[SegmentBounds]:
        """Machines on which all that may beat the best even mapping is listed quickly; none where it is not.

        Parameters
        ----------
        even : the tree of the even part, if other parts do not hold it and it is not closed
        """
        machines: list[SegmentBounds] = []
        if problem.constraints.rules:  # of the even space, whose splits over the array are then not all
            return []
        if goal_of(self._search) is None or self._goal.both or not self._are_few_at_once:
            return []
        for machine in storages(problem):
            machines.append(self._bounds_of(machine, self._is_open(even)))
            if sum(bounds.arrangements for bounds in machines) > _FEW_AT_ONCE:
                return []
        return machines

    def _even_helps(self, problem: LayerProblem) -> bool:
        """Whether the best even mapping spares more than the patterns of even storage take to be searched.

        Of few tiles, all that is within reach of any mapping is soon listed if cycles count.
        """
        is_quick = problem.space.rows <= _SMALL and problem.objective.key_powers[1] > 0
        return has_patterns(problem.even()) and not is_quick

    def _bounds_of(self, machine: LayerProblem, even_open: bool) -> SegmentBounds:
        """Bounds of the arrangements of a machine whose levels may not be passed by."""
        from tilewright.solvers.mapping.arrangements.segment_bounds import SegmentBounds

        assert self._parts is not None
        return SegmentBounds(self._search, self._goal, machine, even_open, self._parts)

    def _is_open(self, even: Tree | None) -> bool:
        """Whether the even part is to be searched with others, after a first look at its tree."""
        problem = self._search.problem
        if problem.reduction is Reduction.FORMS or self._even_is_closed:
            return False
        return is_large(problem) if even is None else not math.isinf(even.least)

    def _list_at_once(self, machines: Sequence[SegmentBounds]) -> None:
        """Have machines that store the same inside listed together."""
        from tilewright.solvers.mapping.arrangements.inside_together import InsideTogether

        assert self._parts is not None
        computing = self._computing = machines[0].computing()
        inside: dict[Hashable, InsideTogether] = {}
        for bounds in machines:
            key = InsideTogether.key(bounds.problem)
            if key not in inside:
                inside[key] = InsideTogether(self._search, self._goal, bounds.problem, self._parts)
            bounds.begin_at_once(computing, inside[key])

    def _search_below(
        self, machines: Sequence[SegmentBounds], goal: Goal, on_bound: Callable[[float], None]
    ) -> bool:
        """Search all that a goal wants of some machines; whether that was done before the whole search."""
        if not self._state(self._cheapest_first(machines, goal, on_bound), goal, on_bound):
            return False
        self._exhaust(on_bound)
        return not self._search.done

    def _cheapest_first(
        self, machines: Sequence[SegmentBounds], goal: Goal, on_bound: Callable[[float], None]
    ) -> Iterator[LayerProblem]:
        """What a goal wants of some machines, the cheapest first; trees of less go on before.

        What is left inside is looked for on all machines, what is left outside on the cheapest ones.
        """
        from tilewright.solvers.mapping.arrangements.pairs import Pair

        waiting: list[tuple[float, int, SegmentBounds | Pair]] = []
        for bounds in machines:
            bounds.want(goal)
        for bounds in machines:
            bounds.look_inside()
            self._learn(machines, on_bound)
        for bounds in machines:
            heapq.heappush(waiting, (bounds.least, next(self._tick), bounds))
        while waiting:
            least, _, cheapest = heapq.heappop(waiting)
            self._unstated = max(self._unstated, least)
            self._exhaust(on_bound, self._unstated)
            if self._search.done:
                return
            self._search.limits.check()
            if not isinstance(cheapest, Pair):
                for pair in cheapest.pairs():
                    heapq.heappush(waiting, (pair.key, next(self._tick), pair))
            elif (part := cheapest.stated()) is not None:
                yield part
        self._unstated = math.inf

    def _learn(self, machines: Iterable[SegmentBounds], on_bound: Callable[[float], None]) -> None:
        """Bound what has not been stated by what is known of all machines."""
        self._unstated = max(self._unstated, min(bounds.least for bounds in machines))
        if not math.isinf(self._least):
            on_bound(self._least)

    def _is_wanted(self, key: float) -> bool:
        """Whether the goal wants something of a lower bound (scaled)."""
        goal = goal_of(self._search)
        if self._goal.both or goal is None:
            return not math.isinf(key)
        return key * (1 - BAND) < float(goal) * self._scale

    def _even_tree(self) -> Tree | None:
        """The tree of the even part after a first look; ``None`` where nothing is left, or very much."""
        problem, most = self._search.problem, None
        if self._even_is_closed:
            return None
        if problem.reduction is not Reduction.FORMS:  # else other parts hold it
            if problem.space.rows > _QUICK:
                self._offer_perfect_factors()
            if is_large(problem):
                return None
            most = _EFFORT
        even = self._trees.new(problem, self._goal, most)
        if even is not None:
            even.go_on(over=partial(_is_over, self._search.limits.share(_MOSTLY)))
        return even

    @cached_property
    def _arrangements(self) -> int:
        """How many arrangements there are; of more than very many one more than these."""
        return sum(1 for _ in islice(self._search.problem.arrangements(), _VERY_MANY + 1))

    @property
    def _are_few_at_once(self) -> bool:
        """Whether tiles and arrangements are few enough for all that may beat the best even mapping."""
        return self._search.problem.space.rows <= _QUICK and self._arrangements <= _FEW_AT_ONCE

    def _offer_even(self, share: float) -> bool:
        """Offer the best even mapping, or what a share of the time finds: listing others may take long.

        Returns whether it is the best one.
        """
        search = self._search
        even = PartSearch(search, search.problem.even(), search.limits.share(share), EVEN)
        with suppress(LimitReachedError):
            if is_large(even.problem) or has_patterns(even.problem):
                offer_initial_solution(even, self._method)
            return even.proven or self._method.solve(even).exhausted
        return False

    def _bound_levels(self, on_bound: Callable[[float], None]) -> None:
        """Bound all arrangements by what each level costs at least, whatever the points of the others are."""
        if not self._levels_count:
            return
        search = self._search
        has_many = has_several_patterns(search.problem)
        # Where nothing else bounds all arrangements, the rest of the time is for this.
        share = 1.0 if self._arrangements > _VERY_MANY else _LEVELS_SHARE
        limited = search if has_many else search.within(search.limits.share(share))
        levels = None
        try:
            levels = PatternBounds(limited)
            levels.look()
        except LimitReachedError:  # what was learned until then counts
            search.limits.check()
        finally:
            if levels is not None:
                self._unstated = max(self._unstated, levels.least * self._scale * (1 - BAND))
        on_bound(self._least)
        self._levels = levels if has_many else None

    def _offer_perfect_factors(self) -> None:
        """Where tiles need not divide: those that do are searched in a moment, and are never bad."""
        problem = self._search.problem
        self._trees.on_hard = lambda: None  # more help than that there is none
        if sum(len(group) for group in problem.space.groups) > _SMALL and not is_large(problem):
            method = self._knowing_even if self._even_is_closed else self._method
            offer_perfect_factors(self._search, method)  # of large problems they are known

    def _exhaust(self, on_bound: Callable[[float], None], until: float = math.inf) -> None:
        """Search what is open until its bounds pass ``until``, nothing is, or a limit strikes.

        The tree with the least bound goes on.
        """
        self._trees.search(on_bound, min(self._unstated, self._cutoff), self._cutoff, until)


def _is_over(limits: Limits) -> bool:
    return limits.expired
