"""Sizes of atoms by a choice that is proven over all layers at once, under an estimate.

Every layer has some candidates (`shared_size_list`).  Two goals:

``time``   the sum over layers of rounds times the longer of compute and fetching, plus, for every layer that
           reads another, the first atom's fetching where nothing hides it: the producer ends all its results
           in one round, or the reader needs all of its inputs at once
``spread`` the least difference between the longest and the shortest atom of all layers (what algorithm 1 of
           Atomic Dataflow aims for by annealing), among choices whose time is at most ``slack`` above the
           least of every layer

Proven is the choice, not the plan that comes of it: the evaluator judges that against a bound over all sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.halting import check
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.arrays import Int64s, distinct
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.coarsening import workable
from tilewright.heuristics.scheduling.tiled.layouts.elimination import least_choice
from tilewright.heuristics.scheduling.tiled.planning import Heuristic, quiet_end
from tilewright.heuristics.scheduling.tiled.size_menus import HANDOVER, SizeMenu, balanced_sizes, fitting_menu
from tilewright.heuristics.scheduling.tiled.stages import MAPPINGS, ORDERS, Stages

GOALS = ("time", "spread")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A size that a layer may take.

    Parameters
    ----------
    cycles : of one atom
    time : estimated cycles of the layer, without the first fetch
    fetch : cycles of that
    waves, parts : rounds of finished results, and parts of their sums
    """

    size: AtomSize
    cycles: int
    time: int
    fetch: int
    waves: int
    parts: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The sizes chosen, the goal's value, and whether no other choice of candidates has less."""

    sizes: tuple[AtomSize, ...]
    value: int
    proven: bool


def candidates(problem: TiledProblem, most: int, room: float) -> list[list[Candidate]]:
    """Per layer its candidates: those of least time, and those of each order of magnitude of cycles.

    Raises
    ------
    InputError : for a layer whose least atom fits no buffer
    """
    return [
        _of_menu(problem, fitting_menu(problem, unit, room), shape_of(unit.layer.operator).parts, most)
        for unit in problem.units
    ]


def _of_menu(problem: TiledProblem, menu: SizeMenu, depth: int, most: int) -> list[Candidate]:
    machine = problem.machine
    parts = -(-depth // menu.sizes[:, 2])
    waves = -(-(menu.atoms // parts) * problem.batch // machine.engines)
    fetch = np.ceil(menu.fetch / machine.port_rate).astype(np.int64)
    time = waves * parts * (np.maximum(menu.cycles, fetch) + HANDOVER)
    order = np.lexsort((menu.atoms, time))
    scale = np.floor(np.log2(np.maximum(1, menu.cycles[order]))).astype(np.int64)
    rank = np.zeros(len(order), dtype=np.int64)
    for key in np.unique(scale):
        rank[scale == key] = np.arange(int((scale == key).sum()))
    chosen = order[np.lexsort((np.arange(len(order)), rank))[:most]]
    best = order[: max(1, most // 2)]
    return [
        Candidate(
            AtomSize(*(int(x) for x in menu.sizes[i])),
            int(menu.cycles[i]),
            int(time[i]),
            int(fetch[i]),
            int(waves[i]),
            int(parts[i]),
        )
        for i in dict.fromkeys([*best.tolist(), *chosen.tolist()])
    ]


def waits(producer: Candidate, reader: Candidate) -> int:
    """Cycles that the reader's first atom waits for its operands with nothing to hide them."""
    return reader.fetch if producer.waves == 1 or reader.parts == 1 else 0


def chosen_sizes(
    problem: TiledProblem, menus: list[list[Candidate]], goal: str, limits: Limits, *, slack: float = 0.05
) -> Choice:
    """The candidates of least time or spread.

    Parameters
    ----------
    goal : one of `GOALS`
    slack : time beyond the least that a choice of least spread may take

    Raises
    ------
    LimitReachedError : where limits strike before
    """
    picks, value, proven = (
        _fastest(problem, menus, limits) if goal == "time" else _evenest(menus, limits, slack)
    )
    return Choice(tuple(menu[pick].size for menu, pick in zip(menus, picks, strict=True)), value, proven)


def _fastest(
    problem: TiledProblem, menus: list[list[Candidate]], limits: Limits
) -> tuple[list[int], int, bool]:
    """The choice of least time, what it takes, and whether that is proven: by eliminating layers."""
    pairs = {(r.producer, i) for i, u in enumerate(problem.units) for r in u.reads if r.producer is not None}
    own = [np.array([option.time for option in menu], dtype=np.float64) for menu in menus]
    late = {
        (p, i): np.array(
            [[waits(made, reader) for reader in menus[i]] for made in menus[p]], dtype=np.float64
        )
        for p, i in sorted(pairs)
    }
    picks, proven = least_choice(own, late, limits=limits)
    time = sum(menu[pick].time for menu, pick in zip(menus, picks, strict=True))
    return picks, time + sum(waits(menus[p][picks[p]], menus[i][picks[i]]) for p, i in pairs), proven


def _evenest(menus: list[list[Candidate]], limits: Limits, slack: float) -> tuple[list[int], int, bool]:
    """The choice of least spread, that spread, and that it is proven.

    The fastest choice between two numbers of cycles is the fastest of every layer there.  So for each least
    number the least greatest one is looked for with which that is fast enough; these rise together.
    """
    cycles = np.array([option.cycles for menu in menus for option in menu])
    time = np.array([option.time for menu in menus for option in menu])
    starts = np.cumsum([0, *(len(menu) for menu in menus[:-1])])
    most = int((1 + slack) * np.minimum.reduceat(time, starts).sum())

    def within(low: int, high: int) -> Int64s:
        """Times of the candidates between two numbers of cycles; too long for all others."""
        times: Int64s = np.where((cycles >= low) & (cycles <= high), time, most + 1)
        return times

    ends = distinct(cycles)
    best, last = (int(ends[0]), int(ends[-1])), 0
    for low in ends.tolist():
        check(limits)
        while last < len(ends) and np.minimum.reduceat(within(low, ends[last]), starts).sum() > most:
            last += 1
        if last == len(ends):
            break
        best = min(best, (low, int(ends[last])), key=lambda between: between[1] - between[0])
    picks = [int(times.argmin()) for times in np.split(within(*best), starts[1:])]
    return picks, best[1] - best[0], True


@dataclass(frozen=True)
class ChosenSizes(Heuristic):
    """Sizes proven best under an estimate, then the stages behind them."""

    goal: str = option("time", "what the choice minimises, over all layers", choices=GOALS)
    most: int = option(24, "candidates per layer", low=1, high=1000)
    slack: float = option(0.05, "time that a choice of least spread may lose", low=0.0, high=10.0)
    room: float = option(0.5, "part of the buffer that an atom may need", low=0.05, high=1.0)
    order: str = option("waves", "rounds, as in atomic", choices=ORDERS)
    mapping: str = option("matching", "places, as in atomic", choices=MAPPINGS)

    name = "sizes"

    def solve(self, search: TiledSearch) -> Outcome:
        """Choose, plan, level."""
        problem, limits = search.problem.problem, search.limits
        menus, within = candidates(problem, self.most, self.room), limits.share(1 / 3)
        with quiet_end(search):
            try:
                choice = chosen_sizes(problem, menus, self.goal, within, slack=self.slack)
            except LimitReachedError:
                reported = "no time to choose sizes: shares of the layers instead"
                sizes, source = balanced_sizes(problem, room=self.room, limits=limits), f"{self.name}, shares"
            else:
                proven = "proven" if choice.proven else "not proven"
                reported = f"least {self.goal} of the estimate: {choice.value} cycles, {proven}"
                sizes, source = choice.sizes, f"{self.name} {self.goal}, {proven}"
            stages = Stages(search, self.name)
            dag = workable(problem, sizes, room=self.room, limits=limits)[1]
            stages.settled(stages.planned(dag, stages.steps(dag, self.order), self.mapping, source))
        return Outcome(message=reported)
