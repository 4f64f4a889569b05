"""Machine files as sub-accelerators: costs by hand, clocks, widths, names, co-design, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from own_engine_files import SLOW, WIDE

import tilewright as tw
from tilewright.formulation.limits import Limits
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.styles import Fixed
from tilewright.hardware.scheduling.herald.system_file import load_system
from tilewright.hardware.scheduling.own_engine import OwnEngine
from tilewright.report.checks.scheduling.herald.codesign import check_codesign
from tilewright.report.checks.scheduling.herald.schedule import check_schedule
from tilewright.report.records.scheduling.herald.document import CodesignDocument, ScheduleDocument, parts_of
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.scheduling import own_costs
from tilewright.solvers.scheduling.own_costs import (
    MappingAnswer,
    MappingQuestion,
    OwnCostStore,
    best_mappings,
    keep_answer,
)
from tilewright.workloads.mapping.matrices import gemm

TWO = """
memory: 1 kB
dram_bandwidth: 8 GB/s
energy: {memory: 2, dram: 10}
sub_accelerators:
  - {name: a, arch: slow.yaml, bandwidth: 4 GB/s}
  - {name: b, arch: wide.yaml, bandwidth: 4 GB/s}
"""
LAYER = "gemm:M=1,N=4,K=4"


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A system of two different machine files."""
    for name, text in (("slow", SLOW), ("wide", WIDE), ("two", TWO)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path / "two.yaml"


def options(system: Path, objective: str) -> dict[str, Any]:
    """What the layer costs on each engine, from the document of a schedule."""
    plan = tw.solve(tw.workload(LAYER).on(tw.system(system), objective=objective))
    assert plan.status == "optimal"
    problem = plan.to_dict()["problem"]
    return {option["engine"]: option for option in problem["costs"][0]["options"]}


def faults(data: dict[str, Any]) -> tuple[str, ...]:
    """What is wrong with the document of a schedule."""
    return check_schedule(ScheduleDocument.model_validate_json(json.dumps(data)), "document").faults


def test_costs_on_two_engines_are_those_of_a_hand_count(two: Path) -> None:
    """A product of 16 steps on two engines of other clocks and widths costs what paper and pencil say.

    Each element moves once: A 4, B 16 and C 4, 24 in all.  DRAM is charged 24 times, the global memory for 20
    that come and go and 4 that come back, the registers for 20 fills, 16 reads of A, 16 of B, 12 of C and 16
    writes of C, the network of ``a`` for 24.
    """
    energy = options(two, "energy")
    assert Fraction(energy["a"]["energy_pj_exact"]) == 24 * 10 + 44 * 2 + 80 * Fraction(1, 4) + 24 / 2 + 16
    assert Fraction(energy["b"]["energy_pj_exact"]) == 2 * (24 * 10 + 44 * 2) + 80 + 16 * 3
    # first fills of A and of a column of B, 4 elements each, then 16 steps, then the last result leaves;
    # 4 bytes in a cycle of the system are 8 elements in one of a, whose cycles are twice as long, and 2 of b
    assert energy["a"]["cycles"] == 2 * (1 + 16 + 1)
    assert energy["b"]["cycles"] == 4 + 16 + 1
    # tiles: A, a column of B, one of C; first weights: that column, over a half of the DRAM's wires
    assert (energy["a"]["memory_bytes"], energy["a"]["fetch_bytes"], energy["a"]["fetch"]) == (9, 4, 1)
    assert (energy["b"]["memory_bytes"], energy["b"]["fetch_bytes"], energy["b"]["fetch"]) == (18, 8, 2)


def test_static_power_counts_while_a_layer_runs(two: Path) -> None:
    """A PE of 1 mW at 1 GHz takes 1 pJ in each of 21 cycles; power of the replaced DRAM does not count."""
    plain = options(two, "energy")["b"]
    leaking = WIDE.replace("mac_energy: 3", "mac_energy: 3, static_power: 0.001")
    two.with_name("wide.yaml").write_text(leaking.replace("energy: 7", "energy: 7, static_power: 5 W"))
    plan = tw.solve(tw.workload(LAYER).on(tw.system(two), objective="energy"))
    (_, option) = plan.to_dict()["problem"]["costs"][0]["options"]
    assert option["cycles"] == plain["cycles"] == 21
    assert Fraction(option["energy_pj_exact"]) == Fraction(plain["energy_pj_exact"]) + 21
    assert not faults(plan.to_dict())


def test_a_machine_of_another_model_runs_under_hierarchy(two: Path) -> None:
    """With ``cost_model: hierarchy`` a machine of dMazeRunner's model is an engine, its DRAM replaced."""
    text = TWO.replace("arch: slow.yaml", "arch: dmazerunner-256, cost_model: hierarchy")
    two.write_text(text.replace("memory: 1 kB", "memory: 64 kB"))
    flow = load_system(two).subs[0].own
    assert flow is not None
    inside = flow.inside(Fraction(4), 256)
    assert (inside.cost_model, [level.name for level in inside.levels]) == (
        "hierarchy",
        ["DRAM", "GLB", "SPM", "RF"],
    )
    plan = tw.solve(tw.workload(LAYER).on(tw.system(two), objective="edp"))
    assert plan.status == "optimal"
    assert not faults(plan.to_dict())


def test_engines_work_side_by_side_in_less_time(two: Path) -> None:
    """With cycles as the objective the four PEs of ``a`` take a column each."""
    cycles = options(two, "makespan")
    assert cycles["a"]["cycles"] < cycles["b"]["cycles"] < 36


def test_a_document_stands_on_its_own(two: Path) -> None:
    """The engines are in the document: it checks, proves, and a changed machine or cost is noticed."""
    plan = tw.solve(tw.workload(LAYER).on(tw.system(two), objective="edp"))
    data = plan.to_dict()
    assert not faults(data)
    assert ScheduleDocument.model_validate_json(json.dumps(data)).system.build() == load_system(two)
    energy = json.loads(json.dumps(data))
    energy["system"]["sub_accelerators"][0]["arch"]["mac_energy"] = "2"
    assert any("energy_pj_exact" in fault for fault in faults(energy))
    stopped = json.loads(json.dumps(data))
    stopped["system"]["sub_accelerators"][0]["arch"]["clock_mhz"] = "0"
    assert any("expected a clock above 0" in fault for fault in faults(stopped))
    cycles = json.loads(json.dumps(data))
    cycles["problem"]["costs"][0]["options"][1]["cycles"] -= 1
    assert any("cycles" in fault for fault in faults(cycles))


def test_results_stay_as_wide_as_the_widest_engine_has_them(two: Path) -> None:
    """A result of 16 elements takes 32 bytes where an engine of 16 bits may read it."""
    two.write_text(TWO.replace("memory: 1 kB", "memory: 1 kB\nkeep_activations: true"))
    two.with_name("chain.yaml").write_text(
        "- {name: one, layer: 'gemm:M=1,N=16,K=4'}\n"
        "- {name: two, layer: 'gemm:M=1,N=4,K=16', reads: {A: one}}\n"
    )
    plan = tw.solve(tw.workload(two.with_name("chain.yaml")).on(tw.system(two), objective="energy"))
    costs = plan.to_dict()["problem"]["costs"]
    assert {cost["result_bytes"] for cost in costs} == {0, 32}
    assert not faults(plan.to_dict())


def test_an_open_answer_is_named_and_taken_up_again(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapping that is not proven best stands, is named in text and document, and is searched for longer."""
    folder = tmp_path / "costs"
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(folder))
    best = options(two, "energy")["a"]
    system = load_system(two)
    flow = system.subs[0].own
    assert flow is not None
    (layer,) = tw.network(LAYER).layers
    asked, other = (
        MappingQuestion(layer.operator, flow.inside(Fraction(4), 256), metric)
        for metric in ("energy", "cycles")
    )
    mapping = best_mappings([other], Limits(), folder)[other].mapping
    with OwnCostStore(folder, lambda: 1.0, None) as store:
        keep_answer(store, asked, MappingAnswer(mapping, proven=False, seconds=1e6))
    plan = tw.solve(tw.workload(LAYER).on(tw.system(two), objective="energy"))
    assert "not proven in time to be of least energy: gemm on a" in " ".join(str(plan).split())
    (costs,) = plan.to_dict()["problem"]["costs"]
    assert [option.get("proven", True) for option in costs["options"]] == [False, True]
    assert not faults(plan.to_dict())
    with OwnCostStore(folder, lambda: 1.0, None) as store:
        keep_answer(store, asked, MappingAnswer(mapping, proven=False, seconds=0.01))
    assert not best_mappings([asked], Limits(), folder, continued=False)[asked].proven
    assert best_mappings([asked], Limits(), folder)[asked].proven
    assert options(two, "energy")["a"] == best


def test_a_search_without_a_mapping_gets_twice_the_time(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice that is too short for a first mapping ends no call: the question is asked again, for longer."""
    given: list[float] = []

    def impatient(problem: Any, solver: Any, limits: Limits, **others: Any) -> Any:
        assert limits.seconds is not None
        given.append(limits.seconds)
        enough = len(given) > 2
        return solve(problem, solver, limits if enough else Limits(seconds=0.0), **others)

    monkeypatch.setattr(own_costs, "solve", impatient)
    flow = load_system(two).subs[0].own
    assert flow is not None
    (layer,) = tw.network(LAYER).layers
    engine = flow.inside(Fraction(4), 256)
    asked = [MappingQuestion(layer.operator, engine, metric) for metric in ("energy", "cycles")]
    answers = best_mappings(asked, Limits(seconds=40, threads=1), tmp_path / "costs")
    assert [answers[question].proven for question in asked] == [True, True]
    assert given[2] > 1.9 * given[0]


def test_level_names_do_not_collide() -> None:
    """DRAM and global memory take names that no level of the file has."""
    engine = tw.machine("eyeriss-168").engine
    flow = OwnEngine(engine, Fraction(1000))
    names = [level.name for level in flow.inside(Fraction(8), 1 << 16).levels]
    assert names == ["DRAM", "GLB-2", *(level.name for level in engine.levels[1:])]
    assert flow.fixes(gemm(m=4, n=4, k=4)) == ()
    assert Fixed("no loop", "Q", "DRAM") in flow.fixes(tw.layer("conv:K=4,C=4,P=4,Q=4,R=3,S=3").operator)


def test_a_codesign_keeps_the_machine_and_divides_the_rest(two: Path) -> None:
    """Wires are divided over a machine file and a dataflow style, PEs over the style alone."""
    answer = tw.codesign(
        LAYER, "edge", dataflows=[str(two.with_name("slow.yaml")), "nvdla"], bandwidth_step=8, objective="edp"
    )
    document = CodesignDocument.model_validate_json(json.dumps(answer.to_dict()))
    assert answer.status == "optimal"
    assert [parts_of(point.partition) for point in document.points] == [
        ((4, Fraction(8)), (960, Fraction(8)))
    ]
    assert not check_codesign(document, "document").faults


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "{name: a, arch: slow.yaml,",
            "{name: a, arch: slow.yaml, pes: 4,",
            "pes: expected none beside arch",
        ),
        ("arch: slow.yaml, ", "", r"two.yaml:6: sub_accelerators\[0\].dataflow: missing, .*or arch"),
        ("slow.yaml", "absent.yaml", r"sub_accelerators\[0\].arch: .*absent.yaml"),
        ("slow.yaml", "dmazerunner-256", r"\[0\].arch: expected the cost model hierarchy"),
        ("slow.yaml,", "slow.yaml, cost_model: dmazerunner,", r"\[0\].cost_model: expected hierarchy"),
        ("arch: slow.yaml", "dataflow: nvdla, pes: 4, cost_model: hierarchy", "expected none without arch"),
        ("arch: slow.yaml", "dataflow: nvdla, pes: 4", "energy: expected only where every engine"),
        ("arch: slow.yaml", "arch: other/wide.yaml", r"\[1\].arch: two different engines are called wide"),
    ],
)
def test_a_wrong_engine_is_one_line(two: Path, old: str, new: str, message: str) -> None:
    """What cannot be part of a system is refused with file, line and field."""
    other = two.parent / "other"
    other.mkdir()
    (other / "wide.yaml").write_text(WIDE.replace("mac_energy: 3", "mac_energy: 4"))
    two.write_text(TWO.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_system(two)
