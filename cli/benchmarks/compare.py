"""``tilewright compare``: the arena, methods on one network, one machine and one evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tilewright.cli import completion, models, options
from tilewright.cli.benchmarks import flags as runs
from tilewright.cli.benchmarks.bench import split_list
from tilewright.cli.exits import Exit
from tilewright.cli.scheduling import flags

if TYPE_CHECKING:
    from tilewright.api.scheduling.contest import Contest as ContestDocument
    from tilewright.benchmarks.arena.contest import Clock, Contest
    from tilewright.foundation.errors import OutputError
    from tilewright.report.records.scheduling.tiled.compare import CompareDocument

FORMATS = ("table", "json")
CLOCKS = ("wall", "cpu")
STORE = Path("compare.sqlite")
METHODS = "ls,cnn-p,il-pipe,rammer,atomic"


def compare_command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="ONNX file, onnx:NAME, built-in name, or a layer.",
            autocompletion=completion.models,
        ),
    ],
    system: Annotated[
        str,
        typer.Option(
            "--system",
            "-s",
            autocompletion=completion.tiled_machines,
            metavar="S",
            help=r"Tiled machine such as atomic-8x8\[link=16], or a YAML file.",
            rich_help_panel="Problem",
        ),
    ],
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            "-m",
            autocompletion=completion.planning_methods,
            metavar="M,N,...",
            help="Methods with their options (see [b]list methods[/b]).",
            rich_help_panel="Search",
        ),
    ] = METHODS,
    batch: Annotated[int, typer.Option("--batch", "-b", help="Samples.", rich_help_panel="Problem")] = 1,
    dim: options.Dims = None,
    skip_unsupported: options.SkipUnsupported = False,
    branch: options.Branches = None,
    trip: options.Trips = None,
    stored_widths: options.StoredWidths = False,
    objective: flags.TiledGoal = "edp",
    time_limit: runs.RunLimit = "60",
    seeds: runs.Seeds = 5,
    threads: Annotated[
        int, typer.Option("--threads", help="Of a parallel method within a run.", rich_help_panel="Search")
    ] = 1,
    clock: Annotated[
        str,
        typer.Option(
            "--clock",
            metavar="CLOCK",
            help="Seconds of runs: wall, or cpu on a busy machine.",
            rich_help_panel="Search",
        ),
    ] = "wall",
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    store: Annotated[
        Path,
        typer.Option(
            "--store",
            metavar="STORE",
            help="SQLite file for every run; the same call continues from it.",
            rich_help_panel="Execution",
        ),
    ] = STORE,
    fresh: runs.Fresh = False,
    format: options.ShortFormat = "table",
    out: flags.Document = None,
    plot: flags.Plot = None,
    report: options.Report = None,
    quiet: options.Quiet = False,
) -> int:
    """Compare methods on one tiled machine with equal budgets, and rank them.

    The same evaluator judges every plan; what a method's own formula says is shown too.  Every run
    is stored the moment it ends.
    """
    from tilewright.api.saving import SavedDocument, WrittenAtEnd
    from tilewright.api.scheduling.contest import Contest as ContestDocument
    from tilewright.benchmarks.arena.contest import Contest
    from tilewright.cli.searching import Printed, failed
    from tilewright.cli.terminal.console import note_line
    from tilewright.formulation.scheduling.tiled.problem import TiledProblem, tiled_objective
    from tilewright.foundation.loading import loading_within
    from tilewright.foundation.method_text import parse_method
    from tilewright.hardware.scheduling.tiled.load import load_tiled_machine

    options.parse_choice(format, "--format", FORMATS)
    options.parse_choice(clock, "--clock", CLOCKS)
    for count, flag in ((seeds, "--seeds"), (threads, "--threads"), (jobs, "--jobs")):
        options.parse_count(count, flag)
    asked_onnx = options.parse_onnx(
        dim, skip=skip_unsupported, branches=branch, trips=trip, stored_widths=stored_widths
    )
    seconds = options.parse_duration(time_limit)
    assert seconds is not None
    options.check_workers(jobs, cluster)
    kept = [] if out is None else [SavedDocument(out, "json", ("json",))]
    _check_files(plot, report)
    with loading_within(seconds):
        network = models.loaded(model, 1, asked_onnx, quiet=quiet).graph
        machine = load_tiled_machine(system)
    problem = TiledProblem(network, machine, tiled_objective(objective), batch=batch)
    names = tuple(str(parse_method(text, "--methods")) for text in split_list(methods, "--methods"))
    contest = Contest(problem, objective, names, seeds, seconds, threads, cast("Clock", clock))
    document, failures, unsaved = _run(
        contest, store, options.parse_jobs(jobs), cluster, fresh=fresh, quiet=quiet
    )
    pages = [
        WrittenAtEnd(path, draw) for path, draw in ((plot, _draw), (report, _write_page)) if path is not None
    ]
    files = [*kept, *pages]
    for listener in (*kept, Printed(format), *pages):
        listener.end(ContestDocument(document))
    if failed(files, [] if unsaved is None else [str(unsaved)]):
        return Exit.ERROR
    if not document.complete:
        return Exit.INTERRUPTED
    if all(entry.best is None for entry in document.contestants):
        if quiet and not failures:
            note_line("no method has a plan: a limit struck before one was complete")
        return Exit.ERROR if failures else Exit.LIMIT
    return Exit.OK


def _check_files(plot: Path | None, report: Path | None) -> None:
    if plot is not None:
        from tilewright.report.plots.style import check_plot_file

        check_plot_file(plot)
    if report is not None:
        from tilewright.report.html.page import check_report

        check_report(report)


def _run(
    contest: Contest, path: Path, jobs: int, cluster: str | None, *, fresh: bool, quiet: bool
) -> tuple[CompareDocument, int, OutputError | None]:
    """Compute what the store lacks.

    Returns
    -------
    The document of all that is there, how many runs failed, and why the store's file lacks some, if so
    """
    from contextlib import ExitStack
    from functools import partial

    from tilewright.benchmarks.arena.contest import entries
    from tilewright.benchmarks.arena.document import compare_document
    from tilewright.benchmarks.arena.work import RUNS, prepare
    from tilewright.benchmarks.run import run_cells
    from tilewright.benchmarks.store import Store
    from tilewright.cli.benchmarks.progress import bench_progress
    from tilewright.cli.terminal.signals import graceful_stop
    from tilewright.foundation.database import check_database

    check_database(path)
    cells = entries(contest)
    answers = runs.answers_of(RUNS[contest.clock], jobs, cluster)
    with Store(path, create=True) as store:
        with graceful_stop() as stop, ExitStack() as stack:
            progress = bench_progress(stack, quiet=quiet)
            begin = partial(progress.begin, str(path))
            done = set() if fresh else store.finished()
            if cluster is None and any(entry.task.key not in done for entry in cells):
                for method in contest.methods:
                    prepare(method)
            counts = run_cells(store, cells, answers, stop, progress.done, begin, fresh=fresh)
            progress.end(counts)
        document = compare_document(contest, cells, store.cells(), path.as_posix())
        return document, counts.failed, store.failure


def _draw(path: Path, contest: ContestDocument) -> None:
    from tilewright.report.plots.scheduling.tiled.compare import draw_contest

    draw_contest(contest.record, path)


def _write_page(path: Path, contest: ContestDocument) -> None:
    from tilewright.cli.terminal.command import command
    from tilewright.report.html.scheduling.tiled.compare import write_contest_report

    write_contest_report(path, contest.record, command.text)
