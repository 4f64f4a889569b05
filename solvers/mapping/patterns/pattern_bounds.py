"""Lower bounds of all storage patterns of a machine, each a sum of parts that many patterns share.

Parts (:mod:`tilewright.formulation.mapping.parts.storage_parts`) are searched when the cheapest pattern asks
for them; until then what is compulsory counts.  So few of them are ever searched, and no pattern is stated.
Where cycles count and there is one pattern, energy is bounded alone and together with cycles, each of which
costs something then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.formulation.limits import LimitReachedError
from tilewright.formulation.mapping.nests.blocks import loop_hosts
from tilewright.formulation.mapping.parts.compulsory import least_cycles
from tilewright.formulation.mapping.parts.storage_parts import StoragePart, has_storage_parts, part_problem
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.foundation.arrays import Bools, Floats, Int64s
from tilewright.solvers.mapping.patterns.part_costs import PartCosts, least_energy
from tilewright.solvers.mapping.patterns.part_tiles import PartAnswer
from tilewright.solvers.mapping.patterns.pattern_machines import Stores
from tilewright.solvers.mapping.patterns.pattern_terms import EXACT, PatternTerms, Term
from tilewright.solvers.mapping.patterns.patterns_together import InnerTiles, OpenPatterns, PatternsTogether
from tilewright.solvers.mapping.patterns.weighted_sums import corners, least_keys
from tilewright.solvers.mapping.tree.goals import goal_of
from tilewright.solvers.mapping.tree.layout import Deciding

_EFFORTS = (50_000, 1_000_000, 10_000_000)
"""Nodes bounded for a part: at first, and where the cheapest pattern still needs to know more."""
_FEW = 8
"""Patterns, if there are several, up to which their trees tell more than the last of these efforts."""
_DEEP = 60_000_000
"""Nodes bounded for a part of the one pattern that there is."""
_ROUNDING = 1e-9
"""Relative: sums of some ten parts in floating point are right well within it."""
_BEYOND = 1e-6
"""Relative: by how much more is asked of a part than what is needed; far more than the rounding."""
_WEIGHTS = (0.7, 1.4, 2.8)
"""What a cycle costs besides, in shares of the energy that are worth the same share of the cycles."""
_STEP = 0.03
"""Relative: by how much a search of much effort shall raise the key of the cheapest pattern."""
_WEIGHTS_OF_MANY = (1.0,)
"""The same where patterns are many, beside the energies of the first one that these do not close."""
_APART = 0.01
"""Of energy and cycles, by which what levels outside cost differs little: each kind is searched by itself."""
_MANY = 3
"""Open patterns from which on several levels of one are searched together: that bounds others, too."""
_FINEST = 16  # parts of a pJ


def has_store_bounds(problem: LayerProblem) -> bool:
    """Whether the parts of all patterns bound a problem with even storage: no level can be idle."""
    operator, engine = problem.operator, problem.engine
    roles = [tensor.role for tensor in operator.tensors]
    return (
        not problem.is_uneven
        and problem.objective.key_powers[0] > 0
        and len({*roles}) == len(roles)
        and all({*roles} & (level.keeps - level.may_bypass) for level in engine.levels)
        and loop_hosts(operator, engine) == (*range(len(engine.levels)),)
        and has_storage_parts(problem)
    )


@dataclass(frozen=True, slots=True)
class BoundedPattern:
    """A storage pattern, and what is known of its cost.

    Parameters
    ----------
    number : of all patterns
    key : lower bound of the objective key, in pJ and cycles
    costs : for every weight of a cycle, what each part costs at least, pJ, by the level that is filled
    """

    number: int
    stores: Stores
    key: float
    costs: list[dict[int, float]]

    @property
    def parts(self) -> dict[int, float]:
        """What each part of the energy alone costs at least, pJ, by the level that is filled."""
        return self.costs[0]


class PatternBounds:
    """Storage patterns in the order of their bounds; raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    between : called before each part is searched
    together : knows what several levels of a pattern cost together, where these are asked for

    Attributes
    ----------
    weights : what a cycle costs, pJ, in the sums that bound every pattern, 0 first
    innermost : what searches of the innermost level found, for other weights and patterns
    alike : spaces of parts, where these share any
    """

    def __init__(
        self,
        search: LayerSearch,
        between: Callable[[], None] = lambda: None,
        together: PatternsTogether | None = None,
    ) -> None:
        self._search, self._between, self._together = search, between, together
        problem = search.problem
        operator, engine = problem.operator, problem.engine
        residency = problem.space.nest.residency
        self._alternatives = [residency[tensor.name].alternatives for tensor in operator.tensors]
        self._shape = tuple(len(alternatives) for alternatives in self._alternatives)
        self._efforts = _EFFORTS[:-1] if 1 < math.prod(self._shape) <= _FEW else _EFFORTS
        # Of one pattern the same parts are searched for every weight.
        self.alike = Alike() if math.prod(self._shape) == 1 else None
        self._powers = problem.objective.key_powers
        self._cycles, self._leak = float(least_cycles(operator, engine)), float(engine.leak)
        self.weights = [Fraction(0)]
        self.innermost: list[PartAnswer] = []
        self._costs = PartCosts(search)
        self._made = PatternTerms(problem, self._alternatives)
        self._terms: list[Term] = []
        self._sums: Floats = np.asarray([self._sum_of_terms()])
        if math.prod(self._shape) == 1:
            self._weigh(float(self._sums.min()), _WEIGHTS)
        self._keys = self.least_keys(self._sums)
        self._is_taken = np.zeros(len(self._keys), dtype=np.bool_)

    def _weigh(self, energy: float, factors: Sequence[float]) -> None:
        """Bound sums with cycles, too, where these count.

        Parameters
        ----------
        energy : with which cycles are worth something, pJ
        factors : of what a cycle is worth
        """
        a, b = self._powers
        worth = Fraction(b, a) * Fraction(energy / self._cycles)
        for factor in factors if b else ():
            weight = (worth * Fraction(factor)).limit_denominator(_FINEST)
            if weight > self.weights[-1]:
                self.weights.append(weight)
                self._sums = np.vstack([self._sums, self._sum_of_terms()])

    def _sum_of_terms(self) -> Floats:
        """Add the terms of the last weight; what all patterns cost at least."""
        levels = range(1, len(self._search.problem.engine.levels))
        place, weight = len(self.weights) - 1, self.weights[-1]
        terms = [self._made.term(level, place, weight) for level in reversed(levels)]
        self._terms += terms
        none: Floats = np.zeros(math.prod(self._shape))
        return sum((term.values[term.of_pattern] for term in terms), none)

    def least_keys(self, sums: Floats) -> Floats:
        """Lower bounds of keys, in pJ and cycles, from lower bounds for every weight of a cycle, pJ."""
        weights = [*map(float, self.weights)]
        return least_keys(sums * (1 - _ROUNDING), weights, self._cycles, self._powers, self._leak)

    @property
    def least(self) -> float:
        """Lower bound of the key, in pJ and cycles, of all patterns that have not been taken."""
        return float(self._keys.min(initial=math.inf, where=~self._is_taken))

    def number_of(self, stores: Stores) -> int:
        """The number of a pattern."""
        places = [own.index(levels) for own, levels in zip(self._alternatives, stores, strict=True)]
        return int(np.ravel_multi_index(places, self._shape))

    def key_of(self, stores: Stores) -> float:
        """Lower bound of the key, in pJ and cycles, of a pattern."""
        return float(self._keys[self.number_of(stores)])

    def tiles_of(self, pattern: int, left: Sequence[int]) -> InnerTiles | None:
        """The tiles of innermost levels of a pattern, and of others of some, that may be wanted.

        ``None`` where these levels have no problem of their own, or everything is wanted.

        Parameters
        ----------
        pattern, left : numbers of patterns, the one among the others
        """
        if self._together is None or goal_of(self._search) is None:
            return None
        is_open = np.zeros(len(self._keys), dtype=np.bool_)
        is_open[[*left]] = True
        return self._together.tiles(pattern, self._patterns(is_open))

    def _patterns(self, is_open: Bools) -> OpenPatterns:
        """All patterns, some of which are open."""
        alone = [term for term in self._terms if not term.weight]
        return OpenPatterns(self._alternatives, alone, self._sums[0], self._keys, is_open)

    def key_within(self, levels: Collection[int]) -> float:
        """Lower bound of the key, in pJ and cycles, of all patterns that store in some levels alone."""
        places = [
            [place for place, stores in enumerate(own) if {*stores} <= {*levels}]
            for own in self._alternatives
        ]
        return float(self._keys.reshape(self._shape)[np.ix_(*places)].min(initial=math.inf))

    def look(self) -> None:
        """Learn what is needed of the pattern of the least bound, and take none."""
        pattern = self.take()
        if pattern is not None:
            self._is_taken[pattern.number] = False

    def take(self, until: float = math.inf) -> BoundedPattern | None:
        """The pattern of the least bound, which is taken; ``None`` once all bounds pass ``until``."""
        while self.least <= until:
            self._search.limits.check()
            self._between()
            cheapest = int(np.argmin(np.where(self._is_taken, math.inf, self._keys)))
            if self._is_taken[cheapest] or math.isinf(self._keys[cheapest]):
                return None
            term = self._next_term(cheapest)
            if term is None or term.weight or term.asked[term.of_pattern[cheapest]]:
                patterns = self._open_ones()
                if self._together is not None and patterns is not None:
                    if self._together.raise_keys(cheapest, patterns):
                        continue
                    term = self._next_term(cheapest, self._together.innermost(patterns.stores(cheapest)))
            if term is None:
                self._is_taken[cheapest] = True
                return self.known(cheapest)
            self._learn(term, int(term.of_pattern[cheapest]))
        return None

    def _open_ones(self) -> OpenPatterns | None:
        """The patterns that a goal leaves open, where they are many; ``None`` where they are few."""
        goal = goal_of(self._search)
        if goal is None:
            return None
        is_open = ~self._is_taken & (self._keys < float(goal))
        many = 1 if self._together is not None and self._together.has_scratchpads else _MANY
        return self._patterns(is_open) if np.count_nonzero(is_open) >= many else None

    def _next_term(self, pattern: int, inside: int | None = None) -> Term | None:
        """The term that is searched next for a pattern; ``None`` where none is.

        Parameters
        ----------
        inside : the level from which inwards none are searched with more than little effort
        """
        asked = {place: int(term.asked[term.of_pattern[pattern]]) for place, term in enumerate(self._terms)}
        if inside is not None:
            asked = {
                place: own for place, own in asked.items() if not own or self._terms[place].level < inside
            }
        left = [place for place, own in asked.items() if own < len(self._efforts)]
        # Over uneven storage machines of single patterns tell sooner what cycles cost.
        is_even = not self._search.problem.is_uneven
        if not left and len(self._keys) > 1 and len(self.weights) == 1 and is_even:
            before = len(self._terms)
            self._weigh(float(self._sums[0, pattern]), _WEIGHTS_OF_MANY)
            left, asked = (
                [*range(before, len(self._terms))],
                dict.fromkeys(range(before, len(self._terms)), 0),
            )
        # Energies alone come first: they bound many patterns at once.
        first = min(left, key=lambda place: (self._terms[place].weight > 0, asked[place]), default=None)
        return None if first is None else self._terms[first]

    def deepened(self, search: LayerSearch) -> Iterator[BoundedPattern]:
        """The one pattern that there is, known better after every search of a part with much effort.

        Of several patterns none is known better: each part has had its efforts when the cheapest were taken.
        Sums with cycles come first, where spatial splits settle them soon; of each the innermost part, the
        largest one, before others.

        Parameters
        ----------
        search : of the whole, whose limits count now
        """
        terms = self._terms if len(self._keys) == 1 else []
        for term in sorted(terms, key=lambda term: not term.weight):
            if term.asked[0] < EXACT:
                # Where steps count, they are settled first.
                deciding = Deciding(spread_first=True) if term.weight else None
                weight = self.weights[term.weight]
                part = part_problem(search.problem, term.parts[0], weight, self.alike)
                answer = least_energy(search, part, _DEEP, deciding, self._enough(term, 0))
                self._note(answer, term.parts[0])
                term.values[0] = max(term.values[0], answer.least)
                term.asked[0] = EXACT if answer.is_exact else len(self._efforts)
                yield self.known(0)

    def outside(self, first: int) -> list[tuple[float, int]]:
        """Energies, pJ, and cycles of which the levels outside one have some one at least.

        There is one pattern; parts that were not asked for are searched with little effort, until a limit
        strikes.
        """
        with suppress(LimitReachedError):
            for term in self._terms:
                if term.level < first and not term.asked[0]:
                    self._learn(term, 0)
        outer = [
            sum(value for level, value in costs.items() if level < first) for costs in self.known().costs
        ]
        if len(outer) == 1:
            return [(outer[0], 0)]
        apart = _APART * float(self._sums[0].min()), _APART * self._cycles
        return corners(outer, [*map(float, self.weights)], apart)

    def forget_tables(self) -> None:
        """Forget what searches of parts read; others read it anew."""
        self._costs = PartCosts(self._search)

    def known(self, pattern: int = 0) -> BoundedPattern:
        """What is known of a pattern, the only one by default."""
        costs: list[dict[int, float]] = [{} for _ in self.weights]
        for term in self._terms:
            value = float(term.values[term.of_pattern[pattern]])
            costs[term.weight][term.level] = value * (1 - _ROUNDING)
        sums = np.asarray([[sum(cost.values())] for cost in costs])
        key = max(float(self.least_keys(sums)[0]), float(self._keys[pattern]))
        return BoundedPattern(pattern, self._stores_of(pattern), key, costs)

    def _stores_of(self, pattern: int) -> Stores:
        """Per tensor, the levels that store it."""
        places = np.unravel_index(pattern, self._shape)
        return tuple(own[int(place)] for own, place in zip(self._alternatives, places, strict=True))

    def _learn(self, term: Term, number: int) -> None:
        """Search one part, or others of its kind before it, and raise the bounds of patterns with them.

        Parts differ in the energies of the levels that tensors come from; where all of these are higher, with
        the same arrays between, the part costs no less.
        """
        own, asked = number, int(term.asked[number])
        number = self._representative(term, number)
        enough = most = self._enough(term, number)
        if 0 < asked == len(self._efforts) - 1:  # little by little: goals fall, and other parts may suffice
            enough = self._step(term, number)
            if enough <= float(term.values[number]) * (1 + 2 * _BEYOND):  # the other one says no more
                number = own
                most, enough = self._enough(term, number), self._step(term, number)
        inherited = float(term.values[number])
        answer = self._searched(term, number, self._efforts[asked], enough)
        value = answer.least
        before = term.values.copy()
        dearer = self._no_cheaper(term, number)
        # Every element of the difference is fetched once at least.
        known = value + term.compulsory[dearer] - term.compulsory[number]
        term.values[dearer] = np.maximum(term.values[dearer], known)
        if not answer.is_exact:
            term.asked[number] = asked + 1
        elif value < enough or enough == most:
            term.asked[number] = EXACT
        if value <= inherited * (1 + _ROUNDING):
            self._settle(term, number)
        risen = np.zeros(len(before))
        np.subtract(term.values, before, out=risen, where=term.values > before)
        by_pattern = risen[term.of_pattern]
        self._sums[term.weight] += by_pattern
        places = np.flatnonzero(by_pattern)
        self._keys[places] = np.maximum(self._keys[places], self.least_keys(self._sums[:, places]))

    def _representative(self, term: Term, number: int) -> int:
        """Which part is searched for one of them: the cheapest, the dearest of its kind, or else itself."""
        dearer, cheaper = self._no_cheaper(term, number), self._no_dearer(term, number)
        dearest = dearer[np.argmax(term.units[dearer].sum(axis=1))]
        ends = (int(cheaper[0]), int(dearest), number)
        return next(end for end in ends if term.asked[end] <= term.asked[number])

    def _settle(self, term: Term, number: int) -> None:
        """Ask nothing of parts between two that differ by what is compulsory alone.

        The least value of a part is concave in its unit energies, so theirs differ by no more.

        Parameters
        ----------
        number : of the dearer one
        """
        cheaper = self._no_dearer(term, number)
        differing = term.values[cheaper] + term.compulsory[number] - term.compulsory[cheaper]
        for least in cheaper[differing >= term.values[number] * (1 - _ROUNDING)]:
            asked = min(int(term.asked[least]), int(term.asked[number]))
            between = np.intersect1d(self._no_cheaper(term, int(least)), cheaper)
            term.asked[between] = np.maximum(term.asked[between], asked)

    def _no_dearer(self, term: Term, number: int) -> Int64s:
        """Parts that cost no more than one of them, the one with the least unit energies first."""
        unit = term.units
        alike = (term.kinds == term.kinds[number]) & (unit <= unit[number]).all(axis=1)
        places = np.flatnonzero(alike)
        return places[np.argsort(unit[places].sum(axis=1), kind="stable")]

    def _no_cheaper(self, term: Term, number: int) -> Int64s:
        """Parts that cost no less than one of them."""
        unit = term.units
        return np.flatnonzero((term.kinds == term.kinds[number]) & (unit >= unit[number]).all(axis=1))

    def _enough(self, term: Term, number: int, most: float = math.inf) -> float:
        """What a part has to cost, pJ, so that no pattern needs to know more of it; infinite without a goal.

        Where all else costs what is known, every pattern that has the part, or a dearer one, reaches the goal
        then.  Other parts and bounds only rise, and goals fall, so nothing will ever need more.

        Parameters
        ----------
        most : key, in pJ and cycles, instead of a higher goal
        """
        wanted = goal_of(self._search)
        goal = min(most, math.inf if wanted is None else float(wanted))
        if math.isinf(goal):
            return math.inf
        a, b = self._powers
        is_open = np.isfinite(self._sums).all(axis=0)
        own = np.flatnonzero(is_open if self._is_taken.all() else is_open & ~self._is_taken)
        weight = float(self.weights[term.weight])
        # Beyond some cycles the energy alone reaches the goal; before, the sum must, which is most at an end.
        ends = [np.full(len(own), self._cycles)]
        if weight:
            with np.errstate(divide="ignore", over="ignore"):
                latest = (goal / self._sums[0, own] ** a) ** (1 / b)
            ends.append(np.maximum(latest, self._cycles))
        sums = np.max([(weight - self._leak) * at + (goal / at**b) ** (1 / a) for at in ends], axis=0)
        needed = np.full(len(term.parts), -math.inf)
        places = term.of_pattern[own]
        np.maximum.at(needed, places, sums - self._sums[term.weight, own] + term.values[places])
        dearer = self._no_cheaper(term, number)
        more = float((needed[dearer] - term.compulsory[dearer]).max()) + float(term.compulsory[number])
        return max(more, float(term.values[number])) * (1 + _BEYOND)

    def _step(self, term: Term, number: int) -> float:
        """What a part has to cost, pJ, so that the least key rises by a step; none does from 0."""
        return self._enough(term, number, self.least * (1 + _STEP) if self.least else math.inf)

    def _searched(self, term: Term, number: int, effort: int, enough: float) -> PartAnswer:
        """What a part costs at least, as far as a search of some effort knows, or enough."""
        answer = self._costs.least(term.parts[number], self.weights[term.weight], effort, enough)
        self._note(answer, term.parts[number])
        return answer

    def _note(self, answer: PartAnswer, part: StoragePart) -> None:
        """Keep the answer of a part that has the innermost tiles."""
        if part.level == len(self._search.problem.engine.levels) - 1:
            self.innermost.append(answer)
