"""Fused mappings at the command line: ``map --fuse``, its document, and files of fused mappings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from calls import Call
from fused_files import PORTS
from shipped import follows_schema

import tilewright as tw
from tilewright.report.records.mapping.fused_document import FusedDocument
from tilewright.report.records.mapping.fused_evaluation import evaluated_groups
from tilewright.report.records.mapping.fused_file import parse_fused_mapping, render_fused_mapping
from tilewright.report.records.schemas import FUSED, generated_schema, result_schema

LAYERS = """\
- {name: up, layer: "gemm:M=32,N=16,K=64"}
- {name: qk, layer: "gemm:M=64,N=64,K=16"}
- {name: av, layer: "gemm:M=64,N=16,K=64", reads: {A: qk}}
"""

PAIR = """\
- {name: a, layer: "gemm:M=4,N=4,K=2"}
- {name: b, layer: "gemm:M=4,N=2,K=4", reads: {A: a}}
"""
ROWS = """\
- {name: a, layer: "gemm:M=4,N=16,K=4"}
- {name: b, layer: "gemm:M=4,N=2,K=16", reads: {A: {layer: a, rows: [1]}}}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A layer alone, and two of which one reads the other."""
    path = tmp_path_factory.mktemp("fused") / "layers.yaml"
    path.write_text(LAYERS)
    return str(path)


@pytest.fixture(scope="module")
def saved(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document of that network."""
    from tilewright.cli.main import run

    path = tmp_path_factory.mktemp("document") / "fused.json"
    assert (
        run(["map", model, "-a", "tpu-edge", "--fuse", "--factors", "perfect", "--out", str(path), "-q"]) == 0
    )
    return path


def test_documents_have_groups_and_hold(call: Call, saved: Path) -> None:
    """Groups, totals and reasons stand in a document of the schema that ships, and the check agrees."""
    document = json.loads(saved.read_text())
    follows_schema(document, FUSED)
    assert result_schema(FUSED) == generated_schema(FusedDocument)
    assert [[layer["name"] for layer in group["layers"]] for group in document["groups"]] == [
        ["up"],
        ["qk", "av"],
    ]
    totals = document["totals"]
    assert totals["value"] == totals["bound"] < totals["unfused_value"]
    assert [tried["layers"] for tried in document["tried"]] == [["qk", "av"]]
    assert all(group["status"] == "optimal" for group in document["groups"])
    checked = call("check", saved)
    assert checked.code == 0, checked.out
    assert "every tree evaluated anew" in checked.out
    shown = call("show", saved)
    assert shown.code == 0
    assert "qk.C" in shown.out
    assert "proven optimal in its space" in shown.out
    loaded = tw.load(saved)
    assert isinstance(loaded, type(tw.load(saved)))
    assert tw.check(saved).holds


def test_the_report_says_what_fusion_saves(call: Call, saved: Path, model: str, tmp_path: Path) -> None:
    """The page draws what stays where, beside the traffic of the layers mapped alone."""
    pytest.importorskip("plotly")
    page = tmp_path / "page.html"
    outcome = call("map", model, "-a", "tpu-edge", "--fuse", "--factors", "perfect", "-q", "--report", page)
    assert outcome.code == 0, outcome.err
    text = page.read_text()
    for part in ("Fused groups", "What stays where", "qk.C 8 kB, passed on", "1  qk, 1 turn", "Through DRAM"):
        assert part in text
    assert "NaN" not in text.split("</style>")[1].split("<script")[0]
    _, unfused = next(evaluated_groups(tw.load(saved).record))[1].outermost_bits
    moved: dict[str, int] = {}
    for name, stated in (("qk", "gemm:M=64,N=64,K=16"), ("av", "gemm:M=64,N=16,K=64")):
        alone = tw.solve(tw.layer(stated).on("tpu-edge", factors="perfect"))
        assert alone.record.metrics is not None
        for row in alone.record.metrics.accesses:
            if row.level == "DRAM":
                tensor = "qk.C" if (name, row.tensor) == ("av", "A") else f"{name}.{row.tensor}"
                moved[tensor] = moved.get(tensor, 0) + 16 * (row.reads + row.fills + row.updates)
    assert unfused == moved
    assert "DRAM saved" in " ".join(call("show", saved).out.split())


def test_tables_name_groups_and_reasons(call: Call, model: str) -> None:
    """The table has the group beside the unfused layers; without a home it says why nothing is fused."""
    outcome = call("map", model, "-a", "tpu-edge", "--fuse", "--factors", "perfect")
    assert outcome.code == 0, outcome.err
    assert "qk + av" in outcome.out
    assert "saved" in outcome.out
    assert "qk.C 8 kB, passed on" in outcome.out
    assert all(len(line) <= 80 for line in outcome.out.splitlines())
    outcome = call("map", model, "-a", "nvdla-256", "--fuse", "--factors", "perfect")
    assert outcome.code == 0, outcome.err
    assert "no level can keep qk.C in both its roles" in " ".join(outcome.out.split())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d["groups"][1].update(value=1.0), "groups[1].value: 1.0"),
        (lambda d: d.update(objective="speed"), "objective: unknown objective 'speed'"),
        (lambda d: d["groups"][1].update(status="feasible"), "groups[1].status: feasible"),
        (lambda d: d["groups"][1].update(gap=0.5), "groups[1].gap: 0.5"),
        (lambda d: d["groups"][1]["metrics"].update(cycles=1), "groups[1].metrics"),
        (lambda d: d["groups"][1]["unfused"].update(value=1.0), "groups[1].unfused.value: 1.0"),
        (lambda d: d["groups"][1]["tree"].insert(0, {"temporal": "av.M", "tile": 65}), "tile 65 of av.M"),
        (lambda d: d["groups"][1]["tree"].pop(), "groups[1].tree"),
        (lambda d: d["groups"][1].update(tree=None), "groups[1].value: without a tree"),
        (lambda d: d["groups"].append(d["groups"][0]), "up is in 2 groups"),
        (lambda d: d["groups"].pop(), "totals.value"),
        (lambda d: d["totals"].update(bound=1e12, bound_exact="1000000000000"), "totals.bound"),
        (lambda d: d["totals"].update(unfused_value=1.0), "totals.unfused_value"),
        (lambda d: d["totals"].update(cycles=1), "totals.energy_pj, cycles, macs"),
        (lambda d: d["tried"][0].update(used=False), "tried[0].used: false"),
        (lambda d: d["space"].update(most=1), "2 layers in one"),
        (lambda d: d["graph"]["order"].pop(), "graph.order: av is missing"),
        (lambda d: d["graph"]["order"].reverse(), "graph.links[0]: av does not stand behind qk in order"),
        (lambda d: d["graph"]["links"][0].update(axes=[1, 0]), "graph.links: av.A reads qk otherwise"),
        (lambda d: d["graph"]["outputs"].append("x"), "graph.outputs: unknown name 'x'"),
        (lambda d: d.pop("graph"), "input_hash"),
    ],
)
def test_changed_documents_fail_the_check(
    call: Call, saved: Path, tmp_path: Path, change: Any, told: str
) -> None:
    """A claim that does not follow from the document is told, with exit code 5."""
    document = json.loads(saved.read_text())
    change(document)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    outcome = call("check", path)
    assert outcome.code == 5, outcome.err
    assert told in " ".join(outcome.out.split())


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--pareto",), "--pareto: cannot be used with --fuse"),
        (("--solver", "random"), "--solver: unknown name 'random'"),
        (("--cost-model", "dmazerunner"), "counts by the cost model hierarchy"),
        (("--fuse-at", "L9"), "--fuse-at: unknown level 'L9', expected one of ['GBUF', 'ACC', 'REG']"),
        (("--max-group", "9"), "--max-group: expected 2 to 4 layers, got 9"),
        (("--format", "csv"), "--format"),
        (("--out", "x.csv"), "x.csv"),
        (("--report", "x.pdf"), "x.pdf"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    call: Call, model: str, flags: tuple[str, ...], told: str
) -> None:
    """One line names the flag, with exit code 2."""
    outcome = call("map", model, "-a", "tpu-edge", "--fuse", *flags)
    assert outcome.code == 2
    assert told in " ".join(outcome.err.split())


def test_set_up_cycles_are_counted_where_turns_are(call: Call, tmp_path: Path) -> None:
    """Cycles to begin tiles change the answer, and both opinions agree; those of loops are refused."""
    layers, machine, path = (tmp_path / name for name in ("pair.yaml", "begun.yaml", "pair.json"))
    layers.write_text(PAIR)
    text = PORTS.replace("{name: DRAM,", "{name: DRAM, row: 4 B, setup: {transfer: 20, row: 3},")
    machine.write_text(text)
    asked = ("map", layers, "-a", machine, "--fuse", "--factors", "perfect", "--objective", "cycles")
    assert call(*asked, "--out", path).code == 0
    assert json.loads(path.read_text())["totals"]["cycles"] == 1752
    checked = call("check", path, "--prove")
    assert checked.code == 0
    assert "2 claims confirmed" in checked.out
    machine.write_text(text.replace("transfer: 20", "tile: 20"))
    outcome = call(*asked)
    assert outcome.code == 2
    assert "begun has set-up cycles for iterations of DRAM's loops" in " ".join(outcome.err.split())
    # Where nothing can be a home, layers are mapped one by one.
    assert "no level can keep a.C" in " ".join(call(*asked[:3], "gemmini", *asked[4:]).out.split())


@pytest.mark.parametrize(
    "objective", ["E^0.5*D", *(pytest.param(text, marks=pytest.mark.slow) for text in ("edp", "cycles"))]
)
def test_every_objective_is_proven(call: Call, tmp_path: Path, objective: str) -> None:
    """Products of energy and cycles have lines from which the check gets their bound; cycles add up."""
    layers, machine, path = (tmp_path / name for name in ("pair.yaml", "ports.yaml", "pair.json"))
    layers.write_text(PAIR)
    machine.write_text(PORTS)
    flags = ("--fuse", "--factors", "perfect", "--objective", objective, "--out", path)
    outcome = call("map", layers, "-a", machine, *flags)
    assert outcome.code == 0, outcome.err
    told = re.findall(r"^\w+: (.*) cycles \(", outcome.err, re.MULTILINE)
    # Energy without what a price of cycles adds.
    assert all(("J in " in line) == (objective != "cycles") for line in told)
    assert len(told) >= 2
    document = json.loads(path.read_text())
    totals = document["totals"]
    assert totals["value_exact"] == totals["bound_exact"]
    assert totals["value"] < totals["unfused_value"]
    assert bool(totals["lines"]) == (objective != "cycles")
    if objective == "edp":
        assert totals["value"] == pytest.approx(totals["energy_pj"] * totals["cycles"])
    assert call("check", path).code == 0
    for line in totals["lines"]:
        line["least"] = "1"
    totals.update(fewest_cycles="1")
    path.write_text(json.dumps(document))
    assert ("the lines give" in call("check", path).out) == (objective != "cycles")


def test_a_softmax_is_taken_in_parts_when_asked(call: Call, tmp_path: Path) -> None:
    """Rows that are too long for the buffer are fused in parts; without the permission the check refuses."""
    layers, machine, path = (tmp_path / name for name in ("rows.yaml", "ports.yaml", "rows.json"))
    layers.write_text(ROWS)
    machine.write_text(PORTS.replace("elements: 12", "elements: 24"))
    flags = ("-a", machine, "--fuse", "--factors", "perfect", "--out", path)
    assert call("map", layers, *flags).code == 0
    totals = json.loads(path.read_text())["totals"]
    assert totals["value"] == totals["unfused_value"]
    outcome = call("map", layers, *flags, "--online-softmax")
    assert outcome.code == 0, outcome.err
    assert "a.A softmax" not in outcome.out
    assert "b.A softmax" in outcome.out
    document = json.loads(path.read_text())
    assert document["space"]["online_softmax"] is True
    assert document["totals"]["value_exact"] == document["totals"]["bound_exact"]
    assert document["totals"]["value"] < document["totals"]["unfused_value"]
    assert call("check", path).code == 0
    assert "2 claims confirmed" in call("check", path, "--prove").out
    question = tw.network(str(layers)).on(str(machine), fuse=True, factors="perfect", online_softmax=True)
    assert tw.solve(question).to_dict()["input_hash"] == document["input_hash"]
    document["space"]["online_softmax"] = False
    path.write_text(json.dumps(document))
    assert "unless online_softmax is asked for" in " ".join(call("check", path).out.split())


def test_flags_of_fusion_need_it(call: Call, model: str) -> None:
    """``--fuse-at`` and ``--max-group`` without ``--fuse`` are refused."""
    for flags in (("--fuse-at", "GBUF"), ("--max-group", "2"), ("--online-softmax",)):
        outcome = call("map", model, "-a", "tpu-edge", *flags)
        assert outcome.code == 2
        assert "expected --fuse with it" in outcome.err


def test_a_short_limit_is_never_worse_than_unfused(call: Call, model: str) -> None:
    """Under a limit that ends the search of groups, what is printed takes no more than the layers alone."""
    outcome = call("map", model, "-a", "tpu-edge", "--fuse", "--time-limit", "2", "--format", "json", "-q")
    assert outcome.code in (0, 4)
    totals = outcome.document["totals"]
    if totals["value"] is not None:
        assert totals["bound"] <= totals["value"] <= totals["unfused_value"]


def test_fused_files_are_evaluated_and_shown(call: Call, saved: Path, tmp_path: Path) -> None:
    """A group's tree as a mapping file costs what its document says; broken ones exit with 5 or 2."""
    group = json.loads(saved.read_text())["groups"][1]
    data = {
        "arch": "tpu-edge",
        "layers": [
            {key: value for key, value in layer.items() if key != "reads" or value}
            for layer in group["layers"]
        ],
        "nodes": group["tree"],
    }
    stored = parse_fused_mapping(data, "pair.yaml", tmp_path)
    path = tmp_path / "pair.yaml"
    path.write_text(render_fused_mapping(stored))
    outcome = call("evaluate", path, "--format", "json")
    assert outcome.code == 0, outcome.err
    assert outcome.document["fused"]["energy_pj"] == group["value"]
    shown = call("show", path)
    assert shown.code == 0
    assert "in turn" in shown.out
    text = path.read_text()
    leaving = text.replace("leaving:\n- av", "leaving:\n- av\n- qk")
    assert leaving != text
    path.write_text(leaving)
    outcome = call("evaluate", path)
    assert outcome.code == 5
    assert "is needed outside the group" in outcome.out
    path.write_text(text.replace("level: GBUF", "level: GBUFF"))
    outcome = call("evaluate", path)
    assert outcome.code == 2
    assert "unknown level 'GBUFF'" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_python_asks_the_same_question(model: str, saved: Path) -> None:
    """``on(..., fuse=True)`` gives the document of the command line."""
    question = tw.network(model).on("tpu-edge", fuse=True, factors="perfect")
    fused = tw.solve(question)
    assert isinstance(fused, tw.FusedResult)
    assert fused.optimal
    document = json.loads(saved.read_text())
    assert fused.to_dict()["totals"] == document["totals"]
    assert fused.to_dict()["input_hash"] == document["input_hash"]
    assert [row["layers"] for row in fused.rows()] == [
        [layer["name"] for layer in group["layers"]] for group in document["groups"]
    ]
    assert "NetworkFused" in repr(question)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("max_group", 7, "max_group: expected 2 to 4 layers, got 7"),
        ("objective", "speed", "objective: unknown objective .speed."),
        ("layers", ["nothing*"], "nothing"),
    ],
)
def test_python_names_the_argument(model: str, argument: str, value: Any, message: str) -> None:
    """An argument that cannot be is an ``InputError`` by its own name."""
    with pytest.raises(tw.InputError, match=message):
        tw.network(model).on("tpu-edge", fuse=True, **{argument: value})


@pytest.mark.parametrize("refused", [{"deterministic": True}])
def test_python_refuses_what_fusion_has_not(model: str, refused: dict[str, Any]) -> None:
    """Deterministic runs are for searches layer by layer."""
    question = tw.network(model).on("tpu-edge", fuse=True)
    with pytest.raises(tw.InputError, match="cannot be used with fuse=True"):
        tw.solve(question, **refused)


NARROW = """\
clock_mhz: 500
compute: {mac_energy: 1, element_bits: 8}
levels:
  - {name: DRAM, energy: 100}
  - {name: MID, elements: 2, energy: 4}
  - {name: BUF, elements: 40, energy: 2}
"""
"""A machine whose middle level holds two elements, one less than a product alone needs."""


def test_layers_that_fit_only_when_fused_are_mapped(call: Call, tmp_path: Path) -> None:
    """What is passed on by the innermost level takes no room further out, so that the pair has a mapping."""
    model, arch, out = tmp_path / "pair.yaml", tmp_path / "narrow.yaml", tmp_path / "out.json"
    model.write_text(PAIR)
    arch.write_text(NARROW)
    assert call("map", model, "-a", arch, "-q").code == 3
    outcome = call("map", model, "-a", arch, "--fuse", "--factors", "perfect", "--out", out)
    assert outcome.code == 0, outcome.err
    document = json.loads(out.read_text())
    totals = document["totals"]
    assert totals["value"] == totals["bound"] == 9280  # the second opinion confirms it
    assert not totals["infeasible"]
    assert totals["unfused_value"] is None
    totals["infeasible"] = True
    out.write_text(json.dumps(document))
    assert "totals.infeasible: true" in call("check", out).out


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_a_network_that_has_no_mapping_is_infeasible(call: Call, tmp_path: Path, objective: str) -> None:
    """The code is that of `map`: a layer alone fits nowhere, and the pair would, or nothing does."""
    model, arch, out = tmp_path / "three.yaml", tmp_path / "narrow.yaml", tmp_path / "out.json"
    arch.write_text(NARROW)
    model.write_text(PAIR + '- {name: c, layer: "gemm:M=3,N=2,K=4"}\n')
    asked = ("map", model, "-a", arch, "--fuse", "--factors", "perfect", "--objective", objective, "-q")
    outcome = call(*asked, "--out", out)
    assert outcome.code == 3
    assert "infeasible: no mapping of a, b, c, fused or not" in outcome.err
    document = json.loads(out.read_text())
    follows_schema(document, FUSED)
    assert document["totals"]["infeasible"]
    assert document["complete"]
    assert [group["status"] for group in document["groups"]] == ["infeasible"] * 3
    assert call("check", out).code == 0
    assert "no mapping of the whole network exists, fused or not" in call("show", out).out
    arch.write_text(NARROW.replace("elements: 2,", "elements: 1,"))
    model.write_text(PAIR)
    assert call(*asked, "--out", out).code == 3
    assert [tried["reason"] for tried in json.loads(out.read_text())["tried"]] == [
        "a fits nowhere, whatever it is fused with"
    ]
