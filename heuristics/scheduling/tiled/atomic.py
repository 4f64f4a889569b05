"""Atomic Dataflow (Zheng et al., HPCA 2022): the iteration of figure 4b over its three stages.

Sizes of atoms (section IV-A), rounds (IV-B), places and buffers (IV-C) are found in turn and the whole is
evaluated; the best plan is kept.  The paper's pipeline is
``atomic[atoms=printed,order=rules,mapping=permutations,buffering=occupation,refine=off]``.  By default the
stages are repaired where they fall short, several starts compete, and the time that is left goes into the
sizes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.annealing import Annealing, annealed_sizes
from tilewright.heuristics.scheduling.tiled.coarsening import workable
from tilewright.heuristics.scheduling.tiled.genetic import Genetics, genetic_sizes
from tilewright.heuristics.scheduling.tiled.planning import BUFFERING, Heuristic
from tilewright.heuristics.scheduling.tiled.refining import HANDOVERS, Judged, Sizes, climb
from tilewright.heuristics.scheduling.tiled.rounds import TIES
from tilewright.heuristics.scheduling.tiled.size_menus import HANDOVER, balanced_sizes
from tilewright.heuristics.scheduling.tiled.stages import MAPPINGS, ORDERS, Stages

BEST = "best"
STARTS = ("shares", "repaired", "printed")
"""Sizes that compete by default."""
PLACED = ("zigzag", "matching")
"""Ways to place that compete by default."""

Start = tuple[Judged, Sizes, str, str]
"""A plan, its sizes, and how it was ordered and placed."""


@dataclass(frozen=True)
class AtomicDataflow(Heuristic):
    """Atomic Dataflow: sizes of atoms, their rounds, places and buffers in turn, then better sizes."""

    atoms: str = option(
        BEST,
        "sizes: algorithm 1 as printed or repaired, figure 5b's genetic search, or shares of layers",
        choices=(BEST, *STARTS, "genetic"),
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
        stages = self.stages(search)
        best = self.start(search, stages)
        if best is None or not self.refine:
            return
        begun, sizes, order, mapping = best
        stages.settled(begun)

        def judge(moved: Sizes) -> Judged | None:
            return stages.of_sizes(moved, order, mapping, f"{self.name} climbing")

        climb(
            problem,
            sizes,
            begun,
            judge,
            lambda: search.done,
            random.Random(search.limits.seed),
            room=self.room,
            most=self.moves,
            kept=stages.settled,
        )

    def stages(self, search: TiledSearch) -> Stages:
        """The stages behind the sizes, as the options ask."""
        return Stages(
            search, self.name, self.buffering, self.options, self.lookahead, level=self.refine and self.level
        )

    def start(self, search: TiledSearch, stages: Stages) -> Start | None:
        """The best of what the options leave open; ``None`` where time is up before.

        First the sizes compete, then the orders for the best sizes, then the ways to place.
        """
        problem = search.problem.problem
        orders = ORDERS if self.order == BEST else (self.order,)
        mappings = PLACED if self.mapping == BEST else (self.mapping,)
        best: Start | None = None

        def tried(atoms: str, sizes: Sizes, dag: AtomicDag, order: str, mapping: str) -> None:
            nonlocal best
            if not search.done:
                source = f"{self.name} {atoms}, {order}, {mapping}"
                planned = stages.planned(dag, stages.steps(dag, order), mapping, source)
                if best is None or planned[0] < best[0][0]:
                    best = planned, sizes, order, mapping

        for atoms, wanted in self._sizes(problem, search.limits):
            if not search.done:
                limits = search.limits
                tried(
                    atoms, *workable(problem, wanted, room=self.room, limits=limits), orders[0], mappings[0]
                )
        for order in orders[1:]:
            if best is not None:
                tried("same sizes", best[1], best[0][1].dag, order, mappings[0])
        for mapping in mappings[1:]:
            if best is not None:
                tried("same sizes", best[1], best[0][1].dag, best[2], mapping)
        return best

    def _sizes(self, problem: TiledProblem, limits: Limits) -> Iterator[tuple[str, Sizes]]:
        for atoms in STARTS if self.atoms == BEST else (self.atoms,):
            numbers = random.Random(limits.seed)
            if atoms == "shares":
                for handover in HANDOVERS if self.refine else (HANDOVER,):
                    sizes = balanced_sizes(problem, room=self.room, handover=handover, limits=limits)
                    yield f"{atoms} {handover}", sizes
            elif atoms == "genetic":
                yield atoms, genetic_sizes(problem, numbers, Genetics(), room=self.room, limits=limits)
            else:
                rules = Annealing(printed=atoms == "printed", iterations=self.iterations)
                yield atoms, annealed_sizes(problem, numbers, rules, room=self.room, limits=limits)
