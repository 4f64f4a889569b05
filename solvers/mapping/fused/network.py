"""Which layers of a network form groups, for every objective of their total energy and cycles.

Energy alone and cycles alone add up over groups, so one search of covers finds the best.  A product of both
is proven by such searches at several prices of a cycle (`solvers/mapping/fused/lines.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.fused.arena import FusionMethod
from tilewright.formulation.mapping.fused.evaluator import evaluate_fused
from tilewright.formulation.mapping.fused.group import FusedGroup
from tilewright.formulation.mapping.fused.widths import at_widths
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.engine import Engine
from tilewright.solvers.mapping.fused.answers import Figures, FusedStart, FusionAnswer, GroupAnswer, alike
from tilewright.solvers.mapping.fused.covers.cover import Group
from tilewright.solvers.mapping.fused.covers.cover_search import CoverAnswer, CoverSearch
from tilewright.solvers.mapping.fused.covers.heuristic_cover import HeuristicCover
from tilewright.solvers.mapping.fused.floors.compulsory import least_energy
from tilewright.solvers.mapping.fused.lines import Line, Point, least_key, next_price, tangent
from tilewright.solvers.mapping.fused.prices import at_price
from tilewright.solvers.mapping.fused.problem import FusionProblem
from tilewright.solvers.mapping.fused.trees.skeletons import SkeletonSpace

MOST_PRICES = 64
"""Prices at which covers are searched for one product."""


def search_network_fusion(
    problem: FusionProblem,
    limits: Limits,
    told: Callable[[GroupAnswer], None] = lambda answer: None,
    method: FusionMethod | None = None,
    starts: Iterable[FusedStart] = (),
) -> FusionAnswer:
    """The best cover of a network by groups of linked layers.

    Parameters
    ----------
    problem : the question
    limits : of the whole call
    told : hears of every layer and every group that is searched, when its search is over or is left for now;
        where energy and cycles count, values are energy alone
    method : a heuristic that proposes the groups and their trees; ``None`` to search all and to prove
    starts : fused mappings to begin with; those from outside the space are kept apart
    """
    if method is None:
        search = CoverSearch(problem, told, starts)
    else:
        search = HeuristicCover(problem, told, method, starts)
    a, b = problem.objective.key_powers
    if a and b:
        answer = _ProductSearch(problem, limits, search).run()
    else:
        engine = at_price(problem.engine, Fraction(0) if a else None)
        answer = _power_of_sum(problem, search, search.run(engine, limits), max(a, b))
    return replace(answer, beside=tuple(search.starts.beside), refused=tuple(search.starts.refused))


def _power_of_sum(
    problem: FusionProblem, search: CoverSearch, cover: CoverAnswer, power: int
) -> FusionAnswer:
    """The answer for a power of energy alone or of cycles alone.

    Parameters
    ----------
    problem, search : the question, and what searched
    cover : energy or cycles themselves
    power : of the sum
    """

    def raised(answer: GroupAnswer) -> GroupAnswer:
        value = None if answer.value is None else answer.value**power
        return replace(answer, value=value, bound=answer.bound**power)

    def one_by_one(places: Iterable[int]) -> Figures:
        alone = [cover.answers[place,] for place in places]
        values = [answer.value for answer in alone if answer.value is not None]
        value = sum(values, Fraction(0)) ** power if len(values) == len(alone) else None
        return value, sum((answer.bound for answer in alone), Fraction(0)) ** power

    return FusionAnswer(
        tuple(_evaluated(problem, raised(cover.answers[place])) for place in cover.chosen),
        tuple(raised(answer) for answer in cover.answers.values() if answer.is_fused),
        tuple(search.unlinked()),
        None if cover.value is None else cover.value**power,
        cover.bound**power,
        tuple(one_by_one(place) for place in cover.chosen),
        one_by_one(search.places.values()),
        tuple(_apart(cover, place) for place in cover.chosen),
        impossible=cover.impossible,
    )


def _apart(cover: CoverAnswer, place: Group) -> tuple[GroupAnswer, ...]:
    return tuple(cover.answers[layer,] for layer in place)


def _evaluated(problem: FusionProblem, answer: GroupAnswer) -> GroupAnswer:
    """With the evaluation of its tree on the machine itself."""
    if answer.tree is None:
        return answer
    model = cost_model(problem.model_name)
    return replace(answer, evaluation=evaluate_fused(answer.group, problem.engine, model, answer.tree))


@dataclass(frozen=True)
class _Priced:
    """What a search of covers found at one price of a cycle."""

    price: Fraction
    cover: CoverAnswer

    def point(self, places: Iterable[Group]) -> Point | None:
        """Energy and cycles of some groups together, the price left out."""
        answers = [self.cover.answers[place] for place in places]
        values = [answer.value for answer in answers if answer.value is not None]
        if len(values) < len(answers):
            return None
        cycles = sum(answer.cycles for answer in answers)
        return sum(values, Fraction(0)) - self.price * cycles, cycles


class _ProductSearch:
    """Searches of covers at prices that close the gap, until it is closed or a limit strikes."""

    def __init__(self, problem: FusionProblem, limits: Limits, search: CoverSearch) -> None:
        self.problem, self.limits, self.search, self.told = problem, limits, search, search.told
        self.objective = problem.objective
        self.free = at_price(problem.engine, None)
        self.priced: list[_Priced] = []
        self._least_of: dict[tuple[object, bool], Fraction] = {}

    def run(self) -> FusionAnswer:
        """Search at ever more prices."""
        # The key is a product of so many factors, each of which may have an equal part of the gap.
        gap = self.limits.gap / sum(self.objective.key_powers)
        fewest = self._least(self.free)
        price: Fraction | None = self._first_price()
        while price is not None and len(self.priced) < MOST_PRICES:
            limits = replace(self.limits.share(0.4), gap=gap)
            engine = at_price(self.problem.engine, price)
            self.search.told = _without(price, self.told)
            self.priced.append(_Priced(price, self.search.run(engine, limits)))
            lines = self._lines()
            best = self._best(lines)
            if self.limits.expired or best is None:
                break
            enough = best * (1 - Fraction(self.limits.gap))
            price = next_price(self.objective, lines, fewest, enough)
        return self._answer(fewest)

    def _least(self, engine: Engine) -> Fraction:
        """What the whole network takes on a machine, however its layers are fused."""
        problem, layers = self.problem, self.problem.layers
        try:
            return self._of_group(problem.group(layers), engine)
        except InputError:
            pass
        # Some operands are not what they read, or widths differ; then layers whose results leave the network
        # count alone.
        last = [problem.group([name]) for name in problem.network.outputs if name in layers]
        return sum((self._of_group(group, engine) for group in last), Fraction(0))

    def _of_group(self, group: FusedGroup, engine: Engine) -> Fraction:
        """What some layers take at least, fused or not; told once of groups that are alike."""
        key = alike(group), engine is self.free
        if key not in self._least_of:
            group, engine = at_widths(group, engine)
            levels = SkeletonSpace(group, engine, self.problem.home_level)
            engines = self.problem.turn_engines(engine)
            self._least_of[key] = least_energy(group, engines, lambda layer: [0, *levels.home_levels(layer)])
        return self._least_of[key]

    def _first_price(self) -> Fraction:
        """At which the product of all layers alone, each at its least energy, does not change."""
        singles = self.search.alone(self.problem.engine, self.limits.share(0.25)).values()
        energy = sum((single.value for single in singles if single.value is not None), Fraction(0))
        cycles = sum(single.cycles for single in singles)
        if not energy or not cycles:
            return Fraction(1)
        return Fraction(f"{float(tangent(self.objective, energy, Fraction(cycles))):.2g}")

    def _lines(self) -> list[Line]:
        """Of the whole network; at no price, what it takes whatever its mapping."""
        lines = [
            Line(priced.price, priced.cover.bound, priced.point(priced.cover.chosen))
            for priced in self.priced
        ]
        return _with_free_cycles(lines, self._least(self.problem.engine))

    def _best(self, lines: Iterable[Line]) -> Fraction | None:
        """The least key of all points."""
        points = [line.point for line in lines if line.point is not None]
        return min((self.objective.key(*point) for point in points), default=None)

    def _answer(self, fewest: Fraction) -> FusionAnswer:
        lines = self._lines()
        best = self._best(lines)
        bound = least_key(self.objective, lines, fewest)
        at = self.priced[-1]
        for priced in self.priced:
            point = priced.point(priced.cover.chosen)
            if point is not None and self.objective.key(*point) == best:
                at = priced
        reported = {place: self._reported(at, place) for place in at.cover.answers}
        return FusionAnswer(
            tuple(_evaluated(self.problem, reported[place]) for place in at.cover.chosen),
            tuple(answer for answer in reported.values() if answer.is_fused),
            tuple(self.search.unlinked()),
            best,
            bound if best is None else min(bound, best),
            tuple(self._figures([(layer,) for layer in place]) for place in at.cover.chosen),
            self._figures([(layer,) for layer in self.search.places.values()]),
            tuple(
                _apart(self._best_at([(layer,) for layer in place]).cover, place) for place in at.cover.chosen
            ),
            tuple(sorted(lines, key=lambda line: line.price)),
            fewest,
            impossible=any(priced.cover.impossible for priced in self.priced),
        )

    def _best_at(self, places: list[Group]) -> _Priced:
        """Of all prices the first at which some groups together have their least key."""

        def key(priced: _Priced) -> tuple[bool, Fraction]:
            point = priced.point(places)
            return point is None, Fraction(0) if point is None else self.objective.key(*point)

        return min(self.priced, key=key)

    def _group_lines(self, places: list[Group]) -> list[Line]:
        """Of some groups together."""
        lines: list[Line] = []
        for priced in self.priced:
            least = sum((priced.cover.answers[place].bound for place in places), Fraction(0))
            lines.append(Line(priced.price, least, priced.point(places)))
        engine = self.problem.engine
        groups = [self.priced[0].cover.answers[place].group for place in places]
        return _with_free_cycles(lines, sum((self._of_group(group, engine) for group in groups), Fraction(0)))

    def _fewest(self, places: Iterable[Group]) -> Fraction:
        """Cycles of some groups together at least."""
        groups = [self.priced[0].cover.answers[place].group for place in places]
        return sum((self._of_group(group, self.free) for group in groups), Fraction(0))

    def _reported(self, at: _Priced, place: Group) -> GroupAnswer:
        """A group's answer at the price of the best cover, valued by the objective."""
        answer = at.cover.answers[place]
        point = at.point([place])
        _, bound = self._figures([place])
        value = None if point is None else self.objective.key(*point)
        return replace(answer, value=value, bound=bound if value is None else min(bound, value))

    def _figures(self, places: list[Group]) -> Figures:
        """The least key of some groups together, of what is known at all prices."""
        lines = self._group_lines(places)
        value = self._best(lines)
        bound = least_key(self.objective, lines, self._fewest(places))
        return value, bound if value is None else min(bound, value)


def _without(price: Fraction, told: Callable[[GroupAnswer], None]) -> Callable[[GroupAnswer], None]:
    """Have answers told without what their cycles cost."""

    def told_apart(answer: GroupAnswer) -> None:
        value = None if answer.value is None else answer.value - price * answer.cycles
        told(replace(answer, value=value))

    return told_apart


def _with_free_cycles(lines: list[Line], least: Fraction) -> list[Line]:
    """Lines with one at no price among them."""
    return lines if any(line.price == 0 for line in lines) else [*lines, Line(Fraction(0), least)]
