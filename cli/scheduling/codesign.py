"""``tilewright codesign``: the best partition of PEs and bandwidth together with its schedule."""

from __future__ import annotations

from typing import Annotated

import typer

from tilewright.cli import completion, options
from tilewright.cli.scheduling.flags import OBJECTIVES, Document, Goal, Metric, Plot, RequireOptimal


def codesign_command(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|MODEL", help="As for schedule.", autocompletion=completion.workloads
        ),
    ],
    accelerator_class: Annotated[
        str,
        typer.Option(
            "--class",
            help="edge, mobile or cloud.",
            autocompletion=completion.one_of("edge", "mobile", "cloud"),
            rich_help_panel="Problem",
        ),
    ],
    dataflows: Annotated[
        str,
        typer.Option("--dataflows", help="One per sub-accelerator, with commas.", rich_help_panel="Problem"),
    ] = "nvdla,shidiannao",
    objective: Goal = "edp",
    metric: Metric = None,
    search: Annotated[
        str,
        typer.Option("--search", help="exhaustive, binary or random partitions.", rich_help_panel="Search"),
    ] = "exhaustive",
    pe_step: Annotated[
        int | None,
        typer.Option(
            "--pe-step",
            min=1,
            help="PEs by which partitions differ; by default the class's own.",
            rich_help_panel="Problem",
        ),
    ] = None,
    bandwidth_step: Annotated[
        int | None,
        typer.Option(
            "--bandwidth-step",
            min=1,
            metavar="GB/s",
            rich_help_panel="Problem",
            help="Bandwidth by which partitions differ; by default the class's own.",
        ),
    ] = None,
    time_limit: options.TimeLimit = "5m",
    gap: options.Gap = "0",
    threads: options.Threads = None,
    seed: options.Seed = 0,
    require_optimal: RequireOptimal = False,
    format: options.ShortFormat = "table",
    out: Document = None,
    scatter: Plot = None,
    report: options.Report = None,
    log: options.Log = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Find the best split of a class's PEs and bandwidth, with a bound over the whole grid of splits."""
    from tilewright.cli.scheduling.codesign_run import CodesignRequest, run_codesign
    from tilewright.cli.scheduling.request import SearchOptions
    from tilewright.solvers.mapping.machine_sizes import METRICS

    if metric is not None:
        options.parse_choice(metric, "--metric", METRICS)
    return run_codesign(
        CodesignRequest(
            options=SearchOptions.read(
                objective=options.parse_choice(objective, "--objective", OBJECTIVES),
                time_limit=time_limit,
                gap=gap,
                threads=threads,
                seed=seed,
                require_optimal=require_optimal,
                form=format,
                out=out,
                report=report,
                log=log,
                quiet=quiet,
                verbose=verbose,
            ),
            workload=workload,
            metric=metric,
            accelerator_class=accelerator_class,
            dataflows=tuple(dataflows.split(",")),
            search=search,
            pe_step=pe_step,
            bandwidth_step=bandwidth_step,
            scatter=scatter,
        )
    )
