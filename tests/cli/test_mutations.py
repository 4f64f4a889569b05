"""Every leaf of a document is changed in every way; what carries a claim never passes ``check``."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from calls import TIGHT, TWO_LAYERS, Call
from effort import effort
from mutated import changes_of, mutations, undetected
from systems import LAYERS, SYSTEM

from tilewright.api.documents import checked, parsed
from tilewright.api.scheduling.contest import ContestCheck
from tilewright.benchmarks.arena.contest import Contest, entries
from tilewright.benchmarks.arena.document import compare_document
from tilewright.benchmarks.arena.work import answer
from tilewright.benchmarks.store import Store
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.evaluator import Evaluation
from tilewright.formulation.mapping.fused.evaluator import FusedEvaluation, evaluate_fused
from tilewright.formulation.mapping.mapping import Mapping
from tilewright.formulation.mapping.problem import LayerProblem, layer_problem
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError
from tilewright.hardware.scheduling.herald import classes
from tilewright.hardware.scheduling.herald.classes import AcceleratorClass
from tilewright.hardware.scheduling.tiled.load import load_tiled_machine
from tilewright.report.checks.mapping import document as verify
from tilewright.report.checks.mapping import fused
from tilewright.report.records import schemas
from tilewright.report.records.scheduling.herald.document import ScheduleDocument, inputs_hash
from tilewright.report.records.scheduling.herald.files import parse_schedule
from tilewright.report.records.scheduling.tiled.compare import CompareDocument, contestant, winner_of
from tilewright.workloads.catalog import resolve_model

UNCHECKED = {
    r"complete|best\.complete": "weaker: a run that was killed may have had everything",
    r".*\.(front|best|optima)\.complete": "proofs, which --prove repeats",
    r"(.*\.)?message|(.*\.)?description|layers\.\d+: without message": "text for people",
    r"(.*\.)?versions(\..*)?": "what else was installed; that of tilewright must be there",
    r"(.*\.)?(wall_s|tables_s)": "a clock's figures; they must not contradict the trace",
    r"(.*\.)?effort(\..*)?|(.*\.)?layers\.\d+: without effort": "what a search took",
    r"(.*\.)?trace\.\d+\.(seconds|source|heuristic|bound)": "when and by what something was known; only their"
    " order and their end leave evidence",
    r"(.*\.)?settings\.(time_limit_s|layer_limit_s|gap|threads|deterministic|seed|best|all_optimal)": "asked;"
    " it must not contradict the answer",
    r"(.*\.)?layers\.\d+\.(solver|solver_version|then\.solver)": "who found it",
    r"layers: reversed|layers\.\d+\.(best|optima)\.mappings: reversed": "an order that claims nothing",
    r"layers\.\d+\.(best\.mappings|front\.points): shorter": "whether there are others, which only the proof"
    " tells",
    r"layers\.\d+(\.clash)?: (shorter|without clash)": "fewer of them, which only the proof tells",
    r"model|batch|layers\.\d+\.names\.[1-9]\d*": "of a file of layers: its name, what it was"
    " read with, and what it calls further layers that are alike",
    r"points\.\d+\.herald_(cycles|energy_pj)": "what herald alone found, which --prove makes again",
    r"contestants\.\d+\.runs\.\d+(\.evidence|: without evidence)": "where the plan is kept; without it"
    " --prove is undecided",
    r"settings\.store|settings: without store": "the same",
    r"machine_file: without description": "text for people",
    r"machine_file\.levels\.\d+(\.capacity|: without capacity)": "what every design changes",
    r"machine_file\.levels\.\d+\.(energy_by_capacity|fanout)(\..*)?(: without .*)?": "of no design, or"
    " a default",
    r"best\.result\.layers\.\d+\.mapping\.nodes: longer": "one more loop of one trip: the same mapping",
    r"designs\.\d+\.(energy_pj|cycles|sum_of_layers)": "of designs but the best; they must be able to make"
    " the value",
    r"(.*\.)?totals: without (edp_bound|sum_of_layer_edp|without_mapping)": "older ones do not have them",
    r"designs\.\d+\.carried_from": "where a proof came from",
    r"groups: reversed": "an order that claims nothing",
    r"totals: without infeasible": "weaker, as `false` is",
    r"tried: (shorter|longer)|tried\.\d+\.(reason|skeletons|opened|solves)": "what was looked at, which only"
    " the proof tells",
    r"totals\.(unsearched|cells)(\..*)?(: without .*)?": "how it was searched; the designs must be able to"
    " come from it",
}
"""Leaves, or changes of them, that no check can judge, and why; ``docs/cli.md`` lists them."""

PLACE = "made.json"
"""The document's file; beside it lies the store of a contest."""


def faults_of(data: dict[str, Any]) -> list[str]:
    """Everything that ``check`` has to say about a document of any kind."""
    try:
        return [*checked(parsed(data, PLACE), PLACE).faults]
    except InputError as error:
        return [str(error)]


def same(first: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two documents that can be read say the same; what is optional may be left out."""
    return bool(parsed(first, PLACE) == parsed(other, PLACE))


def passing(data: dict[str, Any], *, every: bool = False, **which: Any) -> list[str]:
    """The mutations that no check finds, as ``path: change``; ``which`` of them are tried."""
    return undetected(data, faults_of, same, UNCHECKED, every=every, **which)


@pytest.fixture(autouse=True)
def stated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal problems are stated once, equal trees evaluated once: most changes leave them as they are."""
    known: dict[str, LayerProblem] = {}

    def stated(*args: Any) -> LayerProblem:
        key = repr(args)
        if key not in known:
            known[key] = layer_problem(*args)
        return known[key]

    evaluate = LayerProblem.evaluate
    evaluated_once: dict[tuple[int, str], tuple[LayerProblem, Evaluation]] = {}

    def evaluated(problem: LayerProblem, mapping: Mapping, where: str = "mapping") -> Evaluation:
        key = id(problem), repr(mapping)
        if key not in evaluated_once:
            # The problem stays alive beside its evaluation: another could else have its identity later.
            evaluated_once[key] = problem, evaluate(problem, mapping, where)
        return evaluated_once[key][1]

    fused_once: dict[str, FusedEvaluation] = {}

    def fused_evaluated(*args: Any) -> FusedEvaluation:
        key = repr(args)
        if key not in fused_once:
            fused_once[key] = evaluate_fused(*args)
        return fused_once[key]

    monkeypatch.setattr(fused, "evaluate_fused", fused_evaluated)
    monkeypatch.setattr(verify, "layer_problem", stated)
    monkeypatch.setattr(LayerProblem, "evaluate", evaluated)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Small inputs, cost tables that the tests share, and a class with a small grid."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.getbasetemp() / "costs"))
    monkeypatch.setitem(classes.CLASSES, "edge", AcceleratorClass("edge", 16, 8, 1 << 14, 4, 2))
    (tmp_path / "layers.yaml").write_text(TWO_LAYERS)
    (tmp_path / "model.yaml").write_text(LAYERS)
    (tmp_path / "chain.yaml").write_text(CHAIN)
    (tmp_path / "tight.yaml").write_text(TIGHT)
    (tmp_path / "system.yaml").write_text(SYSTEM)


def made(call: Call, *args: object, code: int = 0) -> dict[str, Any]:
    """The document that a call leaves."""
    assert call(*args, "-q", "--out", PLACE).code == code
    return honest()


MADE: dict[str, str] = {}
"""Documents by kind: several tests change the same one."""
PROVEN: set[str] = set()
"""Kinds of which another solver has confirmed the document."""


def made_once(call: Call, kind: str) -> dict[str, Any]:
    """The document of a kind, from its call or from an earlier test's."""
    if kind not in MADE:
        made(call, *CALLS[kind], code=3 if kind in UNSOLVED else 0)
        MADE[kind] = Path(PLACE).read_text()
    Path(PLACE).write_text(MADE[kind])
    document: dict[str, Any] = json.loads(MADE[kind])
    return document


def honest() -> dict[str, Any]:
    """The document that was written, which passes every check."""
    data: dict[str, Any] = json.loads(Path(PLACE).read_text())
    assert faults_of(data) == []
    return data


def contest(methods: tuple[str, ...] = ("ls", "exact", "atomic[moves=5]")) -> dict[str, Any]:
    """A contest of methods, one of which proves over a space of its own, with its store beside it."""
    problem = TiledProblem(
        resolve_model(CONV, 1), load_tiled_machine("atomic-2x2"), tiled_objective("makespan")
    )
    asked = Contest(problem, "makespan", methods, 2, 20.0, 1)
    cells = entries(asked)
    with Store(Path("compare.sqlite"), create=True) as store:
        store.place(cells)
        for entry in cells:
            store.put(entry.task, answer(entry.task, entry.task.key))
        document = compare_document(asked, cells, store.cells(), "compare.sqlite")
    Path(PLACE).write_text(json.dumps(document.to_data()))
    return honest()


CHAIN = """\
- {name: up, layer: "gemm:M=8,N=4,K=16"}
- {name: qk, layer: "gemm:M=16,N=16,K=4"}
- {name: av, layer: "gemm:M=16,N=4,K=16", reads: {A: qk}}
"""
CONV = "conv:K=4,C=8,P=4,Q=4,R=3,S=3,pad=1"
VARY = ("--vary", "levels.SPM.capacity=16kB,64kB", "--vary", "levels.RF.capacity=16B,64B")
FURTHER = ("--pareto", "--best", 2, "--all-optimal", "--most", 2)
SCHEDULING = ("-o", "edp", "--threads", 1)
ATTENTION = ("-a", "nvdla-256", "-o", "edp", "--layers", "block1.attention.scores")
CALLS = {
    "map": ("map", "layers.yaml", "-a", "tpu-edge", "-o", "edp"),
    "further": ("map", "gemm:M=2,N=2,K=2", "-a", "tpu-edge", "-o", "energy", "--then", "cycles", *FURTHER),
    "front": ("map", "gemm:M=1,N=6,K=4", "-a", "nvdla-256", "-o", "edp", "--pareto"),
    "fused": ("map", "chain.yaml", "-a", "tpu-edge", "--fuse", "--factors", "perfect"),
    "unfit": ("map", "chain.yaml", "-a", "tight.yaml", "--fuse", "--factors", "perfect"),
    "phases": ("map", "gpt2[tokens=4]", *ATTENTION, "--phases", "prefill:1,decode:5", "--lengths", 2),
    "sweep": ("explore", "gpt2", *ATTENTION, "--vary", "model.tokens=4,5"),
    "clash": ("map", "gemm:M=8,N=8,K=8", "-a", "nvdla-256", "--constraint", "cycles<=3"),
    "schedule": ("schedule", "model.yaml", "--system", "system.yaml", *SCHEDULING),
    "codesign": ("codesign", "model.yaml", "--class", "edge", "--gap", "0.01", *SCHEDULING),
    "plan": ("schedule", "layers.yaml", "--system", "atomic-2x2", "--batch", 2, "-m", "ls", *SCHEDULING),
    "explore": ("explore", "gemm:M=4,N=16,K=32", "-a", "dmazerunner-256", *VARY, "--each-layer"),
    "totals": ("explore", "layers.yaml", "-a", "dmazerunner-256", *VARY, "-o", "edp"),
    "sums": ("explore", "layers.yaml", "-a", "dmazerunner-256", *VARY, "-o", "sum-edp"),
}
UNSOLVED = {"clash", "unfit"}
"""Documents without a mapping."""
LIKE = {"further": "map", "front": "map", "phases": "map", "totals": "explore", "sums": "totals"}
"""Documents of which the default run changes only what another has not."""
SCHEMAS = {
    schemas.RESULT: "map",
    schemas.SCHEDULE: "schedule",
    schemas.CODESIGN: "codesign",
    schemas.PLAN: "plan",
    schemas.COMPARE: "compare",
    schemas.EXPLORE: "explore",
    schemas.FUSED: "fused",
    schemas.SWEEP: "sweep",
}
"""An attacked document of every kind that is shipped."""


def test_every_kind_of_document_is_attacked() -> None:
    """A new schema has no place here until its documents are changed leaf by leaf."""
    shipped = Path(schemas.__file__).parent.glob("*.schema.json")
    assert {path.name for path in shipped} == set(SCHEMAS)
    assert set(SCHEMAS.values()) <= {*CALLS, "compare"}


@pytest.mark.parametrize("kind", CALLS)
def test_no_changed_claim_passes(call: Call, kind: str) -> None:
    """Numbers by one, texts, flags, keys and lists: whatever is no mere text or clock is found out."""
    document = made_once(call, kind)
    if "best" in document and effort(1) == 1:  # a document as another test has it stands inside
        inner = {key: value for key, value in document["best"].items() if not isinstance(value, dict | list)}
        shallow = {**document, "best": inner}
        places = {".".join(map(str, path)) for path, _, _ in mutations(shallow)}
        passed = passing(document, only=places)
    elif kind == "sweep":  # the same of its explorations
        points = [{**point, "exploration": {}} for point in document["points"]]
        places = {".".join(map(str, path)) for path, _, _ in mutations({**document, "points": points})}
        passed = passing(document, only=places)
    elif kind in LIKE and effort(1) == 1:
        passed = passing(document, known=changes_of(made_once(call, LIKE[kind])))
    else:
        passed = passing(document, every=effort(1) > 1)
    # lists that were asked for are not there where no mapping is
    wanted = {"clash": {"settings.pareto: turned"}, "unfit": {"totals.infeasible: turned"}}.get(kind, set())
    if effort(1) > 1:  # answers on the way are not in the document
        early = range(len(document.get("trace", ())) - 1)
        wanted |= {f"trace.{index}.value: {change}" for index in early for change in ("more", "less")}
    assert set(passed) <= wanted, passed


def test_a_mapping_beside_is_one_of_the_documents_layers(call: Call) -> None:
    """What lies outside the space maps the same layers, not others that take less."""
    fused = json.dumps(made_once(call, "fused"))
    Path("start.json").write_text(fused)
    document = made(call, *CALLS["fused"], "--fuse-at", "ACC", "--warm-start", "start.json")
    assert document["beside"]
    operator = document["beside"][0]["layers"][0]["operator"]
    operator["kind"] += "x"
    assert faults_of(document) == ["beside[0].layers[0]: qk is not that of the document"]


def test_groups_that_were_tried_are_of_the_documents_layers(call: Call) -> None:
    """Names of other layers, or of the same in another order, are no group, used or not."""
    document = made_once(call, "fused")
    for layers in (["qk", "qk"], ["av", "qk"], ["qk", "other"]):
        other = {**document["tried"][0], "used": False, "layers": layers}
        faults = faults_of({**document, "tried": [*document["tried"], other]})
        assert faults == [f"tried[1].layers: {layers}, expected layers of the document in their order"]


def test_no_changed_claim_of_a_contest_passes(call: Call) -> None:
    """The same with plans in a store: figures, statuses, budgets, seconds and texts of every run."""
    quick = effort(1) == 1
    assert passing(contest(("exact", "atomic[moves=5]")) if quick else contest(), every=not quick) == []


def test_the_head_is_that_of_a_known_network(call: Call) -> None:
    """Layers under the name of a built-in network are that network's, and so is the batch."""
    document = made(
        call, "map", "alexnet", "-a", "nvdla-256", "--layers", "fc8", "--solver", "random[victory=2]"
    )
    faults = faults_of({**document, "batch": document["batch"] + 1})
    assert any("operator: not that of fc8 in alexnet" in fault for fault in faults), faults
    text = made(call, "map", "gemm:M=4,N=4,K=4", "-a", "tpu-edge")
    for model, reported in (
        ("gemm:M=8,N=4,K=4", "operator: not that of"),
        ("gemm:M=4", "model: "),
        ("", "model: "),
    ):
        faults = faults_of({**text, "model": model})
        assert any(reported in fault for fault in faults), (model, faults)
    conv = made(call, "map", "conv:N=2,K=2,C=2,P=2,Q=2,R=1,S=1", "-a", "tpu-edge")
    faults = faults_of({**conv, "batch": 3})
    assert any("contradicts the batch 3" in fault for fault in faults), faults


def test_one_line_and_exit_code_five(call: Call) -> None:
    """The command line says what the functions find."""
    document = made_once(call, "schedule")
    document["problem"]["costs"][0]["options"][0]["mapping"]["nodes"].pop()
    Path("changed.json").write_text(json.dumps(document))
    outcome = call("check", "changed.json", "-f", "json")
    assert outcome.code == 5
    assert any("problem.costs[0].options[0].mapping" in fault for fault in outcome.document["faults"])
    assert not any("\n" in fault for fault in outcome.document["faults"])


@pytest.mark.parametrize("field", ["cycles", "energy_pj_exact", "memory_bytes", "fetch_bytes", "fetch"])
def test_a_cheaper_option_is_counted_again(call: Call, field: str) -> None:
    """Whoever makes a cost smaller and mends the hash is found out by the option's mapping."""
    document = made_once(call, "schedule")
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
    faults = faults_of(document)
    assert any(f"options[0].{field}: " in fault and "the evaluator finds" in fault for fault in faults), (
        faults
    )


def test_an_option_left_out_is_found_by_the_proof(call: Call) -> None:
    """Without one of its options a layer still holds together; surveying it again refutes the document."""
    document = made_once(call, "schedule")
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


Lie = Callable[[dict[str, Any]], None]


def _less(record: dict[str, Any], *fields: str, part: Fraction = Fraction(1, 2)) -> None:
    """Smaller figures, with their exact forms beside them."""
    for name in fields:
        exact = part * Fraction(record.get(f"{name}_exact") or record[name])
        record[name] = int(exact) if exact == int(exact) else float(exact)
        if f"{name}_exact" in record:
            record[f"{name}_exact"] = str(exact)


def _front_cut(document: dict[str, Any]) -> None:
    """A point that is neither the first nor of the layer's mapping is left out."""
    points, metrics = document["layers"][0]["front"]["points"], document["layers"][0]["metrics"]
    del points[next(i for i, point in enumerate(points) if point["cycles"] != metrics["cycles"])]


def _best_cut(document: dict[str, Any]) -> None:
    del document["layers"][0]["best"]["mappings"][-1]


def _optima_whole(document: dict[str, Any]) -> None:
    assert not document["layers"][0]["optima"]["complete"]
    document["layers"][0]["optima"]["complete"] = True


def _other_design(document: dict[str, Any]) -> dict[str, Any]:
    """A design that has a value and is not the best one."""
    best = document["best"]["index"]
    return next(
        design for design in document["designs"] if design["value"] is not None and design["index"] != best
    )


def _design_dearer(document: dict[str, Any]) -> None:
    """A bound above the design's optimum, with a value to match."""
    design = _other_design(document)
    _less(design, "value", "bound", part=Fraction(2))
    design.update(energy_pj=2 * design["energy_pj"], cycles=design["cycles"])


def _totals_bounded(document: dict[str, Any]) -> None:
    """A discarded design's bound on its totals far above what its mappings reach."""
    design = next(entry for entry in document["designs"] if entry["status"] == "discarded")
    _less(design, "bound", part=Fraction(9))
    design.update(dict.fromkeys(("value", "value_exact", "energy_pj", "cycles", "sum_of_layers")))


def _totals_less(document: dict[str, Any]) -> None:
    """A discarded design's value that none of its mappings have, a little above its bound."""
    design = next(entry for entry in document["designs"] if entry["status"] == "discarded")
    bound = Fraction(design["bound_exact"])
    value = int(bound) + 1
    design.update(value=value, value_exact=str(value), energy_pj=value, cycles=1, sum_of_layers=value)


def _design_unfit(document: dict[str, Any]) -> None:
    """A design that is said to have no mapping."""
    design = _other_design(document)
    counts = document["totals"]["statuses"]
    counts[design["status"]] -= 1
    counts["infeasible"] = counts.get("infeasible", 0) + 1
    document["totals"]["statuses"] = {name: count for name, count in counts.items() if count}
    empty = ("value", "value_exact", "bound", "bound_exact", "energy_pj", "cycles")
    design.update(dict.fromkeys(empty), status="infeasible", proven_layers=0)


def _herald_slower(document: dict[str, Any]) -> None:
    point = next(point for point in document["points"] if point["scheduled"])
    point["herald_cycles"] += 1


def _point_dearer(document: dict[str, Any]) -> None:
    """A partition that is said to be slower than herald's schedule on it."""
    point = next(point for point in document["points"] if not point["scheduled"])
    point.update(cycles=2 * point["cycles"], herald_cycles=2 * point["herald_cycles"])
    _less(point, "value", part=Fraction(2))


LIES: dict[str, tuple[str, Lie]] = {
    "a front without its last point": ("front", _front_cut),
    "one of the best left out": ("further", _best_cut),
    "optimal mappings beyond the list": ("further", _optima_whole),
    "a design made dearer": ("explore", _design_dearer),
    "a design made unfit": ("explore", _design_unfit),
    "a design of bounds that totals break": ("totals", _totals_bounded),
    "a design of totals that are not there": ("totals", _totals_less),
    "herald made slower": ("codesign", _herald_slower),
    "a partition made slower": ("codesign", _point_dearer),
}
"""Changes of several fields that fit each other: no check finds them in the document alone."""


@pytest.mark.parametrize("name", LIES)
def test_lies_that_fit_each_other_are_never_confirmed(call: Call, name: str) -> None:
    """What the document alone does not give away, ``--prove`` refutes or leaves undecided."""
    kind, lie = LIES[name]
    document = made_once(call, kind)
    if kind not in PROVEN:
        honest_proofs = checked(parsed(document, PLACE), PLACE, Limits(60, threads=1))
        assert honest_proofs.holds
        assert not honest_proofs.undecided
        PROVEN.add(kind)
    lie(document)
    assert faults_of(document) == []
    report = checked(parsed(document, PLACE), PLACE, Limits(60, threads=1))
    assert report.undecided or not report.holds


def test_a_contest_is_proven_with_its_plans(call: Call) -> None:
    """What an exact method claims over its space is proven anew; an invented winner is refuted."""
    document = contest(("ls", "exact"))
    report = checked(parsed(document, PLACE), PLACE, Limits(60, threads=1))
    assert isinstance(report, ContestCheck)
    assert document["contestants"][1]["runs"][0]["space"]
    assert [proof.verdict.value for proof in report.proofs] == ["confirmed"] * 3
    assert report.proofs[2].solver in ("exact, again", "computed bounds")
    assert report.proof.verdict.value == "confirmed"
    document["winner"] = {"method": "ls", "second": "exact", "lead": 0.3, "clear": True}
    report = checked(parsed(document, PLACE), PLACE, Limits(60, threads=1))
    assert isinstance(report, ContestCheck)
    assert (report.holds, report.proof.verdict.value) == (False, "refuted")


def test_a_contest_that_was_stopped_proves_no_winner(call: Call) -> None:
    """A run that is said not to have been computed leaves the ranking undecided."""
    document = contest(("ls", "atomic[moves=5]"))
    read = parsed(document, PLACE)
    assert isinstance(read, CompareDocument)
    first, second = read.contestants
    parts = [first, contestant(second.method, second.runs[:1], 1, read.bound_key)]
    winner = winner_of(parts)
    assert winner is not None
    document.update(
        complete=False, winner=winner.model_dump(), contestants=[part.model_dump() for part in parts]
    )
    assert faults_of(document) == []
    assert checked(parsed(document, PLACE), PLACE, Limits(60, threads=1)).undecided


def test_contests_without_their_plans_are_undecided(call: Call) -> None:
    """Figures that fit each other pass without plans, and no proof confirms them; with plans they fail."""
    document = contest(("ls", "rammer"))
    assert checked(parsed(document, PLACE), PLACE, Limits(60, threads=1)).holds
    run = document["contestants"][0]["runs"][0]
    run["dram_bytes"] += 8
    assert any("dram_bytes" in fault for fault in faults_of(document))
    for forgotten in ("evidence", "store"):
        altered = json.loads(json.dumps(document))
        if forgotten == "evidence":
            altered["contestants"][0]["runs"][0]["evidence"] = None
        else:
            altered["settings"]["store"] = None
        assert faults_of(altered) == []
        report = checked(parsed(altered, PLACE), PLACE, Limits(60, threads=1))
        assert report.undecided
        assert "not all were compared" in str(report.views()[-1])
