"""Documents of plans: every number of a column is checked, plans of others are evaluated and begun with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shipped import follows_schema

import tilewright as tw
from tilewright.report.checks.scheduling.tiled.plan import check_plan
from tilewright.report.records.scheduling.tiled.document import PlanDocument, inputs_hash
from tilewright.report.records.scheduling.tiled.files import parse_plan
from tilewright.report.records.scheduling.tiled.plan import packed, unpacked
from tilewright.report.records.schemas import PLAN, generated_schema, result_schema
from tilewright.workloads.mapping.convolutions import conv2d
from tilewright.workloads.network import Layer, Link, Network
from tilewright.workloads.scheduling.workload import Part
from tilewright.workloads.scheduling.workload import Workload as Networks


def small() -> tw.Workload:
    """Two convolutions, the second reads the first."""
    first, second = conv2d(k=32, c=16, r=3, s=3, h=8, w=8, pad=1), conv2d(k=32, c=32, r=1, s=1, h=8, w=8)
    layers = [Layer("first", first, "test"), Layer("second", second, "test")]
    links = [Link("first", "second", second.inputs[0].name, "first", 32 * 64)]
    return tw.Workload(Networks("small", (Part("small", Network("small", layers, links), 2),)))


@pytest.fixture(scope="module")
def plan() -> tw.TiledPlan:
    """A plan of two layers and two samples on four engines."""
    question = small().on(tw.tiled_machine("atomic-2x2[link=16]"), "edp")
    return tw.solve(question, method="ls")


@pytest.fixture(scope="module")
def data(plan: tw.TiledPlan) -> dict[str, Any]:
    """Its document as JSON gives it back."""
    data: dict[str, Any] = json.loads(json.dumps(plan.to_dict()))
    return data


def faults_of(data: dict[str, Any]) -> list[str]:
    """Everything that ``check`` has to say about a document."""
    try:
        return [*check_plan(parse_plan(data, "document"), "document").faults]
    except tw.InputError as error:
        return [str(error)]


def test_the_schema_is_that_of_the_records(data: dict[str, Any]) -> None:
    """The shipped schema is generated from the records, and a real document keeps to it."""
    assert result_schema(PLAN) == json.loads(json.dumps(generated_schema(PlanDocument)))
    follows_schema(data, PLAN)


COLUMNS = ["engine", "first", "last"]
COLUMNS += [f"transfers.{name}" for name in ("block", "source", "target", "bytes", "first", "last")]
COLUMNS += [f"residency.{name}" for name in ("block", "engine", "start", "end")]


@pytest.mark.parametrize("place", COLUMNS)
def test_every_changed_number_of_a_column_is_found(data: dict[str, Any], place: str) -> None:
    """One more or one less in a row of a packed column is another plan, illegal or of other figures.

    A block that stays a step longer where there is room changes no figure, and is the one exception.
    """
    part, _, name = place.rpartition(".")
    node = data["plan"][part] if part else data["plan"]
    rows = node["count"] if part else node["tasks"]
    column = unpacked(node[name], rows, place).astype(np.int64)
    for row in {0, rows // 2, rows - 1}:
        for change in (-1,) if place == "residency.end" else (-1, 1):
            made = column.copy()
            made[row] += change
            altered = json.loads(json.dumps(data))
            (altered["plan"][part] if part else altered["plan"])[name] = packed(made)
            assert faults_of(altered) != [], (row, change)


FREE = """
clock_mhz: 500
grid: {width: 2, height: 2, link: 16 B/cycle}
dram: {bandwidth: 16 GB/s, energy: 0, ports: left}
engine:
  array: {rows: 4, columns: 4, dataflow: kc}
  buffer: {size: 16 kB, energy: 0}
  mac_energy: 0
  vector_lanes: 4
hop_energy: 0
"""


def test_a_plan_that_costs_nothing_is_checked(tmp_path: Path) -> None:
    """Value and bound are 0 where no energy is above 0, and so is the gap."""
    path = tmp_path / "free.yaml"
    path.write_text(FREE)
    plan = tw.solve(small().on(tw.tiled_machine(path), "edp"), method="ls")
    assert (plan.value, plan.bound, plan.gap) == (0, 0, 0)
    assert tw.check(plan).faults == ()


def test_a_mended_hash_does_not_save_another_machine(data: dict[str, Any]) -> None:
    """Whoever changes the machine and computes the hash anew is found out by the figures."""
    for field, value in (("link_rate", 8.0), ("dram_energy", 1.0), ("width", 1)):
        altered = json.loads(json.dumps(data))
        altered["problem"]["machine"][field] = value
        record = parse_plan(altered, "document")
        altered["input_hash"] = inputs_hash(record.problem, record.objective)
        faults = faults_of(altered)
        assert faults, field
        assert not any("input_hash" in fault for fault in faults)


def test_a_plan_made_elsewhere_is_evaluated(data: dict[str, Any], plan: tw.TiledPlan) -> None:
    """Lists in place of packed columns say the same, and movements that are left out are completed."""
    told = data["plan"]
    lists = {name: unpacked(told[name], told["tasks"], name).tolist() for name in ("engine", "first", "last")}
    for part, names in (("transfers", COLUMNS[3:9]), ("residency", COLUMNS[9:])):
        bare = [name.partition(".")[2] for name in names]
        columns = {name: unpacked(told[part][name], told[part]["count"], name).tolist() for name in bare}
        lists[part] = columns  # type: ignore[assignment]
    cuts = [{key: value for key, value in layer.items() if key != "atoms"} for layer in told["layers"]]
    whole = {**data, "plan": {"layers": cuts, "steps": told["steps"], **lists}}
    assert tw.evaluate_plan(whole).key == plan.key
    bare_plan = {"layers": cuts, "engine": lists["engine"], "first": lists["first"]}
    judged = tw.evaluate_plan(
        {"schema": data["schema"], "problem": data["problem"], "plan": bare_plan}, "edp"
    )
    assert judged.legal
    assert judged.key == plan.key
    assert plan.evaluate().to_dict()["metrics"] == data["metrics"]


def test_illegal_plans_name_what_they_break(data: dict[str, Any]) -> None:
    """A dependency, a buffer and an engine, each by its name; no figures are given."""
    told = data["plan"]
    engine, first = (unpacked(told[name], told["tasks"], name).tolist() for name in ("engine", "first"))
    cuts = told["layers"]

    def broken(**columns: Any) -> str:
        made = {**data, "plan": {"layers": cuts, "engine": engine, "first": first, **columns}}
        evaluation = tw.evaluate_plan(made)
        assert not evaluation.legal
        assert evaluation.metrics is None
        return evaluation.violations[0]

    assert "reads" in broken(first=first[::-1])
    assert "runs both" in broken(engine=[0] * len(engine))
    assert "engine 9, expected one of 4" in broken(engine=[9, *engine[1:]])
    small = json.loads(json.dumps(data))
    held = int(small["metrics"]["peak_buffer_bytes"][0])
    small["problem"]["machine"]["engine"]["buffer_bytes"] = held - 1
    evaluation = tw.evaluate_plan(small)
    assert "buffer of engine" in evaluation.violations[0]


def test_a_search_begins_with_a_plan(data: dict[str, Any], plan: tw.TiledPlan, tmp_path: Path) -> None:
    """The plan given is the first answer of the trace, on narrower links too, and nothing worse ends it."""
    path = tmp_path / "plan.json"
    plan.save(path)
    question = small().on(tw.tiled_machine("atomic-2x2[link=8]"), "edp")
    result = tw.solve(question, method="rammer", warm_starts=path)
    answers = [point for point in result.trace if point["improved"]]
    assert answers[0]["source"] == "warm start"
    assert result.value is not None
    assert result.value <= answers[0]["value"]
    assert tw.check(result).holds


@pytest.mark.parametrize(
    ("machine", "batch", "told"),
    [
        ("atomic-8x8", 2, "is of another machine"),
        ("atomic-2x2[buffer=0.5]", 2, "needs "),
        ("atomic-2x2", 3, "is of another batch: 2, expected 3"),
    ],
)
def test_plans_of_others_are_refused(plan: tw.TiledPlan, machine: str, batch: int, told: str) -> None:
    """A plan that cannot begin a search is one line that says why."""
    question = small().on(tw.tiled_machine(machine), batch=batch)
    with pytest.raises(tw.InputError, match=told):
        tw.solve(question, method="ls", warm_starts=plan)


def test_a_bound_is_proven_or_refuted(data: dict[str, Any]) -> None:
    """The computed bound is confirmed; one above the plan's own value or a quick plan's is refuted."""
    record = tw.check(tw.TiledPlan(parse_plan(data, "document")), prove=True)
    assert record.proof is not None
    assert record.proof.verdict.value == "confirmed"
    wrong = {**data, "bound": data["value"] + 1, "bound_exact": f"{int(data['value']) + 1}"}
    report = tw.check(tw.TiledPlan(parse_plan(wrong, "document")), prove=True)
    assert report.proof is not None
    assert report.proof.verdict.value == "refuted"
    assert not report.holds


def test_a_proof_over_a_space_is_found_again() -> None:
    """The claim of the exact method names its space, a fresh proof confirms it, and no other passes."""
    question = small().on(tw.tiled_machine("atomic-2x2[link=16]"), batch=1)
    result = tw.solve(question, method="exact[atoms=8]", threads=1)
    assert result.status is tw.Status.OPTIMAL
    assert "round plans" in result.space
    data = json.loads(json.dumps(result.to_dict()))
    assert faults_of(data) == []
    proof = tw.check(result, prove=True, threads=1).proof
    assert proof is not None
    assert (proof.verdict.value, proof.solver) == ("confirmed", "exact[atoms=8], again")
    for space in ("", "all plans", data["space"].replace("8 given", "9 given")):
        assert faults_of({**data, "space": space}) != [], space
    assert faults_of({**data, "settings": {**data["settings"], "method": "ls"}}) != []
