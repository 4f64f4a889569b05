"""The store: what is written comes back, what changed runs again, and nothing else is taken for a store."""

from __future__ import annotations

import csv
import sqlite3
import threading
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from small_bench import METHODS, answers_here, run_here, small_request
from tampering import tampered

from tilewright.benchmarks.audit import store_faults
from tilewright.benchmarks.cells import CellAnswer
from tilewright.benchmarks.export import csv_text, export_rows
from tilewright.benchmarks.plan import make_plan
from tilewright.benchmarks.rows import Filters, Row, read_rows, steps_of
from tilewright.benchmarks.run import run_cells
from tilewright.benchmarks.store import Store
from tilewright.benchmarks.summary import markdown, proofs, summary
from tilewright.foundation.disk import write_file
from tilewright.foundation.errors import InputError
from tilewright.hardware.mapping.load import engine_to_dict, load_engine


def test_answers_come_back(filled_store: Path) -> None:
    """What a worker told is what the store holds, traces in order and mappings included."""
    plan = make_plan(small_request(machines=("nvdla-256",), objectives=("edp",), methods=("branch",)))
    with Store(filled_store) as store:
        cells = {cell.key: cell for cell in store.cells()}
        for entry in plan.entries:
            cell = cells[entry.task.key]
            assert (cell.problem, cell.method, cell.seed) == (entry.task.input_hash, entry.task.method, 0)
            assert cell.answer.status == "optimal"
            assert cell.answer.value_key == cell.answer.bound_key
            assert cell.answer.mapping
            assert cell.answer.versions["tilewright"]
            steps = steps_of(cell)
            assert steps[-1].key == cell.value_key
            assert [step.seconds for step in steps] == sorted(step.seconds for step in steps)


def test_second_run_computes_nothing(copied_store: Path) -> None:
    """A store that has everything is left as it is."""
    with Store(copied_store, create=True) as store:
        counts = run_here(store, make_plan(small_request()))
        assert (counts.done, counts.missing) == (0, 0)
        assert counts.kept == counts.cells


def test_only_what_changed_runs_again(copied_store: Path, tmp_path: Path) -> None:
    """Another number in one machine's file runs that machine's cells again, and no other."""
    data = engine_to_dict(load_engine("tpu-edge"))
    with Store(copied_store, create=True) as store:
        before = {row.at: row for row in read_rows(store)}
        path = tmp_path / "tpu-edge.yaml"
        machine = yaml.safe_load(
            (files("tilewright.hardware.mapping") / "presets" / "tpu-edge.yaml").read_text()
        )
        machine["compute"]["mac_energy"] = 7
        path.write_text(yaml.safe_dump(machine))
        assert engine_to_dict(load_engine(path)) != data
        plan = make_plan(
            small_request(machines=("nvdla-256", str(path)), methods=("random[victory=20]", "branch"))
        )
        counts = run_here(store, plan)
        assert counts.done == counts.cells - counts.kept == 3 * 2 * (1 + 2 + 1)
        after = {row.at: row for row in read_rows(store)}
        assert before.keys() == after.keys()
        changed = {at for at in after if after[at].key != before[at].key}
        assert changed == {at for at in after if at.arch == "tpu-edge" and at.method != METHODS[1]}
        assert sum(1 for _ in store.cells()) == len({row.key for row in [*before.values(), *after.values()]})


def test_changed_back_needs_no_run(copied_store: Path) -> None:
    """Cells of earlier inputs stay in the store; coming back to them computes nothing."""
    with Store(copied_store, create=True) as store:
        assert run_here(store, make_plan(small_request(methods=("random[victory=3]",), seeds=1))).done == 12
        assert run_here(store, make_plan(small_request())).done == 0


def test_failed_cells_run_again(copied_store: Path) -> None:
    """A cell whose worker died is no answer."""
    plan = make_plan(small_request())
    with Store(copied_store, create=True) as store:
        store.put(plan.entries[3].task, CellAnswer("error", message="the worker process died"))
        assert [row.message for row in read_rows(store) if row.status == "error"] == [
            "the worker process died"
        ]
        assert run_here(store, plan).done == 1
        assert not [row for row in read_rows(store) if row.status == "error"]


def test_fresh_runs_everything(tmp_path: Path) -> None:
    """On request everything is computed again, and stored over what was there."""
    plan = make_plan(
        small_request(machines=("nvdla-256",), objectives=("edp",), methods=METHODS[:1], seeds=1)
    )
    with Store(tmp_path / "s.sqlite", create=True) as store:
        assert run_here(store, plan).done == run_here(store, plan, fresh=True).done == 6
        assert sum(1 for _ in store.cells()) == 6


def test_stopped_run_leaves_the_rest_missing(tmp_path: Path) -> None:
    """Cells that were not reached stand in the table as missing."""
    stop, plan = threading.Event(), make_plan(small_request(machines=("nvdla-256",)))
    with Store(tmp_path / "s.sqlite", create=True) as store:
        counts = run_cells(store, plan.entries, answers_here, stop, lambda place, answer: stop.set())
        assert (counts.done, counts.missing) == (1, counts.cells - 1)
        statuses = [row.status for row in read_rows(store)]
        assert statuses.count("missing") == len(plan.entries) - 1


def test_no_heuristic_beats_the_optimum(filled_store: Path) -> None:
    """Over a whole store: values are at or above the proofs, no heuristic claims one, every mapping is legal
    and costs what is stored."""
    with Store(filled_store) as store:
        assert list(store_faults(store)) == []
        rows = read_rows(store)
        for row in rows:
            assert row.gap is not None
            assert row.gap >= 0
            if row.method not in ("auto", "branch"):
                assert row.status == "feasible"
            else:
                assert (row.status, row.gap) == ("optimal", 0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("status = 'optimal', bound_key = value_key", "a heuristic reports optimal"),
        ("value_key = '1'", "is below the bound"),
        ("value_key = value_key || '0'", "the evaluator finds"),
        ("mapping = NULL", "feasible without a mapping"),
    ],
)
def test_audit_finds_lies(copied_store: Path, change: str, told: str) -> None:
    """A store that was tampered with is found out."""
    where = "WHERE key = (SELECT min(key) FROM cell WHERE method LIKE 'random%')"
    tampered(copied_store, f"UPDATE cell SET {change} {where}", table="cell")
    with Store(copied_store) as store:
        assert any(told in fault for fault in store_faults(store))


def test_rows_by_hand(filled_store: Path) -> None:
    """Gap, optimum and times of a row are those of its trace."""
    with Store(filled_store) as store:
        optima = store.optima()
        cells = {cell.key: cell for cell in store.cells()}
        for row in read_rows(store):
            cell = cells[row.key]
            optimum, root = optima[cell.problem], 1 if row.objective == "edp" else 2
            assert cell.value_key is not None
            assert row.gap == pytest.approx(float(cell.value_key / optimum) ** (1 / root) - 1)
            assert (row.gap == 0) == (cell.value_key == optimum) == (row.seconds_0 is not None)
            times = [s for s in (row.seconds_10, row.seconds_1, row.seconds_0) if s is not None]
            assert times == sorted(times)


def test_csv_round_trip(filled_store: Path, tmp_path: Path) -> None:
    """Rows read back from CSV are the rows that were written."""
    with Store(filled_store) as store:
        rows = read_rows(store)
    export_rows(rows, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as stream:
        read = [_typed(record) for record in csv.DictReader(stream)]
    assert read == rows


def _typed(record: dict[str, str]) -> Row:
    values: dict[str, object] = {}
    for field in fields(Row):
        kind, text = str(field.type), record[field.name]
        if text == "" and "None" in kind:
            values[field.name] = None
        else:
            values[field.name] = {"int": int, "float": float, "str": str}[kind.split(" ")[0]](text)
    return Row(**values)  # type: ignore[arg-type]


def test_parquet_round_trip(filled_store: Path, tmp_path: Path) -> None:
    """Rows read back from Parquet are the rows that were written."""
    parquet = pytest.importorskip("pyarrow.parquet")
    with Store(filled_store) as store:
        rows = read_rows(store)
    export_rows(rows, tmp_path / "rows.parquet")
    read = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [Row(**record) for record in read] == rows
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_filters(filled_store: Path) -> None:
    """Every filter leaves the rows that have what it names; unknown names get the nearest one."""
    with Store(filled_store) as store:
        rows = read_rows(store)
    picked = Filters(archs=("tpu-edge",), objectives=("edp",), methods=METHODS[:1], seeds=(1,)).apply(rows)
    assert {(row.arch, row.objective, row.method, row.seed) for row in picked} == {
        ("tpu-edge", "edp", METHODS[0], 1)
    }
    assert len(picked) == 3
    assert {row.layer for row in Filters(layers=("*gemm*",)).apply(rows)}
    with pytest.raises(InputError, match="did you mean 'tpu-edge'"):
        Filters(archs=("tpu-egde",)).apply(rows)
    with pytest.raises(InputError, match="--layer"):
        Filters(layers=("conv9",)).apply(rows)


def _row(**changes: object) -> Row:
    fields: dict[str, object] = {
        "suite": "s",
        "layer": "l",
        "shape": "K4",
        "count": 1,
        "arch": "a",
        "objective": "edp",
        "part": "method",
        "method": "m",
        "seed": 0,
        "status": "feasible",
        "value": 100.0,
        "optimum": 100.0,
        "gap": 0.0,
        "primal_integral_s": 1.0,
        "wall_s": 2.0,
        "time_limit_s": 10.0,
    }
    return Row(**{**fields, **changes})  # type: ignore[arg-type]


def test_summary_by_hand() -> None:
    """Median and shares of five runs, one without a mapping, which is worse than any, and one unproven."""
    rows = [
        _row(gap=0.0),
        _row(gap=0.005),
        _row(gap=0.055),
        _row(gap=None, value=None, status="unknown"),
        _row(gap=None, optimum=None),
        _row(status="missing", value=None, optimum=None, gap=None),
        _row(part="optimum", method="auto", status="optimal"),
    ]
    (line,) = summary(rows)
    assert (line.runs, line.missing, line.empty, line.unjudged) == (5, 1, 1, 1)
    assert (line.mean, line.worst) == (None, None)
    assert line.median == pytest.approx(0.03)
    assert (line.within_10, line.within_1, line.at_optimum) == (0.75, 0.5, 0.25)
    assert line.primal_integral == pytest.approx(0.1)
    (proof,) = proofs(rows)
    assert (proof.group, proof.problems, proof.proven) == (("edp", "a", "auto"), 1, 1)


def test_markdown(filled_store: Path) -> None:
    """The tables are well formed, and name every method and objective."""
    with Store(filled_store) as store:
        text = markdown(read_rows(store))
    tables = [table.splitlines() for table in text.strip().split("\n\n")]
    assert len(tables) == 2
    for table in tables:
        assert len({line.count("|") for line in table}) == 1
    assert len(tables[0]) == 2 + 2 * len(METHODS)
    assert "| edp | branch | 6 | 0 | 0 % | 0 % | 0 % | 100 % | 100 % | 100 % |" in text


def test_no_store_of_ours(tmp_path: Path) -> None:
    """Texts, databases of other programs and stores of other versions are refused by name."""
    write_file(tmp_path / "text.sqlite", "this is no database, and long enough to have a header" * 9)
    other = sqlite3.connect(tmp_path / "other.sqlite")
    with other:
        other.execute("CREATE TABLE cell (key)")
    other.close()
    with Store(tmp_path / "new.sqlite", create=True):
        pass
    newer = sqlite3.connect(tmp_path / "new.sqlite")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    for name, told in (
        ("text", "not an SQLite file"),
        ("other", "of another program"),
        ("new", "version 99, expected"),
    ):
        with pytest.raises(InputError, match=told):
            Store(tmp_path / f"{name}.sqlite", create=True)
    with pytest.raises(InputError, match="no such file"):
        Store(tmp_path / "none.sqlite")


def test_export_to_an_unknown_suffix(tmp_path: Path) -> None:
    """Only the formats that there are, with the nearest one named; nothing is left behind."""
    with pytest.raises(InputError, match=r"expected a file that ends in one of: \.csv"):
        export_rows([_row()], tmp_path / "rows.parqet")
    assert list(tmp_path.iterdir()) == []
    assert len(csv_text([_row()]).splitlines()) == 2
