"""Explorations by the edp of a network's totals, against every combination of every layer's mappings."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product as cartesian
from pathlib import Path

import pytest
from brute import every_mapping
from effort import effort

from tilewright.api.documents import checked
from tilewright.api.mapping.exploration import ExploreRequest, answered, stated_question
from tilewright.api.mapping.exploration_check import check_exploration, design_proofs
from tilewright.formulation.limits import Limits
from tilewright.formulation.mapping.problem import layer_problem
from tilewright.formulation.objective import Objective, parse_objective
from tilewright.hardware.mapping.design_cost import design_costs
from tilewright.hardware.mapping.variations import parse_variation
from tilewright.report.checks.mapping.explore import explore_faults
from tilewright.report.records.kinds import parse_any
from tilewright.report.records.mapping.explore import ExploreDocument
from tilewright.solvers.second_opinion import Verdict

Point = tuple[Fraction, int]
"""Energy in pJ and cycles."""
OBJECTIVES = ("edp", "ed2p", "E^2*D", "D^2")
INSTANCES = effort(4)


@dataclass(frozen=True)
class Whole:
    """Everything that can be had in a design space.

    Parameters
    ----------
    least : per design, the least objective of total energy and total cycles over all mappings of all layers;
        ``None`` where a layer has no mapping
    sums : the same of the sum of the layers' objectives
    costs : of each design
    """

    least: list[Fraction | None]
    sums: list[Fraction | None]
    costs: list[Fraction]


def made(folder: Path, seed: int, objective: str) -> ExploreRequest:
    """A small question: two or three layers, some twice, on four machines."""
    draw = random.Random(seed)
    energy = [draw.choice((1, 2, 3, 5, 8)) for _ in range(3)]
    rate = draw.choice(("1", "2", "4"))
    machine = folder / f"machine-{seed}.yaml"
    machine.write_text(
        f"""\
clock_mhz: 500
compute: {{mac_energy: {energy[0]}, element_bits: 8}}
levels:
  - name: DRAM
    energy: {energy[1] * 20}
    bandwidth: {rate} B/cycle
    fanout: {{axes: [{{name: pe, size: 2}}]}}
  - {{name: GLB, capacity: 8 B, energy: {energy[2]}}}
"""
    )
    shapes = draw.sample(
        ("M=2,N=2,K=2", "M=4,N=1,K=2", "M=1,N=1,K=6", "M=3,N=2,K=1", "M=1,N=4,K=1"), draw.choice((2, 2, 3))
    )
    model = folder / f"layers-{seed}.yaml"
    model.write_text(
        "".join(
            f'- {{name: l{place}, layer: "gemm:{shape}", count: {draw.choice((1, 1, 2, 3))}}}\n'
            for place, shape in enumerate(shapes)
        )
    )
    sizes = draw.choice(("3 B,6 B", "4 B,12 B", "2 B,8 B"))
    other = draw.choice(
        (
            "levels.DRAM.energy=20,90",
            "levels.DRAM.bandwidth=1 B/cycle,3 B/cycle",
            "levels.DRAM.fanout.axes.pe.size=1,4",
        )
    )
    axes = tuple(parse_variation(text) for text in (f"levels.GLB.capacity={sizes}", other))
    return ExploreRequest(str(model), str(machine), axes, objective=objective, factors="perfect", jobs=1)


def points(request: ExploreRequest) -> Iterator[list[list[Point]]]:
    """Per design and layer, what its mappings cost that no other beats in both."""
    question = stated_question(request)
    for design in question.space.designs:
        assert design.engine is not None
        rows = []
        for layer in question.layers:
            problem = layer_problem(layer.operator, design.engine, parse_objective("edp"), factors="perfect")
            costs = set()
            for mapping in every_mapping(layer.operator, design.engine, perfect=True):
                evaluation = problem.evaluate(mapping)
                if not evaluation.violations:
                    costs.add((evaluation.energy, evaluation.cycles))
            rows.append(
                [p for p in costs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in costs)]
            )
        yield rows


def whole(request: ExploreRequest, objective: Objective) -> Whole:
    """The truth, combination by combination."""
    question = stated_question(request)
    counts = [len(layer.names) for layer in question.layers]
    least: list[Fraction | None] = []
    sums: list[Fraction | None] = []
    for rows in points(request):
        totals, added = [], []
        for chosen in cartesian(*rows):
            energy = sum((count * costs[0] for count, costs in zip(counts, chosen, strict=True)), Fraction(0))
            cycles = sum(count * costs[1] for count, costs in zip(counts, chosen, strict=True))
            totals.append(objective.key(energy, cycles))
            added.append(
                sum(count * objective.key(*costs) for count, costs in zip(counts, chosen, strict=True))
            )
        least.append(min(totals, default=None))
        sums.append(Fraction(min(added)) if added else None)
    return Whole(least, sums, list(design_costs("capacity", question.space.designs)))


def explored(request: ExploreRequest) -> ExploreDocument:
    return answered(request, threading.Event(), time.monotonic()).record


def judged(
    document: ExploreDocument, least: list[Fraction | None], objective: Objective, totals: bool
) -> None:
    """Nothing that a document claims is more than what all mappings together give."""
    values = [
        None if design.value_exact is None else Fraction(design.value_exact) for design in document.designs
    ]
    true = min((key for key in least if key is not None), default=None)
    assert (document.best is None) == (true is None)
    for record, value, truth in zip(document.designs, values, least, strict=True):
        if truth is None:
            assert record.status in ("infeasible", "discarded")
            continue
        assert record.bound_exact is not None
        assert Fraction(record.bound_exact) <= truth
        assert record.status != "infeasible"
        if value is not None:
            assert value >= truth
            if totals:
                assert float(value) == pytest.approx(
                    float(objective.key(Fraction(record.energy_pj or 0), record.cycles or 0))
                )
        if record.status == "solved":
            assert value == truth
        if record.status == "discarded":
            assert truth > min(key for key in least if key is not None)
    if document.best is not None and true is not None:
        assert Fraction(document.best.value_exact) == min(
            design_value for design_value in values if design_value is not None
        )
        assert Fraction(document.best.bound_exact) <= true <= Fraction(document.best.value_exact)
        assert document.best.optimal == (document.best.bound_exact == document.best.value_exact)
    assert not explore_faults(document, "document")


@pytest.mark.parametrize(
    "objective",
    [pytest.param(text, marks=pytest.mark.slow if text == "E^2*D" else ()) for text in OBJECTIVES],
)
def test_no_claim_exceeds_what_all_mappings_give(objective: str, tmp_path: Path) -> None:
    """Values are reached, bounds hold and ``optimal`` is true over all combinations of mappings."""
    goal, seen = parse_objective(objective), Counter[str]()
    for seed in range(INSTANCES):
        request = made(tmp_path, seed, objective)
        truth, exploration = whole(request, goal), explored(request)
        judged(exploration, truth.least, goal, totals=True)
        seen.update(record.status for record in exploration.designs)
        seen["optimal"] += exploration.best is not None and exploration.best.optimal
        summed = explored(replace(request, objective=f"sum-{objective}"))
        judged(summed, truth.sums, goal, totals=False)
        assert summed.best is None or summed.best.optimal
        assert summed.complete
    print(objective, dict(seen))
    assert seen["discarded"]
    assert seen["feasible"] or objective == "D^2"
    assert seen["optimal"] or objective != "D^2"


def test_fronts_miss_nothing_that_they_call_complete(tmp_path: Path) -> None:
    """Every design on the true front of value and capacity is on the front, or not called beaten."""
    goal = parse_objective("edp")
    for seed in range(INSTANCES):
        request = replace(made(tmp_path, seed, "edp"), against="capacity")
        truth, exploration = whole(request, goal), explored(request)
        known = {place: value for place, value in enumerate(truth.least) if value is not None}
        for place, value in known.items():
            cheaper = [other for rival, other in known.items() if truth.costs[rival] <= truth.costs[place]]
            if value == min(cheaper):
                assert exploration.designs[place].status != "discarded"
        assert exploration.front is not None
        assert not exploration.front.complete or not {design.status for design in exploration.designs} & {
            "feasible",
            "open",
        }
        assert not explore_faults(exploration, "document")


def test_layers_that_are_alike_are_proven(tmp_path: Path) -> None:
    """A network of one layer many times leaves no gap: its totals are its layer's, so many times."""
    request = made(tmp_path, 1, "edp")
    Path(str(request.model)).write_text('- {name: l, layer: "gemm:M=4,N=1,K=2", count: 7}\n')
    truth, exploration = whole(request, parse_objective("edp")), explored(request)
    assert exploration.best is not None
    assert exploration.best.optimal
    assert exploration.complete
    assert Fraction(exploration.best.value_exact) == min(value for value in truth.least if value is not None)


def test_second_opinions_hold_and_refute(tmp_path: Path) -> None:
    """Other solvers find what is claimed of totals, and refute what no mappings have."""
    exploration = explored(made(tmp_path, 3, "edp"))
    verdicts = {proof.verdict for _, proof in design_proofs(exploration, "document", Limits(100.0))}
    assert verdicts <= {Verdict.CONFIRMED, Verdict.UNDECIDED}
    assert Verdict.CONFIRMED in verdicts
    assert check_exploration(exploration, "document", Limits(100.0), None).holds
    assert exploration.best is not None
    other = next(
        design
        for design in exploration.designs
        if design.index != exploration.best.index and design.bound_exact
    )
    raised = other.model_copy(
        update={"bound_exact": str(Fraction(other.bound_exact or 0) * 9), "value_exact": None}
    )
    designs = [raised if design.index == other.index else design for design in exploration.designs]
    proofs = design_proofs(exploration.model_copy(update={"designs": designs}), "document", Limits(100.0))
    assert Verdict.REFUTED in {proof.verdict for _, proof in proofs}
    lowered = other.model_copy(update={"bound_exact": "1", "value_exact": "1"})
    designs = [lowered if design.index == other.index else design for design in exploration.designs]
    proofs = design_proofs(exploration.model_copy(update={"designs": designs}), "document", Limits(100.0))
    assert Verdict.REFUTED in {proof.verdict for _, proof in proofs}


def test_older_documents_hold_sums(tmp_path: Path) -> None:
    """Documents that do not tell what values are were written of sums, and are checked as such."""
    data = json.loads(json.dumps(explored(made(tmp_path, 2, "sum-edp")).to_data()))
    assert data["objective"] == "sum-edp"
    assert data["figure"] == "sum of layer edp"
    del data["figure"]
    data["objective"] = "edp"
    assert not checked(parse_any(data, "document"), "document").faults
    data["figure"] = "edp"
    assert checked(parse_any(data, "document"), "document").faults
