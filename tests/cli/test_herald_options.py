"""Herald's parameters on the command line: those of its scheduler, and the granularity of partitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import Call
from graphs import problem_of
from systems import LAYERS, SYSTEM

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Origin
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import Option, ScheduleObjective
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleSearch
from tilewright.hardware.scheduling.herald import classes
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.herald.registry import METHODS


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small model, a small system, a class with nine partitions, and cost tables of their own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(classes.CLASSES, "edge", AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2))
    (tmp_path / "model.yaml").write_text(LAYERS)
    (tmp_path / "system.yaml").write_text(SYSTEM)


def outcome(text: str) -> ScheduleSearch:
    """Eight equal layers that prefer the first engine."""
    own = (Option(0, 4, 1), Option(1, 5, 1))
    search = ScheduleSearch(
        ScheduleGoal(problem_of([[own] * 4, [own] * 4]), ScheduleObjective.MAKESPAN), Limits(threads=1)
    )
    run_method(search, METHODS.make(text), text)
    assert search.answer is not None
    assert not evaluate_schedule(search.problem.instance, search.answer).violations
    return search


def test_options_have_their_effect() -> None:
    """Without feedback nothing leaves the preferred engine; a large factor ends as soon as none is idle."""
    assert outcome("herald[feedback=off]").key == 32
    assert outcome("greedy").key == 32
    assert outcome("herald[unbalance=1e9]").key == 28
    loads, schedules = outcome("herald[feedback=loads]").key, outcome("herald").key
    assert loads is not None
    assert schedules is not None
    assert max(loads, schedules) <= 20
    for order in ("depth-first", "breadth-first"):
        sources = {
            point.source
            for point in outcome(f"herald[order={order}]").trace
            if point.origin is Origin.HEURISTIC
        }
        assert sources == {f"herald, {order}"}
    for text in ("idle=printed", "idle=off", "metric=energy", "patience=1"):
        outcome(f"herald[{text}]")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("herald[ordr=both]", "did you mean 'order'"),
        ("herald[unbalance=0.5]", "at least 1"),
        ("herald[idle=on]", "idle"),
        ("cpsat[x=1]", "takes no options"),
        ("heral", "did you mean 'herald'"),
    ],
)
def test_faults_are_one_line(call: Call, text: str, words: str) -> None:
    """Exit code 2, before anything is computed."""
    out = call("schedule", "model.yaml", "--system", "system.yaml", "-m", text)
    assert (out.code, out.err.count("\n")) == (2, 1)
    assert words in out.err


def test_options_are_listed_and_recorded(call: Call) -> None:
    """``list methods`` explains them, the document has the method as it was asked for."""
    assert "unbalance=1.1" in call("list", "methods").out
    text = "herald[order=depth-first,idle=printed]"
    out = call("schedule", "model.yaml", "--system", "system.yaml", "-m", text, "-f", "json", "--threads", 1)
    assert out.document["settings"]["method"] == text


def test_granularity_of_partitions(call: Call) -> None:
    """Finer steps make a finer grid, never a worse best; the document says which, and is checked by it."""
    common = ("codesign", "model.yaml", "--class", "edge", "--threads", 1, "-f", "json")
    coarse = call(*common).document
    out = call(*common, "--pe-step", 2, "--bandwidth-step", 4, "--out", "c.json")
    assert (coarse["pe_step"], coarse["partitions"]) == (4, 9)
    assert (out.document["pe_step"], out.document["bandwidth_step"], out.document["partitions"]) == (2, 4, 7)
    assert call("check", "c.json").code == 0
    text = Path("c.json").read_text().replace('"pe_step": 2', '"pe_step": 8')
    Path("c.json").write_text(text)
    assert call("check", "c.json").code == 5
    odd = call(*common, "--pe-step", 3)
    assert (odd.code, odd.err.count("\n")) == (2, 1)
    assert "a divisor of 16" in odd.err
