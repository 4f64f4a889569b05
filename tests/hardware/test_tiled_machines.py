"""Tiled machines: presets, files, parameters, routes, and bad input told in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import list_tiled_machines, load_tiled_machine
from tilewright.hardware.scheduling.tiled.machine_file import TiledMachineFile
from tilewright.hardware.scheduling.tiled.topology import topology

FILE = """
clock_mhz: 500
grid: {width: 3, height: 2, link: 16 B/cycle}
dram: {bandwidth: 8 GB/s, energy: 56, ports: left}
engine:
  array: {rows: 4, columns: 4, dataflow: kc}
  buffer: {size: 16 kB, energy: 2}
  mac_energy: 0.3
  vector_lanes: 4
hop_energy: 4.88
"""


def test_presets_have_the_published_figures() -> None:
    """Section V-A of Atomic Dataflow, section 5.1.1 of SET, and the cases of SoMa's program."""
    assert list_tiled_machines() == [
        "atomic-2x2",
        "atomic-8x8",
        "kapla-16x16",
        "set-cloud-12x12",
        "set-edge-4x4",
        "soma-cloud",
        "soma-edge",
    ]
    atomic = load_tiled_machine("atomic-8x8")
    assert (atomic.engines, atomic.macs_per_cycle, atomic.on_chip_bytes) == (64, 16384, 8 * 2**20)
    assert (atomic.dram_rate, atomic.dram_energy, atomic.hop_energy) == (256, 56, pytest.approx(8 * 0.61))
    edge = load_tiled_machine("set-edge-4x4")
    assert (edge.engine.macs_per_cycle, edge.dram_rate, len(edge.dram_ports)) == (1024, 16, 8)
    assert load_tiled_machine("kapla-16x16").macs_per_cycle == 16384
    for name, macs, megabytes, rate in (("soma-edge", 8192, 8, 16), ("soma-cloud", 65536, 32, 128)):
        soma = load_tiled_machine(name)
        assert (soma.macs_per_cycle, soma.on_chip_bytes, soma.dram_rate) == (macs, megabytes * 2**20, rate)
        scale = 8 * 0.6 * 1.1 ** (megabytes / 2)  # pJ per byte of 1 pJ per bit of a small buffer
        assert soma.engine.buffer_read_energy == pytest.approx(0.217125 * scale, rel=1e-4)
        assert soma.engine.buffer_write_energy == pytest.approx(0.234025 * scale, rel=1e-4)


def test_parameters_change_what_they_name() -> None:
    """Links take along the ports that are as wide; a smaller grid keeps ports at both sides."""
    machine = load_tiled_machine("atomic-8x8[link=8,buffer=64,engines=4x2,dataflow=yx]")
    assert (machine.link_rate, machine.port_rate, machine.dram_port_rate) == (8, 8, 8)
    assert (machine.engine.buffer_bytes, machine.engine.dataflow) == (64 * 1024, "yx")
    assert machine.dram_ports == ((0, 0), (3, 0), (0, 1), (3, 1))
    assert machine.name == "atomic-8x8[link=8,buffer=64,engines=4x2,dataflow=yx]"
    assert machine.content_hash != load_tiled_machine("atomic-8x8").content_hash


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("atomic-9x9", "did you mean 'atomic-8x8'"),
        ("atomic-8x8[link=0]", "link: expected a number above 0"),
        ("atomic-8x8[link=1e300]", "link: expected a number above 0 and at most 1,000,000,000,000,000"),
        (
            "atomic-8x8[buffer=1e12]",
            "buffer: expected a whole number of bytes of at most 1,000,000,000,000,000",
        ),
        ("atomic-8x8[buffer=0]", "buffer: expected a number above 0"),
        ("atomic-8x8[engines=0x4]", "engines: expected WIDTHxHEIGHT"),
        ("atomic-8x8[lnk=8]", "did you mean 'link'"),
        ("atomic-8x8[link=8,link=9]", "link: is given twice"),
        ("atomic-8x8[link]", "cannot read 'link'"),
        ("atomic-8x8[topology=ring]", "topology: unknown name 'ring'"),
        ("atomic-8x8[link=nan]", "link: expected a number above 0"),
    ],
)
def test_bad_parameters_are_one_line(text: str, message: str) -> None:
    """The machine, the parameter and what was expected."""
    with pytest.raises(InputError) as error:
        load_tiled_machine(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dram: {bandwidth: 8 GB/s, energy: 56, ports: left}\n", "", "dram: missing, expected {bandwidth"),
        ("ports: left", "ports: []", "dram.ports: expected at least one port"),
        ("ports: left", "ports: [[3, 0]]", "dram.ports: port [3, 0] lies outside the grid"),
        ("width: 3", "width: 0", "grid.width: expected a whole number of at least 1, got 0"),
        ("16 kB", "0 kB", "engine.buffer.size: expected a size above 0"),
        ("16 kB", "1000000000000 kB", "engine.buffer.size: expected at most 1,000,000,000,000,000 bytes"),
        (
            "8 GB/s",
            "999999999999999 GB/s",
            "dram.bandwidth: expected above 0 and at most 1,000,000,000,000,000 B",
        ),
        ("8 GB/s", "0 GB/s", "dram.bandwidth: expected a bandwidth above 0"),
        ("dataflow: kc", "dataflow: ck", "engine.array.dataflow: expected a dataflow among kc, yx, pairs"),
        ("mac_energy", "mac_enrgy", "engine.mac_enrgy: unknown field, did you mean 'mac_energy'?"),
    ],
)
def test_bad_files_name_line_and_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A machine without DRAM, sizes of 0, ports outside the grid, unknown words."""
    path = tmp_path / "m.yaml"
    path.write_text(FILE)
    assert load_tiled_machine(path).engines == 6
    assert load_tiled_machine(f"{path}[link=8]").link_rate == 8
    path.write_text(FILE.replace(old, new))
    with pytest.raises(InputError) as error:
        load_tiled_machine(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_routes_go_along_the_row_first() -> None:
    """XY routing on the mesh, the shorter way round on the torus, up and down the tree."""
    mesh = topology(load_tiled_machine("atomic-8x8"))
    names = [mesh.names[link] for link in mesh.route(0, 17)]
    assert names == [
        "out of engine 0",
        "link (0,0)->(1,0)",
        "link (1,0)->(1,1)",
        "link (1,1)->(1,2)",
        "into engine 17",
    ]
    assert mesh.distance(0, 63) == 14
    torus = topology(load_tiled_machine("atomic-8x8[topology=torus]"))
    assert torus.distance(0, 63) == 2
    tree = topology(load_tiled_machine("atomic-8x8[topology=htree]"))
    assert (tree.distance(0, 8), tree.distance(0, 1), tree.distance(0, 63)) == (2, 4, 12)
    assert mesh.distance(0, mesh.engines) == 0
    assert len(mesh.route(3, 3)) == 0


def test_the_documented_file_has_every_field(tmp_path: Path) -> None:
    """The file in the documents is a machine, and names each field but those that replace others."""
    page = Path(__file__).parents[2] / "docs" / "tiled-machine-files.md"
    block = page.read_text(encoding="utf-8").split("```yaml\n", 1)[1].split("```", 1)[0]
    path = tmp_path / "documented.yaml"
    path.write_text(block)
    assert load_tiled_machine(path).engines == 16
    replacing = ["engine.arch", "engine.cost_model", "engine.buffer.level"]
    assert missing_fields(TiledMachineFile, yaml.safe_load(block)) == replacing
    assert "arch: my.yaml" in block


def missing_fields(section: type[BaseModel], data: dict[str, Any], place: str = "") -> list[str]:
    """Fields of a section, and of those inside it, that data do not have."""
    missing = [f"{place}{name}" for name in section.model_fields if name not in data]
    for name, field in section.model_fields.items():
        sides = [side for side in get_args(field.annotation) if side is not type(None)]
        inner = sides[0] if len(sides) == 1 else field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel) and isinstance(data.get(name), dict):
            missing += missing_fields(inner, data[name], f"{place}{name}.")
    return missing
