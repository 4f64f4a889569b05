"""Herald's scenarios, scheduled with a proven gap: one JSON line per workload, class and objective.

    python -m studies.herald schedules --seconds 60 --gap 0.005 --processor --out schedules.jsonl
    python -m studies.herald styles --seconds 20 --processor --out styles.jsonl
    python -m studies.herald styles --seconds 20 --processor --workloads mlperf-8 \\
        --systems 'fda-*' 'rda-*' '*maelstrom*' --out batches.jsonl
    python -m studies.herald codesign --seconds 480 --processor --out codesign.jsonl
    python -m studies.herald utilization --out utilization.jsonl
    python -m studies.herald staying --out staying.jsonl

Cost tables are computed beforehand and kept on disk; their time is told apart.  Rows that the file has are
not computed again, so that a study that is killed goes on where it was.  With ``--processor`` the seconds of
a schedule are those of the processor: two threads that are never kept waiting take twice as many.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tilewright.formulation.limits import Limits
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective, SchedulingProblem
from tilewright.formulation.scheduling.herald.residency import with_results_kept
from tilewright.formulation.scheduling.herald.search import ScheduleGoal, ScheduleResult, ScheduleSearch
from tilewright.hardware.scheduling.herald.classes import (
    CLASSES,
    accelerator_class,
    list_system_presets,
    system_preset,
)
from tilewright.heuristics.scheduling.herald.scheduler import greedy
from tilewright.report.records.scheduling.herald.codesign import grid_figures, point_record
from tilewright.solvers.running import run_method
from tilewright.solvers.scheduling.herald.cost_tables.build import (
    METRIC_OF,
    schedule_problem,
    workload_operators,
)
from tilewright.solvers.scheduling.herald.cost_tables.costs import cost_table
from tilewright.solvers.scheduling.herald.partitions.codesign import codesign_run
from tilewright.solvers.scheduling.herald.registry import METHODS
from tilewright.workloads.scheduling.workload_file import load_workload

WORKLOADS = ("ar-vr-a", "ar-vr-b", "mlperf-1")


def maelstrom(workload: str, size: str) -> str:
    """The preset with table V's partition for a workload; that of AR/VR-A where the table has none."""
    own = f"hda-{size}-maelstrom-{workload.split('-1')[0].split('-8')[0]}"
    return own if own in list_system_presets() else f"hda-{size}-maelstrom"


def is_known(arguments: argparse.Namespace, **names: str) -> bool:
    """Whether the file has the row of a workload, a class and so on."""
    return any(all(row.get(key) == name for key, name in names.items()) for row in arguments.known)


def run(
    problem: SchedulingProblem, objective: ScheduleObjective, name: str, arguments: argparse.Namespace
) -> ScheduleResult:
    """One method on one problem."""
    scheduler = METHODS.make(name)
    goal = ScheduleGoal(problem, objective)
    return run_method(ScheduleSearch(goal, limits(arguments), exact=scheduler.exact), scheduler, name)


def limits(arguments: argparse.Namespace) -> Limits:
    """The limits of one search, which begins now: two threads, seconds by the clock that is asked for."""
    clock = time.process_time if arguments.processor else time.monotonic
    return Limits(seconds=arguments.seconds, gap=arguments.gap, threads=2, clock=clock)


def schedules(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Point 1: makespan and energy-delay product on Maelstrom, with Herald beside them."""
    for workload in arguments.workloads:
        for size in arguments.classes:
            for objective in arguments.objectives:
                names = {"workload": workload, "class": size, "objective": objective}
                if is_known(arguments, system=maelstrom(workload, size), **names):
                    continue
                yield _row(workload, maelstrom(workload, size), size, ScheduleObjective(objective), arguments)


def styles(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Point 3: every accelerator style of table III."""
    for workload in arguments.workloads:
        for size in arguments.classes:
            names = [n for n in list_system_presets() if f"-{size}" in n and "maelstrom" not in n]
            names = [
                name
                for name in [*names, maelstrom(workload, size)]
                if any(fnmatchcase(name, pattern) for pattern in arguments.systems)
                and not is_known(arguments, workload=workload, system=name)
            ]
            if not names:
                continue
            operators = workload_operators(load_workload(workload))
            cost_table(operators, [system_preset(name) for name in names], Limits(threads=2))  # all at once
            for name in names:
                yield _row(workload, name, size, ScheduleObjective.EDP, arguments)


def _row(
    workload: str, system: str, size: str, objective: ScheduleObjective, arguments: argparse.Namespace
) -> dict[str, Any]:
    begun = time.monotonic()
    problem = schedule_problem(
        load_workload(workload), system_preset(system), METRIC_OF[objective], Limits(threads=2)
    )
    tables = time.monotonic() - begun
    results = {name: run(problem, objective, name, arguments) for name in ("greedy", "herald", "cpsat")}
    best = results["cpsat"]
    assert best.evaluation is not None
    assert best.bound is not None
    row: dict[str, Any] = {
        "workload": workload,
        "class": size,
        "system": system,
        "objective": str(objective),
        "tasks": len(problem.tasks),
        "status": str(best.status),
        "cycles": best.evaluation.makespan,
        "energy": float(best.evaluation.energy),
        "gap": best.gap,
        "seconds": best.wall_seconds,
        "tables_s": tables,
    }
    for name, result in results.items():
        assert result.key is not None
        row[f"{name}_value"] = float(result.key)
        row[f"{name}_gap"] = float(1 - best.bound / result.key)
        row[f"{name}_wall_s"] = result.wall_seconds
        row[f"{name}_s"] = next(p.seconds for p in reversed(result.trace) if p.improved)
    for limit in (10, 30, 60):
        values = [p for p in best.trace if p.seconds <= limit and p.key is not None and p.bound is not None]
        if values:
            row[f"gap_{limit}"] = float(1 - values[-1].bound / values[-1].key)  # type: ignore[operator]
    return row


def codesign(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Point 2: the best partition of the grid."""
    for workload in arguments.workloads:
        for size in arguments.classes:
            if is_known(arguments, workload=workload, **{"class": size}):
                continue
            flows = arguments.dataflows.split(",")
            run = codesign_run(
                load_workload(workload),
                accelerator_class(size),
                flows,
                ScheduleObjective.EDP,
                limits(arguments),
            )
            result = run.run()
            points = [point_record(candidate).model_dump() for candidate in result.candidates]
            data = {**grid_figures(ScheduleObjective.EDP, result), "points": points}
            yield {"workload": workload, "class": size, **data}


def utilization(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """How busy the PEs of the NVDLA-style FDA are, and so what any machine of as many PEs could gain.

    A PE does one multiply-accumulate per cycle at most, so that no machine is faster than MACs over PEs.
    """
    for workload in map(load_workload, arguments.workloads):
        for size in arguments.classes:
            if is_known(arguments, workload=workload.name, **{"class": size}):
                continue
            system = system_preset(f"fda-{size}-nvdla")
            problem = schedule_problem(workload, system, "edp", Limits(threads=2))
            cycles = greedy(problem).makespan  # one engine: every order has the same sum
            busy = workload.macs / (system.pes * cycles)
            yield {
                "workload": workload.name,
                "class": size,
                "macs": workload.macs,
                "pes": system.pes,
                "cycles": cycles,
                "utilization": busy,
                "largest_gain": 1 - busy,
            }


def residency_costs(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What step 7 saves: energy of Herald's baseline with results in DRAM, kept, and kept without limit."""
    for workload in map(load_workload, arguments.workloads):
        for size in arguments.classes:
            if is_known(arguments, workload=workload.name, **{"class": size}):
                continue
            system = replace(system_preset(f"fda-{size}-nvdla"), keep_activations=True)
            problem = schedule_problem(workload, system, "edp", Limits(threads=2))
            schedule = greedy(problem)
            stored, kept = (
                evaluate_schedule(problem, alternative).energy
                for alternative in (schedule, with_results_kept(problem, schedule))
            )
            least = sum(min(option.energy for option in task.options) for task in problem.tasks)
            yield {
                "workload": workload.name,
                "class": size,
                "stored_pj": float(stored),
                "kept_pj": float(kept),
                "saved": float(1 - kept / stored),
                "saved_without_limit": float(1 - least / stored),
            }


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("schedules", "styles", "codesign", "utilization", "staying"))
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS)
    parser.add_argument("--classes", nargs="+", default=list(CLASSES))
    parser.add_argument("--objectives", nargs="+", default=("makespan", "edp"))
    parser.add_argument("--systems", nargs="+", default=("*",), help="patterns of names, for styles")
    parser.add_argument("--dataflows", default="nvdla,shidiannao")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--gap", type=float, default=0.0)
    parser.add_argument("--processor", action="store_true", help="count seconds of the processor")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    parts = {
        "schedules": schedules,
        "styles": styles,
        "codesign": codesign,
        "utilization": utilization,
        "staying": residency_costs,
    }
    rows = parts[arguments.part]
    written = arguments.out.read_text(encoding="utf-8").splitlines() if arguments.out.exists() else []
    arguments.known = [json.loads(line) for line in written]
    with arguments.out.open("a", encoding="utf-8") as file:
        for row in rows(arguments):
            print(json.dumps(row), file=file, flush=True)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
