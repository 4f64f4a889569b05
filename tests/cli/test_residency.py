"""``schedule --keep-activations``: document, check, evaluation and refusal of what does not add up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import Call
from systems import SYSTEM

from tilewright.cli.scheduling import herald
from tilewright.workloads.blueprint import Blueprint
from tilewright.workloads.scheduling.workload import Part, Workload


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small system, a chain of three layers, and cost tables of their own."""
    net = Blueprint("three", 1)
    x = net.conv(net.conv(net.image(4, 8), 8, 3, pad=1, name="first"), 8, 1, name="second")
    net.dense(net.flatten(x), 10, name="third")
    workload = Workload("three", (Part("three", net.network()),))
    monkeypatch.setattr(herald, "resolve_workload", lambda *_asked: workload)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "system.yaml").write_text(SYSTEM)


def test_results_that_stay_from_the_command_line(call: Call) -> None:
    """Less energy than without; the document is checked, proven and evaluated to the same value."""
    common = ("schedule", "three", "--system", "system.yaml", "--threads", 1, "-o", "energy", "-f", "json")
    stored = call(*common).document
    out = call(*common, "--keep-activations", "--out", "s.json")
    document = out.document
    assert document["value"] < stored["value"]
    assert document["system"]["keep_activations"]
    assert (document["status"], stored["status"]) == ("optimal", "optimal")
    assert {place for row in document["schedule"] for place in row["sources"].values()} >= {"memory"}
    assert document["metrics"]["energy_pj"] == sum(row["energy_pj"] for row in document["schedule"])
    assert call("check", "s.json").code == 0
    assert call("evaluate", "s.json", "-f", "json").document["value_exact"] == document["value_exact"]
    document["system"]["keep_activations"] = False
    Path("s.json").write_text(json.dumps(document))
    reported = call("check", "s.json")
    assert reported.code == 5
    assert "results stay in the shared memory, but the system sends them to DRAM" in reported.out
