"""``map``: the document, the formats, the selection of layers, limits and exit codes."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from calls import SMALL, TIGHT, Call
from shipped import follows_schema

from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import parse_objective
from tilewright.foundation.errors import OutputError
from tilewright.hardware.mapping.load import load_engine
from tilewright.workloads.mapping.layer_text import parse_layer


def valid(document: Any) -> Any:
    """The document, which must follow the schema."""
    follows_schema(document)
    return document


def test_document_has_what_the_contract_lists(call: Call) -> None:
    """The JSON document follows its schema and answers with an optimal mapping that costs what it says."""
    outcome = call("map", SMALL, "--arch", "tpu-edge", "--objective", "edp", "--format", "json")
    assert outcome.code == 0
    document = valid(outcome.document)
    assert document["schema"] == "tilewright.result/1"
    assert (document["command"], document["complete"], document["objective"]) == ("map", True, "edp")
    (layer,) = document["layers"]
    assert (layer["status"], layer["gap"], layer["count"]) == ("optimal", 0, 1)
    assert layer["value"] == layer["bound"] == layer["metrics"]["edp"]
    assert layer["bounds"] == {"M": 8, "N": 4, "K": 8}
    operator, engine = parse_layer(SMALL)[1], load_engine("tpu-edge")
    problem = layer_problem(operator, engine, parse_objective("edp"))
    evaluation = problem.evaluate(Mapping.from_data(layer["mapping"]["nodes"]))
    assert not evaluation.violations
    assert Fraction(layer["value_exact"]) == evaluation.energy * evaluation.cycles
    assert Fraction(layer["metrics"]["energy_pj_exact"]) == evaluation.energy
    assert layer["input_hash"] == problem.content_hash
    assert layer["metrics"]["time_s"] == pytest.approx(evaluation.cycles / (float(engine.clock_mhz) * 1e6))
    assert {"tilewright", "python"} <= set(document["versions"])


def test_numbers_are_integers_where_they_are_integral(call: Call) -> None:
    """Cycles come as JSON integers, an energy with a fraction as a float beside its exact text."""
    cycles = call("map", SMALL, "-a", "eyeriss-256", "-o", "cycles", "-f", "json").document["layers"][0]
    assert isinstance(cycles["value"], int)
    energy = call("map", SMALL, "-a", "tpu-edge", "-f", "json").document["layers"][0]
    assert isinstance(energy["value"], float)
    assert energy["value"] == float(Fraction(energy["value_exact"]))


def test_roots_of_the_objective_are_shown_as_values(call: Call) -> None:
    """With E^0.5*D the value is the root of the exact key, and the gap is that of the values."""
    document = valid(call("map", SMALL, "-a", "tpu-edge", "-o", "E^0.5*D", "-f", "json").document)
    layer = document["layers"][0]
    metrics = layer["metrics"]
    assert layer["value"] == pytest.approx(metrics["energy_pj"] ** 0.5 * metrics["cycles"])
    assert layer["value"] ** 2 == pytest.approx(float(Fraction(layer["value_exact"])))
    assert document["totals"]["value"] is None


def test_equal_layers_are_solved_once_and_counted(call: Call, network: Path) -> None:
    """Two of three layers are equal: two entries, whose counts weigh the totals."""
    document = valid(call("map", network, "-a", "tpu-edge", "-f", "json").document)
    first, second = document["layers"]
    assert (first["names"], first["count"], second["names"]) == (["first", "third"], 2, ["second"])
    totals = document["totals"]
    assert (totals["layers"], totals["distinct"], totals["statuses"]) == (3, 2, {"optimal": 3})
    cycles = 2 * first["metrics"]["cycles"] + second["metrics"]["cycles"]
    assert (totals["cycles"], totals["macs"]) == (cycles, 3 * 256)
    energy = 2 * Fraction(first["value_exact"]) + Fraction(second["value_exact"])
    assert Fraction(totals["value_exact"]) == Fraction(totals["bound_exact"]) == energy
    assert totals["gap"] == 0
    assert totals["edp"] == pytest.approx(float(energy) * cycles)


def test_layers_are_chosen_by_glob(call: Call, network: Path) -> None:
    """Only layers that match a pattern are solved, and only they are counted."""
    document = call("map", network, "-a", "tpu-edge", "-f", "json", "--layers", "th*").document
    assert [(layer["name"], layer["count"]) for layer in document["layers"]] == [("third", 1)]
    both = call("map", network, "-a", "tpu-edge", "-f", "json", "--layers", "third", "--layers", "s*")
    assert [layer["name"] for layer in both.document["layers"]] == ["third", "second"]


def test_only_macs_unless_asked(call: Call, tmp_path: Path) -> None:
    """Pooling is left out of a network by default, but a single layer is mapped whatever it is."""
    path = tmp_path / "net.yaml"
    pool = "pool:C=4,P=4,Q=4,R=2,S=2"
    path.write_text(f"- {SMALL}\n- {pool}\n")
    args = ("-a", "eyeriss-256", "-f", "json")
    assert len(call("map", path, *args).document["layers"]) == 1
    assert len(call("map", path, *args, "--all-operators").document["layers"]) == 2
    assert call("map", pool, *args).document["layers"][0]["operator"]["kind"] == "pool"


def test_onnx_models_load(call: Call) -> None:
    """A model that the onnx package ships is mapped by its layers' names."""
    args = ("-a", "dmazerunner-256", "-f", "json", "--layers", "fc8")
    document = valid(call("map", "onnx:alexnet", *args).document)
    assert (document["model"], document["batch"]) == ("alexnet", 1)
    assert document["layers"][0]["bounds"]["K"] == 4096


def test_table_fits_80_columns(call: Call, network: Path) -> None:
    """One layer shows its loop nest, several show a table; no line is wider than 80 columns."""
    outcome = call("map", "conv:K=8,C=8,P=8,Q=8,R=3,S=3,pad=1", "-a", "eyeriss-168", "-o", "edp")
    many = call("map", network, "-a", "tpu-edge", "-o", "edp")
    assert (outcome.code, many.code) == (0, 0)
    for text in (outcome.out, outcome.err, many.out, many.err):
        assert max(len(line) for line in text.splitlines()) <= 80
    assert "loop nest" in outcome.out
    assert "DRAM" in outcome.out
    assert many.out.splitlines()[-1].startswith("3 of 3 layers optimal in ")


def test_csv_has_a_row_per_layer(call: Call, network: Path) -> None:
    """CSV has the same columns for every layer, with raw numbers."""
    rows = list(csv.DictReader(io.StringIO(call("map", network, "-a", "tpu-edge", "-f", "csv").out)))
    assert [(row["name"], row["count"], row["status"]) for row in rows] == [
        ("first", "2", "optimal"),
        ("second", "1", "optimal"),
    ]
    assert float(rows[0]["energy_pj"]) == float(rows[0]["value"])


def test_jsonl_has_head_layers_and_totals(call: Call, network: Path, tmp_path: Path) -> None:
    """JSON lines hold the same document, a line for each layer, and can be checked from a file."""
    path = tmp_path / "r.jsonl"
    outcome = call("map", network, "-a", "tpu-edge", "-f", "jsonl", "--out", path)
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    assert [line["type"] for line in lines] == ["head", "layer", "layer", "totals"]
    assert lines[-1]["complete"] is True
    assert call("check", path).code == 0


@pytest.mark.parametrize("suffix", ["json", "yaml", "csv", "jsonl"])
def test_out_writes_by_suffix(call: Call, network: Path, tmp_path: Path, suffix: str) -> None:
    """The suffix of --out chooses the format, and no temporary file stays."""
    path = tmp_path / f"r.{suffix}"
    assert call("map", network, "-a", "tpu-edge", "-q", "--out", path).code == 0
    text = path.read_text()
    if suffix == "json":
        valid(json.loads(text))
    elif suffix == "yaml":
        valid(yaml.safe_load(text))
    else:
        assert len(text.splitlines()) == (3 if suffix == "csv" else 4)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["layers.yaml", path.name]


def test_quiet_prints_nothing_on_stderr(call: Call, network: Path) -> None:
    """With -q stderr stays empty."""
    assert call("map", network, "-a", "tpu-edge", "-q").err == ""


def test_progress_lines_mark_new_bests(call: Call) -> None:
    """Progress on stderr has a line of headings, and a star where an exact solver found a better mapping."""
    lines = call("map", SMALL, "-a", "tpu-edge", "--solver", "branch").err.splitlines()
    assert lines[1].split() == ["time", "value", "bound", "gap", "source"]
    assert any(line.startswith("* ") and line.endswith("branch") for line in lines)
    assert lines[-1].endswith("optimal (branch)")


def test_log_holds_the_progress(call: Call, tmp_path: Path) -> None:
    """--log writes the progress lines to a file, also with -q."""
    assert call("map", SMALL, "-a", "tpu-edge", "-q", "--solver", "branch", "--log", "run.log").code == 0
    assert "optimal (branch)" in (tmp_path / "run.log").read_text()


def test_constraint_cuts_the_space(call: Call) -> None:
    """A cap on the tile holds in the answer and is part of the document and of the hash."""
    free = call("map", SMALL, "-a", "tpu-edge", "-f", "json").document["layers"][0]
    args = ("--constraint", "tile(M@GBUF)<=2", "--constraint", "utilization>=0.01")
    tight = call("map", SMALL, "-a", "tpu-edge", "-f", "json", *args).document["layers"][0]
    assert tight["constraints"] == ["tile(M@GBUF)<=2", "utilization>=0.01"]
    assert tight["input_hash"] != free["input_hash"]
    assert tight["value"] >= free["value"]


def test_infeasible_constraint_exits_3(call: Call) -> None:
    """A cap that nothing meets is proven infeasible, and the document says so."""
    outcome = call("map", SMALL, "-a", "tpu-edge", "-f", "json", "--constraint", "cycles<=1")
    assert outcome.code == 3
    layer = valid(outcome.document)["layers"][0]
    assert (layer["status"], layer["value"], layer["mapping"]) == ("infeasible", None, None)
    assert layer["message"]


def test_layer_that_fits_no_level_exits_3(call: Call, tmp_path: Path) -> None:
    """Registers of two elements cannot hold one element of each of three tensors."""
    (tmp_path / "tight.yaml").write_text(TIGHT)
    outcome = call("map", SMALL, "-a", "tight.yaml")
    assert outcome.code == 3
    assert "infeasible" in outcome.out


def test_time_limit_without_a_solution_exits_4(call: Call, network: Path) -> None:
    """A limit that is over before the search begins leaves every layer unknown."""
    outcome = call("map", network, "-a", "tpu-edge", "-f", "json", "--time-limit", "0.000001")
    assert outcome.code == 4
    document = valid(outcome.document)
    assert [layer["status"] for layer in document["layers"]] == ["unknown", "unknown"]
    assert document["totals"]["energy_pj"] is None


def test_gap_stops_early_and_require_optimal_complains(call: Call) -> None:
    """With a loose gap the answer may be feasible only, which --require-optimal turns into exit code 6."""
    layer = "conv:K=64,C=64,P=14,Q=14,R=3,S=3,pad=1"
    args = ("map", layer, "-a", "eyeriss-168", "-o", "edp", "-q", "-f", "json", "--gap", "90%")
    loose = call(*args)
    assert loose.code == 0
    loose_layer = valid(loose.document)["layers"][0]
    assert loose_layer["status"] == "feasible"
    assert 0 < loose_layer["gap"] <= 0.9
    assert call(*args, "--require-optimal").code == 6
    assert call("map", SMALL, "-a", "tpu-edge", "-q", "--require-optimal").code == 0


def test_saved_mappings_round_trip(call: Call, network: Path, tmp_path: Path) -> None:
    """Every saved mapping evaluates to the value that the document tells."""
    outcome = call("map", network, "-a", "tpu-edge", "-o", "edp", "-f", "json", "--save-mappings", "maps")
    for layer in outcome.document["layers"]:
        evaluation = call("evaluate", tmp_path / "maps" / f"{layer['name']}.yaml", "-f", "json")
        assert evaluation.code == 0
        assert evaluation.document["layers"][0]["value_exact"] == layer["value_exact"]
        assert evaluation.document["layers"][0]["input_hash"] == layer["input_hash"]


def test_warm_start_begins_with_the_given_mapping(call: Call, result: Path, network: Path) -> None:
    """The optimum as a warm start is the first point of the trace, marked as no exact solver's work."""
    before = json.loads(result.read_text())["layers"][0]["value_exact"]
    outcome = call("map", network, "-a", "tpu-edge", "-o", "edp", "-f", "json", "--warm-start", result)
    layer = outcome.document["layers"][0]
    assert (layer["value_exact"], layer["trace"][0]["source"]) == (before, "warm start")
    assert layer["trace"][0]["heuristic"] is True
    assert any(line.startswith("h ") for line in outcome.err.splitlines())


def test_warm_start_for_another_layer_is_told(call: Call, result: Path) -> None:
    """A warm start that is for none of the layers is reported and does no harm."""
    outcome = call("map", "gemm:M=4,N=4,K=4", "-a", "tpu-edge", "--warm-start", result)
    assert outcome.code == 0
    assert "no mapping of the file is for one of these layers" in outcome.err


def test_failing_solver_is_an_error_result(call: Call) -> None:
    """A solver that gives up leaves an error status with its reason, and exit code 1."""
    big = "conv:N=4,K=512,C=512,P=7,Q=7,R=3,S=3,pad=1"
    outcome = call("map", big, "-a", "eyeriss-168", "--solver", "exhaustive", "-f", "json")
    assert outcome.code == 1
    layer = valid(outcome.document)["layers"][0]
    assert layer["status"] == "error"
    assert "exhaustive" in layer["message"]


def test_crashing_solver_does_not_lose_other_layers(
    call: Call, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception inside a solver is that layer's error; the next layer is still solved."""
    from tilewright.solvers.mapping.branch import Branch

    solve = Branch.solve

    def crash_on_the_first(self: Branch, search: Any) -> Any:
        if search.problem.operator.bounds["M"] == 8:
            raise RuntimeError("broken")
        return solve(self, search)

    monkeypatch.setattr(Branch, "solve", crash_on_the_first)
    outcome = call("map", network, "-a", "tpu-edge", "-f", "json", "--solver", "branch")
    assert outcome.code == 1
    first, second = valid(outcome.document)["layers"]
    assert (first["status"], second["status"]) == ("error", "optimal")
    assert first["message"] == "RuntimeError: broken"


def test_deterministic_runs_agree(call: Call) -> None:
    """Two runs with --deterministic give the same answer, trace and effort but for clock and memory."""

    def answer() -> Any:
        layer = call("map", SMALL, "-a", "tpu-edge", "-f", "json", "--deterministic").document["layers"][0]
        del layer["wall_s"]
        for point in layer["trace"]:
            del point["seconds"]
        assert layer["effort"].pop("peak_memory_bytes") > 0
        for method in layer["effort"]["methods"]:
            assert method.pop("seconds") > 0
            assert method.pop("nodes_per_s") > 0
        return layer

    assert answer() == answer()


def test_disk_that_fills_up_does_not_lose_the_answer(
    call: Call, network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where --out can no longer be written the answer still reaches stdout, with exit code 1."""

    def full(*_: object) -> None:
        raise OutputError("r.json", OSError(28, "No space left on device"))

    monkeypatch.setattr("tilewright.api.saving.write_file", full)
    outcome = call("map", network, "-a", "tpu-edge", "-q", "-f", "json", "--out", "r.json")
    assert outcome.code == 1
    assert len(valid(outcome.document)["layers"]) == 2
    assert outcome.err == "tilewright: error: r.json: cannot be written: No space left on device\n"
