"""``check`` and ``evaluate`` on what ``schedule`` and ``codesign`` wrote, true and tampered."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from effort import effort
from graphs import optimum_by_clock, optimum_by_orders, small_problems
from hypothesis import given, settings
from hypothesis import strategies as st
from systems import LAYERS, SYSTEM

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.hardware.scheduling.herald import classes
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.report.records.scheduling.herald.problem import ProblemRecord, problem_record
from tilewright.solvers.scheduling.herald.lower_bounds.multipliers import multiplier_bound
from tilewright.solvers.scheduling.herald.second_opinions.infeasibility import Finding, schedule_below

Document = dict[str, Any]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A small model and system, cost tables that the tests share, and a class with a small grid."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.getbasetemp() / "costs"))
    monkeypatch.setitem(classes.CLASSES, "edge", AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2))
    (tmp_path / "model.yaml").write_text(LAYERS)
    (tmp_path / "system.yaml").write_text(SYSTEM)


@pytest.fixture
def schedule(call: Call, tmp_path: Path) -> Document:
    """An optimal schedule by the energy-delay product."""
    return _made(call, tmp_path, "schedule", "--system", "system.yaml")


@pytest.fixture
def codesign(call: Call, tmp_path: Path) -> Document:
    """A co-design that ends within a gap."""
    return _made(call, tmp_path, "codesign", "--class", "edge", "--gap", "0.01")


MADE: dict[str, str] = {}
"""Documents by verb, for all tests."""


def _made(call: Call, folder: Path, verb: str, *args: str) -> Document:
    if verb not in MADE:
        out = call(verb, "model.yaml", *args, "-o", "edp", "--threads", 1, "-q", "--out", "made.json")
        assert out.code == 0
        MADE[verb] = (folder / "made.json").read_text()
    (folder / "made.json").write_text(MADE[verb])
    made: Document = json.loads(MADE[verb])
    return made


def _written(folder: Path, document: Document) -> Path:
    path = folder / "tampered.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("costs", [99, -1])
def test_costs_that_are_not_there_are_told(
    call: Call, tmp_path: Path, codesign: Document, costs: int
) -> None:
    """Layers whose costs a document does not have: ``check`` names them, ``show`` shows the rest."""
    layers = codesign["best"]["problem"]["runs"][0]["layers"]
    layers[next(iter(layers))] = costs
    for document in (codesign, codesign["best"]):
        outcome = call("check", _written(tmp_path, document), "-f", "json")
        assert outcome.code == 5
        assert any("layers: expected costs from 0 to " in fault for fault in outcome.document["faults"])
        assert call("show", _written(tmp_path, document)).code == 0


def test_a_schedule_holds_and_its_bound_is_confirmed(call: Call, tmp_path: Path, schedule: Document) -> None:
    """What was written passes every check, and another statement finds nothing below the bound."""
    assert schedule["complete"]
    out = call("check", "made.json", "--prove", "--threads", 1, "-f", "json")
    assert (out.code, out.document["holds"], out.document["faults"]) == (0, True, [])
    assert out.document["proof"]["verdict"] == "confirmed"
    assert "all claims hold" in call("check", "made.json").out


def test_a_codesign_holds_and_its_bound_is_confirmed(call: Call, codesign: Document) -> None:
    """The same over the whole grid, where the best partition has its schedule."""
    assert codesign["best"]["schedule"]
    assert codesign["best"]["value_exact"] == codesign["value_exact"]
    out = call("check", "made.json", "--prove", "--threads", 1, "-f", "json")
    assert (out.code, out.document["faults"]) == (0, [])
    assert out.document["proof"]["verdict"] == "confirmed"


def _later(document: Document) -> None:
    document["schedule"][0]["start"] += 1


def _earlier(document: Document) -> None:
    row = document["schedule"][-1]
    shift = row["start"] - row["fetch_start"]
    row.update(start=shift, fetch_start=0, end=row["end"] - row["start"] + shift)


def _cheaper(document: Document) -> None:
    document["schedule"][0]["energy_pj"] -= 1


def _better(document: Document) -> None:
    document["value"] -= 1
    document["value_exact"] = str(document["value"])


def _lower(document: Document) -> None:
    document["bound"] -= 1
    document["bound_exact"] = str(document["bound"])


def _faster(document: Document) -> None:
    document["problem"]["costs"][0]["options"][0]["cycles"] -= 1


def _twice(document: Document) -> None:
    document["schedule"].append(document["schedule"][0])


def _nameless(document: Document) -> None:
    document["schedule"][0]["engine"] = "deeep"


def _infeasible(document: Document) -> None:
    nothing = dict.fromkeys(("value", "value_exact", "bound", "bound_exact", "gap", "metrics", "schedule"))
    document.update(nothing, status="infeasible")


@pytest.mark.parametrize(
    ("tamper", "fault"),
    [
        (_later, "end"),
        (_earlier, "illegal schedule: "),
        (_cheaper, "energy_pj"),
        (_better, "the evaluator finds"),
        (_lower, "status: optimal, but value and bound are not equal"),
        (_faster, "input_hash"),
        (_twice, "is scheduled 2 times, expected once"),
        (_nameless, "did you mean 'deep'"),
        (_infeasible, "every layer fits somewhere"),
    ],
)
def test_each_fault_is_named(
    call: Call, tmp_path: Path, schedule: Document, tamper: Callable[[Document], None], fault: str
) -> None:
    """Exit code 5, and a line that says what does not hold."""
    tamper(schedule)
    out = call("check", _written(tmp_path, schedule), "-f", "json")
    assert (out.code, out.document["holds"]) == (5, False)
    assert any(fault in reported for reported in out.document["faults"]), out.document["faults"]


def test_a_wrong_bound_is_refuted(call: Call, tmp_path: Path) -> None:
    """A greedy schedule that claims to be optimal passes the plain check; the second opinion beats it."""
    args = ("--system", "system.yaml", "-m", "greedy", "-o", "makespan", "--threads", 1, "-q")
    assert call("schedule", "model.yaml", *args, "--out", "made.json").code == 0
    document = json.loads((tmp_path / "made.json").read_text())
    assert document["bound"] < document["value"]
    document.update(bound=document["value"], bound_exact=document["value_exact"], gap=0.0, status="optimal")
    document["trace"][-1].update(bound=document["value"], gap=0.0)
    assert call("check", _written(tmp_path, document)).code == 5
    document["settings"]["method"] = "cpsat"
    path = _written(tmp_path, document)
    assert call("check", path).code == 0
    out = call("check", path, "--prove", "--threads", 1, "-f", "json")
    assert out.code == 5
    assert out.document["proof"]["verdict"] == "refuted"


def test_a_heuristic_that_meets_its_bound_holds(call: Call, tmp_path: Path) -> None:
    """It stays ``feasible`` with a gap of 0, options of its method in brackets, and passes the check."""
    args = ("--system", "system.yaml", "-o", "energy", "--threads", 1, "-q", "--out", "made.json")
    assert call("schedule", "gemm:M=1,N=16,K=32", "-m", "herald[order=depth-first]", *args).code == 0
    document = json.loads((tmp_path / "made.json").read_text())
    assert (document["status"], document["gap"]) == ("feasible", 0)
    assert call("check", "made.json").code == 0


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda d: d["points"][0].update(value=1.0), "points[0]: value"),
        (lambda d: d["points"].pop(), "partitions: "),
        (lambda d: d["points"][0]["partition"][0].update(pes=5), "not of the grid"),
        (lambda d: d["best"]["schedule"][0].update(start=3), "best: schedule"),
        (lambda d: d["partition"][0].update(pes=8), "best.system"),
        (lambda d: d.update(discarded=0), "discarded"),
    ],
)
def test_each_fault_of_a_codesign_is_named(
    call: Call, tmp_path: Path, codesign: Document, change: Callable[[Document], None], fault: str
) -> None:
    """Points, sums and the best schedule are all looked at."""
    change(codesign)
    out = call("check", _written(tmp_path, codesign), "-f", "json")
    assert out.code == 5
    assert any(fault in reported for reported in out.document["faults"]), out.document["faults"]


def test_a_wrong_bound_over_the_grid_is_refuted(call: Call, tmp_path: Path) -> None:
    """A sample's best value claimed for the whole grid is beaten on another partition."""
    args = ("--class", "edge", "-o", "edp", "--gap", "0.9", "--threads", 1, "-q", "--out", "made.json")
    assert call("codesign", "model.yaml", *args).code == 0
    document = json.loads((tmp_path / "made.json").read_text())
    worst = max(document["points"], key=lambda point: point["value"])
    document.update(bound=worst["value"], bound_exact=worst["value_exact"])
    out = call("check", _written(tmp_path, document), "--prove", "--threads", 1, "-f", "json")
    assert out.code == 5
    assert out.document["proof"]["verdict"] == "refuted"


def test_documents_that_are_none_are_one_line(call: Call, tmp_path: Path, schedule: Document) -> None:
    """A missing field and an unknown version are bad input, with the field's name."""
    out = call("check", _written(tmp_path, {**schedule, "schema": "tilewright.schedule/9"}))
    assert (out.code, "tilewright.schedule/9" in out.err) == (2, True)
    del schedule["status"]
    out = call("check", _written(tmp_path, schedule))
    assert (out.code, "status: missing" in out.err) == (2, True)


def test_an_edited_schedule_is_evaluated(call: Call, tmp_path: Path, schedule: Document) -> None:
    """Rows with task and engine alone are enough: in their order, or violating what their starts violate."""
    out = call("evaluate", "made.json", "-f", "json")
    assert (out.code, out.document["legal"]) == (0, True)
    assert out.document["value"] == schedule["value"]
    rows = [{"task": row["task"], "engine": "wide"} for row in schedule["schedule"]]
    path = _written(tmp_path, {**schedule, "schedule": rows})
    out = call("evaluate", path, "-f", "json", "-o", "makespan")
    metrics = out.document["metrics"]
    assert (out.code, metrics["utilization"]["deep"]) == (0, 0.0)
    assert out.document["value"] == metrics["makespan"] >= schedule["metrics"]["makespan"]
    path = _written(tmp_path, {**schedule, "schedule": [{**row, "start": 100} for row in rows]})
    out = call("evaluate", path)
    assert (out.code, "illegal: wide: " in out.out) == (5, True)
    assert call("evaluate", path, "--in-order").code == 0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"task": "model:cnv", "engine": "deep"}], "did you mean 'model:conv'"),
        ([{"task": "model:conv", "engine": "dep"}], "did you mean 'deep'"),
        ([{"task": "model:conv", "engine": "deep"}] * 2, "every task once"),
        ([{"task": "model:conv", "engine": "deep", "start": 1.5}], "in every row or in none"),
        ([], "nothing to evaluate"),
    ],
)
def test_faults_of_an_edited_schedule_are_one_line(
    call: Call, tmp_path: Path, schedule: Document, rows: list[Document], words: str
) -> None:
    """Exit code 2 and the row."""
    out = call("evaluate", _written(tmp_path, {**schedule, "schedule": rows}))
    assert out.code == 2
    assert words in out.err


@pytest.mark.parametrize("best", [None, "-1", [1], 0, True])
def test_a_codesign_without_a_best_schedule_has_nothing_to_evaluate(
    call: Call, tmp_path: Path, best: object
) -> None:
    """Whatever stands in its place."""
    out = call("evaluate", _written(tmp_path, {"schema": "tilewright.codesign/1", "best": best}))
    assert (out.code, "nothing to evaluate" in out.err) == (2, True)
    assert out.err.count("\n") == 1


def test_a_missing_layer_is_a_violation(call: Call, tmp_path: Path, schedule: Document) -> None:
    """A schedule without one of the layers is evaluated and refused."""
    rows = schedule["schedule"][1:]
    out = call("evaluate", _written(tmp_path, {**schedule, "schedule": rows}))
    assert out.code == 5
    assert "expected once" in out.out


@settings(max_examples=effort(40), deadline=None)
@given(small_problems(most=8, fetch_memory=True))
def test_problems_come_back_from_their_records(problem: SchedulingProblem) -> None:
    """A problem written down and read again is the same in everything that counts."""
    text = problem_record(problem, {}).model_dump_json()
    again = ProblemRecord.model_validate_json(text).build("problem")
    assert (again.tasks, again.engines) == (problem.tasks, problem.engines)
    assert again.content_hash == problem.content_hash


@settings(max_examples=effort(30), deadline=None)
@given(small_problems(most=5), st.sampled_from(ScheduleObjective))
def test_orders_of_pairs_find_nothing_below_the_optimum(
    problem: SchedulingProblem, objective: ScheduleObjective
) -> None:
    """There is nothing below the optimum by enumeration, and the optimum itself is found right above it."""
    optimum = optimum_by_orders(problem, objective)
    limits = Limits(threads=1)
    assert multiplier_bound(problem, objective) <= optimum
    assert schedule_below(problem, objective, optimum, limits).answer is Finding.NONE
    above = optimum + Fraction(1, 1000)
    assert schedule_below(problem, objective, above, limits).value == optimum
    assert schedule_below(problem, objective, above, limits, core=2).answer is not Finding.NONE


@settings(max_examples=effort(15), deadline=None)
@given(small_problems(most=4, fetch_memory=True))
def test_orders_of_pairs_know_the_memory_of_fetches(problem: SchedulingProblem) -> None:
    """Where fetches take memory too, the least makespan is that of all start cycles."""
    least = Fraction(optimum_by_clock(problem))
    below = schedule_below(problem, ScheduleObjective.MAKESPAN, least, Limits(threads=1))
    assert below.answer is Finding.NONE
    above = schedule_below(problem, ScheduleObjective.MAKESPAN, least + 1, Limits(threads=1))
    assert above.value == least
