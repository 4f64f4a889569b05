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
from ortools.sat.python import cp_model

from tilewright.formulation.limits import Limits
from tilewright.formulation.method import Outcome
from tilewright.formulation.scheduling.tiled.coordinates import shape_of
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import TiledSearch
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.options import option
from tilewright.heuristics.scheduling.tiled.coarsening import workable
from tilewright.heuristics.scheduling.tiled.planning import Heuristic, quiet_end
from tilewright.heuristics.scheduling.tiled.size_menus import HANDOVER, SizeMenu, balanced_sizes, fitting_menu
from tilewright.heuristics.scheduling.tiled.stages import MAPPINGS, ORDERS, Stages
from tilewright.solvers.cpsat_run import CpSatRun

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
) -> Choice | None:
    """The candidates of least time or spread; ``None`` where time is up before any choice is found.

    Parameters
    ----------
    goal : one of `GOALS`
    slack : time beyond the least that a choice of least spread may take
    """
    model = cp_model.CpModel()
    picks = [[model.new_bool_var("") for _ in menu] for menu in menus]
    for row in picks:
        model.add_exactly_one(row)
    time = sum(
        option.time * pick
        for menu, row in zip(menus, picks, strict=True)
        for option, pick in zip(menu, row, strict=True)
    )
    pairs = {(r.producer, i) for i, u in enumerate(problem.units) for r in u.reads if r.producer is not None}
    if goal == "time":
        late = []
        for p, i in sorted(pairs):
            wait = model.new_int_var(0, max(option.fetch for option in menus[i]), "")
            late.append(wait)
            together = [pick for option, pick in zip(menus[p], picks[p], strict=True) if option.waves == 1]
            for option, pick in zip(menus[i], picks[i], strict=True):
                if option.parts == 1:
                    model.add(wait >= option.fetch).only_enforce_if(pick)
                else:
                    model.add(wait >= option.fetch * (pick + sum(together) - 1))
        model.minimize(time + sum(late))
    else:
        longest = model.new_int_var(0, max(option.cycles for menu in menus for option in menu), "")
        shortest = model.new_int_var(0, max(option.cycles for menu in menus for option in menu), "")
        for menu, row in zip(menus, picks, strict=True):
            cycles = sum(option.cycles * pick for option, pick in zip(menu, row, strict=True))
            model.add(longest >= cycles)
            model.add(shortest <= cycles)
        least = sum(min(option.time for option in menu) for menu in menus)
        model.add(time <= int((1 + slack) * least))
        model.minimize(longest - shortest)
    run = CpSatRun(model, limits, lambda: limits.expired)
    status = run.solve()
    if not run.has_solution:
        return None
    sizes = tuple(
        next(option.size for option, pick in zip(menu, row, strict=True) if run.solver.value(pick))
        for menu, row in zip(menus, picks, strict=True)
    )
    return Choice(sizes, round(run.solver.objective_value), status == cp_model.OPTIMAL)


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
        choice = chosen_sizes(
            problem,
            candidates(problem, self.most, self.room),
            self.goal,
            limits.share(1 / 3),
            slack=self.slack,
        )
        reported = "no time to choose sizes: shares of the layers instead"
        source = f"{self.name}, shares"
        with quiet_end(search):
            if choice is None:
                sizes = balanced_sizes(problem, room=self.room, limits=limits)
            else:
                proven = "proven" if choice.proven else "not proven"
                reported = f"least {self.goal} of the estimate: {choice.value} cycles, {proven}"
                sizes, source = choice.sizes, f"{self.name} {self.goal}, {proven}"
            stages = Stages(search, self.name)
            dag = workable(problem, sizes, room=self.room, limits=limits)[1]
            stages.settled(stages.planned(dag, stages.steps(dag, self.order), self.mapping, source))
        return Outcome(message=reported)
