"""Atomic Dataflow (Zheng et al., HPCA 2022): the iteration of figure 4b over its three stages.

Sizes of atoms (section IV-A), rounds (IV-B), places and buffers (IV-C) are found in turn and the whole is
evaluated; the best plan is kept.  The paper's pipeline is
``atomic[atoms=printed,order=rules,mapping=permutations,buffering=occupation,refine=off]``.  By default the
stages are repaired where they fall short, several starts compete, and the time that is left goes into the
sizes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.planning import BUFFERING, PlanHeuristic
from tilewright.heuristics.scheduling.tiled.refining import Judged, Sizes, climb
from tilewright.heuristics.scheduling.tiled.rounds import TIES
from tilewright.heuristics.scheduling.tiled.stages import MAPPINGS, ORDERS, Stages
from tilewright.heuristics.scheduling.tiled.starts import BEST, SIZES, Start, Starts


@dataclass(frozen=True)
class AtomicDataflow(PlanHeuristic):
    """Atomic Dataflow: sizes of atoms, their rounds, places and buffers in turn, then better sizes."""

    atoms: str = option(
        BEST,
        "sizes: algorithm 1 as printed or repaired, figure 5b's genetic search, or shares of layers",
        choices=(BEST, *SIZES, "genetic"),
    )
    order: str = option(
        BEST, "rounds: algorithm 2's rules, lists by the way to the end, or layers", choices=(BEST, *ORDERS)
    )
    mapping: str = option(BEST, "places: equation 2 is permutations", choices=(BEST, *MAPPINGS))
    buffering: str = option("furthest", "algorithm 3 is occupation", choices=tuple(BUFFERING))
    options: int = option(1, "ways to fill a round that algorithm 2 tries; 0 for all", low=0, high=TIES)
    lookahead: int = option(2, "rounds that algorithm 2 weighs together", low=1, high=8)
    iterations: int = option(400, "of algorithm 1", low=1, high=10**6)
    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    refine: bool = option(
        True, "go beyond the paper: smooth transfers, hill climbing over sizes in the remaining time"
    )
    level: bool = option(True, "whether refining moves transfers between steps and sources")
    moves: int = option(4000, "moves of that climb at most", low=0, high=10**7)

    name = "atomic"
    stochastic = True

    def offer(self, search: TiledSearch) -> None:
        """Try all starts that the options leave open, then improve the best one."""
        problem = search.problem.problem
        best = self.start(search, self.stages(search))
        if best is None or not self.refine:
            return
        stages = replace(self.stages(search), region=best.region)
        stages.settled(best.judged)

        def judge(moved: Sizes) -> Judged | None:
            return stages.of_sizes(moved, best.order, best.mapping, f"{self.name} climbing")

        climb(
            problem,
            best.sizes,
            best.judged,
            best.moves(problem, self.room),
            judge,
            lambda: search.done,
            random.Random(search.limits.seed),
            most=self.moves,
            kept=stages.settled,
        )

    def stages(self, search: TiledSearch) -> Stages:
        """The stages behind the sizes, as the options ask."""
        return Stages(
            search, self.name, self.buffering, self.options, self.lookahead, level=self.refine and self.level
        )

    def start(self, search: TiledSearch, stages: Stages, most: int | None = None) -> Start | None:
        """The best of what the options leave open; ``None`` where time is up before.

        First the sizes compete, those that cost less energy and the regions of the machine among them where
        energy counts, then the orders for the best sizes, then the ways to place.

        Parameters
        ----------
        search : what judges plans
        stages : what makes them
        most : atoms; by default as many as the time of the search allows

        Raises
        ------
        InputError : for a layer whose atoms fit no buffer
        LimitReachedError : where limits strike before a plan is there
        """
        return self.starts(search, stages, most).best()

    def starts(self, search: TiledSearch, stages: Stages, most: int | None = None) -> Starts:
        """What competes, to be tried one after the other; parameters as of `start`."""
        return Starts(self, search, stages, most)
