"""From sizes of atoms to an offered plan: rounds, places, buffers and smoothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from operator import itemgetter

import numpy as np

from tilewright.formulation.objective import Objective
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.plan import Plan
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledSearch
from tilewright.foundation.arrays import Int32s
from tilewright.foundation.errors import InputError
from tilewright.heuristics.scheduling.tiled.beside_ports import beside_ports
from tilewright.heuristics.scheduling.tiled.homes import Homes, allowed
from tilewright.heuristics.scheduling.tiled.lists import Assignment, depth_first, layer_sequential, list_order
from tilewright.heuristics.scheduling.tiled.placement import place
from tilewright.heuristics.scheduling.tiled.planning import BUFFERING, cycle_price
from tilewright.heuristics.scheduling.tiled.refining import Judged, Sizes
from tilewright.heuristics.scheduling.tiled.regions import Region, whole
from tilewright.heuristics.scheduling.tiled.rounds import RoundOrder
from tilewright.heuristics.scheduling.tiled.smoothing import Effort, smoothed_and_cycles

ORDERS = ("waves", "layers", "lists", "rules", "depth")
BAND_ORDER = "bands"
"""The order of bands of rows: as ``depth``, each engine on rows of its own."""

MAPPINGS = ("matching", "nearest", "permutations", "zigzag")

FAR = 2000
"""Steps before its use in which data may arrive, where a plan is smoothed for as long as that gains."""

THOROUGH = Effort(rounds=3, tries=16, most=32, far=FAR)
"""What smoothing tries around layers that differ from those of another plan, and in calls that follow each
other while they gain much, see `smoothed`."""

HEATED = replace(THOROUGH, rounds=6, heat=4.0)
"""What further calls try, which gain more by then than those without heat."""

STEEP = Fraction(199, 200)
"""Calls without heat follow each other while each shortens the plan by more than this."""

FEW = 1000
"""Atoms up to which transfers are not timed together before they are moved."""

ROUGH = Effort(rounds=2, tries=4)
"""What smoothing tries where many plans are compared."""

GAIN = Fraction(1999, 2000)
"""Smoothing continues while a call shortens the plan by more than this."""


@dataclass(frozen=True)
class Stages:
    """What makes a plan of atoms.

    Parameters
    ----------
    search : what judges plans and keeps the best
    name : of the method, for the trace
    buffering : a key of `BUFFERING`
    options, lookahead : of algorithm 2, see `RoundOrder`
    level : whether transfers are moved after routing
    region : the engines that take part; by default all
    homes : where given, atoms are listed, each on an engine of its layer's home, and mappings do not matter
    """

    search: TiledSearch
    name: str
    buffering: str = "furthest"
    options: int = 1
    lookahead: int = 2
    level: bool = True
    region: Region | None = None
    homes: Homes | None = None

    @property
    def along(self) -> Int32s:
        """The engines that take part, in the order in which they are dealt out."""
        machine = self.search.problem.problem.machine
        return (self.region or whole(machine)).along

    @property
    def objective(self) -> Objective:
        """What plans are judged by."""
        return self.search.problem.problem.objective

    def steps(self, dag: AtomicDag, order: str) -> Int32s:
        """A round per task by one of `ORDERS`, or `BAND_ORDER`."""
        machine = self.search.problem.problem.machine
        if order in ("layers", "waves"):
            return layer_sequential(dag, machine, waves=order == "waves", along=self.along)[1]
        if order in ("depth", BAND_ORDER):
            along = self.along
            priority = depth_first(dag, len(along) if order == BAND_ORDER else 1)
            return list_order(dag, machine, priority=priority, along=along, limits=self.search.limits)[1]
        if order == "lists":
            return list_order(dag, machine, along=self.along, limits=self.search.limits)[1]
        return RoundOrder(dag, len(self.along), self.options, self.lookahead).steps(self.search.limits)

    def listed(self, dag: AtomicDag, order: str, homes: Homes) -> Assignment:
        """Engines and rounds of atoms that run on their layers' homes, in lists that follow an order."""
        machine, priority = self.search.problem.problem.machine, None
        if order in ("depth", BAND_ORDER):
            priority = depth_first(dag)
        elif order in ("layers", "waves"):
            priority = -np.arange(dag.tasks, dtype=np.int64)
        table, limits = allowed(homes, self.along, machine.engines), self.search.limits
        return list_order(dag, machine, priority=priority, along=self.along, homes=table, limits=limits)

    def planned(
        self, dag: AtomicDag, step: Int32s, mapping: str, source: str, like: AtomicPlan | None = None
    ) -> Judged:
        """The plan of some rounds under one of `MAPPINGS`, smoothed once, offered.

        Parameters
        ----------
        dag, step : the atoms and the round of each
        mapping : one of `MAPPINGS`
        source : what the trace calls the plan
        like : as of `placed`
        """
        problem = self.search.problem.problem
        engine = place(dag, problem.machine, step, mapping, self.search.limits, self.along)
        return self.placed(dag, step, engine, source, like)

    def placed(
        self,
        dag: AtomicDag,
        step: Int32s,
        engine: Int32s,
        source: str,
        like: AtomicPlan | None = None,
        *,
        thorough: bool = False,
    ) -> Judged:
        """The plan of some rounds and engines, smoothed once, offered.

        Parameters
        ----------
        dag : the atoms
        step, engine : per atom; layers that wait for their weights may run on other engines, see `completed`
        source : what the trace calls the plan
        like : a smoothed plan of nearly the same atoms, whose transfers are a start
        thorough : whether a call of `settled` follows in the steps that differ from those of ``like``
        """
        machine = self.search.problem.problem.machine
        limits = self.search.limits
        plan = self.completed(dag, step, engine)
        if not self.level:
            return self.offered(dag, plan, source)
        kept = []
        counts = self.objective.energy_power
        if self.search.answer is None or (counts and like is None):
            kept = [self.offered(dag, plan, source)]  # smoothing takes longest
        before = None if like is None else (like.dag, like.plan)
        effort, price = THOROUGH if thorough else Effort(), cycle_price(self.search)
        # where cycles alone count, and with few atoms, smoothing gains more from where completion begins
        staged = like is None and dag.tasks > FEW and 0.0 < price < inf
        effort = replace(effort, price=price, staged=staged)
        moved = smoothed_and_cycles(dag, machine, plan, effort, like=before, limits=limits)[0]
        return min([self.offered(dag, moved, source), *kept], key=itemgetter(0))

    def completed(self, dag: AtomicDag, step: Int32s, engine: Int32s) -> Plan:
        """The plan of some rounds and engines; where energy counts and transfers are moved, the better one of
        this and of that by `beside_ports`.
        """
        problem, limits = self.search.problem.problem, self.search.limits
        machine, eviction = problem.machine, BUFFERING[self.buffering]
        plan = complete(dag, machine, engine, step, eviction=eviction, limits=limits)
        if not (self.level and self.objective.energy_power):
            return plan
        moved = beside_ports(dag, machine, engine, step, self.along)
        if moved is None:
            return plan
        other = complete(dag, machine, *moved, eviction=eviction, limits=limits)
        return min(plan, other, key=lambda made: problem.value(problem.evaluate(dag, made)))

    def of_sizes(
        self, sizes: Sizes, order: str, mapping: str, source: str, like: AtomicPlan | None = None
    ) -> Judged | None:
        """The plan of some sizes; ``None`` where their atoms fit no buffer, since estimates may be short.

        Parameters
        ----------
        sizes : per layer
        order, mapping : one of `ORDERS` and one of `MAPPINGS`
        source : what the trace calls the plan
        like : as of `placed`
        """
        try:
            dag = self.search.problem.problem.dag(sizes, self.search.limits)
        except InputError:
            return None
        if self.homes is None:
            return self.planned(dag, self.steps(dag, order), mapping, source, like)
        engine, step = self.listed(dag, order, self.homes)
        return self.placed(dag, step, engine, source, like)

    def rough(self, dag: AtomicDag, order: str, mapping: str, source: str) -> Judged:
        """The plan of some atoms as it was completed, offered.

        Parameters
        ----------
        dag : the atoms
        order, mapping : one of `ORDERS` and one of `MAPPINGS`
        source : what the trace calls the plan
        """
        machine, limits = self.search.problem.problem.machine, self.search.limits
        if self.homes is None:
            step = self.steps(dag, order)
            plan = self.completed(dag, step, place(dag, machine, step, mapping, limits, self.along))
        else:
            engine, step = self.listed(dag, order, self.homes)
            plan = complete(dag, machine, engine, step, eviction=BUFFERING[self.buffering], limits=limits)
        return self.offered(dag, plan, source)

    def smoothed(self, judged: Judged, source: str, effort: Effort = ROUGH, seed: int = 0) -> Judged:
        """The better one of a plan and of the same after one call of smoothing, by default a short one.

        Parameters
        ----------
        judged : the plan
        source : what the trace calls the other one
        effort : what is tried, at the price of a cycle in the best plan
        seed : of its moves
        """
        machine, limits, (_, answer) = self.search.problem.problem.machine, self.search.limits, judged
        effort = replace(effort, price=cycle_price(self.search))
        plan = smoothed_and_cycles(answer.dag, machine, answer.plan, effort, seed, limits=limits)[0]
        return min(judged, self.offered(answer.dag, plan, source), key=itemgetter(0))

    def settled(self, judged: Judged, *, seed: int | None = None, calls: int | None = None) -> Judged:
        """A plan smoothed for as long as that gains anything, every state of it offered.

        Parameters
        ----------
        seed : of its moves; by default the search's
        calls : of smoothing at most; by default any number
        """
        if not self.level:
            return judged
        seed = self.search.limits.seed if seed is None else seed
        begun, trying = seed, THOROUGH
        while not self.search.done and (calls is None or seed - begun < calls):
            seed += 1
            key = judged[0]
            judged = self.smoothed(judged, f"{self.name} smoothing", trying, seed)
            if trying is HEATED and judged[0] > key * GAIN:
                break
            if judged[0] > key * STEEP:
                trying = HEATED
        return judged

    def offered(self, dag: AtomicDag, plan: Plan, source: str) -> Judged:
        """A plan, judged by the evaluator."""
        answer = AtomicPlan(dag, plan)
        return self.search.confirm(answer, source, Origin.HEURISTIC), answer
