"""The reports of ``schedule`` and ``codesign``: Gantt chart, memory, partitions, and every layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from tilewright.formulation.objective import parse_objective
from tilewright.formulation.scheduling.herald.evaluator import evaluate_schedule
from tilewright.formulation.scheduling.herald.problem import ScheduleObjective
from tilewright.report.checks.scheduling.herald.schedule import schedule_of
from tilewright.report.html.page import (
    Column,
    Plot,
    Section,
    Table,
    TableCell,
    filled,
    number_cell,
    text_cell,
    write_page,
)
from tilewright.report.html.scheduling.claims import (
    SORTS,
    claim_fact,
    count_cell,
    course_sections,
    energy_cell,
    nothing_sections,
    versions_fact,
)
from tilewright.report.html.scheduling.herald.figures import (
    division_text,
    gantt_figure,
    memory_figure,
    partitions_figure,
)
from tilewright.report.pareto import pareto_front
from tilewright.report.records.scheduling.herald.document import (
    CodesignDocument,
    PartitionPointRecord,
    PlacementRecord,
    ScheduleDocument,
    objective_name,
)
from tilewright.report.records.scheduling.herald.system import SubAcceleratorRecord
from tilewright.report.text.quantities import count_text, energy_text, objective_text, percent_text


def write_schedule_report(path: Path, document: ScheduleDocument, command: str = "") -> None:
    """Write the report of one schedule; raises ``InputError`` where the file cannot be written.

    Parameters
    ----------
    command : the command line that made it, if one did
    """
    facts = [
        f"{document.tasks} layers, objective {document.objective}, {document.settings.method}",
        claim_fact(document),
        *([document.message] if document.message else []),
        *([document.open_text] if document.open_text else []),
        versions_fact(document.versions),
    ]
    title = f"{document.workload} on {document.system.name}"
    sections = _schedule_sections(document) or nothing_sections(document)
    write_page(path, title, facts, sections, command)


def write_codesign_report(path: Path, document: CodesignDocument, command: str = "") -> None:
    """Write the report of one co-design; raises ``InputError`` where the file cannot be written.

    Parameters
    ----------
    command : the command line that made it, if one did
    """
    facts = [
        f"dataflows {' + '.join(document.dataflows)}, objective {document.objective}, "
        f"{document.search} search",
        claim_fact(document),
        f"{document.partitions} partitions, {document.discarded} ruled out by their bounds alone, "
        f"{document.scheduled} scheduled",
        *([f"best: {division_text(document.partition, document.fields)}"] if document.partition else []),
        *([document.message] if document.message else []),
        *([document.open_text] if document.open_text else []),
        versions_fact(document.versions),
    ]
    sections: list[Section] = []
    if document.points and document.best is not None:
        clock = Fraction(document.best.system.clock_mhz)
        note = "Latency and energy of the best schedule on every partition; hover to see its name."
        figure = partitions_figure(document, float(1 / (clock * 1_000_000)))
        sections += [Plot("Partitions", [("", figure)], note), _points(document)]
        sections += course_sections(
            "Convergence over all partitions", "codesign", document.objective, document.trace, document.wall_s
        )
        sections += _schedule_sections(document.best)
    sections = sections or nothing_sections(document)
    write_page(path, f"{document.workload}, class {document.accelerator_class}", facts, sections, command)


def _schedule_sections(document: ScheduleDocument) -> list[Section]:
    if document.schedule is None or document.problem is None or document.metrics is None:
        return []
    problem = document.problem.build("problem")
    evaluation = evaluate_schedule(problem, schedule_of(problem, document.schedule))
    seconds = float(1 / (Fraction(document.system.clock_mhz) * 1_000_000))
    networks = {task.instance: task.network for task in problem.tasks}
    gantt = gantt_figure(document.schedule, networks, problem.engines, seconds)
    memory = memory_figure(evaluation.occupancy, evaluation.makespan, problem.memory, seconds)
    return [
        _engines(document),
        Plot("Schedule", [("", gantt)], "One row per sub-accelerator, one colour per network."),
        Plot("Shared memory", [("", memory)], "Bytes that running layers and fetches take."),
        *course_sections(
            "Convergence", document.settings.method, document.objective, document.trace, document.wall_s
        ),
        _layers(document.schedule),
    ]


def _engines(document: ScheduleDocument) -> Table:
    metrics, rows = document.metrics, document.schedule or []
    assert metrics is not None

    def busy(sub: SubAcceleratorRecord) -> TableCell:
        share = metrics.utilization[sub.name]
        return number_cell(percent_text(share), share)

    total = f"Makespan {count_text(metrics.makespan)} cycles, energy {energy_text(metrics.energy_pj)}."
    return filled(
        "Sub-accelerators",
        [
            (Column("sub-accelerator"), lambda sub: text_cell(sub.name)),
            (Column("dataflow"), lambda sub: text_cell("/".join(sub.dataflows))),
            (Column("PEs", True), lambda sub: count_cell(sub.pes)),
            (
                Column("bytes per cycle", True, "between global memory and PEs"),
                lambda sub: number_cell(sub.bytes_per_cycle, float(Fraction(sub.bytes_per_cycle))),
            ),
            (Column("layers", True), lambda sub: count_cell(sum(row.engine == sub.name for row in rows))),
            (Column("busy", True, "part of the makespan"), busy),
            (Column("energy", True), lambda sub: energy_cell(metrics.energy_by_engine_pj[sub.name])),
        ],
        document.system.sub_accelerators,
        total,
    )


def _layers(rows: Sequence[PlacementRecord]) -> Table:
    return filled(
        "Layers",
        [
            (Column("run"), lambda row: text_cell(row.instance)),
            (Column("layer"), lambda row: text_cell(row.layer)),
            (Column("sub-accelerator"), lambda row: text_cell(row.engine)),
            (Column("dataflow"), lambda row: text_cell(row.layout)),
            (
                Column("fetch", True, "cycle at which fetching its first weights begins"),
                lambda row: count_cell(row.fetch_start),
            ),
            (Column("start", True, "cycle"), lambda row: count_cell(row.start)),
            (Column("end", True, "cycle"), lambda row: count_cell(row.end)),
            (Column("cycles", True), lambda row: count_cell(row.end - row.start)),
            (Column("energy", True), lambda row: energy_cell(row.energy_pj)),
            (Column("memory", True, "bytes"), lambda row: count_cell(row.memory_bytes)),
        ],
        rows,
        SORTS,
        searchable=True,
    )


Point = tuple[Column, Callable[[PartitionPointRecord], TableCell]]


def _points(document: CodesignDocument) -> Table:
    objective = parse_objective(objective_name(ScheduleObjective(document.objective)))
    front = {*pareto_front([(float(point.cycles), point.energy_pj) for point in document.points])}
    best = document.value or 0

    def part(index: int, flow: str, title: str, field: str) -> Point:
        def cell(point: PartitionPointRecord) -> TableCell:
            size = point.partition[index][field]
            return number_cell(f"{size:g}", size)

        return Column(f"{flow} {title}", True), cell

    def ratio(point: PartitionPointRecord) -> TableCell:
        ratio = point.bound / best if best else None
        out = point.bound >= best
        return number_cell("-" if ratio is None else f"{ratio:.4f}", ratio, "good" if out else "fair")

    def is_in_front(point: PartitionPointRecord) -> bool:
        return (float(point.cycles), point.energy_pj) in front

    def varied(path: str) -> Point:
        return Column(path), lambda point: text_cell(str(point.fields[path]))

    flows = [*enumerate(document.dataflows)]
    columns: list[Point] = [
        *(varied(path) for axis in document.vary for path in axis.fields),
        *(part(index, flow, "PEs", "pes") for index, flow in flows),
        *(part(index, flow, "B/cycle", "bytes_per_cycle") for index, flow in flows),
        (Column("cycles", True), lambda point: count_cell(point.cycles)),
        (Column("energy", True), lambda point: energy_cell(point.energy_pj)),
        (
            Column(document.objective, True),
            lambda point: number_cell(objective_text(objective, point.value), point.value),
        ),
        (
            Column("bound", True, "no schedule on the partition has less"),
            lambda point: number_cell(objective_text(objective, point.bound), point.bound),
        ),
        (Column("bound / best", True, "at least 1 if the bound excludes the partition"), ratio),
        (Column("scheduled"), lambda point: text_cell("yes" if point.scheduled else "no")),
        (Column("Pareto"), lambda point: text_cell("yes" if is_in_front(point) else "no")),
    ]
    ordered = sorted(document.points, key=lambda point: point.value)
    return filled("All partitions", columns, ordered, SORTS, searchable=True)
