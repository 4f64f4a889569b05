"""Whether a document of a contest is correct: what follows from runs and problem is made again.

What a run's plan says is another check, of the evidence that a store keeps
(:mod:`tilewright.report.checks.scheduling.tiled.compare_runs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tilewright.formulation.method import is_stochastic
from tilewright.formulation.scheduling.tiled.dag import AtomicDag
from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
from tilewright.foundation.errors import InputError
from tilewright.report.checks.mapping.document import status_faults
from tilewright.report.checks.scheduling.settings import proves
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
from tilewright.solvers.scheduling.tiled.bounds import Bounds
from tilewright.solvers.scheduling.tiled.joint_bounds import least_key
from tilewright.solvers.scheduling.tiled.registry import METHODS
from tilewright.solvers.scheduling.tiled.size_bounds import compulsory_bytes, size_bounds, whole_layers

_FIGURES = ("cycles", "energy_pj", "dram_bytes", "hop_bytes", "utilization", "atoms")
"""What a run states of its plan."""


@dataclass(frozen=True, eq=False)
class Least:
    """The lower bound on all plans of a contest, recomputed.

    Parameters
    ----------
    whole : every layer as one atom
    """

    problem: TiledProblem
    bounds: Bounds
    whole: AtomicDag

    @classmethod
    def of(cls, problem: TiledProblem) -> Least:
        """The least figures of a problem."""
        return cls(problem, size_bounds(problem), whole_layers(problem))

    @cached_property
    def key(self) -> Fraction:
        """The bound of the contest."""
        return least_key(self.problem)


@dataclass(frozen=True, eq=False)
class CompareCheck:
    """A document with the problem that it states.

    Parameters
    ----------
    problem : ``None`` where the document does not state one that can be built
    faults : what is wrong, each in one line
    """

    document: CompareDocument
    problem: TiledProblem | None
    faults: tuple[str, ...]


def check_compare(document: CompareDocument, where: str) -> CompareCheck:
    """Hold runs against each other, the problem and its bounds; sums and the winner follow from them."""
    faults = [*_head_faults(document)]
    try:
        problem = document.problem.build(document.objective, f"{where}: problem")
    except InputError as error:
        return CompareCheck(document, None, (*faults, str(error)))
    least = Least.of(problem)
    faults += _problem_faults(document, least)
    for entry in document.contestants:
        faults += _contestant_faults(document, entry, least)
    if document.winner != winner_of(document.contestants):
        faults.append(f"winner: {document.winner}, the runs make {winner_of(document.contestants)}")
    return CompareCheck(document, problem, tuple(faults))


def _head_faults(document: CompareDocument) -> Iterator[str]:
    if document.input_hash != inputs_hash(document.problem, document.objective):
        yield "input_hash: network, machine, batch, rules or objective are not those compared"
    if document.bound != number(document.bound_key):
        yield f"bound: {document.bound}, its exact form is {document.bound_exact}"
    names = [contestant.method for contestant in document.contestants]
    if names != document.settings.methods:
        yield f"contestants: {names}, asked were {document.settings.methods}"
    if len(set(names)) < len(names):
        yield "contestants: a method appears twice"
    if document.complete != all(contestant.missing == 0 for contestant in document.contestants):
        missing = sum(contestant.missing for contestant in document.contestants)
        yield f"complete: {document.complete}, {missing} runs are missing"
    if document.settings.time_limit_s <= 0:
        yield f"settings.time_limit_s: {document.settings.time_limit_s}, expected more than 0"
    if "tilewright" not in document.versions:
        yield "versions: that of tilewright is missing"


def _problem_faults(document: CompareDocument, least: Least) -> Iterator[str]:
    problem = least.problem
    reported = (document.workload, document.system, document.batch)
    asked = (problem.network.name, problem.machine.name, problem.batch)
    for field, stated, other in zip(("workload", "system", "batch"), reported, asked, strict=True):
        if stated != other:
            yield f"{field}: {stated}, the problem has {other}"
    if document.bound_exact != str(document.bound_key):
        yield f"bound_exact: {document.bound_exact}, expected {document.bound_key}"
    if document.bound_key > least.key:  # an earlier version's bound may be weaker
        yield f"bound_exact: {document.bound_exact}, over all sizes of atoms only {least.key} is known"


def _contestant_faults(document: CompareDocument, claimed: ContestantRecord, least: Least) -> Iterator[str]:
    where = f"contestants.{claimed.method}"
    try:
        stochastic = is_stochastic(METHODS.make(claimed.method))
    except InputError as error:
        yield f"{where}: {error.message}"
        return
    runs = document.settings.seeds if stochastic else 1
    if len(claimed.runs) + claimed.missing != runs:
        yield f"{where}.runs: {len(claimed.runs)} and {claimed.missing} missing, expected {runs} together"
    fresh = contestant(claimed.method, claimed.runs, claimed.missing, document.bound_key)
    for field in ("without_plan", "best", "median", "worst", "gap"):
        if getattr(claimed, field) != getattr(fresh, field):
            yield f"{where}.{field}: {getattr(claimed, field)}, its runs make {getattr(fresh, field)}"
    seeds = [run.seed for run in claimed.runs]
    if seeds != sorted(set(seeds)) or not set(seeds) <= set(range(runs)):
        yield f"{where}.runs: of the seeds {seeds}, expected some of 0 to {runs - 1} in their order"
    exact = proves(claimed.method, METHODS)
    for run in claimed.runs:
        faults = _run_faults(document, run, least, exact=exact)
        yield from (f"{where}.runs[seed {run.seed}].{fault}" for fault in faults)


def _run_faults(document: CompareDocument, run: RunRecord, least: Least, *, exact: bool) -> Iterator[str]:
    key = run.value_key
    yield from status_faults(run, solved=run.cycles is not None, noun="plan", exact=exact)
    if run.status == "infeasible" and not exact:
        yield "status: infeasible, by a heuristic"
    if run.status == "interrupted":
        yield "status: interrupted, but a contest has no unfinished run"
    if run.status == "error" and not run.message:
        yield "status: error, without a message that says which"
    if run.space and not exact:
        yield "space: a bound over some plans, by a heuristic"
    elif run.bound_key is not None and not run.space and run.bound_key != document.bound_key:
        yield f"bound_exact: {run.bound_exact}, over all plans that of the contest is known"
    if run.gap != gap_of(key, document.bound_key):
        yield f"gap: {run.gap}, value and bound make {gap_of(key, document.bound_key)}"
    if run.value != (None if key is None else number(key)):
        yield f"value: {run.value}, its exact form is {run.value_exact}"
    there = [field for field in _FIGURES if getattr(run, field) is not None]
    if key is None:
        yield from (f"{field}: there, without a plan" for field in there)
        if run.closed_form is not None:
            yield "closed_form: there, without a plan"
        return
    yield from (f"{field}: missing" for field in _FIGURES if field not in there)
    if len(there) == len(_FIGURES):
        yield from _figure_faults(document, run, least)


def _figure_faults(document: CompareDocument, run: RunRecord, least: Least) -> Iterator[str]:
    """What cycles and energy make, and figures that no plan of the problem has."""
    cycles, energy = run.cycles or 0, float(run.energy_pj or 0)
    powers = tiled_objective(document.objective).key_powers
    shown = energy ** powers[0] * float(cycles) ** powers[1]
    if abs(shown - float(run.value_key or 0)) > 1e-9 * max(1.0, abs(shown)):
        yield f"value_exact: {run.value_exact}, cycles and energy_pj make {shown}"
    if (run.value_key or 0) < document.bound_key:
        yield f"value_exact: {run.value_exact}, below the bound {document.bound_exact}"
    whole, machine = least.whole, least.problem.machine
    energy_bound = least.bounds.energy * (1 - 1e-9)
    for field, reported, bound in (
        ("cycles", cycles, least.bounds.cycles),
        ("energy_pj", energy, energy_bound),
        ("dram_bytes", run.dram_bytes or 0, compulsory_bytes(whole)),
        ("atoms", run.atoms or 0, whole.tasks),
    ):
        if reported < bound:
            yield f"{field}: {reported}, no plan has less than {bound}"
    utilization = whole.macs / (machine.macs_per_cycle * max(1, cycles))
    if run.utilization != utilization:
        yield f"utilization: {run.utilization}, the network's operations in {cycles} cycles are {utilization}"
