"""``tilewright schedule``: the best schedule of a workload on a system, and the proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli import completion, options
from tilewright.cli.scheduling.flags import OBJECTIVES, AnyGoal, Document, Metric, Plot, RequireOptimal


def schedule_command(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|MODEL",
            help="Built-in workload, YAML file of networks, or a model as for map.",
            autocompletion=completion.workloads,
        ),
    ],
    system: Annotated[
        str,
        typer.Option(
            "--system",
            help="Preset (see [b]list systems[/b]) or YAML file.",
            autocompletion=completion.systems,
            rich_help_panel="Problem",
        ),
    ],
    keep_activations: Annotated[
        bool | None,
        typer.Option(
            "--keep-activations/--store-activations",
            help="Results stay in the global memory while capacity allows, or all go to DRAM;"
            " by default as the system says.",
            show_default=False,
            rich_help_panel="Problem",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", "-b", help="Samples, on tiled machines.", rich_help_panel="Problem"),
    ] = None,
    objective: AnyGoal = "makespan",
    metric: Metric = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            autocompletion=completion.scheduling_methods,
            help="Such as herald[[order=depth-first]; see [b]list methods[/b]; by default cpsat, on tiled"
            " machines atomic.",
            show_default=False,
            rich_help_panel="Search",
        ),
    ] = None,
    time_limit: options.TimeLimit = "60",
    gap: options.Gap = "0",
    threads: options.Threads = None,
    seed: options.Seed = 0,
    warm_start: Annotated[
        Path | None,
        typer.Option(
            "--warm-start",
            metavar="PLAN",
            help="Plan document to start from, on tiled machines.",
            rich_help_panel="Search",
        ),
    ] = None,
    require_optimal: RequireOptimal = False,
    format: options.ShortFormat = "table",
    out: Document = None,
    gantt: Plot = None,
    occupancy: Plot = None,
    links: Annotated[
        Path | None,
        typer.Option(
            help="Draw link loads to a .png or .svg file, on tiled machines.", rich_help_panel="Output"
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(
            help="Write the resource allocation tree of the plan to a .yaml file, of methods on trees.",
            rich_help_panel="Output",
        ),
    ] = None,
    report: options.Report = None,
    log: options.Log = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Schedule networks on the sub-accelerators of a system, or one on a tiled machine, with a bound."""
    from tilewright.api.scheduling.tiled_machine import is_tiled
    from tilewright.cli.scheduling.request import SearchOptions
    from tilewright.cli.scheduling.tiled_schedule import PlanRequest, refuse, run_plan

    search = SearchOptions.read(
        objective=objective,
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
    )
    if is_tiled(system):
        refuse(
            {"--keep-activations": keep_activations is not None, "--metric": metric is not None},
            "is not for tiled machines",
        )
        return run_plan(
            PlanRequest(
                options=search,
                model=workload,
                system=system,
                batch=1 if batch is None else batch,
                method=method,
                warm_start=warm_start,
                gantt=gantt,
                occupancy=occupancy,
                links=links,
                tree=tree,
            )
        )
    options.parse_choice(objective, "--objective", OBJECTIVES)
    refuse({"--batch": batch is not None}, "is for tiled machines; a workload states its own")
    given = {"--warm-start": warm_start, "--links": links, "--tree": tree}
    refuse({flag: path is not None for flag, path in given.items()}, "is for tiled machines")

    from tilewright.cli.scheduling.schedule_run import ScheduleRequest, run_schedule
    from tilewright.solvers.mapping.machine_sizes import METRICS
    from tilewright.solvers.scheduling.herald.registry import METHODS

    method = method or "cpsat"
    METHODS.make(method)
    if metric is not None:
        options.parse_choice(metric, "--metric", METRICS)
    return run_schedule(
        ScheduleRequest(
            options=search,
            workload=workload,
            system=system,
            keep_activations=keep_activations,
            metric=metric,
            method=method,
            gantt=gantt,
            occupancy=occupancy,
        )
    )
