"""What the exact method begins with: atoms, few enough to be stated, and round plans of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np

from tilewright.formulation.limits import LimitReachedError, Limits
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.plan import Plan, make_transfers
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledSearch
from tilewright.formulation.scheduling.tiled.tiling import AtomSize, atom_count
from tilewright.foundation.arrays import Int32s
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.machine import TiledMachine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.lists import depth_first, layer_sequential, list_order
from tilewright.heuristics.scheduling.tiled.placement import place
from tilewright.heuristics.scheduling.tiled.planning import quiet_end
from tilewright.heuristics.scheduling.tiled.rounds import RoundOrder
from tilewright.heuristics.scheduling.tiled.size_menus import SizeMenu, fitting_menu
from tilewright.solvers.scheduling.tiled.exact.annealing import single_steps
from tilewright.solvers.scheduling.tiled.exact.space import as_round_plan

SHARE = 0.2
"""Part of the time that the choice of atoms may take."""

LONGEST = 10.0
"""Seconds that it takes at most."""

MOVES = 100
"""Moves in the sizes of atoms that it tries."""

SIZES = ("auto", "incumbent", "coarse")

WORSE = Fraction(3, 2)
"""Times the best plan's value that one of coarse atoms may have, to be proven instead."""

BEGUN = 0.5
"""Part of the time that is left in which further round plans are completed, once there is one."""

PLACES = ("matching", "nearest", "zigzag")


@dataclass(frozen=True, slots=True, eq=False)
class Beginning:
    """What the exact method begins with.

    Parameters
    ----------
    dag : the atoms
    plans : round plans of them, with the idle steps that routing and residency needed
    free : the best plan of any atoms and of any kind that heuristics found, if any
    """

    dag: AtomicDag
    plans: list[Plan]
    free: AtomicPlan | None


def chosen_atoms(problem: TiledProblem, search: TiledSearch, most: int, sizes: str) -> Beginning:
    """The atoms to be stated, and round plans of them.

    Parameters
    ----------
    most : atoms that can be stated
    sizes : ``incumbent`` (those of `AtomicDataflow`'s best plan), ``coarse`` (`coarse_sizes`), or ``auto``:
        the former where they are few enough, otherwise the latter, unless that costs more than `WORSE` allows

    Raises
    ------
    InputError : for a layer whose least atom fits no buffer
    LimitReachedError : where limits strike before there is a plan
    """
    if len(problem.units) > most:  # even one atom per layer is too many
        return unstated_plan(search)
    limits = search.limits.share(SHARE, LONGEST)
    inner: TiledSearch = TiledSearch(TiledGoal(problem), limits, exact=False)
    if sizes != "coarse" and not limits.expired:
        with suppress(LimitReachedError):
            AtomicDataflow(moves=MOVES).offer(inner)
    free = inner.answer
    if free is not None and free.dag.tasks <= most:
        return Beginning(free.dag, [*first_plans(problem, free.dag, search.limits)], free)
    if free is not None and sizes == "incumbent":
        return Beginning(free.dag, [], free)
    search.limits.check()
    coarse = None
    few = coarse_sizes(problem, most)
    pairs = zip(problem.units, few, strict=True)
    if sum(atom_count(unit, size, problem.batch) for unit, size in pairs) <= most:
        with suppress(InputError, LimitReachedError):
            coarse = problem.dag(few, search.limits)
    if coarse is None or coarse.tasks > most:
        return unstated_plan(search) if free is None else Beginning(free.dag, [], free)
    plans = [*first_plans(problem, coarse, search.limits)]
    results = [problem.evaluate(coarse, plan) for plan in plans]
    least = min((problem.objective.key(Fraction(r.energy.total), r.cycles) for r in results), default=None)
    if free is not None and inner.key is not None and (least is None or least > WORSE * inner.key):
        return Beginning(free.dag, [], free)
    return Beginning(coarse, plans, free)


def unstated_plan(search: TiledSearch) -> Beginning:
    """A plan of more atoms than can be stated, found within all the time that is left."""
    with quiet_end(search):
        AtomicDataflow(moves=MOVES).offer(search)
    if search.answer is None:
        raise LimitReachedError("a limit struck before a plan was complete")
    return Beginning(search.answer.dag, [], search.answer)


def coarse_sizes(problem: TiledProblem, most: int) -> tuple[AtomSize, ...]:
    """Per layer the size of least estimated time, all layers with so few atoms that `most` is kept.

    Where even one atom per layer, or as few as buffers allow, are more than that, those are given.
    """
    engines = problem.machine.engines
    ranked: list[SizeMenu] = []
    for unit in problem.units:
        menu = fitting_menu(problem, unit, 1.0)
        rounds = -(-menu.atoms * problem.batch // engines)
        time = rounds * np.maximum(menu.cycles, menu.need / problem.machine.port_rate)
        ranked.append(menu.picked(np.lexsort((menu.atoms * menu.need, time))))
    sizes: list[AtomSize] = []
    for cap in (*range(4 * engines, engines, -engines), *range(engines, 0, -1)):
        sizes, total = [], 0
        for menu in ranked:
            atoms = menu.atoms * problem.batch
            best = int(np.argmax(atoms <= max(cap, int(atoms.min()))))
            sizes.append(menu.size(best))
            total += int(atoms[best])
        if total <= most:
            break
    return tuple(sizes)


def orders(dag: AtomicDag, machine: TiledMachine) -> Iterator[Int32s]:
    """Rounds of all tasks by the heuristics."""
    yield layer_sequential(dag, machine)[1]
    yield list_order(dag, machine)[1]
    yield RoundOrder(dag, machine.engines, 1, 2).steps()


def quick_plans(dag: AtomicDag, machine: TiledMachine) -> Iterator[Plan]:
    """Round plans of all orders; none of an order where residency exceeds a buffer."""
    for step in orders(dag, machine):
        yield from placed_plans(dag, machine, step)


def placed_plans(
    dag: AtomicDag, machine: TiledMachine, step: Int32s, own: Int32s | None = None
) -> Iterator[Plan]:
    """Round plans of one order, as completed and with transfers moved.

    Parameters
    ----------
    dag, machine : the atoms, and where they run
    step : of each atom
    own : engines to try, besides those that heuristics choose
    """
    if own is not None:
        yield from _completed(dag, machine, own, step)
    for how in PLACES:
        yield from _completed(dag, machine, place(dag, machine, step, how), step)


def _completed(dag: AtomicDag, machine: TiledMachine, engine: Int32s, step: Int32s) -> Iterator[Plan]:
    """Round plans of one order and its places; none where residency exceeds a buffer."""
    with suppress(IllegalPlanError):
        rounds = _round_plan(dag, machine, engine, step)
        yield rounds
        yield by_nearest_ports(rounds, machine)
        yield single_steps(dag, machine, rounds)


def _round_plan(dag: AtomicDag, machine: TiledMachine, engine: Int32s, step: Int32s) -> Plan:
    """The round plan of an order and its places, as completed."""
    return as_round_plan(dag, complete(dag, machine, engine, step, ahead=1), machine.engines)


def first_plans(problem: TiledProblem, dag: AtomicDag, limits: Limits) -> Iterator[Plan]:
    """Round plans to begin with; those of few engines, too, where energy counts.

    Parameters
    ----------
    limits : of the search, of which these plans may take `BEGUN`
    """
    within = limits.share(BEGUN)
    few = _plans_of_few_engines(dag, problem.machine) if problem.objective.energy_power else ()
    for plan in chain(quick_plans(dag, problem.machine), few):
        yield plan
        if within.expired:
            return


def _plans_of_few_engines(dag: AtomicDag, machine: TiledMachine) -> Iterator[Plan]:
    """Round plans on the engines that are nearest to ports: those move less, and take longer."""
    net = topology(machine)
    ports = range(machine.engines, machine.engines + len(machine.dram_ports))
    near = sorted(range(machine.engines), key=lambda e: min(net.distance(port, e) for port in ports))
    for many in range(1, machine.engines + 1):
        along = np.array(near[:many], dtype=np.int32)
        for engine, step in (
            layer_sequential(dag, machine, along=along),
            list_order(dag, machine, along=along),
            list_order(dag, machine, priority=depth_first(dag), along=along),
        ):
            with suppress(IllegalPlanError):
                yield by_nearest_ports(_round_plan(dag, machine, engine, step), machine)


def by_nearest_ports(plan: Plan, machine: TiledMachine) -> Plan:
    """The same plan, with every movement from or to DRAM by the port that needs the fewest links for it."""
    net, moving, engines = topology(machine), plan.transfers, machine.engines
    ports = range(engines, net.places)
    together: dict[tuple[int, int, bool], list[int]] = {}
    for i in range(len(moving)):
        if max(moving.source[i], moving.target[i]) >= engines:
            back = bool(moving.target[i] >= engines)
            together.setdefault((int(moving.block[i]), int(moving.first[i]), back), []).append(i)
    source, target = moving.source.astype(np.int64), moving.target.astype(np.int64)
    for (_, _, back), members in together.items():
        links = [
            {
                link
                for i in members
                for link in (net.route(int(source[i]), p) if back else net.route(p, target[i]))
            }
            for p in ports
        ]
        nearest = engines + min(range(len(links)), key=lambda p: len(links[p]))
        (target if back else source)[members] = nearest
    columns = [column.astype(np.int64) for column in (moving.bytes, moving.first, moving.last)]
    transfers = make_transfers(engines, moving.block.astype(np.int64), source, target, *columns)
    return Plan(plan.engine, plan.first, plan.last, transfers, plan.residency, plan.steps)
