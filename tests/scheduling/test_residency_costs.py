"""Results that stay in the shared memory (Herald, step 7): evaluator, bounds, proofs and costs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from effort import effort
from graphs import problem_of
from hypothesis import given, settings
from hypothesis import strategies as st
from joined import joined_problems
from residency_costs import optimum_by_cycles, staying_problems

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.residency import with_results_kept
from tilewright.formulation.scheduling.herald.schedule import MEMORY, make_schedule
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.hardware.scheduling.herald.system_file import load_system, parse_system
from tilewright.heuristics.scheduling.herald.scheduler import greedy
from tilewright.report.records.scheduling.herald.problem import problem_record
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.herald.cost_tables.build import schedule_problem
from tilewright.solvers.scheduling.herald.cost_tables.residency_costs import network_boundary
from tilewright.solvers.scheduling.herald.registry import METHODS
from tilewright.solvers.scheduling.herald.second_opinions.second_opinion import ask_for_better
from tilewright.solvers.second_opinion import Verdict
from tilewright.workloads.blueprint import Blueprint
from tilewright.workloads.scheduling.workload import Part, Workload

FIRST = Option(0, 4, Fraction(10), memory=2, input_spill=Fraction(3), output_spill=Fraction(5))
SECOND = Option(0, 2, Fraction(7), memory=1, input_spill=Fraction(4), output_spill=Fraction(6))


def chain(memory: int | None) -> SchedulingProblem:
    """Two layers, the first one's result takes 3 bytes."""
    problem = problem_of([[(FIRST,), (SECOND,)]], memory=memory)
    return replace(problem, tasks=(replace(problem.tasks[0], result_bytes=3), problem.tasks[1]))


def test_what_stays_costs_nothing_at_dram() -> None:
    """The reader's inputs and the writer's result are free; the ends of the chain are charged."""
    problem = chain(memory=5)
    options = {0: FIRST, 1: SECOND}
    stored = make_schedule(problem, {0: 0, 1: 4}, options)
    assert evaluate_schedule(problem, stored).energy == 17 + 3 + 5 + 4 + 6
    kept = evaluate_schedule(problem, with_results_kept(problem, stored))
    assert (kept.energy, kept.violations) == (17 + 3 + 6, ())
    assert kept.occupancy == ((0, 5), (4, 4), (6, 0))


def test_there_must_be_room() -> None:
    """One byte less, and the result is stored; keeping it is a violation then, as is a wrong place."""
    problem = chain(memory=4)
    options = {0: FIRST, 1: SECOND}
    stored = make_schedule(problem, {0: 0, 1: 4}, options)
    assert with_results_kept(problem, stored) == stored
    forced = make_schedule(problem, {0: 0, 1: 4}, options, {(0, 1)})
    assert evaluate_schedule(problem, forced).violations == (
        "shared memory: 5 bytes in use from cycle 0, it has 4",
    )
    never = problem_of([[(FIRST,), (SECOND,)]])
    assert "cannot stay" in evaluate_schedule(never, forced).violations[0]
    first, second = forced.placements
    lost = replace(forced, placements=(first, replace(second, sources={0: "cache"})))
    assert "read from 'cache', expected DRAM or memory" in evaluate_schedule(problem, lost).violations[0]


@settings(max_examples=effort(40), deadline=None)
@given(staying_problems(), st.sampled_from(ScheduleObjective))
def test_proven_optima_are_those_of_enumeration(
    problem: SchedulingProblem, objective: ScheduleObjective
) -> None:
    """Optimum and bounds against every start cycle, option and set of kept results."""
    optimum = optimum_by_cycles(problem, objective)
    search = ScheduleSearch(ScheduleGoal(problem, objective), Limits(seconds=20, threads=1))
    run_method(search, METHODS.make("cpsat"), "cpsat")
    result = search.result("cpsat", "")
    assert (result.status, result.key) == (Status.OPTIMAL, optimum)
    for name in ("greedy", "herald"):
        other = ScheduleSearch(ScheduleGoal(problem, objective), Limits(threads=1))
        run_method(other, METHODS.make(name), name)
        assert other.bound is not None
        assert other.key is not None
        assert other.bound <= optimum <= other.key
    verdict, _, text = ask_for_better(problem, objective, optimum + 1, Limits(seconds=10, threads=1))
    assert verdict is not Verdict.CONFIRMED, text
    verdict, _, text = ask_for_better(problem, objective, optimum, Limits(seconds=10, threads=1))
    assert verdict is not Verdict.REFUTED, text


@settings(max_examples=effort(40), deadline=None)
@given(staying_problems(most=9))
def test_completion_is_legal_and_never_worse(problem: SchedulingProblem) -> None:
    """Whatever is kept fits; starts stay, energy does not rise; records hold everything."""
    stored = greedy(problem, "edp")
    kept = with_results_kept(problem, stored)
    before, after = evaluate_schedule(problem, stored), evaluate_schedule(problem, kept)
    assert not after.violations
    assert (after.makespan, after.energy <= before.energy) == (before.makespan, True)
    assert with_results_kept(problem, kept) == kept
    again = problem_record(problem, {}).build("problem")
    assert {t.name: t for t in again.tasks} == {t.name: t for t in problem.tasks}


@given(joined_problems(most=5))
def test_without_results_nothing_changes(problem: SchedulingProblem) -> None:
    """Where no result may stay, schedules and values are what they were."""
    stored = greedy(problem, "edp")
    assert with_results_kept(problem, stored) is stored


def _branching(batch: int) -> Blueprint:
    """A fork, a join by addition, a pooled branch, and a result that leaves and is read as well."""
    net = Blueprint("branching", batch)
    x = net.conv(net.image(4, 16), 8, 3, pad=1, name="stem")
    left = net.conv(x, 8, 3, pad=1, name="left")
    right = net.conv(net.max_pool(x, 1, stride=1), 8, 1, name="right")
    joined = net.add(left, right)
    net.dense(net.flatten(net.conv(joined, 4, 1, name="tail")), 10, name="classes")
    return net


SYSTEM = """
memory: 64 kB
dram_bandwidth: 16 GB/s
keep_activations: true
sub_accelerators:
  - {name: deep, dataflow: nvdla, pes: 16, bandwidth: 4 GB/s}
  - {name: wide, dataflow: shidiannao, pes: 16, bandwidth: 12 GB/s, energy_factor: 1.5}
"""


def test_costs_are_split_at_dram(tmp_path: Path) -> None:
    """Parts add up to the whole of the same mapping; inputs of the network and its result are never free."""
    network = _branching(1).network()
    workload = Workload("branching", (Part("branching", network),))
    system = parse_system(SYSTEM, "system.yaml", "system")
    limits = Limits(threads=1)
    keeping = schedule_problem(workload, system, "edp", limits, tmp_path)
    storing = schedule_problem(workload, replace(system, keep_activations=False), "edp", limits, tmp_path)
    assert not storing.keeps_results
    boundary = network_boundary(network)
    assert (boundary.reading, boundary.leaving) == ({"stem"}, {"classes"})
    layers = {layer.name: layer.operator for layer in network.mac_layers}
    for kept, stored in zip(keeping.tasks, storing.tasks, strict=True):
        for option, other in zip(kept.options, stored.options, strict=True):
            assert option.energy + option.input_spill + option.output_spill == other.energy
            assert (option.cycles, option.memory, option.fetch) == (other.cycles, other.memory, other.fetch)
            assert bool(option.input_spill) == (kept.layer != "stem")
            assert bool(option.output_spill) == (kept.layer != "classes")
            factor = Fraction(3, 2) if option.engine else 1
            result = layers[kept.layer].output.footprint(layers[kept.layer].bounds)
            if option.output_spill:  # every element is written once at least
                assert option.output_spill >= 200 * factor * result
                assert kept.result_bytes == result
    values = {}
    for name, problem in (("kept", keeping), ("stored", storing)):
        search = ScheduleSearch(
            ScheduleGoal(problem, ScheduleObjective.ENERGY), Limits(seconds=20, threads=1)
        )
        run_method(search, METHODS.make("cpsat"), "cpsat")
        values[name] = search.result("cpsat", "")
    assert values["kept"].status is Status.OPTIMAL
    assert values["kept"].key is not None
    assert values["stored"].key is not None
    assert values["kept"].key < values["stored"].key
    assert values["kept"].answer is not None
    assert any(MEMORY in p.sources.values() for p in values["kept"].answer.placements)


@pytest.mark.parametrize("flag", [True, False])
def test_systems_say_whether_results_stay(tmp_path: Path, flag: bool) -> None:
    """The property is read from files and is part of what a system is."""
    (tmp_path / "s.yaml").write_text(SYSTEM.replace("true", str(flag).lower()))
    system = load_system(str(tmp_path / "s.yaml"))
    assert system.keep_activations is flag
    assert system.content_hash != replace(system, keep_activations=not flag).content_hash
