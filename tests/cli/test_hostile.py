"""Hostile inputs of every kind: one clear line and a documented exit code, no traceback, no long wait."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import yaml
from calls import SMALL, Call, Outcome
from clocks import delay
from effort import effort
from hostile import BROKEN, TEXTS, garbled, json_text, mutated, yaml_text

SECONDS = 15.0
"""Far above what any of these calls takes, even on a busy machine."""

ARCH = ("-a", "tpu-edge")
SYSTEM = {
    "clock_mhz": 1000,
    "memory": "4 MB",
    "dram_bandwidth": "16 GB/s",
    "sub_accelerators": [
        {"name": "deep", "dataflow": "nvdla", "pes": 16, "bandwidth": "4 GB/s"},
        {"name": "wide", "dataflow": "shidiannao", "pes": 16, "bandwidth": "12 GB/s"},
    ],
}
MACHINE = {
    "clock_mhz": 500,
    "compute": {"mac_energy": 1, "element_bits": 8},
    "levels": [{"name": "DRAM", "energy": 200}, {"name": "RF", "energy": 1, "capacity": "2 kB"}],
}
WORKLOAD = {"networks": [{"model": SMALL, "batches": 2}, {"model": "gemm:M=4,N=4,K=8"}]}
LAYERS = [{"kind": "conv", "K": 4, "C": 4, "P": 4, "Q": 4, "R": 3, "S": 3, "stride": [1, 2], "pad": 1}, SMALL]


def told_well(outcome: Outcome, seconds: float, *, refused: bool = False) -> None:
    """A documented exit code, nothing unexpected, no control characters, soon."""
    assert outcome.code in ((2,) if refused else (0, 2, 3, 4, 5, 6)), outcome.err
    assert "-v shows the traceback" not in outcome.err
    assert "Traceback" not in outcome.err
    assert not any(ord(letter) < 32 and letter != "\n" for letter in outcome.out + outcome.err)
    assert outcome.code != 2 or len(outcome.err.splitlines()) == 1
    assert seconds < SECONDS + delay()


def timed(call: Call, *args: object) -> tuple[Outcome, float]:
    began = time.monotonic()
    return call(*args), time.monotonic() - began


@pytest.mark.parametrize("flag", TEXTS)
def test_hostile_texts(call: Call, tmp_path: Path, flag: str) -> None:
    """A model or an option that is nothing, too large, in other digits or full of escapes is refused."""
    for name in ("loop.json", "loop.html"):
        (tmp_path / name).symlink_to(name)
    before = sorted(tmp_path.iterdir())
    for text in TEXTS[flag]:
        if flag == "LAYER":
            outcome, seconds = timed(call, "map", text, *ARCH, "-t", "2", "-q")
        elif flag == "--arch":
            outcome, seconds = timed(call, "map", SMALL, flag, text, "-t", "2", "-q")
        else:
            outcome, seconds = timed(call, "map", SMALL, *ARCH, "-t", "2", "-q", flag, text)
        accepted = flag in ("--seed", "--threads", "--best") or "name=" in text
        told_well(outcome, seconds, refused=not accepted)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(call: Call, tmp_path: Path, name: str) -> None:
    """Aliases that multiply, endless nesting, huge numbers and NULs are refused by verbs that read files."""
    (tmp_path / name).write_text(BROKEN[name], encoding="utf-8", errors="surrogatepass")
    calls = [("map", name, *ARCH), ("map", SMALL, "-a", name), ("evaluate", name), ("show", name)]
    if name in ("merge.yaml", "nan.json"):
        calls += [("check", name), ("runs", name), ("map", SMALL, *ARCH, "--warm-start", name)]
        calls += [("schedule", SMALL, "--system", name)]
    for args in calls:
        told_well(*timed(call, *args), refused=True)


def test_mutated_descriptions(call: Call, tmp_path: Path) -> None:
    """Machines, systems, workloads and layers with a hostile value in one place."""
    draw = random.Random(1)
    for _ in range(effort(3)):
        for data in (MACHINE, SYSTEM, WORKLOAD, LAYERS):
            path = tmp_path / "f.yaml"
            path.write_text(yaml_text(mutated(data, draw)), encoding="utf-8", errors="surrogatepass")
            told_well(*timed(call, "show", path))
            path.write_bytes(garbled(yaml_text(data).encode(), draw))
            told_well(*timed(call, "show", path))


def test_mutated_documents(call: Call, tmp_path: Path) -> None:
    """Results, schedules and mappings with a hostile value in one place."""
    assert call("map", SMALL, *ARCH, "-q", "--out", "r.json", "--save-mappings", "m", "--best", "2").code == 0
    (tmp_path / "w.yaml").write_text(yaml_text(WORKLOAD))
    (tmp_path / "s.yaml").write_text(yaml_text(SYSTEM))
    assert call("schedule", "w.yaml", "--system", "s.yaml", "-t", "30", "-q", "--out", "s.json").code == 0
    draw = random.Random(2)
    kinds: list[tuple[str, Path, Callable[[object], str], object]] = []
    for name, reads in (("r.json", json.loads), ("s.json", json.loads), ("m/gemm.yaml", yaml.safe_load)):
        path = tmp_path / name
        text = json_text if path.suffix == ".json" else yaml_text
        kinds.append((name, path.with_name(f"mutated{path.suffix}"), text, reads(path.read_text())))
    for _ in range(effort(3)):
        for name, path, text, data in kinds:
            path.write_text(text(mutated(data, draw)), encoding="utf-8", errors="surrogatepass")
            for verb in ("evaluate",) if name.startswith("m/") else ("check", "evaluate"):
                told_well(*timed(call, verb, path))


def test_garbled_onnx(call: Call, tmp_path: Path) -> None:
    """A model that is cut off, repeated or flipped is imported or refused."""
    shipped = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
    content, draw = shipped.read_bytes(), random.Random(3)
    for _ in range(effort(3)):
        (tmp_path / "f.onnx").write_bytes(garbled(content, draw))
        told_well(*timed(call, "show", "f.onnx"))


def test_more_than_a_file_may_have(call: Call, tmp_path: Path) -> None:
    """Files over their stated cap are refused before they are read into memory."""
    for name, size, cap in (("a.json", 2**31, "2 GB"), ("a.yaml", 2**26, "64 MB")):
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(size + 1)
        outcome, seconds = timed(call, "check", name)
        told_well(outcome, seconds, refused=True)
        assert f"{name}: larger than {cap}" in outcome.err
    assert "a.yaml: larger than 1 MB" in call("map", SMALL, "-a", "a.yaml").err
