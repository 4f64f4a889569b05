"""``map --pareto``, ``--best``, ``--all-optimal``: what they find, lies about it, limits and failures."""

from __future__ import annotations

import io
import json
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from calls import Call, finish, start
from clocks import delay, wait_until
from shipped import follows_schema

from tilewright.cli.main import run
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Origin, Status
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.checks.mapping.answer_sets import further_faults
from tilewright.report.records.files import parse_document, read_data, render
from tilewright.report.records.mapping.build import layer_record, then_record
from tilewright.report.records.mapping.claims import claim_of
from tilewright.solvers.mapping.answers.adoption import adopted, undominated
from tilewright.solvers.mapping.answers.answer_sets import (
    AnswerSet,
    best_mappings,
    optimal_mappings,
    pareto_front,
)
from tilewright.solvers.mapping.answers.second_opinion import prove
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.second_opinion import Verdict
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.selection import SelectedLayer

TINY = "gemm:M=4,N=2,K=4"
LONG = "conv:N=16,K=480,C=360,P=60,Q=60,R=3,S=3,pad=1"
"""A layer with a mapping at once, whose front takes much longer."""

SEARCHES = "tilewright.solvers.mapping.answers.answer_set_searches"

ALL = ("--pareto", "--best", "4", "--all-optimal")
EYERISS = ("-a", "eyeriss-168", "--factors", "perfect", "-o", "edp", "-q")


Lie = Callable[[dict[str, Any]], object]


def valid(document: Any) -> Any:
    """The document, which must follow the schema."""
    follows_schema(document)
    return document


def problem_of(goal: str = "edp", arch: str = "eyeriss-168") -> LayerProblem:
    return layer_problem(parse_layer(TINY)[1], load_engine(arch), parse_objective(goal), factors="perfect")


def costs(rows: Sequence[dict[str, Any]]) -> list[tuple[Fraction, int]]:
    return [(Fraction(row["energy_pj_exact"]), row["cycles"]) for row in rows]


def costs_of(answers: AnswerSet) -> list[tuple[Fraction, int]]:
    return [(solution.evaluation.energy, solution.evaluation.cycles) for solution in answers.solutions]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A document with all there is to ask for, of one layer."""
    path = tmp_path_factory.mktemp("further") / "r.json"
    with redirect_stdout(io.StringIO()):
        assert run(["map", TINY, *EYERISS, *ALL, "--out", str(path)]) == 0
    return path


def test_front_is_the_proven_one(everything: Path) -> None:
    """The document has the whole front, in increasing order of cycles, with the edp optimum on it."""
    document = valid(json.loads(everything.read_text()))
    (layer,) = document["layers"]
    front = layer["front"]
    assert front["complete"] is True
    assert costs(front["points"]) == costs_of(pareto_front(problem_of()))
    assert min(point["edp"] for point in front["points"]) == layer["value"]
    settings = document["settings"]
    assert (settings["pareto"], settings["best"], settings["all_optimal"]) == (True, 4, 1000)


def test_best_and_optimal_mappings(everything: Path) -> None:
    """The best mappings are different ones in the order of their values, the optimal ones all equal."""
    (layer,) = json.loads(everything.read_text())["layers"]
    best, optima = layer["best"], layer["optima"]
    assert best["complete"] is optima["complete"] is True
    values = [mapping["edp"] for mapping in best["mappings"]]
    assert values == sorted(values)
    assert len({json.dumps(mapping["mapping"]) for mapping in best["mappings"]}) == 4
    assert costs(best["mappings"]) == costs_of(best_mappings(problem_of(), 4))
    assert optima["count"] == len(optima["mappings"]) == len(optimal_mappings(problem_of()).solutions)
    assert {mapping["edp"] for mapping in optima["mappings"]} == {layer["value"]}


def test_only_what_was_asked_for_is_there(call: Call) -> None:
    """Without the flags the document has none of their fields."""
    layer = valid(call("map", TINY, *EYERISS, "-f", "json").document)["layers"][0]
    assert {"front", "best", "optima", "clash"}.isdisjoint(layer)


def test_most_cuts_the_list(call: Call) -> None:
    """With --most the list is cut, and does not claim to be complete."""
    args = ("map", "gemm:M=8,N=4,K=8", "-a", "tpu-edge", "-o", "cycles", "-q", "-f", "json", "--all-optimal")
    every = call(*args).document["layers"][0]["optima"]
    assert every["count"] > 1
    cut = valid(call(*args, "--most", "1").document)["layers"][0]["optima"]
    assert (cut["count"], len(cut["mappings"]), cut["complete"]) == (1, 1, False)


@pytest.mark.parametrize("suffix", ["json", "jsonl", "yaml"])
def test_everything_survives_files(call: Call, everything: Path, suffix: str) -> None:
    """The document is read back, checked and shown in every format."""
    document = parse_document(read_data(everything), "r")
    path = Path(f"r.{suffix}")
    path.write_text(render(document, suffix))
    assert parse_document(read_data(path), "r") == document
    assert call("check", path).code == 0
    shown = call("show", path).out
    assert "Pareto front: " in shown
    assert "4 best mappings, proven" in shown


def _with(*path: str | int, value: Any) -> Lie:
    def lie(layer: dict[str, Any]) -> None:
        target: Any = layer
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return lie


def _swapped(field: str, rows: str, first: int, second: int) -> Lie:
    def lie(layer: dict[str, Any]) -> None:
        listed = layer[field][rows]
        listed[first], listed[second] = listed[second], listed[first]

    return lie


def _copied(source: tuple[str, str, int], target: tuple[str, str]) -> Lie:
    def lie(layer: dict[str, Any]) -> None:
        layer[target[0]][target[1]].append(layer[source[0]][source[1]][source[2]])

    return lie


def _without_the_chosen_point(layer: dict[str, Any]) -> None:
    points = layer["front"]["points"]
    points.remove(min(points, key=lambda point: point["edp"]))


def _too_many_instances(layer: dict[str, Any]) -> None:
    """All loops in space, on one axis."""
    nodes = layer["front"]["points"][0]["mapping"]["nodes"]
    stores = [node for node in nodes if node.get("level") == "DRAM"]
    inner = [{"store": tensor, "level": "RF"} for tensor in "ABC"]
    loops = [{"spatial": dim, "tile": 1, "axis": "y"} for dim in "MNK"]
    nodes[:] = [*stores, *loops, *inner]


LIES: dict[str, tuple[Lie, str]] = {
    "energy": (_with("front", "points", 0, "energy_pj", value=1), "front.points[0].energy_pj: 1, the eval"),
    "exact energy": (_with("front", "points", 0, "energy_pj_exact", value="7/2"), "energy_pj_exact: 7/2"),
    "cycles": (_with("front", "points", 1, "cycles", value=3), "front.points[1].cycles: 3, the evaluator"),
    "edp": (_with("best", "mappings", 2, "edp", value=3), "best.mappings[2].edp: 3, the evaluator finds"),
    "order of the front": (_swapped("front", "points", 0, 1), "not more cycles than the point before"),
    "dominated point": (_copied(("best", "mappings", 3), ("front", "points")), "front.points["),
    "missing point": (_without_the_chosen_point, "front: the least value is"),
    "empty front": (_with("front", "points", value=[]), "front: the least value is nothing"),
    "illegal point": (_too_many_instances, "front.points[0]: illegal mapping: axis y of GLB"),
    "malformed point": (_with("front", "points", 0, "mapping", "nodes", 0, value={"store": "A"}), "nodes[0]"),
    "order of the best": (_swapped("best", "mappings", 0, 3), "better than the mapping before it"),
    "best missing": (lambda layer: layer["best"]["mappings"].pop(0), "best: the least value is"),
    "best twice": (_copied(("best", "mappings", 3), ("best", "mappings")), "same as a mapping before it"),
    "not optimal": (_copied(("best", "mappings", 3), ("optima", "mappings")), "its value is not the bound"),
    "optimal twice": (_copied(("optima", "mappings", 0), ("optima", "mappings")), "same as a mapping before"),
    "count": (_with("optima", "count", value=9), "optima.count: 9, but"),
    "no optima": (_with("optima", "mappings", value=[]), "optima: the least value is nothing"),
    "status": (_with("status", value="feasible"), "front: complete, but the layer is feasible"),
    "clash": (_with("clash", value=["cycles<=1"]), "clash: 'cycles<=1' is no constraint of the layer"),
    "clash of a solution": (_with("clash", value=["axis y of GLB"]), "clash: conflicting constraints, but"),
}


@pytest.mark.parametrize(("lie", "told"), LIES.values(), ids=LIES)
def test_every_lie_is_found(call: Call, everything: Path, lie: Lie, told: str) -> None:
    """Each field, changed alone, fails the check with a line that names it."""
    document = json.loads(everything.read_text())
    lie(document["layers"][0])
    Path("r.json").write_text(json.dumps(document))
    outcome = call("check", "r.json", "-f", "json")
    assert outcome.code == 5
    faults = outcome.document["layers"][0]["faults"]
    assert any(told in fault for fault in faults), faults


def test_tables_tell_the_layer(call: Call, tmp_path: Path) -> None:
    """Several layers have their fronts after the table, named, in 80 columns, the chosen point marked."""
    (tmp_path / "net.yaml").write_text(f"- {TINY},name=first\n- gemm:M=2,N=2,K=4,name=second\n")
    outcome = call("map", "net.yaml", *EYERISS[:-1], *ALL)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    for name in ("first", "second"):
        assert any(line.startswith(f"{name}: Pareto front: ") and "complete" in line for line in lines)
        assert any(line.startswith(f"{name}: 4 best mappings, proven") for line in lines)
        assert any(line.startswith(f"{name}: ") and "optimal mapping" in line for line in lines)
    assert sum("← edp" in line for line in lines) == 2
    assert max(map(len, lines)) <= 80
    assert "  Pareto front …" in outcome.err.splitlines()


def test_long_lists_are_cut_in_tables_only(call: Call, tmp_path: Path) -> None:
    """A table shows twenty mappings and how many more the document has."""
    path = tmp_path / "r.json"
    out = call("map", TINY, *EYERISS, "--best", "23", "--out", path).out
    assert "3 more" in out
    assert len(json.loads(path.read_text())["layers"][0]["best"]["mappings"]) == 23


def test_front_proves_what_the_search_left_open(call: Call) -> None:
    """A search that stops at a wide gap is completed by the front: its proof becomes the layer's."""
    args = ("map", "gemm:M=8,N=4,K=8", *EYERISS, "--gap", "90%", "-f", "json")
    assert call(*args).document["layers"][0]["status"] == "feasible"
    layer = valid(call(*args, "--pareto").document)["layers"][0]
    assert (layer["status"], layer["gap"], layer["solver"]) == ("optimal", 0, "branch")
    assert layer["trace"][-1]["source"] == "front"
    assert layer["trace"][-1]["gap"] == 0


def test_csv_beside_a_document(call: Call, tmp_path: Path) -> None:
    """CSV goes to stdout where the document goes to a file."""
    assert call("map", TINY, *EYERISS, "--pareto", "-f", "csv", "--out", "r.json").code == 0
    assert json.loads((tmp_path / "r.json").read_text())["layers"][0]["front"]["complete"]


def test_no_time_is_not_complete(call: Call, tmp_path: Path) -> None:
    """Without time nothing is found, nothing is claimed, and the document holds."""
    outcome = call("map", TINY, *EYERISS, *ALL, "-f", "json", "-t", "0.000001", "--out", "r.json")
    assert outcome.code == 4
    (layer,) = valid(outcome.document)["layers"]
    assert layer["front"] == {"complete": False, "wall_s": 0.0, "points": []}
    assert not layer["best"]["complete"]
    assert layer["optima"]["count"] == 0
    assert call("check", "r.json").code == 0


def test_time_limit_covers_the_front(call: Call, tmp_path: Path) -> None:
    """A front that takes longer ends within the limit, and is not complete."""
    began = time.monotonic()
    args = ("-t", "2", "--pareto", "-f", "json", "--out", "r.json")
    outcome = call("map", LONG, *EYERISS, *args)
    assert time.monotonic() - began < 5 + delay()
    assert outcome.code == 0
    (layer,) = valid(outcome.document)["layers"]
    assert layer["front"]["complete"] is False
    assert layer["front"]["points"]
    assert min(point["edp"] for point in layer["front"]["points"]) == layer["value"]
    assert call("check", "r.json").code == 0


def test_signal_returns_the_front_so_far(tmp_path: Path) -> None:
    """Within two seconds of Ctrl-C the layer's answer is printed with an incomplete front."""
    args = (*EYERISS, "--gap", "99%", "-f", "json", "--log", "log")
    process = start(tmp_path, "map", LONG, *args, "--pareto")
    log = tmp_path / "log"
    wait_until(lambda: log.exists() and "  Pareto front …" in log.read_text(), process)
    time.sleep(0.7)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert time.monotonic() - sent < 2 + delay()
    assert outcome.code == 0
    (layer,) = valid(outcome.document)["layers"]
    assert layer["status"] == "feasible"
    assert layer["front"]["complete"] is False
    assert layer["front"]["points"]


def test_deaf_search_is_left_behind(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A front that does not heed its limit is given up; the layer's own mapping is all of it."""
    release = threading.Event()
    monkeypatch.setattr(f"{SEARCHES}.pareto_front", lambda *_: release.wait(20))
    began = time.monotonic()
    outcome = call("map", TINY, *EYERISS, "--pareto", "-f", "json", "-t", "3")
    release.set()
    assert time.monotonic() - began < 5 + delay()
    assert outcome.code == 0
    (layer,) = valid(outcome.document)["layers"]
    assert (layer["status"], layer["front"]["complete"]) == ("optimal", False)
    assert [point["mapping"] for point in layer["front"]["points"]] == [layer["mapping"]]
    assert "Pareto front: the search did not stop in time" in layer["message"]


def test_crash_does_not_lose_the_layer(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception inside one search is told; the layer and the other searches stay."""

    def crash(*_: object) -> AnswerSet:
        raise RuntimeError("broken")

    monkeypatch.setattr(f"{SEARCHES}.pareto_front", crash)
    (layer,) = valid(call("map", TINY, *EYERISS, *ALL, "-f", "json").document)["layers"]
    assert (layer["status"], layer["message"]) == ("optimal", "Pareto front: RuntimeError: broken")
    assert layer["front"]["complete"] is False
    assert layer["best"]["complete"] is True


def test_infeasible_layers_have_an_empty_front(call: Call) -> None:
    """Where no mapping exists that is the whole answer to every question."""
    outcome = call("map", TINY, *EYERISS, *ALL, "-f", "json", "--constraint", "cycles<=1")
    assert outcome.code == 3
    (layer,) = valid(outcome.document)["layers"]
    assert (layer["front"]["complete"], layer["front"]["points"]) == (True, [])
    assert (layer["optima"]["complete"], layer["optima"]["count"]) == (True, 0)


@pytest.fixture(scope="module")
def solved() -> tuple[LayerProblem, LayerResult, AnswerSet]:
    """A small problem with its optimum and its front."""
    problem = problem_of()
    return problem, solve(problem), pareto_front(problem)


def joined(problem: LayerProblem, result: LayerResult, answers: AnswerSet) -> LayerResult:
    """A minute after the layer's search began."""
    return adopted(result, answers, problem, Limits(started=time.monotonic() - 60), "front")


def worse(result: LayerResult, answers: AnswerSet, origin: Origin = Origin.EXACT) -> LayerResult:
    """A result that ended with the last point of a front, which has this origin."""
    solution = answers.solutions[-1]
    value = solution.evaluation.energy * solution.evaluation.cycles
    trace = tuple(replace(point, origin=origin) for point in result.trace)
    return replace(
        result,
        status=Status.FEASIBLE,
        answer=solution.mapping,
        evaluation=solution.evaluation,
        key=value,
        bound=Fraction(1),
        trace=trace,
    )


def test_better_mapping_becomes_the_layers(solved: tuple[LayerProblem, LayerResult, AnswerSet]) -> None:
    """What a complete front finds and proves is the layer's answer; an incomplete one proves nothing."""
    problem, result, front = solved
    proven = joined(problem, worse(result, front), front)
    assert (proven.status, proven.key, proven.bound) == (Status.OPTIMAL, result.key, result.key)
    merged = joined(problem, worse(result, front), replace(front, complete=False))
    assert (merged.status, merged.key, merged.bound) == (Status.FEASIBLE, result.key, Fraction(1))
    assert all(answer.wall_seconds >= answer.trace[-1].seconds >= 60 for answer in (proven, merged))
    assert joined(problem, result, front) == result


def test_front_answers_what_was_unknown(solved: tuple[LayerProblem, LayerResult, AnswerSet]) -> None:
    """Without any mapping before, a front gives one, or proves that there is none."""
    problem, result, front = solved
    unknown = replace(result, status=Status.UNKNOWN, answer=None, evaluation=None, key=None, bound=None)
    assert joined(problem, unknown, front).status is Status.OPTIMAL
    empty = joined(problem, unknown, AnswerSet((), True))
    assert (empty.status, empty.message) == (Status.INFEASIBLE, "no mapping satisfies all constraints")
    assert joined(problem, unknown, AnswerSet((), False)) == unknown


@pytest.mark.parametrize("contradiction", ["bound", "front"])
def test_contradictions_are_errors(
    solved: tuple[LayerProblem, LayerResult, AnswerSet], contradiction: str
) -> None:
    """A bound above a confirmed value, or a complete front that lacks a known mapping, never passes."""
    problem, result, front = solved
    if contradiction == "bound":
        wrong = worse(result, front)
        assert wrong.key is not None
        merged = joined(problem, replace(wrong, bound=wrong.key), front)
    else:
        merged = joined(problem, result, AnswerSet(front.solutions[-1:], True))
    assert (merged.status, merged.bound) == (Status.ERROR, None)
    assert "value" in merged.message


def test_nothing_excuses_a_contradiction(solved: tuple[LayerProblem, LayerResult, AnswerSet]) -> None:
    """A value below a complete front is an error, also where a mapping was given."""
    problem, result, front = solved
    given = replace(worse(result, front, Origin.GIVEN), key=Fraction(1), bound=None)
    assert joined(problem, given, front).status is Status.ERROR


def test_undominated() -> None:
    """Of equal points one stays, dominated ones go, and cycles increase."""
    answers = best_mappings(problem_of(), 20)
    kept = undominated([*answers.solutions, *answers.solutions])
    pairs = [(kept_solution.evaluation.energy, kept_solution.evaluation.cycles) for kept_solution in kept]
    for solution in answers.solutions:
        point = solution.evaluation
        assert any(energy <= point.energy and cycles <= point.cycles for energy, cycles in pairs)
    assert sorted(pairs, key=lambda pair: (pair[1], -pair[0])) == pairs
    assert sorted(pairs, reverse=True) == pairs


def test_second_objective(call: Call, tmp_path: Path) -> None:
    """Among the mappings of the least cycles, the one of the least energy; another solver confirms both."""
    path = tmp_path / "r.json"
    args = ("map", TINY, "-a", "nvdla-256", "-o", "cycles", "--then", "energy", "-q", "--out", path)
    outcome = call(*args)
    assert outcome.code == 0
    assert "least energy: " in outcome.out
    document = valid(json.loads(path.read_text()))
    assert document["settings"]["then"] == "energy"
    (layer,) = document["layers"]
    problem = layer_problem(parse_layer(TINY)[1], load_engine("nvdla-256"), parse_objective("cycles"))
    expected = min(
        solution.evaluation.energy
        for solution in pareto_front(problem).solutions
        if solution.evaluation.cycles == layer["value"]
    )
    assert layer["then"]["status"] == "optimal"
    assert Fraction(layer["then"]["value_exact"]) == Fraction(layer["then"]["bound_exact"]) == expected
    assert Fraction(layer["metrics"]["energy_pj_exact"]) == expected
    proven = call("check", path, "--prove", "-f", "json", "-q")
    assert proven.code == 0
    assert "energy after it: proves" in proven.document["layers"][0]["proof"]["message"]


THEN_LIES: dict[str, tuple[dict[str, Any], str]] = {
    "value": ({"value": 1, "value_exact": "1"}, "then.value: 1, the layer's mapping has"),
    "status": ({"status": "feasible"}, "then.status: feasible, but value and bound are equal"),
    "bound": ({"bound": 1}, "then.bound: 1, but bound_exact is"),
    "bound above": ({"bound_exact": "9" * 30}, "above the value"),
}


@pytest.mark.parametrize(("lie", "told"), THEN_LIES.values(), ids=THEN_LIES)
def test_lies_about_a_second_objective(call: Call, tmp_path: Path, lie: dict[str, Any], told: str) -> None:
    """Whatever does not fit the mapping or itself is found."""
    path = tmp_path / "r.json"
    call("map", TINY, "-a", "nvdla-256", "-o", "energy", "--then", "cycles", "-q", "--out", path)
    document = json.loads(path.read_text())
    document["layers"][0]["then"].update(lie)
    path.write_text(json.dumps(document))
    outcome = call("check", path, "-f", "json")
    assert outcome.code == 5
    assert any(told in fault for fault in outcome.document["layers"][0]["faults"])


def test_false_second_bound_is_refuted() -> None:
    """A mapping of the least energy that claims the least cycles without having them is found out."""
    operator, engine = parse_layer("gemm:M=8,N=6,K=8")[1], load_engine("eyeriss-168")
    energy, cycles = parse_objective("energy"), parse_objective("cycles")
    problem = layer_problem(operator, engine, energy, factors="perfect")
    ties = optimal_mappings(problem).solutions
    slow = max(ties, key=lambda tie: tie.evaluation.cycles)
    assert slow.evaluation.cycles > min(tie.evaluation.cycles for tie in ties)
    first = replace(solve(problem, "branch"), answer=slow.mapping, evaluation=slow.evaluation)
    claim = Fraction(slow.evaluation.cycles)
    second = then_record(cycles, replace(first, key=claim, bound=claim))
    layer = layer_record(
        SelectedLayer(operator, ("gemm",)), engine, energy, (), first, "perfect", then=second
    )
    assert not list(further_faults(layer, problem))
    assert prove(claim_of(layer), problem, Limits(seconds=60)).verdict is Verdict.REFUTED


def test_second_objective_must_fit(call: Call) -> None:
    """Energy and cycles only, and two of them."""
    outcome = call("map", TINY, "-a", "nvdla-256", "-o", "edp", "--then", "cycles")
    assert outcome.code == 2
    assert "--then" in outcome.err
    assert call("map", TINY, "-a", "nvdla-256", "--then", "enrgy").code == 2


@pytest.mark.slow
def test_front_by_another_solver(call: Call) -> None:
    """The solver that is asked for finds the front itself."""
    args = ("map", TINY, *EYERISS, "-f", "json", "--pareto")
    layer = valid(call(*args, "--solver", "cpsat").document)["layers"][0]
    expected = call(*args).document["layers"][0]
    assert layer["solver"] == "cpsat"
    assert layer["front"]["complete"] is True
    assert costs(layer["front"]["points"]) == costs(expected["front"]["points"])
