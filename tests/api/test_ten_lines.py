"""The interface in ten lines: questions, answers, documents, and what they say of themselves."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.cli.main import run

SMALL = "gemm:M=8,N=4,K=8"
STOP = tw.seconds(30) | tw.gap(0.0)

TIMES = ("wall_s", "seconds", "tables_s")


@pytest.fixture(scope="module")
def result() -> tw.MappingResult:
    """A small layer, with all there is to ask for."""
    question = tw.layer(SMALL).on("tpu-edge", objective="edp", pareto=True, best=3, all_optimal=5)
    return tw.solve(question, stop=STOP, threads=1)


@pytest.fixture(scope="module")
def plan() -> tw.Plan:
    """A small workload on a system."""
    return tw.solve(tw.workload(SMALL).on("hda-edge-maelstrom"), stop=tw.seconds(30), threads=1)


def printed(*args: str) -> Any:
    """What the command line prints as JSON."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert run([*args, "--format", "json", "-q", "--threads", "1"]) == 0
    return json.loads(out.getvalue())


def timeless(data: Any) -> Any:
    """The data without what the clock decides: times, effort, and the steps on the way."""
    if isinstance(data, dict):
        return {key: timeless(value) for key, value in data.items() if key not in (*TIMES, "trace", "effort")}
    return [timeless(entry) for entry in data] if isinstance(data, list) else data


def test_a_layer_is_proven(result: tw.MappingResult) -> None:
    """Status, value, bound, gap and exact keys fit together."""
    assert result.status is tw.Status.OPTIMAL
    assert result.value == result.bound
    assert result.gap == 0
    assert result.key is not None
    assert float(result.key) == result.value
    assert result.key == result.bound_key
    assert result.metrics is not None
    assert result.metrics.edp == result.value


def test_values_are_shown_and_keys_exact() -> None:
    """With a root in the objective, value is the shown one, the gap is asked for and told between values."""
    question = tw.layer(SMALL).on("tpu-edge", objective="E^0.5*D^0.5")
    result = tw.solve(question, stop=tw.seconds(30) | tw.gap(0.3), threads=1)
    assert result.value is not None
    assert result.key is not None
    assert result.value == pytest.approx(float(result.key) ** 0.5)
    assert result.gap is not None
    assert result.gap <= 0.3
    assert result.document.record.settings.gap == 0.3


def test_sets_of_mappings(result: tw.MappingResult) -> None:
    """Front, best and optimal mappings are mappings like the result's own."""
    assert len(result.best) == 3
    assert result.front
    assert result.optima
    assert result.mapping is not None
    assert result.best[0].energy_pj == result.mapping.energy_pj
    cycles = [solution.cycles or 0 for solution in result.front]
    assert cycles == sorted(cycles)


def test_layer_is_what_the_command_line_prints(result: tw.MappingResult) -> None:
    """``map LAYER --format json`` prints the document of the same call."""
    args = ("-a", "tpu-edge", "-o", "edp", "--pareto", "--best", "3", "--all-optimal", "--most", "5")
    assert timeless(printed("map", SMALL, *args, "-t", "30")) == timeless(result.document.to_dict())


def test_network_is_what_the_command_line_prints(tmp_path: Path) -> None:
    """``map`` over several layers prints the document of `map_network`; it survives a file and holds."""
    path = tmp_path / "net.yaml"
    path.write_text(f"- {SMALL},name=first\n- gemm:M=4,N=4,K=4,name=second\n- {SMALL},name=third\n")
    demands = ["utilization>=0.01"]
    document = tw.map_network(path, "tpu-edge", constraints=demands, stop=tw.seconds(30), threads=1)
    told = printed("map", str(path), "-a", "tpu-edge", "--constraint", demands[0], "-t", "30")
    assert timeless(told) == timeless(document.to_dict())
    assert document.optimal
    assert (len(document), document["third"], document[1].name) == (2, document["first"], "second")
    assert [row["count"] for row in document.rows()] == [2, 1]
    with pytest.raises(KeyError, match="did you mean 'first'"):
        document["fist"]
    for suffix in ("json", "jsonl", "yaml"):
        document.save(tmp_path / f"r.{suffix}")
        assert timeless(tw.load(tmp_path / f"r.{suffix}").to_dict()) == timeless(document.to_dict())
    assert tw.check(document)


def test_plan_is_what_the_command_line_prints(plan: tw.Plan, tmp_path: Path) -> None:
    """``schedule`` prints the document of the same call; it survives a file, holds and is confirmed."""
    told = printed("schedule", SMALL, "--system", "hda-edge-maelstrom", "-t", "30")
    assert timeless(told) == timeless(plan.to_dict())
    assert (plan.status, plan.gap) == (tw.Status.OPTIMAL, 0)
    plan.save(tmp_path / "s.json")
    again = tw.load(tmp_path / "s.json")
    assert isinstance(again, tw.Plan)
    assert again.rows() == plan.rows()
    assert tw.check(again, prove=True, stop=tw.seconds(30)).holds


def test_check_is_that_of_the_command_line(result: tw.MappingResult, tmp_path: Path) -> None:
    """A lie is found, by the same code and in the same words."""
    data = result.document.to_dict()
    data["layers"][0]["value"] = 1
    path = tmp_path / "r.json"
    path.write_text(json.dumps(data))
    report = tw.check(path)
    assert not report
    assert any("the evaluator finds" in fault for fault in report.faults)
    assert tw.check(data).faults == report.faults
    assert tw.check(result.document.to_dict()).holds
    out = io.StringIO()
    with redirect_stdout(out):
        assert run(["check", str(path), "--format", "json"]) == 5
    assert json.loads(out.getvalue()) == report.to_dict()


def test_evaluating(result: tw.MappingResult, tmp_path: Path) -> None:
    """A mapping costs the same from the result, from its nodes and from its file; demands are judged."""
    question = tw.layer(SMALL).on("tpu-edge", objective="edp")
    assert result.mapping is not None
    result.mapping.save(tmp_path / "m.yaml")
    for given in (result.mapping, result.mapping.rows(), result.mapping.nodes):
        judged = tw.evaluate(given, question)
        assert (judged.legal, judged.outside, judged.value) == (True, None, result.value)
    assert tw.evaluate(tmp_path / "m.yaml").value == result.value
    strict = tw.layer(SMALL).on("tpu-edge", constraints=["cycles<=1"])
    assert tw.evaluate(result.mapping, strict).violations == ("constraint cycles<=1",)


def test_warm_starts_of_every_kind(result: tw.MappingResult) -> None:
    """A result, its document and its mapping all begin a search; the first trace point is theirs."""
    question = tw.layer(SMALL).on("tpu-edge", objective="edp")
    for start in (result, result.document, result.mapping):
        again = tw.solve(question, warm_starts=start, stop=STOP, threads=1)
        assert again.trace[0]["value"] == result.value


Thing = Callable[[tw.MappingResult, tw.Plan], Any]
THINGS: dict[str, Thing] = {
    "machine": lambda result, plan: tw.machine("nvdla-256"),
    "layer": lambda result, plan: tw.layer(SMALL),
    "network": lambda result, plan: tw.network("onnx:resnet50"),
    "system": lambda result, plan: tw.system("hda-edge-maelstrom"),
    "workload": lambda result, plan: tw.workload("ar-vr-a"),
    "mapping": lambda result, plan: result.mapping,
    "result": lambda result, plan: result,
    "document": lambda result, plan: result.document,
    "evaluation": lambda result, plan: tw.evaluate(result.mapping or ""),
    "plan": lambda result, plan: plan,
    "check": lambda result, plan: tw.check(result),
}


@pytest.mark.parametrize("thing", THINGS.values(), ids=THINGS)
def test_things_show_themselves(thing: Thing, result: tw.MappingResult, plan: tw.Plan) -> None:
    """Each has a line of its own, text in 80 columns, HTML for notebooks, rows, and plain data."""
    shown = thing(result, plan)
    assert repr(shown).startswith(f"{type(shown).__name__}(")
    assert "\n" not in repr(shown)
    assert max(map(len, str(shown).splitlines())) <= 80
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"] == str(shown)
    assert bundle["text/html"].startswith("<pre")
    assert "\x1b" not in str(shown) + bundle["text/html"]
    assert all(isinstance(row, dict) for row in shown.rows())
    json.dumps([shown.rows(), shown.to_dict()])


def test_a_result_shows_table_and_loop_nest(result: tw.MappingResult) -> None:
    """Figures, the loop nest and the front are there."""
    text = str(result)
    for part in ("edp", "loop nest", "+= A[m, k] * B[k, n]", "Pareto front"):
        assert part in text
