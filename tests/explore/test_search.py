"""Explorations against all designs solved one by one, with limits that strike in the middle."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.api.mapping.exploration import ExploreRequest, answered
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.network_objective import parse_network_objective
from tilewright.hardware.mapping.design_cost import design_quantities
from tilewright.hardware.mapping.design_space import Design, design_space
from tilewright.hardware.mapping.load import load_description
from tilewright.hardware.mapping.variations import parse_variation
from tilewright.report.checks.mapping.explore import explore_faults
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.solvers.mapping import branch
from tilewright.solvers.mapping.solve import solve
from tilewright.solvers.mapping.tree import tree
from tilewright.workloads.catalog import resolve_model

SPM, RF = "levels.SPM.capacity=16kB..64kB*4", "levels.RF.capacity=16B..64B*2"
LAYERS = """\
- {name: a, layer: "conv:N=1,K=8,C=8,P=7,Q=1,R=3,S=1", count: 2}
- {name: b, layer: "gemm:M=1,N=16,K=32"}
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A file of two small layers, one of them twice."""
    path = tmp_path / "layers.yaml"
    path.write_text(LAYERS)
    return str(path)


def requested(model: str, machine: str, axes: tuple[str, ...], **asked: Any) -> ExploreRequest:
    """A question, by the sum of the layers' EDPs unless told otherwise: each layer decides for itself."""
    asked.setdefault("objective", "sum-edp")
    return ExploreRequest(model, machine, tuple(parse_variation(axis) for axis in axes), **asked)


def run(request: ExploreRequest, watcher: Any = None, stop: threading.Event | None = None) -> ExploreDocument:
    import time

    return answered(request, stop or threading.Event(), time.monotonic(), watcher).record


def alone(request: ExploreRequest) -> tuple[list[Design], dict[str, dict[int, Fraction]], dict[str, int]]:
    """Every design solved for itself: keys by layer, and how often each layer counts."""
    space = design_space(*load_description(str(request.machine)), "m", request.axes)
    distinct = resolve_model(str(request.model)).distinct_layers(mac_only=True)
    keys: dict[str, dict[int, Fraction]] = {}
    for layer in distinct:
        keys[layer.layer.name] = {}
        for design in space.designs:
            if design.engine is None:
                continue
            goal = parse_network_objective(request.objective).layer
            result = solve(layer_problem(layer.layer.operator, design.engine, goal), "branch")
            assert result.status in ("optimal", "infeasible")
            if result.key is not None:
                keys[layer.layer.name][design.index] = result.key
    return list(space.designs), keys, {layer.layer.name: layer.count for layer in distinct}


def sums(keys: dict[str, dict[int, Fraction]], counts: dict[str, int]) -> dict[int, Fraction]:
    shared = set.intersection(*(set(indices) for indices in keys.values()))
    return {index: sum(counts[name] * keys[name][index] for name in keys) for index in shared}  # type: ignore[misc]


SPACES = [
    ("dmazerunner-256", (SPM, RF), "sum-edp"),
    pytest.param(
        "dmazerunner-256", ("levels.SPM.fanout.axes.pe.size=16..64*2", RF), "energy", marks=pytest.mark.slow
    ),
    ("dmazerunner-256", ("compute.mac_energy=0.01,0.5,2", "levels.DRAM.energy=50,200"), "sum-ed2p"),
    ("tpu-edge", ("levels.0.bandwidth=1 B/cycle..16 B/cycle*4", "levels.1.capacity=4kB..64kB*4"), "cycles"),
    pytest.param(
        "tpu-edge",
        ("levels.1.capacity:levels.1.energy=8kB:1,32kB:2,128kB:4",),
        "sum-edp",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize(("machine", "axes", "objective"), SPACES)
def test_best_and_bounds_are_those_of_all_designs(
    model: str, machine: str, axes: tuple[str, ...], objective: str
) -> None:
    """The best design is the best of all, and no bound is above the truth."""
    request = requested(model, machine, axes, objective=objective, each_layer=True)
    result = run(request)
    _, keys, counts = alone(request)
    values = sums(keys, counts)
    assert result.complete
    assert result.best is not None
    assert result.best.optimal
    assert Fraction(result.best.value_exact) == min(values.values())
    assert result.best.index == min(values, key=lambda index: (values[index], index))
    for record in result.designs:
        if record.bound_exact is not None and record.index in values:
            assert Fraction(record.bound_exact) <= values[record.index]
        if record.status == "solved":
            assert record.value_exact == str(values[record.index])
        if record.status == "discarded":
            assert values[record.index] > min(values.values())
    for layer_best in result.layer_bests:
        assert Fraction(layer_best.value_exact) == min(keys[layer_best.layer].values())
    assert not explore_faults(result, "document")


def test_runs_search_the_same_cells(model: str) -> None:
    """Neither clocks nor what another run has left decide what is searched."""
    first, second = (
        run(requested(model, "dmazerunner-256", (SPM, RF))).model_dump(exclude={"wall_s", "best"})
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("machine", "axes"),
    [
        ("dmazerunner-256", ("levels.SPM.fanout.axes.pe.size=32,64", SPM, "levels.RF.capacity=32B,64B")),
        ("tpu-edge", ("levels.0.bandwidth=1 B/cycle,4 B/cycle", "levels.1.capacity=4kB,64kB")),
    ],
)
def test_hard_searches_of_designs_prove_the_same(
    model: str, machine: str, axes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches that ask for help, from annealing or perfect factors, end as those of each design alone."""
    monkeypatch.setattr(tree, "_EASY", 0)
    monkeypatch.setattr(tree, "_PLAIN", 0)
    monkeypatch.setattr(tree, "_PLAIN_PRODUCT", 0)
    monkeypatch.setattr(branch, "_ANNEALED", 0.05)
    request = requested(model, machine, axes, every=True)
    result, (_, keys, counts) = run(request), alone(request)
    assert not any(design.message for design in result.designs)
    assert {design.index: design.value_exact for design in result.designs if design.value_exact} == {
        index: str(value) for index, value in sums(keys, counts).items()
    }


@pytest.mark.parametrize("against", ["RF.capacity * 256 + SPM.capacity / 4"])
def test_front_is_that_of_all_designs(model: str, against: str) -> None:
    """No design of the front is missing, and none on it is beaten."""
    axes = ("levels.SPM.fanout.axes.pe.size=32,64", *(SPM, RF)[:1], "levels.RF.capacity=16B,64B")
    request = requested(model, "dmazerunner-256", axes, against=against)
    result = run(request)
    designs, keys, counts = alone(request)
    values = sums(keys, counts)
    from tilewright.hardware.mapping.design_cost import design_costs

    costs = dict(enumerate(design_costs(against, designs)))
    assert design_quantities(designs[0])["pes"] == 32
    front = {
        (costs[value], values[value])
        for value in values
        if not any(
            (costs[o], values[o]) != (costs[value], values[value])
            and costs[o] <= costs[value]
            and values[o] <= values[value]
            for o in values
        )
    }
    assert result.front is not None
    assert result.front.complete
    assert {(costs[design], values[design]) for design in result.front.designs} == front


@pytest.mark.slow
def test_every_design_has_a_value(model: str) -> None:
    """With ``every`` beaten designs have values too, all of them right."""
    request = requested(model, "dmazerunner-256", (SPM, RF), every=True)
    result, (_, keys, counts) = run(request), alone(request)
    assert {design.index: design.value_exact for design in result.designs} == {
        index: str(value) for index, value in sums(keys, counts).items()
    }


class Counting:
    """Counts searches, and stops after some."""

    def __init__(self, most: int = 10**9) -> None:
        self.stop, self.cells, self.most = threading.Event(), 0, most

    def goal(self, *_: object) -> None:
        pass

    def reported(self, *_: object) -> None:
        self.cells += 1
        if self.cells >= self.most:
            self.stop.set()


def test_stopped_in_the_middle_and_resumed(model: str, tmp_path: Path) -> None:
    """What is known is told, nothing proven is searched again, and the answer is the same."""
    request = requested(model, "dmazerunner-256", (SPM, RF))
    whole, counting = run(request), Counting()
    run(request, counting)
    stored = replace(request, store=tmp_path / "s.sqlite")
    first = Counting(most=2)
    part = run(stored, first, first.stop)
    assert not part.complete
    assert first.cells == 2
    assert not explore_faults(part, "document")
    second = Counting()
    rest = run(stored, second)
    assert rest.complete
    assert second.cells <= counting.cells
    assert rest.totals.cells["kept"] >= 1
    assert whole.best is not None
    assert rest.best is not None
    assert rest.best.value_exact == whole.best.value_exact
    third = Counting()
    again = run(stored, third)
    assert third.cells == 0
    assert again.best == replace_result(again, rest)


def replace_result(again: ExploreDocument, rest: ExploreDocument) -> object:
    """The best design of the one with the times of the other."""
    assert again.best is not None
    assert rest.best is not None
    return rest.best.model_copy(update={"result": again.best.result})


def test_time_limit_leaves_bounds(model: str) -> None:
    """A limit that strikes before anything is found leaves a whole document without a best design."""
    result = run(requested(model, "dmazerunner-256", (SPM, RF), seconds=1e-6))
    assert not result.complete
    assert result.best is None
    assert {design.status for design in result.designs} == {"open"}
    assert all(design.bound for design in result.designs)


def test_demands_of_utilization_compare_nothing(model: str) -> None:
    """Under a demand that smaller machines meet more easily the best is still the best."""
    request = requested(
        model, "tpu-edge", ("levels.1.capacity=8kB,64kB",), constraints=("utilization>=0.0001",)
    )
    result = run(request)
    _, keys, counts = alone(request)
    assert result.best is not None
    assert Fraction(result.best.value_exact) == min(sums(keys, counts).values())


@pytest.mark.slow
def test_workers_find_the_same(model: str, tmp_path: Path) -> None:
    """Two worker processes prove the same best design."""
    request = requested(model, "dmazerunner-256", (SPM, RF), store=tmp_path / "s.sqlite")
    result, two = run(request), run(replace(request, jobs=2, store=None))
    assert result.best is not None
    assert two.best is not None
    assert (result.best.value_exact, two.best.optimal) == (two.best.value_exact, True)


REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "dmazerunner_dse.json").read_text())
SHAPES = {
    "conv2_2": "conv:N=4,K=64,C=64,H=56,W=56,R=3,S=3,pad=1",
    "conv5_2": "conv:N=4,K=512,C=512,H=7,W=7,R=3,S=3,pad=1",
}
GRID = {"levels.SPM.capacity": "16kB..1MB*2", "levels.RF.capacity": "16B..1kB*2"}


@pytest.mark.slow
@pytest.mark.parametrize("layer", SHAPES)
def test_designs_of_the_paper(layer: str) -> None:
    """Every one of the 49 designs is at or below what the authors found, and the best is proven."""
    exploration = tw.explore(tw.layer(SHAPES[layer]), "dmazerunner-256", GRID, every=True, layer_limit=20)
    assert exploration.optimal
    for row, (_, _, best, _) in zip(exploration.rows(), REFERENCE["layers"][layer], strict=True):
        if best is not None:
            assert row["value"] <= best * (1 + 1e-12)


@pytest.mark.slow
def test_best_design_of_the_paper() -> None:
    """conv5_2: the best of 49 designs is proven, most of them are never solved."""
    exploration = tw.explore(tw.layer(SHAPES["conv5_2"]), "dmazerunner-256", GRID)
    best = min(row[2] for row in REFERENCE["layers"]["conv5_2"] if row[2] is not None)
    assert exploration.optimal
    assert exploration.value is not None
    assert exploration.value <= best
    assert exploration.record.totals.statuses["discarded"] >= 30
    assert exploration.record.totals.unsearched >= 15
    assert tw.check(exploration).holds


@pytest.mark.slow
def test_both_figures_of_the_paper_s_layers() -> None:
    """The layers' sum, which the authors' table has, is proven; the edp of the totals has a bound."""
    layers = str(Path(__file__).parents[2] / "examples" / "dmazerunner_layers.yaml")
    best = {"levels.RF.capacity": "256 B", "levels.SPM.capacity": "1 MB"}
    grid = {"levels.RF.capacity": "16B..1kB*2", "levels.SPM.capacity": "16kB..1MB*2"}
    summed = tw.explore(layers, "dmazerunner-256", grid, "sum-edp")
    assert summed.optimal
    assert summed.value is not None
    assert summed.value == pytest.approx(33.35e15, rel=1e-3)
    assert sum(row["status"] == "discarded" for row in summed.rows()) >= 40
    totals = tw.explore(layers, "dmazerunner-256", grid, "edp")
    assert not totals.optimal
    assert totals.value is not None
    assert totals.bound is not None
    assert totals.value == pytest.approx(188.4e15, rel=1e-3)
    assert 0.98 < totals.bound / totals.value < 1
    assert {str(value).replace(" ", "") for value in totals.fields.values()} == {
        value.replace(" ", "") for value in best.values()
    }
    assert tw.check(totals).holds
    assert tw.check(summed).holds


def test_axis_of_python_and_display(model: str) -> None:
    """The interface of Python takes lists and tied fields, and shows itself in 80 columns."""
    exploration = tw.explore(
        model, "tpu-edge", {("levels.1.capacity", "levels.1.energy"): [("8 kB", 1), ("64 kB", 2)]}
    )
    assert exploration.fields.keys() == {"levels.1.capacity", "levels.1.energy"}
    assert all(len(line) <= 80 for line in str(exploration).splitlines())
    assert exploration.machine.name.startswith("tpu-edge[")
    assert exploration.mappings.optimal
