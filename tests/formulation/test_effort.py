"""What searches count: effort of methods that call each other, of parts, and of searches that go on."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

import tilewright as tw
from tilewright.formulation.effort import Effort, EffortLog, MethodEffort
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.mapping.search import LayerResult, LayerSearch
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.text.mapping.effort import effort_lines
from tilewright.solvers.mapping.compiled import descent_kernel
from tilewright.solvers.mapping.compiled.bound_program import BoundProgram
from tilewright.solvers.mapping.compiled.descent_state import BOUNDED, Stack
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree import small_spaces
from tilewright.workloads.mapping.layer_text import parse_layer

SMALL = "gemm:M=16,N=16,K=16"


def clock_of(*seconds: float) -> Any:
    """A clock that says one of these after the other."""
    return iter(seconds).__next__


def solved(method: str, layer: str = SMALL, storage: str = "even", **limits: Any) -> LayerResult:
    """A layer on a preset, by one thread, reproducibly."""
    objective, engine = parse_objective("edp"), load_engine("tpu-edge")
    problem = layer_problem(parse_layer(layer)[1], engine, objective, storage=storage)
    return solve(problem, method, Limits(60, threads=1, deterministic=True, **limits))


def counts(effort: Effort) -> list[MethodEffort]:
    """The methods of an effort, without what a clock says."""
    return [replace(method, seconds=0.0) for method in effort.methods]


def test_a_method_rests_while_another_one_works() -> None:
    """Seconds go to the innermost method at work, counts to the method that is at work when they are made."""
    log = EffortLog()
    clock = clock_of(1, 3, 8, 10)
    with log.at_work("outer", clock) as outer:
        outer.nodes += 5
        with log.at_work("inner", clock):
            log.tally.nodes += 7
        log.tally.trees += 1
    effort = log.effort(20)
    assert effort.methods == (
        MethodEffort("outer", nodes=5, trees=1, seconds=4),
        MethodEffort("inner", nodes=7, seconds=5),
    )
    assert (effort.nodes, effort.trees, effort.nodes_per_second) == (12, 1, 12 / 9)


def test_the_same_method_inside_itself_counts_once() -> None:
    """A method that calls itself, at once or through another one, has each second once."""
    log = EffortLog()
    clock = clock_of(0, 1, 2, 5, 8, 10)
    with log.at_work("a", clock), log.at_work("a", clock), log.at_work("b", clock), log.at_work("a", clock):
        pass
    seconds = {method.method: method.seconds for method in log.effort(100).methods}
    assert seconds == {"a": 1 + 3 + 2, "b": 1 + 3}


def test_a_method_at_work_is_counted_up_to_now() -> None:
    """Effort can be read while a method works, from another thread, and says how long it has worked."""
    log = EffortLog()
    efforts: list[Effort] = []
    with log.at_work("branch", clock_of(2, 9)):
        reader = threading.Thread(target=lambda: efforts.append(log.effort(5)))
        reader.start()
        reader.join()
    assert [method.seconds for method in efforts[0].methods] == [3]


@pytest.mark.parametrize(
    "method", ["auto", "branch", "exhaustive", "annealing", "dmazerunner", "kapla", "soc"]
)
def test_deterministic_runs_count_alike(method: str) -> None:
    """Two reproducible searches have equal counts, with nodes of the method that was asked for."""
    layer = "gemm:M=4,N=4,K=4" if method == "exhaustive" else SMALL
    first, second = solved(method, layer), solved(method, layer)
    assert counts(first.effort) == counts(second.effort)
    assert first.effort.nodes > 0
    assert {effort.method for effort in first.effort.methods} <= {
        "branch" if method == "auto" else method,
        "storage patterns",
        "annealing",
    }
    assert first.effort.peak_memory_bytes > 2**20


@pytest.mark.parametrize("storage", ["even", "uneven"])
def test_nodes_are_those_that_programs_bound(monkeypatch: pytest.MonkeyPatch, storage: str) -> None:
    """The nodes of branch and bound are those that its programs and the compiled loop bound, with parts."""
    monkeypatch.setattr(small_spaces, "_MOST", 0)  # their decisions are costed without a program
    asked = 0
    bounds = BoundProgram.bounds

    def counted(program: BoundProgram, cells: Any, *others: Any) -> Any:
        nonlocal asked
        asked += cells.shape[1]
        return bounds(program, cells, *others)

    descend = descent_kernel.descend

    def descended(program: Any, decisions: Any, stack: Stack, *others: Any) -> Any:
        nonlocal asked
        before = int(stack.state[BOUNDED])
        reason = descend(program, decisions, stack, *others)
        asked += int(stack.state[BOUNDED]) - before
        return reason

    monkeypatch.setattr(descent_kernel, "descend", descended)
    monkeypatch.setattr(BoundProgram, "bounds", counted)
    effort = solved("branch", storage=storage).effort
    assert effort.nodes == asked
    assert effort.trees >= 1
    assert effort.table_bytes > 0


def test_a_search_that_goes_on_counts_on() -> None:
    """The effort of a search that continues an earlier one includes that one's."""
    result = solved("branch")
    objective, engine = parse_objective("edp"), load_engine("tpu-edge")
    search = LayerSearch(layer_problem(parse_layer(SMALL)[1], engine, objective), Limits())
    search.resume(result)
    assert counts(search.result("branch", "").effort) == counts(result.effort)
    with search.at_work("branch"):
        search.tally.nodes += 1
    assert search.result("branch", "").effort.nodes == result.effort.nodes + 1


def test_documents_tell_the_effort() -> None:
    """A result's effort stands in its document, survives being written and read, and shows in lines."""
    result = tw.solve(tw.layer(SMALL).on("tpu-edge", "edp"), stop=tw.seconds(30), threads=1)
    assert result.effort is not None
    (method,) = result.effort.methods
    assert method.method == "branch"
    assert method.nodes == result.effort.nodes > 0
    assert json.loads(json.dumps(result.to_dict()))["effort"] == result.effort.model_dump()
    first, memory = effort_lines(result.effort)
    assert first.startswith(f"branch: {method.nodes:,} nodes, ")
    assert memory.startswith("memory of the process: ")
    assert effort_lines(None) == []
