"""Hostile files of every kind through every verb that reads them: an exit code that is told, and one line."""

from __future__ import annotations

import json
import random
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from calls import SMALL, Call
from effort import effort
from hostile import BROKEN, garbled, json_text, laughs, mutated, yaml_text
from hostile_onnx import amplifiers, changed, seeds
from systems import SYSTEM as SUB_ACCELERATORS

LIMIT = ("-t", "1", "-q")
ARCH = ("-a", "tpu-edge")
MACHINE = """\
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 8}
levels:
  - {name: DRAM, energy: 200, bandwidth: 16 B/cycle}
  - {name: GLB, energy: 6, capacity: 64 kB, fanout: {axes: {x: 4}, multicast: true}}
  - {name: RF, energy: 1, capacity: 64 B}
"""
LAYERS = [{"kind": "conv", "K": 4, "C": 4, "P": 4, "Q": 4, "R": 3, "S": 3, "stride": [1, 2], "pad": 1}, SMALL]
WORKLOAD = {"networks": [{"model": SMALL, "batches": 2}, {"model": "gemm:M=4,N=4,K=8"}]}
VERBS: dict[str, tuple[tuple[str, ...], ...]] = {
    "model": (
        ("show", "FILE"),
        ("map", "FILE", *ARCH, *LIMIT),
        ("map", "FILE", *ARCH, *LIMIT, "--skip-unsupported"),
        ("map", "FILE", *ARCH, *LIMIT, "--batch", "3"),
        ("schedule", "FILE", "--system", "fda-edge-nvdla", *LIMIT),
        ("explore", "FILE", *ARCH, *LIMIT, "--vary", "clock_mhz=100,200"),
        ("convert", "FILE", "--arch", "tpu-edge", "--to", "timeloop", "--out", "converted"),
    ),
    "machine": (
        ("show", "FILE"),
        ("map", SMALL, "-a", "FILE", *LIMIT),
        ("explore", SMALL, "-a", "FILE", *LIMIT, "--vary", "clock_mhz=100,200"),
        ("convert", "FILE", "--layer", SMALL, "--to", "timeloop", "--out", "converted"),
    ),
    "layers": (("show", "FILE"), ("map", "FILE", *ARCH, *LIMIT)),
    "workload": (("show", "FILE"), ("schedule", "FILE", "--system", "fda-edge-nvdla", *LIMIT)),
    "system": (("show", "FILE"), ("schedule", SMALL, "--system", "FILE", *LIMIT)),
    "mapping": (
        ("show", "FILE"),
        ("evaluate", "FILE"),
        ("map", SMALL, *ARCH, *LIMIT, "--warm-start", "FILE"),
    ),
    "document": (("show", "FILE"), ("evaluate", "FILE"), ("check", "FILE"), ("runs", "FILE")),
}
"""Calls by what the file should be."""


def odd(text: str, draw: random.Random) -> str:
    """A YAML text with something in it that only a text can have."""
    lines = text.splitlines() or [""]
    at = draw.randrange(len(lines))
    inserted = draw.choice(
        [
            lines[at],
            "a: &a [*a]",
            "? [a, b]\n: c",
            "!!python/object/apply:os.system ['true']",
            "x: !!binary '//8='",
            "x: " + "9" * 5000,
            "x: 1e999999999",
            "x: &r {<<: *r}",
            "x: " + "[" * 500,
            "- " * 300,
            "\u202ex: \ufeff1",
            "%YAML 9.9",
            "---\nx: 1",
            "x: " + "y" * 20_000,
            "x: .nan",
            "x: 2001-99-99",
            "\tx: 1",
            laughs(30, merge=draw.random() < 0.5),
        ]
    )
    lines.insert(at, inserted)
    return "\n".join(lines)


def files(draw: random.Random, documents: dict[str, Any]) -> Iterator[tuple[str, str, bytes]]:
    """What a file should be, its ending, and its hostile content; without end."""
    models, many = seeds(), [model.SerializeToString() for _, model in amplifiers()]
    plain: dict[str, tuple[str, str]] = {
        "machine": (".yaml", MACHINE),
        "layers": (".yaml", yaml_text(LAYERS)),
        "workload": (".yaml", yaml_text(WORKLOAD)),
        "system": (".yaml", SUB_ACCELERATORS),
        "mapping": (".yaml", documents["mapping"]),
    }
    while True:
        kind = draw.choice(["model", "model", "document", "document", *plain])
        if kind == "model":
            content = changed(draw.choice(models), draw).SerializeToString()
            choice = draw.random()
            if choice < 0.1:
                content = draw.choice(many)
            elif choice < 0.3:
                content = garbled(content, draw)
            yield kind, ".onnx", content
            continue
        if kind == "document":
            text = json_text(documents[draw.choice([name for name in documents if name != "mapping"])])
            suffix = draw.choice([".json", ".json", ".yaml"])
        else:
            suffix, text = plain[kind]
        choice = draw.random()
        if choice < 0.6:
            data = mutated(yaml.safe_load(text), draw)
            text = json_text(data) if suffix == ".json" else yaml_text(data)
        elif choice < 0.8:
            text = odd(text, draw)
        elif choice < 0.85:
            text = draw.choice(list(BROKEN.values()))
        content = text.encode("utf-8", "surrogatepass")
        yield kind, suffix, garbled(content, draw) if choice >= 0.85 else content


@pytest.fixture
def documents(call: Call, tmp_path: Path) -> dict[str, Any]:
    """A document of every kind that small calls write, and a mapping file."""
    (tmp_path / "s.yaml").write_text(SUB_ACCELERATORS)
    calls: dict[str, tuple[object, ...]] = {
        "result": ("map", SMALL, *ARCH, "-q", "--save-mappings", "m", "--best", "2"),
        "schedule": ("schedule", SMALL, "--system", "s.yaml", "-t", "20", "-q"),
        "explore": ("explore", SMALL, *ARCH, "-q", "--vary", "clock_mhz=100,200"),
    }
    for name, args in calls.items():
        assert call(*args, "--out", f"{name}.json").code == 0
    texts: dict[str, Any] = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in calls}
    return texts | {"mapping": (tmp_path / "m" / "gemm.yaml").read_text()}


def refusals(call: Call, folder: Path, documents: dict[str, Any], seed: int, count: int) -> list[str]:
    """What is wrong with the answers to so many hostile files."""
    draw = random.Random(seed)
    wrong: list[str] = []
    hostile = files(draw, documents)
    for number in range(count):
        kind, suffix, content = next(hostile)
        path = folder / f"hostile{suffix}"
        path.write_bytes(content)
        args = [str(path) if word == "FILE" else word for word in draw.choice(VERBS[kind])]
        before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        outcome = call(*args)
        seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before
        faults = [
            fault
            for fault, holds in (
                (f"exit code {outcome.code}", outcome.code not in (0, 2, 3, 4, 5, 6)),
                ("a traceback", "raceback" in outcome.err),
                ("several errors", outcome.code == 2 and outcome.err.count("tilewright: error: ") != 1),
                ("a long line", outcome.code == 2 and len(outcome.err) > 3000),
                ("an error without the file", outcome.code == 2 and path.stem not in outcome.err),
                ("a control character", any(ord(c) < 32 and c != "\n" for c in outcome.out + outcome.err)),
                (f"{seconds:.1f} s", seconds > 12),
            )
            if holds
        ]
        if faults:
            kept = folder / f"kept{seed}-{number}{suffix}"
            kept.write_bytes(content)
            wrong.append(f"{kept} {' '.join(args)}: {', '.join(faults)}: {outcome.err[-400:]}")
    return wrong


def test_some_hostile_files(call: Call, tmp_path: Path, documents: dict[str, Any]) -> None:
    """Twenty files, of every kind some."""
    assert refusals(call, tmp_path, documents, seed=1, count=effort(20)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 40))
def test_three_thousand_hostile_files(
    call: Call, tmp_path: Path, documents: dict[str, Any], seed: int
) -> None:
    """A hundred files of each of thirty seeds."""
    assert refusals(call, tmp_path, documents, seed=seed, count=100) == []
