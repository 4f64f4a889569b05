"""The study beside AccelForge: one machine for both programs, and mappings counted by both."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from effort import effort
from hypothesis import given, settings
from hypothesis import strategies as st
from studies.beside_accelforge import converted
from studies.beside_accelforge_cases import CASES, MACHINES, Case, containers_of, workload_text
from studies.beside_accelforge_nodes import from_peer, to_peer
from studies.beside_accelforge_runner import OBJECTIVES, mapping_text, nodes_of

from tilewright.formulation.mapping.cost import cost_model
from tilewright.formulation.mapping.evaluator import evaluate_mapping
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.mapping.operators import gemm


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """The study's NVDLA."""
    return load_engine(str(converted(CASES[0], tmp_path)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases_are_read_by_both(case: Case, tmp_path: Path) -> None:
    """Each machine carries over without a loss that changes an answer, with the axes that its file names.

    Each layer becomes an einsum with its bounds and its tensors' indices.
    """
    engine = load_engine(str(converted(case, tmp_path)))
    axes = {axis.name for level in engine.levels if level.fanout for axis in level.fanout.axes}
    containers, compute = containers_of(case.file)
    assert (set(containers), compute) == (axes, "MAC")
    workload = yaml.safe_load(workload_text(case.operator))["workload"]
    bounds = {dim.lower(): bound for dim, bound in case.operator.bounds.items() if bound > 1}
    shape = workload["iteration_space_shape"]
    assert shape == {dim: f"0 <= {dim} < {bound}" for dim, bound in bounds.items()}
    (einsum,) = workload["einsums"]
    for access, tensor in zip(einsum["tensor_accesses"], case.operator.tensors, strict=True):
        assert access["name"] == tensor.name
        touched = {dim for index in access["projection"].values() for dim in index.split(" + ")}
        assert touched == {dim.lower() for dim in tensor.dims} & set(bounds)
    assert case.objective in OBJECTIVES


def test_cases_are_of_every_kind() -> None:
    """Twelve cases: products, 3x3, 1x1, depthwise and attention on five machines for three objectives."""
    assert len(set(CASES)) == 12
    assert {case.about for case in CASES} == {"product", "3x3", "1x1", "depthwise", "attention"}
    assert {case.machine for case in CASES} == {"nvdla", "simple", "toy", "eyeriss", "tpu"}
    assert {case.objective for case in CASES} == {"energy", "cycles", "edp"}


def test_stores_move_past_the_loops_that_mean_the_same() -> None:
    """A store moves behind loops that touch its tensor, or before those that do not, and an array before the
    loops around it; the outermost stores stay."""
    operator = parse_layer("gemm:M=8,N=8,K=8")[1]
    outermost = [{"store": name, "level": "DRAM"} for name in "ABC"]
    theirs = [
        *outermost,
        {"store": "A", "level": "GLB"},
        {"temporal": "M", "tile": 4},
        {"temporal": "N", "tile": 4},
        {"spatial": "K", "tile": 4, "axis": "x"},
    ]
    assert [*from_peer(theirs, operator)] == [[*outermost, theirs[4], theirs[3], *theirs[5:]]]
    ours = [
        *outermost,
        {"temporal": "K", "tile": 4},
        {"temporal": "M", "tile": 4},
        {"spatial": "K", "tile": 1, "axis": "x"},
        {"store": "B", "level": "REG"},
    ]
    there = [
        *outermost,
        {"spatial": "K", "tile": 2, "axis": "x"},
        {"temporal": "K", "tile": 1},
        {"store": "B", "level": "REG"},
        {"temporal": "M", "tile": 4},
    ]
    assert [*to_peer(ours, operator)] == [there, there]


def test_stores_make_way_for_an_array() -> None:
    """A store between a loop that touches its tensor and an array keeps more, so that an inner one stays."""
    operator = parse_layer("gemm:M=8,N=8,K=8")[1]
    outermost = [{"store": name, "level": "DRAM"} for name in "ABC"]
    loop = {"temporal": "M", "tile": 1}
    between, array = {"store": "C", "level": "GLB"}, {"spatial": "K", "tile": 1, "axis": "x"}
    inner = {"store": "B", "level": "REG"}
    readings = [*to_peer([*outermost, loop, between, array, inner], operator)]
    assert readings == [[*outermost, loop, between, array, inner], [*outermost, between, array, inner, loop]]


def test_windows_have_several_readings() -> None:
    """A store of inputs may stay before loops that touch it; one of weights before one that does not."""
    operator = parse_layer("conv:K=4,C=4,P=4,Q=4,R=3,S=3")[1]
    nodes = [
        *({"store": name, "level": "DRAM"} for name in "IWO"),
        {"store": "I", "level": "GLB"},
        {"store": "W", "level": "GLB"},
        {"temporal": "P", "tile": 1},
        {"temporal": "C", "tile": 1},
    ]
    readings = [*from_peer(nodes, operator)]
    assert sorted(reading.index(nodes[3]) for reading in readings) == [3, 5, 6]
    assert all(reading.index(nodes[4]) < reading.index(nodes[5]) for reading in readings)


@settings(max_examples=effort(40))
@given(st.permutations("MNK"), st.permutations("MNK"), st.integers(0, 3), st.integers(0, 3))
def test_moved_stores_cost_the_same_here(outer: list[str], inner: list[str], first: int, second: int) -> None:
    """Counted here, a mapping spends what it spends after its way to AccelForge and back."""
    operator = parse_layer("gemm:M=8,N=8,K=8")[1]
    engine = load_engine(str(MACHINES / "free-3-levels.yaml"))
    names = [level.name for level in engine.levels]
    stores = {tensor: {"store": tensor, "level": names[1]} for tensor in "ABC"}
    nodes: list[dict[str, Any]] = [{"store": tensor, "level": names[0]} for tensor in "ABC"]
    for place in range(4):
        nodes += [
            stores[tensor]
            for tensor, at in zip("ABC", sorted((first, second, 3)), strict=True)
            if at == place
        ]
        nodes += [{"temporal": dim, "tile": 4} for dim in outer[place : place + 1]]
    nodes += [{"store": tensor, "level": names[2]} for tensor in "ABC"]
    nodes += [{"temporal": dim, "tile": 1} for dim in inner]
    model = cost_model("hierarchy")
    before = evaluate_mapping(operator, engine, model, Mapping.from_data(nodes))
    assert before.violations == ()
    for reading in to_peer(nodes, operator):
        (back,) = from_peer(reading, operator)
        after = evaluate_mapping(operator, engine, model, Mapping.from_data(back))
        assert (after.violations, after.energy) == ((), before.energy)


def test_mappings_are_written_for_accelforge() -> None:
    """Stores, loops and arrays become nodes with their components, and the einsum is computed at the end."""
    nodes = [
        {"store": "A", "level": "DRAM"},
        {"temporal": "M", "tile": 4},
        {"spatial": "K", "tile": 1, "axis": "x"},
    ]
    assert mapping_text(nodes, {"x": "PE"}, "MAC").splitlines() == [
        "mapping:",
        "  nodes:",
        "  - !Storage {tensors: [A], component: DRAM}",
        "  - !Temporal {rank_variable: m, tile_shape: 4}",
        "  - !Spatial {rank_variable: k, tile_shape: 1, name: x, component: PE}",
        "  - !Compute {einsum: Layer, component: MAC}",
    ]


def test_its_nodes_are_a_legal_mapping_here(engine: Engine) -> None:
    """Storage, loops and array of AccelForge's tree become a mapping with the same DRAM traffic."""

    def node(kind: str, **fields: object) -> object:
        return type(kind, (SimpleNamespace,), {})(**fields)

    tree = SimpleNamespace(
        nodes=[
            node("Storage", tensors=["C", "B", "A"], component="MainMemory"),
            node("Reservation"),
            node("Temporal", rank_variable="k", tile_shape=192),
            node("Storage", tensors=["A"], component="GlobalBuffer"),
            node("Temporal", rank_variable="n", tile_shape=32),
            node("Storage", tensors=["B", "C"], component="GlobalBuffer"),
            node("Spatial", rank_variable="k", tile_shape=1, name="reuse_output"),
            node("Spatial", rank_variable="n", tile_shape=1, name="reuse_input"),
            node("Storage", tensors=["B"], component="Register"),
            node("Temporal", rank_variable="m", tile_shape=1),
            node("Compute", component="MAC"),
        ]
    )
    operator = gemm(m=16, n=64, k=384)
    mapping = Mapping.from_data(nodes_of(tree))
    evaluation = evaluate_mapping(operator, engine, cost_model("hierarchy"), mapping)
    assert evaluation.violations == ()
    reads = {row.tensor: row.reads for row in evaluation.accesses if row.level == "MainMemory"}
    assert (reads["A"], reads["B"]) == (16 * 384, 64 * 384)
