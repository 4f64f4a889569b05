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

from tilewright.formulation.options import option
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.heuristics.scheduling.tiled.annealing import Annealing, annealed_sizes
from tilewright.heuristics.scheduling.tiled.coarsening import workable
from tilewright.heuristics.scheduling.tiled.genetic import Genetics, genetic_sizes
from tilewright.heuristics.scheduling.tiled.planning import BUFFERING, Heuristic
from tilewright.heuristics.scheduling.tiled.refining import Judged, Sizes, climb
from tilewright.heuristics.scheduling.tiled.rounds import TIES
from tilewright.heuristics.scheduling.tiled.shares import shared_sizes
from tilewright.heuristics.scheduling.tiled.stages import MAPPINGS, ORDERS, Stages

BEST = "best"
STARTS = ("shares", "repaired", "printed")
"""Sizes that compete by default."""
PLACED = ("matching", "zigzag")
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
    refine: bool = option(True, "go beyond the paper: level transfers, climb over sizes with the time left")
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
        """The best of all starts that the options leave open; ``None`` where time is up before."""
        problem = search.problem.problem
        best: Start | None = None
        for atoms, wanted in self._sizes(problem, search.limits.seed):
            sizes, dag = workable(problem, wanted, room=self.room)
            # the quickest order first, so that there is a plan early
            for order in reversed(ORDERS) if self.order == BEST else (self.order,):
                step = stages.steps(dag, order)
                for mapping in PLACED if self.mapping == BEST else (self.mapping,):
                    if search.done:
                        return best
                    found = stages.planned(dag, step, mapping, f"{self.name} {atoms}, {order}, {mapping}")
                    if best is None or found[0] < best[0][0]:
                        best = found, sizes, order, mapping
        return best

    def _sizes(self, problem: TiledProblem, seed: int) -> Iterator[tuple[str, Sizes]]:
        for atoms in STARTS if self.atoms == BEST else (self.atoms,):
            numbers = random.Random(seed)
            if atoms == "shares":
                yield atoms, shared_sizes(problem, room=self.room)
            elif atoms == "genetic":
                yield atoms, genetic_sizes(problem, numbers, Genetics(), room=self.room)
            else:
                rules = Annealing(printed=atoms == "printed", iterations=self.iterations)
                yield atoms, annealed_sizes(problem, numbers, rules, room=self.room)
