"""Proven chains over all orders of a network, even where there are too many down-sets to enumerate.

Segments cover the layers, each exactly once, in some order.  Schemes begin with the lower bounds of their
estimates.  Linear programs (`cover_relaxation.py`) bound every chain with a scheme, exclude schemes that
cannot be part of a better chain than the best one known, and select the schemes to evaluate next.  When all
remaining schemes are evaluated, a linear statement of the choice (`cover_statement.py`) goes to CP-SAT or a
MIP solver, with more pieces of the logarithms near the last answer until no chain can be better by more than
`TOLERANCE`.  Before that, whenever the number of evaluated schemes has doubled, the same statement over these
looks for better chains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil, exp, floor, inf, log

import numpy as np

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.kapla.chain import Chain, ChosenChain
from tilewright.formulation.scheduling.tiled.kapla.layer_sets import Reach, grown_sets
from tilewright.formulation.scheduling.tiled.kapla.segments import SegmentScheme, SegmentSpace, members
from tilewright.formulation.scheduling.tiled.set.trees.closed_form import ClosedForm
from tilewright.heuristics.scheduling.tiled.kapla.solver import KaplaSolver, Slicing
from tilewright.solvers.mapping.mip.child import Child
from tilewright.solvers.scheduling.tiled.kapla.cover_relaxation import CoverRelaxation
from tilewright.solvers.scheduling.tiled.kapla.cover_statement import LOGARITHM, UNITS, CoverStatement, Side
from tilewright.solvers.scheduling.tiled.kapla.prices import BestKnown, Prices, least_prices
from tilewright.solvers.scheduling.tiled.linear import child_of, solve_linear

AT_ONCE = 48
"""Schemes that are evaluated between two rounds of linear programs."""

MOST_SETS = 20_000
"""Sets of layers that are looked at where there are too many down-sets."""

FIRST_TRY = 100
"""Schemes with their costs among which a chain is sought first."""

TRY = 0.1
"""Part of the time that is left for such a search."""

PIECES = 8
"""Of each logarithm at first."""

ROUNDING = 1e-9
"""Relative slack of a bound for the rounding of floats."""

TOLERANCE = 1e-4
"""A chain is proven where none is better by more than that part."""


@dataclass
class Cover:
    """Searches all chains of a slicing's segments, in every order of the layers.

    Parameters
    ----------
    solver : ``cpsat``, ``highs`` or ``cbc``
    stop : whether the search is over; that of the limits where it is ``None``
    notify : notified of every better chain
    most_sets : sets of layers that are looked at where there are too many down-sets
    """

    form: ClosedForm
    limits: Limits
    slicing: Slicing = field(default_factory=Slicing)
    solver: str = "cpsat"
    stop: Callable[[], bool] | None = None
    notify: Callable[[Chain], None] = lambda chain: None
    most_sets: int = MOST_SETS
    whole: int = field(init=False, default=0)

    def solve(self) -> ChosenChain:
        """The best chain, and a bound; it is proven where the two are closer than `TOLERANCE`.

        Raises
        ------
        ChildError : where a MIP's worker is missing or dies
        """
        best = BestKnown(self.form, self.stop or (lambda: self.limits.expired), self.notify)
        KaplaSolver(self.form, self.slicing, stop=best.stop, notify=best.offer).solve()
        bound = inf
        with child_of(self.solver, self.limits) as child:
            for splits, space in self.slicing.spaces(self.form):
                sets = self._sets(space, best.stop)
                prices = None if sets is None else least_prices(best, splits, self._schemes(space, sets))
                if prices is None:
                    bound = 0.0
                elif prices.schemes:
                    bound = min(bound, _Split(prices, self, child).search())
        return best.result(bound, TOLERANCE)

    def _sets(self, space: SegmentSpace, stop: Callable[[], bool]) -> set[int] | None:
        """Every set of layers that a segment may hold; ``None`` where the time is up."""
        sets: set[int] = set()
        for start in space.starts[:-1]:
            if stop():
                return None
            sets.update(end & ~start for end, _ in space.rows(start))
        self.whole = space.longest
        if space.orders == "own":
            grown, self.whole = grown_sets(self.form.network, space.longest, self.most_sets)
            sets.update(grown)
        return sets

    def _schemes(self, space: SegmentSpace, sets: Iterable[int]) -> Iterator[SegmentScheme]:
        """Every scheme of some sets of layers, those that begin behind the same layers together."""
        reach = Reach(self.form.network)
        for start, layers in sorted((reach.before_all(layers), layers) for layers in sets):
            yield from space.schemes_of(start, start | layers, members(layers))


@dataclass(frozen=True, slots=True)
class _Answer:
    """A chain by numbers of schemes, if there is one, and a lower bound on all better chains."""

    bound: float
    chain: list[int] | None


class _Split:
    """The chains with one number of subbatches of the root."""

    def __init__(self, prices: Prices, cover: Cover, child: Child | None) -> None:
        self.prices, self.cover, self.best, self.child = prices, cover, prices.best, child
        self.form = self.best.form
        self.powers = self.form.energy_power, self.form.delay_power
        self.sets = [scheme.end & ~scheme.start for scheme in prices.schemes]
        self.relaxation = CoverRelaxation(self.sets, len(self.form.network), self.powers)

    def search(self) -> float:
        """A bound on the chains; infinite where none is better than the best one known."""
        prices, relaxation, tried = self.prices, self.relaxation, FIRST_TRY
        while True:
            if not relaxation.solve(prices.energy, prices.cycles, prices.scale, self.best.stop):
                return relaxation.bound
            value = self.best.value
            if relaxation.bound >= value:
                return inf
            gone = relaxation.through >= value
            prices.drop(gone)
            waiting = np.flatnonzero(~prices.known & ~gone)
            if not len(waiting):
                return self._finish(self.cover.limits)
            known = int((prices.known & ~gone).sum())
            if known >= tried:
                self._finish(self.cover.limits.share(TRY))
                tried = 2 * known
            used = [
                int(column) for column in relaxation.used if not prices.known[column] and not gone[column]
            ]
            order = waiting[np.argsort(relaxation.through[waiting], kind="stable")]
            first = set(used)
            others = (int(column) for column in order if column not in first)
            for number in [*used, *others][: max(AT_ONCE, len(used))]:
                if self.best.stop():
                    return relaxation.bound
                prices.evaluate(number)

    def _finish(self, limits: Limits) -> float:
        """The best chain of all schemes that have their costs; a bound on chains of these."""
        energy, cycles = self.prices.energy, self.prices.cycles
        known = [int(number) for number in np.flatnonzero(np.isfinite(energy) & self.prices.known)]
        bound, near = 0.0, list[tuple[float, float]]()
        while not self.best.stop() and not limits.expired:
            answer = self._answer(known, near, limits)
            bound = max(bound, answer.bound)
            if answer.chain is None:
                break
            self.prices.offer(answer.chain)
            if bound >= self.best.value * (1 - TOLERANCE):
                break
            here = float(energy[answer.chain].sum()), float(cycles[answer.chain].sum())
            if here in near:  # units are too coarse to distinguish it from a better one
                break
            near.append(here)
        return max(bound, self.relaxation.bound)

    def _answer(self, known: list[int], near: list[tuple[float, float]], limits: Limits) -> _Answer:
        """A chain that may be better by more than `TOLERANCE`, and a bound on all such.

        Parameters
        ----------
        known : schemes by number
        near : energies and cycles at which the logarithms are to be close
        """
        sides, constant = [], 0.0
        for n, cost in enumerate((self.prices.energy, self.prices.cycles)):
            power, unit = self.powers[n], self.prices.scale[n] / UNITS
            if power:
                counts = [floor(cost[number] / unit) for number in known]
                sides.append(
                    Side(counts, power, self._pieces(n, unit, counts, [number[n] for number in near]))
                )
                constant += power * log(unit)
        statement = CoverStatement(self.form.network, [self.sets[number] for number in known], sides)
        linear, most = statement.linear, self.best.value * (1 - TOLERANCE)
        if most < inf:
            linear.row(dict(linear.objective), None, ceil((log(most) - constant) * LOGARITHM))
        answer = solve_linear(linear, None, self.cover.solver, limits, self.child)
        if answer.impossible:
            return _Answer(most, None)
        bound = 0.0 if answer.bound is None else exp(answer.bound / LOGARITHM + constant) * (1 - ROUNDING)
        chain = None if answer.values is None else statement.chain_of(answer.values)
        return _Answer(min(bound, most), chain and [known[number] for number in chain])

    def _pieces(self, n: int, unit: float, counts: list[int], near: list[float]) -> list[int]:
        """Rising values, in units, between which the logarithm of a cost is replaced by chords."""
        least = max(1, floor(self.relaxation.least[n] / unit) - len(self.form.network))
        other, power = self.relaxation.least[1 - n], self.powers[1 - n]
        most = sum(sorted(counts)[-len(self.form.network) :])
        if self.best.value < inf and other > 0:
            most = min(most, ceil((self.best.value / other**power) ** (1 / self.powers[n]) / unit) + 1)
        most = max(most, least + 1)
        ends = {least, most}
        ends.update(round(least * (most / least) ** (i / PIECES)) for i in range(1, PIECES))
        for amount in near:
            here = floor(amount / unit)
            ends.update(here + step for step in (-(here >> 8), -(here >> 12), 0, here >> 12, here >> 8))
        return sorted(amount for amount in ends if least <= amount <= most)
