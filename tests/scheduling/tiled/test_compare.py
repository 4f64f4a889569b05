"""The arena: methods on one network and one machine, stored run by run, told in one document."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from calls import Call, caller
from shipped import follows_schema
from tampering import tampered

from tilewright.api.scheduling.contest import check_contest
from tilewright.benchmarks.arena.contest import Contest, entries
from tilewright.benchmarks.arena.document import compare_document
from tilewright.benchmarks.arena.work import answer
from tilewright.benchmarks.store import Store
from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.report.checks.scheduling.tiled.compare import check_compare
from tilewright.report.html.scheduling.tiled.compare import write_contest_report
from tilewright.report.records.evidence import EVIDENCE, EvidenceFile
from tilewright.report.records.files import parse_record
from tilewright.report.records.scheduling.tiled.compare import CompareDocument
from tilewright.report.records.schemas import COMPARE, generated_schema, result_schema
from tilewright.workloads.catalog import resolve_model

LAYER = "conv:K=64,C=32,P=14,Q=14,R=3,S=3,pad=1"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> CompareDocument:
    """Three methods on one layer, of which one run is left out."""
    problem = TiledProblem(
        resolve_model(LAYER, 1), load_tiled_machine("atomic-2x2"), tiled_objective("edp"), batch=2
    )
    contest = Contest(problem, "edp", ("ls", "rammer", "cnn-p"), 3, 30.0, 1)
    cells = entries(contest)
    with Store(tmp_path_factory.mktemp("arena") / "s.sqlite", create=True) as store:
        store.place(cells)
        for entry in cells[:2]:
            store.put(entry.task, answer(entry.task, entry.task.key))
        return compare_document(contest, cells, store.cells())


def test_the_document_tells_who_is_ahead(document: CompareDocument) -> None:
    """Every value is a plan's, none undercuts the bound, and the least median leads."""
    ended = {contestant.method: contestant for contestant in document.contestants if contestant.runs}
    assert {*ended} == {"ls", "rammer"}
    assert not document.complete
    assert all(
        run.value_key >= document.bound_key
        for contestant in ended.values()
        for run in contestant.runs
        if run.value_key
    )
    assert document.winner is not None
    medians = {name: contestant.median_key for name, contestant in ended.items()}
    assert medians[document.winner.method] == min(key for key in medians.values() if key is not None)
    assert check_compare(document, "document").faults == ()


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the command line in a folder with ``c.json``, a contest of one run, and its store."""
    monkeypatch.chdir(tmp_path)
    problem = TiledProblem(resolve_model(LAYER, 1), load_tiled_machine("atomic-2x2"), tiled_objective("edp"))
    contest = Contest(problem, "edp", ("ls",), 1, 20.0, 1)
    (cell,) = entries(contest)
    with Store(Path("compare.sqlite"), create=True) as store:
        store.place([cell])
        store.put(cell.task, answer(cell.task, cell.task.key))
        document = compare_document(contest, [cell], store.cells(), "compare.sqlite")
    Path("c.json").write_text(json.dumps(document.to_data()))
    return caller(capsys)


def test_the_schema_is_that_of_the_records(document: CompareDocument) -> None:
    """The shipped schema is generated from the records, and a real document keeps to it."""
    assert result_schema(COMPARE) == json.loads(json.dumps(generated_schema(CompareDocument)))
    follows_schema(document.to_data(), COMPARE)


def test_a_page_shows_every_method(document: CompareDocument, tmp_path: Path) -> None:
    """The report names all methods, those included that have no run yet."""
    write_contest_report(tmp_path / "r.html", document)
    page = (tmp_path / "r.html").read_text()
    assert all(name in page for name in ("ls", "rammer", "cnn-p", "not run"))


def test_the_command_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second call computes nothing again; its document passes the check."""
    args = ("compare", LAYER, "--system", "atomic-2x2", "-m", "ls,rammer", "-t", "20", "--out", "c.json")
    monkeypatch.chdir(tmp_path)
    call = caller(capsys)
    first = call(*args, "--jobs", "1")
    assert first.code == 0, first.err
    assert "2 runs in" in first.err
    second = call(*args, "-f", "json")
    assert second.code == 0
    assert "2 of them in compare.sqlite already" in second.err
    assert second.document == json.loads((tmp_path / "c.json").read_text())
    checked = call("check", "c.json")
    assert (checked.code, checked.out.splitlines()) == (0, ["2 plans evaluated again", "all claims hold"])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("-m", "lss"), "unknown name 'lss'"),
        (("--batch", "0"), "expected at least 1"),
        (("--seeds", "0"), "expected"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, capsys: Any, args: tuple[str, ...], message: str) -> None:
    """A wrong method, batch or count ends with exit code 2 before anything runs."""
    from tilewright.cli.main import run

    store = tmp_path / "s.sqlite"
    code = run(["compare", LAYER, "--system", "atomic-2x2", "--store", str(store), *args])
    told = capsys.readouterr().err
    assert code == 2
    assert message in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("field", "figure"),
    [
        ("dram_bytes", -1),
        ("hop_bytes", -1),
        ("atoms", 0),
        ("utilization", 1.5),
        ("wall_s", -1.0),
        ("seed", -1),
    ],
)
def test_impossible_figures_are_refused(document: CompareDocument, field: str, figure: float) -> None:
    """Figures of a plan that no plan has are no document."""
    data = document.to_data()
    data["contestants"][0]["runs"][0][field] = figure
    with pytest.raises(InputError, match=field):
        parse_record(data, CompareDocument, "document")


def test_the_store_keeps_the_plan_of_every_run(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hash leads from the document to a plan of that value; elsewhere than beside it, nothing is proven."""
    proven = call("check", "c.json", "--prove", "-f", "json")
    assert (proven.code, proven.document["proof"]["verdict"]) == (0, "confirmed")
    assert [run["evaluated"] for run in proven.document["runs"]] == [True]
    data = json.loads((tmp_path / "c.json").read_text())
    run = data["contestants"][0]["runs"][0]
    with EvidenceFile(tmp_path / "compare.sqlite") as kept:
        text = kept.text(run["evidence"])
    assert text is not None
    assert EVIDENCE.hash_of(text) == run["evidence"]
    assert json.loads(text)["value_exact"] == run["value_exact"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "c.json").write_text(json.dumps(data))
    monkeypatch.chdir(elsewhere)
    alone = call("check", "c.json", "--prove", "-f", "json")
    assert (alone.code, alone.document["holds"]) == (0, True)
    assert alone.document["proof"]["verdict"] == "undecided"
    pointed = call("check", "c.json", "--prove", "--store", "../compare.sqlite", "-f", "json")
    assert pointed.document["proof"]["verdict"] == "confirmed"
    missing = call("check", "c.json", "--store", "nowhere.sqlite")
    assert missing.code == 2
    assert "nowhere.sqlite: no such file" in missing.err


def test_forged_evidence_is_found_by_the_evaluator(call: Call, tmp_path: Path) -> None:
    """Whoever writes a better value into the store, its hash and the document is refuted by the plan."""
    data = json.loads((tmp_path / "c.json").read_text())
    run = data["contestants"][0]["runs"][0]
    store = Store(tmp_path / "compare.sqlite")
    text = store.evidence(run["evidence"])
    assert text is not None
    forged = json.loads(text)
    forged["metrics"]["dram_read_bytes"] += 1
    run["dram_bytes"] += 1
    run["evidence"] = store.add_text(EVIDENCE, json.dumps(forged))
    store.close()
    (tmp_path / "c.json").write_text(json.dumps(data))
    outcome = call("check", "c.json")
    assert outcome.code == 5
    assert "metrics.dram_read_bytes" in outcome.out
    tampered(tmp_path / "compare.sqlite", "UPDATE evidence SET text = x'00'")
    outcome = call("check", "c.json")
    assert outcome.code == 2
    assert "compare.sqlite: damaged: evidence" in outcome.err


def test_a_store_without_evidence_goes_on(tmp_path: Path) -> None:
    """Runs of a store of version 2 are kept; their document holds, and its proof is undecided."""
    problem = TiledProblem(resolve_model(LAYER, 1), load_tiled_machine("atomic-2x2"), tiled_objective("edp"))
    contest = Contest(problem, "edp", ("ls",), 1, 30.0, 1)
    (cell,) = entries(contest)
    path = tmp_path / "s.sqlite"
    with Store(path, create=True) as store:
        store.place([cell])
        store.put(cell.task, replace(answer(cell.task, cell.task.key), evidence=None))
    base = sqlite3.connect(path)
    base.executescript("DROP TABLE evidence; ALTER TABLE cell DROP COLUMN evidence; PRAGMA user_version = 2;")
    base.close()
    tampered(path, "SELECT 1", table="cell")
    with Store(path) as store:
        assert [stored.answer.status for stored in store.cells()] == ["feasible"]
        document = compare_document(contest, [cell], store.cells(), str(path))
    assert check_contest(document, "document").holds
    proven = check_contest(document, "document", Limits(30, threads=1))
    assert proven.undecided
    assert proven.proof.text == "1 of 2 claims: no evidence is named"
