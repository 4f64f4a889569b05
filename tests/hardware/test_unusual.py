"""What of a machine is unusual: each sentence has a machine that earns it, and one beside that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import tilewright as tw
from tilewright.hardware.mapping.load import load_engine
from tilewright.hardware.mapping.unusual import unusual

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "machine.md"


def machine(folder: Path, changes: dict[str, Any]) -> tuple[str, ...]:
    """What is unusual of a machine of three levels and 64 PEs with some fields changed (``LEVEL.FIELD``)."""
    content: dict[str, Any] = {
        "cost_model": "hierarchy",
        "clock_mhz": 1000,
        "compute": {"mac_energy": 1, "element_bits": 16},
        "levels": [
            {"name": "DRAM", "energy": 200, "bandwidth": {"shared": "16 GB/s"}},
            {
                "name": "GLB",
                "capacity": "64 kB",
                "energy": 6,
                "bandwidth": "32 B/cycle",
                "fanout": {"axes": [{"name": "x", "size": 64}], "energy": 1},
            },
            {"name": "RF", "elements": 64, "energy": 1},
        ],
    }
    for place, value in changes.items():
        name, _, field = place.partition(".")
        section = next((level for level in content["levels"] if level["name"] == name), content.get(name))
        assert section is not None
        if value is None:
            del section[field]
        else:
            section[field] = value
    path = folder / "machine.yaml"
    path.write_text(yaml.safe_dump(content))
    return unusual(load_engine(str(path)))


CASES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"DRAM.bandwidth": "16 GB/s"},
        {"DRAM.bandwidth": {"read": "16 GB/s", "write": "8 GB/s"}},
        "DRAM: bandwidth counts for reads and for writes at once, 32 GB/s in all; one bus for both is "
        "written bandwidth: {shared: 16 GB/s}",
    ),
    ({"GLB.fanout": None}, {}, "machine: no level has a fanout"),
    (
        {"RF.elements": 2},
        {"RF.elements": 3},
        "RF: must store inputs, outputs, weights and holds 2 elements, so no mapping",
    ),
    (
        {"RF.elements": 1, "RF.may_bypass": ["inputs"]},
        {"RF.elements": 1, "RF.may_bypass": ["inputs", "outputs"]},
        "RF: must store outputs, weights and holds 1 element, so no mapping",
    ),
    (
        {"RF.energy": 7},
        {"RF.energy": 6},
        "RF: reading inputs costs 7 pJ, more than the 6 pJ of GLB outside of it",
    ),
    (
        {"GLB.keeps": ["inputs"], "RF.energy": 201},
        {"GLB.keeps": ["inputs"], "RF.energy": 6},
        "RF: reading weights costs 201 pJ, more than the 200 pJ of DRAM outside of it",
    ),
    (
        {"compute.widths": {"outputs": 32}, "RF.elements": None, "RF.capacity": "128 B"},
        {
            "compute.widths": {"outputs": 32},
            "DRAM.word_bits": 16,
            "GLB.word_bits": 16,
            "RF.word_bits": 16,
            "RF.elements": None,
            "RF.capacity": "128 B",
        },
        "GLB: outputs of 32 bits change capacity and time, but cost the energy of 16 bits",
    ),
    (
        {"GLB.bandwidth": {"shared": "3 B/cycle"}, "RF.elements": 4},
        {"GLB.bandwidth": {"shared": "16 B/cycle"}, "RF.elements": 4},
        "GLB: the array cannot be fed: 3 GB/s and 256 elements below allow 12 of 64 multiply",
    ),
    (
        {"DRAM.bandwidth": {"shared": "1 GB/s"}},
        {"DRAM.bandwidth": {"shared": "2 GB/s"}},
        "DRAM: the peak lies beyond this bus: 1 GB/s and 36,864 elements below allow 48 of 64 multiply",
    ),
]


@pytest.mark.parametrize(("changed", "beside", "sentence"), CASES, ids=lambda case: str(case)[:40])
def test_each_sentence_is_earned(
    changed: dict[str, Any], beside: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    """A machine is told it, and the machine just beside it is not."""
    told = machine(tmp_path, changed)
    assert any(line.startswith(sentence) for line in told), told
    stem = sentence.partition(":")[0] + ":" + sentence.partition(":")[2][:14]
    assert not any(line.startswith(stem) for line in machine(tmp_path, beside))


def test_a_plain_machine_is_not_unusual(tmp_path: Path) -> None:
    """The machine that the others differ from is told nothing."""
    assert machine(tmp_path, {}) == ()


def test_no_product_on_a_starved_machine_is_fast(tmp_path: Path) -> None:
    """The proven cycles of a product on a starved array are above those of its peak, as the sentence says."""
    told = machine(tmp_path, {"GLB.bandwidth": {"shared": "3 B/cycle"}, "RF.elements": 4})
    assert "allow 12 of 64 multiply" in " ".join(told)
    result = tw.solve(
        tw.layer("gemm:M=16,N=16,K=16").on(tmp_path / "machine.yaml", "cycles"), stop=tw.seconds(20)
    )
    assert result.bound is not None
    assert float(result.bound) >= 16**3 / 12


def test_what_presets_are_told_stands_on_their_page() -> None:
    """The manual names every preset that is told something, with the reason why it stays, and no other."""
    page = PAGE.read_text(encoding="utf-8").partition("## What is unusual")[2].partition("\n## ")[0]
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    named = {line.split("`")[1] for line in rows if line.split("`")[1] in tw.machines()}
    assert named == {name for name in tw.machines() if unusual(load_engine(name))}
