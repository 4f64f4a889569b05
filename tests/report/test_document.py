"""The results document: its schema, and operators and machines that survive the way through it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from shipped import follows_schema

from tilewright import __version__
from tilewright.formulation.mapping.claimed_space import ClaimedSpace
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerResult
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.disk import write_file
from tilewright.foundation.errors import InputError, OutputError
from tilewright.hardware.mapping.load import engine_hash, list_presets, load_engine
from tilewright.report.checks.mapping.document import check_document, totals_faults
from tilewright.report.records.claims import number, shown_gap
from tilewright.report.records.files import parse_document, read_data, render
from tilewright.report.records.mapping.build import (
    factors_of,
    key_gap,
    layer_record,
    space_record,
    totals_record,
    versions,
)
from tilewright.report.records.mapping.document import LayerRecord, ResultDocument, SettingsRecord
from tilewright.report.records.mapping.engine import ArchRecord, EngineRecord
from tilewright.report.records.mapping.operator import OperatorRecord, shape_text, statement_text
from tilewright.report.records.schemas import generated_schema, result_schema
from tilewright.solvers.mapping.solve import solve
from tilewright.workloads.mapping.layer_text import parse_layer
from tilewright.workloads.selection import SelectedLayer

LAYERS = (
    "conv:N=2,K=8,C=4,P=6,Q=6,R=3,S=3,stride=2,pad=1",
    "conv:K=8,C=8,P=4,Q=4,R=3,S=3,groups=2",
    "depthwise:C=8,P=4,Q=4,R=3,S=3",
    "tconv:K=4,C=4,P=4,Q=4,R=3,S=3,stride=2",
    "gemm:M=4,N=6,K=8",
    "matmul:B=2,M=4,N=6,K=8",
    "pool:C=8,P=4,Q=4,R=2,S=2,stride=2",
    "elementwise:K=8,P=4,Q=4",
    "nest:O[i,j] += A[i,k] * B[k,j]: i=2,j=3,k=4",
)


def problem_of(text: str, arch: str = "eyeriss-168", goal: str = "edp") -> LayerProblem:
    return layer_problem(parse_layer(text)[1], load_engine(arch), parse_objective(goal))


def document_of(problems: dict[str, LayerProblem], results: dict[str, LayerResult]) -> ResultDocument:
    """A document of one layer per problem."""
    first = next(iter(problems.values()))
    layers = [
        layer_record(
            SelectedLayer(p.operator, (name, f"{name}/again")),
            p.engine,
            p.objective,
            (),
            results[name],
            factors_of(p),
            space_record(ClaimedSpace.of(p)),
        )
        for name, p in problems.items()
    ]
    return ResultDocument(
        **ResultDocument.head(),
        complete=True,
        model="net",
        batch=1,
        arch=ArchRecord.of(first.engine),
        cost_model=first.model.name,
        objective=str(first.objective),
        constraints=[],
        settings=SettingsRecord(
            solver="auto", time_limit_s=None, gap=0.0, threads=1, seed=0, deterministic=False
        ),
        layers=layers,
        missing=[],
        totals=totals_record(first.objective, first.engine, layers),
        versions=versions(),
    )


@pytest.fixture(scope="module")
def document() -> ResultDocument:
    """Two small layers, solved."""
    problems = {"a": problem_of("gemm:M=4,N=6,K=8"), "b": problem_of("gemm:M=8,N=2,K=4")}
    return document_of(problems, {name: solve(problem) for name, problem in problems.items()})


def test_shipped_schema_is_that_of_the_records() -> None:
    """The schema in the package is what the records amount to, and itself a valid schema."""
    assert result_schema() == generated_schema()
    jsonschema.Draft202012Validator.check_schema(result_schema())


def test_document_follows_the_schema(document: ResultDocument) -> None:
    """A document validates; one with a field too many or of another type does not."""
    data = document.to_data()
    follows_schema(data)
    for field, value in (("extra", 1), ("batch", "one"), ("schema", "tilewright.result/2")):
        with pytest.raises(jsonschema.ValidationError):
            follows_schema({**data, field: value})


@pytest.mark.parametrize("suffix", ["json", "yaml", "jsonl"])
def test_files_read_back_equal(document: ResultDocument, tmp_path: Path, suffix: str) -> None:
    """What is written is read back without a difference, big integers and floats included."""
    path = tmp_path / f"r.{suffix}"
    write_file(path, render(document, suffix))
    assert parse_document(read_data(path), "r") == document


def test_document_holds(document: ResultDocument) -> None:
    """Every claim of an honest document is confirmed, totals included."""
    assert [check.faults for check in check_document(document, "r.json")] == [(), ()]
    assert totals_faults(document, "r.json") == []
    assert document.totals.layers == 4
    assert document.versions["tilewright"] == __version__


def test_interrupted_jsonl_is_an_incomplete_document(document: ResultDocument, tmp_path: Path) -> None:
    """JSON lines that end after a layer lack their totals, which is told as a missing field."""
    path = tmp_path / "r.jsonl"
    path.write_text("".join(render(document, "jsonl").splitlines(keepends=True)[:2]))
    data = read_data(path)
    assert (data["complete"], len(data["layers"])) == (False, 1)
    with pytest.raises(InputError, match="totals: missing"):
        parse_document(data, "r.jsonl")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"layers": 3}, "layers: input should be a valid list, got 3"),
        ({"compleet": True}, "compleet: unknown name 'compleet', did you mean 'complete'?"),
        ({"arch": {}}, "arch.name: missing"),
        ({"objective": 7}, "objective: input should be a valid string, got 7"),
    ],
)
def test_malformed_documents_name_the_field(
    document: ResultDocument, change: dict[str, Any], told: str
) -> None:
    """A document that does not follow the schema is one line with the field."""
    with pytest.raises(InputError) as caught:
        parse_document({**document.to_data(), **change}, "r.json")
    assert str(caught.value).startswith(f"r.json: {told}")


@pytest.mark.parametrize("text", LAYERS)
def test_operators_survive(text: str) -> None:
    """Every kind of operator is the same after a way through YAML and JSON."""
    operator = parse_layer(text)[1]
    record = OperatorRecord.of(operator)
    data = yaml.safe_load(yaml.safe_dump(json.loads(json.dumps(record.model_dump()))))
    assert OperatorRecord.model_validate(data).build("x") == operator


def test_contradicting_operator_is_refused() -> None:
    """An axis smaller than what its loops span is an input error."""
    record = OperatorRecord.of(parse_layer(LAYERS[0])[1]).model_dump()
    record["dimensions"][3]["bound"] = 999
    with pytest.raises(InputError, match=r"r\.json: operator: .* an axis of I has size"):
        OperatorRecord.model_validate(record).build("r.json")


@pytest.mark.parametrize("name", list_presets())
def test_machines_survive(name: str) -> None:
    """Every preset is the same after a way through JSON, and so is its hash."""
    engine = load_engine(name)
    data = json.loads(json.dumps(EngineRecord.of(engine).model_dump()))
    again = EngineRecord.model_validate(data).build()
    assert again == engine
    assert engine_hash(again) == engine_hash(engine)


def test_operators_in_words() -> None:
    """Shapes leave out loops of one iteration; statements tell the projections."""
    operator = parse_layer(LAYERS[0])[1]
    assert shape_text(operator) == "N2 K8 C4 P6 Q6 R3 S3"
    assert statement_text(operator) == "O[n, k, p, q] += I[n, c, 2*p + r, 2*q + s] * W[k, c, r, s]"
    assert statement_text(parse_layer(LAYERS[6])[1]).startswith("O[n, c, p, q] reduce= pool(I[")


def test_totals_need_every_layer(document: ResultDocument) -> None:
    """One layer without a solution leaves the sums empty but for operations and statuses."""
    lost = document.layers[0].model_copy(
        update={
            "status": "unknown",
            "value": None,
            "value_exact": None,
            "bound": None,
            "bound_exact": None,
            "gap": None,
            "metrics": None,
            "mapping": None,
        }
    )
    layers: list[LayerRecord] = [lost, document.layers[1]]
    totals = totals_record(parse_objective("energy"), load_engine("eyeriss-168"), layers)
    assert (totals.energy_pj, totals.cycles, totals.value, totals.gap) == (None, None, None, None)
    assert totals.statuses == {"optimal": 2, "unknown": 2}
    assert totals.macs == document.totals.macs


def test_numbers_and_gaps() -> None:
    """Integral fractions become integers; a gap between values is the one that was asked for."""
    from fractions import Fraction

    assert (number(Fraction(6, 2)), number(Fraction(1, 4))) == (3, 0.25)
    assert isinstance(number(Fraction(6, 2)), int)
    root = parse_objective("E^0.5*D")
    assert shown_gap(root, Fraction(100), Fraction(81)) == pytest.approx(0.1)
    assert key_gap(root, 0.1) == pytest.approx(0.19)
    assert shown_gap(root, Fraction(7), Fraction(7)) == 0
    assert shown_gap(root, Fraction(7), None) is None


def test_atomic_write_keeps_the_old_file_on_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where writing fails half-way the old content stays and no temporary file is left."""
    path = tmp_path / "r.json"
    write_file(path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match=r"r\.json: cannot be written: No space"):
        write_file(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]
    assert path.read_text() == "old"
