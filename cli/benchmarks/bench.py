"""``tilewright bench``: methods against the proven optimum, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.cli import completion, options
from tilewright.cli.benchmarks import flags as runs
from tilewright.cli.exits import Exit
from tilewright.foundation.errors import InputError

if TYPE_CHECKING:
    from tilewright.benchmarks.plan import Request

FORMATS = ("table", "json", "csv", "markdown")
STORE = Path("bench.sqlite")
FUSED_STORE = Path("bench-fused.sqlite")
ALL = "all"


def bench_command(
    suites: Annotated[
        list[str],
        typer.Argument(
            metavar="SUITE...",
            autocompletion=completion.suites,
            help="Suites (see [b]list suites[/b]), or files and texts of layers as [b]map[/b] reads them.",
        ),
    ],
    arch: Annotated[
        str,
        typer.Option(
            "--arch",
            "-a",
            metavar="A,B,...",
            help="Machines.",
            autocompletion=completion.machines,
            rich_help_panel="Problem",
        ),
    ],
    objective: Annotated[
        str,
        typer.Option(
            "--objective", "-o", metavar="O,P,...", help="energy, cycles, edp, ...", rich_help_panel="Problem"
        ),
    ] = "edp",
    batch: options.Batch = None,
    dim: options.Dims = None,
    skip_unsupported: options.SkipUnsupported = False,
    branch: options.Branches = None,
    trip: options.Trips = None,
    stored_widths: options.StoredWidths = False,
    layers: options.Layers = None,
    factors: options.Factors = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            autocompletion=completion.solvers,
            metavar="M,N,...",
            rich_help_panel="Search",
            help=r"Methods with their options, such as random,annealing\[steps=100]; "
            "all for every heuristic.",
        ),
    ] = ALL,
    seeds: runs.Seeds = 5,
    time_limit: runs.RunLimit = "5",
    optimum: Annotated[
        str,
        typer.Option(
            "--optimum",
            metavar="SOLVER",
            rich_help_panel="Search",
            help="Exact solver that proves each optimum once; none to prove nothing.",
        ),
    ] = "auto",
    optimum_limit: Annotated[
        str, typer.Option("--optimum-limit", metavar="TIME", help="Per proof.", rich_help_panel="Search")
    ] = "60",
    threads: Annotated[
        int, typer.Option("--threads", help="Of a parallel solver within a run.", rich_help_panel="Search")
    ] = 1,
    fuse: Annotated[
        bool,
        typer.Option(
            "--fuse", help="Heuristics that fuse layers, on whole networks.", rich_help_panel="Problem"
        ),
    ] = False,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    fresh: runs.Fresh = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="STORE",
            help="SQLite file; bench.sqlite by default, bench-fused.sqlite with --fuse.",
            rich_help_panel="Output",
        ),
    ] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", help="table, json, csv or markdown.", rich_help_panel="Output")
    ] = "table",
    quiet: options.Quiet = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tracebacks.", rich_help_panel="Output")
    ] = False,
) -> int:
    """Run methods on suites and compare each answer with the proven optimum.

    Every run is stored the moment it ends; the same call again continues where the last one stopped, and runs
    again only what depends on inputs that have changed.
    """
    from tilewright.benchmarks.plan import Request
    from tilewright.foundation.method_text import parse_method

    options.parse_choice(format, "--format", FORMATS)
    options.parse_factors(factors)
    for count, flag in ((seeds, "--seeds"), (threads, "--threads"), (jobs, "--jobs")):
        options.parse_count(count, flag)
    if fuse:
        return _fused(locals())
    limit = options.parse_duration(time_limit)
    proof = options.parse_duration(optimum_limit, "--optimum-limit")
    assert limit is not None
    assert proof is not None
    methods = split_list(method, "--method")
    if methods == (ALL,):
        from tilewright.api.catalog import mapping_heuristics

        methods = tuple(line.name for line in mapping_heuristics())
    names = [str(parse_method(text, "--method")) for text in methods]
    request = Request(
        suites=tuple(dict.fromkeys(suites)),
        machines=split_list(arch, "--arch"),
        objectives=tuple(str(options.read_objective(o)) for o in split_list(objective, "--objective")),
        methods=tuple(dict.fromkeys(names)),
        patterns=tuple(layers or ()),
        seeds=seeds,
        seconds=limit,
        optimum=None if optimum == "none" else (optimum, proof),
        factors=factors,
        threads=threads,
        batch=batch,
        onnx=options.parse_onnx(
            dim, skip=skip_unsupported, branches=branch, trips=trip, stored_widths=stored_widths
        ),
    )
    options.check_workers(jobs, cluster)
    return _bench(request, out or STORE, options.parse_jobs(jobs), cluster, format, fresh=fresh, quiet=quiet)


def _fused(given: Mapping[str, Any]) -> int:
    """``bench --fuse``.

    Parameters
    ----------
    given : the parameters of ``bench``
    """
    from tilewright.api.catalog import fusion_heuristics
    from tilewright.benchmarks.fused import FusedRequest
    from tilewright.cli.benchmarks.fused import bench_fused
    from tilewright.workloads.catalog import resolve_model

    for parameter, flag in {"jobs": "--jobs", "cluster": "--cluster", "layers": "--layers"}.items():
        if given[parameter]:
            raise InputError(flag, None, "cannot be used with --fuse")
    if given["optimum"] not in ("auto", "none"):
        raise InputError("--optimum", None, f"expected auto or none with --fuse, got {given['optimum']!r}")
    names = [line.name for line in fusion_heuristics()]
    methods = split_list(given["method"], "--method")
    onnx = options.parse_onnx(given["dim"], skip=given["skip_unsupported"])
    request = FusedRequest(
        networks=tuple(resolve_model(name, given["batch"], onnx) for name in given["suites"]),
        machines=split_list(given["arch"], "--arch"),
        objectives=tuple(
            str(options.read_objective(text)) for text in split_list(given["objective"], "--objective")
        ),
        methods=tuple(names) if methods == (ALL,) else methods,
        seeds=given["seeds"],
        seconds=options.parse_duration(given["time_limit"]),
        proof=None
        if given["optimum"] == "none"
        else options.parse_duration(given["optimum_limit"], "--optimum-limit"),
        factors=options.parse_factors(given["factors"]),
        threads=given["threads"],
    )
    return bench_fused(
        request, given["out"] or FUSED_STORE, given["format"], fresh=given["fresh"], quiet=given["quiet"]
    )


def split_list(text: str, flag: str) -> tuple[str, ...]:
    """The parts between commas that stand outside brackets; raises ``InputError`` for an empty one."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    entries = tuple(dict.fromkeys(part.strip() for part in parts))
    if "" in entries:
        raise InputError(flag, None, f"expected names with commas between them, got {text!r}")
    return entries


def _bench(
    request: Request, out: Path, jobs: int, cluster: str | None, form: str, *, fresh: bool, quiet: bool
) -> int:
    from contextlib import ExitStack
    from functools import partial

    from tilewright.benchmarks.plan import make_plan
    from tilewright.benchmarks.rows import read_rows
    from tilewright.benchmarks.run import run_cells
    from tilewright.benchmarks.store import Store
    from tilewright.benchmarks.work import CELLS
    from tilewright.cli.benchmarks.progress import bench_progress
    from tilewright.cli.benchmarks.tables import show_summary
    from tilewright.cli.terminal.signals import graceful_stop
    from tilewright.foundation.database import check_database

    check_database(out)
    plan = make_plan(request)
    answers = runs.answers_of(CELLS, jobs, cluster)
    with Store(out, create=True) as store:
        with graceful_stop() as stop, ExitStack() as stack:
            progress = bench_progress(stack, quiet=quiet)
            for refused in plan.refused:
                progress.note(f"left out: {refused}")
            counts = run_cells(
                store,
                plan.entries,
                answers,
                stop,
                progress.done,
                partial(progress.begin, str(out)),
                fresh=fresh,
            )
            progress.end(counts)
        wanted = {entry.place for entry in plan.entries}
        rows = [row for row in read_rows(store) if row.at in wanted]
    show_summary(rows, form)
    if store.failure is not None:
        raise store.failure
    if counts.missing:
        return Exit.INTERRUPTED
    return Exit.ERROR if counts.failed else Exit.OK
