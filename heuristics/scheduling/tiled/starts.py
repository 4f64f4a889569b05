"""Starts of `atomic`: sizes, regions, orders and places that compete, one plan after the other.

A search may stop after any of them and go on from there later.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.foundation.errors import InputError
from tilewright.heuristics.scheduling.tiled.annealing import Annealing, annealed_sizes
from tilewright.heuristics.scheduling.tiled.bands import all_band_sizes, widest_result
from tilewright.heuristics.scheduling.tiled.coarsening import workable
from tilewright.heuristics.scheduling.tiled.genetic import Genetics, genetic_sizes
from tilewright.heuristics.scheduling.tiled.homes import Homes
from tilewright.heuristics.scheduling.tiled.planning import cycle_price
from tilewright.heuristics.scheduling.tiled.refining import HANDOVERS, Judged, SizeMoves, Sizes
from tilewright.heuristics.scheduling.tiled.regions import Region, regions, whole
from tilewright.heuristics.scheduling.tiled.size_menus import HANDOVER, balanced_sizes, streaming_sizes
from tilewright.heuristics.scheduling.tiled.stages import BAND_ORDER, ORDERS, Stages

if TYPE_CHECKING:
    from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow


BEST = "best"
SIZES = ("shares", "repaired", "printed")
"""Sizes that compete by default."""
PLACED = ("zigzag", "matching")
"""Ways to place that compete by default."""

PRICES = (1.0, 0.25, 4.0)
"""Multiples of what a cycle is worth in the first plan by which sizes are ranked."""

TURNS = 2
"""Times that orders and then places are tried for the best sizes; the second time if the first one gained."""

QUICK = 4000
"""Atoms of a plan that takes some hundredths of a second."""

STREAMS = 0
"""Stands for a handover: sizes that make all channels of some pixels."""

MIXED = 0.5
"""Part of the time left in which such plans of everything that competes, together, may be tried."""

MOST_MIXED = 64
"""Such plans at most."""

BANDS = 0.25
"""Part of the time left in which bands of rows may be tried, and then smoothed."""

CROWDED = 2
"""For an energy, bands are tried where buffers hold fewer than that many times the results of a layer."""

BEST_BANDS = 3
"""Bands that are smoothed, and tried on regions of the machine."""

BAND_MAPPING = "matching"
"""How bands are placed."""

WORSE = Fraction(3, 2)
"""Smaller regions are tried while the last one's plan is at most that many times as bad as the best, and
bands are smoothed where theirs is."""


@dataclass(frozen=True)
class Start:
    """Where a search begins.

    Parameters
    ----------
    judged : the plan
    sizes : of its atoms, per layer
    order, mapping : how it was ordered and placed
    region : the engines that take part
    prices : pJ that a cycle is worth, by which its layers' sizes are worth ranking
    homes : of its layers, if atoms run there alone
    """

    judged: Judged
    sizes: Sizes
    order: str
    mapping: str
    region: Region
    prices: tuple[float, ...]
    homes: Homes | None = None

    def moves(self, problem: TiledProblem, room: float) -> SizeMoves:
        """Sizes that layers may be given from here."""
        return SizeMoves(problem, room=room, engines=self.region.engines, prices=self.prices)


class Starts:
    """What competes before the climb, one plan after the other.

    Parameters
    ----------
    method : its options say what competes
    search : what judges plans
    stages : what makes them
    most : atoms; by default as many as the time of the search allows

    Attributes
    ----------
    leader : the best of those that have been tried
    ended : whether all have been
    """

    def __init__(
        self, method: AtomicDataflow, search: TiledSearch, stages: Stages, most: int | None = None
    ) -> None:
        self._method, self._search, self._stages, self._most = method, search, stages, most
        self._problem: TiledProblem = search.problem.problem
        self._whole = whole(self._problem.machine)
        self._orders = ORDERS if method.order == BEST else (method.order,)
        self._mappings = PLACED if method.mapping == BEST else (method.mapping,)
        self.leader: Start | None = None
        self._shares: dict[tuple[str, int, float], tuple[str, Sizes, AtomicDag]] = {}
        self._granted = search.limits
        self._rest = self._compete()
        self.ended = False

    def best(self, within: Limits | None = None) -> Start | None:
        """The best start of all, or of those tried until a limit strikes; a later call goes on from there.

        Parameters
        ----------
        within : limits after which no further plan is begun; by default those of the search

        Raises
        ------
        LimitReachedError : where limits of the search struck before any
        """
        self._granted = self._search.limits if within is None else within
        while not (self.ended or self._granted.expired):
            self.go_on()
        return self.leader

    def go_on(self) -> Start | None:
        """Try one plan more; the best start."""
        try:
            next(self._rest)
        except StopIteration:
            self.ended = True
        except LimitReachedError:
            self.ended = True
            if self.leader is None:
                raise
        return self.leader

    def _compete(self) -> Iterator[None]:
        """Try what the options leave open, a plan at a time."""
        method = self._method
        shares = method.atoms in (BEST, "shares")
        if shares:
            if method.refine:
                yield from self._priced()
                yield from self._placed()
            for handover in HANDOVERS if method.refine else (HANDOVER,):
                self._share(self._whole, handover)
                yield
                if method.refine and handover == HANDOVERS[0]:
                    yield from self._banded()
        for atoms in SIZES[1:] if method.atoms == BEST else () if shares else (method.atoms,):
            if not self._search.done:
                self._sized(atoms, self._drawn(atoms), self._whole, inf)
                yield
        for _ in range(TURNS):
            before = self.leader
            for order in self._orders:
                self._again(order=order)
                yield
            yield from self._placed()
            if self.leader is before:
                break
        if shares and method.refine:
            yield from self._mixed()

    def _placed(self) -> Iterator[None]:
        """The best sizes and order, placed in every way."""
        for mapping in self._mappings if self.leader is not None else ():
            self._again(mapping=mapping)
            yield

    def _priced(self) -> Iterator[None]:
        """Sizes that cost less energy on the whole machine, and for the best price on ever smaller regions.

        What a cycle is worth is known from a plan of the others before it is smoothed, which takes longest.
        """
        if self._problem.objective.energy_power == 0:
            return
        self._share(self._whole, HANDOVER, smooth=False)
        yield
        if self.leader is None:
            return
        worth = cycle_price(self._search)
        prices = tuple(worth * multiple for multiple in PRICES) if worth else (0.0,)
        self.leader = replace(self.leader, prices=(inf, *prices) if worth else prices)
        best_price = yield from self._best_price(prices)
        for region in regions(self._problem.machine)[1:]:
            key = self._share(region, HANDOVER, best_price)
            yield
            if key is None or key > WORSE * self.leader.judged[0]:
                break

    def _best_price(self, prices: Sequence[float]) -> Generator[None, None, float]:
        """The price whose sizes lead to the best plan on the whole machine.

        Where a cheaper cycle leads to a better plan than the first price, no dearer one is tried.
        """
        key = self._share(self._whole, HANDOVER, prices[0])
        yield
        for price in prices[1:]:
            other = self._share(self._whole, HANDOVER, price)
            yield
            if key is not None and other is not None and other < key:
                return price
        return prices[0]

    def _share(
        self, region: Region, handover: int, price: float = inf, smooth: bool = True
    ) -> Fraction | None:
        """Every layer shared out over a region."""
        if self._search.done:
            return None
        atoms = self._shared(region, handover, price)
        return self._planned(*atoms, self._orders[0], self._mappings[0], region, smooth=smooth)

    def _shared(self, region: Region, handover: int, price: float) -> tuple[str, Sizes, AtomicDag]:
        """What a trace calls these shares, their sizes and atoms."""
        key = region.name, handover, price
        if key not in self._shares:
            engines = region.engines
            if handover == STREAMS:
                sizes = streaming_sizes(self._problem, engines, self._method.room / 2)
                atoms = f"streams on {region.name}"
            else:
                sizes = balanced_sizes(
                    self._problem,
                    room=self._method.room,
                    engines=[engines] * len(self._problem.units),
                    handover=handover,
                    price=price,
                    limits=self._search.limits,
                )
                value = f"{handover}" if price == inf else f"at {price:.3g} pJ"
                where = "" if region.name == self._whole.name and price == inf else f"on {region.name} "
                atoms = f"shares {where}{value}"
            self._shares[key] = (atoms, *self._workable(sizes, region, price))
        return self._shares[key]

    def _sized(self, atoms: str, wanted: Sizes, region: Region, price: float) -> Fraction:
        """The plan of sizes close to those wanted."""
        sizes, dag = self._workable(wanted, region, price)
        return self._planned(atoms, sizes, dag, self._orders[0], self._mappings[0], region)

    def _workable(self, wanted: Sizes, region: Region, price: float) -> tuple[Sizes, AtomicDag]:
        """Sizes that can be worked with, close to those wanted."""
        return workable(
            self._problem,
            wanted,
            room=self._method.room,
            engines=[region.engines] * len(self._problem.units),
            price=price,
            most=self._most,
            limits=self._search.limits,
        )

    def _banded(self) -> Iterator[None]:
        """Bands of rows on the whole machine, and the best ones on its regions.

        Where plans are made quickly, and cycles count, since bands bring data and compute at once, or buffers
        do not hold the results of a layer beside as many others.
        """
        best = self.leader
        if best is None or best.judged[1].dag.tasks > QUICK:
            return
        crowded = CROWDED * widest_result(best.judged[1].dag) > self._problem.machine.on_chip_bytes
        if not crowded and not self._problem.objective.delay_power:
            return
        trying = self._search.within(self._granted.share(BANDS))
        ranked: list[tuple[Fraction, str, Sizes, AtomicDag]] = []
        for atoms, sizes in all_band_sizes(self._problem, QUICK):
            if trying.done:
                break
            try:
                dag = self._problem.dag(sizes)
            except InputError:  # a buffer does not take an atom
                continue
            stages = replace(self._stages, region=self._whole, level=False)
            source = f"{self._method.name} {atoms}, {BAND_ORDER}, {BAND_MAPPING}"
            key, _ = stages.planned(dag, stages.steps(dag, BAND_ORDER), BAND_MAPPING, source)
            ranked.append((key, atoms, sizes, dag))
            yield
        ranked.sort(key=itemgetter(0))
        if not ranked or ranked[0][0] > WORSE * best.judged[0]:
            return
        smoothing = self._search.within(self._granted.share(BANDS))
        for region, (_, atoms, sizes, dag) in product(regions(self._problem.machine), ranked[:BEST_BANDS]):
            if smoothing.done:
                break
            self._planned(f"{atoms} on {region.name}", sizes, dag, BAND_ORDER, BAND_MAPPING, region)
            yield

    def _mixed(self) -> Iterator[None]:
        """Where plans are made quickly, every shares, region, order and places together, in random order."""
        best = self.leader
        if best is None or best.judged[1].dag.tasks > QUICK:
            return
        rest = self._search.within(self._granted.share(MIXED))
        everywhere = regions(self._problem.machine)
        shares = [(HANDOVER, price) for price in best.prices if price != inf]
        shares += [(handover, inf) for handover in (*HANDOVERS, STREAMS)]
        mixed = list(product(everywhere, shares, self._orders, self._mappings))
        random.Random(self._search.limits.seed).shuffle(mixed)
        for region, (handover, price), order, mapping in mixed[:MOST_MIXED]:
            if rest.done:
                break
            atoms, sizes, dag = self._shared(region, handover, price)
            if dag.tasks <= QUICK:
                self._planned(atoms, sizes, dag, order, mapping, region)
                yield

    def _again(self, *, order: str | None = None, mapping: str | None = None) -> None:
        """The best sizes, in another order or placed otherwise."""
        best = self.leader
        if best is None or self._search.done:
            return
        order, mapping = order or best.order, mapping or best.mapping
        if (order, mapping) != (best.order, best.mapping):
            self._planned("same sizes", best.sizes, best.judged[1].dag, order, mapping, best.region)

    def _planned(
        self,
        atoms: str,
        sizes: Sizes,
        dag: AtomicDag,
        order: str,
        mapping: str,
        region: Region,
        *,
        smooth: bool = True,
    ) -> Fraction:
        """A plan of some sizes, which the trace calls `atoms`; it is kept if it is the best."""
        source = f"{self._method.name} {atoms}, {order}, {mapping}"
        stages = replace(self._stages, region=region, level=smooth and self._stages.level)
        judged = stages.planned(dag, stages.steps(dag, order), mapping, source)
        if self.leader is None or judged[0] < self.leader.judged[0]:
            prices = (inf,) if self.leader is None else self.leader.prices
            self.leader = Start(judged, sizes, order, mapping, region, prices)
        return judged[0]

    def _drawn(self, atoms: str) -> Sizes:
        """Sizes by a search of their own."""
        method, limits = self._method, self._search.limits
        numbers = random.Random(limits.seed)
        if atoms == "genetic":
            return genetic_sizes(self._problem, numbers, Genetics(), room=method.room, limits=limits)
        rules = Annealing(printed=atoms == "printed", iterations=method.iterations)
        return annealed_sizes(self._problem, numbers, rules, room=method.room, limits=limits)
