"""Every leaf of a document is changed in every way; what carries a claim never passes ``check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from calls import TWO_LAYERS, Call
from effort import effort
from mutated import mutations, undetected
from systems import LAYERS, SYSTEM

from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.hardware.scheduling.herald import classes
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.report.checks.mapping import document as verify
from tilewright.report.checks.mapping.document import check_document, totals_faults
from tilewright.report.checks.scheduling.herald.codesign import check_codesign
from tilewright.report.checks.scheduling.herald.schedule import check_schedule
from tilewright.report.records.files import parse_document
from tilewright.report.records.scheduling.herald.document import ScheduleDocument, inputs_hash
from tilewright.report.records.scheduling.herald.files import is_schedule, parse_schedule
from tilewright.workloads.errors import InputError

UNCHECKED = {
    r"(.*\.)?complete": "weaker: a run that was killed may have had everything",
    r"(front|.*\.(front|best|optima))\.complete": "proofs, which check does not repeat",
    r"(.*\.)?message|(.*\.)?description": "text for people",
    r"(.*\.)?versions(\..*)?": "what else was installed; that of tilewright must be there",
    r"(.*\.)?(wall_s|tables_s)": "a clock's figures; they must not contradict the trace",
    r"(.*\.)?trace\.\d+\.(seconds|source|heuristic|bound)": "when and by what something was known; only their"
    " order and their end leave evidence",
    r"(.*\.)?settings\.(time_limit_s|gap|threads|deterministic|seed|best|all_optimal)": "requests; they"
    " must not contradict the answer",
    r"layers\.\d+\.(solver|solver_version|then\.solver)": "who found it",
    r"layers: reversed|layers\.\d+\.(best|optima)\.mappings: reversed": "an order that claims nothing",
    r"layers\.\d+\.best\.mappings: shorter": "whether others are as good, which only the proof tells",
    r"model|batch": "of a file of layers: its name, and what it was read with",
    r"points\.\d+\.herald_(cycles|energy_pj)": "what herald alone found, beside the point's own figures",
}
"""Leaves, or changes of them, that no check can judge, and why; ``docs/cli.md`` lists them."""


def faults_of(data: dict[str, Any]) -> list[str]:
    """Everything that ``check`` has to say about a document."""
    try:
        if not is_schedule(data):
            document = parse_document(data, "document")
            found = [fault for check in check_document(document, "document") for fault in check.faults]
            return [*found, *totals_faults(document, "document")]
        parsed = parse_schedule(data, "document")
        if isinstance(parsed, ScheduleDocument):
            return [*check_schedule(parsed, "document").faults]
        return [*check_codesign(parsed, "document").faults]
    except InputError as error:
        return [str(error)]


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two documents that can be read say the same; what is optional may be left out."""
    read = parse_schedule if is_schedule(one) else parse_document
    return bool(read(one, "document") == read(other, "document"))


def passing(data: dict[str, Any], *, every: bool = False, only: set[str] | None = None) -> list[str]:
    """The mutations that no check finds, as ``path: change``."""
    return undetected(data, faults_of, same, UNCHECKED, every=every, only=only)


@pytest.fixture(autouse=True)
def stated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems that are equal are stated once: most changes leave them as they are."""
    known: dict[str, LayerProblem] = {}

    def stated(*args: Any) -> LayerProblem:
        key = repr(args)
        if key not in known:
            known[key] = layer_problem(*args)
        return known[key]

    evaluate = LayerProblem.evaluate
    found: dict[tuple[int, str], Evaluation] = {}

    def evaluated(problem: LayerProblem, mapping: Mapping, where: str = "mapping") -> Evaluation:
        key = id(problem), repr(mapping)
        if key not in found:
            found[key] = evaluate(problem, mapping, where)
        return found[key]

    monkeypatch.setattr(verify, "layer_problem", stated)
    monkeypatch.setattr(LayerProblem, "evaluate", evaluated)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Small inputs, cost tables that the tests share, and a class with a small grid."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.getbasetemp() / "costs"))
    monkeypatch.setitem(classes.CLASSES, "edge", AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2))
    (tmp_path / "layers.yaml").write_text(TWO_LAYERS)
    (tmp_path / "model.yaml").write_text(LAYERS)
    (tmp_path / "system.yaml").write_text(SYSTEM)


def made(call: Call, *args: object) -> dict[str, Any]:
    """The document that a call leaves."""
    assert call(*args, "-q", "--out", "made.json").code == 0
    found: dict[str, Any] = json.loads(Path("made.json").read_text())
    assert faults_of(found) == []
    return found


FURTHER = ("--pareto", "--best", 2, "--all-optimal", "--most", 2)
SCHEDULING = ("-o", "edp", "--threads", 1)
CALLS = {
    "map": ("map", "layers.yaml", "-a", "tpu-edge", "-o", "edp"),
    "further": ("map", "gemm:M=2,N=2,K=2", "-a", "tpu-edge", "-o", "energy", "--then", "cycles", *FURTHER),
    "schedule": ("schedule", "model.yaml", "--system", "system.yaml", *SCHEDULING),
    "codesign": ("codesign", "model.yaml", "--class", "edge", "--gap", "0.01", *SCHEDULING),
}


@pytest.mark.parametrize("args", CALLS.values(), ids=CALLS)
def test_no_changed_claim_passes(call: Call, args: tuple[object, ...]) -> None:
    """Numbers by one, texts, flags, keys and lists: whatever is no mere text or clock is found out."""
    document = made(call, *args)
    if "best" in document and effort(1) == 1:  # a schedule's document as another test has it
        inner = {key: document["best"][key] for key in ("status", "value", "bound", "input_hash")}
        shallow = {**document, "best": inner}
        places = {".".join(map(str, path)) for path, _, _ in mutations(shallow)}
        assert passing(document, only=places) == []
    else:
        assert passing(document, every=effort(1) > 1) == []


def test_the_head_is_that_of_a_known_network(call: Call) -> None:
    """Layers under the name of a built-in network are that network's, and so is the batch."""
    document = made(
        call, "map", "alexnet", "-a", "nvdla-256", "--layers", "fc8", "--solver", "random[victory=2]"
    )
    found = faults_of({**document, "batch": document["batch"] + 1})
    assert any("operator: not that of fc8 in alexnet" in fault for fault in found), found
    text = made(call, "map", "gemm:M=4,N=4,K=4", "-a", "tpu-edge")
    for model, told in (
        ("gemm:M=8,N=4,K=4", "operator: not that of"),
        ("gemm:M=4", "model: "),
        ("", "model: "),
    ):
        found = faults_of({**text, "model": model})
        assert any(told in fault for fault in found), (model, found)
    conv = made(call, "map", "conv:N=2,K=2,C=2,P=2,Q=2,R=1,S=1", "-a", "tpu-edge")
    found = faults_of({**conv, "batch": 3})
    assert any("contradicts the batch 3" in fault for fault in found), found


def test_one_line_and_exit_code_five(call: Call) -> None:
    """The command line says what the functions find."""
    document = made(call, *CALLS["schedule"])
    document["problem"]["costs"][0]["options"][0]["mapping"]["nodes"].pop()
    Path("changed.json").write_text(json.dumps(document))
    outcome = call("check", "changed.json", "-f", "json")
    assert outcome.code == 5
    assert any("problem.costs[0].options[0].mapping" in fault for fault in outcome.document["faults"])
    assert not any("\n" in fault for fault in outcome.document["faults"])


@pytest.mark.parametrize("field", ["cycles", "energy_pj_exact", "memory_bytes", "fetch_bytes", "fetch"])
def test_a_cheaper_option_is_counted_again(call: Call, field: str) -> None:
    """Whoever makes a cost smaller and mends the hash is found out by the option's mapping."""
    document = made(call, *CALLS["schedule"])
    option = document["problem"]["costs"][0]["options"][0]
    less = int(option[field]) - 1
    option[field] = str(less) if isinstance(option[field], str) else max(0, less)
    if option[field] == less + 1:
        option[field] += 1
    read = parse_schedule(document, "document")
    assert isinstance(read, ScheduleDocument)
    assert read.problem is not None
    document["input_hash"] = inputs_hash(
        read.workload, read.system, read.problem, read.objective, read.settings.metric
    )
    found = faults_of(document)
    assert any(f"options[0].{field}: " in fault and "the evaluator finds" in fault for fault in found), found


def test_an_option_left_out_is_found_by_the_proof(call: Call) -> None:
    """Without one of its options a layer still holds together; surveying it again refutes the document."""
    document = made(call, *CALLS["schedule"])
    used = {row["engine"] for row in document["schedule"] if row["layer"] == "gemm"}
    costs = next(
        document["problem"]["costs"][place]
        for run in document["problem"]["runs"]
        for name, place in run["layers"].items()
        if name == "gemm"
    )
    costs["options"] = [option for option in costs["options"] if option["engine"] in used]
    read = parse_schedule(document, "document")
    assert isinstance(read, ScheduleDocument)
    assert read.problem is not None
    document["input_hash"] = inputs_hash(
        read.workload, read.system, read.problem, read.objective, read.settings.metric
    )
    Path("changed.json").write_text(json.dumps(document))
    assert call("check", "changed.json").code == 0
    outcome = call("check", "changed.json", "--prove", "--threads", 1, "-f", "json")
    assert outcome.code == 5
    assert outcome.document["proof"]["verdict"] == "refuted"
    assert "which the document does not tell" in outcome.document["proof"]["message"]
