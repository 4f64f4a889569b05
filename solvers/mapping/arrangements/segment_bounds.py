"""What parts of the machine cost at least, searched: bounds of many arrangements of storage at once.

:mod:`tilewright.formulation.mapping.parts.segment_parts` states the parts.  For every sequence of the near
points of storage, and for every one of the points inside the array, the part is searched for all that may
still beat the incumbent, given the least that the other part costs; what is left inside limits the near
tiles, too. Arrangements without such survivors are never stated, others with the survivors' tiles alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product as cartesian
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tilewright.formulation.expression.exact import evaluate
from tilewright.formulation.mapping.nests.arrangements import Arrangement, segments
from tilewright.formulation.mapping.parts.compulsory import least_cycles
from tilewright.formulation.mapping.parts.entering import SHARE, Entering, entering
from tilewright.formulation.mapping.parts.segment_cycles import apart_from_fills, filled
from tilewright.formulation.mapping.parts.segment_parts import (
    around,
    charged,
    inside_part,
    knowing,
    least_outside,
    outside_part,
    stores_near,
    within,
)
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.tiles.boundary_tiles import boundary_tiles, restricted, standing_around
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.arrays import Bools, Floats
from tilewright.solvers.mapping.arrangements.outside_front import OutsideFront, found_outside
from tilewright.solvers.mapping.arrangements.pairs import Pair
from tilewright.solvers.mapping.arrangements.part_searches import PartSearches, rounded_down
from tilewright.solvers.mapping.arrangements.part_tables import PartTables
from tilewright.solvers.mapping.arrangements.survivors import (
    EnergyInside,
    ListedDecisions,
    Survivors,
    where_they_meet,
)
from tilewright.solvers.mapping.arrangements.wholes import Wholes, listed
from tilewright.solvers.mapping.tree.goals import BAND, Goal, LeastEnergy, goal_of
from tilewright.solvers.mapping.tree.small_spaces import is_small, take_all

if TYPE_CHECKING:
    from tilewright.solvers.mapping.arrangements.inside_together import InsideTogether

CYCLES = parse_objective("cycles")
_MOST_LISTED = 300_000  # nodes bounded in listing what is left, for every arrangement that it may save
_SEGMENTS = 3  # of a machine at most: the outermost level, the near ones, those behind one array
_TELLING = 0.01  # relative, by which first fills have to raise the least product
_PRODUCT = 20_000_000  # nodes that these count as where products of energy and cycles are looked for
_LISTING = 2  # times the nodes that the least values inside took, in listing what is left there

_Bound = TypeVar("_Bound", float, Floats)


class SegmentBounds:
    """Bounds of the arrangements of a problem; nothing may bypass its levels.

    Raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    even_open : whether the even part is to be searched, too
    tables : what searches of parts read, those of other machines among them

    Attributes
    ----------
    problem : on the machine
    least : lower bound of the objective key (scaled) of all that the goal wants; infinite where that is
        nothing
    fills_count : whether products are looked for in which first fills of near levels tell much
    """

    def __init__(
        self, search: LayerSearch, goal: Goal, problem: LayerProblem, even_open: bool, tables: PartTables
    ) -> None:
        self.least = 0.0
        self.fills_count = False
        self.problem = problem
        self._search, self._goal = search, goal
        self._root = 0.0  # lower bound of everything, whatever the goal
        self._powers = problem.objective.key_powers
        self._counts_energy = self._powers[0] > 0 or goal.both
        self._wholes = Wholes(problem, search.limits, even_open)
        self._near, self._inner = self._wholes.near, self._wholes.inner
        self._inside = self._outside = self._busy = 0
        self._computing = 0  # cycles of computing at least, once they are known
        self._entered: tuple[Entering, ...] = ()
        self._left: list[Survivors] = []  # inside, that a goal may want
        self._near_parts: list[LayerProblem] = []
        self._inner_parts: list[LayerProblem] = []
        self._near_front: tuple[Floats, Floats] | None = None  # energy and first fills outside
        self._is_looked_at = self._is_searched = False  # whether fills tell anything, and for that
        self._effort = 0  # nodes bounded for what the inside spends at least
        self._steps: Iterator[bool] = iter(())  # what is to be searched of the parts
        self._together: InsideTogether | None = None
        self._searches = PartSearches(search, tables)
        self._cheapest: LeastEnergy | None = None  # what a little effort found inside

    @property
    def arrangements(self) -> int:
        """How many of them there are."""
        return len(self._wholes)

    def computing(self) -> int:
        """Cycles in which every mapping computes at least: those of the best splits over the array alone.

        Even storage has all splits, and nothing else counts.  0 where cycles do not count.
        """
        if not self._powers[1]:
            return 0
        stated = replace(self.problem.statement, cycles=self.problem.space.nest.steps())
        computing = replace(self.problem, statement=stated, limits=(), objective=CYCLES)
        return max(self._searches.least([computing]))

    def begin(self, computing: int = 0) -> None:
        """Bound the parts by what is compulsory, to be searched by :meth:`go_on`.

        Parameters
        ----------
        computing : cycles of computing at least, where they are known
        """
        operator, engine = self.problem.operator, self.problem.engine
        self._together, self._steps = None, self._search_parts()
        busy = least_cycles(operator, engine) if self._powers[1] or self._goal.both else 0
        self._busy, self._computing = max(busy, computing), computing
        self._outside = least_outside(self.problem) if self._counts_energy else 0
        self._set_out()

    def go_on(self) -> bool:
        """Find more of what the parts cost at least; whether there was more to find."""
        return next(self._steps, False)

    def _search_parts(self) -> Iterator[bool]:
        """Search one part after the other for what it costs at least."""
        problem, b = self.problem, self._powers[1]
        self._entered = self._entering(SHARE)
        inside = (inside_part(problem, inner, self._entered) for inner in self._inner)
        self._inner_parts = listed(inside, self._search.limits)
        if self._counts_energy:  # first, since cycles are often those of computing or of compulsory transfers
            for least in self._searches.least(self._stated_near(self._busy)):
                self._outside = max(self._outside, least)
                self._set_out()
                yield True
            before = self._search.tally.nodes
            for least in self._searches.least(self._inner_parts):
                self._inside = max(self._inside, least)
                self._cheapest = self._cheapest or self._searches.best
                self._effort = self._search.tally.nodes - before
                self._set_out()
                yield True
                if self._fills_tell():  # least energies say little: what costs little in all is found sooner
                    self.fills_count, self._effort = True, _PRODUCT
                    break
        # Lists of the inside tell soon how much longer other cycles take than computing.
        if self._goal.both or (b and not (self.fills_count and self._computing)):
            computing = (part.minimising(CYCLES) for part in self._inner_parts)
            for least in self._searches.least(computing, self._busy):
                self._busy = max(self._busy, least)
                self._set_out()
                yield True
        self._near_parts = self._stated_near(self._busy)
        if b:
            charged_parts = [charged(part, problem.objective, self._inside) for part in self._near_parts]
            for least in self._searches.least(charged_parts):
                self.least = self._root = max(self._root, least * (1 - BAND))
                yield True

    def _fills_tell(self) -> bool:
        """Whether a little is known of the inside, and first fills of near levels make products cost more."""
        if self._is_looked_at or self._goal.both or not all(self._powers) or not stores_near(self.problem):
            return False
        # With divisors, or behind several arrays, least energies help more (measured on simba).
        if self.problem.space.nest.perfect or len(segments(self.problem.engine)) > _SEGMENTS:
            return False
        self._is_looked_at = True
        near = self._stated_near(self._busy)
        parts = [charged(part, self.problem.objective, self._inside) for part in near]
        return max(self._searches.least(parts), default=0) > self._root * (1 + _TELLING)

    def begin_at_once(self, computing: int, together: InsideTogether) -> None:
        """Have parts listed at once: more is known of what each costs at least once they are.

        Parameters
        ----------
        computing : cycles of computing at least
        together : lists what is inside
        """
        self._together, self._busy = together, 0
        if self._powers[1]:
            self._busy = max(computing, least_cycles(self.problem.operator, self.problem.engine))
        # The inside is that of other machines, too: all reads of passing tensors count there.
        self._entered = tuple(replace(own, share=Fraction(0)) for own in self._entering(Fraction(0)))
        self._outside = least_outside(self.problem) if self._counts_energy else 0
        together.expect(self.problem, self._outside, self._inner)
        self._set_out()

    def _entering(self, share: Fraction) -> tuple[Entering, ...]:
        """The tensors that enter the array; a share of reading those that pass near levels counts outside."""
        return entering(self.problem, share) if stores_near(self.problem) else ()

    def _set_out(self) -> None:
        """Bound everything by what the parts cost at least."""
        a, b = self._powers
        self._everywhere = self._inside, self._outside
        self._root = float(self._outside + self._inside) ** a * float(self._busy) ** b * (1 - BAND)
        self.least = self._root

    def want(self, goal: Goal) -> None:
        """Look for what another goal wants from now on."""
        self._goal, self._left = goal, []
        self._inside, self._outside = self._everywhere  # what was raised held for the goal before
        self.least = self._root

    @property
    def is_wanted(self) -> bool:
        """Whether the goal may want anything, as far as is known of the parts."""
        known = [np.array([bound]) for bound in (math.inf, math.inf, self._root)]
        return self._goal.both or bool(self._goal.wanted(*known)[0])

    def look_inside(self) -> None:
        """Find what of the inside the goal may want; `least` bounds all that it wants then.

        Raises `ManyTilesError` where parts are to be listed at once, and what is left is too much for that.
        """
        while self.is_wanted and self.go_on():
            pass
        if self.is_wanted:
            self._left = self._look_inside()
        self.least = max(self._root, min((inner.key for inner in self._left), default=math.inf))

    def pairs(self) -> list[Pair]:
        """What the goal may want of what was found inside, each with what is left outside."""
        both = cartesian(self._look_outside() if self._left else [], self._left)
        wholes = (pair for pair in both if self._wholes.has(*(own.slots for own in pair)))
        return [pair for each in wholes if (pair := self._meeting(*each)) is not None]

    def over_cheapest(self) -> Iterator[LayerProblem]:
        """The problems of arrangements over the tiles of the cheapest decision found inside, once."""
        best = self._cheapest
        if best is None or best.part is None:
            return
        self._cheapest = LeastEnergy()
        space = best.part.space
        inner = next(
            inner for inner, part in zip(self._inner, self._inner_parts, strict=True) if part.space is space
        )
        tiles = {
            group.name: np.array(
                [[evaluate(tile, best.tiles) for tile in boundary_tiles(space, within(space), group)]]
            )
            for group in space.groups
        }
        yield from self._wholes.over(inner, tiles)

    def over_listed(self) -> Iterator[LayerProblem]:
        """The problems of arrangements over tiles of what was listed last inside, where that costs least."""
        if not self.fills_count:
            return
        known = ((inner, inner.tiles) for inner in self._left if inner.tiles is not None)
        cheapest, tiles = min(known, key=lambda own: own[0].key, default=(None, None))
        if cheapest is not None and tiles is not None:
            yield from self._wholes.over(cheapest.slots, tiles)

    def _meeting(self, near: Survivors, inner: Survivors) -> Pair | None:
        """What is left of both where their tiles meet, if anything."""
        least = 0.0

        def wanted(energy: Floats, cycles: Floats) -> Bools:
            nonlocal least
            safe = energy * (1 - BAND)
            keys = self._keys(safe, cycles)
            cheap = self._goal.wanted(safe, cycles, keys)
            least = max(least, float(keys[cheap].min(initial=math.inf)))  # of all pairs that are left
            return cheap

        self._search.limits.check()
        pair = where_they_meet(near, inner, self.problem, self._entered, wanted)
        return None if pair is None else Pair(max(least, self._key(*pair)), self, *pair)

    def stated(self, near: Survivors, inner: Survivors) -> LayerProblem | None:
        """The problem of one arrangement over what is left; ``None`` where the goal wants none of it now."""
        if not self._wanted(near, inner):
            return None
        whole = self._wholes.of((*near.slots, *inner.slots))
        space = whole.space
        if near.tiles is not None:
            space = restricted(space, around(near.slots), near.tiles)
        if inner.tiles is not None:
            space = restricted(space, within(space), inner.tiles)
        if not all(len(group) for group in space.groups):
            return None
        inside = max(self._inside, rounded_down(inner.energy))
        return knowing(replace(whole, space=space), inside, self._entered)

    def _look_outside(self) -> list[Survivors]:
        """What is left outside; what that spends there at least is known then."""
        if not stores_near(self.problem):  # nothing is spent there
            return [Survivors(near, self._root, 0.0, float(self._busy), None) for near in self._near]
        inside = [inner.tiles for inner in self._left if inner.tiles is not None]
        elsewhere = EnergyInside(self._inside, self._left, self._entered)
        busy = max(self._busy, int(min(inner.cycles_apart for inner in self._left)))
        survivors: list[Survivors] = []
        for near, alone in zip(self._near, self._near_parts or self._stated_near(busy), strict=True):
            part = charged(alone, self.problem.objective, elsewhere.given(alone))
            if len(inside) == len(self._left):
                part = replace(part, space=standing_around(part.space, near, inside))
            survivors += self._survivors(near, part, around(near), None, _MOST_LISTED * len(self._inner))
        self._outside = max(self._outside, _least_energy(survivors))
        return survivors

    def _front(self) -> OutsideFront | None:
        """What is spent outside, with first fills; ``None`` where no product counts, or it is not known."""
        goal = goal_of(self._search)
        if not self.fills_count or goal is None:
            return None
        if not self._is_searched:
            self._is_searched = True
            below = float(goal * self.problem.key_scale) * (1 + BAND)
            parts = self._near_parts or self._stated_near(self._busy)
            self._near_front = found_outside(self._searches, parts, below, self._inside, self._busy)
        if self._near_front is None:
            return None
        return OutsideFront(*self._near_front, self._powers, self._inside, self._outside, self._busy)

    def _stated_near(self, busy: int) -> list[LayerProblem]:
        """The parts outside; none where nothing is stored there.

        Parameters
        ----------
        busy : cycles inside at least
        """
        problem = self.problem
        near = self._near if stores_near(problem) else []
        stated = (outside_part(problem, own, busy, self._entered) for own in near)
        return listed(stated, self._search.limits)

    def _look_inside(self) -> list[Survivors]:
        """What is left inside; what that spends there at least is known then."""
        survivors: list[Survivors] = []
        if self._together is not None:
            listed_together = self._together.left(self.problem)
            survivors += [self._all_of(inner, listed, self._outside) for inner, listed in listed_together]
        else:
            front = self._front()
            before = self._search.tally.nodes
            for inner, alone in zip(self._inner, self._inner_parts, strict=True):
                part = filled(alone, self.problem, self._entered)
                if front is not None:
                    part = replace(part, statement=apart_from_fills(part.statement))
                part = charged(part, self.problem.objective, self._outside)
                # To list what is little more than the least value takes about as long as to find that value.
                spare = _LISTING * self._effort - (self._search.tally.nodes - before)
                most = max(_MOST_LISTED * len(self._near), spare)
                left = self._survivors(inner, part, within(part.space), self._outside, most, front)
                if left and left[0].tiles is None:
                    self._effort = 0  # more is left of it with every higher cutoff
                survivors += left
        self._inside = max(self._inside, _least_energy(survivors))
        return survivors

    def _survivors(
        self,
        slots: Arrangement,
        part: LayerProblem,
        edges: range,
        elsewhere: int | None,
        most: int,
        front: OutsideFront | None = None,
    ) -> list[Survivors]:
        """What a part leaves, if anything.

        Parameters
        ----------
        edges : the boundaries that it decides
        elsewhere : energy in the part's bounds that is spent in the other one
        most : nodes that the search may bound
        front : of the other part, if that bounds this one
        """
        listed = ListedDecisions(self._goal, part, edges, len(self._near) + len(self._inner), front)
        if is_small(part):
            self._search.limits.check()
            take_all(part, listed, self._search.tally)
            return [self._all_of(slots, listed, elsewhere)] if listed.count else []
        tree = self._searches.tree(listed, part, most)
        if tree is None:
            return []
        tree.begin(dive=False)
        left = tree.go_on()
        if left is None and not listed.count:
            return []
        self._search.limits.check()
        if left is None:
            return [self._all_of(slots, listed, elsewhere)]
        own = self._own(min(listed.energy, tree.least_energy), elsewhere)
        return [Survivors(slots, min(left, listed.key), own, 0.0, None)]

    def _all_of(self, slots: Arrangement, listed: ListedDecisions, elsewhere: int | None) -> Survivors:
        """All that is left of a part."""
        own = self._own(listed.energy, elsewhere)
        decisions = listed.decisions(self._entered)
        if decisions is not None:
            own = max(own, float(decisions.costs[0].min()))
        return Survivors(slots, listed.key, own, listed.cycles, listed.tiles(), decisions)

    def _own(self, energy: float, elsewhere: int | None) -> float:
        """What of a part's energy is its own, at least."""
        if not self._counts_energy or elsewhere is None:
            return 0.0
        return max(0.0, energy * (1 - BAND) - elsewhere)

    def _bounds(self, near: Survivors, inner: Survivors) -> tuple[float, float]:
        """Least energy and cycles of the arrangement with given points near and inside."""
        energy = max(near.energy, self._outside) + max(inner.energy, self._inside)
        return energy * (1 - BAND), max(near.cycles, inner.cycles)

    def _key(self, near: Survivors, inner: Survivors) -> float:
        return max(near.key, inner.key, self._keys(*self._bounds(near, inner)))

    def _keys(self, energy: _Bound, cycles: _Bound) -> _Bound:
        """Lower bounds of keys."""
        a, b = self._powers
        return energy**a * cycles**b * (1 - BAND)

    def _wanted(self, near: Survivors, inner: Survivors) -> bool:
        energy, cycles = (np.array([value]) for value in self._bounds(near, inner))
        return bool(self._goal.wanted(energy, cycles, np.array([self._key(near, inner)]))[0])


def _least_energy(survivors: Iterable[Survivors]) -> int:
    """What all that is left spends in its own part at least, in whole units."""
    return rounded_down(min((survivor.energy for survivor in survivors), default=0.0))
