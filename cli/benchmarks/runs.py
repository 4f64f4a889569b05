"""``tilewright runs``: what a store of benchmark runs holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import options
from tilewright.cli.benchmarks.bench import FORMATS, STORE, split_list
from tilewright.cli.exits import Exit
from tilewright.foundation.errors import InputError

_FILTERS = "Which runs"


def _filter(flag: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(flag, metavar="A,B,...", help=text, rich_help_panel=_FILTERS)  # type: ignore[no-any-return]


def runs_command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="SQLite file of [b]bench[/b].")] = STORE,
    suite: Annotated[str | None, _filter("--suite", "Suites.")] = None,
    arch: Annotated[str | None, _filter("--arch", "Machines.")] = None,
    objective: Annotated[str | None, _filter("--objective", "Objectives.")] = None,
    method: Annotated[str | None, _filter("--method", "Methods.")] = None,
    layer: Annotated[str | None, _filter("--layer", "Layers, also as glob patterns.")] = None,
    status: Annotated[str | None, _filter("--status", "How runs ended.")] = None,
    seed: Annotated[str | None, _filter("--seed", "Seeds.")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only the summary.")] = False,
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="F,G,...", help="Groups of the summary: objective, method, arch, suite, layer."
        ),
    ] = "objective,method",
    most: Annotated[int, typer.Option("--most", help="Runs in the table; 0 for all.")] = 40,
    format: Annotated[str, typer.Option("--format", "-f", help="table, json, csv or markdown.")] = "table",
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Write the runs to a .csv, .parquet or .json file."),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="KIND", help="cactus, profile, gaps, convergence or energy."),
    ] = None,
    plot_file: Annotated[
        Path | None,
        typer.Option("--plot-file", metavar="FILE", help="Where the plot goes: .png, .pdf or .svg."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a self-contained HTML report.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Evaluate every mapping again and compare it with the proofs (exit code 5)."
        ),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tracebacks.")] = False,
) -> int:
    """List, filter, summarise, export, plot and check the runs of a store."""
    options.parse_choice(format, "--format", FORMATS)
    if most < 0:
        raise InputError("--most", None, f"expected at least 0, got {most}")
    if (plot is None) != (plot_file is None):
        raise InputError("--plot", None, "expected --plot KIND and --plot-file FILE together")
    from tilewright.benchmarks.rows import Filters, read_rows
    from tilewright.benchmarks.store import Store
    from tilewright.benchmarks.summary import FIELDS

    groups = split_list(by, "--by")
    for field in groups:
        options.parse_choice(field, "--by", FIELDS)

    def names(text: str | None, flag: str) -> tuple[str, ...]:
        return () if text is None else split_list(text, flag)

    filters = Filters(
        suites=names(suite, "--suite"),
        archs=names(arch, "--arch"),
        methods=names(method, "--method"),
        objectives=names(objective, "--objective"),
        layers=names(layer, "--layer"),
        statuses=names(status, "--status"),
        seeds=_seeds(names(seed, "--seed")),
    )
    with Store(store) as opened:
        rows = filters.apply(read_rows(opened))
        if check:
            return _check(opened)
        if export is not None:
            from tilewright.benchmarks.export import export_rows

            export_rows(rows, export)
        if plot is not None and plot_file is not None:
            from tilewright.benchmarks.plots.registry import draw_to

            draw_to(plot_file, plot, opened, rows)
        if report is not None:
            from tilewright.benchmarks.page import write_report
            from tilewright.cli.terminal.command import command

            write_report(report, opened, rows, command.text)
    if not any((export, plot, report)):
        from tilewright.cli.benchmarks.tables import show_runs, show_summary

        if not summary and format != "markdown":
            show_runs(rows, format, most)
        if summary or format in ("table", "markdown"):
            show_summary(rows, format, groups)
    return Exit.OK


def _seeds(texts: tuple[str, ...]) -> tuple[int, ...]:
    try:
        return tuple(int(text) for text in texts)
    except ValueError:
        raise InputError("--seed", None, f"expected whole numbers, got {','.join(texts)!r}") from None


def _check(store: object) -> int:
    from rich.text import Text

    from tilewright.benchmarks.audit import store_faults
    from tilewright.benchmarks.store import Store
    from tilewright.cli.terminal.console import show

    assert isinstance(store, Store)
    faults = list(store_faults(store))
    cells = [cell.problem for cell in store.cells()]
    contests = sum(store.is_contest(problem) for problem in cells)
    count = len(cells)
    lines = [Text(fault, "red") for fault in faults]
    end = Text(f"all {count} runs hold", "bold green")
    if faults:
        end = Text(f"{len(faults)} faults in {count} runs", "bold red")
    if contests:
        end.append(f"; `check` of the documents of compare evaluates the plans of {contests}", "yellow")
    show(*lines, end)
    return Exit.CHECK_FAILED if faults else Exit.OK
