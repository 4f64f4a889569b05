"""``check``: an honest result holds, and every kind of lie is found; ``--prove`` asks another solver."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calls import SMALL, Call

from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.mapping.search import LayerSearch
from tilewright.formulation.method import Outcome
from tilewright.formulation.objective import parse_objective
from tilewright.hardware.mapping.load import load_engine
from tilewright.solvers.mapping.answers import second_opinion
from tilewright.solvers.mapping.answers.answer_sets import best_mappings
from tilewright.solvers.mapping.answers.second_opinion import proof_solvers
from tilewright.solvers.mapping.branch import Branch
from tilewright.solvers.mapping.cpsat import solver as cpsat_solver
from tilewright.solvers.mapping.presolve.dive import Dive
from tilewright.solvers.mapping.presolve.intervals import OpenSpace
from tilewright.solvers.second_opinion import Verdict
from tilewright.workloads.mapping.layer_text import parse_layer

Lie = Callable[[dict[str, Any]], None]


def test_honest_result_holds(call: Call, result: Path) -> None:
    """All claims of a fresh result hold."""
    outcome = call("check", result)
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == "all claims of 2 layers hold"


def _set(*path: str | int, value: Any) -> Lie:
    def lie(document: dict[str, Any]) -> None:
        target: Any = document
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    return lie


def _lower_bound(document: dict[str, Any]) -> None:
    layer = document["layers"][0]
    layer["bound_exact"], layer["bound"] = "1", 1
    layer["gap"] = (layer["value"] - 1) / layer["value"]


def _larger_value(document: dict[str, Any]) -> None:
    layer = document["layers"][0]
    key = Fraction(layer["value_exact"]) - 1
    layer.update(value=float(key), value_exact=str(key))


def _other_mapping(document: dict[str, Any]) -> None:
    nodes = document["layers"][0]["mapping"]["nodes"]
    index = next(i for i, node in enumerate(nodes) if "spatial" in node)
    nodes[index] = {"temporal": nodes[index]["spatial"], "tile": nodes[index]["tile"]}


def _other_operator(document: dict[str, Any]) -> None:
    document["layers"][0]["operator"]["dimensions"][0]["bound"] = 4


LIES = {
    "status": (
        _set("layers", 0, "status", value="feasible"),
        "status: feasible, but value and bound are equal",
    ),
    "value": (_larger_value, "value_exact: "),
    "shown value": (_set("layers", 0, "value", value=1), "value: 1, the evaluator finds"),
    "bound": (_lower_bound, "status: optimal, but value and bound are not equal"),
    "bound above": (_set("layers", 0, "bound_exact", value="9" * 40), "above the value"),
    "gap": (_set("layers", 0, "gap", value=0.5), "gap: 0.5, value and bound give 0.0"),
    "cycles": (_set("layers", 0, "metrics", "cycles", value=7), "metrics.cycles: 7, the evaluator finds"),
    "utilization": (_set("layers", 0, "metrics", "utilization", value=0.5), "metrics.utilization: 0.5"),
    "no metrics": (_set("layers", 0, "metrics", value=None), "metrics: missing"),
    "no mapping": (_set("layers", 0, "mapping", value=None), "status: optimal without a mapping"),
    "mapping": (_other_mapping, ""),
    "operator": (_other_operator, "input_hash: "),
    "objective": (_set("objective", value="energy"), "input_hash: "),
    "constraints": (_set("layers", 0, "constraints", value=["cycles<=1"]), "constraint cycles<=1"),
    "hash": (_set("layers", 0, "input_hash", value="0"), "input_hash: "),
    "bounds": (_set("layers", 0, "bounds", "M", value=3), "bounds: "),
    "count": (_set("layers", 0, "count", value=3), "count: 3, but 2 names"),
    "totals": (_set("totals", "cycles", value=5), "totals.cycles: 5, the layers add up to"),
}


@pytest.mark.parametrize(("lie", "told"), LIES.values(), ids=LIES)
def test_every_lie_is_found(call: Call, result: Path, lie: Lie, told: str) -> None:
    """Each field, changed alone, fails the check with a line that names it."""
    document = json.loads(result.read_text())
    lie(document)
    result.write_text(json.dumps(document))
    outcome = call("check", result, "--format", "json")
    assert outcome.code == 5
    report = outcome.document
    assert report["holds"] is False
    faults = [*report["totals_faults"], *(fault for layer in report["layers"] for fault in layer["faults"])]
    assert any(told in fault for fault in faults)
    table = call("check", result)
    assert table.code == 5
    assert "fail" in table.out.splitlines()[-1]


def test_changed_machine_is_bad_input(call: Call, result: Path) -> None:
    """A machine whose content does not match its hash is refused."""
    document = json.loads(result.read_text())
    document["arch"]["engine"]["mac_energy"] = "0"
    result.write_text(json.dumps(document))
    outcome = call("check", result)
    assert outcome.code == 2
    assert "arch.hash" in outcome.err


def test_proof_confirms(call: Call, result: Path) -> None:
    """Another exact solver confirms a true optimum."""
    recorded = json.loads(result.read_text())["layers"]
    outcome = call("check", result, "--prove", "--format", "json")
    assert outcome.code == 0
    for layer, before in zip(outcome.document["layers"], recorded, strict=True):
        assert layer["proof"]["verdict"] == "confirmed"
        assert layer["proof"]["solver"] != before["solver"]
    assert len(outcome.err.splitlines()) == 2


def test_proof_refutes_a_false_bound(call: Call, network: Path, result: Path) -> None:
    """A legal but poor mapping that claims to be optimal is refuted by a better one."""
    limited = ("--constraint", "tile(M@GBUF)<=2", "--constraint", "spatial(K)=1")
    assert call("map", network, "-a", "tpu-edge", "-o", "edp", "-q", "--out", result, *limited).code == 0
    document = json.loads(result.read_text())
    document["constraints"] = []
    for layer in document["layers"]:
        layer["constraints"] = layer["space"]["constraints"] = []
        operator = parse_layer(f"gemm:{','.join(f'{dim}={n}' for dim, n in layer['bounds'].items())}")[1]
        problem = layer_problem(operator, load_engine("tpu-edge"), parse_objective("edp"))
        layer["input_hash"] = problem.content_hash
    result.write_text(json.dumps(document))
    assert call("check", result).code == 0
    outcome = call("check", result, "--prove", "-q")
    assert outcome.code == 5
    assert outcome.err == f"tilewright: {result}: not all claims hold\n"
    assert "refuted" in outcome.out


def _branch_boasts(patch: pytest.MonkeyPatch) -> None:
    """Branch and bound takes the twentieth best mapping for the best."""

    def boast(_self: Branch, search: LayerSearch) -> Outcome:
        poor = best_mappings(search.problem, 20).solutions[-1]
        search.offer(poor.mapping, "branch")
        assert search.key is not None
        search.raise_bound(search.key, "branch")
        return Outcome(True)

    patch.setattr(Branch, "solve", boast)


def _cpsat_boasts(patch: pytest.MonkeyPatch) -> None:
    """CP-SAT's filter closes what is better than its first mapping."""

    def close(problem: LayerProblem, *_rest: object) -> OpenSpace:
        return OpenSpace([np.zeros(0, dtype=np.intp) for _ in problem.space.groups], [])

    patch.setattr(cpsat_solver, "probe", close)
    patch.setattr(Dive, "run", lambda self, _seconds, start=None: start or self._start())


@pytest.mark.parametrize(
    ("boaster", "lie", "small", "judge"),
    [
        ("branch", _branch_boasts, True, "exhaustive"),
        ("branch", _branch_boasts, False, "cpsat"),
        ("cpsat", _cpsat_boasts, True, "exhaustive"),
        ("cpsat", _cpsat_boasts, False, "branch"),
    ],
)
def test_wrong_bound_of_a_solver_is_caught(
    call: Call,
    tmp_path: Path,
    boaster: str,
    lie: Callable[[pytest.MonkeyPatch], None],
    small: bool,
    judge: str,
) -> None:
    """A solver whose proof is wrong deceives ``check`` alone; with --prove another solver finds it out."""
    path = tmp_path / "r.json"
    with pytest.MonkeyPatch.context() as patch:
        lie(patch)
        args = ("map", "gemm:M=8,N=4,K=8", "-a", "eyeriss-168", "--factors", "perfect", "-o", "edp")
        assert call(*args, "--solver", boaster, "-q", "--out", path).code == 0
    (layer,) = json.loads(path.read_text())["layers"]
    assert (layer["status"], layer["solver"]) == ("optimal", boaster)
    assert call("check", path).code == 0
    with pytest.MonkeyPatch.context() as patch:
        if not small:
            patch.setattr(second_opinion, "_ENUMERABLE", 0)
        outcome = call("check", path, "--prove", "-f", "json", "-q")
    assert outcome.code == 5
    proof = outcome.document["layers"][0]["proof"]
    assert (proof["verdict"], proof["solver"]) == ("refuted", judge)


def test_proof_of_infeasibility(call: Call, tmp_path: Path) -> None:
    """Infeasibility is confirmed by another solver, and refuted where a mapping exists."""
    path = tmp_path / "r.json"
    args = ("map", SMALL, "-a", "tpu-edge", "-q", "--out", path)
    assert call(*args, "--constraint", "cycles<=1").code == 3
    assert (
        call("check", path, "--prove", "-f", "json").document["layers"][0]["proof"]["verdict"] == "confirmed"
    )
    document = json.loads(path.read_text())
    problem = layer_problem(parse_layer(SMALL)[1], load_engine("tpu-edge"), parse_objective("energy"))
    document["layers"][0].update(constraints=[], input_hash=problem.content_hash)
    path.write_text(json.dumps(document))
    outcome = call("check", path, "--prove", "-f", "json")
    assert outcome.code == 5
    assert outcome.document["layers"][0]["proof"]["verdict"] == "refuted"


def test_proof_without_time_is_undecided(call: Call, result: Path) -> None:
    """Without time left nothing is decided, and the check itself still holds."""
    outcome = call("check", result, "--prove", "-t", "0.000001", "-f", "json")
    assert outcome.code == 0
    verdicts = {layer["proof"]["verdict"] for layer in outcome.document["layers"]}
    assert verdicts == {Verdict.UNDECIDED}


def test_other_solvers_are_asked() -> None:
    """The recorded solver is never asked again; enumeration comes first only where the space is small."""
    engine, objective = load_engine("tpu-edge"), parse_objective("edp")
    small = layer_problem(parse_layer("gemm:M=4,N=2,K=4")[1], engine, objective)
    large = layer_problem(parse_layer("gemm:M=512,N=768,K=768")[1], engine, objective)
    assert proof_solvers(small, "branch")[0] == "exhaustive"
    assert proof_solvers(large, "exhaustive")[0] != "exhaustive"
    for recorded in ("branch", "exhaustive", "cpsat"):
        assert recorded not in proof_solvers(small, recorded)
