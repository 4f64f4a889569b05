"""Machine files in systems by verbs: widths that a quantised model stores, and trees in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from calls import Call
from onnx import TensorProto, helper, numpy_helper

WIDE = """
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 16}
levels:
  - {name: DRAM, energy: 100}
  - name: BUF
    capacity: 64 kB
    energy: 4
    bandwidth: 8 B/cycle
    fanout: {axes: [{name: k, size: 4, carries: [K]}], energy: 0.5}
  - {name: RF, elements: 64, energy: 0.25, double_buffered: true}
"""
SYSTEM = """
memory: 64 kB
dram_bandwidth: 8 GB/s
sub_accelerators:
  - {name: a, arch: wide.yaml, bandwidth: 4 GB/s}
"""
GRID = """
clock_mhz: 500
grid: {width: 1, height: 1, link: 8 B/cycle}
dram: {bandwidth: 8 B/cycle, energy: 10, ports: left}
engine: {arch: wide.yaml, buffer: BUF, vector_lanes: 4}
hop_energy: 0
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A convolution of 8-bit integers in Q and DQ pairs, and machines with 16-bit elements."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    for name, text in (("wide", WIDE), ("system", SYSTEM), ("grid", GRID)):
        (tmp_path / f"{name}.yaml").write_text(text)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wd"]),
        helper.make_node("Conv", ["d", "wd"], ["c"], name="conv"),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["qc"]),
        helper.make_node("DequantizeLinear", ["qc", "s", "z"], ["y"]),
    ]
    held = {"w": np.ones((8, 4, 3, 3), np.int8), "s": np.float32(0.1), "z": np.int8(0)}
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 6, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8, 4, 4))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)]), tmp_path / "quantised.onnx"
    )


def test_schedules_and_plans_move_stored_bits(call: Call) -> None:
    """Weights cross DRAM in 8 bits instead of 16, in systems and on grids; the floating-point input in 16."""
    asked = ("-o", "energy", "-f", "json", "-q", "-t", "60", "--threads", "1")
    bytes_moved = {}
    for system, method in (("system.yaml", "herald"), ("grid.yaml", "ls")):
        wide, stored = (
            call("schedule", "quantised.onnx", "--system", system, "-m", method, *asked, *more).document
            for more in ((), ("--stored-widths",))
        )
        assert stored["value"] < wide["value"]
        bytes_moved[system] = wide, stored
    wide, stored = (document["metrics"] for document in bytes_moved["grid.yaml"])
    inputs, weights = 4 * 36, 8 * 4 * 9
    assert wide["dram_read_bytes"] == 2 * inputs + 2 * weights
    assert stored["dram_read_bytes"] == 2 * inputs + weights
    assert (wide["dram_write_bytes"], stored["dram_write_bytes"]) == (2 * 8 * 16, 8 * 16)


def test_a_tree_of_a_file_is_evaluated_on_a_machine_file(call: Call) -> None:
    """The plan of a tree in a file has mappings of its tasks, as the plan that the tree was written from."""
    layer = "gemm:M=4,N=4,K=4"
    plan = call(
        *("schedule", layer, "--system", "grid.yaml", "-m", "kapla", "-o", "energy", "-t", "20"),
        *("--threads", "1", "-q", "-f", "json", "--tree", "tree.yaml"),
    ).document
    tree = call("evaluate", "tree.yaml", "-f", "json").document
    assert tree["plan"]["energy_pj"] == plan["metrics"]["energy_pj"]
    assert call("check", "tree.yaml").code == 0


def test_a_contest_and_a_codesign_take_the_flag(call: Call) -> None:
    """``compare`` and ``codesign``, the latter by the flag or by a workload's file; documents check."""
    asked = ("-f", "json", "-q", "-t", "20", "--threads", "1")
    rivals = ("--methods", "ls", "--system", "grid.yaml", "-o", "energy", "--store", "runs.sqlite", "-t", "5")
    wide, stored = (
        call("compare", "quantised.onnx", *asked, *rivals, "--out", "contest.json", *more).document
        for more in ((), ("--stored-widths",))
    )
    best = [{entry["method"]: entry["best"] for entry in data["contestants"]} for data in (wide, stored)]
    assert best[1]["ls"] < best[0]["ls"]
    assert call("check", "contest.json", "--store", "runs.sqlite").code == 0
    chip = ("--class", "edge", "--dataflows", "wide.yaml,wide.yaml", "--bandwidth-step", "8", "-o", "energy")
    Path("work.yaml").write_text("networks: [{model: quantised.onnx, stored_widths: true}]")
    values = [
        call("codesign", model, *chip, *asked, *more, "--out", "split.json").document["value"]
        for model, more in (("quantised.onnx", ("--stored-widths",)), ("work.yaml", ()))
    ]
    assert values[0] == values[1]
    assert call("check", "split.json").code == 0
    refused = call("codesign", "work.yaml", *chip, "--stored-widths")
    assert refused.code == 2
    assert "--stored-widths: is for a model; a workload states its own" in " ".join(refused.err.split())
