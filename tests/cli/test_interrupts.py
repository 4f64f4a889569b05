"""Ctrl-C and SIGTERM while each method of each kind runs: the newest answer, at once, and no process dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from calls import HARD
from clocks import delay
from systems import SYSTEM

from tilewright.foundation.registry import Registry
from tilewright.solvers.mapping.methods import method_names
from tilewright.solvers.mapping.registry import SOLVERS
from tilewright.solvers.scheduling.herald.registry import METHODS as HERALD
from tilewright.solvers.scheduling.tiled.registry import METHODS as TILED

NETWORK = """
- gemm:M=1,N=16,K=32
- gemm:M=3,N=40,K=8
- gemm:M=7,N=5,K=64
- gemm:M=16,N=16,K=5
"""
WORKLOAD = "networks: [{name: net, model: net.yaml, batches: 20}]"
WORK = ("work.yaml", "--system", "system.yaml", "-o", "edp", "--threads", "1")
SMALL = "conv:K=32,C=16,P=8,Q=8,R=3,S=3"
LAYERS = {"exhaustive": "gemm:M=24,N=16,K=12", "highs": SMALL, "cbc": SMALL}
"""For methods that refuse what is large, or take long to state it."""
TILES = {"exact": (SMALL, "atomic-2x2"), "transfers": (SMALL, "atomic-2x2")}
"""The same; the others plan AlexNet."""

Calls = dict[str, list[str]]


def mapping_calls() -> Calls:
    """Every method for one layer."""
    ask = ("-a", "eyeriss-168", "-o", "edp", "--solver")
    return {
        name: ["map", LAYERS.get(name, HARD), *ask, name, "--log", f"{name}.log"] for name in method_names()
    }


def herald_calls() -> Calls:
    """Every method for sub-accelerators, and the search for their sizes."""
    calls = {name: ["schedule", *WORK, "-m", name] for name in HERALD.names()}
    return calls | {"codesign": ["codesign", "work.yaml", "--class", "edge", "--threads", "1"]}


def tiled_calls() -> Calls:
    """Every method for a tiled machine."""
    calls: Calls = {}
    for name in TILED.names():
        model, system = TILES.get(name, ("alexnet", "atomic-8x8[engines=4x4]"))
        calls[name] = ["schedule", model, "--system", system, "-m", name]
    return calls


def many_calls() -> Calls:
    """Verbs that run several searches; `test_bench` has the one that keeps them in a store."""
    grid = ("--vary", "levels.RF.capacity=16B..1kB*2", "--vary", "clock_mhz=100..400+10", "--every")
    return {
        "network": ["map", "alexnet", "-a", "eyeriss-168", "-o", "edp", "--storage", "uneven"],
        "compare": ["compare", "alexnet", "--system", "atomic-8x8[engines=4x4]", "--methods", "atomic,lns"],
        "explore": ["explore", SMALL, "-a", "dmazerunner-256", *grid],
    }


LATER = {
    "set-all": "has no answer within seconds",
    "cbc": "is interrupted as HiGHS is, in the same child",
    "set-ls": "is searched as set-lp is, by the same module",
    "chains": "is searched as cover is, by the same module",
    "sizes": "waits for CP-SAT alone, as lns does in its neighbourhoods",
    "windows": "the same",
}
"""Methods that the long test alone interrupts, with the reason."""
KINDS = {"map": mapping_calls, "herald": herald_calls, "tiled": tiled_calls, "many": many_calls}


def interrupted(folder: Path, calls: Calls, seconds: float) -> list[dict[str, Any]]:
    """What became of calls that were interrupted some seconds after their first answers."""
    (folder / "net.yaml").write_text(NETWORK)
    (folder / "work.yaml").write_text(WORKLOAD)
    (folder / "system.yaml").write_text(SYSTEM)
    (folder / "calls").write_text(json.dumps(calls))
    script = Path(__file__).parents[1] / "interrupted.py"
    done = subprocess.run(
        [sys.executable, str(script), "calls", str(seconds)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "TILEWRIGHT_CACHE": str(folder / "costs")},
        check=False,
    )
    lines = [json.loads(line) for line in (folder / "told.jsonl").read_text().splitlines()]
    running = [*calls, "none"][len(lines)]
    assert (done.returncode, running) == (0, "none"), done.stderr
    return lines


def parts(document: dict[str, Any]) -> list[dict[str, Any]]:
    """What has a status of its own: the layers of a network, or the document itself."""
    layers = document.get("layers")
    if isinstance(layers, list) and layers and "status" in layers[0]:
        return layers
    return [document] if "value" in document else []


def check(lines: list[dict[str, Any]]) -> int:
    """How many of the calls were interrupted before they had ended by themselves."""
    count = 0
    for line in lines:
        name = line["name"]
        document = json.loads(line["out"])
        assert json.loads(line["file"]) == document, name
        for part in parts(document):
            values = [point["value"] for point in part.get("trace", []) if point["value"] is not None]
            assert part["value"] == min(values, default=None), name  # the newest answer, not an older one
        if line["seconds"] is None:
            assert line["code"] in (0, 4), (name, line["err"])
            continue
        count += 1
        assert line["seconds"] < delay(), name
        assert line["code"] in (0, 130), (name, line["err"])
        assert "error" not in [part.get("status") for part in parts(document)], name
        if line["code"] == 0:
            assert all(part.get("value") is not None for part in parts(document)), name
    return count


def on_solvers(kind: str) -> Calls:
    """The calls whose methods stand beside the solvers, with whose libraries they may share a process."""
    registries: dict[str, Registry[Any]] = {"map": SOLVERS, "herald": HERALD, "tiled": TILED}
    modules = {name: registries[kind].entry(name).module for name in registries[kind].names()}
    beside = {name for name, module in modules.items() if ".solvers." in module}
    return {name: call for name, call in KINDS[kind]().items() if name in beside - {*LATER}}


@pytest.mark.parametrize("kind", ["map", "tiled", pytest.param("herald", marks=pytest.mark.slow)])
def test_each_solver_is_interrupted_soon_after_its_first_answer(tmp_path: Path, kind: str) -> None:
    """Within two seconds (`TEST_DELAY`) the document is printed and written, with the newest answer."""
    lines = interrupted(tmp_path, on_solvers(kind), 0.1)
    assert check(lines) >= len(lines) // 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_method_is_interrupted_amid_its_work(tmp_path: Path, kind: str) -> None:
    """The same some seconds later, when libraries have had their chance to take signals over."""
    lines = interrupted(tmp_path, KINDS[kind](), 2.0)
    assert check(lines) >= len(lines) // 6  # on a quick machine many have ended
