"""The default: several methods over one best plan, each given time as long as that pays.

First come plans of several kinds, each in a part of the time: atoms of shared layers (`atomic`); streams
where energy alone counts or plans are quick (`streams`); unless these lead for an energy, layouts of all
layers (`layouts`); then chains of segments (`kapla`), resource allocation trees (`set`), and other cuts of
small networks.  Afterwards neighbourhoods of the best plans of every kind (`lns`) are visited, where more was
gained for the seconds more often.  All runs in one thread: two that build plans wait for each other's
interpreter (docs/tiled-methods.md).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.errors import InputError
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.coarsening import affordable
from tilewright.heuristics.scheduling.tiled.kapla.methods import Kapla
from tilewright.heuristics.scheduling.tiled.layouts.method import LayoutStart, started
from tilewright.heuristics.scheduling.tiled.planning import PlanHeuristic
from tilewright.heuristics.scheduling.tiled.recutting import MOST_ATOMS, Climb
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.set.methods import GrownTrees
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.heuristics.scheduling.tiled.starts import QUICK, Start, Starts
from tilewright.heuristics.scheduling.tiled.streams import method as streams
from tilewright.solvers.scheduling.tiled.lns import Neighbourhoods, Yield, next_turn

NEAR = Fraction(3, 2)
"""A plan is improved further while it is at most that many times as bad as the best."""

FEW, HOPEFUL = 2, Fraction(21, 20)
"""Calls that smooth each plan but the best, and how many times as bad as that it may be to be smoothed on."""

BEHIND = 48
"""The gains of a plan that lies behind count less, by this power of the ratio of the keys."""


@dataclass(frozen=True)
class _Part:
    """The time that the first plans of one kind may take.

    Parameters
    ----------
    part : of the time left
    seconds : what large networks need; where the part is less, they are given so many
    most : part of the time left at most
    """

    part: float
    seconds: float
    most: float

    def of(self, search: TiledSearch) -> Limits:
        """That part of what is left."""
        return search.limits.share(max(self.part, min(self.most, self._needed(search))))

    def starved(self, search: TiledSearch) -> bool:
        """Whether that part is shorter than what large networks need."""
        return self._needed(search) > self.most

    def _needed(self, search: TiledSearch) -> float:
        """Part of the time left that large networks need."""
        left = search.limits.remaining
        return 0.0 if left is None else self.seconds / max(left, 1e-3)


ATOMS, LAYOUTS, FURTHER = _Part(0.08, 1.0, 0.25), _Part(0.45, 0.0, 0.8), _Part(0.2, 1.0, 0.5)
"""The time for plans of atoms, for those of layouts, and for more plans of atoms where these lead."""

STREAMS, STREAMING = _Part(0.25, 0.0, 0.25), _Part(0.5, 0.0, 0.5)
"""The time for plans of streams where energy alone counts, and for more of them where these lead."""

QUICK_STREAMS = _Part(0.1, 0.0, 0.1)
"""The time for plans of streams where cycles count, too, and plans are quick."""

CUTS = _Part(0.6, 0.0, 0.6)
"""The time for other cuts of small networks where cycles count."""

MOVES = 8
"""Moves in cuts of a turn among neighbourhoods."""

LAYING = 3.5
"""Times as long as to the first plan of atoms it takes to the first one of few layouts (2.9 to more than 5 on
a busy machine), and half as long again to that of all."""

SCARCE = (0.3, 0.8)
"""Layouts come right after the first plan where they need between these parts of the time left: with less
there is time for both, with more they might not end.  They give up soon where they turn out to need more."""

INSTEAD = 0.5
"""Part of the time left that a method on trees may have where there was none for layouts."""

LIKELY, SEVERAL = 3, 2
"""Plans of layouts that are smoothed a few times, and how many of them go on: the best then, and the best one
of the other kind, wary of rings or not."""

TREES: tuple[tuple[type[GrownTrees] | type[Kapla], _Part, int], ...] = (
    (Kapla, _Part(0.06, 1.0, 0.25), 1),
    (GrownTrees, _Part(0.08, 1.2, 0.25), 2),
)
"""Methods on trees, the time that each may take, and with which power of the layers what it needs rises."""

LARGE = 30
"""Layers from which on methods on trees need those seconds; fewer layers need fewer."""

AHEAD = Fraction(23, 20)
"""How many times as bad as layouts the plans of atoms of a large network are where trees have no chance."""


@dataclass
class _Site:
    """Neighbourhoods of one plan, and what visiting them brought.

    Parameters
    ----------
    kind : of the plan
    near : the neighbourhoods
    smoothed : whether its plan was smoothed for as long as that promised something
    brought : what visiting them gained since the plan was smoothed
    """

    kind: str
    near: Neighbourhoods
    smoothed: bool = False
    brought: Yield = field(default_factory=Yield)

    def smooth(self, search: TiledSearch) -> None:
        """Smooth its plan a few times, and on where it is, or comes, close to the best."""
        self.smoothed = True
        if not self.hopeful(search):
            self.near.settle(FEW)
        if self.hopeful(search):
            self.near.settle()

    def hopeful(self, search: TiledSearch) -> bool:
        """Whether its plan is close to the best."""
        return search.key is None or self.near.best[0] <= HOPEFUL * search.key


@dataclass
class _Best:
    """The best plan of one kind."""

    judged: Judged | None = None

    def note(self, key: Fraction, answer: AtomicPlan) -> None:
        if self.judged is None or key < self.judged[0]:
            self.judged = key, answer


@dataclass
class _Portfolio:
    """Plans of several kinds in one search.

    Parameters
    ----------
    room : part of the buffer that an atom may need
    steps : moves in cuts at most before neighbourhoods are visited
    failures : why there is no plan of a kind: what does not fit, or the limit that struck before
    starts : of plans of atoms, some of which wait until others have been begun
    tried : what trying those brought
    cuts : moves in cuts of a small network, from the best of these
    recut : what those brought
    laying : seconds that layouts are expected to need until their first plan is there
    laid : starts of layouts that others were preferred to, the best ones first
    relaid : what trying those brought
    """

    search: TiledSearch
    room: float
    steps: int = 0
    sites: list[_Site] = field(default_factory=list)
    failures: list[InputError | LimitReachedError] = field(default_factory=list)
    starts: Starts | None = None
    tried: Yield = field(default_factory=Yield)
    cuts: Climb | None = None
    recut: Yield = field(default_factory=Yield)
    laying: float = 0.0
    laid: list[LayoutStart] = field(default_factory=list)
    relaid: Yield = field(default_factory=Yield)

    def attempt(self, begin: Callable[[], None]) -> None:
        """Begin one kind of plans unless the time is over; where it fails, another kind may not."""
        if self.search.done:
            return
        try:
            begin()
        except (InputError, LimitReachedError) as failure:
            self.failures.append(failure)

    def begin_atoms(self) -> None:
        """Plans of shared layers, and neighbourhoods of the best; one alone where layouts need the time."""
        most, stages = affordable(self.search.limits), Stages(self.search, self._name("atoms"))
        begun = self.search.limits.elapsed
        self.starts = AtomicDataflow(room=self.room).starts(self.search, stages, most)
        start = self.starts.go_on()
        planned = [point.seconds for point in self.search.trace if point.improved and point.seconds >= begun]
        self.laying = LAYING * (planned[0] - begun) if planned else 0.0
        left = self.search.limits.remaining
        scarce = left is not None and SCARCE[0] * left < self.laying <= SCARCE[1] * left
        if not scarce:
            start = self.starts.best(ATOMS.of(self.search))
        if start is not None:
            self._add("atoms", start)

    def climb_cuts(self) -> None:
        """Other cuts of a small network where cycles count, until many in a row gain nothing."""
        start = None if self.starts is None else self.starts.leader
        if start is None or self.sites[0].kind != "atoms" or start.judged[1].dag.tasks > MOST_ATOMS:
            return
        if self.search.problem.problem.objective.delay_power:
            numbers, within = random.Random(self.search.limits.seed), CUTS.of(self.search)
            self.cuts = Climb(start, Stages(self.search, self._name("atoms")), numbers)
            self._climb(self.sites[0], within, self.steps)

    def _climb(self, site: _Site, within: Limits, moves: int) -> None:
        """So many moves in cuts at most; their plan is kept where it is better."""
        assert self.starts is not None
        assert self.cuts is not None
        self.cuts.go_on(within, moves)
        before, start = self.starts.leader, self.cuts.best
        if before is None or start.judged[0] < before.judged[0]:
            self.starts.leader = start
            self._replace(site, start, FEW)

    def begin_streams(self) -> None:
        """Plans of streams where energy alone counts, more where they lead, and where plans are quick."""
        if not (self._energy_alone or self._quick):
            return
        part = STREAMS if self._energy_alone else QUICK_STREAMS
        stages, within = Stages(self.search, self._name("streams")), part.of(self.search)
        start = streams.started(self.search, stages, within)
        start.climb(stages, within)
        key = self.search.key
        if self._energy_alone and key is not None and start.judged[0] <= HOPEFUL * key:
            start.wander(stages, STREAMING.of(self.search))
        if key is not None and start.judged[0] <= NEAR * key:
            self._add("streams", start)

    def begin_layouts(self) -> None:
        """Plans of layouts, and neighbourhoods of the best ones, unless streams lead for an energy, or atoms
        are far ahead.
        """
        part = replace(LAYOUTS, seconds=self.laying)
        if self.sites and part.starved(self.search):
            return
        if self.sites and self._energy_alone and self._leading().kind == "streams":
            return
        stages, within = Stages(self.search, self._name("layouts")), part.of(self.search)
        try:
            starts = started(self.search, stages, self.room, affordable(self.search.limits), within)
        except LimitReachedError:
            self.go_on_with_atoms()
            raise
        key = self.search.key
        if not starts or key is None or self.search.done:
            return
        others = [start for start in starts if start.wary != starts[0].wary][:1]
        likely = [*starts[:LIKELY], *(start for start in others if start not in starts[:LIKELY])]
        close = [start for start in starts if start.judged[0] <= NEAR * key]
        self.laid = [start for start in close if start not in likely]
        begun = [(self._near("layouts", start), start.wary) for start in likely if start in close]
        for near, _ in begun:
            if not within.expired:
                near.settle(FEW)
        # which of them is best shows once they are smoothed, and of both kinds only at the end
        begun.sort(key=lambda of: of[0].best[0])
        begun[1:] = sorted(begun[1:], key=lambda of: of[1] == begun[0][1])
        self.sites += [_Site("layouts", near) for near, _ in begun[:SEVERAL]]

    def begin_trees(self) -> None:
        """Plans of trees and segments, and neighbourhoods of the best, unless it is left far behind, or
        layouts of a large network are so far ahead of atoms that it would be.
        """
        if self._layouts_ahead:
            return
        best = _Best()
        atoms_alone = all(site.kind == "atoms" for site in self.sites)
        small = min(1.0, len(self.search.problem.problem.units) / LARGE)
        for method, part, power in TREES:
            part = replace(part, seconds=small**power * part.seconds)
            if atoms_alone:
                part = replace(part, most=INSTEAD)
            if self.sites and part.starved(self.search):
                continue
            method().solve(self.search.within(part.of(self.search)).telling(best.note))
        judged, key = best.judged, self.search.key
        if judged is not None and key is not None and judged[0] <= NEAR * key:
            self._add("trees", judged)

    def go_on_with_atoms(self) -> None:
        """More plans of atoms where these lead."""
        if self.starts is None or not self.sites or self._leading().kind != "atoms":
            return
        if FURTHER.starved(self.search):
            return
        before = self.starts.leader
        start = self.starts.best(FURTHER.of(self.search))
        if start is not None and start is not before:
            self._replace(self._leading(), start, 1)

    def visit(self, most: int) -> None:
        """Visit at most so many neighbourhoods, and try starts that had to wait."""
        for site in sorted(self.sites, key=lambda site: site.near.best[0]):
            # what smoothing gains of layouts differs by more than their plans do
            if site.kind == "layouts" or site is self._leading() or site.hopeful(self.search):
                site.smooth(self.search)
        clock = self.search.limits.clock
        for _ in range(most if self.sites else 0):
            if self.search.done:
                break
            best = min(site.near.best[0] for site in self.sites)
            ways = [site.brought for site in self.sites]
            worth = [
                float(best / site.near.best[0]) ** BEHIND if best and site.smoothed else 1.0
                for site in self.sites
            ]
            further = self._further()
            ways += [brought for _, brought, _ in further]
            turn = next_turn(ways, [*worth, *(worth[at] for at, _, _ in further)])
            at = turn if turn < len(self.sites) else further[turn - len(self.sites)][0]
            site = self.sites[at]
            before, begun = site.near.best[0], clock()
            if turn >= len(self.sites):
                further[turn - len(self.sites)][2](site)
            elif site.smoothed:
                site.near.visit()
            else:
                site.smooth(self.search)
            gain = float(1 - site.near.best[0] / before) if before else 0.0
            ways[turn].note(gain, clock() - begun)

    def _further(self) -> list[tuple[int, Yield, Callable[[_Site], None]]]:
        """What else may be tried: for which site, what it brought so far, and how."""
        further: list[tuple[int, Yield, Callable[[_Site], None]]] = []
        if self.sites[0].kind == "atoms":
            if self.starts is not None and not self.starts.ended:
                further.append((0, self.tried, self._try_start))
            if self.cuts is not None:
                further.append((0, self.recut, self._try_cuts))
        if self.laid:
            layouts = [at for at, site in enumerate(self.sites) if site.kind == "layouts"]
            best = min(layouts, key=lambda at: self.sites[at].near.best[0])
            further.append((best, self.relaid, self._try_layouts))
        return further

    def _try_layouts(self, site: _Site) -> None:
        """Smooth one more start of layouts, and go on from it where it is better."""
        near = self._near(site.kind, self.laid.pop(0))
        near.settle(FEW)
        if near.best[0] <= HOPEFUL * site.near.best[0]:
            near.settle()
        if near.best[0] < site.near.best[0]:
            site.near = near

    def _try_cuts(self, site: _Site) -> None:
        """Some moves in cuts."""
        self._climb(site, self.search.limits, MOVES)

    def _try_start(self, site: _Site) -> None:
        """Try one more start; the plan of the best of all is smoothed, and kept if that is better."""
        assert self.starts is not None
        before, start = self.starts.leader, self.starts.go_on()
        if start is None or before is None or start.judged[0] >= before.judged[0]:
            return
        self._replace(site, start)

    def _replace(self, site: _Site, start: Start, calls: int | None = None) -> None:
        """Go on from another start where its plan is better once it is smoothed, in so many calls at most."""
        near = self._near(site.kind, start)
        near.settle(calls)
        if near.best[0] < site.near.best[0]:
            site.near = near

    @property
    def _layouts_ahead(self) -> bool:
        """Whether layouts of a large network leave atoms so far behind that no tree has come up to them."""
        if len(self.search.problem.problem.units) < LARGE or not self.sites:
            return False
        atoms = [site.near.best[0] for site in self.sites if site.kind == "atoms"]
        leading = self._leading()
        return leading.kind == "layouts" and all(AHEAD * leading.near.best[0] <= key for key in atoms)

    @property
    def _energy_alone(self) -> bool:
        """Whether the objective is an energy, whatever the cycles."""
        return not self.search.problem.problem.objective.delay_power

    @property
    def _quick(self) -> bool:
        """Whether the best plan of atoms has so few that many plans can be tried."""
        start = None if self.starts is None else self.starts.leader
        return start is not None and start.judged[1].dag.tasks <= QUICK

    def _leading(self) -> _Site:
        """The one with the best plan."""
        return min(self.sites, key=lambda site: site.near.best[0])

    def _add(self, kind: str, start: Start | LayoutStart | streams.StreamStart | Judged) -> None:
        self.sites.append(_Site(kind, self._near(kind, start)))

    def _near(self, kind: str, start: Start | LayoutStart | streams.StreamStart | Judged) -> Neighbourhoods:
        return Neighbourhoods(Stages(self.search, self._name(kind)), start, room=self.room)

    def _name(self, kind: str) -> str:
        return f"{Auto.name} {kind}"


@dataclass(frozen=True)
class Auto(PlanHeuristic):
    """Atoms, streams, layouts, trees and chains over one best plan, then neighbourhoods of what leads."""

    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    steps: int = option(4000, "neighbourhoods, and before them other cuts, at most", low=0, high=10**7)

    name = "auto"
    stochastic = True
    on_trees = True

    def offer(self, search: TiledSearch) -> None:
        """Begin all kinds of plans, then visit neighbourhoods."""
        portfolio = _Portfolio(search, self.room, self.steps)
        portfolio.attempt(portfolio.begin_atoms)
        portfolio.attempt(portfolio.begin_streams)
        portfolio.attempt(portfolio.begin_layouts)
        portfolio.attempt(portfolio.begin_trees)
        portfolio.attempt(portfolio.climb_cuts)
        portfolio.go_on_with_atoms()
        portfolio.visit(self.steps)
        if search.answer is None and portfolio.failures:
            raise portfolio.failures[0]
