"""What the store knows of a contest, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from tilewright.benchmarks.arena.contest import Contest
from tilewright.benchmarks.cells import Entry
from tilewright.benchmarks.store import FinishedCell
from tilewright.formulation.scheduling.tiled.search import TiledGoal
from tilewright.report.records.claims import number
from tilewright.report.records.mapping.build import versions
from tilewright.report.records.scheduling.tiled.compare import (
    COMPARE,
    CompareDocument,
    RunRecord,
    contestant,
    gap_of,
    winner_of,
)
from tilewright.report.records.scheduling.tiled.document import inputs_hash
from tilewright.report.records.scheduling.tiled.problem import TiledProblemRecord
from tilewright.solvers.scheduling.tiled.running import bound_key
from tilewright.solvers.scheduling.tiled.size_bounds import size_bounds


def compare_document(
    contest: Contest, cells: Sequence[Entry], finished: Iterable[FinishedCell]
) -> CompareDocument:
    """The document of the runs that have ended.

    Parameters
    ----------
    cells : of the contest
    finished : cells of the store, among which those of the contest are looked up
    """
    record = TiledProblemRecord.of(contest.problem)
    bound = bound_key(TiledGoal(contest.problem), size_bounds(contest.problem))
    known = {cell.key: cell for cell in finished}
    contestants = []
    for method in contest.methods:
        mine = [entry for entry in cells if entry.place.method == method]
        ended = [known[entry.task.key] for entry in mine if entry.task.key in known]
        runs = [_run(cell, bound) for cell in ended]
        contestants.append(contestant(method, runs, len(mine) - len(ended), bound))
    return CompareDocument.model_validate(
        {
            "schema": COMPARE,
            "command": "compare",
            "complete": not any(one.missing for one in contestants),
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
            },
            "bound": number(bound),
            "bound_exact": str(bound),
            "contestants": contestants,
            "winner": winner_of(contestants),
            "input_hash": inputs_hash(record, contest.objective),
            "problem": record,
            "versions": versions(),
        }
    )


def _run(cell: FinishedCell, bound: Fraction) -> RunRecord:
    found, metrics = cell.answer, cell.answer.metrics or {}
    key = cell.value_key
    return RunRecord(
        seed=cell.seed,
        status=found.status,  # type: ignore[arg-type]
        value=None if key is None else number(key),
        value_exact=found.value_key,
        closed_form=metrics.get("closed_form"),
        gap=gap_of(key, bound),
        wall_s=found.wall_s,
        cycles=metrics.get("cycles"),
        energy_pj=metrics.get("energy_pj"),
        dram_bytes=metrics["dram_read_bytes"] + metrics["dram_write_bytes"] if metrics else None,
        hop_bytes=metrics.get("hop_bytes"),
        utilization=metrics.get("utilization"),
        atoms=metrics.get("atoms"),
        message=found.message,
    )
