"""Lower bounds of all storage patterns of a machine, each a sum of parts that many patterns share.

Parts (:mod:`tilewright.formulation.mapping.storage_parts`) are searched when the cheapest pattern asks for
them; until then what is compulsory counts.  So few of them are ever searched, and no pattern is stated.
Where cycles count and there is one pattern, energy is bounded alone and together with cycles, each of which
costs something then.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tilewright.formulation.mapping.blocks import loop_hosts
from tilewright.formulation.mapping.compulsory import least_cycles
from tilewright.formulation.mapping.inner_levels import InnerStores
from tilewright.formulation.mapping.problem import LayerProblem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.mapping.space import Alike
from tilewright.formulation.mapping.storage_parts import (
    StoragePart,
    compulsory,
    has_storage_parts,
    part_problem,
    place_in,
)
from tilewright.foundation.arrays import Bools, Floats, Int64s
from tilewright.solvers.mapping.goals import goal_of
from tilewright.solvers.mapping.inner_stores import InnerFront, InnerFronts
from tilewright.solvers.mapping.layout import Deciding
from tilewright.solvers.mapping.part_costs import PartCosts, least_energy
from tilewright.solvers.mapping.part_tiles import PartAnswer
from tilewright.solvers.mapping.pattern_machines import Stores, levels_of, machine_of, storing
from tilewright.solvers.mapping.weighted_sums import least_keys

_EFFORTS = (50_000, 1_000_000, 10_000_000)
"""Nodes bounded for a part: at first, and where the cheapest pattern still needs to know more."""
_DEEP = 60_000_000
"""Nodes bounded for a part of the one pattern that there is."""
_EXACT = len(_EFFORTS) + 1
"""Efforts, so to speak, that a part has been searched with whose cost is known."""
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
_FINEST = 16  # parts of a pJ
_SLACK = 0.003
import os
_TOGETHER = eval(os.environ.get("TG","(2,3)"))
"""Levels whose stores are searched together, one number after the other."""


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
    key : lower bound of the objective key, in pJ and cycles
    costs : for every weight of a cycle, what each part costs at least, pJ, by the level that is filled
    """

    stores: Stores
    key: float
    costs: list[dict[int, float]]

    @property
    def parts(self) -> dict[int, float]:
        """What each part of the energy alone costs at least, pJ, by the level that is filled."""
        return self.costs[0]


@dataclass(frozen=True, slots=True)
class _Term:
    """One part of the energy of every pattern, or of the energy and what cycles cost.

    Parameters
    ----------
    weight : place of what a cycle costs among the weights
    parts : different ones
    of_pattern : per pattern, the number of its part, shape (patterns,)
    kinds : equal where the same tensors come from levels with the same arrays between, shape (parts,)
    units : energies of the levels that tensors come from, pJ per element, shape (parts, ...)
    compulsory : what each costs whatever the tiles, pJ, shape (parts,)
    values : what each costs at least as far as is known, pJ, shape (parts,)
    asked : with how many of the efforts each has been searched, or `_EXACT`, shape (parts,)
    """

    weight: int
    parts: list[StoragePart]
    of_pattern: Int64s
    kinds: Int64s
    units: Floats
    compulsory: Floats
    values: Floats
    asked: Int64s


@dataclass(frozen=True, slots=True)
class _Together:
    inner: InnerStores
    front: InnerFront
    once: float


class PatternBounds:
    """Storage patterns in the order of their bounds; raises ``LimitReachedError`` where a limit strikes.

    Parameters
    ----------
    between : called before each part is searched

    Attributes
    ----------
    weights : what a cycle costs, pJ, in the sums that bound every pattern, 0 first
    innermost : what searches of the innermost level found, for other weights and patterns
    alike : spaces of parts, where these share any
    """

    def __init__(self, search: LayerSearch, between: Callable[[], None] = lambda: None) -> None:
        self._search, self._between = search, between
        problem = search.problem
        operator, engine = problem.operator, problem.engine
        residency = problem.space.nest.residency
        self._alternatives = [residency[tensor.name].alternatives for tensor in operator.tensors]
        self._shape = tuple(len(alternatives) for alternatives in self._alternatives)
        # Of one pattern the same parts are searched for every weight.
        self.alike = Alike() if math.prod(self._shape) == 1 else None
        self._powers = problem.objective.key_powers
        self._cycles = float(least_cycles(operator, engine))
        self._compulsory: dict[tuple[int, int, int, bool], float] = {}  # of tensors, in parts
        self.weights = [Fraction(0)]
        self.innermost: list[PartAnswer] = []
        self._costs = PartCosts(search)
        self._terms: list[_Term] = []
        self._sums: Floats = np.asarray([self._sum_of_terms()])
        if math.prod(self._shape) == 1:
            self._weigh(float(self._sums.min()), _WEIGHTS)
        self._keys = self.least_keys(self._sums)
        self._is_taken = np.zeros(len(self._keys), dtype=np.bool_)
        self._searches_of_inner = InnerFronts(search)
        self._fronts: dict[tuple, dict[InnerStores, _Together]] = {}
        self._tries = 0
        self._known_marks: dict[InnerStores, Bools] = {}

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
        terms = [self._term(level, len(self.weights) - 1) for level in reversed(levels)]
        self._terms += terms
        none: Floats = np.zeros(math.prod(self._shape))
        return sum((term.values[term.of_pattern] for term in terms), none)

    def least_keys(self, sums: Floats) -> Floats:
        """Lower bounds of keys, in pJ and cycles, from lower bounds for every weight of a cycle, pJ."""
        return least_keys(sums * (1 - _ROUNDING), [*map(float, self.weights)], self._cycles, self._powers)

    @property
    def least(self) -> float:
        """Lower bound of the key, in pJ and cycles, of all patterns that have not been taken."""
        return float(self._keys.min(initial=math.inf, where=~self._is_taken))

    def key_of(self, stores: Stores) -> float:
        """Lower bound of the key, in pJ and cycles, of a pattern."""
        places = [own.index(levels) for own, levels in zip(self._alternatives, stores, strict=True)]
        return float(self._keys.reshape(self._shape)[tuple(places)])

    def key_within(self, levels: Collection[int]) -> float:
        """Lower bound of the key, in pJ and cycles, of all patterns that store in some levels alone."""
        places = [
            [place for place, stores in enumerate(own) if {*stores} <= {*levels}]
            for own in self._alternatives
        ]
        return float(self._keys.reshape(self._shape)[np.ix_(*places)].min(initial=math.inf))

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
                if any(self._know_together(cheapest, count) for count in _TOGETHER):
                    continue
                first = self._first_together(cheapest)
                if first is not None:
                    term = self._next_term(cheapest, first)
            if term is None:
                self._is_taken[cheapest] = True
                return self.known(cheapest)
            self._learn(term, int(term.of_pattern[cheapest]))
        return None

    def _know_together(self, pattern: int, count: int) -> bool:
        """Whether what the innermost stores of a pattern cost together raises its key; it may raise others.

        Parameters
        ----------
        count : levels of these stores; all but two at most, else it is the whole
        """
        wanted, stores = goal_of(self._search), self._stores_of(pattern)
        stored = levels_of(stores)
        if wanted is None or len(stored) <= count or (count > 2 and len(stored) < 5):
            return False
        inner = InnerStores.of(stores, stored[-count:])
        if not inner.stand_alone_on(self._search.problem.engine, stored[-count - 1]):
            return False
        before = float(self._keys[pattern])
        fronts = self._fronts.setdefault((inner.levels, inner.stored), {})
        for own in fronts.values():
            self._apply(own, np.array([pattern]))
        for stores in (self._cheapest(inner), inner) :
            if float(self._keys[pattern]) > before * (1 + _ROUNDING):
                return True
            if stores not in fronts:
                fronts[stores] = self._search_together(stores)
                self._apply(fronts[stores], self._dearer(stores))
                self._offer(pattern)
        return float(self._keys[pattern]) > before * (1 + _ROUNDING)

    def _offer(self, pattern: int) -> None:
        wanted = goal_of(self._search)
        if float(self._keys[pattern]) < 0.98 * float(wanted) and self._tries < 12:
            self._tries += 1
            stores = self._stores_of(pattern)
            part = self._search.problem.on(machine_of(storing(self._search.problem, stores), levels_of(stores)))
            before = float(self._search.key)
            self._searches_of_inner.offer(part)
            if "TRY" in os.environ: print("TRY", stores, before, float(self._keys[pattern]), float(self._search.key))

    def _cheapest(self, inner: InnerStores) -> InnerStores:
        engine = self._search.problem.engine
        tensors = self._search.problem.operator.tensors
        own = []
        places = np.unravel_index(self._dearer(inner, any_source=True), self._shape)
        for tensor, alternatives, place, stored in zip(tensors, self._alternatives, places, inner.stored, strict=True):
            sources = {max(l for l in alternatives[int(p)] if l < inner.levels[0]) for p in np.unique(place)}
            own.append(min(sources, key=lambda l: (engine.levels[l].read_energy_of(tensor.role), engine.levels[l].write_energy_of(tensor.role))))
        return replace(inner, sources=tuple(own))

    def _search_together(self, inner: InnerStores) -> _Together:
        wanted = goal_of(self._search)
        known = dict.fromkeys(inner.levels, 0.0)
        places = self._dearer(inner)
        once = 0.0
        for term in self._inside(inner):
            # What PEs read counts with the innermost level of the machine, which may store nothing.
            level = term.parts[0].level
            at = level if level in known else inner.levels[-1]
            number = self._number(term, inner)
            known[at] += float(term.values[number]) * (1 - _ROUNDING)
            once += float(term.compulsory[number])
        outside = self._outside(inner, once, places)
        least = float(outside.min())
        front = self._searches_of_inner.found(inner, known, least, float(wanted) * (1 + _BEYOND))
        return _Together(inner, front, once)

    def _number(self, term: _Term, inner: InnerStores) -> int:
        level = term.parts[0].level
        last = len(self._search.problem.engine.levels) - 1
        places = [place_in((source, *stored), level, level == last) if (level in stored or level == last) else (None, False) for source, stored in zip(inner.sources, inner.stored, strict=True)]
        return term.parts.index(StoragePart(level, tuple(s for s, _ in places), tuple(s for _, s in places)))

    def _inside(self, inner: InnerStores) -> list[_Term]:
        return [t for t in self._terms if not t.weight and t.parts[0].level >= inner.levels[0]]

    def _outside(self, inner: InnerStores, once: float, places: Int64s) -> Floats:
        """What levels outside cost in patterns, and what their inner stores cost more for each element once."""
        outside = self._sums[0, places] - once
        for term in self._inside(inner):
            own = term.of_pattern[places]
            outside += term.compulsory[own] - term.values[own]
        return outside * (1 - _ROUNDING)

    def _apply(self, known: _Together, places: Int64s) -> None:
        """Raise the keys of patterns whose stores inside are those of a front, or come from dearer levels."""
        marks = self._marks(known.inner)[places] & ~self._is_taken[places]
        places = places[marks]
        outside = self._outside(known.inner, known.once, places)
        applies = outside >= known.front.outside
        places, outside = places[applies], outside[applies]
        if len(places):
            keys = known.front.least_keys(outside, self._powers)
            self._keys[places] = np.maximum(self._keys[places], keys)

    def _dearer(self, inner: InnerStores, any_source: bool = False) -> Int64s:
        goal = goal_of(self._search)
        assert goal is not None
        return np.flatnonzero(self._marks(inner, any_source) & ~self._is_taken & (self._keys < float(goal)))

    def _marks(self, inner: InnerStores, any_source: bool = False) -> Bools:
        """The patterns that store the same in the innermost levels, from these sources or dearer ones."""
        known = self._known_marks.get((inner, any_source))
        if known is not None:
            return known
        engine = self._search.problem.engine
        arrays = [index for index in range(inner.levels[0]) if engine.levels[index].fanout is not None]
        last = min([inner.levels[0] - 1, *arrays])
        has = np.ones((), dtype=np.bool_)
        tensors = self._search.problem.operator.tensors
        for tensor, own, source, stored in zip(tensors, self._alternatives, inner.sources, inner.stored, strict=True):
            least = engine.levels[source]
            fit = [
                level <= last and (any_source or engine.levels[level].read_energy_of(tensor.role) >= least.read_energy_of(tensor.role)
                and engine.levels[level].write_energy_of(tensor.role) >= least.write_energy_of(tensor.role))
                for level in range(inner.levels[0])
            ]
            marks = []
            for stores in own:
                inside = tuple(level for level in stores if level >= inner.levels[0])
                outside = stores[len(stores) - len(inside) - 1]
                marks.append(inside == stored and fit[outside])
            has = np.multiply.outer(has, np.asarray(marks))
        self._known_marks[inner, any_source] = has.ravel()
        return self._known_marks[inner, any_source]

    def _first_together(self, pattern: int) -> int | None:
        stores = self._stores_of(pattern)
        stored = levels_of(stores)
        if goal_of(self._search) is None or len(stored) < 3:
            return None
        inner = InnerStores.of(stores, stored[-2:])
        return stored[-2] if inner.stand_alone_on(self._search.problem.engine, stored[-3]) else None

    def _next_term(self, pattern: int, first: int | None = None) -> _Term | None:
        """The term that is searched next for a pattern; ``None`` where none is."""
        asked = {place: int(term.asked[term.of_pattern[pattern]]) for place, term in enumerate(self._terms)}
        if first is not None:
            left = [place for place, own in asked.items() if own < len(_EFFORTS) and not self._terms[place].weight and self._terms[place].parts[0].level < first]
            best = min(left, key=lambda place: asked[place], default=None)
            return None if best is None else self._terms[best]
        left = [place for place, own in asked.items() if own < len(_EFFORTS)]
        if not left and len(self._keys) > 1 and len(self.weights) == 1:
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
            if term.asked[0] < _EXACT:
                # Where steps count, they are settled first.
                deciding = Deciding(spread_first=True) if term.weight else None
                weight = self.weights[term.weight]
                part = part_problem(search.problem, term.parts[0], weight, self.alike)
                answer = least_energy(search, part, _DEEP, deciding, self._enough(term, 0))
                self._note(answer, term.parts[0])
                term.values[0] = max(term.values[0], answer.least)
                term.asked[0] = _EXACT if answer.is_exact else len(_EFFORTS)
                yield self.known(0)

    def forget_tables(self) -> None:
        """Forget what searches of parts read; others read it anew."""
        self._costs = PartCosts(self._search)

    def known(self, pattern: int = 0) -> BoundedPattern:
        """What is known of a pattern, the only one by default."""
        costs: list[dict[int, float]] = [{} for _ in self.weights]
        for term in self._terms:
            value = float(term.values[term.of_pattern[pattern]])
            costs[term.weight][term.parts[0].level] = value * (1 - _ROUNDING)
        sums = np.asarray([[sum(cost.values())] for cost in costs])
        key = max(float(self.least_keys(sums)[0]), float(self._keys[pattern]))
        return BoundedPattern(self._stores_of(pattern), key, costs)

    def _stores_of(self, pattern: int) -> Stores:
        """Per tensor, the levels that store it."""
        places = np.unravel_index(pattern, self._shape)
        return tuple(
            alternatives[int(place)] for alternatives, place in zip(self._alternatives, places, strict=True)
        )

    def _learn(self, term: _Term, number: int) -> None:
        """Search one part, or others of its kind before it, and raise the bounds of patterns with them.

        Parts differ in the energies of the levels that tensors come from; where all of these are higher, with
        the same arrays between, the part costs no less.
        """
        own, asked = number, int(term.asked[number])
        number = self._representative(term, number)
        enough = most = self._enough(term, number)
        if 0 < asked == len(_EFFORTS) - 1:  # little by little: goals fall, and other parts may suffice
            enough = min(most, self._enough(term, number, self.least * (1 + _STEP)))
            if enough <= float(term.values[number]) * (1 + 2 * _BEYOND):  # the other one says no more
                number = own
                most = self._enough(term, number)
                enough = min(most, self._enough(term, number, self.least * (1 + _STEP)))
        inherited = float(term.values[number])
        answer = self._searched(term, number, _EFFORTS[asked], enough)
        value = answer.least
        before = term.values.copy()
        dearer = self._no_cheaper(term, number)
        # Every element of the difference is fetched once at least.
        known = value + term.compulsory[dearer] - term.compulsory[number]
        term.values[dearer] = np.maximum(term.values[dearer], known)
        if not answer.is_exact:
            term.asked[number] = asked + 1
        elif value < enough or enough == most:
            term.asked[number] = _EXACT
        if value <= inherited * (1 + _ROUNDING):
            self._settle(term, number)
        risen = np.zeros(len(before))
        np.subtract(term.values, before, out=risen, where=term.values > before)
        by_pattern = risen[term.of_pattern]
        self._sums[term.weight] += by_pattern
        places = np.flatnonzero(by_pattern)
        self._keys[places] = np.maximum(self._keys[places], self.least_keys(self._sums[:, places]))

    def _representative(self, term: _Term, number: int) -> int:
        """Which part is searched for one of them: the cheapest, the dearest of its kind, or else itself."""
        dearer, cheaper = self._no_cheaper(term, number), self._no_dearer(term, number)
        dearest = dearer[np.argmax(term.units[dearer].sum(axis=1))]
        ends = (int(cheaper[0]), int(dearest), number)
        return next(end for end in ends if term.asked[end] <= term.asked[number])

    def _settle(self, term: _Term, number: int) -> None:
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

    def _no_dearer(self, term: _Term, number: int) -> Int64s:
        """Parts that cost no more than one of them, the one with the least unit energies first."""
        unit = term.units
        alike = (term.kinds == term.kinds[number]) & (unit <= unit[number]).all(axis=1)
        places = np.flatnonzero(alike)
        return places[np.argsort(unit[places].sum(axis=1), kind="stable")]

    def _no_cheaper(self, term: _Term, number: int) -> Int64s:
        """Parts that cost no less than one of them."""
        unit = term.units
        return np.flatnonzero((term.kinds == term.kinds[number]) & (unit >= unit[number]).all(axis=1))

    def _enough(self, term: _Term, number: int, most: float = math.inf) -> float:
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
        sums = np.max([weight * at + (goal / at**b) ** (1 / a) for at in ends], axis=0)
        needed = np.full(len(term.parts), -math.inf)
        places = term.of_pattern[own]
        np.maximum.at(needed, places, sums - self._sums[term.weight, own] + term.values[places])
        dearer = self._no_cheaper(term, number)
        more = float((needed[dearer] - term.compulsory[dearer]).max()) + float(term.compulsory[number])
        return max(more, float(term.values[number])) * (1 + _BEYOND)

    def _searched(self, term: _Term, number: int, effort: int, enough: float) -> PartAnswer:
        """What a part costs at least, as far as a search of some effort knows, or enough."""
        answer = self._costs.least(term.parts[number], self.weights[term.weight], effort, enough)
        self._note(answer, term.parts[number])
        return answer

    def _note(self, answer: PartAnswer, part: StoragePart) -> None:
        """Keep the answer of a part that has the innermost tiles."""
        if part.level == len(self._search.problem.engine.levels) - 1:
            self.innermost.append(answer)

    def _term(self, level: int, weight: int) -> _Term:
        """The part at one level, for all patterns; a cycle costs what a weight says, by its place."""
        problem = self._search.problem
        last = len(problem.engine.levels) - 1
        codes: Int64s = np.zeros(self._shape, dtype=np.int64)
        places: list[list[tuple[int | None, bool]]] = []
        for axis, alternatives in enumerate(self._alternatives):
            own = [place_in(stores, level, level == last) for stores in alternatives]
            places.append(sorted({*own}, key=lambda place: (place[0] is not None, place)))
            column = np.asarray([places[-1].index(place) for place in own], dtype=np.int64)
            sizes = [1] * len(self._shape)
            sizes[axis] = len(column)
            codes = codes * len(places[-1]) + column.reshape(sizes)
        different, of_pattern = np.unique(codes.ravel(), return_inverse=True)
        parts: list[StoragePart] = []
        for index in zip(*np.unravel_index(different, [len(own) for own in places]), strict=True):
            chosen = [own[int(place)] for own, place in zip(places, index, strict=True)]
            sources, stored = zip(*chosen, strict=True)
            parts.append(StoragePart(level, sources, stored))
        values = np.asarray(
            [compulsory(problem, part, self.weights[weight], self._compulsory) for part in parts]
        )
        unused = [all(source is None for source in part.sources) for part in parts]
        asked: Int64s = np.where(unused, _EXACT, 0).astype(np.int64)
        kinds, units = zip(*(self._traits(part) for part in parts), strict=True)
        numbers: Int64s = np.arange(len(parts))  # ports of dearer levels may be the faster ones
        if not self.weights[weight]:
            _, numbers = np.unique(np.asarray(kinds), axis=0, return_inverse=True)
        return _Term(
            weight,
            parts,
            of_pattern.ravel(),
            numbers.ravel(),
            np.asarray(units),
            values.copy(),
            values,
            asked,
        )

    def _traits(self, part: StoragePart) -> tuple[list[int], list[float]]:
        """Whether each tensor is stored, from which levels between two arrays it comes, and unit energies."""
        engine = self._search.problem.engine
        arrays = [index for index, level in enumerate(engine.levels) if level.fanout is not None]
        runs: list[int] = [*part.stored]
        units: list[float] = []
        for tensor, source in zip(self._search.problem.operator.tensors, part.sources, strict=True):
            runs.append(-1 if source is None else bisect_left(arrays, source))
            level = engine.levels[source or 0]
            stored = source is not None
            units += [
                float(level.read_energy_of(tensor.role)) * stored,
                float(level.write_energy_of(tensor.role)) * stored,
            ]
        return runs, units
