"""``schedule``, ``check`` and ``list`` for tiled machines, as a user calls them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilewright.cli.main import run
from tilewright.report.plots.style import LOADS

MODEL = """\
- conv:N=1,K=32,C=16,P=8,Q=8,R=3,S=3,name=first
- conv:N=1,K=32,C=32,P=8,Q=8,R=1,S=1,name=second
"""

MACHINE = """\
clock_mhz: 500
grid: {width: 2, height: 2, topology: torus, link: 16 B/cycle}
dram: {bandwidth: 32 GB/s, energy: 56, ports: [[0, 0], [1, 1]]}
engine:
  array: {rows: 16, columns: 16, dataflow: kc}
  buffer: {size: 64 kB, energy: 2.7}
  mac_energy: 0.3
  vector_lanes: 16
hop_energy: 4.88
"""

Caller = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """Calls the command line in a folder with a small model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.yaml").write_text(MODEL)

    def call_it(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = int(run(list(arguments)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call_it


def plan(call: Caller, *arguments: str) -> Any:
    """The document of a plan."""
    code, out, err = call("schedule", "model.yaml", "--system", "atomic-2x2", "-f", "json", *arguments)
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("objective", ["makespan", "energy", "edp", "E^2*D"])
def test_a_plan_holds_when_it_is_checked(call: Caller, tmp_path: Path, objective: str) -> None:
    """The document written during the search equals the one printed, and check confirms it from it alone."""
    document = plan(call, "-m", "atomic[moves=3]", "-o", objective, "--batch", "2", "--out", "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()) == document
    assert document["schema"] == "tilewright.plan/1"
    assert document["status"] == "feasible"
    assert 0 < document["bound"] <= document["value"]
    metrics = document["metrics"]
    assert sum(metrics["energy_by_component_pj"].values()) == pytest.approx(metrics["energy_pj"])
    (tmp_path / "model.yaml").unlink()
    code, out, _ = call("check", "plan.json", "-f", "json")
    assert (code, json.loads(out)["faults"]) == (0, [])


def test_powers_have_to_be_whole(call: Caller) -> None:
    """Whole powers of energy and delay are an objective on tiled machines; others are refused."""
    model = ("schedule", "model.yaml", "--system")
    code, _, err = call(*model, "atomic-2x2", "-o", "E^1.5*D")
    assert (code, err) == (
        2,
        "tilewright: error: --objective: expected whole powers on tiled machines, got 'E^1.5*D'\n",
    )
    code, _, err = call(*model, "atomic-2x2", "-o", "ed3p")
    assert code == 2
    assert "unknown name 'ed3p', did you mean 'edp'?" in err
    code, _, err = call(*model, "fda-edge-nvdla", "-o", "ed2p")
    assert code == 2
    assert "(expected one of: makespan, energy, edp)" in err


def test_a_changed_plan_fails_its_check(call: Caller, tmp_path: Path) -> None:
    """Another bound, figure, engine or machine is found out, each by its name."""
    document = plan(call, "-m", "ls")
    changes: list[tuple[str, Callable[[Any], object]]] = [
        ("bound_exact", lambda d: d.update(bound=d["bound"] + 1, bound_exact=str(d["bound"] + 1))),
        ("metrics.reuse", lambda d: d["metrics"].update(reuse=0.25)),
        ("illegal plan", lambda d: d["plan"].update(engine=d["plan"]["first"])),
        ("input_hash", lambda d: d["problem"]["machine"].update(link_rate=99.0)),
        ("input_hash", lambda d: d.update(objective="E^2*D")),
        ("plan.engine", lambda d: d["plan"].update(engine="AAAA")),
    ]
    for name, change in changes:
        altered = json.loads(json.dumps(document))
        change(altered)
        (tmp_path / "altered.json").write_text(json.dumps(altered))
        code, out, _ = call("check", "altered.json", "-f", "json")
        assert code == 5
        assert any(name in fault for fault in json.loads(out)["faults"]), (name, out)


def test_a_table_shows_value_and_both_bounds(call: Caller) -> None:
    """The table has the gap over all sizes, the least of the chosen atoms, and the layers."""
    code, out, err = call("schedule", "model.yaml", "--system", "atomic-2x2[link=8]", "--method", "rammer")
    assert code == 0
    for text in ("bound over all sizes", "least of these atoms", "network overhead", "first", "second"):
        assert text in out
    assert "rammer on 2 layers" in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--system", "atomic-2x2", "--batch", "0"), "batch: expected at least 1, got 0"),
        (("--system", "atomic-2x2", "--batch", "9" * 20), "batch: expected at most 1,000,000, got 99999"),
        (("--system", "atomic-2x2[buffer=0.0078125]"), "its smallest atom needs"),
        (("--system", "atomic-2x3"), "did you mean 'atomic-2x2'"),
        (("--system", "atomic-2x2[links=8]"), "did you mean 'link'"),
        (("--system", "atomic-2x2", "--metric", "edp"), "--metric: is not for tiled machines"),
        (("--system", "atomic-2x2", "--method", "atomik"), "did you mean 'atomic'"),
        (("--system", "hda-edge-maelstrom", "--batch", "2"), "N: 1 contradicts the batch 2"),
        (("--system", "hda-edge-maelstrom", "--warm-start", "p.json"), "--warm-start: is for tiled machines"),
        (
            ("--system", "atomic-2x2[link=-4]"),
            "link: expected a number above 0 and at most 1,000,000,000,000,000, got '-4'",
        ),
        (("--system", "atomic-2x2[link]"), "cannot read 'link', expected parameter=value"),
        (("--system", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("--system", "no-dram.yaml"), "no-dram.yaml:1: dram: missing, expected {bandwidth, energy, ports}"),
        (("--system", "slow-link.yaml"), "slow-link.yaml:2: grid.link: expected a bandwidth above 0"),
        (("--system", "atomic-2x2", "--warm-start", "model.yaml"), "expected a plan on a tiled machine"),
        (("--system", "atomic-2x2", "--out", "plan.csv"), "expected a file that ends in one of: .json"),
        (("--system", "atomic-2x2", "--links", "links.gif"), "links.gif: expected a file that ends in"),
        (("--system", "atomic-2x2", "--seed", "-1"), "'--seed'"),
    ],
)
def test_bad_input_is_one_line(call: Caller, arguments: tuple[str, ...], told: str) -> None:
    """What cannot be is said in one line, with exit code 2."""
    Path("no-dram.yaml").write_text(MACHINE.replace("dram: {", "# dram: {"))
    Path("slow-link.yaml").write_text(MACHINE.replace("16 B", "-16 B"))
    code, out, err = call("schedule", "model.yaml", "-q", *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.strip().splitlines()) == 1


def test_a_machine_of_ones_own_is_planned_drawn_and_shown(call: Caller, tmp_path: Path) -> None:
    """A file with brackets behind it is a machine; pictures, page, evaluation and both shows are there."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    (tmp_path / "mine.yaml").write_text(MACHINE)
    asked = (
        "schedule",
        "model.yaml",
        "--system",
        "mine.yaml[link=8]",
        "-m",
        "ls",
        "-q",
        "--out",
        "plan.json",
    )
    pictures = ("--gantt", "g.png", "--occupancy", "o.svg", "--links", "l.pdf", "--report", "r.html")
    assert call(*asked, *pictures)[0] == 0
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("g.png", "o.svg", "l.pdf", "r.html"))
    document = json.loads((tmp_path / "plan.json").read_text())
    code, out, _ = call("evaluate", "plan.json", "-f", "json")
    told = json.loads(out)
    assert (code, told["legal"], told["metrics"]) == (0, True, document["metrics"])
    assert told["links"][0]["busy"] == max(link["busy"] for link in told["links"])
    assert [layer["layer"] for layer in told["layers"]] == ["first", "second"]
    assert "illegal" not in call("evaluate", "plan.json")[1]
    shown = call("show", "plan.json", "--layers", "second")[1]
    assert "busiest links" in shown
    assert "mine[link=8]" in call("show", "mine.yaml[link=8]")[1]
    assert "2 x 2 = 4" in call("show", "mine.yaml")[1]
    document["plan"]["engine"] = [0] * document["plan"]["tasks"]
    (tmp_path / "plan.json").write_text(json.dumps(document))
    code, out, _ = call("evaluate", "plan.json")
    assert (code, "illegal: engine 0 runs both" in out) == (5, True)


def test_loads_of_links_are_told_apart(call: Caller, tmp_path: Path) -> None:
    """The legend has a number of its own for every colour, also where all links are idle most of the time."""
    pytest.importorskip("matplotlib")
    (tmp_path / "mine.yaml").write_text(MACHINE)
    asked = ("schedule", "model.yaml", "--system", "mine.yaml[link=4096]", "-m", "ls", "-q")
    assert call(*asked, "--links", "links.svg")[0] == 0
    labels = re.findall(r"<!-- up to (\S+) % -->", (tmp_path / "links.svg").read_text())
    assert len(set(labels)) == len(labels) == len(LOADS)
    assert 0 < float(labels[-1]) < 1


def test_machines_and_methods_are_listed(call: Caller) -> None:
    """``list`` names tiled machines among systems and their methods among methods."""
    assert "atomic-8x8" in call("list", "systems")[1]
    assert "il-pipe" in call("list", "methods")[1]
