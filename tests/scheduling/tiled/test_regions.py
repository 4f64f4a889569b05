"""Sizes that know the objective, and plans on a part of the machine."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import takewhile
from math import inf

import numpy as np
import pytest
from tiled_plans import random_network

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.tiled.evaluator import Evaluation
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal, TiledSearch
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.heuristics.scheduling.tiled.atomic import AtomicDataflow
from tilewright.heuristics.scheduling.tiled.coarsening import workable
from tilewright.heuristics.scheduling.tiled.regions import Region, regions, whole
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_sizes
from tilewright.heuristics.scheduling.tiled.stages import MAPPINGS, ORDERS, Stages
from tilewright.solvers.scheduling.tiled.lns import Yield, next_turn
from tilewright.solvers.scheduling.tiled.running import plan_run

MACHINES = ("atomic-2x2", "atomic-8x8[engines=3x2,link=8]", "atomic-8x8[engines=5x3]", "set-edge-4x4")


def problem_on(machine: str, seed: int, objective: str = "edp") -> TiledProblem:
    """A random network of five layers on a machine."""
    return TiledProblem(
        random_network(random.Random(seed)), load_tiled_machine(machine), tiled_objective(objective)
    )


def planned(
    problem: TiledProblem, region: Region, price: float, order: str, mapping: str
) -> tuple[AtomicPlan, Evaluation]:
    """The plan of sizes at a price on a region."""
    search: TiledSearch = TiledSearch(TiledGoal(problem), Limits(), exact=False)
    counts = [region.engines] * len(problem.units)
    sizes, _ = workable(problem, balanced_sizes(problem, engines=counts, price=price), engines=counts)
    judged = Stages(search, "test", region=region).of_sizes(sizes, order, mapping, "test")
    assert judged is not None
    return judged[1], problem.evaluate(judged[1].dag, judged[1].plan)


@pytest.mark.parametrize("name", MACHINES)
def test_regions_are_rectangles_of_the_machine(name: str) -> None:
    """Every engine of one once, neighbours along it, the whole machine first and one engine last."""
    machine = load_tiled_machine(name)
    every = regions(machine)
    assert sorted(every[0].along) == list(range(machine.engines))
    assert (every[0].along == whole(machine).along).all()
    assert every[-1].engines == 1
    assert len({region.name for region in every}) == len(every)
    for region in every:
        places = np.array([machine.position(int(engine)) for engine in region.along])
        width, height = (int(side) for side in np.ptp(places, axis=0) + 1)
        assert (region.name, region.engines) == (f"{width}x{height}", width * height)
        assert len(set(map(tuple, places))) == width * height
        assert (np.abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_plan_keeps_to_its_region(seed: int) -> None:
    """Every order and every way to place, on every region, is a legal plan of these engines alone."""
    problem = problem_on(MACHINES[seed], seed)
    for number, region in enumerate(regions(problem.machine)):
        order, mapping = ORDERS[number % len(ORDERS)], MAPPINGS[(number + seed) % len(MAPPINGS)]
        answer, _ = planned(problem, region, inf, order, mapping)
        assert set(answer.plan.engine.tolist()) <= set(region.along.tolist())


def test_sizes_that_cost_less_energy_are_sent_less() -> None:
    """Over random networks, cheap cycles make plans of less energy and more cycles than dear ones."""
    energy, cycles = [], []
    for seed in range(8):
        problem = problem_on("atomic-8x8[engines=4x4]", seed)
        region = whole(problem.machine)
        quick, frugal = (planned(problem, region, price, "waves", "zigzag")[1] for price in (inf, 0.0))
        energy.append(frugal.energy.total / quick.energy.total)
        cycles.append(frugal.cycles / quick.cycles)
    assert np.mean(energy) < 0.97
    assert np.mean(cycles) > 1.0


@pytest.mark.parametrize(
    "objective", ["edp", *(pytest.param(text, marks=pytest.mark.slow) for text in ("energy", "makespan"))]
)
def test_the_default_is_no_worse_than_what_its_members_begin_with(objective: str) -> None:
    """All share the best plan, so none of its members begins with a better one."""
    problem = problem_on("atomic-2x2", 3, objective)

    def key(method: str) -> float:
        result = plan_run(lambda: problem, method, Limits()).run()
        assert result.key is not None
        return float(result.key)

    begun = [key(method) for method in ("atomic[refine=off]", "set[shakes=20]", "kapla")]
    assert key("auto[steps=0]") <= min(begun) * (1 + 1e-12)


def test_turns_go_to_what_gains() -> None:
    """Time is in proportion to gain per second, and what gains nothing is tried now and then."""
    good, poor = Yield(), Yield()
    for _ in range(400):
        way = (good, poor)[next_turn((good, poor))]
        way.note(0.01 if way is good else 0.0, 1.0)
    assert good.spent > 10 * poor.spent > 0


def test_what_gained_long_ago_gives_way() -> None:
    """Visits of a millisecond: one kind gained at first, and nothing since."""
    early, other = Yield(), Yield()
    for turn in range(1000):
        way = (early, other)[next_turn((early, other))]
        way.note(0.01 if way is early and turn < 3 else 0.0, 0.001)
    assert other.visits > 200


class Recorded(TiledSearch):
    """A search that notes the key of every plan, and what the trace calls it."""

    def __init__(self, problem: TiledProblem) -> None:
        super().__init__(TiledGoal(problem), Limits(), exact=False)
        self.plans: list[tuple[str, Fraction]] = []

    def confirm(self, answer: AtomicPlan, source: str, origin: Origin = Origin.EXACT) -> Fraction:
        """Note the key of a plan."""
        key = super().confirm(answer, source, origin)
        self.plans.append((source, key))
        return key


@pytest.mark.parametrize("seed", [1, 3])
def test_smaller_regions_are_tried_for_the_best_price(seed: int) -> None:
    """Of the prices that led to plans on the whole machine, and of a dear one only where no cheap one did."""
    problem = problem_on(MACHINES[seed], seed)
    search = Recorded(problem)
    method = AtomicDataflow(atoms="shares", order="waves", mapping="zigzag")
    assert method.start(search, Stages(search, "test")) is not None
    by_region: dict[str, dict[float, Fraction]] = {}
    priced = takewhile(lambda plan: " pJ, " in plan[0], search.plans[1:])
    for source, key in priced:
        _, _, _, region, _, price, *_ = source.split()
        keys = by_region.setdefault(region, {})
        keys[float(price)] = min(key, keys.get(float(price), key))
    on_whole = by_region.pop(whole(problem.machine).name)
    first, second, *dearer = on_whole
    assert second < first
    assert all(price > first for price in dearer)
    assert bool(dearer) == (on_whole[second] >= on_whole[first])
    best = min(on_whole, key=lambda price: on_whole[price])
    assert by_region
    assert all(list(prices) == [best] for prices in by_region.values())
