"""The machines that come with the package."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib import resources

import pytest

from tilewright.hardware.mapping.describe import WIDTH, engine_tree
from tilewright.hardware.mapping.engine import Dma, Engine
from tilewright.hardware.mapping.load import engine_hash, engine_to_dict, list_presets, load_engine
from tilewright.workloads.mapping.operator import Role

PRESETS = [
    "a100",
    "atomic-engine",
    "dmazerunner-256",
    "ethos-u65",
    "eyeriss-168",
    "eyeriss-256",
    "eyeriss-65nm",
    "gemmini",
    "nvdla-256",
    "set-tile",
    "shidiannao-256",
    "simba",
    "tpu-edge",
    "tpu-v4i",
]


def carries(engine: Engine) -> dict[str, tuple[int, str | None]]:
    """Size and carried dimensions of every axis."""
    return {
        axis.name: (axis.size, None if axis.carries is None else "".join(sorted(axis.carries)))
        for level in engine.levels
        if level.fanout
        for axis in level.fanout.axes
    }


def test_list_of_presets() -> None:
    """The presets are the documented ones, sorted."""
    assert list_presets() == PRESETS


def test_presets_are_package_data() -> None:
    """Every preset is a resource of the installed package, so that a wheel carries it."""
    folder = resources.files("tilewright.hardware.mapping") / "presets"
    assert all((folder / f"{name}.yaml").is_file() for name in PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_sound(name: str) -> None:
    """Every preset loads under its own name with at most six levels and energies that scale to integers."""
    engine = load_engine(name)
    assert engine.name == name
    assert engine.description
    assert 2 <= len(engine.levels) <= 6
    assert engine.levels[0].capacity is None
    assert engine.levels[-1].fanout is None
    assert all(level.capacity for level in engine.levels[1:])
    assert all((level.read_energy * 10**12).denominator == 1 for level in engine.levels)
    assert (engine.cost_model == "dmazerunner") == (name == "dmazerunner-256")
    assert sum(bool(level.may_bypass) for level in engine.levels) <= 1


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_has_a_source(name: str) -> None:
    """Every line of a preset that gives a size, an energy, a rate or a clock names its source nearby."""
    text = (resources.files("tilewright.hardware.mapping") / "presets" / f"{name}.yaml").read_text(
        encoding="utf-8"
    )
    lines = text.splitlines()
    keys = ("energy:", "capacity:", "elements:", "bandwidth:", "clock_mhz:", "mac_energy:", "element_bits:")
    for number, line in enumerate(lines):
        key, _, value = line.strip().partition(" ")
        if key in keys and value.strip():
            around = "\n".join(lines[max(0, number - 2) : number + 2])
            assert "#" in around, f"{name}.yaml:{number + 1}: {line.strip()} has no source"


def test_tpu_v4i() -> None:
    """The chip of table 2 and section 4 of its paper: four arrays, 128 MB, 614 GB/s, energies per 64 bits."""
    engine = load_engine("tpu-v4i")
    assert carries(engine) == {"mxu": (4, None), "c": (128, "CRS"), "k": (128, "K")}
    hbm, cmem, vmem, _ = engine.levels
    assert hbm.read_bandwidth == Fraction(614 * 10**9, 2 * 1050 * 10**6)
    assert (hbm.read_energy, cmem.read_energy) == (Fraction(450, 4), Fraction(14, 4))
    assert (cmem.capacity, vmem.capacity) == (2**26, 2**23)
    assert cmem.may_bypass == frozenset(Role)


def test_a100() -> None:
    """Peak and memories of the whitepaper: 312 TFLOPS of 16 bits, 40 MB of L2, 1,555 GB/s."""
    engine = load_engine("a100")
    hbm, l2, _, _ = engine.levels
    assert float(2 * engine.instances * engine.clock_mhz / 10**6) == pytest.approx(312, rel=1e-3)
    assert l2.capacity == 40 * 2**20 // engine.element_bytes
    assert hbm.shared_bandwidth == Fraction(1555 * 10**6, engine.element_bytes * 1410 * 10**3)


MEASURED_ON_A100 = [
    # rows, inner size, columns and milliseconds of 16-bit products: LLMCompass (ISCA 2024), figure 5; its
    # product of 64 rows moves 1,606 GB/s, more than a board of 40 GB does, and is left out
    (512, 12288, 12288, 0.6118),
    (16384, 12288, 12288, 17.0307),
    (8192, 64, 64, 0.0296),
    (8192, 4096, 4096, 1.0210),
    (8192, 16384, 16384, 15.0087),
]


@pytest.mark.parametrize(("rows", "inner", "columns", "measured"), MEASURED_ON_A100)
def test_no_measured_product_beats_the_roofs_of_a100(
    rows: int, inner: int, columns: int, measured: float
) -> None:
    """Compute and HBM allow each measured time; the largest products come within a tenth of them."""
    engine = load_engine("a100")
    hbm = engine.levels[0].shared_bandwidth
    assert hbm is not None
    compute = Fraction(rows * inner * columns, engine.instances)
    moved = (rows * inner + inner * columns + rows * columns) / hbm
    roof = float(max(compute, moved) / engine.clock_mhz) / 1000
    assert roof <= measured
    if rows >= 8192 and inner >= 12288:
        assert roof > 0.9 * measured


def test_ethos_u65() -> None:
    """512 multipliers at 1 GHz, SRAM of 16 GB/s and DRAM of 3.75 GB/s, as Arm's compiler plans for it."""
    engine = load_engine("ethos-u65")
    dram, sram, _, _ = engine.levels
    assert (engine.instances, engine.clock_mhz, engine.element_bits) == (512, 1000, 8)
    assert (dram.shared_bandwidth, sram.shared_bandwidth) == (Fraction(15, 4), Fraction(16))
    assert (dram.read_energy, sram.capacity) == (64, 384 * 1024)


def test_dmazerunner_256() -> None:
    """The dMazeRunner machine has the paper's sizes in 16-bit elements and its energies and DMA model."""
    engine = load_engine("dmazerunner-256")
    dram, spm, rf = engine.levels
    assert engine.instances == 256
    assert engine.element_bytes == 2
    assert (spm.capacity, spm.bank, spm.double_buffered) == (32768, 1024, True)
    assert (rf.capacity, rf.bank, rf.double_buffered) == (256, None, False)
    energies = [dram.read_energy, spm.read_energy, rf.read_energy, engine.mac_energy]
    assert energies == [200, Fraction(27, 2), Fraction(24, 25), Fraction(3, 40)]
    assert spm.fanout is not None
    assert spm.fanout.energy == 2
    assert carries(engine) == {"pe": (256, None)}
    assert engine.dma == Dma(Fraction(291), Fraction(6, 25), Fraction(5, 32))
    assert engine.clock_mhz == 500


def test_eyeriss_168() -> None:
    """The Eyeriss chip has its scratch-pads, filters bypass its buffer, and its axes are row-stationary."""
    engine = load_engine("eyeriss-168")
    dram, glb, rf = engine.levels
    assert engine.instances == 168
    assert rf.partitions == {Role.INPUT: 12, Role.WEIGHT: 224, Role.OUTPUT: 24}
    assert rf.capacity == 260
    assert rf.sliding_window
    assert (glb.capacity, glb.bank) == (51200, 2048)
    assert glb.keeps == {Role.INPUT, Role.OUTPUT}
    assert carries(engine) == {"y": (12, "CGKPR"), "x": (14, "GKP")}
    assert (dram.shared_bandwidth, dram.read_bandwidth) == (Fraction(6, 5), None)
    assert (engine.mac_energy, rf.read_energy, glb.read_energy, dram.read_energy) == (2, 1, 15, 460)


def test_dataflow_comparison_shares_everything_else() -> None:
    """The three 256-PE dataflow machines share PEs, clock, precision, buffer size and normalised energies."""
    engines = [load_engine(name) for name in ("eyeriss-256", "nvdla-256", "shidiannao-256")]
    for engine in engines:
        assert (engine.instances, engine.clock_mhz, engine.element_bits, engine.mac_energy) == (
            256,
            1000,
            16,
            1,
        )
        assert [level.read_energy for level in engine.levels[:2]] == [200, 6]
        assert engine.levels[1].capacity == 65536
    assert carries(engines[0]) == {"y": (16, "CGKPR"), "x": (16, "GKP")}
    assert carries(engines[1]) == {"c": (16, "C"), "k": (16, "K")}
    assert carries(engines[2]) == {"y": (16, "P"), "x": (16, "Q")}


def test_windows_slide_only_where_hardware_slides() -> None:
    """Only Eyeriss's and ShiDianNao's register files keep the overlap of consecutive windows in place."""
    sliding = {
        (name, level.name) for name in PRESETS for level in load_engine(name).levels if level.sliding_window
    }
    assert sliding == {("eyeriss-168", "RF"), ("eyeriss-256", "RF"), ("shidiannao-256", "RF")}


def test_atomic_engine() -> None:
    """The Atomic Dataflow engine scales energies per bit and per 64-bit word to 8-bit elements."""
    dram, glb, _ = load_engine("atomic-engine").levels
    assert dram.read_energy == 56
    assert glb.read_energy == Fraction("2.73375")
    assert glb.capacity == 65536
    assert (dram.shared_bandwidth, dram.read_bandwidth, glb.read_bandwidth) == (4, None, 8)


def test_set_tile() -> None:
    """The SET tile has 1024 MACs in two arrays, half of 1 MB usable, and unequal read and write energies."""
    engine = load_engine("set-tile")
    buffer = engine.level("UL3")
    assert engine.instances == 1024
    assert buffer.capacity == 524288
    assert (buffer.read_energy, buffer.write_energy) == (Fraction("1.0537"), Fraction("1.8722"))
    assert engine.levels[0].read_energy == 60


def test_tpu_edge() -> None:
    """The systolic array holds weights in its PEs and sums in accumulators below the buffer."""
    engine = load_engine("tpu-edge")
    assert [level.keeps for level in engine.levels[2:]] == [{Role.OUTPUT}, {Role.WEIGHT}]
    assert engine.level("REG").capacity == 1
    assert engine.instances == 256


@pytest.mark.parametrize("name", PRESETS)
def test_tree_fits_and_names_everything(name: str) -> None:
    """The tree of every preset fits in 80 columns and names every level, capacity and axis."""
    engine = load_engine(name)
    text = engine_tree(engine)
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    for level in engine.levels:
        assert f"{level.name}: " in text
        assert level.capacity is None or f"{level.capacity} element" in text
    assert all(f"axis {axis}: {size}" in text for axis, (size, _) in carries(engine).items())


def test_hashes_differ() -> None:
    """No two presets share a hash."""
    assert len({engine_hash(load_engine(name)) for name in PRESETS}) == len(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_engine_as_data_is_json(name: str) -> None:
    """An engine as plain data survives JSON unchanged."""
    data = engine_to_dict(load_engine(name))
    assert json.loads(json.dumps(data)) == data
