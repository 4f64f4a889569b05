"""Machines and systems with some fields changed."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.hardware.mapping.load import list_presets
from tilewright.hardware.scheduling.herald.system_file import changed_system, list_systems, load_system


def test_every_kind_of_field() -> None:
    """Sizes, energies, bandwidths, axes, roles, flags, clocks and whole sections change in one call."""
    machine = tw.machine("nvdla-256").with_(
        {
            "levels.CBUF.capacity": "64 kB",
            "levels.CBUF.energy.read": 5.5,
            "levels.DRAM.bandwidth": "8 GB/s",
            "levels.CACC.fanout.axes.k.size": np.int64(32),
            "levels.CACC.fanout.axes.c.carries": ("C", "R"),
            "levels.2.fanout.multicast": False,
            "levels.CBUF.sliding_window": True,
            "compute.mac_energy": Decimal("0.5"),
            "levels.REG.energy": Fraction(3, 4),
        },
        clock_mhz=500,
        description="changed",
    )
    dram, cbuf, cacc, reg = machine.engine.levels
    assert (cbuf.capacity, cbuf.read_energy, cbuf.write_energy) == (64 * 512, Fraction(11, 2), 6)
    assert dram.read_bandwidth == 8
    assert cacc.fanout is not None
    assert [axis.size for axis in cacc.fanout.axes] == [16, 32]
    assert (cacc.fanout.axes[0].carries, cacc.fanout.multicast) == ({"C", "R"}, False)
    assert cbuf.sliding_window
    assert (machine.engine.mac_energy, reg.read_energy) == (Fraction(1, 2), Fraction(3, 4))
    assert (machine.engine.clock_mhz, machine.pes) == (500, 512)
    assert machine.to_dict()["description"] == "changed"


def test_leaving_a_field_out_and_adding_one() -> None:
    """``None`` removes a field; a section that the file does not have is made."""
    machine = tw.machine("dmazerunner-256").with_(
        {"levels.SPM.banks": None, "levels.RF.bandwidth.read": "2 elements/cycle"}
    )
    assert machine.engine.levels[1].bank is None
    assert machine.engine.levels[2].read_bandwidth == 2
    assert machine.engine.levels[2].write_bandwidth is None


def test_names_tell_the_changes() -> None:
    """A changed machine says how; the original stays; the same changes make the same machine."""
    base = tw.machine("nvdla-256")
    once = base.with_({"levels.CBUF.capacity": "64 kB"})
    twice = once.with_(clock_mhz=500)
    assert once.name == "nvdla-256[levels.CBUF.capacity=64 kB]"
    assert twice.name == "nvdla-256[levels.CBUF.capacity=64 kB,clock_mhz=500]"
    assert once.with_(clock_mhz=500, name="mine").name == "mine"
    assert base == tw.machine("nvdla-256") == base.with_()
    assert base.content_hash != once.content_hash == base.with_(levels__CBUF__capacity="64 kB").content_hash


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("levels.CBUFF.capacity", "1 kB", "levels.CBUFF.capacity: unknown name 'CBUFF', did you mean 'CBUF'"),
        ("levels.CBUF.capcity", "1 kB", "levels[1].capcity: unknown field, did you mean 'capacity'"),
        ("levels.CBUF.capacity", "64", "levels[1].capacity: expected a size above 0 with its unit"),
        ("levels.CBUF.capacity", 64, "levels[1].capacity: expected a size above 0 with its unit"),
        ("levels.CACC.fanout.axes.k.size", 0, "levels[2].fanout.axes[1].size: expected a whole number"),
        ("levels.CACC.capacity", "1 kB", "levels[2].elements: expected either capacity or elements"),
        ("levels.9.capacity", "1 kB", "levels.9.capacity: unknown name '9'"),
        ("compute.mac_energy.x", 1, "compute.mac_energy.x: mac_energy is 1, which has no field 'x'"),
        ("compute.mac_energy", -1, "compute.mac_energy: expected an energy in pJ"),
        ("levels.DRAM.bandwidth", "fast", "levels[0].bandwidth"),
        ("cost_model", "hierachy", "cost_model: expected a cost model"),
        ("levels", None, "levels: missing"),
        ("", 1, "expected the way to a field"),
        ("levels..x", 1, "expected the way to a field"),
    ],
)
def test_faults_name_the_file_and_the_field(path: str, value: object, told: str) -> None:
    """What is wrong is told as for a machine file."""
    with pytest.raises(tw.InputError) as caught:
        tw.machine("nvdla-256").with_({path: value})
    assert str(caught.value).startswith("nvdla-256.yaml: ")
    assert told in str(caught.value)


def test_every_preset_can_be_changed(tmp_path: Path) -> None:
    """Presets and files read the same way, changed or not; a document's machine has no file."""
    for name in list_presets():
        assert tw.machine(name).with_().engine == tw.machine(name).engine
    path = tmp_path / "own.yaml"
    source = Path(tw.__file__).parent / "hardware" / "mapping" / "presets" / "tpu-edge.yaml"
    path.write_text(source.read_text())
    assert tw.machine(path).with_(clock_mhz=1).name == "own[clock_mhz=1]"
    result = tw.solve(tw.layer("gemm:M=2,N=2,K=2").on(path), stop=tw.seconds(20))
    with pytest.raises(tw.InputError, match="no machine file to change"):
        result.document.machine.with_(clock_mhz=1)


def test_every_system_can_be_changed() -> None:
    """A system's description is the system; changes reach its sub-accelerators by name or position."""
    for name in list_systems():
        system = load_system(name)
        assert changed_system(system, {}, name).content_hash == system.content_hash
    changed = tw.system("hda-edge-maelstrom").with_({"sub_accelerators.nvdla.pes": 64}, memory="8 MB")
    assert (changed.rows()[0]["pes"], changed.hardware.memory_bytes) == (64, 8 << 20)
    assert changed.name == "hda-edge-maelstrom[sub_accelerators.nvdla.pes=64,memory=8 MB]"
    with pytest.raises(tw.InputError, match="memory: expected a size"):
        tw.system("hda-edge-maelstrom").with_(memory=3)
