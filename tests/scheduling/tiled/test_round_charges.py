"""Charges of rounds: below random plans, as plain recursion has them, and at most what enumeration finds."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pytest
from effort import effort
from ortools.sat.python import cp_model
from tiled_energies import PRICES, compared, least_energy, random_case, small_instance
from tiled_enumeration import Enumeration, TooLargeError, tiny_problem

from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.plan import make_transfers
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.routing import complete
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.solvers.scheduling.tiled.exact.charges import RoundCharges, free_of_charge
from tilewright.solvers.scheduling.tiled.exact.counts import Classes, Counts, alike, twins
from tilewright.solvers.scheduling.tiled.exact.instance import RoundInstance
from tilewright.solvers.scheduling.tiled.exact.prices import energy_units
from tilewright.solvers.scheduling.tiled.exact.remainder_kernel import (
    LISTED,
    WEIGHED,
    remainders_of,
    remaining,
    weigh,
)
from tilewright.solvers.scheduling.tiled.exact.sequences import searched, tables_of
from tilewright.solvers.scheduling.tiled.exact.space import RoundSpace, as_round_plan, idle_steps
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network

MANY = 10**7
"""Cycles beyond every plan of these tests."""


SMALL = 8
"""Tasks of which all places are known quickly."""


def singles(instance: RoundInstance) -> Classes:
    """Every task alone."""
    return tuple((task,) for task in range(instance.tasks))


def charge_of(charges: RoundCharges, classes: Classes, rounds: Iterable[Sequence[int]]) -> int:
    """Parts of a cycle that some rounds cost."""
    inside, charge = charges.inside(classes), charges.charges()
    far, ways, cost = charges.far(classes), charges.ways(), 0
    for tasks in rounds:
        ran = [len({*members} & {*tasks}) for members in classes]
        together = inside[:, range(len(classes)), ran].sum(axis=1)
        falling = sorted(np.repeat(far, ran).tolist(), reverse=True)
        cost += int(charge[range(len(charge)), together].sum()) + int(ways[: len(falling)] @ falling)
    return cost


def of_plan(problem: TiledProblem, plan: AtomicPlan) -> tuple[list[int], int]:
    """Energies that a plan's rounds take at least, with classes ever smaller, and its own, in units."""
    dag, steps = plan.dag, plan.plan.first
    instance = RoundInstance(dag, problem.machine)
    energy = problem.evaluate(dag, plan.plan).energy.total
    units = energy_units(instance, Fraction(energy), 1)
    charges = RoundCharges(instance, units, instance.unit)  # a part of a cycle is worth a unit
    rounds = [np.flatnonzero(steps == step).tolist() for step in np.unique(steps)]
    costs = [charge_of(charges, classes, rounds) for classes in (alike(instance), singles(instance))]
    return [units.least(instance) + cost for cost in costs], units.counted(energy)


@pytest.mark.parametrize("seed", range(effort(40)))
def test_no_charges_exceed_a_random_plan(seed: int) -> None:
    """Nor are those of tasks that look alike above those of single tasks."""
    problem, dag, plan = random_case(seed)
    (together, alone), value = of_plan(problem, AtomicPlan(dag, plan))
    assert together <= alone <= value


def wide_case(seed: int) -> tuple[TiledProblem, AtomicPlan]:
    """Layers that read all of the one before, cut along channels, in a random plan of full rounds.

    Makers that all readers share are what charges of makers and readers together are about.
    """
    rng = random.Random(seed)
    grid = rng.choice(["2x2", "3x2", "4x1", "3x1"])
    machine = load_tiled_machine(f"atomic-8x8[engines={grid},ports={rng.choice(['left', 'corners'])}]")
    hop, dram = rng.choice(PRICES)
    machine = machine.changed(hop_energy=hop, dram_energy=dram)
    wide = [8 * rng.randint(1, 4) for _ in range(4)]
    layers = [
        Layer(f"l{i}", conv2d(k=k, c=c, r=rng.choice([1, 3]), s=1, h=4, w=4, pad=0), "test")
        for i, (c, k) in enumerate(pairwise(wide))
    ]
    links = [Link(f"l{i}", f"l{i + 1}", "I", "x", 16 * wide[i + 1]) for i in range(2)]
    problem = TiledProblem(Network("wide", layers, links), machine, tiled_objective("energy"))
    dag = problem.dag([AtomSize(rng.choice([2, 4]), 4, c, 8) for c in wide[:3]])
    step, engine = random_rounds(rng, RoundInstance(dag, machine))
    places = np.array(engine, dtype=np.int32), np.array(step, dtype=np.int32)
    plan = complete(dag, machine, *places, through_dram=seed % 3 == 0)
    return problem, AtomicPlan(dag, as_round_plan(dag, plan, machine.engines))


def random_rounds(rng: random.Random, instance: RoundInstance) -> tuple[list[int], list[int]]:
    """Steps, every second one, and engines of rounds of as many ready tasks as are drawn."""
    step, engine, left, now = [0] * instance.tasks, [0] * instance.tasks, [*range(instance.tasks)], 0
    while left:
        ready = [task for task in left if not instance.before[task] & {*left}]
        ran = rng.sample(ready, min(len(ready), rng.randint(1, instance.engines)))
        for task, e in zip(ran, rng.sample(range(instance.engines), len(ran)), strict=True):
            step[task], engine[task] = now, e
        left, now = [task for task in left if task not in ran], now + 2
    return step, engine


def small_layers(seed: int) -> tuple[TiledProblem, AtomicDag]:
    """One layer, or two of which the second reads rows of the first, cut along rows and channels; in every
    third case all results are outputs."""
    rng = random.Random(seed)
    machine = load_tiled_machine(f"atomic-2x2[engines={rng.choice(['2x1', '2x2', '3x1', '4x1'])}]")
    hop, dram = rng.choice(PRICES)
    rows, many = rng.choice([4, 6, 8]), rng.randint(1, 2)
    layers = [Layer(f"l{i}", conv2d(k=8, c=8, r=3 * i or 1, s=1, h=rows, w=2), "test") for i in range(many)]
    links = [Link("l0", "l1", "I", "x", 16 * rows)][: many - 1]
    changed = machine.changed(hop_energy=hop, dram_energy=dram)
    problem = TiledProblem(Network("rows", layers, links), changed, tiled_objective("energy"))
    dag = problem.dag([AtomSize(2, 2, 8, rng.choice([4, 8]) if many == 1 else 8) for _ in layers])
    return problem, replace(dag, is_output=dag.is_output | (seed % 3 == 0))


@pytest.mark.parametrize("seed", range(effort(30)))
def test_no_charges_of_full_rounds_exceed_a_random_plan(seed: int) -> None:
    """Makers and readers run side by side, on engines of which few are beside a port."""
    (together, alone), value = of_plan(*wide_case(seed))
    assert together <= alone <= value


@pytest.mark.parametrize("seed", range(effort(30)))
def test_no_charges_exceed_the_best_places_of_their_rounds(seed: int) -> None:
    """What rounds cost is at most what follows from places, on whatever engines their tasks are."""
    if seed % 2:
        cases = (wide_case(case) for case in range(100 * seed, 100 * seed + 100))
        problem, plan = next(case for case in cases if case[1].dag.tasks <= SMALL)
        dag, rounds = plan.dag, plan.plan.first.tolist()
    else:
        problem, dag = small_layers(seed)
        rounds = random_rounds(random.Random(seed), RoundInstance(dag, problem.machine))[0]
    instance = RoundInstance(dag, problem.machine)
    units = energy_units(instance, Fraction(10**9), 1)
    units = replace(units, hop=min(units.hop, units.dram))  # places take the lesser price for all links
    charges = RoundCharges(instance, units, instance.unit)
    model, engines = cp_model.CpModel(), range(instance.engines)
    runs = {(task, e, r): model.new_bool_var("") for task, r in enumerate(rounds) for e in engines}
    together: dict[tuple[int, int], list[cp_model.IntVar]] = {}
    for (_, e, r), run in runs.items():
        together.setdefault((e, r), []).append(run)
    for task, r in enumerate(rounds):
        model.add_exactly_one(runs[task, e, r] for e in engines)
    for alternatives in together.values():
        model.add_at_most_one(alternatives)
    least = least_energy(model, instance, runs, units)
    assert least is not None
    steps = [np.flatnonzero(np.equal(rounds, r)).tolist() for r in {*rounds}]
    for classes in (alike(instance), singles(instance)):
        assert units.least(instance) + charge_of(charges, classes, steps) <= least


def test_charges_of_full_rounds_are_there() -> None:
    """They are above what all plans take, in nearly all of those cases."""
    raised = 0
    for seed in range(10):
        problem, plan = wide_case(seed)
        instance = RoundInstance(plan.dag, problem.machine)
        (_, alone), value = of_plan(problem, plan)
        raised += alone > energy_units(instance, Fraction(value), 1).least(instance)
    assert raised > 7


@pytest.mark.parametrize("seed", (37, 39, *range(30), *range(40, 70))[: effort(6)])
def test_the_search_with_charges_loses_nothing(seed: int) -> None:
    """It finds what recursion over all sequences finds; classes of tasks that look alike never give more."""
    instance = small_instance(seed)
    units = energy_units(instance, Fraction(10**9), 1)
    units = replace(units, hop=units.hop * random.Random(seed).choice([1, 10, 100]))
    charges = RoundCharges(instance, units, random.Random(seed).choice([10**6, 10**7, 10**8]))
    alone, alike_ = (
        searched(Counts(instance, of, 1), MANY * instance.unit, bool, lambda _: None, charges=charges)
        for of in (singles(instance), alike(instance))
    )
    assert alone.ended
    assert alone.bound == plain(instance, charges)
    assert alike_.bound <= alone.bound


def plain(instance: RoundInstance, charges: RoundCharges) -> int:
    """The least time and charges of all sequences of rounds, with a DRAM that moves fetches first."""
    tasks = range(instance.tasks)
    fetch = {
        b: instance.duration(instance.size[b], instance.dram_rate)
        for b in instance.readers
        if instance.parent[b] < 0
    }
    leaving = [
        instance.duration(instance.size[t], instance.dram_rate) if instance.outputs[t] else 0 for t in tasks
    ]

    @cache
    def rest(done: frozenset[int], moved: int) -> int:
        best = 1 << 60
        ready = [t for t in tasks if t not in done and instance.before[t] <= done]
        for many in range(1, min(instance.engines, len(ready)) + 1):
            for run in combinations(ready, many):
                after = done.union(run)
                used = {b for t in after for b in instance.reads[t] if b in fetch}
                late = max(0, sum(fetch[b] for b in used) - moved)
                reading = [instance.cycles[t] for t in run if any(b in fetch for b in instance.reads[t])]
                length = max(late, instance.unit * max(instance.cycles[t] for t in run))
                if late and reading:
                    wait = max(instance.cycles[t] for t in run) if not done else min(reading)
                    length = max(length, late + instance.unit * wait)
                there = min(moved + length, sum(fetch.values()) + sum(leaving[t] for t in done))
                end = charge_of(charges, singles(instance), [run]) + length
                if len(after) == instance.tasks:
                    left = sum(fetch.values()) + sum(leaving) - there
                    best = min(best, end + max(sum(leaving[t] for t in run), left))
                else:
                    best = min(best, end + rest(after, there))
        return best

    return rest(frozenset(), 0)


@pytest.mark.parametrize("seed", range(effort(20)))
def test_rounds_to_come_take_the_least_of_all_sequences(seed: int) -> None:
    """From every set of tasks that may have run, in lengths and charges, as recursion without DRAM has it."""
    instance = small_instance(seed)
    units = energy_units(instance, Fraction(10**9), 1)
    charges = RoundCharges(instance, units, 10**6)
    alone, alike_ = (Counts(instance, of(instance)) for of in (singles, alike))
    tables = tables_of(alone, MANY, charges, steady=True)
    rest = remainders_of(tables.number, 1 << instance.tasks)
    while not weigh(tables, rest, 3):
        assert rest.state[WEIGHED] == rest.state[LISTED] or remaining(rest, 0) == 0
    order = [task for (task,) in alone.classes]

    @cache
    def least(done: frozenset[int]) -> int:
        ready = [t for t in range(instance.tasks) if t not in done and instance.before[t] <= done]
        best = 0 if len(done) == instance.tasks else 1 << 60
        for many in range(1, min(instance.engines, len(ready)) + 1):
            for run in combinations(ready, many):
                took = charge_of(charges, singles(instance), [run])
                took += instance.unit * max(instance.cycles[t] for t in run)
                after = done.union(run)
                if len(after) == instance.tasks:
                    ports = max(alone.passing(instance.size[t] * instance.outputs[t]) for t in run)
                    took += max(sum(alone.leaving(t) for t in run if not instance.after[t]), ports)
                best = min(best, took + least(after))
        return best

    for member in range(int(rest.state[LISTED])):
        key = int(rest.key[member])
        done = {task for task, stride in zip(order, tables.strides, strict=True) if key // stride % 2}
        assert all(instance.before[task] <= done for task in done)
        assert remaining(rest, key + 3 * rest.span) == rest.least[member] == least(frozenset(done))
    together = tables_of(alike_, MANY, charges, steady=True)
    fewer = remainders_of(together.number, 1 << instance.tasks)
    while not weigh(together, fewer, 1000):
        pass
    assert remaining(fewer, 0) <= least(frozenset())


def test_without_room_nothing_is_known_of_the_rounds_to_come() -> None:
    """Members that are too many leave the search to its other bounds."""
    counts = Counts(small_instance(0), singles(small_instance(0)))
    tables = tables_of(counts, MANY, free_of_charge(counts.instance), steady=True)
    rest = remainders_of(tables.number, 4)
    assert weigh(tables, rest, MANY)
    assert remaining(rest, 0) == 0


@pytest.mark.parametrize("seed", range(effort(30)))
def test_no_sequence_exceeds_a_random_plan(seed: int) -> None:
    """In cycles, and in cycles and energy at a price; on meshes, tori and trees, wherever the search ends."""
    problem, dag, plan = random_case(seed)
    instance, result = RoundInstance(dag, problem.machine), problem.evaluate(dag, plan)
    units = energy_units(instance, Fraction(result.energy.total), 1)
    spent = units.counted(result.energy.total) - units.least(instance)
    for price in (None, 1 + spent // result.cycles, 1 + 50 * spent // result.cycles):
        charges = None if price is None else RoundCharges(instance, units, price)
        most = result.cycles + 1
        if charges is not None:
            most = instance.unit * result.cycles + charges.parts(spent) + 1
        for classes in (alike(instance), twins(instance)):
            for ways in (1, 1000):
                counts, steady = Counts(instance, classes, ways), idle_steps(plan) == 0
                search = searched(counts, most, bool, lambda _: None, 3000, steady=steady, charges=charges)
                assert search.bound < most


def check_line(seed: int, power: float, budget: int) -> bool:
    """Energy and cycles at a price are bounded from below; false where enumeration would take too long.

    With power, energy is that sum: its price is the power of all engines.
    """
    problem, dag = tiny_problem(seed, "energy")
    engine = replace(problem.machine.engine, static_power=power)
    machine, idle = problem.machine.changed(engine=engine), int(seed % 3 == 0)
    try:
        least = Enumeration(dag, machine, idle, float("inf"), budget, (1, 0)).run()
    except TooLargeError:
        return False
    if least == float("inf"):
        return False
    instance = RoundInstance(dag, machine)
    units = energy_units(instance, Fraction(least), 1)
    assert units.whole
    charges = RoundCharges(instance, units, units.cycle)
    for classes in (alike(instance), twins(instance)):
        for ways in (1, 40, 200):
            counts = Counts(instance, classes, ways)
            most = MANY * instance.unit
            search = searched(counts, most, bool, lambda _: None, 2000, steady=idle == 0, charges=charges)
            bound = units.least(instance) + Fraction(units.cycle * search.bound, instance.unit)
            assert bound <= units.counted(least), (seed, classes, ways)
    return True


def test_lines_are_below_the_least_that_enumeration_finds() -> None:
    """With power from nearly nothing to most of the energy."""
    checked = sum(check_line(seed, 0.25 * 8 ** (seed % 6), 20_000) for seed in range(effort(16)))
    assert checked > effort(16) // 4


def test_an_output_may_be_written_back_by_its_reader() -> None:
    """The reader is beside the port: what it receives passes the link that the output has to pass."""
    layers = [Layer(name, conv2d(k=4, c=4, r=1, s=1, h=2, w=2), "test") for name in ("a", "b")]
    network = Network("chain", layers, [Link("a", "b", "I", "a", 16)])
    machine = load_tiled_machine("atomic-2x2[engines=2x1,ports=left]")
    problem = TiledProblem(network, machine, tiled_objective("energy"))
    dag = problem.dag([AtomSize(1, 2, 4, 4), AtomSize(2, 2, 4, 4)])
    dag = replace(dag, is_output=np.ones_like(dag.is_output))
    engine, step = np.array([1, 0, 0], dtype=np.int32), np.array([0, 0, 1], dtype=np.int32)
    plan = as_round_plan(dag, complete(dag, machine, engine, step), machine.engines)
    moving, held = plan.transfers, plan.residency
    leaving = (moving.block == 0) & (moving.target >= machine.engines)
    end = plan.steps - 1
    source, first, last = (
        np.where(leaving, to, column).astype(np.int64)
        for to, column in ((0, moving.source), (end, moving.first), (end, moving.last))
    )
    columns = (column.astype(np.int64) for column in (moving.block, source, moving.target, moving.bytes))
    moving = make_transfers(machine.engines, *columns, first, last)
    longer = np.where((held.block == 0) & (held.engine == 0), end, held.end)
    by_reader = replace(plan, transfers=moving, residency=replace(held, end=longer))
    assert RoundSpace(problem, dag, plan.steps).outside(AtomicPlan(dag, by_reader)) is None
    for written in (plan, by_reader):
        _, bound, value = compared(problem, dag, written)
        assert bound <= value
        assert max(of_plan(problem, AtomicPlan(dag, written))[0]) <= value
    assert problem.evaluate(dag, by_reader).hop_bytes < problem.evaluate(dag, plan).hop_bytes
