"""Plans of streams: as few engines as hold what lives beside each, then changes that lower the objective.

One plan tries changes of many streams far from each other: each is judged by what its layers, and some beside
them, take in the new plan and in the old one.  Those that gained are kept.  The evaluator judges all plans.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.foundation.arrays import Floats
from tilewright.foundation.errors import InputError
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.layouts.accounts import layer_accounts, layers_beside, more_taken
from tilewright.heuristics.scheduling.tiled.planning import PlanHeuristic
from tilewright.heuristics.scheduling.tiled.refining import Judged
from tilewright.heuristics.scheduling.tiled.stages import Stages
from tilewright.heuristics.scheduling.tiled.streams.shares import Share, Shares, Streams

AHEAD = 8
"""Steps before its use in which data may arrive where cycles count."""

MARGIN = 1e-7
"""Part of the objective by which a change must gain to be kept from a plan of several."""

APART = 3
"""Every so many streams are changed in one plan of a climb; at random, some fewer lie between two changes."""

LENGTHS = (1, 1, 1, 2, 2, 3, 4)
"""Streams in a row that change alike, and changes of each, drawn from these."""

MOVES = 4000
"""Plans that change runs of streams at random, at most."""

TRIALS = 16
"""Such plans that a visit tries."""

CALLS = 1
"""Calls that smooth the plan of other shares, before it is compared with one that was for long."""

PASSES = 20
"""Times that a climb tries every change of every stream, at most."""

PATIENCE = 200
"""Plans in turn that change runs of streams at random and are no better, after which the method ends."""

_CHANGES: tuple[Callable[[Share], Share], ...] = (
    *(lambda share, by=by: replace(share, bands=share.bands + by) for by in (-1, 1, -2, 2, 4, -4)),
    *(lambda share, by=by: replace(share, groups=share.groups + by) for by in (-1, 1, -2, 2)),
    lambda share: replace(share, bands=2 * share.bands),
    lambda share: replace(share, groups=2 * share.groups),
    lambda share: replace(share, bands=share.bands // 2),
    lambda share: replace(share, groups=share.groups // 2),
    lambda share: replace(share, bands=2 * share.bands, groups=share.groups // 2),
    lambda share: replace(share, bands=share.bands // 2, groups=2 * share.groups),
    lambda share: replace(share, finer=share.finer + 1),
    lambda share: replace(share, finer=share.finer - 1),
)
"""Changes of a share that are tried."""


@dataclass(eq=False)
class StreamStart:
    """A plan of streams, and changes of their shares that lower the objective.

    Parameters
    ----------
    judged : the plan
    state : its shares
    streams : of the problem
    numbers : what is drawn comes from these
    accounts : of the plan, see `layer_accounts`, once they were asked for
    """

    judged: Judged
    state: Shares
    streams: Streams
    numbers: random.Random
    accounts: Floats | None = None

    def climb(self, stages: Stages, within: Limits, passes: int = PASSES) -> None:
        """Try every change of every stream so many times at most, or as long as that gains.

        Parameters
        ----------
        stages : what judges plans
        within : limits after which no plan is tried
        passes : times that everything is tried at most
        """
        known: set[tuple[int, Shares, Share]] = set()
        source = f"{stages.name} climbing"
        for _ in range(passes):
            before = self.judged[0]
            for change in _CHANGES:
                for first in range(APART):
                    if within.expired or stages.search.done:
                        return
                    changes = dict[int, Share]()
                    for at in range(first, len(self.state), APART):
                        share, context = change(self.state[at]), self.state[max(0, at - 1) : at + 2]
                        if (at, context, share) not in known:
                            known.add((at, context, share))
                            changes[at] = share
                    runs = [range(at, at + 1) for at in changes]
                    self._tried(stages, runs, changes, source)
            if self.judged[0] == before:
                break

    def moved(self, stages: Stages, source: str) -> bool:
        """Change some runs of streams at random; whether that gained.

        Parameters
        ----------
        stages : what judges plans
        source : what the trace calls the plans
        """
        numbers, runs, changes = self.numbers, list[range](), dict[int, Share]()
        first = numbers.randrange(APART + 1)
        while first < len(self.state):
            run = range(first, min(len(self.state), first + numbers.choice(LENGTHS)))
            drawn = numbers.choices(_CHANGES, k=numbers.choice(LENGTHS))
            for at in run:
                changes[at] = self.state[at]
                for change in drawn:
                    changes[at] = change(changes[at])
            runs.append(run)
            first = run.stop + numbers.randint(1, APART)
        return self._tried(stages, runs, changes, source)

    def wander(self, stages: Stages, within: Limits, moves: int = MOVES) -> None:
        """Change runs at random until that has not gained for long.

        Parameters
        ----------
        stages : what judges plans
        within : limits after which no plan is tried
        moves : plans that are tried, at most
        """
        failed = 0
        for _ in range(moves):
            if failed >= PATIENCE or within.expired or stages.search.done:
                break
            failed = 0 if self.moved(stages, f"{stages.name} moves") else failed + 1

    def visit(self, stages: Stages, state: Shares, base: Judged, source: str) -> tuple[Shares, Judged] | None:
        """Other shares, and their plan, smoothed; ``None`` where a few changes in turn do not gain.

        Plans are compared with each other before they are smoothed: a change gains less than that does.

        Parameters
        ----------
        stages : what makes plans
        state, base : what is known of the plan that was smoothed
        source : what the trace calls the plans
        """
        gained = False
        for _ in range(TRIALS):
            if not stages.search.done:
                gained |= self.moved(stages, source)
        return (self.state, stages.settled(self.judged, calls=CALLS)) if gained else None

    def _tried(
        self, stages: Stages, runs: Sequence[range], changes: Mapping[int, Share], source: str
    ) -> bool:
        """Change runs of streams in one plan, and keep those that gained; whether any did.

        Parameters
        ----------
        runs, changes : streams in a row that change together, and what they change to
        """
        streams, state, problem = self.streams, self.state, stages.search.problem.problem
        shares = tuple(
            streams.legal(at, changes[at], share) if at in changes else share
            for at, share in enumerate(state)
        )
        if shares == state:
            return False
        try:
            judged = planned(stages, streams, shares, source)
        except InputError:
            shares = streams.without_crowded(shares, state, stages.search.limits)
            if shares == state:
                return False
            judged = planned(stages, streams, shares, source)
        changed = [run for run in runs if any(shares[at] != state[at] for at in run)]
        if self.accounts is None:
            self.accounts = layer_accounts(problem, self.judged[1])
        accounts = layer_accounts(problem, judged[1])
        more = more_taken(problem.objective, self.accounts, accounts)
        units = [range(streams.streams[run[0]][0], streams.streams[run[-1]][-1] + 1) for run in changed]
        parts = layers_beside(units, len(problem.units))
        gained = [run for run, part in zip(changed, parts, strict=True) if more[part].sum() < -MARGIN]
        tried = shares, judged
        if gained and len(gained) < len(changed):
            chosen = {at for run in gained for at in run}
            kept = tuple(shares[at] if at in chosen else share for at, share in enumerate(state))
            tried = min(tried, (kept, planned(stages, streams, kept, source)), key=lambda pair: pair[1][0])
        if tried[1][0] >= self.judged[0]:
            return False
        self.accounts = accounts if tried[1] is judged else None
        self.state, self.judged = tried
        return True


def planned(stages: Stages, streams: Streams, shares: Shares, source: str) -> Judged:
    """The plan of shares, offered.

    Parameters
    ----------
    stages : what judges plans
    streams, shares : of the problem
    source : what the trace calls the plan

    Raises
    ------
    InputError : where an atom fits no buffer
    LimitReachedError : where limits strike on the way
    """
    search = stages.search
    problem = search.problem.problem
    dag, engine, step = streams.arranged(shares, search.limits)
    # where energy counts alone, what arrives early only takes room
    ahead = AHEAD if problem.objective.delay_power else 1
    plan = complete(dag, problem.machine, engine, step, ahead=ahead, limits=search.limits)
    return stages.offered(dag, plan, source)


def started(search: TiledSearch, stages: Stages, within: Limits) -> StreamStart:
    """The best first plan: of streams that few engines run; where cycles count of more engines, too; and of
    a batch that passes all streams in one run, or in several.

    Parameters
    ----------
    search : what judges plans
    stages : what makes them
    within : limits of the first plans

    Raises
    ------
    InputError : for a layer of which no atom fits a buffer
    LimitReachedError : where limits strike before any
    """
    problem = search.problem.problem
    best: StreamStart | None = None
    fault: InputError | LimitReachedError | None = None
    samples = problem.batch
    while samples and not (best is not None and within.expired):
        try:
            streams = Streams(problem, within, samples)
            for shares in _first(streams, within):
                judged = planned(stages, streams, shares, stages.name)
                if best is None or judged[0] < best.judged[0]:
                    best = StreamStart(judged, shares, streams, random.Random(within.seed))
                if within.expired:
                    break
        except (InputError, LimitReachedError) as failure:
            fault = failure
        samples //= 2
    if best is None:
        assert fault is not None
        raise fault
    return best


def _first(streams: Streams, limits: Limits) -> Iterator[Shares]:
    """Shares of as few engines as buffers ask for; where cycles count, of more and more."""
    fewest = streams.fewest(limits)
    yield fewest
    engines, count = streams.problem.machine.engines, 1
    while streams.problem.objective.delay_power and count < engines:
        count = min(engines, 2 * count)
        yield streams.fitting([max(count, share.bands * share.groups) for share in fewest], limits)


@dataclass(frozen=True)
class StreamPlans(PlanHeuristic):
    """Streams of layers, tile of channels by tile, each on as many engines as pay."""

    passes: int = option(PASSES, "times that every change of every stream is tried at most", low=0, high=1000)
    moves: int = option(MOVES, "plans that change runs of streams at random, at most", low=0, high=10**7)
    level: bool = option(True, "whether transfers of the best plan are moved between steps and sources")

    name = "streams"
    stochastic = True

    def offer(self, search: TiledSearch) -> None:
        """Begin with few engines, then change the shares of streams."""
        stages = Stages(search, self.name, level=self.level)
        start = started(search, stages, search.limits)
        start.climb(stages, search.limits, self.passes)
        start.wander(stages, search.limits, self.moves)
        stages.settled(start.judged)
