"""Caps on designs: area, capacity and PEs of a whole machine, refused where there is more."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.design_caps import parse_caps

MACHINE = """\
clock_mhz: 100
compute: {mac_energy: 1, element_bits: 8, area: 0.5, static_power: 0.001}
levels:
  - {name: DRAM, energy: 100}
  - {name: SPM, capacity: 64 B, energy: 5, area: 1 + capacity / 64 B, fanout: {axes: [{name: x, size: 2}]}}
  - {name: RF, capacity: 4 B, energy: 1}
"""
VARY = {"levels.SPM.capacity": "64B,128B,256B", "levels.SPM.fanout.axes.x.size": [2, 4]}
AREAS = {(64, 2): 3, (64, 4): 4, (128, 2): 4, (128, 4): 5, (256, 2): 6, (256, 4): 7}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine file whose area follows the scratchpad and the PEs."""
    path = tmp_path / "own.yaml"
    path.write_text(MACHINE)
    return path


def explored(machine: Path, *constraints: str, against: str | None = None) -> tw.ExplorationDocument:
    """All designs of a small product under some constraints."""
    return tw.explore(
        "gemm:M=4,N=4,K=4", machine, VARY, "edp", constraints=constraints, against=against, every=True, jobs=1
    )


def values(document: tw.ExplorationDocument) -> list[tuple[str, str | None]]:
    """Status and value of every design, in the order of the grid."""
    return [(design.status, design.value_exact) for design in document.record.designs]


def test_designs_above_a_cap_are_refused_and_others_keep_their_values(machine: Path, tmp_path: Path) -> None:
    """The best design under a cap is the least of those that keep it, and the document passes its check."""
    free, capped = explored(machine), explored(machine, "area<=4.5mm2")
    every, kept = values(free), values(capped)
    for area, before, after in zip(AREAS.values(), every, kept, strict=True):
        assert after == (before if area <= 4.5 else ("refused", None)), area
    least = min(Fraction(value) for _, value in kept if value is not None)
    assert Fraction(capped.record.best.value_exact) == least
    file = tmp_path / "e.json"
    capped.save(file)
    assert capped.record.settings.caps == ["area<=4.5mm2"]
    assert not tw.check(file).faults
    text = file.read_text()
    file.write_text(text.replace("area<=4.5mm2", "area<=9mm2"))
    assert tw.check(file).faults


def test_caps_join_constraints_on_mappings(machine: Path) -> None:
    """PEs and capacity have caps too; what is no cap stays a constraint on mappings."""
    document = explored(machine, "pes<=2", "capacity<=136B", "cycles<=1000")
    statuses = [status for status, _ in values(document)]
    assert statuses.count("refused") == 4
    assert document.record.constraints == ["cycles<=1000"]
    assert document.record.settings.caps == ["pes<=2", "capacity<=136B"]


def test_area_is_an_axis_of_a_front(machine: Path) -> None:
    """The front against the area has falling values at rising areas, and is proven complete."""
    front = explored(machine, against="area").record.front
    assert front is not None
    assert front.complete
    assert front.against == "area"


@pytest.mark.parametrize("text", ["area<=much", "area<=", "pes<=x", "capacity<=10 mm2", "area<=1/0"])
def test_a_cap_that_cannot_be_read_is_told(text: str) -> None:
    """One line with an example."""
    with pytest.raises(InputError, match="expected a number such as"):
        parse_caps([text])


def test_a_machine_without_areas_has_no_cap_on_them() -> None:
    """All designs are refused in one line that says what is missing."""
    with pytest.raises(InputError, match="states no area"):
        tw.explore("gemm:M=4,N=4,K=4", "nvdla-256", {"clock_mhz": "500,1000"}, constraints=["area<=4"])
