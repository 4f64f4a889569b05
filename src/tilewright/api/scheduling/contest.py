"""Contests of methods: documents of ``tilewright compare``, read back and checked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from tilewright.api.checked import Check
from tilewright.api.display import Displayed
from tilewright.formulation.limits import Limits
from tilewright.formulation.result import Status
from tilewright.report.checks.scheduling.tiled.compare import check_compare
from tilewright.report.checks.scheduling.tiled.compare_runs import Find, RunCheck, check_runs, prove_runs
from tilewright.report.records.evidence import open_evidence, places_of
from tilewright.report.records.files import json_text
from tilewright.report.records.scheduling.tiled.compare import CompareDocument
from tilewright.report.text.proofs import proof_data
from tilewright.report.text.scheduling.tiled.compare import compare_views
from tilewright.solvers.scheduling.tiled.second_opinion import PlanClaim, prove_plan
from tilewright.solvers.second_opinion import Proof, Verdict


@dataclass(frozen=True, repr=False)
class Contest(Displayed):
    """Methods on one network and one machine, judged by one evaluator.

    Parameters
    ----------
    record : the document as data
    where : its file, beside which a check looks for the plans
    """

    record: CompareDocument
    where: str = "document"

    def rows(self) -> list[dict[str, Any]]:
        """One row per run."""
        return [
            {"method": contestant.method, **run.model_dump()}
            for contestant in self.record.contestants
            for run in contestant.runs
        ]

    def to_text(self, form: str = "json") -> str:
        """The document as a file holds it; the one format is ``json``."""
        return json_text(self.record.to_data())

    def views(self, seconds: float | None = None) -> Sequence[RenderableType]:
        """A row per method, and who is ahead."""
        return compare_views(self.record)

    def __repr__(self) -> str:
        record = self.record
        return f"Contest({record.workload!r} on {record.system!r}, {len(record.contestants)} methods)"


@dataclass(frozen=True, repr=False)
class ContestCheck(Check):
    """What a check of a contest found; proofs are of the bound, one per run, and of what was not computed.

    Parameters
    ----------
    runs : every run with its evidence; empty where the problem cannot be stated
    evidence : the store that was looked at; ``None`` where none was found
    """

    record: CompareDocument
    runs: tuple[RunCheck, ...]
    evidence: Path | None

    def rows(self) -> list[dict[str, Any]]:
        """One row per run."""
        rows: list[dict[str, Any]] = self.to_dict()["runs"]
        return rows

    @property
    def evaluated(self) -> int:
        """Runs whose plans were evaluated again."""
        return sum(run.answer is not None for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        """What ``tilewright check --format json`` prints."""
        record = self.record
        head = {
            "of": record.command,
            "workload": record.workload,
            "system": record.system,
            "objective": record.objective,
            "store": None if self.evidence is None else str(self.evidence),
        }
        reported = {**self._reported(head, complete=record.complete), "faults": [*self.faults]}
        if self.proofs:
            reported["proof"] = proof_data(self.proof)
        rows = []
        for index, check in enumerate(self.runs):
            row: dict[str, Any] = {
                "method": check.method,
                "seed": check.run.seed,
                "status": check.run.status,
                "evaluated": check.answer is not None,
                "faults": list(check.faults),
            }
            if self.proofs:
                row["proof"] = proof_data(self.proofs[1 + index])
            rows.append(row)
        return {**reported, "runs": rows}

    @property
    def proof(self) -> Proof:
        """All second opinions in one: refuted where a claim fails, undecided where one is."""
        seconds = sum(proof.seconds for proof in self.proofs)
        if self.faults:
            return Proof(Verdict.REFUTED, "check", self.faults[0], seconds)
        for verdict in (Verdict.REFUTED, Verdict.UNDECIDED):
            agreeing = [proof for proof in self.proofs if proof.verdict is verdict]
            if agreeing:
                texts = dict.fromkeys(proof.text for proof in agreeing)
                reported = f"{len(agreeing)} of {len(self.proofs)} claims: {'; '.join(texts)}"
                return Proof(verdict, agreeing[0].solver, reported, seconds)
        return Proof(Verdict.CONFIRMED, "evaluator", "the bound, and every plan has its value", seconds)

    def views(self) -> Sequence[RenderableType]:
        """Every fault, what of it rests on plans, and a summary."""
        lines = [Text(fault, "red") for fault in self.faults]
        lines.append(Text(f"{self.evaluated} plans evaluated again"))
        unseen = sum(run.kept is None for run in self.runs)
        if unseen:
            named = self.record.settings.store
            where = "no store is named" if named is None else f"looked for in {self.evidence or named}"
            lines.append(Text(f"{unseen} of {len(self.runs)} runs without evidence: {where}", "yellow"))
        if self.proofs:
            proof = self.proof
            lines.append(Text(f"{proof.verdict.value} by {proof.solver}: {proof.text}"))
        if not self.holds:
            summary = Text("the claims fail", "bold red")
        elif self.undecided or unseen:
            summary = Text("no claim fails; not all were compared with plans", "yellow")
        else:
            summary = Text("all claims hold", "bold green")
        if not self.record.complete:
            summary.append("; not every run has ended", "yellow")
        return [*lines, summary]


def check_contest(
    record: CompareDocument, where: str, limits: Limits | None = None, store: Path | None = None
) -> ContestCheck:
    """Check a document of ``compare``.

    Parameters
    ----------
    where : the document's file, beside which the store is looked for
    limits : of all second opinions together; ``None`` to ask for none
    store : with the runs' evidence; ``None`` for the one that the document names

    Raises
    ------
    InputError : for a store that was asked for and is not there, or one that is damaged
    """
    stated = check_compare(record, where)
    named = record.settings.store
    places = [] if named is None else places_of(named, where)
    with ExitStack() as stack:
        evidence = open_evidence(store, places)
        if evidence is not None:
            stack.enter_context(evidence)
        find: Find = (lambda hashed: None) if evidence is None else evidence.text
        runs = [] if stated.problem is None else check_runs(record, stated.problem, find)
    proofs: list[Proof] = []
    if limits is not None and stated.problem is None:
        proofs = [Proof(Verdict.UNDECIDED, "-", "the problem cannot be stated")]
    elif limits is not None and stated.problem is not None:
        status = Status.FEASIBLE
        claim = PlanClaim(status, record.bound_key, record.settings.methods[0], stated.problem, None)
        proofs = [prove_plan(claim, limits), *prove_runs(runs, stated.problem, limits)]
        missing = sum(entry.missing for entry in record.contestants)
        if missing:
            proofs.append(Proof(Verdict.UNDECIDED, "-", f"{missing} runs were not computed"))
    faults = (*stated.faults, *(fault for run in runs for fault in run.faults))
    path = None if evidence is None else evidence.path
    return ContestCheck(faults, tuple(proofs), record, tuple(runs), path)
