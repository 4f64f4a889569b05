"""The report of a benchmark: summary, plots and every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tilewright.benchmarks.curves import cactus, cell_convergence, gaps, profile, proof_curve
from tilewright.benchmarks.plots.selection import best_runs
from tilewright.benchmarks.rows import MISSING, Row
from tilewright.benchmarks.store import Store
from tilewright.benchmarks.summary import Line, gap_text, proofs, share_text, summary
from tilewright.hardware.mapping.engine import Engine
from tilewright.report.curves import UNITS
from tilewright.report.html import figures
from tilewright.report.html.mapping.figures import component_figure
from tilewright.report.html.page import (
    Column,
    Plot,
    Section,
    Table,
    TableCell,
    check_report,
    number_cell,
    text_cell,
    write_page,
)
from tilewright.report.records.mapping.breakdown import EnergyPart, energy_parts
from tilewright.report.records.mapping.build import versions
from tilewright.report.records.mapping.document import MetricsRecord
from tilewright.report.text.quantities import seconds_text, si_text
from tilewright.workloads.mapping.operator import Operator

_STYLES = {"optimal": "good", "feasible": "", "error": "bad", "infeasible": "bad", MISSING: "fair"}


def write_report(path: Path, store: Store, rows: Sequence[Row], command: str = "") -> None:
    """Write the report of some rows of a store; raises ``InputError`` where the file cannot be written.

    Parameters
    ----------
    command : the command line that made it, if one did
    """
    check_report(path)
    ended = [row for row in rows if row.status != MISSING]
    facts = [
        f"{len(ended)} runs of {len({row.problem for row in ended})} problems from {store.path.name}"
        + (f", {len(rows) - len(ended)} still to come" if len(ended) < len(rows) else ""),
        "written with " + ", ".join(f"{name} {version}" for name, version in versions().items()),
    ]
    write_page(
        path, "Mapping methods against the proven optimum", facts, list(_sections(store, rows)), command
    )


def _sections(store: Store, rows: Sequence[Row]) -> list[Section]:
    sections: list[Section] = [_summary(rows), _proofs(rows)]
    if any(row.optimum is not None and row.is_method for row in rows):
        sections += [_cactus(rows), _profile(rows), _gaps(rows)]
    solved = [row for row in rows if row.value is not None]
    if solved:
        sections += _single_runs(store, solved)
    return [*sections, _runs(rows)]


def _summary(rows: Sequence[Row]) -> Table:
    columns = [
        Column("objective"),
        Column("method"),
        Column("runs", True),
        Column("no mapping", True),
        Column("mean gap", True, "value / proven optimum - 1"),
        Column("median", True),
        Column("worst", True),
        Column("within 10 %", True, "share of runs"),
        Column("within 1 %", True),
        Column("optimum", True),
        Column("median time", True),
        Column("primal integral", True, "Berthold 2013, share of the limit"),
    ]

    def cells(line: Line) -> list[TableCell]:
        percents = (line.within_10, line.within_1, line.at_optimum)
        return [
            *map(text_cell, line.group),
            number_cell(str(line.runs), line.runs),
            number_cell(str(line.empty), line.empty, "bad" if line.empty else ""),
            *(number_cell(gap_text(gap), gap) for gap in (line.mean, line.median, line.worst)),
            *(number_cell(share_text(share), share) for share in percents),
            number_cell("-" if line.seconds is None else seconds_text(line.seconds), line.seconds),
            number_cell(share_text(line.primal_integral), line.primal_integral),
        ]

    note = "The gap is value / proven optimum - 1.  A click on a heading sorts."
    return Table("Methods", columns, [cells(line) for line in summary(rows)], note)


def _proofs(rows: Sequence[Row]) -> Table:
    columns = [
        Column("objective"),
        Column("machine"),
        Column("solver"),
        Column("problems", True),
        Column("proven", True),
        Column("median time", True),
        Column("longest", True),
    ]
    body = [
        [
            *map(text_cell, proof.group),
            number_cell(str(proof.problems), proof.problems),
            number_cell(
                str(proof.proven), proof.proven, "good" if proof.proven == proof.problems else "fair"
            ),
            number_cell(seconds_text(proof.median_s), proof.median_s),
            number_cell(seconds_text(proof.worst_s), proof.worst_s),
        ]
        for proof in proofs(rows)
    ]
    return Table("Proofs", columns, body, "Each optimum is proven once, by an exact solver.")


def _cactus(rows: Sequence[Row]) -> Plot:
    limit = max(row.time_limit_s or 0.0 for row in rows if row.is_method)
    goals: list[tuple[str, Callable[[Row], float | None]]] = [
        ("within 1 % of the optimum", lambda row: row.seconds_1),
        ("within 10 % of the optimum", lambda row: row.seconds_10),
        ("at the optimum", lambda row: row.seconds_0),
    ]
    shown = [
        (
            title,
            figures.curves_figure(
                cactus(rows, goal),
                "search time [s]",
                "runs",
                limit,
                proof_curve(rows, "optimum proven") if title == "at the optimum" else None,
            ),
        )
        for title, goal in goals
    ]
    return Plot("Solved against time", shown, "The share of all runs that have come so close by a time.")


def _profile(rows: Sequence[Row]) -> Plot:
    curves = profile(rows, lambda row: row.seconds_1)
    end = max((curve.xs[-1] for curve in curves if curve.xs), default=10.0)
    figure = figures.curves_figure(
        curves, "multiple of the fastest method's time", "problems", max(end, 10.0)
    )
    note = (
        "Dolan and Moré's profile of times to within 1 % of the optimum; a method's time on a problem is the "
        "median over its seeds."
    )
    return Plot("Performance profile", [("", figure)], note)


def _gaps(rows: Sequence[Row]) -> Plot:
    shown = [(objective, figures.gaps_figure(some)) for objective, some in gaps(rows).items()]
    return Plot(
        "Gaps", shown, "Boxes from quartile to quartile, a dot per run; a gap of 0 is at the left end."
    )


def _single_runs(store: Store, rows: Sequence[Row]) -> list[Section]:
    """Convergence and energy of every problem."""
    cells = {cell.key: cell for cell in store.cells()}
    by_problem: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        by_problem.setdefault(row.problem, []).append(row)
    courses, energies = [], []
    for (suite, layer, arch, objective), problem_rows in by_problem.items():
        title = f"{suite} / {layer} on {arch}, {objective}"
        scale, label = UNITS.get(objective, (1.0, objective))
        best = best_runs(problem_rows)
        order = [row.method for row in best]
        runs = [
            cell_convergence(row.method, cells[row.key], objective)
            for row in sorted(problem_rows, key=lambda row: order.index(row.method))
        ]
        courses.append((title, figures.convergence_figure(runs, label, scale, problem_rows[0].optimum)))
        problem = store.problem(cells[best[0].key].problem)
        engine, operator = problem.arch.build("store"), problem.operator.build("store")

        def parts(row: Row, engine: Engine = engine, operator: Operator = operator) -> list[EnergyPart]:
            metrics = MetricsRecord.model_validate(cells[row.key].answer.metrics)
            return energy_parts(metrics, engine, operator)

        energies.append((title, component_figure([(row.method, parts(row)) for row in best])))
    return [
        Plot("Convergence", courses, "Value (full) and bound (dashed) of every run; dotted is the optimum."),
        Plot("Energy", energies, "By level, for the best mapping of every method."),
    ]


def _runs(rows: Sequence[Row]) -> Table:
    columns = [
        Column("suite"),
        Column("layer"),
        Column("machine"),
        Column("objective"),
        Column("method"),
        Column("seed", True),
        Column("result"),
        Column("value", True, "pJ, cycles, pJ·cycle"),
        Column("gap", True),
        Column("to 10 %", True, "seconds to within 10 % of the optimum"),
        Column("to 1 %", True),
        Column("to 0 %", True),
        Column("time", True, "of the search"),
    ]

    def seconds(moment: float | None) -> TableCell:
        return number_cell("-" if moment is None else seconds_text(moment), moment)

    body = [
        [
            *map(text_cell, (row.suite, row.layer, row.arch, row.objective, row.method)),
            number_cell(str(row.seed), row.seed),
            text_cell(row.status, _STYLES.get(row.status, "fair")),
            number_cell("-" if row.value is None else si_text(row.value), row.value),
            number_cell(gap_text(row.gap), row.gap),
            *map(seconds, (row.seconds_10, row.seconds_1, row.seconds_0, row.wall_s)),
        ]
        for row in rows
    ]
    return Table("Runs", columns, body, searchable=True)
