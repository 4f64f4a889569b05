"""Widths of a model on tiled machines: bytes and energies by hand, bounds beside random plans, documents."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from own_engine_files import TILE
from studies.tiled_random import random_problem
from tiled_plans import random_plan

import tilewright as tw
from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.own_costs import (
    LeastPrices,
    TaskShape,
    counted_price,
    task_operator,
)
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan, TiledGoal
from tilewright.formulation.scheduling.tiled.tiling import AtomSize
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import parse_engine
from tilewright.hardware.scheduling.own_engine import own_tile
from tilewright.heuristics.scheduling.tiled.size_menus import balanced_size_list
from tilewright.report.checks.scheduling.tiled.plan import check_plan
from tilewright.report.records.scheduling.tiled.document import PlanDocument
from tilewright.solvers.scheduling.own_costs import MappingQuestion, answered
from tilewright.solvers.scheduling.tiled.joint_bounds import least_key
from tilewright.workloads.mapping.operator import Operator
from tilewright.workloads.network import Network
from tilewright.workloads.scheduling.workload import Part
from tilewright.workloads.scheduling.workload import Workload as Networks

KINDS = """
clock_mhz: 500
grid: {width: 1, height: 1, link: 8 B/cycle}
dram: {bandwidth: 8 B/cycle, energy: 10, ports: left}
engine:
  array: {rows: 4, columns: 4, dataflow: kc}
  buffer: {size: 2 kB, energy: {read: 2, write: 4}}
  mac_energy: 1
  register_energy: 0.25
  vector_lanes: 4
hop_energy: 0
"""
OWN = """
clock_mhz: 500
grid: {width: 1, height: 1, link: 8 B/cycle}
dram: {bandwidth: 8 B/cycle, energy: 10, ports: left}
engine: {arch: tile.yaml, buffer: BUF, vector_lanes: 4}
hop_energy: 0
"""
LAYER = "gemm:M=1,N=4,K=4"


def widened(operator: Operator, *bits: int | None, sums: int | None = None) -> Operator:
    """An operator with bits of its tensors, in their order."""
    tensors = (
        replace(tensor, bits=width, sum_bits=sums if tensor.is_output else None)
        for tensor, width in zip(operator.tensors, bits, strict=True)
    )
    return replace(operator, tensors=tuple(tensors))


def workload(text: str, *bits: tuple[int | None, ...], sums: int | None = None) -> tw.Workload:
    """A model whose layers state their widths."""
    graph = tw.workload(text).networks.parts[0].network
    layers = [
        replace(layer, operator=widened(layer.operator, *own, sums=sums))
        for layer, own in zip(graph.layers, bits, strict=True)
    ]
    network = Network(graph.name, layers, graph.links, outputs=graph.outputs)
    return tw.Workload(Networks("widths", (Part("widths", network),)))


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    """A machine of one tile."""
    (tmp_path / "tile.yaml").write_text(TILE)
    (tmp_path / "grid.yaml").write_text(KINDS)
    return tmp_path / "grid.yaml"


def planned(work: tw.Workload, grid: Path, objective: str = "energy", method: str = "ls") -> dict[str, Any]:
    """The document of a plan, in which nothing is wrong."""
    question = work.on(tw.tiled_machine(grid), objective=objective)
    data: dict[str, Any] = tw.solve(question, method=method, stop=tw.seconds(20), threads=1).to_dict()
    assert not faults(data)
    return data


def faults(data: dict[str, Any]) -> tuple[str, ...]:
    """What is wrong with the document of a plan."""
    return check_plan(PlanDocument.model_validate_json(json.dumps(data)), "document").faults


def test_bytes_and_energies_of_one_task_are_those_of_a_hand_count(grid: Path) -> None:
    """Inputs of 8 bits, weights of 4 and results of 16: 4, 8 and 8 bytes pass DRAM and links.

    The buffer is written 12 bytes of operands and 8 of results, and read 8 of weights and 4 of inputs by the
    array and 8 of results on their way out.  Registers: 16 steps of 12 bits, and 4 sums of 4 bytes twice.
    """
    metrics = planned(workload(LAYER, (8, 4, 16)), grid)["metrics"]
    assert (metrics["dram_read_bytes"], metrics["dram_write_bytes"]) == (12, 8)
    energy = metrics["energy_by_component_pj"]
    assert energy["dram"] == 20 * 10
    assert energy["buffer"] == (12 + 8) * 4 + (8 + 4 + 8) * 2
    assert energy["registers"] == (16 * 12 / 8 + 4 * 4 * 2) * 0.25
    assert energy["compute"] == 16


def test_a_machine_file_moves_as_many_bits_inside(grid: Path) -> None:
    """The same on a tile that is a machine file, with sums of 32 bits in its registers.

    Buffer, 4 pJ a byte: 12 bytes come, the array reads 4 of inputs and 8 of weights, 8 of results are written
    and read.  Registers, 0.25 pJ a byte: fills of 4 and 8 bytes, reads of 16 and 8, sums of 4 bytes 12 times
    read and 16 times written.  The network counts elements, 24.
    """
    grid.write_text(OWN)
    data = planned(workload(LAYER, (8, 4, 16), sums=32), grid)
    energy = data["metrics"]["energy_by_component_pj"]
    assert energy["buffer"] == (12 + 4 + 8 + 8 + 8) * 4
    assert energy["registers"] == (4 + 8 + 16 + 8 + 28 * 4) * 0.25 + 24 * 0.5
    (kind,) = data["plan"]["mappings"]
    assert kind["bits"] == [8, 4, 16, 32]
    kind["bits"] = [8, 8, 16, 32]
    assert any("none for the task" in fault for fault in faults(data))
    kind["bits"] = [8]
    assert any("expected none or 4" in fault for fault in faults(data))


def test_a_reader_takes_what_its_producer_made(grid: Path) -> None:
    """Between two layers pieces have the producer's width, 4 bits; odd numbers of halves are whole bytes."""
    chain = grid.with_name("chain.yaml")
    chain.write_text(
        "- {name: one, layer: 'gemm:M=1,N=3,K=4'}\n"
        "- {name: two, layer: 'gemm:M=1,N=4,K=3', reads: {A: one}}\n"
    )
    data = planned(workload(str(chain), (8, 8, 4), (16, 8, 8)), grid)
    metrics = data["metrics"]
    assert metrics["dram_read_bytes"] == 4 + 12 + 12
    assert metrics["dram_write_bytes"] == 4
    # three halves of bytes between the layers take two whole ones: written once, read by the next layer's
    # array as 3 elements of 2 bytes
    operands, results = 4 + 12 + 12, 2 + 4
    reads = (12 + 4) + (12 + 3 * 2) + 4
    assert metrics["energy_by_component_pj"]["buffer"] == (operands + results) * 4 + reads * 2


def test_eight_bits_are_the_same_as_none(grid: Path) -> None:
    """Widths that are the machine's change no value, under atoms and under trees."""
    layer = "conv:K=8,C=4,P=8,Q=8,R=3,S=3"
    for method in ("ls", "set"):
        plain = planned(tw.workload(layer), grid, "edp", method)
        stated = planned(workload(layer, (8, 8, 8)), grid, "edp", method)
        assert plain["value"] == stated["value"]
        assert plain["bound"] == stated["bound"]


def test_a_changed_width_is_another_problem(grid: Path) -> None:
    """A width of a document that is changed is noticed: by the hash, and as pieces that come in part."""
    data = planned(workload(LAYER, (8, 4, 16)), grid)
    data["problem"]["network"]["operators"][0]["tensors"][0]["bits"] = 16
    told = " | ".join(faults(data))
    assert "input_hash" in told
    assert "illegal plan" in told


def random_widths(problem: TiledProblem, rng: random.Random) -> TiledProblem:
    """The problem with widths of its layers drawn at random."""
    layers = []
    for layer in problem.network.layers:
        bits = [rng.choice([None, 4, 8, 12, 16, 32]) for _ in layer.operator.tensors]
        layers.append(replace(layer, operator=widened(layer.operator, *bits)))
    network = problem.network
    return replace(problem, network=Network(network.name, layers, network.links, outputs=network.outputs))


def check_plans(seed: int) -> int:
    """Random plans of a random problem with widths, judged, beside the bounds; how many there were."""
    rng = random.Random(seed)
    problem = random_widths(random_problem(seed), rng)
    goal, least = TiledGoal(problem), least_key(problem)
    count = 0
    for _ in range(2):
        sizes: list[AtomSize] = [
            rng.choice(balanced_size_list(problem, unit, rng.choice([1, problem.machine.engines]), most=60))
            for unit in problem.units
        ]
        try:
            dag = problem.dag(sizes)
            if dag.tasks > 1500:
                continue
            plan = random_plan(rng, problem, dag)
        except InputError:
            continue
        count += 1
        assert least <= goal.judge(AtomicPlan(dag, plan)).key
    return count


def test_no_random_plan_undercuts_the_bounds() -> None:
    """On random networks, machines, objectives and widths."""
    assert sum(check_plans(seed) for seed in range(9)) >= 4


@pytest.mark.slow
def test_no_random_plan_of_many_undercuts_the_bounds() -> None:
    """As by default, on many more problems."""
    assert sum(check_plans(seed) for seed in range(1000, 1500)) >= 200


@pytest.mark.parametrize("seed", range(3))
def test_no_mapping_undercuts_the_least_prices(seed: int) -> None:
    """What a task of stated widths takes at least is at most what its best mappings take, whole or halved."""
    rng = random.Random(seed)
    tile = own_tile(parse_engine(TILE, "tile.yaml", "tile"), "BUF")
    bits = [rng.choice([0, 4, 8, 16]) for _ in range(3)]
    sums = rng.choice([0, 16, 32])
    trips = [1, 1, 2 * rng.randint(1, 3), rng.randint(1, 5), rng.randint(1, 4), 1, 1, 1, 1, 1, 1, 1]
    half = [*trips]
    half[2] //= 2
    (least,) = LeastPrices().prices(tile, [TaskShape.of(trips, (*bits, sums))])
    for shape, times in ((TaskShape.of(trips, (*bits, sums)), 1), (TaskShape.of(half, (*bits, sums)), 2)):
        for metric in ("cycles", "energy"):
            answer = answered(MappingQuestion(task_operator(shape), tile.inside, metric), Limits())
            assert answer is not None
            assert answer.mapping is not None
            price = counted_price(tile, shape, answer.mapping)
            assert least.cycles <= times * price.cycles
            assert least.buffer + least.inside <= times * (price.buffer + price.inside) + 1e-6
