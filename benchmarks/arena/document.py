"""What the store knows of a contest, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.api.scheduling.stated import least_key
from tilewright.benchmarks.arena.contest import Clock, Contest
from tilewright.benchmarks.cells import BenchmarkTask, CellAnswer, Entry
from tilewright.benchmarks.store import FinishedCell
from tilewright.report.records.claims import number
from tilewright.report.records.files import parse_record
from tilewright.report.records.mapping.build import versions
from tilewright.report.records.scheduling.tiled.compare import CompareDocument, KeptRun, contestant, winner_of
from tilewright.report.records.scheduling.tiled.document import PlanMetricsRecord, inputs_hash
from tilewright.report.records.scheduling.tiled.plan import PlanRecord
from tilewright.report.records.scheduling.tiled.problem import TiledProblemRecord


def compare_document(
    contest: Contest, cells: Sequence[Entry], finished: Iterable[FinishedCell], store: str | None = None
) -> CompareDocument:
    """The document of the runs that have ended.

    Parameters
    ----------
    cells : of the contest
    finished : cells of the store, among which those of the contest are looked up
    store : name of the store's file, where whoever checks the document finds the plans
    """
    record = TiledProblemRecord.of(contest.problem)
    asked = inputs_hash(record, contest.objective)
    bound = least_key(contest.problem)
    known = {cell.key: cell for cell in finished}
    contestants = []
    for method in contest.methods:
        entries = [entry for entry in cells if entry.place.method == method]
        runs = []
        for task in (entry.task for entry in entries if entry.task.key in known):
            cell = known[task.key]
            run = kept_run(task, cell.answer, asked, contest.clock)
            runs.append(run.shown(bound, cell.evidence))
        contestants.append(contestant(method, runs, len(entries) - len(runs), bound))
    return CompareDocument.model_validate(
        {
            **CompareDocument.head(),
            "complete": not any(ranked_entry.missing for ranked_entry in contestants),
            "workload": contest.problem.network.name,
            "system": contest.problem.machine.name,
            "batch": contest.problem.batch,
            "objective": contest.objective,
            "settings": {
                "methods": list(contest.methods),
                "time_limit_s": contest.seconds,
                "seeds": contest.seeds,
                "threads": contest.threads,
                "clock": contest.clock,
                "store": store,
            },
            "bound": number(bound),
            "bound_exact": str(bound),
            "contestants": contestants,
            "winner": winner_of(contestants),
            "input_hash": asked,
            "problem": record,
            "versions": versions(),
        }
    )


def kept_run(
    task: BenchmarkTask, answer: CellAnswer, asked: str, clock: Clock, plan: PlanRecord | None = None
) -> KeptRun:
    """A run as the store has it for evidence.

    Parameters
    ----------
    asked : input hash of the contest's document
    plan : what was found; left out where only its figures are wanted

    Raises
    ------
    InputError : for figures that another version has stored
    """
    where, figures = f"{task.method}, seed {task.seed}", dict(answer.metrics or {})
    closed, space = figures.pop("closed_form", None), figures.pop("space", "")
    return KeptRun(
        input_hash=asked,
        method=task.method,
        method_version=task.method_version,
        seed=task.seed,
        time_limit_s=task.seconds,
        threads=task.threads,
        clock=clock,
        status=answer.status,  # type: ignore[arg-type]
        value_exact=answer.value_key,
        bound_exact=answer.bound_key,
        space=space,
        closed_form=closed,
        wall_s=answer.wall_s,
        message=answer.message,
        metrics=parse_record(figures, PlanMetricsRecord, where) if figures else None,
        plan=plan,
    )
