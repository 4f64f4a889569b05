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
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.completion import complete
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.heuristics.scheduling.tiled.annealing import Annealing, annealed_sizes
from tilewright.heuristics.scheduling.tiled.coarsening import workable
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
    refine: bool = option(True, "climb over sizes with the time that is left")
    moves: int = option(4000, "moves of that climb at most", low=0, high=10**7)

    name = "atomic"

    def offer(self, search: TiledSearch) -> None:
        """Try all starts that the options leave open, then improve the best one."""
        problem = search.problem.problem
        best: tuple[Judged, Sizes, str] | None = None
        for atoms, wanted in self._starts(problem, search.limits.seed):
            sizes, dag = workable(problem, wanted, room=self.room)
            for order in ORDERS if self.order == BEST else (self.order,):
                if search.done:
                    return
                found = self._judged(search, dag, order, f"{self.name} {atoms}, {order}")
                if best is None or found[0] < best[0][0]:
                    best = found, sizes, order
        if best is None or not self.refine:
            return
        (begun, sizes, order), numbers = best, random.Random(search.limits.seed)

        def judge(moved: Sizes) -> Judged | None:
            try:
                dag = problem.dag(moved)
            except InputError:  # an atom that fits no buffer: the estimate of its need was short
                return None
            return self._judged(search, dag, order, f"{self.name} climbing")

        def done() -> bool:
            return search.done

        climb(problem, sizes, begun, judge, done, numbers, room=self.room, most=self.moves)

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
        answer = AtomicPlan(dag, complete(dag, machine, engine, step, eviction=BUFFERING[self.buffering]))
        search.confirm(answer, source, Origin.HEURISTIC)
        result = search.problem.problem.evaluate(dag, answer.plan)
        return search.problem.key(result.energy.total, result.cycles), answer, result

    def _steps(self, dag: AtomicDag, order: str, search: TiledSearch) -> Ints:
        machine = search.problem.problem.machine
        if order == "layers":
            return layer_sequential(dag, machine)[1]
        if order == "lists":
            return list_order(dag, machine)[1]
        return RoundOrder(dag, machine.engines, self.options, self.lookahead).steps()
