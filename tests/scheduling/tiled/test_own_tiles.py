"""Machine files as tiles: a plan by hand, bounds against divided layers, documents, and what is refused."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from own_engine_files import TILE

import tilewright as tw
from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.own_costs import (
    LeastPrices,
    TaskShape,
    counted_price,
    task_operator,
)
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import parse_engine
from tilewright.hardware.scheduling.own_engine import own_tile
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.report.checks.scheduling.tiled.plan import check_plan
from tilewright.report.records.scheduling.tiled.document import PlanDocument
from tilewright.solvers.scheduling.own_costs import MappingQuestion, answered

GRID = """
clock_mhz: 500
grid: {width: 1, height: 1, link: 8 B/cycle}
dram: {bandwidth: 8 B/cycle, energy: 10, ports: left}
engine: {arch: tile.yaml, buffer: BUF, vector_lanes: 4}
hop_energy: 0
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    """A tiled machine of one tile that is a machine file."""
    (tmp_path / "tile.yaml").write_text(TILE)
    (tmp_path / "grid.yaml").write_text(GRID)
    return tmp_path / "grid.yaml"


def planned(grid: Path, model: str, objective: str, method: str = "ls") -> dict[str, Any]:
    """The document of a plan."""
    question = tw.workload(model).on(tw.tiled_machine(grid), objective=objective)
    return tw.solve(question, method=method, stop=tw.seconds(20)).to_dict()


def faults(data: dict[str, Any]) -> tuple[str, ...]:
    """What is wrong with the document of a plan."""
    return check_plan(PlanDocument.model_validate_json(json.dumps(data)), "document").faults


def test_a_plan_of_one_task_costs_what_a_hand_count_says(grid: Path) -> None:
    """The product of 16 steps is one task: 20 operands come, 4 results go, each element moves once inside.

    The buffer is written 20 times and read 20 times by the array, written 4 times and read 4 times for the
    results.  Registers: 20 fills, 16 reads of A, 16 of B, 12 and 16 of C; 24 elements cross the network.
    """
    data = planned(grid, "gemm:M=1,N=4,K=4", "energy")
    energy = data["metrics"]["energy_by_component_pj"]
    assert data["metrics"]["atoms"] == 1
    assert energy["compute"] == 16
    assert energy["buffer"] == (20 + 20 + 4 + 4) * 4
    assert energy["registers"] == 80 * 0.25 + 24 * 0.5
    assert energy["dram"] == 24 * 10
    (kind,) = data["plan"]["mappings"]
    assert kind["trips"] == [1, 1, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1]
    assert kind["proven"]


def test_a_task_takes_the_cycles_of_its_mapping(grid: Path) -> None:
    """Four PEs take a column each: 5 of 20 operands come first, in 2 cycles at 4 bytes a cycle.

    All operands take 5 cycles beside 4 steps; 4 results leave in 1.
    """
    assert planned(grid, "gemm:M=1,N=4,K=4", "makespan")["metrics"]["compute_cycles"] == 2 + 5 + 1


@pytest.mark.parametrize(("clock", "cycles"), [(1500, 24), (400, 7), (333.25, 6)])
def test_cycles_are_those_of_the_clock_of_the_grid(grid: Path, clock: float, cycles: int) -> None:
    """The 8 cycles at the tile's 500 MHz are 24 at 1500 MHz, and 6.4 at 400 MHz: the last counts whole."""
    grid.write_text(GRID.replace("clock_mhz: 500", f"clock_mhz: {clock}"))
    data = planned(grid, "gemm:M=1,N=4,K=4", "makespan")
    assert data["metrics"]["compute_cycles"] == cycles
    assert not faults(data)
    for other in ("500", "0", "1501"):
        data["problem"]["machine"]["engine"]["own"]["clock_mhz"] = other
        assert faults(data)


def test_static_power_of_the_tile_counts_in_every_cycle(grid: Path) -> None:
    """At 500 MHz 1 mW is 2 pJ a cycle and at 1 GHz 1 pJ: the buffer's, and half a mW of each of four PEs.

    The power of the DRAM, which the grid has instead, does not count.
    """
    text = TILE.replace("mac_energy: 1", "mac_energy: 1, static_power: 0.0005")
    text = text.replace("capacity: 2 kB", "capacity: 2 kB\n    static_power: 0.001")
    grid.with_name("tile.yaml").write_text(text.replace("energy: 200", "energy: 200, static_power: 3 W"))
    grid.write_text(GRID.replace("clock_mhz: 500", "clock_mhz: 1000"))
    data = planned(grid, "gemm:M=1,N=4,K=4", "energy")
    metrics = data["metrics"]
    assert metrics["energy_by_component_pj"]["static"] == 3 * metrics["cycles"]
    assert metrics["energy_by_component_pj"]["registers"] == 80 * 0.25 + 24 * 0.5
    assert not faults(data)
    data["problem"]["machine"]["engine"]["static_power"] = 1.0
    assert any("not the tile that tile makes" in fault for fault in faults(data))


def _parts(draw: random.Random, size: int) -> list[int]:
    """A random division into one to three parts."""
    cuts = sorted({draw.randint(1, size) for _ in range(draw.randint(0, 2))} | {size})
    return [b - a for a, b in zip([0, *cuts], cuts, strict=False)]


@pytest.mark.parametrize("seed", range(4))
def test_no_division_undercuts_the_least_prices(seed: int) -> None:
    """What a whole layer takes at least is at most what the best mappings of its parts take together."""
    draw = random.Random(seed)
    text = TILE.replace("size: 4", f"size: {draw.randint(2, 6)}")
    if draw.random() < 0.5:
        text = text.replace("carries: [K]", "carries: [K, P, G]").replace(
            "reduction: false", "reduction: true"
        )
    clock = Fraction(draw.choice((500, 500, 333, 1250)))
    tile = own_tile(parse_engine(text, "tile.yaml", "tile"), "BUF", clock)
    stride = draw.choice((1, 2))
    window = (draw.choice((1, 3)), draw.choice((1, 2)), stride, 1, 1, 1)
    sizes = [draw.randint(1, top) for top in (2, 2, 7, 5, 5, 3)]
    divided = draw.choice(range(6))
    shares = [
        TaskShape.of((*sizes[:divided], part, *sizes[divided + 1 :], *window))
        for part in _parts(draw, sizes[divided])
    ]
    (least,) = LeastPrices().prices(tile, [TaskShape.of((*sizes, *window))])
    for metric in ("cycles", "energy"):
        costs = []
        for share in shares:
            mapping = answered(MappingQuestion(task_operator(share), tile.inside, metric), Limits()).mapping
            assert mapping is not None
            costs.append(counted_price(tile, share, mapping))
        assert least.cycles <= sum(cost.cycles for cost in costs)
        assert least.buffer + least.inside <= sum(cost.buffer + cost.inside for cost in costs) + 1e-6


def test_a_document_stands_on_its_own(grid: Path) -> None:
    """Tile and mappings are in the document; whatever of them is changed or missing is noticed."""
    data = planned(grid, "conv:K=8,C=4,P=8,Q=8,R=3,S=3,stride=2", "edp")
    assert not faults(data)

    def changed(change: Any) -> tuple[str, ...]:
        copy = json.loads(json.dumps(data))
        change(copy)
        return faults(copy)

    assert any("none for the task" in fault for fault in changed(lambda d: d["plan"]["mappings"].pop()))
    assert changed(lambda d: d["plan"]["mappings"][0]["trips"].append(1))
    assert changed(lambda d: d["plan"]["mappings"][0]["mapping"]["nodes"].pop())
    assert changed(lambda d: d["plan"].pop("mappings"))
    assert changed(lambda d: d["problem"]["machine"]["engine"].update(rows=2))
    assert changed(lambda d: d["problem"]["machine"]["engine"]["own"]["arch"].update(mac_energy="2"))


def test_a_plan_of_a_file_can_begin_the_next(grid: Path) -> None:
    """A document of own tiles is a warm start."""
    data = planned(grid, "gemm:M=8,N=8,K=8", "edp", "ls")
    question = tw.workload("gemm:M=8,N=8,K=8").on(tw.tiled_machine(grid), objective="edp")
    again = tw.solve(question, method="ls", warm_starts=[data], stop=tw.seconds(20))
    assert again.value <= data["value"]


@pytest.mark.parametrize("method", ["set", "set-lp", "kapla", "tangram", "chains", "set-all"])
def test_methods_on_trees_take_machine_files(grid: Path, method: str) -> None:
    """Trees are ranked by the least costs of tasks; their plans have mappings, and check."""
    grid.with_name("tile.yaml").write_text(TILE.replace("2 kB", "32 kB"))
    grid.write_text(GRID.replace("width: 1, height: 1", "width: 2, height: 1"))
    grid.with_name("two.yaml").write_text(
        "- {name: a, layer: 'gemm:M=8,N=8,K=8'}\n- {name: b, layer: 'gemm:M=8,N=4,K=8', reads: {A: a}}\n"
    )
    data = planned(grid, str(grid.with_name("two.yaml")), "edp", method)
    assert data["status"] in ("feasible", "optimal")
    assert data["bound"] <= data["value"]
    assert data["plan"]["mappings"]
    assert not faults(data)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "buffer: BUF",
            "buffer: RF",
            "engine.buffer: expected a level of tile inside the outermost one: BUF",
        ),
        ("buffer: BUF, ", "", "engine.buffer: expected a level of tile"),
        ("vector_lanes: 4", "vector_lanes: 4, mac_energy: 1", "engine.mac_energy: expected none beside arch"),
        ("arch: tile.yaml", "arch: dmazerunner-256", "engine.arch: expected the cost model hierarchy"),
        ("arch: tile.yaml, ", "", "engine.array: missing, expected it, or arch"),
        ("arch: tile.yaml", "arch: none.yaml", "engine.arch: .*none.yaml"),
    ],
)
def test_a_wrong_tile_is_one_line(grid: Path, old: str, new: str, message: str) -> None:
    """What cannot be a tile is refused with file, line and field."""
    grid.write_text(GRID.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_tiled_machine(grid)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("energy: 4\n", "energy: 4\n    keeps: [inputs, outputs]\n", "does not store every tensor"),
        ("energy: 4\n", "energy: 4\n    widths: {outputs: 16}\n", "has widths or energies by role"),
        ("energy: 200}", "energy: 200, fanout: {axes: [{name: n, size: 2}]}}", "stands several times"),
        ("element_bits: 8", "element_bits: 4", "expected elements of whole bytes"),
    ],
)
def test_a_level_that_is_no_buffer_is_refused(grid: Path, old: str, new: str, message: str) -> None:
    """A tile's buffer is one memory of whole bytes for all tensors."""
    grid.with_name("tile.yaml").write_text(TILE.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_tiled_machine(grid)


def test_parameters_of_the_tile_belong_to_its_file(grid: Path) -> None:
    """Links change in brackets, the array does not."""
    assert load_tiled_machine(f"{grid}[link=16]").link_rate == 16
    with pytest.raises(InputError, match="expected a change in tile, the machine file of the tile"):
        load_tiled_machine(f"{grid}[array=2x2]")
    machine = load_tiled_machine(grid)
    assert replace(machine, engine=replace(machine.engine, own=None)).content_hash != machine.content_hash
