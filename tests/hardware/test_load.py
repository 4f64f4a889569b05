"""Machine files: what they mean, and the one line that each mistake gives."""

from __future__ import annotations

import copy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.describe import WIDTH, engine_tree
from tilewright.hardware.mapping.engine import Engine
from tilewright.hardware.mapping.load import engine_hash, engine_to_dict, load_engine, parse_engine
from tilewright.report.records.mapping.engine import EngineRecord
from tilewright.workloads.mapping.operator import Role

SMALL: dict[str, Any] = {
    "clock_mhz": 500,
    "compute": {"mac_energy": 0.5, "element_bits": 16},
    "levels": [
        {"name": "DRAM", "energy": 200, "bandwidth": "16 GB/s"},
        {
            "name": "SPM",
            "energy": {"read": 6, "write": 7.25},
            "capacity": "4 kB",
            "fanout": {"axes": [{"name": "x", "size": 4, "carries": ["K", "C"]}], "energy": 2},
        },
        {"name": "RF", "energy": 1, "capacity": "64 B"},
    ],
}
DMA = {"startup_cycles": 291, "cycles_per_byte": 0.24, "clock_mhz": 3200}
REMOVED = object()

Path_ = tuple[str | int, ...]


def machine(*changes: tuple[Path_, object]) -> str:
    """The text of a small machine file after setting or removing fields."""
    data = copy.deepcopy(SMALL)
    for path, value in changes:
        place: Any = data
        for step in path[:-1]:
            place = place[step]
        if value is REMOVED:
            del place[path[-1]]
        else:
            place[path[-1]] = value
    return yaml.safe_dump(data, sort_keys=False)


def load(*changes: tuple[Path_, object]) -> Engine:
    """The engine of that file."""
    return parse_engine(machine(*changes), "m.yaml", "m")


def problem(text: str) -> InputError:
    """The error that a file's text gives."""
    with pytest.raises(InputError) as caught:
        parse_engine(text, "m.yaml", "m")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("m.yaml")
    return caught.value


SPM: Path_ = ("levels", 1)
RF: Path_ = ("levels", 2)
AXIS: Path_ = ("levels", 1, "fanout", "axes", 0)


def test_small_machine() -> None:
    """Sizes become elements, GB/s become elements per cycle, and one energy serves reads and writes."""
    engine = load()
    dram, spm, rf = engine.levels
    assert (dram.capacity, spm.capacity, rf.capacity) == (None, 2048, 32)
    assert (dram.read_bandwidth, dram.write_bandwidth, spm.read_bandwidth) == (16, 16, None)
    assert (dram.read_energy, dram.write_energy) == (200, 200)
    assert (spm.read_energy, spm.write_energy) == (6, Fraction(29, 4))
    assert spm.fanout is not None
    assert spm.fanout.axes[0].carries == {"K", "C"}
    assert engine.cost_model == "hierarchy"
    assert engine.instances == 4


def test_double_buffering_halves() -> None:
    """Double buffering halves the capacity and counts as filling while in use."""
    level = load(((*SPM, "double_buffered"), True)).levels[1]
    assert (level.capacity, level.double_buffered) == (1024, True)


def test_streaming_does_not_halve() -> None:
    """A streamed level is filled while in use at its full capacity."""
    level = load(((*SPM, "streamed"), True)).levels[1]
    assert (level.capacity, level.double_buffered) == (2048, True)


def test_banks() -> None:
    """Banks give the capacity, are halved by double buffering, and keep their size in elements."""
    banks = ((*SPM, "banks"), {"count": 8, "size": "512 B"})
    halved = ((*SPM, "double_buffered"), True)
    assert load(banks).levels[1].bank == 256
    assert load(banks, halved, ((*SPM, "capacity"), REMOVED)).levels[1].capacity == 1024


def test_partitions() -> None:
    """Partitions of every role add up to the capacity and are halved one by one."""
    sizes = {"inputs": "12 elements", "weights": "448 B", "outputs": "24 elements"}
    changes = [((*RF, "capacity"), REMOVED), ((*RF, "partitions"), sizes)]
    assert load(*changes).levels[2].capacity == 260
    level = load(*changes, ((*RF, "double_buffered"), True)).levels[2]
    assert level.partitions == {Role.INPUT: 6, Role.WEIGHT: 112, Role.OUTPUT: 12}


def test_some_partitions_beside_a_shared_capacity() -> None:
    """Roles without a partition share the capacity that is written."""
    level = load(((*RF, "partitions"), {"outputs": "4 elements"})).levels[2]
    assert (level.capacity, level.partitions) == (32, {Role.OUTPUT: 4})


def test_element_counts() -> None:
    """A capacity in elements needs no unit under its own field."""
    assert load(((*RF, "capacity"), REMOVED), ((*RF, "elements"), 7)).levels[2].capacity == 7


def test_word_energy() -> None:
    """An energy per 64-bit word is a quarter of it per 16-bit element."""
    level = load(((*RF, "word_bits"), 64), ((*RF, "energy"), 3)).levels[2]
    assert level.read_energy == Fraction(3, 4)


def test_roles() -> None:
    """Kept and optional roles arrive as sets."""
    level = load(((*SPM, "keeps"), ["inputs", "weights"]), ((*SPM, "may_bypass"), ["weights"])).levels[1]
    assert (level.keeps, level.may_bypass) == ({Role.INPUT, Role.WEIGHT}, {Role.WEIGHT})


def test_widths_by_role() -> None:
    """Bits by role for the machine and one level; sizes and rates in bytes, energies per word, partitions."""
    engine = load(
        (("compute", "widths"), {"outputs": 32}),
        (("levels", 0, "widths"), {"outputs": 16}),
        ((*SPM, "word_bits"), 16),
        ((*SPM, "bandwidth"), {"shared": "8 B/cycle"}),
        ((*RF, "capacity"), REMOVED),
        ((*RF, "partitions"), {"inputs": "8 B", "weights": "3 elements", "outputs": "3 elements"}),
        ((*RF, "energy_by_role"), {"weights": 2, "outputs": {"read": 3, "write": 4}}),
    )
    dram, spm, rf = engine.levels
    assert (dram.widths, spm.widths, rf.widths) == ({}, {Role.OUTPUT: 32}, {Role.OUTPUT: 32})
    assert (spm.capacity, spm.shared_bandwidth, spm.read_bandwidth) == (2048, 4, None)
    assert (spm.read_energies, spm.write_energy_of(Role.OUTPUT)) == ({Role.OUTPUT: 12}, Fraction(29, 2))
    assert rf.partitions == {Role.INPUT: 4, Role.WEIGHT: 3, Role.OUTPUT: 3}
    assert [rf.read_energy_of(role) for role in Role] == [1, 2, 3]
    assert [rf.write_energy_of(role) for role in Role] == [1, 2, 4]
    assert EngineRecord.of(engine).build() == engine
    for text in ("read and write together 4 elements of 16 bits per cycle", "outputs: read 3 pJ, write 4 pJ"):
        assert text in engine_tree(engine)


def test_one_width_of_its_own_counts_in_elements() -> None:
    """Where all that a level keeps has one width, its size and rates in elements are of that."""
    only = ((*RF, "keeps"), ["outputs"]), (("compute", "widths"), {"outputs": 24})
    engine = load(*only, ((*RF, "capacity"), "5 elements"), ((*RF, "bandwidth"), "2 elements/cycle"))
    rf = engine.levels[2]
    assert (rf.capacity, rf.read_bandwidth, engine.usable_bits(rf)) == (5, 3, 120)
    assert load(*only, ((*RF, "capacity"), "6 B")).levels[2].capacity == 2


def test_energies_of_every_role_need_no_other() -> None:
    """A level all of whose roles have their energy is complete without a general one."""
    own = {"inputs": 1, "weights": 2, "outputs": 3}
    rf = load(((*RF, "energy"), REMOVED), ((*RF, "energy_by_role"), own)).levels[2]
    assert [rf.read_energy_of(role) for role in Role] == [1, 2, 3]


@pytest.mark.parametrize(
    ("path", "value", "field", "expectation"),
    [
        (("clock_mhz",), REMOVED, "clock_mhz", "missing, expected the engine's clock in MHz"),
        (("clock_mhz",), 0, "clock_mhz", "above 0"),
        (("clock_mhz",), "fast", "clock_mhz", "expected a number"),
        (
            ("compute",),
            3,
            "compute",
            "expected a mapping with mac_energy, element_bits, widths, static_power, area, got 3",
        ),
        (("compute", "element_bits"), 16.5, "compute.element_bits", "whole number"),
        (("compute", "mac_energy"), "x", "compute.mac_energy", "an energy in pJ"),
        (("cost_model",), "hierachy", "cost_model", "did you mean 'hierarchy'?"),
        (("cost_model",), ["hierarchy"], "cost_model", "expected a cost model among"),
        (("description",), 5, "description", "expected text"),
        (("dma",), {**DMA, "startup_cycles": -1}, "dma.startup_cycles", "at least 0"),
        (("levles",), [], "levles", "unknown field, did you mean 'levels'?"),
        (("zzz",), 1, "zzz", "expected one of description, cost_model"),
        (("levels",), {}, "levels", "expected a list"),
        (("levels",), [], "levels", "expected at least 2 entries, got 0"),
        (("levels",), [SMALL["levels"][0]] * 9, "levels", "expected at most 8 entries, got 9"),
        (("levels", 0), None, "levels[0]", "expected a mapping"),
        (("levels", 0, "capacity"), "1 GB", "levels[0].capacity", "the outermost level is unbounded"),
        (("levels", 0, "keeps"), ["inputs"], "levels[0].keeps", "keep outputs, weights too"),
        (
            ("levels", 0, "may_bypass"),
            ["inputs"],
            "levels[0].may_bypass",
            "outermost level cannot be bypassed",
        ),
        ((*SPM, "name"), "RF", "levels[2].name", "got 'RF' twice"),
        ((*SPM, "name"), "a b", "levels[1].name", "expected a name"),
        ((*SPM, "name"), "PE", "levels[1].name", "another name than those of what is no level, got 'PE'"),
        ((*SPM, "name"), "MAC", "levels[1].name", "got 'MAC'"),
        ((*SPM, "name"), "leakage", "levels[1].name", "got 'leakage'"),
        ((*SPM, "energy"), REMOVED, "levels[1].energy", "missing, expected pJ per access"),
        ((*SPM, "energy"), -6, "levels[1].energy.read", "at least 0"),
        ((*SPM, "energy"), {"read": 6}, "levels[1].energy.write", "missing, expected pJ per element"),
        ((*SPM, "energy"), "0.1234567890123", "levels[1].energy.read", "at most 12 decimals"),
        ((*SPM, "word_bits"), 48, "levels[1].energy", "at most 12 decimals per element too, got 29/12 pJ"),
        ((*SPM, "capcity"), "4 kB", "levels[1].capcity", "did you mean 'capacity'?"),
        ((*SPM, "capacity"), REMOVED, "levels[1].capacity", "missing, expected a size such as 128 kB"),
        ((*SPM, "capacity"), None, "levels[1].capacity", "left empty"),
        ((*SPM, "capacity"), "-4 kB", "levels[1].capacity", "expected a size above 0 with its unit"),
        ((*SPM, "capacity"), 4096, "levels[1].capacity", "such as 512 B, 128 kB, 1 MB or 24 elements"),
        ((*SPM, "capacity"), "3 B", "levels[1].capacity", "whole number of 16-bit elements, got 1.5"),
        ((*SPM, "elements"), 5, "levels[1].elements", "either capacity or elements"),
        ((*SPM, "elements"), 0, "levels[1].elements", "at least 1"),
        ((*SPM, "bandwidth"), 4, "levels[1].bandwidth.read", "16 B/cycle, 8 elements/cycle or 25.6 GB/s"),
        ((*SPM, "banks"), {"count": 3, "size": "1 kB"}, "levels[1].banks", "add up to the capacity of 2048"),
        ((*SPM, "banks"), {"count": 4}, "levels[1].banks.size", "missing, expected the size of one bank"),
        ((*SPM, "banks"), {"count": 4, "size": "3 B"}, "levels[1].banks.size", "16-bit elements"),
        ((*SPM, "double_buffered"), "yes", "levels[1].double_buffered", "expected true or false"),
        ((*SPM, "keeps"), ["input"], "levels[1].keeps[0]", "did you mean 'inputs'?"),
        ((*SPM, "keeps"), [], "levels[1].keeps", "at least 1 entries"),
        ((*SPM, "keeps"), "inputs", "levels[1].keeps", "expected a list"),
        ((*SPM, "keeps"), ["inputs", "inputs"], "levels[1].keeps", "got 'inputs' twice"),
        ((*SPM, "fanout", "axes"), [], "levels[1].fanout.axes", "at least 1 entries"),
        ((*AXIS, "size"), 0, "levels[1].fanout.axes[0].size", "at least 1"),
        ((*AXIS, "size"), -4, "levels[1].fanout.axes[0].size", "at least 1"),
        ((*AXIS, "size"), REMOVED, "levels[1].fanout.axes[0].size", "missing, expected the number"),
        ((*AXIS, "carries"), ["K", "X"], "levels[1].fanout.axes[0].carries[1]", "N, G, K, C, P, Q, R, S"),
        ((*AXIS, "carries"), ["K", "K"], "levels[1].fanout.axes[0].carries", "got 'K' twice"),
        (
            (*RF, "fanout"),
            {"axes": [{"name": "y", "size": 2}]},
            "levels[2].fanout",
            "no fanout at the innermost",
        ),
        ((*RF, "partitions"), {}, "levels[2].partitions", "a size for at least one role"),
        ((*RF, "partitions"), {"psums": "1 B"}, "levels[2].partitions.psums", "unknown field"),
        ((*RF, "partitions"), {"inputs": 12}, "levels[2].partitions.inputs", "24 elements, got 12"),
        ((*RF, "sliding_window"), 1, "levels[2].sliding_window", "expected true or false"),
        (("compute", "widths"), {"outputs": 0}, "compute.widths.outputs", "at least 1, got 0"),
        (("compute", "widths"), {"output": 32}, "compute.widths.output", "did you mean 'outputs'?"),
        (("compute", "widths"), {}, "compute.widths", "the bits of at least one role"),
        ((*SPM, "widths"), {"inputs": -8}, "levels[1].widths.inputs", "at least 1, got -8"),
        ((*SPM, "energy_by_role"), {"psums": 1}, "levels[1].energy_by_role.psums", "unknown field"),
        ((*SPM, "energy_by_role"), {}, "levels[1].energy_by_role", "energy of at least one role"),
        ((*SPM, "energy_by_role"), {"inputs": -1}, "levels[1].energy_by_role.inputs.read", "at least 0"),
        ((*SPM, "bandwidth"), {"shared": "0 B/cycle"}, "levels[1].bandwidth.shared", "above 0"),
        (
            (*SPM, "bandwidth"),
            {"shared": "8 B/cycle", "read": "8 B/cycle"},
            "levels[1].bandwidth.shared",
            "either a shared port or one to read and one to write, got both",
        ),
    ],
)
def test_one_wrong_field(path: Path_, value: object, field: str, expectation: str) -> None:
    """Every wrong field gives one line with the file, its line, the field and what was expected."""
    error = problem(machine((path, value)))
    assert error.field == field
    assert expectation in error.message
    assert error.where.startswith("m.yaml:")


@pytest.mark.parametrize(
    ("changes", "field", "expectation"),
    [
        (
            [((*SPM, "keeps"), ["inputs"]), ((*SPM, "may_bypass"), ["weights"])],
            "levels[1].may_bypass",
            "expected roles that the level keeps, got weights",
        ),
        (
            [((*RF, "keeps"), ["inputs"]), ((*RF, "partitions"), {"weights": "8 B"})],
            "levels[2].partitions.weights",
            "expected partitions of roles that the level keeps",
        ),
        (
            [((*RF, "keeps"), ["inputs"]), ((*RF, "partitions"), {"inputs": "8 B"})],
            "levels[2].capacity",
            "every role that is kept has its own partition",
        ),
        (
            [((*RF, "partitions"), {"inputs": "8 B"}), ((*RF, "banks"), {"count": 1, "size": "64 B"})],
            "levels[2].banks",
            "either banks or partitions",
        ),
        (
            [((*SPM, "keeps"), ["inputs"]), ((*SPM, "widths"), {"weights": 8})],
            "levels[1].widths.weights",
            "expected widths of roles that the level keeps, got weights",
        ),
        (
            [((*SPM, "keeps"), ["inputs"]), ((*SPM, "energy_by_role"), {"weights": 8})],
            "levels[1].energy_by_role.weights",
            "expected energies of roles that the level keeps, got weights",
        ),
        (
            [(("compute", "widths"), {"outputs": 32}), ((*RF, "capacity"), "24 elements")],
            "levels[2].capacity",
            "expected bytes, since elements here have different bits (inputs 16, weights 16, outputs 32)",
        ),
        (
            [(("compute", "widths"), {"outputs": 32}), ((*SPM, "bandwidth"), {"shared": "4 elements/cycle"})],
            "levels[1].bandwidth.shared",
            "expected bytes, since elements here have different bits",
        ),
        (
            [(("cost_model",), "dmazerunner"), (("dma",), DMA), ((*RF, "energy_by_role"), {"outputs": 2})],
            "levels[2].energy_by_role",
            "expected none for cost_model dmazerunner",
        ),
        ([((*SPM, "double_buffered"), True), ((*SPM, "streamed"), True)], "levels[1].streamed", "got both"),
        (
            [((*SPM, "double_buffered"), True), ((*SPM, "capacity"), "6 B")],
            "levels[1].capacity",
            "an even number of elements for two buffers, got 3",
        ),
        (
            [((*SPM, "double_buffered"), True), ((*SPM, "banks"), {"count": 1, "size": "4 kB"})],
            "levels[1].banks.count",
            "an even number of banks",
        ),
        (
            [(("levels", 0, "fanout"), {"axes": [{"name": "x", "size": 2}]})],
            "levels[1].fanout.axes[0].name",
            "got 'x' twice",
        ),
        ([(("cost_model",), "dmazerunner")], "dma", "missing, cost_model dmazerunner expects"),
        (
            [(("cost_model",), "dmazerunner"), (("dma",), DMA), (RF, REMOVED), ((*SPM, "fanout"), REMOVED)],
            "levels",
            "exactly 3 levels for cost_model dmazerunner, got 2",
        ),
        (
            [(("cost_model",), "dmazerunner"), (("dma",), DMA), ((*SPM, "fanout"), REMOVED)],
            "levels[1].fanout",
            "missing, cost_model dmazerunner expects one between levels 2 and 3",
        ),
        (
            [
                (("cost_model",), "dmazerunner"),
                (("dma",), DMA),
                (("levels", 0, "fanout"), {"axes": [{"name": "y", "size": 2}]}),
            ],
            "levels[0].fanout",
            "expected no fanout between levels 1 and 2",
        ),
        (
            [(("cost_model",), "dmazerunner"), (("dma",), DMA), ((*SPM, "fanout", "sharing"), True)],
            "levels[1].fanout.sharing",
            "expected no buffer sharing",
        ),
        ([((*SPM, "fanout", "hop_energy"), 1)], "levels[1].fanout.hop_energy", "expected sharing: true"),
        (
            [(("cost_model",), "dmazerunner"), (("dma",), DMA), ((*RF, "keeps"), ["inputs"])],
            "levels[2].keeps",
            "expected every role",
        ),
    ],
)
def test_fields_that_do_not_fit_together(
    changes: list[tuple[Path_, object]], field: str, expectation: str
) -> None:
    """Fields that contradict each other give one line at the field to change."""
    error = problem(machine(*changes))
    assert error.field == field
    assert expectation in error.message


def test_dmazerunner_machine_loads() -> None:
    """The same small machine is a dMazeRunner machine once it has a DMA engine."""
    engine = load((("cost_model",), "dmazerunner"), (("dma",), DMA))
    assert engine.dma is not None
    assert engine.dma.clock_ratio == Fraction(5, 32)


def test_line_numbers() -> None:
    """The error names the line of the field in the file."""
    text = (
        "clock_mhz: 500\ncompute: {mac_energy: 1, element_bits: 16}\nlevels:\n- name: DRAM\n  energy: 200\n"
    )
    text += "- name: RF\n  energy: 1\n  capacity: lots\n"
    assert str(problem(text)).startswith("m.yaml:8: levels[1].capacity: expected a size")


@pytest.mark.parametrize(
    ("text", "where", "expectation"),
    [
        ("levels: [", "m.yaml:1: column 10", "not valid YAML"),
        ("a: 1\n  b: 2\n", "m.yaml:2: column 4", "not valid YAML"),
        ("a: 1\na: 2\n", "m.yaml:2: column 1", "field 'a' is given twice"),
        ("a: *b\n", "m.yaml:1: column 4", "undefined alias"),
        ("a: !!python/name:os.system x\n", "m.yaml:1: column 4", "not valid YAML"),
        ("a: 1\n---\nb: 2\n", "m.yaml:2: column 1", "not valid YAML"),
        ("", "m.yaml", "expected a mapping"),
        ("just text\n", "m.yaml:1", "expected a mapping"),
        ("1: 2\n", "m.yaml:1", "unknown field"),
        ("a: \x00\n", "m.yaml", "not valid YAML"),
        ("[" * 3000, "m.yaml", "not valid YAML"),
        (
            "levels: &a [*a, *a]\nclock_mhz: 1\ncompute: {mac_energy: 1, element_bits: 8}",
            "m.yaml:1",
            "an alias stands inside what it repeats",
        ),
    ],
)
def test_broken_yaml(text: str, where: str, expectation: str) -> None:
    """Text that is not a YAML mapping gives one line with line and column where known."""
    error = problem(text)
    assert str(error).startswith(where)
    assert expectation in str(error)


@pytest.mark.parametrize("written", ["010", "1:30", "0x10", "2020-13-45", ".inf", ".nan", "~", "1e3"])
def test_odd_numbers_are_not_guessed(written: str) -> None:
    """Octal, base-60, hexadecimal, dates and infinities are refused rather than converted."""
    text = machine().replace("size: 4", f"size: {written}")
    assert problem(text).field == "levels[1].fanout.axes[0].size"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=4))
def test_any_value_anywhere_is_one_line(value: object) -> None:
    """Whatever stands in a field, the file loads or gives one line."""
    for path in [("clock_mhz",), ("levels",), SPM, (*SPM, "fanout"), (*SPM, "keeps"), (*RF, "partitions")]:
        try:
            load((path, value))
        except InputError as error:
            message = str(error)
        else:
            message = ""
        assert "\n" not in message


def test_files(tmp_path: Path) -> None:
    """A file is loaded by path object, by text ending in .yaml, and is named after itself."""
    path = tmp_path / "mine.yaml"
    path.write_text(machine(), encoding="utf-8")
    assert load_engine(path) == load_engine(str(path))
    assert load_engine(path).name == "mine"


def test_file_problems(tmp_path: Path) -> None:
    """A missing file, a folder and a binary file give one line with the path."""
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x81")
    expectations = {tmp_path / "no.yaml": "cannot be read", tmp_path: "cannot be read", binary: "UTF-8"}
    for path, expectation in expectations.items():
        with pytest.raises(InputError) as caught:
            load_engine(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert expectation in str(caught.value)


def test_unknown_preset() -> None:
    """An unknown name gives the nearest preset and the list of all."""
    with pytest.raises(InputError) as caught:
        load_engine("eyeris-168")
    assert "did you mean 'eyeriss-168'?" in str(caught.value)
    assert "nvdla-256" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_hash_is_of_the_content(tmp_path: Path) -> None:
    """Name, description and layout of a file do not change the hash; any figure does."""
    path = tmp_path / "other.yaml"
    path.write_text("# a comment\n" + machine((("description",), "the same")), encoding="utf-8")
    assert engine_hash(load_engine(path)) == engine_hash(load())
    assert engine_hash(load(((*RF, "energy"), 1.000001))) != engine_hash(load())
    assert len(engine_hash(load())) == 64


def test_hash_is_stable() -> None:
    """The hash of a machine stays what it was, so that saved results stay comparable."""
    assert engine_hash(load()) == "043b13b327b338a0f9250359a4b52a41d28c5f8afe20d2c36b04481915ccdf9e"


def test_engine_as_data() -> None:
    """Plain data carry exact figures as text."""
    level = engine_to_dict(load(((*SPM, "bandwidth"), "4 GB/s")))["levels"][1]
    assert (level["read_bandwidth"], level["write_energy"], level["capacity"]) == ("4", "7.25", 2048)
    assert level["fanout"]["axes"] == [{"name": "x", "size": 4, "carries": ["C", "K"]}]
    assert "sharing" not in level["fanout"]


def test_buffer_sharing() -> None:
    """A hop costs what a delivery does unless the file says otherwise; the hash tells them apart."""
    sharing = (*SPM, "fanout", "sharing"), True
    plain, shared = load(), load(sharing)
    dear = load(sharing, ((*SPM, "fanout", "hop_energy"), 0.5))
    fans = [engine.levels[1].fanout for engine in (plain, shared, dear)]
    assert [fan and (fan.sharing, fan.hop_energy) for fan in fans] == [
        (False, 0),
        (True, 2),
        (True, Fraction(1, 2)),
    ]
    assert engine_hash(load(((*SPM, "fanout", "sharing"), False))) == engine_hash(plain)
    assert len({engine_hash(engine) for engine in (plain, shared, dear)}) == 3
    assert "its buffers share, 0.5 pJ per element passed on" in engine_tree(dear)
    for engine in (plain, shared, dear):
        assert EngineRecord.of(engine).build() == engine


def test_tree_of_a_machine() -> None:
    """The tree tells bypass, banks, bandwidth and arrays of each level, nested, in 80 columns."""
    engine = load(
        ((*SPM, "may_bypass"), ["weights"]),
        ((*SPM, "banks"), {"count": 4, "size": "1 kB"}),
        (("description",), "long " * 40),
        (("dma",), DMA),
        ((*AXIS, "carries"), REMOVED),
        ((*SPM, "fanout", "multicast"), False),
        ((*SPM, "fanout", "reduction"), False),
    )
    text = engine_tree(engine)
    for part in (
        "\nDRAM: unbounded\n",
        "└─ SPM: 2048 elements (4 kB) usable",
        "banks of 512 elements (1 kB)",
        "may be bypassed by weights",
        "read 16, write 16 elements per cycle",
        "array 4: 2 pJ per element and instance, unicast",
        "axis x: 4, carries any dimension",
        "291 cycles and 0.24 per byte at 3200 MHz",
        "   └─ RF: 32 elements (64 B) usable",
    ):
        assert part in text
    assert max(len(line) for line in text.splitlines()) <= WIDTH


def test_tree_of_an_odd_machine_fits() -> None:
    """Eight levels with the longest names still fit in 80 columns."""
    levels: list[dict[str, object]] = [{"name": "A" * 40, "energy": 123456789.123456}]
    for letter in "BCDEFGH":
        axes = [{"name": letter.lower() * 40, "size": 10**14}]
        levels.append(
            {"name": letter * 40, "energy": 123456789.123456, "elements": 10**14, "fanout": {"axes": axes}}
        )
    del levels[-1]["fanout"]
    text = engine_tree(load((("levels",), levels)))
    assert max(len(line) for line in text.splitlines()) <= WIDTH
