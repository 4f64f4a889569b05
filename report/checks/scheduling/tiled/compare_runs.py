"""Whether the runs of a contest are what the store's evidence says, and that is true of their plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.formulation.scheduling.tiled.evaluator import IllegalPlanError
from tilewright.formulation.scheduling.tiled.problem import TiledProblem
from tilewright.formulation.scheduling.tiled.search import AtomicPlan
from tilewright.foundation.errors import InputError
from tilewright.report.checks.scheduling.tiled.plan import evaluated_faults, space_faults
from tilewright.report.records.files import parse_record
from tilewright.report.records.scheduling.tiled.compare import CompareDocument, KeptRun, RunRecord
from tilewright.solvers.scheduling.tiled.second_opinion import PlanClaim, prove_plan
from tilewright.solvers.second_opinion import Proof, Verdict

Find = Callable[[str], str | None]
"""The text of a hash, if the store has it."""

_ASKED = ("time_limit_s", "threads", "clock")


@dataclass(frozen=True, eq=False)
class RunCheck:
    """A run with what the store has of it.

    Parameters
    ----------
    kept : ``None`` where there is no evidence of it
    answer : its plan, where that is legal
    faults : what is wrong, each in one line
    """

    method: str
    run: RunRecord
    kept: KeptRun | None
    answer: AtomicPlan | None
    faults: tuple[str, ...]


def check_runs(document: CompareDocument, problem: TiledProblem, find: Find) -> list[RunCheck]:
    """Hold every run against its evidence, and its evidence against the evaluator."""
    return [
        _checked(document, contest.method, run, problem, find)
        for contest in document.contestants
        for run in contest.runs
    ]


def _checked(
    document: CompareDocument, method: str, run: RunRecord, problem: TiledProblem, find: Find
) -> RunCheck:
    where = f"contestants.{method}.runs[seed {run.seed}]"
    text = None if run.evidence is None else find(run.evidence)
    if text is None:
        return RunCheck(method, run, None, None, ())
    faults: list[str] = []
    answer = None
    try:
        kept = parse_record(json.loads(text), KeptRun, f"{where}.evidence")
        faults += _kept_faults(document, method, run, kept)
        if kept.plan is not None:
            answer = kept.plan.build(problem, f"{where}.plan")
            evaluation = problem.evaluate(answer.dag, answer.plan)
            faults += evaluated_faults(kept.value_key, kept.metrics, kept.plan, problem, answer, evaluation)
            faults += space_faults(problem, answer, run.space) if run.space else ()
        elif kept.value_exact is not None:
            faults.append("plan: missing in the evidence")
    except (InputError, ValueError) as error:
        return RunCheck(method, run, None, None, (str(error),))
    except IllegalPlanError as fault:
        answer = None
        faults.append(f"illegal plan: {fault}")
    return RunCheck(method, run, kept, answer, tuple(f"{where}.{fault}" for fault in faults))


def _kept_faults(document: CompareDocument, method: str, run: RunRecord, kept: KeptRun) -> Iterator[str]:
    """Whatever the run or the contest states otherwise than the evidence."""
    if kept.input_hash != document.input_hash:
        yield "evidence: that of another problem"
    if kept.method != method:
        yield f"evidence: that of a run of {kept.method}"
    for field in _ASKED:
        reported, asked = getattr(document.settings, field), getattr(kept, field)
        if reported != asked:
            yield f"evidence: its {field} was {asked}, the contest's is {reported}"
    fresh = kept.shown(document.bound_key, run.evidence)
    for field, value in fresh.model_dump().items():
        reported = getattr(run, field)
        if reported != value:
            yield f"{field}: {reported}, the evidence has {value}"


def prove_runs(checks: list[RunCheck], problem: TiledProblem, limits: Limits) -> list[Proof]:
    """Whether each run's plan has been evaluated again, and its own bound is proven again.

    Parameters
    ----------
    limits : of all proofs together
    """
    return [_proof(check, problem, limits) for check in checks]


def _proof(check: RunCheck, problem: TiledProblem, limits: Limits) -> Proof:
    run = check.run
    if check.faults:
        return Proof(Verdict.REFUTED, "evidence", check.faults[0])
    if check.kept is None:
        reported = "no evidence is named" if run.evidence is None else "its evidence is missing"
        return Proof(Verdict.UNDECIDED, "-", reported)
    status = Status(run.status)
    if not run.space and status is not Status.INFEASIBLE:
        if check.answer is None:
            return Proof(Verdict.NOTHING, "-", "no plan is claimed")
        return Proof(Verdict.CONFIRMED, "evaluator", "its plan has the value")
    return prove_plan(
        PlanClaim(status, run.bound_key, check.method, problem, check.answer, run.space), limits
    )
