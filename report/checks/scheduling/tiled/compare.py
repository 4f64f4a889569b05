"""Whether a document of a contest tells the truth: what follows from runs and problem is made anew."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.formulation.method import is_stochastic
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.formulation.scheduling.tiled.search import TiledGoal
from tilewright.report.records.claims import number
from tilewright.report.records.scheduling.tiled.compare import (
    CompareDocument,
    ContestantRecord,
    RunRecord,
    contestant,
    gap_of,
    winner_of,
)
from tilewright.report.records.scheduling.tiled.document import inputs_hash
from tilewright.solvers.scheduling.tiled.bounds import size_bounds
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.running import bound_key
from tilewright.workloads.errors import InputError


def compare_faults(document: CompareDocument, where: str) -> list[str]:
    """What is wrong, each in one line.

    Plans are not in the document, so that runs can be held against each other and the bound only.
    """
    faults = [*_head_faults(document)]
    try:
        problem = document.problem.build(document.objective, f"{where}: problem")
    except InputError as error:
        return [*faults, str(error)]
    faults += _problem_faults(document, problem)
    for one in document.contestants:
        faults += _contestant_faults(document, one)
    if document.winner != winner_of(document.contestants):
        faults.append(f"winner: {document.winner}, the runs make {winner_of(document.contestants)}")
    return faults


def _head_faults(document: CompareDocument) -> Iterator[str]:
    if document.input_hash != inputs_hash(document.problem, document.objective):
        yield "input_hash: network, machine, batch, rules or objective are not those compared"
    if document.bound != number(document.bound_key):
        yield f"bound: {document.bound}, its exact form is {document.bound_exact}"
    names = [one.method for one in document.contestants]
    if names != document.settings.methods:
        yield f"contestants: {names}, asked were {document.settings.methods}"
    if document.complete != all(one.missing == 0 for one in document.contestants):
        missing = sum(one.missing for one in document.contestants)
        yield f"complete: {document.complete}, {missing} runs are missing"
    if "tilewright" not in document.versions:
        yield "versions: that of tilewright is missing"


def _problem_faults(document: CompareDocument, problem: TiledProblem) -> Iterator[str]:
    told = (document.workload, document.system, document.batch)
    asked = (problem.network.name, problem.machine.name, problem.batch)
    for field, one, other in zip(("workload", "system", "batch"), told, asked, strict=True):
        if one != other:
            yield f"{field}: {one}, the problem has {other}"
    known = bound_key(TiledGoal(problem), size_bounds(problem))
    if document.bound_key > known:
        yield f"bound_exact: {document.bound_exact}, over all sizes of atoms only {known} is known"


def _contestant_faults(document: CompareDocument, one: ContestantRecord) -> Iterator[str]:
    where = f"contestants.{one.method}"
    try:
        stochastic = is_stochastic(METHODS.make(one.method))
    except InputError as error:
        yield f"{where}: {error.message}"
        return
    runs = document.settings.seeds if stochastic else 1
    if len(one.runs) + one.missing != runs:
        yield f"{where}.runs: {len(one.runs)} and {one.missing} missing, expected {runs} together"
    if one != contestant(one.method, one.runs, one.missing, document.bound_key):
        yield f"{where}: best, median, worst or gap do not follow from its runs"
    if len({run.seed for run in one.runs}) != len(one.runs):
        yield f"{where}.runs: a seed stands there twice"
    for run in one.runs:
        yield from (f"{where}.runs[seed {run.seed}].{fault}" for fault in _run_faults(document, run))


def _run_faults(document: CompareDocument, run: RunRecord) -> Iterator[str]:
    key = run.value_key
    if run.gap != gap_of(key, document.bound_key):
        yield f"gap: {run.gap}, value and bound make {gap_of(key, document.bound_key)}"
    if key is None:
        if run.value is not None or run.cycles is not None or run.status in ("optimal", "feasible"):
            yield "value_exact: missing"
        return
    if run.value != number(key):
        yield f"value: {run.value}, its exact form is {run.value_exact}"
    if key < document.bound_key:
        yield f"value_exact: {run.value_exact}, below the bound {document.bound_exact}"
    if run.cycles is None or run.energy_pj is None:
        yield "cycles or energy_pj: missing"
        return
    energy, delay = tiled_objective(document.objective).key_powers
    shown = float(run.energy_pj) ** energy * float(run.cycles) ** delay
    if abs(shown - float(key)) > 1e-9 * max(1.0, abs(shown)):
        yield f"value_exact: {run.value_exact}, cycles and energy_pj make {shown}"
