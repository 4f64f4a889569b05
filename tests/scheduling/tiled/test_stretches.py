"""Stretches: accounts of layers against counts by hand, choices against enumeration, and climbs."""

from __future__ import annotations

import random
from itertools import pairwise, product

import numpy as np
import pytest
from effort import effort
from tiled_plans import random_network, random_plan, random_problem

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.plan import multicast_groups
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledSearch
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.hardware.scheduling.tiled.topology import topology
from tilewright.heuristics.scheduling.tiled.layouts.accounts import layer_accounts, layers_beside
from tilewright.heuristics.scheduling.tiled.layouts.arranging import arranged
from tilewright.heuristics.scheduling.tiled.layouts.choosing import LayoutChoice
from tilewright.heuristics.scheduling.tiled.layouts.method import LayoutStart, started
from tilewright.heuristics.scheduling.tiled.layouts.stretches import Stretches
from tilewright.heuristics.scheduling.tiled.stages import Stages

MACHINES = ("atomic-8x8[engines=3x2,link=4]", "atomic-8x8[engines=2x3,topology=torus]", "set-edge-4x4")
MACHINE = "atomic-8x8[engines=4x4,link=8]"


def _energy_by_hand(problem: TiledProblem, answer: AtomicPlan) -> list[float]:
    """pJ of every layer without static power: its atoms, and what they are sent or write back."""
    dag, plan, machine = answer.dag, answer.plan, problem.machine
    net, engine, moving = topology(machine), machine.engine, plan.transfers
    energy = [0.0] * len(dag.units)
    for task in range(dag.tasks):
        inside = dag.compute_energy[task] + dag.buffer_energy[task] + dag.register_energy[task]
        energy[int(dag.unit[task])] += float(inside)
    readers: dict[int, int] = {}
    for task in range(dag.tasks):
        readers.update(dict.fromkeys(dag.reads_of(task).tolist(), int(dag.unit[task])))
    casts: dict[int, list[int]] = {}
    for j, group in enumerate(multicast_groups(moving, machine.engines).tolist()):
        casts.setdefault(group, []).append(j)
    for cast in casts.values():
        first, size = cast[0], int(moving.bytes[cast[0]])
        block, source = int(moving.block[first]), int(moving.source[first])
        links: set[int] = set()
        price = engine.buffer_read_energy if source < machine.engines else machine.dram_energy
        for j in cast:
            target = int(moving.target[j])
            links.update(link for link in net.route(source, target).tolist() if link >= net.routers)
            price += engine.buffer_write_energy if target < machine.engines else machine.dram_energy
        price += len(links) * machine.hop_energy
        inward = int(moving.target[first]) < machine.engines and block in readers
        layer = readers[block] if inward else int(dag.unit[int(dag.block_parent[block])])
        energy[layer] += price * size
    return energy


@pytest.mark.parametrize("seed", range(effort(10)))
def test_accounts_are_those_counted_by_hand_and_add_up_to_the_plan(seed: int) -> None:
    """Every layer has the energy of its atoms and of what they are sent; all together have the plan's."""
    rng = random.Random(seed)
    problem, dag = random_problem(rng, MACHINES[seed % len(MACHINES)])
    plan = random_plan(rng, problem, dag)
    answer, result = AtomicPlan(dag, plan), problem.evaluate(dag, plan)
    energy, cycles = layer_accounts(problem, answer)
    power = problem.machine.engine.static_power * problem.machine.engines
    assert energy - power * cycles == pytest.approx(_energy_by_hand(problem, answer), rel=1e-9)
    idle = np.setdiff1d(np.arange(plan.steps), plan.first)
    waits = float(np.diff(result.step_start)[idle].sum())
    assert cycles.sum() + waits == pytest.approx(result.cycles, abs=1.0)
    assert energy.sum() + power * waits == pytest.approx(result.energy.total, rel=1e-9, abs=power)


@pytest.mark.parametrize("seed", range(effort(6)))
def test_layers_are_chosen_anew_as_by_enumeration(seed: int) -> None:
    """Without a spread no other layouts of two layers have a smaller estimate beside the others' layouts."""
    rng = random.Random(seed)
    problem = TiledProblem(random_network(rng), load_tiled_machine(MACHINE), tiled_objective("edp"))
    choice = LayoutChoice(problem, 1e3, room=0.5, most=2)
    layouts, price = choice.best(rng.choice([10.0, 1e6])), rng.choice([10.0, 1e3, 1e5])
    first = rng.randrange(len(layouts))
    units = range(first, min(len(layouts), first + 2))
    chosen = choice.rechosen(layouts, units, price, rng)
    assert all(a == b for i, (a, b) in enumerate(zip(layouts, chosen, strict=True)) if i not in units)
    picks = [of.layouts.index(layout) for of, layout in zip(choice.of, chosen, strict=True)]
    own = [choice._own(unit, price) for unit in range(len(layouts))]

    def estimate(trial: list[int]) -> float:
        alone = sum(float(own[unit][trial[unit]]) for unit in units)
        met = [pair for pair in {**choice._energy, **choice._kept} if set(pair) & set(units)]
        return alone + sum(
            float(choice._together(pair, price)[trial[pair[0]], trial[pair[1]]]) for pair in met
        )

    mine = estimate(picks)
    for other in product(*(range(len(choice.of[unit].layouts)) for unit in units)):
        trial = [*picks[:first], *other, *picks[units.stop :]]
        assert mine <= estimate(trial) + 1e-9 * abs(mine)


def test_changes_are_judged_by_parts_of_their_own() -> None:
    """Each part has the layers of its change and no more than some beside them, and no two overlap."""
    rng = random.Random(1)
    for _ in range(50):
        changes, at = [], rng.randrange(4)
        while at < 60:
            changes.append(range(at, min(60, at + rng.randint(1, 6))))
            at = changes[-1].stop + rng.randint(1, 9)
        parts = layers_beside(changes, 60)
        for units, part in zip(changes, parts, strict=True):
            assert 0 <= part.start <= units.start < units.stop <= part.stop <= 60
            assert part.stop - part.start <= len(units) + 6
        assert all(a.stop <= b.start for a, b in pairwise(parts))


def _start(objective: str, seed: int) -> tuple[TiledSearch, Stages, LayoutStart]:
    """A search, and its first plan of layouts."""
    network = random_network(random.Random(seed))
    problem = TiledProblem(network, load_tiled_machine(MACHINE), tiled_objective(objective))
    search = TiledSearch(TiledGoal(problem), Limits(60.0), lambda point: None, exact=False)
    stages = Stages(search, "test")
    return search, stages, started(search, stages, 0.5)[-1]


@pytest.mark.parametrize(("objective", "seed"), list(product(["edp", "energy", "makespan"], range(2))))
def test_a_climb_never_ends_worse_and_answers_twice_the_same(objective: str, seed: int) -> None:
    """The plan is that of the layouts, at most as bad as the first one, and never better than the best that
    the search was offered.
    """
    keys = []
    for _ in range(2):
        search, stages, start = _start(objective, seed)
        after = start.climbed(stages, random.Random(seed), search.limits, 8)
        assert search.key is not None
        assert search.key <= after.judged[0] <= start.judged[0]
        dag, engine, _ = arranged(search.problem.problem, after.state)
        answer = after.judged[1]
        assert (answer.plan.engine == engine).all()
        assert dag.tasks == answer.dag.tasks
        keys.append(after.judged[0])
    assert keys[0] == keys[1]


def test_visits_gain_and_their_plans_are_those_of_the_layouts() -> None:
    """From layouts of a wrong price some visit gains; what it returns is smaller, and its plan is of it."""
    search, stages, start = _start("edp", 5)
    state = start.choice.best(1e-6)
    dag, engine, step = arranged(search.problem.problem, state)
    base = stages.placed(dag, step, engine, "test")
    stretches, gains = Stretches(start.choice, state, random.Random(0), 1), 0
    for _ in range(12):
        moved = stretches.visit(stages, state, base, "test")
        if moved is not None:
            assert moved[1][0] < base[0]
            (state, base), gains = moved, gains + 1
            dag, engine, _ = arranged(search.problem.problem, state)
            assert dag.tasks == base[1].dag.tasks
            assert (base[1].plan.engine == engine).all()
    assert gains
