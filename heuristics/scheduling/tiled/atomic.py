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
from fractions import Fraction
from operator import itemgetter

from tilewright.formulation.options import option
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.completion import complete
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.heuristics.scheduling.tiled.annealing import Annealing, annealed_sizes
from tilewright.heuristics.scheduling.tiled.levelling import levelled
from tilewright.heuristics.scheduling.tiled.lists import Ints, layer_sequential, list_order
from tilewright.heuristics.scheduling.tiled.placement import place
from tilewright.heuristics.scheduling.tiled.planning import BUFFERING, Heuristic
from tilewright.heuristics.scheduling.tiled.refining import Judged, Sizes, climb
from tilewright.heuristics.scheduling.tiled.rounds import TIES, RoundOrder
from tilewright.heuristics.scheduling.tiled.shares import shared_sizes
from tilewright.workloads.errors import InputError

ATOMS = ("shares", "repaired", "printed")
ORDERS = ("rules", "lists", "layers")
MAPPINGS = ("matching", "nearest", "permutations", "zigzag")
BEST = "best"

GAIN = Fraction(1999, 2000)
"""Levelling goes on while a call shortens the plan by more than this."""


@dataclass(frozen=True)
class AtomicDataflow(Heuristic):
    """Atomic Dataflow: sizes of atoms, their rounds, places and buffers in turn, then better sizes."""

    atoms: str = option(
        BEST, "sizes: algorithm 1 as printed or repaired, or shares of layers", choices=(BEST, *ATOMS)
    )
    order: str = option(
        BEST, "rounds: algorithm 2's rules, lists by the way to the end, or layers", choices=(BEST, *ORDERS)
    )
    mapping: str = option("matching", "places: equation 2 is permutations", choices=MAPPINGS)
    buffering: str = option("furthest", "algorithm 3 is occupation", choices=tuple(BUFFERING))
    options: int = option(1, "ways to fill a round that algorithm 2 tries; 0 for all", low=0, high=TIES)
    lookahead: int = option(2, "rounds that algorithm 2 weighs together", low=1, high=8)
    iterations: int = option(400, "of algorithm 1", low=1, high=10**6)
    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    refine: bool = option(True, "go beyond the paper: level transfers, climb over sizes with the time left")
    level: bool = option(True, "whether refining moves transfers between steps and sources")
    moves: int = option(4000, "moves of that climb at most", low=0, high=10**7)

    name = "atomic"

    def offer(self, search: TiledSearch) -> None:
        """Try all starts that the options leave open, then improve the best one."""
        problem = search.problem.problem
        best: tuple[Judged, Sizes, str] | None = None
        for atoms, sizes in self._starts(problem, search.limits.seed):
            dag = problem.dag(sizes)
            for order in ORDERS if self.order == BEST else (self.order,):
                if search.done:
                    return
                found = self._judged(search, dag, order, f"{self.name} {atoms}, {order}")
                if best is None or found[0] < best[0][0]:
                    best = found, sizes, order
        if best is None or not self.refine:
            return
        self._settle(search, best[0])
        (begun, sizes, order), numbers = best, random.Random(search.limits.seed)

        def judge(moved: Sizes) -> Judged | None:
            try:
                dag = problem.dag(moved)
            except InputError:  # an atom that fits no buffer: the estimate of its need was short
                return None
            return self._judged(search, dag, order, f"{self.name} climbing")

        def kept(judged: Judged) -> None:
            self._settle(search, judged)

        def done() -> bool:
            return search.done

        climb(problem, sizes, begun, judge, done, numbers, room=self.room, most=self.moves, kept=kept)

    def _starts(self, problem: TiledProblem, seed: int) -> Iterator[tuple[str, Sizes]]:
        for atoms in ATOMS if self.atoms == BEST else (self.atoms,):
            if atoms == "shares":
                yield atoms, shared_sizes(problem, room=self.room)
            else:
                rules = Annealing(printed=atoms == "printed", iterations=self.iterations)
                yield atoms, annealed_sizes(problem, random.Random(seed), rules, room=self.room)

    def _judged(self, search: TiledSearch, dag: AtomicDag, order: str, source: str) -> Judged:
        """Rounds, places and buffers for some atoms, offered."""
        machine = search.problem.problem.machine
        step = self._steps(dag, order, search)
        engine = place(dag, machine, step, self.mapping)
        found = self._offered(
            search, dag, complete(dag, machine, engine, step, eviction=BUFFERING[self.buffering]), source
        )
        if not self._levels(search):
            return found
        better = self._offered(search, dag, levelled(dag, machine, found[1].plan), source)
        return min(found, better, key=itemgetter(0))

    def _settle(self, search: TiledSearch, judged: Judged) -> None:
        """Level a plan for as long as that gains anything, and offer it."""
        if not self._levels(search):
            return
        machine = search.problem.problem.machine
        answer, last, seed = judged[1], judged[0], search.limits.seed
        while not search.done:
            seed += 1
            plan = levelled(answer.dag, machine, answer.plan, rounds=3, tries=16, most=32, seed=seed)
            key, answer = self._offered(search, answer.dag, plan, f"{self.name} levelling")
            if key > last * GAIN:
                return
            last = key

    def _levels(self, search: TiledSearch) -> bool:
        return self.refine and self.level and search.problem.problem.objective.delay_power > 0

    def _offered(self, search: TiledSearch, dag: AtomicDag, plan: Plan, source: str) -> Judged:
        answer = AtomicPlan(dag, plan)
        return search.confirm(answer, source, Origin.HEURISTIC), answer

    def _steps(self, dag: AtomicDag, order: str, search: TiledSearch) -> Ints:
        machine = search.problem.problem.machine
        if order == "layers":
            return layer_sequential(dag, machine)[1]
        if order == "lists":
            return list_order(dag, machine)[1]
        return RoundOrder(dag, machine.engines, self.options, self.lookahead).steps()
