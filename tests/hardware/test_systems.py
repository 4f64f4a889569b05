"""Systems: presets from classes and styles, and files of users."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.styles import dataflow, dataflow_names
from tilewright.hardware.scheduling.herald.classes import CLASSES, TABLE_V, list_system_presets
from tilewright.hardware.scheduling.herald.system_file import load_system, parse_system

TEXT = """
memory: 4 MB
dram_bandwidth: 16 GB/s
sub_accelerators:
  - {name: deep, dataflow: nvdla, pes: 128, bandwidth: 4 GB/s}
  - {name: wide, dataflow: [shidiannao, eyeriss], pes: 896, bandwidth: 12 B/cycle, memory_share: 0.25,
     reconfiguration_cycles: 10, energy_factor: 1.5}
"""


@pytest.mark.parametrize("name", list_system_presets())
def test_presets_share_out_their_class(name: str) -> None:
    """Definition 1: PEs and bandwidth of the sub-accelerators add up to the class's (table IV)."""
    system = load_system(name)
    resources = CLASSES[name.split("-")[1]]
    assert (system.pes, system.bandwidth) == (resources.pes, resources.bandwidth)
    assert system.memory_bytes == resources.memory
    assert sum(sub.share for sub in system.subs) == 1


def test_styles_of_table_iii_are_there() -> None:
    """Three FDAs, three scaled-out FDAs, one RDA and four HDAs per class."""
    for size in CLASSES:
        own = [name for name in list_system_presets() if f"-{size}" in name and name.count("ar-vr-b") == 0]
        styles = [name.split("-")[0] for name in own if not name.endswith("mlperf")]
        assert [styles.count(s) for s in ("fda", "smfda", "rda", "hda")] == [3, 3, 1, 4]


def test_partitions_of_table_v_are_on_the_grid() -> None:
    """The steps of every class reach all nine published partitions."""
    for (size, _), (rates, pes) in TABLE_V.items():
        resources = CLASSES[size]
        assert sum(pes) == resources.pes
        assert sum(rates) == resources.bandwidth
        assert all(count % resources.pe_step == 0 for count in pes)
        assert all(rate % resources.bandwidth_step == 0 for rate in rates)


@pytest.mark.parametrize("flow", dataflow_names())
@pytest.mark.parametrize("pes", [1, 7, 64, 128, 896, 12032])
def test_arrays_have_as_many_pes_as_asked_for(flow: str, pes: int) -> None:
    """Every style makes an array of any number of PEs."""
    style = dataflow(flow)
    first, second = style.array(pes)
    assert first * second == pes
    assert style.engine(pes, Fraction(4), 1024).instances == pes


def test_a_file_is_read() -> None:
    """Units, lists of dataflows and defaults arrive as written."""
    system = parse_system(TEXT, "mine.yaml", "mine")
    deep, wide = system.subs
    assert (deep.bandwidth, wide.bandwidth, system.memory_bytes) == (4, 12, 4 << 20)
    assert (deep.share, wide.share) == (Fraction(1, 2), Fraction(1, 4))
    assert wide.flow_names == "shidiannao/eyeriss"
    assert (wide.reconfiguration_cycles, wide.energy_factor) == (10, Fraction(3, 2))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "dataflow: nvdla",
            "dataflow: nvdl",
            r"mine.yaml:5: sub_accelerators\[0\].dataflow\[0\]: .*did you mean 'nvdla'",
        ),
        ("pes: 128", "pes: -1", r"sub_accelerators\[0\].pes"),
        ("memory: 4 MB", "memory: 4 parsec", "mine.yaml:2: memory"),
        ("name: wide", "name: deep", "expected a name of its own, got 'deep' twice"),
        ("memory_share: 0.25", "memory_share: 1.25", "expected at most 1"),
        ("dram_bandwidth: 16 GB/s\n", "", "dram_bandwidth: missing"),
    ],
)
def test_faults_are_named(old: str, new: str, words: str) -> None:
    """One line with file, line, field and what was expected."""
    with pytest.raises(InputError, match=words):
        parse_system(TEXT.replace(old, new), "mine.yaml", "mine")


def test_unknown_names_get_a_suggestion(tmp_path: Path) -> None:
    """A preset's misspelling is told; a missing file is no preset."""
    with pytest.raises(InputError, match="did you mean 'rda-edge'"):
        load_system("rda-edg")
    with pytest.raises(InputError, match="cannot be read"):
        load_system(tmp_path / "none.yaml")
