"""Static power and area in machine files, and the published machines that state them."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.formulation.result import Status
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.describe import engine_tree
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.identity import engine_hash
from tilewright.hardware.mapping.load import load_engine
from tilewright.report.records.mapping.engine import ArchRecord
from tilewright.solvers.mapping.fused.prices import at_price
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.operator import Role
from tilewright.workloads.mapping.operators import gemm

ROWS = json.loads((Path(__file__).parents[1] / "data" / "leaking_rows.json").read_text(encoding="utf-8"))[
    "cases"
]
LEVELS = {
    "MainMemory": "DRAM",
    "GlobalBuffer": "GLB",
    "InputScratchpad": "InputSpad",
    "WeightScratchpad": "WeightSpad",
    "OutputScratchpad": "OutputSpad",
}
FILE = """\
clock_mhz: 200
compute: {{mac_energy: 0.0771647, element_bits: 8{compute}}}
levels:
  - {{name: DRAM, energy: 100, static_power: 0.5 W}}
  - name: GLB
    energy: 5
    capacity: 64 kB
    fanout: {{axes: [{{name: x, size: 3}}, {{name: y, size: 2}}]}}
{glb}
  - {{name: RF, energy: 1, capacity: 16 B, static_power: 1.5e-3, area: 0.01}}
"""


def written(folder: Path, compute: str = "", glb: str = "") -> Engine:
    """The machine of the file above with further fields."""
    path = folder / "own.yaml"
    path.write_text(FILE.format(compute=compute, glb=glb))
    return load_engine(path)


def test_every_instance_leaks_and_takes_area(tmp_path: Path) -> None:
    """Power and area of a level are those of one instance, times the arrays outside it."""
    engine = written(
        tmp_path, ", static_power: 0.000000123456789012345 W, area: 0.002", "    area: 0.1 + capacity / 1 MB"
    )
    assert engine.leakage == {
        "DRAM": Fraction(5, 10) * 10**6 / 200,
        "RF": 6 * Fraction("0.0015") * 10**6 / 200,
        "PE": 6 * Fraction("0.000000123456789012345") * 10**6 / 200,
    }
    assert engine.area == {"GLB": Fraction("0.1625"), "RF": Fraction(6, 100), "PE": Fraction(12, 1000)}
    assert engine.static_power == Fraction("0.5") + 6 * (
        Fraction("0.0015") + Fraction("0.000000123456789012345")
    )
    tree = " ".join(engine_tree(engine).split())
    assert "static power 0.509 W (DRAM 0.5, RF 0.009, PE 7.407e-07)" in tree
    assert "area 0.2345 mm2 (GLB 0.1625, RF 0.06, PE 0.012)" in tree


def test_records_and_hashes_keep_both(tmp_path: Path) -> None:
    """A document has the machine with its power and area; machines without have the hash of before."""
    engine = written(tmp_path, ", area: 0.002")
    record = ArchRecord.of(engine)
    assert ArchRecord.model_validate(record.model_dump()).build("here") == engine
    assert engine_hash(engine) != engine_hash(replace(engine, leakage={}))
    assert engine_hash(engine) == engine_hash(replace(engine, area={}))
    assert ArchRecord.of(load_engine("nvdla-256")).engine.leakage == {}


@pytest.mark.parametrize(
    ("compute", "glb", "message"),
    [
        (", static_power: -1", "", "compute.static_power: expected a power in W of at least 0"),
        (", static_power: much", "", "compute.static_power: expected a power in W"),
        (", area: -0.1", "", "compute.area"),
        ("", "    area: 0.1 + size", "levels[1].area"),
        ("", "    area: 0 - capacity", "levels[1].area: expected an area of at least 0"),
        ("", "    static_pwer: 1", "static_power"),
    ],
)
def test_faults_name_the_field(tmp_path: Path, compute: str, glb: str, message: str) -> None:
    """A wrong power or area is told with its field in one line."""
    with pytest.raises(InputError) as caught:
        written(tmp_path, compute, glb)
    assert message in str(caught.value)


def test_a_price_of_a_cycle_comes_on_top_of_static_power(tmp_path: Path) -> None:
    """Whatever levels are called, all that they leak stays beside it."""
    path = tmp_path / "own.yaml"
    path.write_text(FILE.format(compute="", glb="").replace("name: RF", "name: price"))
    engine = load_engine(path)
    assert at_price(engine, Fraction(7)).leak == engine.leak + 7


def test_a_cost_model_without_static_power_says_so(tmp_path: Path) -> None:
    """The model of dMazeRunner's execution refuses machines that leak."""
    path = tmp_path / "own.yaml"
    path.write_text("cost_model: dmazerunner\n" + FILE.format(compute="", glb=""))
    with pytest.raises(InputError, match="no static power"):
        load_engine(path)


def priced(engine: Engine, actions: dict[str, int], seconds: float) -> float:
    """Joules of counted bits and operations, and of static power for some time."""
    picojoules = Fraction(0)
    for text, count in actions.items():
        component, action = text.split()
        if component == "MAC":
            picojoules += engine.mac_energy * count
            continue
        level = engine.level(LEVELS.get(component, component))
        role = next(role for role in Role if role in level.keeps)
        energy = level.read_energy_of(role) if action == "read" else level.write_energy_of(role)
        picojoules += energy / engine.width(level, role) * count
    return float(picojoules) * 1e-12 + float(engine.static_power) * seconds


@pytest.mark.parametrize("row", ROWS)
def test_published_actions_cost_the_published_energy(row: str) -> None:
    """Bits and operations of a published run cost what was published, leak included."""
    case = ROWS[row]
    engine = load_engine(case["machine"])
    assert priced(engine, case["actions"], case["latency_s"]) == pytest.approx(case["energy_j"], rel=1e-6)
    leak = float(engine.static_power) * case["latency_s"]
    assert leak == pytest.approx(case["leak_j"], rel=1e-6)
    assert 0.03 < leak / case["energy_j"] < 0.055


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_the_optimum_moves_for_no_more_than_was_published(row: str) -> None:
    """Without static power the proven least energy of the products is at most the published run's."""
    case = ROWS[row]
    engine = replace(load_engine(case["machine"]), leakage={})
    operator = gemm(m=case["size"], n=case["size"], k=case["size"])
    result = solve(layer_problem(operator, engine, parse_objective("energy"), factors="perfect"))
    assert result.status is Status.OPTIMAL
    assert result.evaluation is not None
    spent = case["products"] * float(result.evaluation.energy) * 1e-12
    assert spent <= case["energy_j"] - case["leak_j"]


def test_the_areas_of_published_machines() -> None:
    """Totals are those of all instances: 168 PEs of Eyeriss, 1,024 multipliers of Simba in 16 PEs."""
    eyeriss, simba = load_engine("eyeriss-65nm"), load_engine("simba")
    assert float(eyeriss.area["GLB"]) == pytest.approx(6.8574526567)
    assert float(eyeriss.area["WeightSpad"]) == pytest.approx(168 * 3.534394038e-3)
    assert float(simba.area["PE"]) == pytest.approx(1024 * 1.4715951923e-4)
    assert float(simba.area["WeightBuffer"]) == pytest.approx(16 * 0.10703430381766)


def filled_at_once(name: str) -> Engine:
    """A machine whose transfers all hide, first fills and last drains too: the latency that was published."""
    plain = tw.machine(name)
    fields: dict[str, object] = {}
    for level in plain.levels:
        fields |= {f"levels.{level}.overlap": "full", f"levels.{level}.streamed": None}
    return plain.with_(fields).engine


@pytest.mark.parametrize(
    "row", [next(iter(ROWS)), *(pytest.param(row, marks=pytest.mark.slow) for row in [*ROWS][1:])]
)
def test_the_optimum_has_no_more_edp_than_was_published(row: str) -> None:
    """Under the published latency the proven least EDP, leak included, is at most the published run's."""
    case = ROWS[row]
    engine = filled_at_once(case["machine"])
    operator = gemm(m=case["size"], n=case["size"], k=case["size"])
    result = solve(layer_problem(operator, engine, parse_objective("edp"), factors="perfect"))
    assert result.status is Status.OPTIMAL
    assert result.evaluation is not None
    joules = case["products"] * float(result.evaluation.energy) * 1e-12
    seconds = case["products"] * result.evaluation.cycles / float(engine.clock_mhz) * 1e-6
    assert joules * seconds <= case["energy_j"] * case["latency_s"]
    assert seconds == pytest.approx(case["latency_s"], rel=2e-4)  # whole cycles
    assert result.evaluation.components["leakage"] == engine.leak * result.evaluation.cycles
